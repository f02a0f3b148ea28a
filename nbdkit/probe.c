// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tries whether the volume can be opened.
 *
 * It opens a volume with the same settings, but on_demand. So the servers are connected
 * and the secret is proven, but nothing is borrowed. If the real volume will borrow all
 * of its memory at once, the servers are asked for how much is free. That much is needed,
 * but may not be enough: slabs are whole, and each replica of a slab is on another
 * server.
 *
 * A named volume is opened as it will be, and closed again. So the user sees it if there is none,
 * or if another program has it open.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <rdmabox/pool.h>
#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "probe.h"
#include "settings.h"

static int fail(void)
{
	nbdkit_error("%s", rbx_last_error());
	return -1;
}

/* Adds what a server has free. error: why it does not tell. */
static void ask_server(struct rbx_context *ctx, const char *server, uint64_t *free_bytes,
		       char *error, size_t error_bytes)
{
	struct rbx_server_stats stats;

	if (rbx_server_query(ctx, server, &stats))
		snprintf(error, error_bytes, "%s", rbx_last_error());
	else if (stats.lent_bytes < stats.memory_bytes &&
		 __builtin_add_overflow(*free_bytes, stats.memory_bytes - stats.lent_bytes,
					free_bytes))
		*free_bytes = UINT64_MAX;
}

/* A member of a pool may be away, as long as the others have enough. */
static int ask_members(struct rbx_context *ctx, const struct rbx_pool_member *members,
		       size_t count)
{
	uint64_t free_bytes = 0, wanted;
	char error[512] = "";
	size_t i;

	if (__builtin_mul_overflow(settings.size_bytes, settings.volume.replicas, &wanted)) {
		nbdkit_error("size=%" PRIu64 " with replicas=%" PRIu32 ": more than there can be",
			     settings.size_bytes, settings.volume.replicas);
		return -1;
	}

	for (i = 0; i < count; i++)
		ask_server(ctx, members[i].address, &free_bytes, error, sizeof(error));
	if (free_bytes >= wanted)
		return 0;
	if (*error)
		nbdkit_error("%s", error);
	else
		nbdkit_error("the servers have %" PRIu64 " bytes free, and the volume needs %" PRIu64,
			     free_bytes, wanted);
	return -1;
}

static int try_memory(struct rbx_context *ctx)
{
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	int err;

	if (!members) {
		nbdkit_error("out of memory");
		return -1;
	}
	if (rbx_pool_open(&pool, settings.servers)) {
		free(members);
		return fail();
	}
	err = ask_members(ctx, members, rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX));
	rbx_pool_close(pool);
	free(members);
	return err;
}

static int try_volume(struct rbx_context *ctx)
{
	struct rbx_volume_options options = settings.volume;
	struct rbx_volume *volume;
	int err;

	options.on_demand = !settings.name;
	err = rbx_volume_open(ctx, &volume, settings.servers, settings.size_bytes, &options);
	if (err == -EBUSY && settings.name && !options.take_over) {
		nbdkit_error("%s, or give take-over=true", rbx_last_error());
		return -1;
	}
	if (err)
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
	if (!err && !settings.name && !settings.volume.on_demand)
		err = try_memory(ctx);
	rbx_close(ctx);
	return err;
}
