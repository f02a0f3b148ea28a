/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * choose.c - chooses the device, port and gid of this host to open.
 *
 * It takes the first active port of the first device, or of the device that was named, or
 * exactly the named port. librdmacm opens the devices, not we: its connections are on its own
 * contexts, and protection domains, queues and memory must be on the same. The list that it
 * returns keeps them open.
 *
 * Not supported: iWARP, whose reads need other rights at the sink than we grant.
 */
#include "fabric/verbs/choose.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/gid.h"

#define GIDS_MAX 1024 /* read, for all ports of a device */

/* "mlx5_0" or "mlx5_0:1", parsed; port 0 is any, no name is any. */
struct wish {
	char name[IBV_SYSFS_NAME_MAX];
	unsigned int port;
};

static int wish_parse(const char *text, struct wish *wish, char *error)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	size_t length = colon ? (size_t)(colon - text) : text ? strlen(text) : 0;
	char *end;

	memset(wish, 0, sizeof(*wish));
	if (!text)
		return 0;
	if (colon)
		wish->port = (unsigned int)strtoul(colon + 1, &end, 10);
	if (!length || length >= sizeof(wish->name) ||
	    (colon && (*end || wish->port < 1 || wish->port > UINT8_MAX)))
		return rbx_verbs_explain(error, -EINVAL,
			"'%s' is not a device name; give NAME or NAME:PORT, such "
			"as mlx5_0 or mlx5_0:1", text);
	memcpy(wish->name, text, length);
	return 0;
}

static int contexts_get(struct ibv_context ***contexts, char *error)
{
	struct ibv_device **devices;
	int count = 0;

	devices = ibv_get_device_list(&count);
	if (devices)
		ibv_free_device_list(devices);
	if (!count)
		return rbx_verbs_explain(error, -ENODEV,
			"no RDMA device: this host has none or its driver is "
			"not loaded; `rdma link add rxe0 type rxe netdev IF` "
			"makes one in software, the soft fabric needs none, "
			"`rdmabox doctor` says more");
	*contexts = rdma_get_devices(&count);
	if (!*contexts)
		return rbx_verbs_explain(error, -ENODEV,
			"librdmacm does not start: %s; load its module with "
			"`modprobe rdma_ucm` and see that /dev/infiniband is "
			"there and open to you", strerror(errno));
	return 0;
}

/* Takes the first active port that the wish allows. */
static bool port_find(struct ibv_context *verbs, const struct wish *wish,
		      struct rbx_verbs_choice *choice)
{
	struct ibv_device_attr attr;
	unsigned int port;

	if (ibv_query_device(verbs, &attr))
		return false;
	for (port = 1; port <= attr.phys_port_cnt; port++) {
		if (wish->port && wish->port != port)
			continue;
		if (ibv_query_port(verbs, (uint8_t)port, &choice->port_attr))
			continue;
		if (choice->port_attr.state != IBV_PORT_ACTIVE)
			continue;
		choice->verbs = verbs;
		choice->port = (uint8_t)port;
		return true;
	}
	return false;
}

static int device_find(const struct wish *wish, struct rbx_verbs_choice *choice,
		       char *error)
{
	struct ibv_context *seen = NULL;
	struct ibv_context **at;

	for (at = choice->contexts; *at; at++) {
		if ((*at)->device->transport_type != IBV_TRANSPORT_IB)
			continue;
		if (wish->name[0] && strcmp(wish->name, (*at)->device->name))
			continue;
		seen = *at;
		if (port_find(*at, wish, choice))
			return 0;
	}
	if (seen)
		return rbx_verbs_explain(error, -ENETDOWN,
			"%s has no active port%s; connect it or bring its "
			"network interface up (`ip link set IF up`), see "
			"`rdma link`", seen->device->name,
			wish->port ? " of that number" : "");
	if (wish->name[0])
		return rbx_verbs_explain(error, -ENODEV,
			"no InfiniBand or RoCE device is named %s; `rdma link` "
			"lists them", wish->name);
	return rbx_verbs_explain(error, -ENODEV,
		"no InfiniBand or RoCE device, only others such as iWARP; use "
		"the soft fabric");
}

static int gid_find(int wanted_index, struct rbx_verbs_choice *choice,
		    char *error)
{
	struct ibv_gid_entry *gids = calloc(GIDS_MAX, sizeof(*gids));
	const char *name = choice->verbs->device->name;
	ssize_t count;
	int at;

	if (!gids)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	count = ibv_query_gid_table(choice->verbs, gids, GIDS_MAX, 0);
	at = rbx_verbs_gid_choose(gids, count < 0 ? 0 : (size_t)count,
				  choice->port, wanted_index);
	if (at >= 0)
		choice->gid = gids[at];
	free(gids);
	if (at >= 0)
		return 0;
	if (wanted_index < 0)
		return rbx_verbs_explain(error, -ENETDOWN,
			"%s port %u has no gid; give its network interface an "
			"IP address", name, choice->port);
	return rbx_verbs_explain(error, -EINVAL,
		"%s port %u has no gid %d; `ibv_devinfo -v` lists them, -1 "
		"chooses the best", name, choice->port, wanted_index);
}

int rbx_verbs_choose(const struct rbx_device_options *options,
		     struct rbx_verbs_choice *choice, char *error)
{
	struct wish wish;
	int err;

	memset(choice, 0, sizeof(*choice));
	err = wish_parse(options ? options->device_name : NULL, &wish, error);
	if (!err)
		err = contexts_get(&choice->contexts, error);
	if (err)
		return err;
	err = device_find(&wish, choice, error);
	if (!err)
		err = gid_find(options ? options->gid_index : -1, choice,
			       error);
	if (err)
		rbx_verbs_choose_release(choice);
	return err;
}

void rbx_verbs_choose_release(struct rbx_verbs_choice *choice)
{
	rdma_free_devices(choice->contexts);
	choice->contexts = NULL;
}
