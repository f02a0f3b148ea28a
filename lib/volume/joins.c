/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joins.c - servers that come into the pool join a volume that is open, and those that were lost
 * join it again.
 *
 * A thread looks at the members whenever the pool has changed, and every 2 s. It tries to
 * add each member that the volume does not use: one that is new, one that was left out at
 * the beginning, or one that was lost and serves again. Servers that the program has added are
 * tried like these. After a failure it tries that member again later and later. No request waits
 * for any of this.
 *
 * If the servers are a list, none of them is new. A server of a volume without a name that serves
 * again is an empty one. A named volume takes those back that are OUT or have FAILED
 * (named_join.c), and no other one. The program is told when one is there again, and not how often
 * that was tried.
 *
 * If the pool is away or broken, the program is told so.
 *
 * A member that leaves the pool stays with the volume: whether a server is gone is decided
 * by its connection, and one that wants to go drains.
 */
#include <stdlib.h>
#include <string.h>

#include "client/join_tries.h"
#include "client/keeper.h"
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

	rbx_events_put(&volume->events, &event);
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

static bool is_among(const struct rbx_pool_member *members, size_t count, const char *address)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(members[i].address, address))
			return true;
	return false;
}

/* One more that is to be tried, unless it is there; returns how many there are. */
static size_t member_put(struct rbx_pool_member *members, size_t count, const char *address)
{
	if (count == RBX_POOL_MEMBERS_MAX || is_among(members, count, address))
		return count;
	members[count] = (struct rbx_pool_member){ .incarnation = 0 };
	rbx_text_copy(members[count].address, RBX_POOL_ADDRESS_BYTES, address);
	return count + 1;
}

/* Those that the program has added are like members, as long as there is room. */
static size_t added_take(const struct rbx_join_tries *tries, struct rbx_pool_member *members,
			 size_t count)
{
	uint32_t i;

	for (i = 0; i < tries->count; i++)
		if (tries->all[i].is_added)
			count = member_put(members, count, tries->all[i].address);
	return count;
}

/* Servers that have FAILED are tried again whatever the pool says of them: one may drain, or have
 * been taken off it, and still has what it had. Nothing else is lent by it. */
static size_t failed_take(const struct rbx_volume_control *control,
			  struct rbx_pool_member *members, size_t count)
{
	uint32_t i;
	size_t m;

	for (m = 0; m < count; m++)
		if (members[m].draining && rbx_joining_failed_at(control, members[m].address) >= 0)
			members[m].draining = false;
	for (i = 0; i < control->server_count; i++) {
		const char *address = rbx_joining_failed_address(control, i);

		if (address)
			count = member_put(members, count, address);
	}
	return count;
}

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

/* A program cannot do anything about a server that is still away. But that one may have no room, or
 * lend other slabs than before. */
static bool is_of_interest(const struct rbx_volume *volume, int err)
{
	if (!volume->joins.only_returns)
		return err != -EAGAIN;
	return err == -ENOSPC || err == -EDQUOT || (err == -EINVAL && !volume->control.named);
}

enum outcome {
	NOT_TRIED,
	ADDED,
	FAILED, /* as it did before */
	FAILED_FIRST,
};

/* There is room for a try, unless the program has added a server meanwhile. */
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
	if (!one || !rbx_join_try_is_due(one))
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

/* It may not know that it is not needed any more, if it was cut off when it was put OUT. */
static bool waits_to_be_spared(struct rbx_volume *volume, const struct rbx_pool_member *member)
{
	struct rbx_named *named = volume->control.named;

	return named && rbx_keeper_is_out(named, member->incarnation);
}

static void member_try(struct rbx_volume *volume, const struct rbx_pool_member *member)
{
	struct rbx_volume_joins *joins = &volume->joins;
	enum outcome outcome;
	int err = 0;

	if (member->draining && !waits_to_be_spared(volume, member))
		return;
	outcome = member_add(volume, member, &err);
	if (outcome == ADDED)
		tell(volume, RBX_EVENT_SERVER_ADDED, member->address,
		     joins->only_returns ? "it is there again" : "it came into the pool");
	else if (outcome == FAILED_FIRST && !member->draining && is_of_interest(volume, err) &&
		 !is_left_out(joins, member->address))
		tell(volume, RBX_EVENT_SERVER_LEFT_OUT, member->address, rbx_last_error());
}

/* All that may be tried. */
static size_t members_get(struct rbx_volume *volume, struct rbx_pool_member *members)
{
	struct rbx_volume_joins *joins = &volume->joins;
	size_t count = rbx_pool_members_get(joins->pool, members, RBX_POOL_MEMBERS_MAX);

	pthread_mutex_lock(&volume->add_lock);
	count = added_take(&joins->tries, members, count);
	count = failed_take(&volume->control, members, count);
	tries_of_former_drop(&joins->tries, members, count);
	pthread_mutex_unlock(&volume->add_lock);
	return count;
}

/* ---- The thread -------------------------------------------------------------------------*/

/* A pool is looked at again and again while it is broken. The program hears once of each reason. */
static void trouble_tell(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;
	char trouble[sizeof(joins->trouble)];

	(void)rbx_pool_trouble(joins->pool, trouble, sizeof(trouble));
	if (!strcmp(trouble, joins->trouble))
		return;
	rbx_text_copy(joins->trouble, sizeof(joins->trouble), trouble);
	tell(volume, RBX_EVENT_POOL_TROUBLE, "",
	     *trouble ? trouble : "it is over: the pool is as it should be");
}

static void *joins_run(void *volume_pointer)
{
	struct rbx_volume *volume = volume_pointer;
	struct rbx_volume_joins *joins = &volume->joins;
	struct rbx_pool_member *members = joins->members;
	int fd = rbx_pool_event_fd(joins->pool);

	left_out_tell(volume);
	while (rbx_pool_worker_wait(&joins->worker, fd, RBX_JOIN_LOOK_MS)) {
		size_t i, count = members_get(volume, members);

		trouble_tell(volume);
		if (joins->only_returns && volume->control.named &&
		    !rbx_volume_named_may_return(volume))
			continue;
		for (i = 0; i < count && rbx_pool_worker_wait(&joins->worker, -1, 0); i++)
			member_try(volume, &members[i]);
	}
	return NULL;
}

void rbx_volume_joins_note(struct rbx_volume *volume, const char *address)
{
	struct rbx_join_try *one = rbx_join_try_of(&volume->joins.tries, address, 0);

	if (one)
		one->is_added = true;
}

int rbx_volume_joins_start(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;
	int err;

	if (!joins->pool)
		return 0;
	joins->tries.all = calloc(RBX_SERVERS_MAX, sizeof(*joins->tries.all));
	joins->members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*joins->members));
	if (!joins->tries.all || !joins->members)
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
	free(joins->members);
	*joins = (struct rbx_volume_joins){ .pool = NULL };
}
