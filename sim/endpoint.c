/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.c - machines whose programs communicate over endpoints, see endpoint.h.
 *
 * The program of the first machine listens. Those of the others connect to it, again and
 * again. Machines are cut off, stop for a while, lose their power and come back.
 */
#include "sim/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/descriptors.h"
#include "sim/fail.h"
#include "sim/hands.h"
#include "sim/sites.h"
#include "sim/trace.h"
#include "sim/world.h"

#define MACHINES_MAX 4u
#define ADDRESS "n1:7000"
#define HEARD_WANTED 2000u
#define PAUSE_NS_MAX (50 * RBX_SIM_MS)
#define OFF_NS_MAX (2000 * RBX_SIM_MS)
#define CUT_NS_MAX (3000 * RBX_SIM_MS)
#define STALL_NS_MAX (500 * RBX_SIM_MS)
/* Longer than anything that is waited for. */
#define ENDS_NS (120000 * RBX_SIM_MS)

static struct machine {
	uint32_t node;
	uint32_t starts_count;
	bool is_up;
	bool has_ended; /* its program has ended by itself */
	uint32_t ends_count; /* ended connections, of those it has to make */
	struct rbx_random random;
	uint64_t starts_at_ns; /* if it has no power */
	struct rbx_sim_event uncut;
} machines[MACHINES_MAX];
static uint32_t machines_count;

static struct rbx_context *context_open(void)
{
	struct rbx_options options;
	struct rbx_context *ctx;

	rbx_options_defaults(&options);
	options.insecure = 1;
	strcpy(options.tune_file, "none");
	if (rbx_open(&ctx, &options))
		rbx_sim_fail("start", "%s", rbx_last_error());
	return ctx;
}

static void context_close(struct machine *machine, struct rbx_context *ctx)
{
	if (rbx_sim_hands_count(machine->node) != 0)
		rbx_sim_fail("revoked-key", "node %u has exported memory at its end",
			     machine->node);
	rbx_close(ctx);
	machine->has_ended = true;
}

/* ---- Connecting machines ----------------------------------------------------- */

static void connect_once(struct machine *machine, struct rbx_context *ctx)
{
	struct rbx_sim_end *end = rbx_sim_end_make(ctx, 0, &machine->random);
	struct rbx_endpoint *endpoint = NULL;
	struct rbx_sim_hello hello, other;
	const struct rbx_endpoint_data data = { &hello, sizeof(hello) };
	struct rbx_endpoint_data answer = { &other, sizeof(other) };
	int err;

	rbx_sim_end_hello(end, rbx_sim_connections_count++, &hello);
	err = rbx_endpoint_connect(ctx, ADDRESS, rbx_sim_end_options(end),
				   &data, &answer, &endpoint);
	if (err && err != -ECONNREFUSED && err != -EBUSY &&
	    err != -ETIMEDOUT && err != -EHOSTUNREACH && err != -ECONNRESET)
		rbx_sim_fail("status", "connect: %d: %s", err, rbx_last_error());
	if (!err && answer.length_bytes != sizeof(other))
		rbx_sim_fail("messages", "%zu bytes come with the connection",
			     answer.length_bytes);
	rbx_sim_end_run(end, err ? NULL : endpoint, &other);
}

static void *visit(void *arg)
{
	struct machine *machine = arg;
	struct rbx_context *ctx = context_open();

	while (!rbx_sim_world.stopping &&
	       rbx_sim_connections_count < RBX_SIM_CONNECTIONS_MAX) {
		connect_once(machine, ctx);
		rbx_sim_sleep(rbx_sim_between(&machine->random, 0,
					      PAUSE_NS_MAX));
	}
	context_close(machine, ctx);
	return NULL;
}

/* ---- The listening machine --------------------------------------------------- */

struct accepted {
	struct machine *machine;
	struct rbx_sim_end *end;
	struct rbx_endpoint *endpoint;
	struct rbx_sim_hello other;
};

static struct accepted accepted[RBX_SIM_CONNECTIONS_MAX];

static void *serve_one(void *arg)
{
	struct accepted *one = arg;

	rbx_sim_end_run(one->end, one->endpoint, &one->other);
	one->machine->ends_count--;
	return NULL;
}

static void accept_one(struct machine *machine, struct rbx_context *ctx,
		       struct rbx_endpoint_request *request)
{
	struct rbx_sim_hello hello;
	const struct rbx_endpoint_data data = { &hello, sizeof(hello) };
	struct rbx_endpoint *endpoint = NULL;
	struct accepted *one;
	size_t bytes;

	memcpy(&hello, rbx_endpoint_request_data(request, &bytes),
	       sizeof(hello));
	if (bytes < sizeof(hello) ||
	    hello.connection >= rbx_sim_connections_count)
		rbx_sim_fail("messages", "%zu bytes come with a request", bytes);
	if (rbx_random_below(&machine->random, 16) == 0) {
		rbx_endpoint_reject(request, NULL);
		return;
	}
	one = &accepted[hello.connection];
	*one = (struct accepted){
		.machine = machine,
		.end = rbx_sim_end_make(ctx, 1, &machine->random),
		.other = hello,
	};
	rbx_sim_end_hello(one->end, one->other.connection, &hello);
	if (rbx_endpoint_accept(request, rbx_sim_end_options(one->end), &data,
				&endpoint))
		endpoint = NULL;
	one->endpoint = endpoint;
	machine->ends_count++;
	(void)rbx_sim_spawn(machine->node, serve_one, one);
}

/* Connecting machines are still there, or may start once more. */
static bool is_needed(void)
{
	for (uint32_t i = 1; i < machines_count; i++)
		if (!machines[i].has_ended)
			return true;
	return false;
}

static void *serve(void *arg)
{
	struct machine *machine = arg;
	struct rbx_context *ctx = context_open();
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;

	if (rbx_endpoint_listen(ctx, ADDRESS, &listener))
		rbx_sim_fail("start", "%s", rbx_last_error());
	while (is_needed())
		if (rbx_endpoint_next_request(listener, 50, &request) == 0)
			accept_one(machine, ctx, request);
	while (machine->ends_count != 0)
		rbx_sim_sleep(PAUSE_NS_MAX);
	rbx_endpoint_listener_close(listener);
	context_close(machine, ctx);
	return NULL;
}

/* ---- Machines ---------------------------------------------------------------*/

static void machine_start(struct machine *machine)
{
	rbx_sim_random_split(&machine->random, rbx_sim_world.options->seed,
			     "endpoint",
			     machine->starts_count++ * MACHINES_MAX +
				     machine->node);
	machine->is_up = true;
	machine->ends_count = 0;
	(void)rbx_sim_spawn(machine->node, machine->node == 1 ? serve : visit,
			    machine);
}

static void machine_stop(struct machine *machine)
{
	RBX_SIM_TRACE(machine->node, "power-off", "time", machine->starts_count,
		      "ends", machine->ends_count);
	rbx_sim_node_stop(machine->node);
	rbx_sim_world.fabric->node_stop(machine->node);
	rbx_sim_descriptors_stop(machine->node);
	machine->is_up = false;
	machine->starts_at_ns =
		rbx_sim_now() +
		rbx_sim_between(&rbx_sim_world.random, RBX_SIM_MS, OFF_NS_MAX);
}

static void uncut(struct rbx_sim_event *event)
{
	struct machine *machine = RBX_CONTAINER_OF(event, struct machine, uncut);

	rbx_sim_world.fabric->node_cut(machine->node, false);
}

static void harm(struct machine *machine)
{
	if (rbx_sim_site(RBX_SIM_SITE_partition) &&
	    !rbx_sim_is_queued(&machine->uncut)) {
		RBX_SIM_TRACE(machine->node, "cut-off", "node", machine->node,
			      "ends", machine->ends_count);
		rbx_sim_world.fabric->node_cut(machine->node, true);
		rbx_sim_after(&machine->uncut,
			      rbx_sim_site_draw(RBX_SIM_SITE_partition,
						RBX_SIM_MS, CUT_NS_MAX));
	}
	if (rbx_sim_site(RBX_SIM_SITE_slow_node))
		rbx_sim_node_stall(
			machine->node,
			rbx_sim_now() +
				rbx_sim_site_draw(RBX_SIM_SITE_slow_node, 0,
						  STALL_NS_MAX));
	if (rbx_sim_site(machine->node == 1 ? RBX_SIM_SITE_server_restart :
					      RBX_SIM_SITE_client_crash))
		machine_stop(machine);
}

static void start_those_due(uint64_t now_ns)
{
	for (uint32_t i = 0; i < machines_count; i++)
		if (!machines[i].is_up && machines[i].starts_at_ns <= now_ns)
			machine_start(&machines[i]);
}

static void heal(void)
{
	for (uint32_t i = 0; i < machines_count; i++) {
		rbx_sim_cancel(&machines[i].uncut);
		rbx_sim_world.fabric->node_cut(machines[i].node, false);
		rbx_sim_node_stall(machines[i].node, 0);
	}
	start_those_due(UINT64_MAX);
}

static bool all_have_ended(void)
{
	return machines[0].has_ended && !is_needed();
}

static bool goes_on(void)
{
	const struct rbx_sim_options *options = rbx_sim_world.options;

	return is_needed() && rbx_sim_world.others_done < HEARD_WANTED &&
	       (options->events_max == 0 ||
		rbx_sim_events_run() < options->events_max);
}

void rbx_sim_endpoints_direct(void)
{
	struct rbx_random *random = &rbx_sim_world.random;
	uint64_t until_ns;

	rbx_sim_judge_by(NULL); /* no harm here costs a replica */
	machines_count = 2 + rbx_random_below(random, MACHINES_MAX - 1);
	for (uint32_t i = 0; i < machines_count; i++) {
		machines[i].node = 1 + i;
		machines[i].uncut.run = uncut;
		if (rbx_sim_site(RBX_SIM_SITE_clock_skew))
			rbx_sim_node_skew(1 + i,
					  (int32_t)rbx_sim_site_draw(
						  RBX_SIM_SITE_clock_skew, 0,
						  2 * RBX_SIM_SKEW_MAX) -
						  RBX_SIM_SKEW_MAX);
		machine_start(&machines[i]);
	}
	while (goes_on()) {
		struct machine *machine =
			&machines[rbx_random_below(random, machines_count)];

		rbx_sim_sleep(rbx_sim_between(random, 0, PAUSE_NS_MAX));
		start_those_due(rbx_sim_now());
		if (machine->is_up && !machine->has_ended)
			harm(machine);
	}
	rbx_sim_world.stopping = true;
	rbx_sim_sites_heal();
	heal();
	until_ns = rbx_sim_now() + ENDS_NS;
	while (!all_have_ended()) {
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("liveness", "a program does not end");
		rbx_sim_sleep(PAUSE_NS_MAX);
	}
}
