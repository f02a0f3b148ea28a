/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_volume.h - the requests of a session about a named volume, and one with contents.
 */
#ifndef RBX_TESTS_NAMED_VOLUME_H
#define RBX_TESTS_NAMED_VOLUME_H

#include "tests/server/world.h"

#define NAMED_ID 77 /* of "db" */

/* Of a volume that is made with this name. */
uint64_t named_id(const char *name);

/* volume: what was answered, or NULL. 0 or -errno. */
int named_open(struct rbx_session *session, enum rbx_wire_open_mode mode, const char *name,
	       uint64_t epoch, struct rbx_wire_volume *volume);
/* A record for a volume that was answered: 8 slabs at one server. */
struct rbx_wire_message named_accept_of(const struct rbx_wire_volume *volume, uint64_t epoch,
					uint64_t version);
/* "db", whose writer has it open in epoch 1, and the session of somebody else. */
struct named_two {
	struct world world;
	struct rbx_session *writer, *other;
	struct rbx_qp *qp; /* the writer's */
	struct rbx_loan loan;
};

void named_two_begin(struct named_two *two);
void named_two_end(struct named_two *two);

/* Makes "db", with one slab, whose contents are those of world->memory; in epoch 1. */
struct rbx_session *named_make(struct world *world, struct rbx_qp **qp, struct rbx_loan *loan);
/* The same, over a session that is there. */
void named_fill(struct world *world, struct rbx_session *session, struct rbx_qp **qp,
		struct rbx_loan *loan);
struct rbx_wire_labels named_labels(struct rbx_session *session, uint64_t cursor);
struct rbx_loan named_loan_of(const struct rbx_wire_label *label);
/* Reads the slab that named_make() wrote. */
void named_expect(struct world *world, struct rbx_qp *qp, const struct rbx_loan *loan);

#endif
