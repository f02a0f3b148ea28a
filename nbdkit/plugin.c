// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An nbdkit plugin: a volume for any program that speaks NBD.
 *
 * nbdkit reads the parameters, forks into the background, calls after_fork(), which opens
 * the volume, and serves it to all connections. When they have ended, cleanup() closes
 * it. A context belongs to the process that opened it, so it cannot be opened before the
 * fork. But after the fork the user sees no errors any more. So get_ready() tries the
 * servers before the fork (probe.c). If something fails only later, for example because
 * memory was lent to others meanwhile, nbdkit reports it to syslog and ends.
 *
 * - Requests of all connections run in parallel. A thread of nbdkit waits for each.
 * - A write that has completed is on all live replicas, and all connections see it. So a
 *   flush has nothing to do, each write is FUA anyway, and several connections may be
 *   used at once. Nothing is on a disk. The volume ends with nbdkit, unless it has a name: then
 *   it stays on its servers.
 * - Zeros are written, or on an on_demand volume made by giving slabs back (zeros.c). A
 *   trim gives whole slabs back on an on_demand volume; on others there is no trim.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <rdmabox/rdmabox.h>

#include "probe.h"
#include "settings.h"
#include "zeros.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#define PAGE_BYTES 4096
/* The longest request of nbdkit. */
#define REQUEST_BYTES_MAX (64u << 20)

static struct {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	uint64_t slab_bytes; /* of an on_demand volume; 0: not on_demand, or not known */
} served;

static int fail(int err, const char *what)
{
	nbdkit_error("%s: %s", what, *rbx_last_error() ? rbx_last_error() : strerror(-err));
	nbdkit_set_error(-err);
	return -1;
}

/* ---- Life ----------------------------------------------------------------------- */

static void tell_event(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	(void)volume, (void)user;
	nbdkit_error("%s%s%s: %s", rbx_event_name(event->kind), *event->server ? " " : "",
		     event->server, event->reason);
}

static int open_volume(void)
{
	int err = rbx_open(&served.ctx, &settings.options);

	if (err) {
		served.ctx = NULL;
		return fail(err, "rdmabox");
	}
	err = rbx_volume_open(served.ctx, &served.volume, settings.servers, settings.size_bytes,
			      &settings.volume);
	if (!err)
		return 0;
	fail(err, "rdmabox");
	rbx_close(served.ctx);
	served.ctx = NULL;
	return -1;
}

static void close_volume(void)
{
	if (!served.ctx)
		return;
	rbx_volume_close(served.volume);
	rbx_close(served.ctx);
	served.ctx = NULL;
}

static int plugin_after_fork(void)
{
	settings.volume.event = tell_event;
	if (open_volume())
		return -1;
	if (settings.volume.on_demand)
		served.slab_bytes = zeros_slab_bytes(served.volume);
	return 0;
}

static void plugin_dump(void)
{
	printf("rdmabox_version=%s\n", RBX_VERSION);
}

/* ---- What the volume can do ----------------------------------------------------- */

static void *plugin_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t plugin_get_size(void *handle)
{
	(void)handle;
	return (int64_t)rbx_volume_size(served.volume);
}

static int plugin_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
			     uint32_t *maximum)
{
	struct rbx_volume_status status;

	(void)handle;
	rbx_volume_status(served.volume, &status);
	*minimum = status.checksums ? PAGE_BYTES : 1;
	*preferred = PAGE_BYTES;
	*maximum = REQUEST_BYTES_MAX;
	return 0;
}

static int yes(void *handle)
{
	(void)handle;
	return 1;
}

static int plugin_can_write(void *handle)
{
	(void)handle;
	return !settings.volume.read_only;
}

static int no(void *handle)
{
	(void)handle;
	return 0;
}

static int plugin_can_trim(void *handle)
{
	(void)handle;
	return (int)settings.volume.on_demand;
}

static int plugin_can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int plugin_can_cache(void *handle)
{
	(void)handle;
	return NBDKIT_CACHE_NONE;
}

/* ---- Requests ------------------------------------------------------------------- */

static int plugin_pread(void *handle, void *buf, uint32_t count, uint64_t offset,
			uint32_t flags)
{
	int err = rbx_read(served.volume, buf, count, offset);

	(void)handle, (void)flags;
	return err ? fail(err, "read") : 0;
}

static int plugin_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
			 uint32_t flags)
{
	int err = rbx_write(served.volume, buf, count, offset);

	(void)handle, (void)flags;
	return err ? fail(err, "write") : 0;
}

static int plugin_flush(void *handle, uint32_t flags)
{
	(void)handle, (void)flags;
	return 0;
}

static int plugin_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	int err = rbx_volume_discard(served.volume, offset, count);

	(void)handle, (void)flags;
	return err ? fail(err, "trim") : 0;
}

static int plugin_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	uint64_t slab_bytes = flags & NBDKIT_FLAG_MAY_TRIM ? served.slab_bytes : 0;
	int err;

	(void)handle;
	if (flags & NBDKIT_FLAG_FAST_ZERO && !zeros_are_fast(slab_bytes, offset, count)) {
		nbdkit_set_error(EOPNOTSUPP);
		return -1;
	}
	err = zeros_make(served.volume, slab_bytes, offset, count);
	return err ? fail(err, "zero") : 0;
}

static struct nbdkit_plugin plugin = {
	.name = "rdmabox",
	.longname = "RDMAbox volume",
	.version = RBX_VERSION,
	.description = "Remote memory of RDMAbox servers as a network block device.",
	.load = settings_init,
	.unload = settings_free,
	.config = settings_set,
	.config_complete = settings_check,
	.config_help = settings_help,
	.magic_config_key = "servers",
	.dump_plugin = plugin_dump,
	.get_ready = probe_servers,
	.after_fork = plugin_after_fork,
	.cleanup = close_volume,
	.open = plugin_open,
	.get_size = plugin_get_size,
	.block_size = plugin_block_size,
	.can_write = plugin_can_write,
	.can_flush = yes,
	.can_multi_conn = yes,
	.can_fast_zero = yes,
	.can_extents = no,
	.is_rotational = no,
	.can_trim = plugin_can_trim,
	.can_fua = plugin_can_fua,
	.can_cache = plugin_can_cache,
	.pread = plugin_pread,
	.pwrite = plugin_pwrite,
	.flush = plugin_flush,
	.trim = plugin_trim,
	.zero = plugin_zero,
};

NBDKIT_REGISTER_PLUGIN(plugin)
