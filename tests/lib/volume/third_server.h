/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * third_server.h - three servers for volumes of one name. The third server comes, or leaves.
 */
#ifndef RBX_TESTS_LIB_THIRD_SERVER_H
#define RBX_TESTS_LIB_THIRD_SERVER_H

#include "include/rdmabox/named_volume.h"
#include "tests/lib/volume/three_servers.h"

static char two[256]; /* the first two, as a list */
static const char *third;

static inline int third_server_start(void **state)
{
	servers_start(state);
	strcpy(two, pool);
	*strrchr(two, ',') = '\0';
	third = strrchr(pool, ',') + 1;
	return 0;
}

static inline int open_at(struct rbx_context *ctx, struct rbx_volume **volume, const char *at)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	return rbx_volume_open(ctx, volume, at, 0, &options);
}

#endif
