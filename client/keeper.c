/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.c - see keeper.h. proposer.h decides; this asks.
 */
#include "client/keeper_state.h"

#include "core/extents.h"
#include "core/membership_change.h"
#include "core/status.h"

#define AGAIN_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)

void rbx_keeper_init(struct rbx_keeper *keeper, struct rbx_volume_control *control,
		     struct rbx_named *named)
{
	uint32_t i;

	keeper->control = control;
	keeper->named = named;
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		keeper->asks[i].control = control;
	rbx_intents_init(&keeper->intents, control);
	rbx_monitor_init(&keeper->newcomer.monitor);
	rbx_monitor_init(&keeper->growth.monitor);
}

void rbx_keeper_destroy(struct rbx_keeper *keeper)
{
	rbx_monitor_destroy(&keeper->growth.monitor);
	rbx_monitor_destroy(&keeper->newcomer.monitor);
}

struct rbx_keeper *rbx_keeper_make(struct rbx_volume_control *control, struct rbx_named *named)
{
	struct rbx_keeper *keeper = rbx_memory_make(sizeof(*keeper));

	if (keeper)
		rbx_keeper_init(keeper, control, named);
	return keeper;
}

void rbx_keeper_free(struct rbx_keeper *keeper)
{
	rbx_keeper_destroy(keeper);
	rbx_memory_free(keeper);
}

void rbx_keeper_begin(struct rbx_keeper *keeper)
{
	uint32_t i;

	for (i = 0; i < keeper->control->server_count; i++)
		if (keeper->control->servers[i].peer)
			rbx_server_set_add(&keeper->members, i);
}

/* ---- Asking ---------------------------------------------------------------------- */

/* Called with the lock of the session held. */
static void answered(struct rbx_ask *ask)
{
	rbx_volume_upkeep_wake(RBX_CONTAINER_OF(ask, struct rbx_keeper_ask, ask)->control);
}

/* What a newcomer is asked first nobody else hears: the volume could not be opened without the
 * newcomer by whoever has that record. */
static bool may_hear(const struct rbx_keeper *keeper, uint32_t server)
{
	return keeper->newcomer.state != RBX_NEWCOMER_ALONE || server == keeper->newcomer.server;
}

static void ask_all_wanted(struct rbx_keeper *keeper, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns < keeper->again_ns)
		return;
	keeper->again_ns = now_ns + AGAIN_NS;
	if (keeper->named->is_withdrawn)
		return;
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		struct rbx_keeper_ask *one = &keeper->asks[i];

		if (!one->is_wanted || one->is_asked || !may_hear(keeper, i))
			continue;
		RBX_STORE_RELEASE(&one->is_asked, true);
		one->version = keeper->named->record.version;
		one->message = rbx_named_accept_request(keeper->named);
		one->ask = (struct rbx_ask){
			.kind = RBX_CALL_TALK,
			.message = &one->message,
			.over = answered,
		};
		rbx_peer_ask(rbx_keeper_peer(keeper, i), &one->ask);
	}
}

/* Those that are left are asked to accept what is proposed. */
static void ask_members(struct rbx_keeper *keeper)
{
	uint32_t i;

	keeper->again_ns = 0;
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		keeper->asks[i].is_wanted = rbx_server_set_has(&keeper->members, i) &&
					    !rbx_server_set_has(&keeper->going, i);
}

static void answer_take(struct rbx_keeper *keeper, uint32_t server)
{
	struct rbx_keeper_ask *one = &keeper->asks[server];
	struct rbx_loan none;
	bool is_alone, has_no_vote;
	int err;

	if (!one->is_asked)
		return;
	err = rbx_peer_answer(rbx_keeper_peer(keeper, server), &one->ask, &none);
	if (err == -EAGAIN)
		return;
	is_alone = keeper->newcomer.state == RBX_NEWCOMER_ALONE &&
		   server == keeper->newcomer.server;
	/* A server that is no member, or is OUT, has no vote on who the writer is. */
	has_no_vote = rbx_keeper_drained_answered(keeper, server, err) || (err && is_alone);
	if (one->version != keeper->named->record.version)
		keeper->again_ns = 0; /* it was asked for the version before */
	else if (one->is_to_be_told)
		one->is_wanted = true; /* once more */
	else if (!rbx_status_is_away(err) || rbx_server_set_has(&keeper->gone, server) ||
		 RBX_LOAD_ACQUIRE(&keeper->control->servers[server].is_given_up))
		one->is_wanted = false; /* else it is asked again, until its peer is given up */
	if (!has_no_vote && err == -ESTALE)
		rbx_named_stopped(keeper->named, rbx_peer_name(rbx_keeper_peer(keeper, server)),
				  "another client has opened it", true);
	if (!has_no_vote)
		rbx_named_accepted(keeper->named,
				   rbx_peer_incarnation(rbx_keeper_peer(keeper, server)),
				   one->version, err);
	if (is_alone && !one->is_wanted && rbx_keeper_newcomer_answered(keeper, err))
		ask_members(keeper);
	/* From here on the peer may be closed. */
	RBX_STORE_RELEASE(&one->is_asked, false);
}

/* Whether a server may accept yet. */
static bool any_may(const struct rbx_keeper *keeper)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (keeper->asks[i].is_wanted)
			return true;
	return false;
}

void rbx_keeper_propose(struct rbx_keeper *keeper)
{
	struct rbx_upkeep *upkeep = &keeper->control->upkeep;

	keeper->is_proposing = true;
	rbx_upkeep_set_copies_least(upkeep, RBX_MAX(rbx_upkeep_copies_least(upkeep),
						    keeper->named->record.copies));
	ask_members(keeper);
}

/* ---- What is proposed, and what follows ------------------------------------------- */

/* From here on a write is acknowledged that these servers missed. */
static void chosen(struct rbx_keeper *keeper)
{
	uint32_t i;

	keeper->is_proposing = false;
	rbx_upkeep_set_copies_least(&keeper->control->upkeep, keeper->named->record.copies);
	rbx_keeper_newcomer_chosen(keeper);
	rbx_keeper_growth_chosen(keeper);
	if (!rbx_keeper_any_is_out(keeper->named))
		rbx_extents_track(rbx_keeper_flow(keeper), false);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		if (!rbx_server_set_has(&keeper->going, i))
			continue;
		rbx_keeper_drained(keeper, i);
		rbx_intents_not_wanted(&keeper->intents, i);
		rbx_server_set_remove(&keeper->going, i);
		rbx_server_set_remove(&keeper->members, i);
		rbx_upkeep_server_down(&keeper->control->upkeep, i);
		rbx_flow_go_on(rbx_keeper_flow(keeper),
			       rbx_held_out(&rbx_keeper_flow(keeper)->held, i));
	}
	if (!rbx_membership_is_joint(&keeper->named->proposer.membership))
		rbx_keeper_drains_tell(keeper);
}

/* Whether a server is silent that is to come back, or to be put out. */
static bool any_is_silent(const struct rbx_keeper *keeper)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(&keeper->members, i) &&
		    !rbx_peer_is_up(rbx_keeper_peer(keeper, i)) &&
		    !rbx_held_has_failed(&rbx_keeper_flow(keeper)->held, i))
			return true;
	return false;
}

/* Whether first writes have too few replicas, and wait for a silent server. If the record said so
 * few while that one is IN, nobody could open the volume without it. */
static bool short_waits(const struct rbx_keeper *keeper)
{
	return rbx_upkeep_short_of_copies(&keeper->control->upkeep) && any_is_silent(keeper);
}

/* How many replicas each slab has at least that was written: what is to be said of it. Servers that
 * are being judged still count. */
static uint32_t copies_now(const struct rbx_keeper *keeper)
{
	struct rbx_upkeep *upkeep = &keeper->control->upkeep;
	uint32_t copies = keeper->named->record.copies;
	uint32_t fewer = rbx_upkeep_short_of_copies(upkeep);

	if (fewer)
		return short_waits(keeper) ? copies : RBX_MIN(copies, fewer);
	return rbx_upkeep_is_whole(upkeep) ? keeper->named->record.replicas : copies;
}

static void copies_tell(struct rbx_keeper *keeper)
{
	uint32_t copies = copies_now(keeper);

	if (copies == keeper->named->record.copies)
		return;
	keeper->named->record.copies = copies;
	rbx_named_change(keeper->named);
	rbx_keeper_propose(keeper);
}

/* Returns whether there is to be another look soon. */
static bool next_begin(struct rbx_keeper *keeper, uint64_t now_ns)
{
	bool any_waits;

	if (rbx_membership_is_joint(&keeper->named->proposer.membership)) {
		rbx_named_change(keeper->named);
		rbx_keeper_propose(keeper);
		return false;
	}
	if (keeper->newcomer.state == RBX_NEWCOMER_AGAIN) {
		rbx_keeper_again_go_on(keeper);
		return true;
	}
	if (keeper->absent)
		rbx_keeper_absent_put_out(keeper);
	if (keeper->is_proposing)
		return false;
	any_waits = rbx_keeper_judge(keeper, now_ns);
	if (!keeper->is_proposing)
		copies_tell(keeper);
	if (!keeper->is_proposing && !any_waits)
		rbx_keeper_drains_begin(keeper);
	if (!keeper->is_proposing)
		rbx_keeper_growth_begin(keeper);
	if (!keeper->is_proposing && !any_waits)
		rbx_keeper_newcomer_begin(keeper);
	if (!keeper->is_proposing && !any_waits && keeper->named->is_withdrawn &&
	    rbx_keeper_drains_wait(keeper)) { /* for a record that they may hear of */
		rbx_named_change(keeper->named);
		rbx_keeper_propose(keeper);
	}
	return any_waits || short_waits(keeper);
}

/* ---- For the volume --------------------------------------------------------------- */

uint64_t rbx_keeper_round(struct rbx_keeper *keeper, uint64_t now_ns)
{
	struct rbx_server_set suspects;
	bool any_suspects, any_waits = false;
	uint64_t again_ns = UINT64_MAX;
	uint32_t i;

	any_suspects = rbx_held_suspects(&rbx_keeper_flow(keeper)->held, &suspects, &keeper->gone);
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		answer_take(keeper, i);
	rbx_keeper_newcomer_look(keeper, any_suspects);
	rbx_keeper_growth_look(keeper);
	if (keeper->is_proposing && rbx_named_is_chosen(keeper->named))
		chosen(keeper);
	if (!keeper->is_over &&
	    (rbx_named_is_shut_out(keeper->named) ||
	     rbx_keeper_has_lost_the_volume(keeper, now_ns, &again_ns) ||
	     (keeper->is_proposing && !any_may(keeper)))) {
		rbx_keeper_lose(keeper);
		rbx_keeper_newcomer_look(keeper, false); /* it does not come */
		rbx_keeper_growth_look(keeper); /* nor does it grow */
	}
	if (keeper->is_over)
		rbx_keeper_over_go_on(keeper, now_ns);
	if (!keeper->is_proposing && !keeper->is_over)
		any_waits = next_begin(keeper, now_ns);
	if (keeper->is_over)
		return keeper->newcomer.state == RBX_NEWCOMER_AGAIN ? now_ns + AGAIN_NS :
								      UINT64_MAX;
	again_ns = RBX_MIN(again_ns, rbx_keeper_drains_look(keeper, now_ns));
	if (!keeper->is_proposing && !rbx_keeper_drains_wait(keeper))
		return any_waits ? RBX_MIN(again_ns, now_ns + AGAIN_NS) : again_ns;
	ask_all_wanted(keeper, now_ns);
	return RBX_MIN(again_ns, keeper->again_ns);
}

uint64_t rbx_keeper_intents_round(struct rbx_keeper *keeper, uint64_t now_ns)
{
	return rbx_intents_round(&keeper->intents, now_ns);
}

bool rbx_keeper_is_over(const struct rbx_keeper *keeper)
{
	return RBX_LOAD_RELAXED(&keeper->is_over);
}

bool rbx_keeper_is_behind(const struct rbx_keeper *keeper)
{
	return !keeper->is_over && !keeper->is_proposing &&
	       copies_now(keeper) != keeper->named->record.copies;
}

/* Replicas are being made equal, or it is not known what a server has of a write, or a page and the
 * checksum that servers keep of it may be of different writes. */
static bool may_be_uneven(const struct rbx_keeper *keeper)
{
	struct rbx_flow *flow = rbx_keeper_flow(keeper);
	const struct rbx_extents *extents = flow->map->shape.groups[0].extents;
	bool have_strayed = extents && RBX_LOAD_ACQUIRE(&extents->have_strayed);

	return rbx_attention_count(&flow->map->attention, RBX_SLAB_REBUILDING) ||
	       keeper->may_differ || have_strayed;
}

void rbx_keeper_close(struct rbx_keeper *keeper)
{
	uint32_t i;

	if (!rbx_named_is_chosen(keeper->named) || any_may(keeper) || may_be_uneven(keeper))
		return;
	keeper->named->record.flags &= ~(uint32_t)RBX_WIRE_UNSURE;
	keeper->named->record.flags |= RBX_WIRE_EVEN;
	rbx_named_change(keeper->named);
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(&keeper->members, i))
			(void)rbx_named_accept(keeper->named,
					       rbx_peer_session(rbx_keeper_peer(keeper, i)));
}
