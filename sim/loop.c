/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loop.c - the event loop of a program that polls by itself (pollers=0): it sleeps on the
 * descriptor, and takes what is there. Its other threads may poll as well while they wait.
 */
#include <poll.h>

#include "sim/tally.h"
#include "sim/world.h"

/* In case no event comes; no single wait is longer. */
#define LOOK_MS 100

static void *loop(void *arg)
{
	struct rbx_sim_client *client = arg;
	struct pollfd event = {
		.fd = rbx_event_fd(client->ctx),
		.events = POLLIN,
	};
	int count;

	while (!client->loop_ends) {
		do {
			count = rbx_poll(client->ctx);
			rbx_sim_tally(RBX_SIM_TALLY_program_polls, count > 0);
		} while (count > 0);
		poll(&event, 1, LOOK_MS);
	}
	return NULL;
}

void rbx_sim_loop_start(struct rbx_sim_client *client)
{
	client->loop_ends = false;
	client->loop = NULL;
	if (client->options.pollers == 0)
		client->loop = rbx_sim_spawn(client->node, loop, client);
}

void rbx_sim_loop_end(struct rbx_sim_client *client)
{
	client->loop_ends = true;
	if (client->loop)
		(void)rbx_sim_join(client->loop);
	client->loop = NULL;
}
