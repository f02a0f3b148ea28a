/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joins.c - servers that come into the pool join a volume that is open.
 *
 * A thread looks at the members whenever the pool has changed, and every 2 s. It tries to
 * add each member that the volume does not use: one that is new, one that was left out at
 * the beginning, or one that was lost and serves again. After a failure it tries that
 * member again later and later. No request waits for any of this.
 *
 * A named volume whose servers are a list takes those back that are OUT or have FAILED
 * (named_join.c), and no other one. It is told when one has returned, and not how often that was
 * tried.
 *
 * A member that leaves the pool stays with the volume: whether a server is gone is decided
 * by its connection, and one that wants to go drains.
 */
#include <stdlib.h>
#include <string.h>

#include "client/join_tries.h"
#include "lib/volume/named.h"

RBX_STATIC_ASSERT(RBX_JOIN_ADDRESS_BYTES == RBX_POOL_ADDRESS_BYTES, "of a member");

static void tell(struct rbx_volume *volume, enum rbx_event_kind kind, const char *address,
		 const char *reason)
{
	const struct rbx_event event = {
		.kind = kind,
		.server = address,
		.reason = reason,
	};

	rbx_volume_event(volume, &event);
}

/* ---- At the beginning -----------------------------------------------------------------*/

int rbx_volume_leave_out(struct rbx_volume *volume, const char *address)
{
	struct rbx_volume_joins *joins = &volume->joins;
	struct rbx_left_out *left_out;

	left_out = realloc(joins->left_out, (joins->left_out_count + 1) * sizeof(*left_out));
	if (!left_out)
		return rbx_error(-ENOMEM, "out of memory");
	joins->left_out = left_out;
	left_out += joins->left_out_count++;
	rbx_text_copy(left_out->address, sizeof(left_out->address), address);
	rbx_text_copy(left_out->reason, sizeof(left_out->reason), rbx_last_error());
	return 0;
}

static void left_out_tell(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;
	uint32_t i;

	for (i = 0; i < joins->left_out_count; i++)
		tell(volume, RBX_EVENT_SERVER_LEFT_OUT, joins->left_out[i].address,
		     joins->left_out[i].reason);
}

static bool is_left_out(const struct rbx_volume_joins *joins, const char *address)
{
	uint32_t i;

	for (i = 0; i < joins->left_out_count; i++)
		if (!strcmp(joins->left_out[i].address, address))
			return true;
	return false;
}

/* ---- Trying -----------------------------------------------------------------------------*/

static void tries_of_former_drop(struct rbx_join_tries *tries,
				 const struct rbx_pool_member *members, size_t count)
{
	struct rbx_join_try *one;
	uint32_t i, kept = 0;
	size_t m;

	for (i = 0; i < tries->count; i++)
		tries->all[i].is_member = false;
	for (m = 0; m < count; m++) {
		one = rbx_join_try_find(tries, members[m].address);
		if (one)
			one->is_member = true;
	}
	for (i = 0; i < tries->count; i++)
		if (tries->all[i].is_member)
			tries->all[kept++] = tries->all[i];
	tries->count = kept;
}

/* A program cannot do anything about a server that returns, unless that one has no room. */
static bool is_of_interest(const struct rbx_volume_joins *joins, int err)
{
	return joins->only_returns ? err == -ENOSPC || err == -EDQUOT : err != -EAGAIN;
}

enum outcome {
	NOT_TRIED,
	ADDED,
	FAILED, /* as it did before */
	FAILED_FIRST,
};

/* There is room: a member has a try, and those of former members were dropped. */
static enum outcome member_add(struct rbx_volume *volume, const struct rbx_pool_member *member,
			       int *err)
{
	struct rbx_volume_joins *joins = &volume->joins;
	struct rbx_join_try *one;
	enum outcome outcome = NOT_TRIED;

	pthread_mutex_lock(&volume->add_lock);
	if (rbx_joining_is_used(&volume->control, member->address))
		goto out;
	one = rbx_join_try_of(&joins->tries, member->address, member->incarnation);
	if (!rbx_join_try_is_due(one))
		goto out;
	*err = rbx_volume_server_add(volume, member->address, member->labels,
				     joins->only_returns);
	outcome = rbx_join_tried(one, &volume->control, *err) ? FAILED_FIRST :
		  *err						? FAILED :
								  ADDED;
out:
	pthread_mutex_unlock(&volume->add_lock);
	return outcome;
}

static void member_try(struct rbx_volume *volume, const struct rbx_pool_member *member)
{
	struct rbx_volume_joins *joins = &volume->joins;
	enum outcome outcome;
	int err = 0;

	if (member->draining)
		return;
	outcome = member_add(volume, member, &err);
	if (outcome == ADDED)
		tell(volume, RBX_EVENT_SERVER_ADDED, member->address,
		     joins->only_returns ? "it is there again" : "it came into the pool");
	else if (outcome == FAILED_FIRST && is_of_interest(joins, err) &&
		 !is_left_out(joins, member->address))
		tell(volume, RBX_EVENT_SERVER_LEFT_OUT, member->address, rbx_last_error());
}

/* ---- The thread -------------------------------------------------------------------------*/

static void *joins_run(void *volume_pointer)
{
	struct rbx_volume *volume = volume_pointer;
	struct rbx_volume_joins *joins = &volume->joins;
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	int fd = rbx_pool_event_fd(joins->pool);

	left_out_tell(volume);
	while (members && rbx_pool_worker_wait(&joins->worker, fd, RBX_JOIN_LOOK_MS)) {
		size_t i, count = rbx_pool_members_get(joins->pool, members, RBX_POOL_MEMBERS_MAX);

		if (joins->only_returns && !rbx_volume_named_may_return(volume))
			continue;
		tries_of_former_drop(&joins->tries, members, count);
		for (i = 0; i < count && rbx_pool_worker_wait(&joins->worker, -1, 0); i++)
			member_try(volume, &members[i]);
	}
	free(members);
	return NULL;
}

int rbx_volume_joins_start(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;
	int err;

	if (!joins->pool)
		return 0;
	joins->tries.all = calloc(RBX_SERVERS_MAX, sizeof(*joins->tries.all));
	if (!joins->tries.all)
		return rbx_error(-ENOMEM, "out of memory");
	err = rbx_pool_worker_open(&joins->worker);
	if (err)
		return err;
	joins->has_worker = true;
	return rbx_pool_worker_start(&joins->worker, joins_run, volume);
}

void rbx_volume_joins_stop(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;

	if (joins->has_worker)
		rbx_pool_worker_close(&joins->worker);
	rbx_pool_close(joins->pool);
	free(joins->left_out);
	free(joins->tries.all);
	*joins = (struct rbx_volume_joins){ .pool = NULL };
}
