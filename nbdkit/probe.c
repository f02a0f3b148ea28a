// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tries whether the volume can be opened.
 *
 * It opens a volume with the same settings, but on_demand. So the servers are connected
 * and the secret is proven, but nothing is borrowed. If the real volume will borrow all
 * of its memory at once, the servers are asked for how much is free. That much is needed,
 * but may not be enough: slabs are whole, and each replica of a slab is on another
 * server.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "probe.h"
#include "settings.h"

static int fail(void)
{
	nbdkit_error("%s", rbx_last_error());
	return -1;
}

static int ask_server(struct rbx_context *ctx, const char *server, uint64_t *free_bytes)
{
	struct rbx_server_stats stats;

	if (rbx_server_query(ctx, server, &stats))
		return fail();
	if (stats.lent_bytes < stats.memory_bytes &&
	    __builtin_add_overflow(*free_bytes, stats.memory_bytes - stats.lent_bytes, free_bytes))
		*free_bytes = UINT64_MAX;
	return 0;
}

static int ask_servers(struct rbx_context *ctx, char *servers)
{
	uint64_t free_bytes = 0, wanted;
	char *server, *rest = servers;

	if (__builtin_mul_overflow(settings.size_bytes, settings.volume.replicas, &wanted)) {
		nbdkit_error("size=%" PRIu64 " with replicas=%" PRIu32 ": more than there can be",
			     settings.size_bytes, settings.volume.replicas);
		return -1;
	}

	while ((server = strsep(&rest, ",")))
		if (ask_server(ctx, server, &free_bytes))
			return -1;
	if (free_bytes >= wanted)
		return 0;
	nbdkit_error("the servers have %" PRIu64 " bytes free, and the volume needs %" PRIu64,
		     free_bytes, wanted);
	return -1;
}

static int try_memory(struct rbx_context *ctx)
{
	char *servers = strdup(settings.servers);
	int err = servers ? ask_servers(ctx, servers) : -1;

	free(servers);
	return err;
}

static int try_volume(struct rbx_context *ctx)
{
	struct rbx_volume_options options = settings.volume;
	struct rbx_volume *volume;

	options.on_demand = 1;
	if (rbx_volume_open(ctx, &volume, settings.servers, settings.size_bytes, &options))
		return fail();
	rbx_volume_close(volume);
	return 0;
}

int probe_servers(void)
{
	struct rbx_context *ctx;
	int err;

	if (rbx_open(&ctx, &settings.options))
		return fail();
	err = try_volume(ctx);
	if (!err && !settings.volume.on_demand)
		err = try_memory(ctx);
	rbx_close(ctx);
	return err;
}
