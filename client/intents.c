/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* intents.c - see intents.h. core/extents.h decides; this asks. */
#include "client/intents.h"

#include "core/status.h"

#define AGAIN_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)
#define ROOM_AGAIN_NS 1000000ull

void rbx_intents_init(struct rbx_intents_round *round, struct rbx_volume_control *control)
{
	uint32_t i;

	round->control = control;
	for (i = 0; i < RBX_WIRE_MEMBERS_MAX; i++)
		round->asks[i].control = control;
}

static struct rbx_flow *flow_of(const struct rbx_intents_round *round)
{
	return &round->control->flow;
}

/* Called with the lock of the session held. */
static void answered(struct rbx_ask *ask)
{
	rbx_volume_upkeep_wake(RBX_CONTAINER_OF(ask, struct rbx_intents_ask, ask)->control);
}

/* It is OUT, or what it has noted does not matter any more. */
static bool is_past(const struct rbx_intents_round *round, uint32_t server)
{
	return rbx_upkeep_server_is_down(&round->control->upkeep, server) ||
	       rbx_held_has_failed(&flow_of(round)->held, server);
}

static void answer_take(struct rbx_intents_round *round, uint32_t server)
{
	struct rbx_intents_ask *one = &round->asks[server];
	struct rbx_loan none;
	int err;

	if (!one->is_asked)
		return;
	err = rbx_peer_answer(round->control->servers[server].peer, &one->ask, &none);
	if (err == -EAGAIN)
		return;
	if (!err)
		one->is_wanted = false;
	if (err && !rbx_status_is_away(err))
		rbx_held_suspect(&flow_of(round)->held, server); /* it refuses to serve us */
	/* From here on the peer may be closed. */
	RBX_STORE_RELEASE(&one->is_asked, false);
}

/* Whether a server is still to note the batch, or may do so later. One that is past is not wanted
 * any more: its place may have another server before the batch is over. */
static bool any_is_missing(struct rbx_intents_round *round)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_MEMBERS_MAX; i++) {
		round->asks[i].is_wanted &= !is_past(round, i);
		any |= round->asks[i].is_wanted;
	}
	return any;
}

/* What each server has to note of the batch. */
static void messages_make(struct rbx_intents_round *round)
{
	const struct rbx_intents *batch = &round->batch;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_MEMBERS_MAX; i++)
		round->asks[i].is_wanted = false;
	for (i = 0; i < batch->count; i++) {
		struct rbx_intents_ask *one = &round->asks[batch->all[i].server];
		struct rbx_wire_intents *intents = &one->intents;

		if (!one->is_wanted)
			*intents = (struct rbx_wire_intents){ 0 };
		one->is_wanted = true;
		intents->intents[intents->count++] = (struct rbx_wire_intent){
			.slab_id = batch->all[i].slab_id,
			.epoch = batch->all[i].epoch,
			.word = batch->all[i].word,
			.behind = batch->all[i].behind,
		};
	}
}

static void ask_all_wanted(struct rbx_intents_round *round, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns < round->again_ns)
		return;
	round->again_ns = now_ns + AGAIN_NS;
	for (i = 0; i < RBX_WIRE_MEMBERS_MAX; i++) {
		struct rbx_intents_ask *one = &round->asks[i];

		if (!one->is_wanted || one->is_asked || is_past(round, i))
			continue;
		RBX_STORE_RELEASE(&one->is_asked, true);
		one->message = (struct rbx_wire_message){
			.type = RBX_WIRE_INTENTS,
			.intents = one->intents,
		};
		one->ask = (struct rbx_ask){
			.kind = RBX_CALL_TALK,
			.message = &one->message,
			.over = answered,
		};
		rbx_peer_ask(round->control->servers[i].peer, &one->ask);
	}
}

uint64_t rbx_intents_round(struct rbx_intents_round *round, uint64_t now_ns)
{
	uint64_t quiet_ns = rbx_extents_round(flow_of(round)->map, now_ns);
	bool is_full = false;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_MEMBERS_MAX; i++)
		answer_take(round, i);
	if (round->is_under_way && !any_is_missing(round)) {
		round->is_under_way = false;
		rbx_extents_noted(flow_of(round), &round->batch);
	}
	if (!round->is_under_way &&
	    rbx_extents_next(flow_of(round)->map, &round->batch, &is_full)) {
		round->is_under_way = true;
		round->again_ns = 0;
		messages_make(round);
		/* All are for servers that have failed: the next batch is not to wait for that. */
		if (!any_is_missing(round))
			return now_ns;
	}
	if (!round->is_under_way)
		return is_full ? now_ns + ROOM_AGAIN_NS : quiet_ns;
	ask_all_wanted(round, now_ns);
	return RBX_MIN(round->again_ns, quiet_ns);
}
