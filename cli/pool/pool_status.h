/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool_status.h - the parts of rdmabox pool.
 *
 *	pool.c     the command and its one command, status
 *	members.c  asks all members of the pool, several at a time
 *	status.c   the table, and the same as JSON
 */
#ifndef CLI_POOL_STATUS_H
#define CLI_POOL_STATUS_H

#include <rdmabox/pool.h>
#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

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
	char error[512]; /* of one that is away */
};

const char *pool_state_name(enum pool_state state);

/* Asks all. Blocks for the peer timeout and more if some do not answer. */
void pool_rows_ask(struct rbx_context *ctx, struct pool_row *rows, size_t count);

/* trouble: "" if there is none. */
void pool_status_print(const struct pool_row *rows, size_t count, const char *trouble);
json_t *pool_status_json(const struct pool_row *rows, size_t count, const char *pool,
			 const char *trouble);

#endif
