/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects the servers of a volume, those of a list or of a pool, and one more
 * later. client/servers.c connects several at a time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/joining.h"
#include "lib/volume/volume.h"

RBX_STATIC_ASSERT(RBX_POOL_MEMBERS_MAX == RBX_SERVERS_MAX, "a place for each member");

/* The name of a server that is being connected. */
struct rbx_server_name {
	const char *address;
	/* The text of an error is per thread. The thread that opens the volume reports
	 * this one. */
	char error[RBX_ERROR_TEXT_MAX];
};

int rbx_volume_connect(struct rbx_volume_control *control, uint32_t index,
		       const struct rbx_peer_events *events,
		       struct rbx_peer **peer)
{
	struct rbx_server_name *name = control->servers[index].name;
	int err = rbx_peer_open(rbx_volume_of_control(control)->ctx,
				name->address, events, peer);

	if (err)
		snprintf(name->error, sizeof(name->error), "%s",
			 rbx_last_error());
	return err;
}

/* ---- One more server ---------------------------------------------------------------*/

int rbx_volume_server_add(struct rbx_volume *volume, const char *address, const char *labels,
			  bool returns)
{
	struct rbx_server_name name = { .address = address };
	const struct rbx_joining joining = {
		.address = address,
		.name = &name,
		.labels = labels,
		.returns = returns,
	};

	return rbx_joining_add(&volume->control, &joining);
}

/* ---- All servers at the beginning --------------------------------------------------*/

/* The error of the first server that could not be connected, or 0. */
static int open_error(const struct rbx_volume_control *control)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < control->server_count && !err; i++)
		if (control->servers[i].open_err)
			err = rbx_error(control->servers[i].open_err, "%s",
					control->servers[i].name->error);
	return err;
}

/* Of a list: all must be there. */
static int all_check(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;
	int err = open_error(control);
	uint32_t i;

	for (i = 0; i < control->server_count && !err; i++)
		err = rbx_volume_twice_check(control, i);
	return err;
}

/* 0 if the server of this place may be used. */
static int member_check(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_volume_server *server = &volume->control.servers[index];
	int err;

	if (server->open_err)
		return rbx_error(server->open_err, "%s", server->name->error);
	err = rbx_volume_twice_check(&volume->control, index);
	return err ? err : rbx_volume_slab_bytes_check(&volume->control, index);
}

/* Of a pool: those that cannot be used are left out, if there are enough others. */
static int members_check(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;
	uint32_t i, left_count = control->server_count;
	int err = 0, first_err = 0;

	for (i = 0; i < control->server_count && !err; i++) {
		int cause = member_check(volume, i);

		if (!cause)
			continue;
		first_err = first_err ? first_err : cause;
		left_count--;
		err = rbx_volume_leave_out(volume, control->servers[i].name->address);
		rbx_volume_server_close(control, i);
		rbx_upkeep_server_failed(&control->upkeep, i);
	}
	if (err || left_count >= volume->options.replicas)
		return err;
	return rbx_error(first_err ? first_err : -EINVAL,
			 "%u of %u servers of the pool can be used, and %u replicas need as many: %s",
			 left_count, control->server_count, volume->options.replicas,
			 first_err ? volume->joins.left_out[0].reason : "it has no more");
}

static int servers_open(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;
	int err;

	control->may_lack_servers = volume->joins.pool && !volume->joins.only_returns;
	rbx_volume_servers_begin(control);
	rbx_side_by_side_end(&control->side_by_side);
	err = control->may_lack_servers ? members_check(volume) : all_check(volume);
	if (err)
		rbx_volume_servers_leave(control);
	return err;
}

/* Gives a place to each member that does not drain, for it would lend nothing. */
static int places_take(struct rbx_volume_control *control, struct rbx_server_name *names,
		       const struct rbx_pool_member *members, size_t members_count)
{
	uint32_t count = 0;
	size_t i;

	for (i = 0; i < members_count; i++) {
		if (members[i].draining)
			continue;
		names[count].address = members[i].address;
		control->servers[count].name = &names[count];
		control->servers[count].labels = members[i].labels;
		count++;
	}
	control->server_count = count;
	return count ? 0 : rbx_error(-EINVAL, "the pool has no server that lends memory");
}

/* The servers of a named volume are a list, made of those of a pool that may say more. */
static int labels_take(struct rbx_pool_member *members, size_t count, const char *told)
{
	struct rbx_members *all;
	struct rbx_pool *pool;
	size_t i, j;
	int err = rbx_pool_open(&pool, told);

	if (err)
		return err;
	all = &pool->members;
	pthread_mutex_lock(&pool->worker.lock);
	for (i = 0; i < count; i++)
		for (j = 0; j < all->count; j++)
			if (!strcmp(members[i].address, all->list[j].address))
				strcpy(members[i].labels, all->list[j].labels);
	pthread_mutex_unlock(&pool->worker.lock);
	return rbx_pool_close(pool);
}

static int members_open(struct rbx_volume *volume, struct rbx_pool *pool, const char *told)
{
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	struct rbx_server_name *names = calloc(RBX_SERVERS_MAX, sizeof(*names));
	size_t count = 0;
	int err = 0;

	if (members && names)
		count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
	else
		err = rbx_error(-ENOMEM, "out of memory");
	if (!err && told)
		err = labels_take(members, count, told);
	if (!err)
		err = places_take(&volume->control, names, members, count);
	if (!err)
		err = servers_open(volume);
	free(names);
	free(members);
	return err;
}

int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers, const char *told)
{
	struct rbx_pool *pool;
	int err = rbx_pool_open(&pool, servers);

	if (err)
		return err;
	if (!volume->options.name) { /* else named_join.c looks at it */
		volume->joins.pool = pool; /* closed with the volume */
		volume->joins.only_returns = !rbx_pool_text_may_change(servers);
	}
	err = members_open(volume, pool, strcmp(told, servers) ? told : NULL);
	if (!volume->joins.pool)
		rbx_pool_close(pool);
	return err;
}
