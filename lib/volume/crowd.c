/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.c - see crowd.h.
 */
#include "lib/volume/crowd.h"

#include <stdlib.h>
#include <string.h>

#include "include/rdmabox/pool.h"
#include "lib/context.h"
#include "lib/session/sessions.h"
#include "pool/pool.h"

static int names_take(struct rbx_crowd *crowd, const char *servers)
{
	struct rbx_pool_member *members = calloc(RBX_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	size_t count, i;
	int err;

	err = members ? rbx_pool_open(&pool, servers) : rbx_error(-ENOMEM, "out of memory");
	if (err) {
		free(members);
		return err;
	}
	count = rbx_pool_members_get(pool, members, RBX_MEMBERS_MAX);
	rbx_pool_close(pool);
	if (count > RBX_MEMBERS_MAX)
		err = rbx_error(-EINVAL, "servers \"%s\": a named volume has at most %u",
				servers, RBX_MEMBERS_MAX);
	for (i = 0; i < count && !err; i++)
		err = rbx_crowd_add(crowd, members[i].address, strlen(members[i].address));
	if (!err && !count)
		err = rbx_error(-ENOENT, "pool \"%s\" has no servers", servers);
	free(members);
	return err;
}

static int crowd_open(struct rbx_context *ctx, const char *servers, bool may_lack,
		      struct rbx_crowd **made)
{
	struct rbx_crowd *crowd;
	int err = rbx_crowd_make(&crowd);

	if (err)
		return err;
	err = names_take(crowd, servers);
	if (!err)
		err = rbx_crowd_connect(crowd, rbx_context_sessions(ctx), may_lack);
	if (err)
		rbx_crowd_close(crowd);
	else
		*made = crowd;
	return err;
}

int rbx_crowd_open(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd)
{
	return crowd_open(ctx, servers, false, crowd);
}

int rbx_crowd_open_there(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd)
{
	int err = crowd_open(ctx, servers, true, crowd);

	if (!err)
		(*crowd)->may_change = rbx_pool_text_may_change(servers);
	return err;
}
