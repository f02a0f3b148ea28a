/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drain.c - a server that is asked to end, as SIGTERM asks rdmabox-serve(1): it lends nothing
 * more, waits for its clients to move their data elsewhere, and ends. What they have not
 * moved by then is lost as if it had crashed, so no other server may be harmed meanwhile. Of a
 * named volume a client may have crashed and found less than there was: so if the drain was cut
 * short, whoever ends the server waits until it can be spared. A server that says that it is empty
 * ends at once.
 */
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define DRAIN_MS_MAX 20000u
#define AGAIN_MS 50u
#define STALL_NS_MAX (3000 * RBX_SIM_MS)
#define SOON_NS_MAX (5 * RBX_SIM_MS)

static struct stall {
	struct rbx_sim_event event;
	uint32_t node;
} stalls[RBX_SIM_SERVERS_MAX];

/* While slabs move away. */
static void stall(struct rbx_sim_event *event)
{
	const struct stall *stalled = RBX_CONTAINER_OF(event, const struct stall, event);

	rbx_sim_node_stall(stalled->node,
			   rbx_sim_now() + rbx_sim_site_draw(RBX_SIM_SITE_server_drain, RBX_SIM_MS,
							     STALL_NS_MAX));
}

/* While a server does not answer, what clients do without its answer shows. */
static void stall_soon(const struct rbx_sim_server *server)
{
	struct stall *soon = &stalls[server - rbx_sim_world.servers];

	soon->event.run = stall;
	soon->node = server->node;
	rbx_sim_cancel(&soon->event);
	rbx_sim_after(&soon->event,
		      rbx_sim_site_draw(RBX_SIM_SITE_server_drain, 0, SOON_NS_MAX));
}

static void *drain(void *arg)
{
	struct rbx_sim_server *server = arg;
	uint32_t timeout_ms = (uint32_t)rbx_sim_site_draw(
		RBX_SIM_SITE_server_drain, 0, DRAIN_MS_MAX);
	bool is_empty;

	rbx_sim_announce_now(server);
	if (rbx_sim_world.is_named && rbx_sim_site_draw(RBX_SIM_SITE_server_drain, 0, 1))
		stall_soon(server);
	is_empty = rbx_server_drain(server->server, timeout_ms) == 0;

	RBX_SIM_TRACE(server->node, "drained", "empty", is_empty, "of-ms",
		      timeout_ms);
	rbx_sim_tally(is_empty ? RBX_SIM_TALLY_drains_done :
				 RBX_SIM_TALLY_drains_cut,
		      1);
	/* Nobody needs it any more, whatever has become of its clients. */
	while (!is_empty && !rbx_sim_may_stop())
		rbx_sim_sleep(AGAIN_MS * RBX_SIM_MS);
	rbx_sim_announce_end(server);
	rbx_server_stop(server->server);
	server->server = NULL;
	server->is_draining = false;
	return NULL;
}

void rbx_sim_server_drain(struct rbx_sim_server *server)
{
	server->is_draining = true;
	server->drain = rbx_sim_spawn(server->node, drain, server);
}

bool rbx_sim_server_has_drained(struct rbx_sim_server *server)
{
	if (!server->drain || server->is_draining)
		return false;
	(void)rbx_sim_join(server->drain);
	server->drain = NULL;
	return true;
}
