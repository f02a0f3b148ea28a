/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool_status.h - the parts of rdmabox pool.
 *
 *	pool.c     the command and its one command, status
 *	members.c  asks all members of the pool, several at a time
 *	labels.c   where the servers are, and which of them fail together
 *	volumes.c  asks for the named volumes on them
 *	status.c   the tables, and the same as JSON
 */
#ifndef CLI_POOL_STATUS_H
#define CLI_POOL_STATUS_H

#include <rdmabox/pool.h>
#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>
#include <rdmabox/named_volume.h>

#include "cli/commands.h"

enum pool_state {
	POOL_UP,
	POOL_AWAY, /* it does not answer, or refuses us */
	POOL_DRAINING,
	POOL_SAME, /* as another member: it is not counted again */
};

/* A member, and what the server there says. */
struct pool_row {
	struct rbx_pool_member member;
	enum pool_state state;
	struct rbx_server_stats stats; /* if it is not away */
	uint64_t incarnation; /* the server's; of one that is away the member's, or 0 */
	const char *same_as; /* the address of the other member */
	/* What counts: the labels of the server, and those of the pool that it does not say. */
	char labels[2 * RBX_POOL_LABELS_BYTES];
	char contradicted[RBX_POOL_LABELS_BYTES]; /* the first label of the pool that does not; or "" */
	char error[512]; /* of one that is away */
};

const char *pool_state_name(enum pool_state state);

/* Asks all. Blocks for the peer timeout and more if some do not answer. */
void pool_rows_ask(struct rbx_context *ctx, struct pool_row *rows, size_t count);

/* ---- labels.c ---------------------------------------------------------------------------*/

/* Sets the labels of a row; own: those that the server says. */
void pool_labels_join(struct pool_row *row, const char *own);
/* The value of a label of this name, which ends at a comma or the end; NULL: there is none. */
const char *pool_label(const char *labels, const char *name, size_t *length);
json_t *pool_labels_json(const char *labels);

/* Servers that fail together. */
struct pool_domain {
	const char *name; /* not ended by a NUL */
	size_t name_bytes;
	size_t servers_up;
	uint64_t free_bytes; /* of those */
};

/* Room for as many domains as rows. Returns how many there are. */
size_t pool_domains(const struct pool_row *rows, size_t count, const char *spread,
		    struct pool_domain *domains);

/* ---- volumes.c --------------------------------------------------------------------------*/

/* The named volumes on the servers that answered. */
struct pool_volumes {
	struct rbx_volume_info *infos;
	size_t count;
	char error[512]; /* why they are not known; "": they are */
};

/* Asks for them. Blocks. The caller frees infos. */
void pool_volumes_ask(struct rbx_context *ctx, const struct pool_row *rows, size_t count,
		      struct pool_volumes *volumes);

/* How many of its servers are needed to open it, and did not answer or do not have it. */
uint32_t pool_volume_missing(const struct rbx_volume_info *info);

/* ---- status.c ---------------------------------------------------------------------------*/

struct pool_status {
	const struct pool_row *rows;
	size_t count;
	const struct pool_volumes *volumes;
	const char *pool;
	const char *credential; /* that we have; "" if there is none */
	const char *spread; /* name of the label of the failure domains */
	const char *trouble; /* "" if there is none */
};

/* What it has free, of one that is not away. */
uint64_t pool_free_bytes(const struct pool_row *row);
void pool_status_print(const struct pool_status *status);
json_t *pool_status_json(const struct pool_status *status);

#endif
