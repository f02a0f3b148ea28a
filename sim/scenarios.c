/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scenarios.c - the kinds of worlds: how many machines, of which size, and what goes wrong.
 *
 * A new scenario is a function that draws the world, the sites that are allowed in it, and a
 * line in the table.
 */
#include "core/limits.h"
#include "sim/endpoint.h"
#include "sim/sites.h"
#include "sim/world.h"

#define REQUESTS 4000u

static const enum rbx_sim_site device_and_machines[] = {
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_receiver_not_ready,
	RBX_SIM_SITE_retry_exceeded,  RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_qp_error,	      RBX_SIM_SITE_stale_key,
	RBX_SIM_SITE_no_flush,	      RBX_SIM_SITE_connect_rejected,
	RBX_SIM_SITE_shallow_qp,
	RBX_SIM_SITE_post_full,	      RBX_SIM_SITE_connect_refused,
	RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,
	RBX_SIM_SITE_server_crash,    RBX_SIM_SITE_server_restart,
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_memory_shortage, RBX_SIM_SITE_clock_skew,
	RBX_SIM_SITE_preempt,	      RBX_SIM_SITE_message_cut,
	RBX_SIM_SITE_pressure,	      RBX_SIM_SITE_server_drain,
	RBX_SIM_SITE_client_crash,    RBX_SIM_SITE_slow_client,
	RBX_SIM_SITE_staging_short,   RBX_SIM_SITE_memory_slow,
	RBX_SIM_SITE_bad_memory,      RBX_SIM_SITE_bad_memory_late,
	RBX_SIM_SITE_client_cut,
};

static void draw_servers(uint32_t least, uint32_t most, uint64_t slabs_each)
{
	struct rbx_sim_world *world = &rbx_sim_world;
	uint32_t asked = world->options->nodes_count;

	world->servers_count =
		asked ? asked :
			(uint32_t)rbx_sim_between(&world->random, least, most);
	world->slab_bytes = RBX_SLAB_BYTES_MIN
			    << rbx_random_below(&world->random, 2);
	world->lease_ms =
		2000u << rbx_random_below(&world->random, 4);
	for (uint32_t i = 0; i < world->servers_count; i++)
		world->servers[i].memory_bytes = slabs_each * world->slab_bytes;
	world->requests_wanted = REQUESTS;
}

static void draw_volume(void)
{
	rbx_sim_world.clients_count =
		1 + rbx_random_below(&rbx_sim_world.random, 2);
	rbx_sim_world.one_replica =
		rbx_random_below(&rbx_sim_world.random, 8) == 0;
	draw_servers(RBX_REPLICAS_MAX, RBX_REPLICAS_MAX + 3, 64);
}

static const enum rbx_sim_site pressure[] = {
	RBX_SIM_SITE_pressure,	      RBX_SIM_SITE_memory_shortage,
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_clock_skew,
	RBX_SIM_SITE_preempt,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_message_cut,
	RBX_SIM_SITE_server_drain,    RBX_SIM_SITE_client_crash,
	RBX_SIM_SITE_memory_slow,
};

static void draw_reclaim(void)
{
	rbx_sim_world.clients_count =
		1 + rbx_random_below(&rbx_sim_world.random, 3);
	/* With only as many servers as replicas there is no server to move to. */
	draw_servers(2, RBX_REPLICAS_MAX + 3, 64);
}

static const enum rbx_sim_site cuts[] = {
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,
	RBX_SIM_SITE_late_placement,  RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_clock_skew,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_message_cut,     RBX_SIM_SITE_slow_client,
	RBX_SIM_SITE_client_crash,    RBX_SIM_SITE_memory_slow,
	RBX_SIM_SITE_client_cut,
};

static void draw_partition(void)
{
	rbx_sim_world.clients_count =
		1 + rbx_random_below(&rbx_sim_world.random, 2);
	draw_servers(RBX_REPLICAS_MAX, RBX_REPLICAS_MAX + 2, 64);
}

/* Silent for longer than the peer timeout, and seldom until the session is given up. There is
 * mostly no other server to make replicas on meanwhile. */
static const enum rbx_sim_site silent_for_a_while[] = {
	RBX_SIM_SITE_partition,	    RBX_SIM_SITE_slow_node,   RBX_SIM_SITE_late_completion,
	RBX_SIM_SITE_late_placement, RBX_SIM_SITE_scribble,   RBX_SIM_SITE_bad_memory,
	RBX_SIM_SITE_preempt,	    RBX_SIM_SITE_message_cut,
};

static void draw_away(void)
{
	rbx_sim_world.clients_count = 1;
	draw_servers(2, 3, 64);
	rbx_sim_world.lease_ms = 24000;
}

static const enum rbx_sim_site losses[] = {
	RBX_SIM_SITE_server_restart,  RBX_SIM_SITE_server_crash,
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_qp_error,	      RBX_SIM_SITE_stale_key,
	RBX_SIM_SITE_clock_skew,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_message_cut,     RBX_SIM_SITE_memory_slow,
	RBX_SIM_SITE_bad_memory,      RBX_SIM_SITE_client_crash,
	RBX_SIM_SITE_revoked_unasked,
};

static void draw_loss(void)
{
	rbx_sim_world.clients_count =
		1 + rbx_random_below(&rbx_sim_world.random, 2);
	rbx_sim_world.may_lose = true;
	rbx_sim_world.one_replica = rbx_random_below(&rbx_sim_world.random, 2);
	draw_servers(RBX_REPLICAS_MAX, RBX_REPLICAS_MAX + 2, 64);
}

static const enum rbx_sim_site silences[] = {
	RBX_SIM_SITE_server_crash,    RBX_SIM_SITE_server_restart,
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_no_flush,	      RBX_SIM_SITE_late_completion,
	RBX_SIM_SITE_late_placement,  RBX_SIM_SITE_connect_timeout,
	RBX_SIM_SITE_clock_skew,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_message_cut,
};

static void draw_silence(void)
{
	rbx_sim_world.clients_count = 1;
	rbx_sim_world.waits_bounded = true;
	draw_servers(RBX_REPLICAS_MAX, RBX_REPLICAS_MAX + 2, 64);
}

/* Nothing that would cost a slab: there is one replica of each. */
static const enum rbx_sim_site takings[] = {
	RBX_SIM_SITE_client_crash,
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_receiver_not_ready,
	RBX_SIM_SITE_retry_exceeded,  RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_qp_error,	      RBX_SIM_SITE_no_flush,
	RBX_SIM_SITE_connect_rejected, RBX_SIM_SITE_connect_refused,
	RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,
	RBX_SIM_SITE_shallow_qp,      RBX_SIM_SITE_post_full,
	RBX_SIM_SITE_clock_skew,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_message_cut,     RBX_SIM_SITE_staging_short,
	RBX_SIM_SITE_slow_client,     RBX_SIM_SITE_memory_slow,
	RBX_SIM_SITE_bad_memory,      RBX_SIM_SITE_client_cut,
	RBX_SIM_SITE_rival,	      RBX_SIM_SITE_volume_grows,
	RBX_SIM_SITE_volume_reserved,
};

static void draw_named(void)
{
	rbx_sim_world.clients_count =
		1 + rbx_random_below(&rbx_sim_world.random, 2);
	rbx_sim_world.is_named = true;
	rbx_sim_world.one_replica = true;
	draw_servers(1, 4, 64);
}

static void named_load(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rbx_volume_options *options =
			&rbx_sim_world.clients[i].volume_options;

		/* One replica has none. Half of the others do, as drawn with the client. */
		if (rbx_sim_world.one_replica)
			options->checksums = 0;
		options->on_demand = 0;
	}
}

/* Servers are cut off, and keep what they have; or they are lost for good. */
#define KEEPINGS                                                                    \
	RBX_SIM_SITE_partition, RBX_SIM_SITE_client_crash, RBX_SIM_SITE_server_crash,      \
	RBX_SIM_SITE_client_cut, RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement, \
	RBX_SIM_SITE_scribble, RBX_SIM_SITE_stray_write, RBX_SIM_SITE_qp_error,            \
	RBX_SIM_SITE_no_flush, RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,     \
	RBX_SIM_SITE_clock_skew, RBX_SIM_SITE_preempt, RBX_SIM_SITE_message_cut,           \
	RBX_SIM_SITE_memory_slow, RBX_SIM_SITE_slow_client, RBX_SIM_SITE_slow_node,        \
	RBX_SIM_SITE_server_drain, RBX_SIM_SITE_rival, RBX_SIM_SITE_pressure,              \
	RBX_SIM_SITE_server_restart, RBX_SIM_SITE_volume_grows, RBX_SIM_SITE_volume_reserved

static const enum rbx_sim_site keepings[] = { KEEPINGS };

static void draw_kept(void)
{
	rbx_sim_world.clients_count =
		1 + rbx_random_below(&rbx_sim_world.random, 2);
	rbx_sim_world.is_named = true;
	draw_servers(2, RBX_REPLICAS_MAX + 2, 64);
}

/* The same, and each volume has a reader beside its client. */
static void draw_beside(void)
{
	draw_kept();
	rbx_sim_world.has_readers = true;
}

/* As kept, and clients find servers where these announce themselves. */
static const enum rbx_sim_site announcings[] = {
	RBX_SIM_SITE_store_away,    KEEPINGS,
	RBX_SIM_SITE_store_refuses, RBX_SIM_SITE_store_reply_lost,
	RBX_SIM_SITE_store_forgets,
};

static void draw_announced(void)
{
	draw_kept();
	rbx_sim_world.has_store = true;
}

/* Servers restart, and are the same ones. */
static const enum rbx_sim_site restarts[] = {
	RBX_SIM_SITE_server_restart,  RBX_SIM_SITE_client_crash,
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_qp_error,	      RBX_SIM_SITE_no_flush,
	RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,
	RBX_SIM_SITE_clock_skew,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_message_cut,     RBX_SIM_SITE_memory_slow,
	RBX_SIM_SITE_rival,	      RBX_SIM_SITE_volume_grows,
	RBX_SIM_SITE_volume_reserved,
};

static void draw_restarted(void)
{
	draw_kept();
	rbx_sim_world.has_memory_files = true;
	rbx_sim_world.one_replica = rbx_random_below(&rbx_sim_world.random, 2);
}

/* The same, and in the end some are gone, are given up, and come back. */
static void draw_given_up(void)
{
	draw_restarted();
	rbx_sim_world.clients_count = 1;
	rbx_sim_world.gives_up = true;
	rbx_sim_world.one_replica = rbx_random_below(&rbx_sim_world.random, 4) == 0;
	rbx_sim_world.requests_wanted = REQUESTS / 8;
}

/* Too many servers are away at times, and all come back with what they had. */
static const enum rbx_sim_site outages[] = {
	RBX_SIM_SITE_outage,	      RBX_SIM_SITE_server_restart,
	RBX_SIM_SITE_client_crash,    RBX_SIM_SITE_rival,
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_qp_error,	      RBX_SIM_SITE_no_flush,
	RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,
	RBX_SIM_SITE_clock_skew,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_message_cut,     RBX_SIM_SITE_memory_slow,
	RBX_SIM_SITE_slow_client,     RBX_SIM_SITE_volume_grows,
	RBX_SIM_SITE_volume_reserved,
};

static void draw_outage(void)
{
	draw_kept();
	rbx_sim_world.has_memory_files = true;
	rbx_sim_world.may_fail = true;
}

/* One that submits again at once would have failed all its requests before servers are back. */
static void outage_load(void)
{
	named_load();
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_world.clients[i].load.think_ns_max = 2500 * RBX_SIM_MS;
}

/* Nothing that keeps a server away for a moment: one that cannot be asked is no choice. */
static const enum rbx_sim_site rack_losses[] = {
	RBX_SIM_SITE_rack_crash,      RBX_SIM_SITE_server_restart,
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_shallow_qp,      RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_client_crash,
};

static void draw_racks(void)
{
	struct rbx_sim_world *world = &rbx_sim_world;

	world->clients_count = 1 + rbx_random_below(&world->random, 2);
	world->racks_count = 3 + rbx_random_below(&world->random, 2);
	draw_servers(world->racks_count, RBX_REPLICAS_MAX + 3, 64);
}

/* Without no_flush: an endpoint promises that what is posted ends, as devices do. */
static const enum rbx_sim_site endpoints[] = {
	RBX_SIM_SITE_late_completion, RBX_SIM_SITE_late_placement,
	RBX_SIM_SITE_scribble,	      RBX_SIM_SITE_receiver_not_ready,
	RBX_SIM_SITE_retry_exceeded,  RBX_SIM_SITE_stray_write,
	RBX_SIM_SITE_qp_error,	      RBX_SIM_SITE_stale_key,
	RBX_SIM_SITE_connect_refused, RBX_SIM_SITE_connect_rejected,
	RBX_SIM_SITE_connect_timeout, RBX_SIM_SITE_connect_cut,
	RBX_SIM_SITE_shallow_qp,      RBX_SIM_SITE_post_full,
	RBX_SIM_SITE_message_cut,     RBX_SIM_SITE_preempt,
	RBX_SIM_SITE_server_restart,  RBX_SIM_SITE_client_crash,
	RBX_SIM_SITE_partition,	      RBX_SIM_SITE_slow_node,
	RBX_SIM_SITE_clock_skew,
};

static void draw_nothing(void)
{
}

/* Nothing goes wrong and there are no pauses, to measure the speed of the simulation. */
static void draw_quiet(void)
{
	rbx_sim_world.clients_count = 1;
	rbx_sim_world.is_quiet = true;
	draw_servers(2, 2, 64);
	rbx_sim_world.requests_wanted = 1000000;
}

static void quick_load(void)
{
	struct rbx_sim_client *client = &rbx_sim_world.clients[0];

	rbx_options_defaults(&client->options);
	client->options.insecure = 1;
	rbx_options_set(&client->options, "tune_file=none");
	rbx_options_set(&client->options, "polling=hybrid");
	client->volume_options.replicas = 1;
	client->volume_options.checksums = 0;
	client->volume_options.on_demand = 0;
	client->load = (struct rbx_sim_load){
		.threads_count = 1,
		.depth_count = 32,
		.read_percent = 50,
		.unit_bytes = RBX_SIM_UNIT_BYTES,
		.units_max = 1,
	};
}

/* Long enough for a grace and a lease to run out. */
static void slow_load(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rbx_sim_load *load = &rbx_sim_world.clients[i].load;

		load->think_ns_max = 2500 * RBX_SIM_MS;
		load->threads_count = RBX_MIN(load->threads_count, 2u);
	}
}

#define SITES(list) list, sizeof(list) / sizeof((list)[0])

const struct rbx_sim_scenario rbx_sim_scenarios[] = {
	{ "volume", "random load on replicas; devices and machines fail",
	  SITES(device_and_machines), 0, draw_volume, NULL, NULL },
	{ "reclaim", "servers run short of memory and want it back",
	  SITES(pressure), 1, draw_reclaim, slow_load, NULL },
	{ "partition", "servers are cut off and come back", SITES(cuts), 1,
	  draw_partition, slow_load, NULL },
	{ "away", "servers are silent for a while, and are used again with what they have",
	  SITES(silent_for_a_while), 3, draw_away, slow_load, NULL },
	{ "loss", "servers fail together, and slabs are lost", SITES(losses), 1,
	  draw_loss, slow_load, NULL },
	{ "silence", "servers fall silent, and no request waits for long",
	  SITES(silences), 1, draw_silence, slow_load, NULL },
	{ "racks", "racks are lost as a whole, and no page with them",
	  SITES(rack_losses), 1, draw_racks, rbx_sim_racks_adjust, NULL },
	{ "named", "volumes outlive their clients, which crash and are followed",
	  SITES(takings), 1, draw_named, named_load, NULL },
	{ "kept", "named volumes with replicas; servers are lost and clients crash",
	  SITES(keepings), 3, draw_kept, named_load, NULL },
	{ "beside", "as kept; programs read the volumes beside their clients",
	  SITES(keepings), 3, draw_beside, named_load, NULL },
	{ "announced", "as kept; servers are found in a store, which is away at times",
	  SITES(announcings), 4, draw_announced, named_load, NULL },
	{ "restarted", "named volumes; servers with memory files restart, and clients crash",
	  SITES(restarts), 1, draw_restarted, named_load, NULL },
	{ "given-up", "named volumes; servers are gone in the end, and are given up",
	  SITES(restarts), 1, draw_given_up, named_load, NULL },
	{ "outage", "named volumes; most servers are away together, and requests fail meanwhile",
	  SITES(outages), 1, draw_outage, outage_load, NULL },
	{ "endpoint", "programs communicate over endpoints, without a server",
	  SITES(endpoints), 0, draw_nothing, NULL, rbx_sim_endpoints_direct },
	{ "quiet", "as volume, but without failures and pauses", NULL, 0, 0,
	  draw_quiet, quick_load, NULL },
};

const uint32_t rbx_sim_scenarios_count =
	sizeof(rbx_sim_scenarios) / sizeof(rbx_sim_scenarios[0]);
