/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * opening.c - how long it takes to open a volume of 1 TiB in slabs of 64 MiB, over 16 servers with
 * a round trip of 100 us.
 *
 * Library and server are the real ones, on plain devices, with nothing that goes wrong. What takes
 * time is the network alone: nothing that a program or a server does. Slabs get no pages (hands.h),
 * so a server's memory is there at once.
 *
 * A volume without a name borrows all slabs as it is opened. A named one borrows none; before it is
 * opened again, each of its slabs was written, so that servers have something to tell.
 */
#include "sim/scenarios/figure.h"

#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "include/rdmabox/named_volume.h"
#include "sim/fail.h"
#include "sim/hands.h"
#include "sim/host/machine.h"
#include "sim/world.h"

#define SERVERS 16u
#define SLAB_BYTES (64ull << 20)
#define VOLUME_BYTES (1ull << 40)
#define SLABS (VOLUME_BYTES / SLAB_BYTES)
#define REPLICAS_MAX 2u
#define WAY_NS 50000u
#define LEASE_MS 10000u
#define CLIENT_NODE (1 + SERVERS)
#define WRITERS 64u

static const struct rbx_report_column columns[] = {
	{ "s", 2 }, { "at most s", 0 }, { "messages for a slab", 2 },
};

/* What a step of the client's program does. */
struct step {
	const char *name; /* NULL: it is not told */
	int (*act)(void);
	uint32_t seconds_most; /* 0: no limit */
};

static struct rbx_context *ctx;
static struct rbx_volume *volume;
static char servers[RBX_SIM_SERVERS_TEXT];
static uint32_t replicas;

static int anonymous_open(void)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	return rbx_volume_open(ctx, &volume, servers, VOLUME_BYTES, &options);
}

static int volume_close(void)
{
	return rbx_volume_close(volume);
}

static int named_make(void)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
	return rbx_volume_create(ctx, servers, "v", VOLUME_BYTES, &options);
}

static int named_open(void)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = "v";
	return rbx_volume_open(ctx, &volume, servers, 0, &options);
}

static int named_remove(void)
{
	return rbx_volume_remove(ctx, servers, "v", false);
}

/* Writes a page of every WRITERSth slab, and returns how many failed. */
static void *writer(void *arg)
{
	static const char page[RBX_PAGE_BYTES] = "written";
	uintptr_t failed_count = 0;

	for (uint64_t slab = (uintptr_t)arg; slab < SLABS; slab += WRITERS)
		failed_count += rbx_write(volume, page, sizeof(page), slab * SLAB_BYTES) != 0;
	return (void *)failed_count;
}

static int slabs_write(void)
{
	struct rbx_sim_fiber *writers[WRITERS];
	uintptr_t failed_count = 0;

	for (uintptr_t i = 0; i < WRITERS; i++)
		writers[i] = rbx_sim_spawn(CLIENT_NODE, writer, (void *)i);
	for (uint32_t i = 0; i < WRITERS; i++)
		failed_count += (uintptr_t)rbx_sim_join(writers[i]);
	return failed_count ? -EIO : 0;
}

static const struct step steps[] = {
	{ "without a name, opened: all is lent", anonymous_open, 2 },
	{ NULL, volume_close, 0 },
	{ "named, made", named_make, 0 },
	{ "opened", named_open, 1 },
	{ "each slab written once", slabs_write, 0 },
	{ NULL, volume_close, 0 },
	{ "opened again", named_open, 1 },
	{ NULL, volume_close, 0 },
	{ NULL, named_remove, 0 },
};

/* ---- Measured ---------------------------------------------------------------------------- */

static void step_measure(const struct step *step, struct rbx_report_table *table)
{
	uint64_t began_ns = rbx_sim_now(), before_count = rbx_sim_plain_messages(), ns;
	int err = step->act();

	ns = rbx_sim_now() - began_ns;
	if (err)
		rbx_sim_fail("opening", "%s", rbx_last_error());
	if (!step->name)
		return;
	if (step->seconds_most && ns > step->seconds_most * 1000 * RBX_SIM_MS)
		rbx_sim_fail("in-time", "%s: it takes %llu us", step->name,
			     (unsigned long long)ns / 1000);
	rbx_report_row(table,
		       (int64_t[]){
			       (int64_t)((ns + 5 * RBX_SIM_MS) / (10 * RBX_SIM_MS)),
			       step->seconds_most ? step->seconds_most : RBX_REPORT_NONE,
			       (int64_t)((rbx_sim_plain_messages() - before_count) * 100 / SLABS),
		       },
		       "%s", step->name);
}

static void *client_main(void *arg)
{
	struct rbx_report *report = arg;
	struct rbx_options options;

	rbx_options_defaults(&options);
	options.insecure = 1;
	if (rbx_options_set(&options, "tune_file=none") ||
	    rbx_options_set(&options, "polling=event") || rbx_open(&ctx, &options))
		rbx_sim_fail("start", "%s", rbx_last_error());
	for (replicas = 1; replicas <= REPLICAS_MAX; replicas++) {
		struct rbx_report_table *table =
			rbx_report_table(report, "1 TiB", columns, 3, "%u of each slab", replicas);

		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
			step_measure(&steps[i], table);
	}
	rbx_close(ctx);
	return NULL;
}

/* ---- The world ----------------------------------------------------------------------------- */

static void *direct(void *report)
{
	for (uint32_t i = 0; i < SERVERS; i++)
		rbx_sim_server_start(&rbx_sim_world.servers[i]);
	rbx_sim_servers_name(servers, true);
	rbx_sim_on(CLIENT_NODE, client_main, report);
	for (uint32_t i = 0; i < SERVERS; i++)
		rbx_sim_server_stop(&rbx_sim_world.servers[i]);
	return report;
}

static void world_make(uint64_t seed)
{
	struct rbx_sim_world *world = &rbx_sim_world;

	world->fabric = &rbx_sim_fabric_plain;
	world->servers_count = SERVERS;
	world->slab_bytes = SLAB_BYTES;
	world->lease_ms = LEASE_MS;
	world->is_quiet = true;
	/* Slabs without open files: there are more than a process may have. */
	world->has_memory_files = true;
	for (uint32_t i = 0; i < SERVERS; i++) {
		world->servers[i].node = 1 + i;
		world->servers[i].memory_bytes = (REPLICAS_MAX + 1) * VOLUME_BYTES / SERVERS;
	}
	rbx_sim_sites_reset(seed);
	rbx_sim_fibers_init(seed);
	rbx_sim_machines_init(seed, world->fabric);
	rbx_sim_machines_have((REPLICAS_MAX + 2) * VOLUME_BYTES / SERVERS);
	rbx_sim_hands_ignore();
	rbx_sim_plain_way(WAY_NS);
	world->fabric->begin(seed);
}

void rbx_figure_opening(const struct rbx_setting *setting, struct rbx_report *report)
{
	world_make(setting->seed);
	(void)rbx_sim_spawn(0, direct, report);
	while (rbx_sim_step())
		;
}
