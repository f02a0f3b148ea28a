/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* given_up.h - what the parts of the scenario share in which servers are given up. */
#ifndef RBX_SIM_GIVEN_UP_H
#define RBX_SIM_GIVEN_UP_H

#include "sim/world.h"

struct given_up {
	struct rbx_sim_client *client;
	struct rbx_context *ctx; /* of the operator, and of who opens the volume then */
	struct rbx_volume *volume; /* the same */
	uint32_t node; /* the operator's */
	bool lives_on; /* the client, whose volume is open */
	bool is_given_up; /* the operator has heard that it has happened */
	bool is_over; /* the client is to end */
	char name[RBX_WIRE_VOLUME_NAME_BYTES];
	uint64_t volume_id;
	uint32_t slabs_count;
	bool is_in[RBX_SIM_SERVERS_MAX]; /* by the record */
	bool is_gone[RBX_SIM_SERVERS_MAX];
	uint64_t gone[RBX_SIM_SERVERS_MAX]; /* their incarnations */
	uint32_t gone_count;
	bool *is_found; /* of each slab: at one that is IN, and is not gone */
	uint32_t copies, gone_in_count, left_in_count; /* by the record */
	bool is_certain; /* a quorum is left */
	bool may_lose; /* what was not found is an error */
	bool is_cleared; /* it is zeros */
};

/* Looks which slabs those have that are left. */
void rbx_sim_given_up_find(struct given_up *g);
/* The operator gives up those that are gone, until it has happened. */
void rbx_sim_give_up_at_last(struct given_up *g);
/* All slabs are read, and written if told so: what is lost fails, and nothing else. */
void rbx_sim_given_up_read(struct given_up *g, bool writes);
/* The volume is closed. */
void rbx_sim_given_up_close(struct given_up *g);
/* given_up_beside.c: the same by an operator elsewhere, while its client lives on. */
void rbx_sim_give_up_beside(struct given_up *g);

#endif
