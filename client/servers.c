/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - the memory servers of a volume: connecting and leaving, their unsolicited
 * messages, and the requests of the upkeep to them.
 */
#include "client/keeper.h"
#include "client/newcomer.h"
#include "client/notice.h"
#include "client/volume.h"
#include "core/last_copies.h"
#include "core/server_labels.h"

/* ---- Unsolicited messages ------------------------------------------------------ */

static uint32_t index_of(const struct rbx_volume_server *server)
{
	return (uint32_t)(server - server->control->servers);
}

static int peer_welcomed(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_named *named = server->control->named;
	int err;

	if (server->coming == RBX_COMES_NOT)
		return rbx_named_grant(named, rbx_peer_session(peer));
	if (server->failed_incarnation == rbx_peer_incarnation(peer)) {
		err = rbx_newcomer_again(named, rbx_peer_session(peer));
		if (err) /* who has it is told by that thread */
			rbx_volume_upkeep_wake(server->control);
		return err;
	}
	return rbx_keeper_welcome(named, rbx_peer_session(peer), server->coming == RBX_COMES_BACK,
				  &server->returned);
}

static void peer_down(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume_control *control = server->control;

	(void)peer;
	RBX_STORE_RELEASE(&server->is_given_up, true);
	if (!control->keeper) {
		rbx_upkeep_server_down(&control->upkeep, index_of(server));
		return;
	}
	rbx_held_suspect(&control->flow.held, index_of(server));
	rbx_volume_upkeep_wake(control);
}

static void peer_evict(struct rbx_peer *peer,
		       const struct rbx_eviction *eviction, void *user)
{
	struct rbx_volume_server *server = user;

	(void)peer;
	rbx_upkeep_evict(&server->control->upkeep, index_of(server), eviction);
}

/* The keeper makes a record without it. */
static void peer_drains(struct rbx_peer *peer, void *user)
{
	const struct rbx_volume_server *server = user;

	(void)peer;
	if (server->control->keeper)
		rbx_volume_upkeep_wake(server->control);
}

/* Its place may be given to another server meanwhile. */
static bool server_is_up(struct rbx_flow *flow, uint32_t server)
{
	struct rbx_volume_control *control = rbx_volume_control_of_flow(flow);
	struct rbx_peer *peer;
	bool is_up;

	rbx_lock(rbx_upkeep_servers_lock(&control->upkeep));
	peer = control->servers[server].peer;
	is_up = peer && rbx_peer_is_up(peer);
	rbx_unlock(rbx_upkeep_servers_lock(&control->upkeep));
	return is_up;
}

static bool peer_hold(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;

	(void)peer;
	/* Servers of a named volume know themselves what they have missed. */
	if (!server->control->named)
		rbx_upkeep_server_silent(&server->control->upkeep, index_of(server));
	return rbx_last_copies_hold(&server->control->flow, index_of(server),
				    server_is_up);
}

/* It has kept what it has lent. */
static void peer_back(struct rbx_peer *peer, void *user)
{
	struct rbx_volume_server *server = user;

	(void)peer;
	rbx_upkeep_server_back(&server->control->upkeep, index_of(server));
}

/* ---- For the flow ------------------------------------------------------------- */

void rbx_volume_send(struct rbx_flow *flow, uint32_t server,
		     struct rbx_fragment *first, struct rbx_fragment *last)
{
	struct rbx_volume_server *to = &rbx_volume_control_of_flow(flow)->servers[server];
	struct rbx_fragment *each;

	if (!RBX_LOAD_ACQUIRE(&to->is_shunned)) {
		rbx_peer_submit(to->peer, first, last);
		return;
	}
	for (each = first; each; each = rbx_fragment_next(each))
		each->status = -EHOSTUNREACH;
	flow->ops->end_later(flow, first);
}

/* ---- For the upkeep ----------------------------------------------------------- */

static struct rbx_volume_server *server_at(struct rbx_upkeep *upkeep,
					   uint32_t server)
{
	return &rbx_volume_control_of_upkeep(upkeep)->servers[server];
}

/* Called with the lock of the session held. */
static void server_answered(struct rbx_ask *ask)
{
	struct rbx_volume_server *asked =
		RBX_CONTAINER_OF(ask, struct rbx_volume_server, ask);

	rbx_volume_upkeep_wake(asked->control);
}

static void server_ask(struct rbx_upkeep *upkeep, uint32_t server,
		       enum rbx_call_kind kind, const struct rbx_loan *loan, uint64_t label)
{
	struct rbx_volume_server *asked = server_at(upkeep, server);

	asked->ask = (struct rbx_ask){
		.kind = (uint8_t)kind,
		.map.label = label,
		.map.has_tail = label && upkeep->flow->map->shape.has_tails,
		.over = server_answered,
	};
	if (loan)
		asked->ask.loan = *loan;
	rbx_peer_ask(asked->peer, &asked->ask);
}

static int server_answer(struct rbx_upkeep *upkeep, uint32_t server,
			 struct rbx_loan *loan)
{
	struct rbx_volume_server *asked = server_at(upkeep, server);

	return rbx_peer_answer(asked->peer, &asked->ask, loan);
}

/* Otherwise the upkeep thread, which does not exist yet, would be woken. */
static int answers_wait(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_control *control = rbx_volume_control_of_upkeep(upkeep);
	bool is_stopped = false;

	rbx_monitor_enter(&control->monitor);
	while (!control->upkeep_wanted && !is_stopped)
		is_stopped = rbx_monitor_wait_signal(&control->monitor);
	control->upkeep_wanted = false;
	rbx_monitor_leave(&control->monitor);
	return is_stopped ? -EINTR : 0;
}

static uint64_t server_free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_peer_free_bytes(server_at(upkeep, server)->peer);
}

/* Must not reclaim memory: the kernel may have to write to this very volume for that. Without
 * this memory, writes to a lost slab end as those before did. */
static void *memory_lend(struct rbx_upkeep *upkeep, size_t size)
{
	(void)upkeep;
	return rbx_memory_try(size);
}

static void memory_take_back(struct rbx_upkeep *upkeep, void *memory)
{
	(void)upkeep;
	rbx_memory_free(memory);
}

static void tending(struct rbx_upkeep *upkeep, const struct rbx_slab *slab,
		    enum rbx_slab_task task)
{
	(void)upkeep;
	rbx_notice_task(slab, task);
}

static const struct rbx_upkeep_ops upkeep_ops = {
	.ask = server_ask,
	.answer = server_answer,
	.wait = answers_wait,
	.refused = rbx_volume_refused,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = server_free_bytes,
	.tell = rbx_volume_tell,
	.tending = tending,
};

void rbx_volume_control_init(struct rbx_volume_control *control,
			     const struct rbx_flow_ops *ops,
			     struct rbx_flow_counters *counters,
			     uint64_t timeout_ns)
{
	control->spread = RBX_SPREAD_DEFAULT;
	rbx_monitor_init(&control->monitor);
	rbx_flow_init(&control->flow, ops, counters);
	rbx_upkeep_init(&control->upkeep, &control->flow, &upkeep_ops,
			timeout_ns);
}

void rbx_volume_control_destroy(struct rbx_volume_control *control)
{
	rbx_monitor_destroy(&control->monitor);
}

/* ---- One server -----------------------------------------------------------------*/

/* Other threads may check whether it is up. */
static void peer_set(struct rbx_volume_control *control, uint32_t index,
		     struct rbx_peer *peer)
{
	rbx_lock(rbx_upkeep_servers_lock(&control->upkeep));
	control->servers[index].peer = peer;
	rbx_unlock(rbx_upkeep_servers_lock(&control->upkeep));
}

/* What the server says of itself counts. A pool's file speaks for servers that say nothing. */
static void domain_set(struct rbx_volume_control *control, uint32_t index,
		       const struct rbx_peer *peer)
{
	const char *told = control->servers[index].labels;
	uint64_t domain = rbx_server_domain(rbx_peer_labels(peer), control->spread);

	if (!domain && told)
		domain = rbx_server_domain(told, control->spread);
	rbx_upkeep_server_domain(&control->upkeep, index, domain);
}

int rbx_volume_server_open(struct rbx_volume_control *control, uint32_t index)
{
	const struct rbx_peer_events events = {
		.welcomed = control->named ? peer_welcomed : NULL,
		.down = peer_down,
		.evict = peer_evict,
		.drains = peer_drains,
		.hold = peer_hold,
		.wait = rbx_last_copies_wait,
		.back = control->named ? NULL : peer_back,
		.user = &control->servers[index],
	};
	struct rbx_peer *peer;
	int err;

	control->servers[index].control = control;
	RBX_STORE_RELEASE(&control->servers[index].is_given_up, false);
	RBX_STORE_RELEASE(&control->servers[index].has_failed, false);
	control->servers[index].has_drained = false;
	rbx_upkeep_server_begins(&control->upkeep, index);
	err = rbx_volume_connect(control, index, &events, &peer);
	if (err)
		return err;
	domain_set(control, index, peer);
	peer_set(control, index, peer);
	return 0;
}

void rbx_volume_server_close(struct rbx_volume_control *control, uint32_t index)
{
	struct rbx_peer *peer = control->servers[index].peer;

	rbx_returned_forget(&control->servers[index].returned);
	peer_set(control, index, NULL);
	if (peer)
		rbx_peer_leave(peer);
}

void rbx_volume_servers_set_timeout(struct rbx_volume_control *control, uint32_t peer_timeout_ms)
{
	uint32_t i;

	rbx_upkeep_set_timeout_ns(&control->upkeep, peer_timeout_ms * 1000000ull);
	for (i = 0; i < control->server_count; i++)
		if (control->servers[i].peer)
			rbx_peer_set_timeout(control->servers[i].peer, peer_timeout_ms);
	rbx_volume_upkeep_wake(control);
}

/* ---- All of them ----------------------------------------------------------------*/

static void open_act(void *user, uint32_t index)
{
	struct rbx_volume_control *control = user;
	struct rbx_volume_server *server = &control->servers[index];

	server->open_err = rbx_volume_server_open(control, index);
	if (server->open_err && !control->may_lack_servers)
		rbx_side_by_side_stop(&control->side_by_side);
}

static void close_act(void *user, uint32_t index)
{
	rbx_volume_server_close(user, index);
}

void rbx_volume_servers_begin(struct rbx_volume_control *control)
{
	rbx_side_by_side_begin(&control->side_by_side, control->server_count,
			       open_act, control);
}

void rbx_volume_servers_leave(struct rbx_volume_control *control)
{
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (control->servers[i].peer)
			rbx_peer_stop_soon(control->servers[i].peer);
	/* A recovery checks whether the other servers are up (peer_hold()). */
	for (i = 0; i < control->server_count; i++)
		if (control->servers[i].peer)
			rbx_peer_stop(control->servers[i].peer);
	rbx_side_by_side_begin(&control->side_by_side, control->server_count,
			       close_act, control);
	rbx_side_by_side_end(&control->side_by_side);
}
