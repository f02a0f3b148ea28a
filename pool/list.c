/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list.c - a pool that is a list, "host:port,host:port". It does not change and has no
 * thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/host_port.h"
#include "pool/pool.h"

static int address_add(struct rbx_members *members, const char *address, const char *list)
{
	struct rbx_pool_member member;
	struct rbx_host_port at;
	int err;

	if (!*address || strlen(address) >= RBX_POOL_ADDRESS_BYTES)
		return rbx_error(-EINVAL, "servers \"%s\": \"host:port,host:port\" is wanted",
				 list);
	if (rbx_host_port_parse(address, false, &at))
		return rbx_error(-EINVAL, "'%s' is not an address: write host:port or [v6]:port with a port of 1 to 65535",
				 address);
	rbx_member_init(&member, address);
	err = rbx_members_add(members, &member);
	if (err == -EEXIST)
		return rbx_error(-EINVAL, "server %s is named twice", address);
	if (err == -ENOSPC)
		return rbx_error(-EINVAL, "more than %u servers are given",
				 RBX_POOL_MEMBERS_MAX);
	return err ? rbx_error(err, "out of memory") : 0;
}

static int list_open(struct rbx_pool *pool, const char *place)
{
	char *list = strdup(place), *rest = list, *address;
	struct rbx_members members = { .count = 0 };
	int err = list ? 0 : rbx_error(-ENOMEM, "out of memory");

	if (strstr(place, "://"))
		err = rbx_error(-EINVAL, "\"%.80s\" is no pool: give host:port,host:port..., file:PATH or etcd://HOST:PORT/NAME",
				place);

	while (!err && (address = strsep(&rest, ",")))
		err = address_add(&members, address, place);
	if (!err)
		rbx_pool_set(pool, &members, "");
	rbx_members_free(&members);
	free(list);
	return err;
}

const struct rbx_pool_kind rbx_pool_list = { .prefix = "", .open = list_open };
