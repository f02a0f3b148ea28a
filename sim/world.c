/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.c - a run from its seed to its end.
 *
 * Everything is drawn before anything runs, and printed, so that a result can be read without
 * running it again. Then the director makes the machines, lets the load run and harm be done,
 * heals, and makes the final checks.
 */
#include "sim/world.h"

#include <inttypes.h>
#include <string.h>

#include "sim/command.h"
#include "sim/fail.h"
#include "sim/host/machine.h"
#include "sim/store.h"
#include "sim/tally.h"
#include "sim/trace.h"

struct rbx_sim_world rbx_sim_world;

void rbx_sim_on(uint32_t node, void *(*main)(void *arg), void *arg)
{
	(void)rbx_sim_join(rbx_sim_spawn(node, main, arg));
}

uint64_t rbx_sim_requests_done(void)
{
	uint64_t count = rbx_sim_world.others_done;

	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		count += rbx_sim_world.clients[i].done_count;
	return count;
}

static void draw_skews(void)
{
	uint32_t nodes = 1 + rbx_sim_world.servers_count +
			 rbx_sim_world.clients_count;

	for (uint32_t node = 1; node < nodes; node++)
		if (rbx_sim_site(RBX_SIM_SITE_clock_skew))
			rbx_sim_node_skew(
				node,
				(int32_t)rbx_sim_site_draw(
					RBX_SIM_SITE_clock_skew, 0,
					2 * RBX_SIM_SKEW_MAX) -
					RBX_SIM_SKEW_MAX);
}

/* Longer than any request may take, with or without harm. */
#define STANDSTILL_NS (60000 * RBX_SIM_MS)

static bool load_goes_on(void)
{
	const struct rbx_sim_options *options = rbx_sim_world.options;
	static uint64_t last_done, moved_at_ns;

	if (last_done != rbx_sim_requests_done()) {
		last_done = rbx_sim_requests_done();
		moved_at_ns = rbx_sim_now();
	}
	return rbx_sim_now() - moved_at_ns < STANDSTILL_NS &&
	       rbx_sim_requests_done() < rbx_sim_world.requests_wanted &&
	       (options->events_max == 0 ||
		rbx_sim_events_run() < options->events_max);
}

static void direct_volumes(void)
{
	struct rbx_sim_world *world = &rbx_sim_world;

	for (uint32_t i = 0; i < world->servers_count; i++)
		rbx_sim_server_start(&world->servers[i]);
	for (uint32_t i = 0; i < world->clients_count; i++)
		rbx_sim_client_open(&world->clients[i]);
	for (uint32_t i = 0; i < world->clients_count; i++)
		rbx_sim_load_start(&world->clients[i]);
	rbx_sim_besides_start();
	while (load_goes_on())
		rbx_sim_harm_now_and_then();
	world->stopping = true;
	for (uint32_t i = 0; i < world->clients_count; i++)
		rbx_sim_wake_all(&world->clients[i].waiters);
	rbx_sim_sites_heal();
	rbx_sim_store_heal();
	rbx_sim_harm_heal();
	rbx_sim_finish();
}

static void *direct(void *arg)
{
	bool *is_done = arg;
	const struct rbx_sim_scenario *scenario =
		rbx_sim_world.options->scenario;

	if (scenario->direct)
		scenario->direct();
	else
		direct_volumes();
	*is_done = true;
	return NULL;
}

static void print_begin(void)
{
	const struct rbx_sim_options *options = rbx_sim_world.options;

	printf("seed %" PRIu64 " scenario %s servers %u slab %" PRIu64
	       " lease_ms %u\n",
	       options->seed, options->scenario->name,
	       rbx_sim_world.servers_count, rbx_sim_world.slab_bytes,
	       rbx_sim_world.lease_ms);
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_client_print(&rbx_sim_world.clients[i]);
	printf("faults");
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++)
		if (rbx_sim_site_is_on((enum rbx_sim_site)i))
			printf(" %s=%u/1000000",
			       rbx_sim_site_name((enum rbx_sim_site)i),
			       rbx_sim_site_chance((enum rbx_sim_site)i));
	printf("\n");
	fflush(stdout);
}

void rbx_sim_take_outcome(struct rbx_sim_outcome *outcome)
{
	outcome->hash = rbx_sim_trace_hash();
	outcome->events = rbx_sim_events_run();
	outcome->requests = rbx_sim_requests_done();
	outcome->virtual_ns = rbx_sim_now();
	outcome->faults_fired = 0;
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++) {
		outcome->counts[i] = rbx_sim_site_fired((enum rbx_sim_site)i);
		outcome->faults_fired += outcome->counts[i];
	}
	for (uint32_t i = 0; i < RBX_SIM_TALLIES_COUNT; i++)
		outcome->counts[RBX_SIM_SITES_COUNT + i] = rbx_sim_tallies[i];
}

static void prepare(const struct rbx_sim_options *options)
{
	struct rbx_sim_world *world = &rbx_sim_world;

	world->options = options;
	world->fabric = options->nic ? &rbx_sim_fabric_nic :
				       &rbx_sim_fabric_plain;
	rbx_sim_random_split(&world->random, options->seed, "world", 0);
	rbx_sim_sites_reset(options->seed);
	for (uint32_t i = 0; i < options->scenario->sites_count; i++)
		rbx_sim_site_allow(options->scenario->sites[i],
				   i < options->scenario->sure_count);
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++)
		if (options->is_forced[i])
			rbx_sim_site_force((enum rbx_sim_site)i,
					   options->chances[i]);
	rbx_sim_sites_draw();
	rbx_sim_fibers_init(options->seed);
	rbx_sim_machines_init(options->seed, world->fabric);
	rbx_sim_store_init(options->seed);
	world->fabric->begin(options->seed);
	options->scenario->draw();
	for (uint32_t i = 0; i < world->servers_count; i++)
		world->servers[i].node = 1 + i;
	for (uint32_t i = 0; i < world->clients_count; i++)
		rbx_sim_client_draw(&world->clients[i], i);
	if (options->scenario->adjust)
		options->scenario->adjust();
	rbx_sim_harm_init();
	draw_skews();
	if (options->trace) {
		rbx_sim_trace_to(stdout);
		rbx_sim_log_to(stdout);
	}
}

/* Some threads look again for ever, each few seconds. Other runs end within minutes. */
#define RUN_ENDS_NS (1800000 * RBX_SIM_MS)

void rbx_sim_run(const struct rbx_sim_options *options)
{
	bool is_done = false;

	prepare(options);
	print_begin();
	(void)rbx_sim_spawn(0, direct, &is_done);
	while (rbx_sim_step()) {
		rbx_sim_check();
		if (rbx_sim_now() > RUN_ENDS_NS)
			rbx_sim_fail("liveness", "it does not end");
	}
	if (!is_done)
		rbx_sim_fail("liveness", "no event is left, so nothing can happen any more");
	rbx_sim_print_end();
}
