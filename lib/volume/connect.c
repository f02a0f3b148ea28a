/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - connects the servers of a volume by their names, "host:port,host:port", and
 * one more later. client/servers.c connects several at a time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/poller/set.h"
#include "lib/volume/volume.h"

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

/* ---- Each server only once ---------------------------------------------------------*/

static bool is_in_use(const struct rbx_volume_control *control,
		      const char *address)
{
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (control->servers[i].peer &&
		    !rbx_upkeep_server_is_down(&control->upkeep, i) &&
		    !strcmp(rbx_peer_name(control->servers[i].peer), address))
			return true;
	return false;
}

static int twice_error(const char *address)
{
	return rbx_error(-EINVAL, "server %s is named twice", address);
}

/* The volume may have the same server under another address. */
static int is_another_check(struct rbx_volume_control *control, uint32_t index)
{
	struct rbx_peer *peer = control->servers[index].peer;
	uint32_t other;

	if (!rbx_upkeep_server_connected(&control->upkeep, index,
					 rbx_peer_incarnation(peer), &other))
		return 0;
	return rbx_error(-EINVAL, "server %s is named twice: %s is the same one",
			 rbx_peer_name(peer),
			 rbx_peer_name(control->servers[other].peer));
}

/* ---- One more server ---------------------------------------------------------------*/

int rbx_volume_server_add(struct rbx_volume *volume, uint32_t index,
			  const char *address)
{
	struct rbx_volume_control *control = &volume->control;
	struct rbx_server_name name = { .address = address };
	int err;

	/* Two replicas on one server would be lost together. */
	if (is_in_use(control, address))
		return twice_error(address);
	/* The server that was at this index is dead and nothing refers to it. Its last
	 * completion may still be in a poller's hands. */
	rbx_pollers_visit_all(volume->ctx);
	rbx_volume_server_close(control, index);
	control->servers[index].name = &name;
	err = rbx_volume_server_open(control, index);
	if (!err)
		err = is_another_check(control, index);
	if (err)
		rbx_volume_server_drop(volume, index);
	else
		control->server_count =
			RBX_MAX(control->server_count, index + 1);
	return err;
}

void rbx_volume_server_drop(struct rbx_volume *volume, uint32_t index)
{
	rbx_volume_server_close(&volume->control, index);
	rbx_upkeep_server_failed(&volume->control.upkeep, index);
}

/* ---- All servers at the beginning --------------------------------------------------*/

/* Splits "host:port,host:port" in place. */
static int names_take(struct rbx_volume_control *control,
		      struct rbx_server_name *names, char *list,
		      const char *servers)
{
	char *rest = list, *address;
	uint32_t i, count = 0;

	while ((address = strsep(&rest, ","))) {
		if (!*address)
			return rbx_error(-EINVAL, "servers \"%s\": \"host:port,host:port\" is wanted",
					 servers);
		if (count == RBX_SERVERS_MAX)
			return rbx_error(-EINVAL, "more than %u servers are given",
					 RBX_SERVERS_MAX);
		for (i = 0; i < count; i++)
			if (!strcmp(names[i].address, address))
				return twice_error(address);
		names[count].address = address;
		control->servers[count].name = &names[count];
		count++;
	}
	control->server_count = count;
	return 0;
}

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

static int servers_open(struct rbx_volume_control *control)
{
	uint32_t i;
	int err;

	rbx_volume_servers_begin(control);
	rbx_side_by_side_end(&control->side_by_side);
	err = open_error(control);
	for (i = 0; i < control->server_count && !err; i++)
		err = is_another_check(control, i);
	if (err)
		rbx_volume_servers_leave(control);
	return err;
}

int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers)
{
	struct rbx_server_name *names = calloc(RBX_SERVERS_MAX, sizeof(*names));
	char *list = strdup(servers);
	int err;

	if (names && list)
		err = names_take(&volume->control, names, list, servers);
	else
		err = rbx_error(-ENOMEM, "out of memory");
	if (!err)
		err = servers_open(&volume->control);
	free(list);
	free(names);
	return err;
}
