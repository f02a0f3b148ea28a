/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.c - see crowd.h.
 */
#include "lib/volume/crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/session.h"
#include "client/side_by_side.h"
#include "include/rdmabox/pool.h"
#include "lib/context.h"
#include "lib/session/sessions.h"
#include "pool/pool.h"

static int names_take(struct rbx_crowd *crowd, const char *servers)
{
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	size_t count, i;
	int err;

	err = members ? rbx_pool_open(&pool, servers) : rbx_error(-ENOMEM, "out of memory");
	if (err) {
		free(members);
		return err;
	}
	count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
	rbx_pool_close(pool);
	for (i = 0; i < count && !err; i++)
		err = rbx_crowd_add(crowd, members[i].address, strlen(members[i].address));
	if (!err && !count)
		err = rbx_error(-ENOENT, "pool \"%s\" has no servers", servers);
	free(members);
	return err;
}

/* What can be done about an error, behind it. */
static int hint_add(int err, const char *hint)
{
	char why[RBX_ERROR_TEXT_MAX];

	snprintf(why, sizeof(why), "%s", rbx_last_error());
	return rbx_error(err, "%s (%s)", why, hint);
}

/* away_hint: what helps if one of several servers is away; or NULL. */
static int crowd_open(struct rbx_context *ctx, const char *servers, bool may_lack,
		      const char *away_hint, struct rbx_crowd **made)
{
	struct rbx_crowd *crowd;
	int err = rbx_crowd_make(&crowd);

	if (err)
		return err;
	err = names_take(crowd, servers);
	if (!err) {
		err = rbx_crowd_connect(crowd, rbx_context_sessions(ctx), may_lack);
		if (away_hint && crowd->count > 1 && rbx_crowd_is_away(err))
			err = hint_add(err, away_hint);
	}
	if (err)
		rbx_crowd_close(crowd);
	else
		*made = crowd;
	return err;
}

int rbx_crowd_open(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd)
{
	return crowd_open(ctx, servers, false, NULL, crowd);
}

/* A server that does not answer may have a volume of that name. So it is left out only by those who
 * know better. */
int rbx_crowd_open_to_make(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd)
{
	return crowd_open(ctx, servers, false, "to make the volume without it, name the others",
			  crowd);
}

int rbx_crowd_open_there(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd)
{
	int err = crowd_open(ctx, servers, true, NULL, crowd);

	if (!err)
		(*crowd)->may_change = rbx_pool_text_may_change(servers);
	return err;
}

void rbx_crowd_away_tell(const struct rbx_context *ctx, const struct rbx_crowd *crowd)
{
	const struct rbx_options *options = &ctx->options;
	uint32_t i;

	for (i = 0; i < crowd->away_count && options->server_away; i++)
		options->server_away(crowd->away[i].name,
				     crowd->away[i].why ?: "it does not answer",
				     options->server_away_user);
}

static void close_behind(void *user, uint32_t index)
{
	struct rbx_crowd *crowd = user;

	rbx_session_close(crowd->sessions[crowd->count + index]);
	crowd->sessions[crowd->count + index] = NULL;
}

static void swap(struct rbx_crowd *crowd, uint32_t a, uint32_t b)
{
	struct rbx_session *session = crowd->sessions[a];
	char *name = crowd->names[a];

	crowd->sessions[a] = crowd->sessions[b];
	crowd->sessions[b] = session;
	crowd->names[a] = crowd->names[b];
	crowd->names[b] = name;
}

/* How much it can lend; one that drains, nothing. */
static uint64_t room_of(const struct rbx_session *session)
{
	return rbx_session_drains(session) ? 0 : rbx_session_free_bytes(session);
}

/* How many come before it: those that have more free, and of those that have as much the ones
 * that were named before. */
static uint32_t rank_of(const uint64_t *rooms, uint32_t count, uint32_t index)
{
	uint32_t i, rank = 0;

	for (i = 0; i < count; i++)
		rank += rooms[i] > rooms[index] || (rooms[i] == rooms[index] && i < index);
	return rank;
}

/* Those that are not chosen will not be asked to make a volume of that name, so they are asked now
 * whether they have one. */
static int name_check(struct rbx_crowd *crowd, const char *name)
{
	struct rbx_named before;
	int err = rbx_named_init(&before, name, "a client that needs the name");

	if (!err)
		err = rbx_crowd_look(crowd, &before);
	if (!err || err == -EACCES)
		return rbx_error(-EEXIST, "one of the servers has a volume %s already: choose another name, or remove it",
				 name);
	return err == -ENOENT ? 0 : err;
}

int rbx_crowd_choose(struct rbx_crowd *crowd, const char *name)
{
	uint64_t rooms[RBX_SERVERS_MAX]; /* they change while they are compared */
	uint32_t i;
	int err;

	if (crowd->count <= RBX_MEMBERS_MAX)
		return 0;
	err = name_check(crowd, name);
	if (err)
		return err;
	for (i = 0; i < crowd->count; i++)
		rooms[i] = room_of(crowd->sessions[i]);
	for (i = 0; i < crowd->count; i++)
		crowd->has[i] = rank_of(rooms, crowd->count, i) < RBX_MEMBERS_MAX;
	rbx_crowd_narrow(crowd);
	return 0;
}

void rbx_crowd_narrow(struct rbx_crowd *crowd)
{
	struct rbx_side_by_side all;
	uint32_t i, kept = 0, before = crowd->count;

	for (i = 0; i < before; i++) {
		if (!crowd->has[i])
			continue;
		swap(crowd, i, kept);
		crowd->has[i] = false;
		crowd->has[kept++] = true;
	}
	crowd->count = kept;
	rbx_side_by_side_begin(&all, before - kept, close_behind, crowd);
	rbx_side_by_side_end(&all);
}
