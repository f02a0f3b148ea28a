/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * harm.c - faults of whole machines, and their limits.
 *
 * A volume with R replicas survives the loss of R - 1 servers at a time. So one server at a
 * time is harmed, whatever harms it. The next one is harmed only when every volume has all
 * its replicas again and the harm was certainly noticed. A server with the first and only
 * replica of a slab is not harmed either (first_copies.c). A volume of one replica survives
 * no loss: in a world of such volumes nothing is harmed in a way that may cost a replica. A
 * world of losses is the exception (loss.c): there every server may be harmed. With memory files
 * any number of servers may restart while no client has a volume open, or while they are opened.
 */
#include "core/limits.h"
#include "sim/fail.h"
#include "sim/host/machine.h"
#include "sim/sites.h"
#include "sim/trace.h"
#include "sim/world.h"

/* A peer may take so long to notice that a machine is gone: timeouts are shorter. */
#define FELT_NS (10000 * RBX_SIM_MS)
#define PAUSE_NS_MAX (400 * RBX_SIM_MS)
#define OFF_NS_MAX (4000 * RBX_SIM_MS)
#define CUT_NS_MAX (14000 * RBX_SIM_MS)
#define STALL_NS_MAX (3000 * RBX_SIM_MS)
#define DRAINS_END_NS (150000 * RBX_SIM_MS)
#define WOUNDED_TRIES 16u
#define RESTART_TRIES 16u
#define PRESSURE_NS_MAX (30000 * RBX_SIM_MS)

static uint32_t harmed_node; /* 0: none is harmed */
static uint64_t harmed_until_ns;
/* In worlds with bounded waits, when a server is offered again to clients that may have given
 * it up. 0: it was not harmed. */
static uint64_t offered_at_ns[RBX_SIM_SERVERS_MAX];

/* Undoes a harm later, one event for each server. */
struct undo {
	struct rbx_sim_event event;
	struct rbx_sim_server *server;
	uint64_t until_ns;
};

static struct undo uncuts[RBX_SIM_SERVERS_MAX], relieves[RBX_SIM_SERVERS_MAX];
static uint64_t starts_at_ns[RBX_SIM_SERVERS_MAX]; /* 0: it is not to start */
static uint64_t clients_start_at_ns[RBX_SIM_CLIENTS_MAX]; /* the same */

/* Also of the server that was harmed last: it may have lent since. */
static bool has_first_copies(uint32_t node)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rbx_sim_first_copies_at(&rbx_sim_world.clients[i], node))
			return true;
	return false;
}

/* The other one may still lose data that was not moved away. */
static bool another_drains(uint32_t node)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (rbx_sim_world.servers[i].drain &&
		    rbx_sim_world.servers[i].node != node)
			return true;
	return false;
}

static bool may_harm(uint32_t node)
{
	if (rbx_sim_world.stopping || node == 0 ||
	    node > rbx_sim_world.servers_count)
		return false;
	if (rbx_sim_world.may_lose || rbx_sim_world.may_fail)
		return true;
	if (rbx_sim_world.racks_count && !rbx_sim_racks_are_known())
		return false;
	if (rbx_sim_world.one_replica || another_drains(node) ||
	    has_first_copies(node))
		return false;
	return (node == harmed_node && !rbx_sim_world.waits_bounded) ||
	       (rbx_sim_now() >= harmed_until_ns && rbx_sim_all_survive_a_loss());
}

/* What a client has left that is not there now survives one loss, and this may be it. */
static void harmed(uint32_t node, uint64_t felt_ns)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_world.clients[i].left_all_copies = false;
	harmed_node = node;
	harmed_until_ns = RBX_MAX(harmed_until_ns, rbx_sim_now() + felt_ns);
	offered_at_ns[node - 1] = harmed_until_ns;
}

static const struct rbx_sim_judge judge = { may_harm, harmed };

/* ---- Harm, and its end ------------------------------------------------------ */

static void uncut(struct rbx_sim_event *event)
{
	struct undo *undo = RBX_CONTAINER_OF(event, struct undo, event);

	RBX_SIM_TRACE(undo->server->node, "healed", "node", undo->server->node,
		      "up", rbx_sim_servers_up());
	rbx_sim_world.fabric->node_cut(undo->server->node, false);
	harmed_until_ns = rbx_sim_now() + FELT_NS;
	offered_at_ns[undo->server->node - 1] = harmed_until_ns;
}

static void relieve(struct rbx_sim_event *event)
{
	struct undo *undo = RBX_CONTAINER_OF(event, struct undo, event);

	rbx_sim_memory_left(undo->server->node, RBX_SIM_MEMORY_BYTES);
}

void rbx_sim_harm_init(void)
{
	rbx_sim_client_cuts_init();
	rbx_sim_judge_by(&judge);
	for (uint32_t i = 0; i < RBX_SIM_SERVERS_MAX; i++) {
		uncuts[i] = (struct undo){ { .run = uncut },
					   &rbx_sim_world.servers[i], 0 };
		relieves[i] = (struct undo){ { .run = relieve },
					     &rbx_sim_world.servers[i], 0 };
	}
}

static void start_later(const struct rbx_sim_server *server)
{
	starts_at_ns[server - rbx_sim_world.servers] =
		rbx_sim_now() + rbx_sim_site_draw(RBX_SIM_SITE_server_restart,
						  RBX_SIM_MS, OFF_NS_MAX);
}

/* Only if it can be spared: as many stay as a rebuild needs. */
static void crash(struct rbx_sim_server *server, bool for_good)
{
	rbx_sim_server_power_off(server);
	server->is_for_good = for_good;
	if (!for_good)
		start_later(server);
}

static void add_to_all(const struct rbx_sim_server *server)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_client_add_server(&rbx_sim_world.clients[i], server);
}

/* A server that restarts has lost what it had, and comes to named volumes as a new one. */
static bool is_emptied(void)
{
	return rbx_sim_world.is_named && !rbx_sim_world.has_memory_files;
}

static void start_again(struct rbx_sim_server *server)
{
	starts_at_ns[server - rbx_sim_world.servers] = 0;
	rbx_sim_server_start(server);
	if (!is_emptied()) /* else comings.c does */
		add_to_all(server);
}

/* In worlds with bounded waits, and in those with racks, a volume always has more servers than it
 * needs: those that it has given up are offered to it again. */
static void offer_harmed(uint64_t now_ns)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		const struct rbx_sim_server *server = &rbx_sim_world.servers[i];

		if (!(rbx_sim_world.waits_bounded || rbx_sim_world.racks_count) ||
		    !offered_at_ns[i] || now_ns < offered_at_ns[i] || !server->server)
			continue;
		offered_at_ns[i] = 0;
		add_to_all(server);
	}
}

static bool asked(enum rbx_sim_site site, const struct rbx_sim_server *server)
{
	return server->server &&
	       rbx_sim_site_harms(site, server->node, FELT_NS);
}

void rbx_sim_harm_cut(const struct rbx_sim_server *server, uint64_t for_ns)
{
	uint32_t index = (uint32_t)(server - rbx_sim_world.servers), node = server->node;

	RBX_SIM_TRACE(node, "cut-off", "node", node, "up", rbx_sim_servers_up());
	rbx_sim_world.fabric->node_cut(node, true);
	rbx_sim_cancel(&uncuts[index].event);
	rbx_sim_after(&uncuts[index].event, for_ns);
	uncuts[index].until_ns = rbx_sim_now() + for_ns;
}

/* The one that is out, and one more: if it were three, nobody could open a volume. */
static bool are_two_cut(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < RBX_SIM_SERVERS_MAX; i++)
		count += rbx_sim_now() < uncuts[i].until_ns;
	return count >= 2;
}

/* Nothing is lost by that while no client is there, however many replicas a named volume lacks:
 * the next one waits, if it has to. */
static bool is_cut(const struct rbx_sim_server *server)
{
	bool any_is_there = !rbx_sim_world.is_named || rbx_sim_world.may_fail;

	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		any_is_there |= !clients_start_at_ns[i];
	if (any_is_there)
		return asked(RBX_SIM_SITE_partition, server);
	if (!server->server || are_two_cut() || !rbx_sim_site(RBX_SIM_SITE_partition))
		return false;
	harmed(server->node, FELT_NS);
	return true;
}

/* It loses nothing, and nobody waits for it. */
static bool may_restart_all(void)
{
	if (!rbx_sim_world.has_memory_files || rbx_sim_world.stopping)
		return false;
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rbx_sim_world.clients[i].volume)
			return false;
	return true;
}

static bool restarts(const struct rbx_sim_server *server)
{
	if (is_emptied() && !rbx_sim_may_be_emptied())
		return false;
	if (!may_restart_all())
		return asked(RBX_SIM_SITE_server_restart, server);
	for (uint32_t i = 0; server->server && i < RESTART_TRIES; i++)
		if (rbx_sim_site(RBX_SIM_SITE_server_restart))
			return true;
	return false;
}

/* Of named volumes only what programs have open moves away. It may begin while a volume lacks
 * replicas: the server ends when it has nothing, or when it can be spared (drain.c). */
static bool drains(const struct rbx_sim_server *server)
{
	if (!rbx_sim_world.is_named)
		return asked(RBX_SIM_SITE_server_drain, server);
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (!rbx_sim_world.clients[i].volume)
			return false;
	return server->server && !another_drains(server->node) && rbx_sim_may_be_one_fewer() &&
	       rbx_sim_site(RBX_SIM_SITE_server_drain);
}

static void harm(struct rbx_sim_server *server)
{
	uint32_t index = (uint32_t)(server - rbx_sim_world.servers);
	uint32_t node = server->node;

	if (is_cut(server))
		rbx_sim_harm_cut(server, rbx_sim_site_draw(RBX_SIM_SITE_partition, RBX_SIM_MS,
							   CUT_NS_MAX));
	if (asked(RBX_SIM_SITE_slow_node, server))
		rbx_sim_node_stall(
			node, rbx_sim_now() +
				      rbx_sim_site_draw(RBX_SIM_SITE_slow_node,
							0, STALL_NS_MAX));
	if (asked(RBX_SIM_SITE_pressure, server)) {
		rbx_sim_memory_left(node, RBX_SIM_MEMORY_BYTES / 256);
		rbx_sim_after(&relieves[index].event,
			      rbx_sim_site_draw(RBX_SIM_SITE_pressure,
						RBX_SIM_MS, PRESSURE_NS_MAX));
	}
	if (server->drain)
		return; /* it will end anyway */
	if (drains(server))
		rbx_sim_server_drain(server);
	else if (restarts(server))
		crash(server, false);
	else if (rbx_sim_may_end() && asked(RBX_SIM_SITE_server_crash, server))
		crash(server, true);
}

/* While a named volume lacks something or grows, or something leaves a server, what its record and
 * its labels say counts: a crash is likely then, so that the next client has to rely on it. */
static bool crashes(const struct rbx_sim_client *client, bool grows)
{
	bool is_wounded = rbx_sim_world.is_named && !rbx_sim_world.one_replica &&
			  (!rbx_sim_client_is_whole(client) || another_drains(0));
	uint32_t i, tries = is_wounded || grows ? WOUNDED_TRIES : 1;

	for (i = 0; i < tries; i++)
		if (rbx_sim_site(RBX_SIM_SITE_client_crash))
			return true;
	return false;
}

static struct rbx_sim_server *any_server(void)
{
	return &rbx_sim_world.servers[rbx_random_below(&rbx_sim_world.random,
						       rbx_sim_world.servers_count)];
}

/* A named volume may lose servers while nobody has it open: that is likely then. */
static void harm_after(void)
{
	for (uint32_t i = 0; rbx_sim_world.is_named && i < rbx_sim_world.servers_count; i++)
		harm(any_server());
}

/* No replica is lost with a client. One that is stopped keeps its lease: its last message may
 * be a quarter of it old. */
static void harm_client(struct rbx_sim_client *client)
{
	uint64_t for_ns;

	if (!client->volume)
		return; /* it has not started yet */
	if (rbx_sim_client_is_away(client, RBX_SIM_SITE_client_cut, RBX_SIM_MS, &for_ns))
		rbx_sim_client_cut(client, for_ns);
	if (rbx_sim_client_is_away(client, RBX_SIM_SITE_slow_client, 0, &for_ns))
		rbx_sim_node_stall(client->node, rbx_sim_now() + for_ns);
	if (crashes(client, rbx_sim_growth_begins(client))) {
		rbx_sim_client_has_started(client);
		rbx_sim_client_power_off(client);
		clients_start_at_ns[client->index] =
			rbx_sim_now() +
			rbx_sim_site_draw(RBX_SIM_SITE_client_crash, RBX_SIM_MS,
					  OFF_NS_MAX);
		/* What the record says is in its hands then. */
		if (rbx_sim_rival_start(client))
			client->left_all_copies = false;
		harm_after();
	}
}

bool rbx_sim_harm_may_take(bool (*is_one)(const struct rbx_sim_server *server, uint32_t which),
			   uint32_t which)
{
	bool any = false;

	if (rbx_sim_world.stopping || rbx_sim_now() < harmed_until_ns ||
	    !rbx_sim_all_survive_a_loss())
		return false;
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		const struct rbx_sim_server *server = &rbx_sim_world.servers[i];

		if (server->drain || !server->server)
			return false;
		if (!is_one(server, which))
			continue;
		any = true;
		if (has_first_copies(server->node))
			return false;
	}
	return any;
}

void rbx_sim_harm_crash(struct rbx_sim_server *server)
{
	harmed(server->node, FELT_NS);
	crash(server, false);
}

static void start_those_due(uint64_t now_ns)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		struct rbx_sim_server *server = &rbx_sim_world.servers[i];

		if (rbx_sim_server_has_drained(server)) {
			harmed(server->node, FELT_NS);
			server->is_for_good = is_emptied() &&
					      !rbx_sim_site_chance(RBX_SIM_SITE_server_restart);
			if (!server->is_for_good)
				start_later(server);
		}
		if (starts_at_ns[i] && starts_at_ns[i] <= now_ns)
			start_again(server);
	}
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		if (!clients_start_at_ns[i] || clients_start_at_ns[i] > now_ns ||
		    (!rbx_sim_world.stopping &&
		     rbx_sim_rival_waits(&rbx_sim_world.clients[i])))
			continue;
		clients_start_at_ns[i] = 0;
		rbx_sim_client_power_on(&rbx_sim_world.clients[i]);
	}
}

void rbx_sim_harm_now_and_then(void)
{
	struct rbx_random *random = &rbx_sim_world.random;

	rbx_sim_sleep(rbx_sim_between(random, 0, PAUSE_NS_MAX));
	rbx_sim_rivals_look();
	start_those_due(rbx_sim_now());
	offer_harmed(rbx_sim_now());
	if (rbx_sim_world.racks_count)
		rbx_sim_racks_harm();
	if (rbx_sim_world.may_fail)
		rbx_sim_outages_harm();
	rbx_sim_announced_harm();
	if (is_emptied())
		rbx_sim_comings_offer(&rbx_sim_world.clients[rbx_sim_site_draw(
			RBX_SIM_SITE_server_restart, 0, rbx_sim_world.clients_count - 1)]);
	harm(any_server());
	harm_client(&rbx_sim_world.clients[rbx_random_below(
		random, rbx_sim_world.clients_count)]);
}

/* One that may not end, as it cannot be spared, waits for volumes to be whole. One that has fewer
 * other servers than replicas is not whole before servers come that were started anew. */
static void drains_end(void)
{
	uint64_t until_ns = rbx_sim_now() + DRAINS_END_NS;

	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		while (rbx_sim_world.servers[i].is_draining) {
			if (rbx_sim_now() > until_ns)
				rbx_sim_fail("rebuild-ends", "server %u drains, and cannot be spared long after all healed",
					     rbx_sim_world.servers[i].node);
			for (uint32_t j = 0; is_emptied() && j < rbx_sim_world.clients_count; j++)
				rbx_sim_comings_offer(&rbx_sim_world.clients[j]);
			rbx_sim_sleep(PAUSE_NS_MAX);
		}
}

void rbx_sim_harm_heal(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++) {
		struct rbx_sim_server *server = &rbx_sim_world.servers[i];

		rbx_sim_cancel(&uncuts[i].event);
		rbx_sim_world.fabric->node_cut(server->node, false);
		rbx_sim_node_stall(server->node, 0);
		rbx_sim_memory_left(server->node, RBX_SIM_MEMORY_BYTES);
	}
	rbx_sim_client_cuts_heal();
	rbx_sim_rivals_heal();
	/* What they move away from servers that drain, clients of named volumes move. */
	if (rbx_sim_world.is_named)
		start_those_due(UINT64_MAX);
	drains_end();
	/* Servers that have drained are due then as well. */
	start_those_due(UINT64_MAX);
	start_those_due(UINT64_MAX);
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		rbx_sim_client_has_started(&rbx_sim_world.clients[i]);
	rbx_sim_rivals_end();
}
