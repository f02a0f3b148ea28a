/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* gid.h - chooses which of a port's gids to use. */
#ifndef RBX_VERBS_GID_H
#define RBX_VERBS_GID_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <sys/socket.h>

/*
 * The position in `gids` of the one to use on `port`: the one with the index
 * `wanted_index`, or with -1 the best. -ENOENT: there is none.
 */
int rbx_verbs_gid_choose(const struct ibv_gid_entry *gids, size_t count,
			 uint32_t port, int wanted_index);

/* "gid 1 (::ffff:10.9.0.1, RoCE v2)" */
void rbx_verbs_gid_format(const struct ibv_gid_entry *gid, char *text,
			  size_t text_max_bytes);

/* The IP address that the gid was made of; AF_UNSPEC if it was made of none. */
void rbx_verbs_gid_to_address(const struct ibv_gid_entry *gid,
			      struct sockaddr_storage *address);

#endif
