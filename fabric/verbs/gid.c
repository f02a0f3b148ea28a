/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gid.c - chooses which of a port's gids to use.
 *
 * A RoCE port has a gid for each IP address of its network interface and each version of
 * RoCE. Taking the wrong one is the most common reason why connections fail. The best is RoCE
 * v2 (routable, what rdma_cm uses) over an IPv4 address, then over a global IPv6 one, then
 * any other.
 *
 * rdma_cm chooses the gid of a connection, from the source address. So the choice here
 * decides that address (see connect.c) and what users are shown; on InfiniBand it is only
 * shown.
 */
#include "fabric/verbs/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct in6_addr *gid_in6(const struct ibv_gid_entry *gid)
{
	return (const struct in6_addr *)gid->gid.raw;
}

static bool gid_is_empty(const struct ibv_gid_entry *gid)
{
	return IN6_IS_ADDR_UNSPECIFIED(gid_in6(gid));
}

/* The higher, the better. */
static int gid_rank(const struct ibv_gid_entry *gid)
{
	int rank = 0;

	if (gid->gid_type == IBV_GID_TYPE_IB)
		return 1;
	if (gid->gid_type == IBV_GID_TYPE_ROCE_V2)
		rank += 4;
	if (IN6_IS_ADDR_V4MAPPED(gid_in6(gid)))
		rank += 2;
	else if (!IN6_IS_ADDR_LINKLOCAL(gid_in6(gid)))
		rank += 1;
	return rank;
}

int rbx_verbs_gid_choose(const struct ibv_gid_entry *gids, size_t count,
			 uint32_t port, int wanted_index)
{
	int best = -ENOENT;
	size_t i;

	for (i = 0; i < count; i++) {
		if (gids[i].port_num != port || gid_is_empty(&gids[i]))
			continue;
		if (wanted_index >= 0) {
			if (gids[i].gid_index == (uint32_t)wanted_index)
				return (int)i;
			continue;
		}
		if (best < 0 || gid_rank(&gids[i]) > gid_rank(&gids[best]))
			best = (int)i;
	}
	return best;
}

void rbx_verbs_gid_format(const struct ibv_gid_entry *gid, char *text,
			  size_t text_max_bytes)
{
	static const char *const types[] = {
		[IBV_GID_TYPE_IB] = "InfiniBand",
		[IBV_GID_TYPE_ROCE_V1] = "RoCE v1",
		[IBV_GID_TYPE_ROCE_V2] = "RoCE v2",
	};
	char address[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->gid.raw, address, sizeof(address));
	snprintf(text, text_max_bytes, "gid %u (%s, %s)", gid->gid_index,
		 address,
		 gid->gid_type <= IBV_GID_TYPE_ROCE_V2 ? types[gid->gid_type] :
							 "unknown type");
}

void rbx_verbs_gid_to_address(const struct ibv_gid_entry *gid,
			      struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof(*address));
	address->ss_family = AF_UNSPEC;
	if (gid->gid_type == IBV_GID_TYPE_IB ||
	    IN6_IS_ADDR_LINKLOCAL(gid_in6(gid)))
		return;
	if (IN6_IS_ADDR_V4MAPPED(gid_in6(gid))) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, gid->gid.raw + 12, sizeof(in->sin_addr));
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = *gid_in6(gid);
	}
}
