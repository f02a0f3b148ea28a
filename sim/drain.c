/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drain.c - a server that is asked to end, as SIGTERM asks rdmabox-serve(1): it lends nothing
 * more, waits for its clients to move their data elsewhere, and ends. What they have not
 * moved by then is lost as if it had crashed, so no other server may be harmed meanwhile.
 */
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define DRAIN_MS_MAX 20000u

static void *drain(void *arg)
{
	struct rbx_sim_server *server = arg;
	uint32_t timeout_ms = (uint32_t)rbx_sim_site_draw(
		RBX_SIM_SITE_server_drain, 0, DRAIN_MS_MAX);
	bool is_empty = rbx_server_drain(server->server, timeout_ms) == 0;

	RBX_SIM_TRACE(server->node, "drained", "empty", is_empty, "of-ms",
		      timeout_ms);
	rbx_sim_tally(is_empty ? RBX_SIM_TALLY_drains_done :
				 RBX_SIM_TALLY_drains_cut,
		      1);
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
