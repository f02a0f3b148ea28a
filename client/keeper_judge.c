/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_judge.c - what becomes of servers that are suspects: OUT, or FAILED; see keeper.h.
 *
 * A server that is not needed is put OUT by a record that the others accept. One that has the last
 * copy of something, or without which no record would be accepted, has FAILED.
 */
#include "client/keeper_state.h"

#include "core/extents.h"
#include "core/last_copies.h"
#include "core/membership_change.h"

void rbx_keeper_failed(struct rbx_keeper *keeper, uint32_t server)
{
	keeper->may_differ = true;
	RBX_STORE_RELEASE(&keeper->control->servers[server].has_failed, true);
	/* It may have refused something and still be up. It comes again when it was given up. */
	rbx_peer_renounce(rbx_keeper_peer(keeper, server), "a request to it has failed, and no other server has all that it has");
	rbx_flow_go_on(rbx_keeper_flow(keeper),
		       rbx_held_failed(&rbx_keeper_flow(keeper)->held, server));
}

/* From here on it can only return. */
static void leaves(struct rbx_volume_server *server)
{
	RBX_STORE_RELEASE(&server->is_shunned, true);
	RBX_STORE_RELEASE(&server->has_failed, false);
}

void rbx_keeper_put_out(struct rbx_keeper *keeper, const struct rbx_server_set *servers,
			const struct rbx_membership *next)
{
	uint32_t i;

	keeper->going = *servers;
	/* Before they miss a write that is acknowledged. */
	rbx_extents_track(rbx_keeper_flow(keeper), true);
	/* Who accepts the record may let another client in, who does not ask these servers. So
	 * nothing is read there from now on, whatever becomes of us. */
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(servers, i))
			leaves(&keeper->control->servers[i]);
	rbx_named_change_to(keeper->named, next);
	rbx_keeper_propose(keeper);
}

bool rbx_keeper_is_acceptable(const struct rbx_keeper *keeper, const struct rbx_membership *next)
{
	struct rbx_volume_control *control = keeper->control;
	struct rbx_member_set away = { .count = 0 };
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (RBX_LOAD_ACQUIRE(&control->servers[i].has_failed))
			rbx_member_set_add(&away,
					   rbx_upkeep_server_incarnation(&control->upkeep, i));
	return rbx_membership_is_acceptable(next, &away);
}

/* The record would wait for ever for servers that it puts out, as these cannot come again then. So
 * they have FAILED, and the volume is over until enough of them are there again. */
static void too_many_failed(struct rbx_keeper *keeper, const struct rbx_server_set *servers)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(servers, i))
			rbx_keeper_failed(keeper, i);
}

static bool is_voter(struct rbx_membership *membership, uint64_t incarnation)
{
	const struct rbx_member *member = rbx_membership_find(membership, incarnation);

	return member && member->state == RBX_MEMBER_IN;
}

/* Puts servers that have failed out, if those that are left can accept that. */
static void failed_put_out(struct rbx_keeper *keeper, const struct rbx_server_set *servers)
{
	struct rbx_server_set going = { .words = { 0 } };
	struct rbx_membership next;
	uint32_t i;

	rbx_membership_next(&next, &keeper->named->proposer.membership);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		uint64_t incarnation;

		if (!rbx_server_set_has(servers, i))
			continue;
		incarnation = rbx_upkeep_server_incarnation(&keeper->control->upkeep, i);
		if (!is_voter(&next, incarnation)) {
			rbx_keeper_failed(keeper, i);
			continue;
		}
		rbx_membership_find(&next, incarnation)->state = RBX_MEMBER_OUT;
		rbx_server_set_add(&going, i);
	}
	if (!rbx_server_set_count(&going))
		return;
	if (!rbx_keeper_is_acceptable(keeper, &next)) {
		too_many_failed(keeper, &going);
		return;
	}
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(&going, i))
			rbx_peer_renounce(rbx_keeper_peer(keeper, i), "it is put out of the volume");
	rbx_record_copies_lose(&keeper->named->record, rbx_server_set_count(&going));
	rbx_keeper_put_out(keeper, &going, &next);
}

/* Those that have gone, and those that are silent and may go as well. */
static struct rbx_server_set not_up(const struct rbx_keeper *keeper)
{
	struct rbx_server_set set = keeper->gone;
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (!rbx_server_set_has(&keeper->members, i) ||
		    !rbx_peer_is_up(rbx_keeper_peer(keeper, i)))
			rbx_server_set_add(&set, i);
	return set;
}

/* Those that are to be judged. A newcomer that is given up is none of the volume's yet: it does not
 * come, and that is all. */
static bool suspects_take(struct rbx_keeper *keeper, struct rbx_server_set *suspects)
{
	struct rbx_held *held = &rbx_keeper_flow(keeper)->held;
	uint32_t i;

	(void)rbx_held_suspects(held, suspects, &keeper->gone);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		if (!rbx_server_set_has(suspects, i) || rbx_server_set_has(&keeper->members, i))
			continue;
		rbx_held_renew(held, i);
		rbx_server_set_remove(suspects, i);
	}
	return rbx_server_set_count(suspects) > 0;
}

bool rbx_keeper_judge(struct rbx_keeper *keeper, uint64_t now_ns)
{
	struct rbx_server_set suspects, needed = { .words = { 0 } }, unsure = needed, silent;
	bool any_waits = false;
	uint32_t i;

	if (!suspects_take(keeper, &suspects))
		return false;
	if (now_ns < keeper->judges_from_ns)
		return true;
	silent = not_up(keeper);
	rbx_last_copies_needed(rbx_keeper_flow(keeper), &keeper->gone, &needed);
	rbx_last_copies_needed(rbx_keeper_flow(keeper), &silent, &unsure);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		if (!rbx_server_set_has(&suspects, i) || !rbx_server_set_has(&unsure, i))
			continue;
		rbx_server_set_remove(&suspects, i);
		if (rbx_server_set_has(&needed, i))
			rbx_keeper_failed(keeper, i);
		else
			any_waits = true;
	}
	if (rbx_server_set_count(&suspects))
		failed_put_out(keeper, &suspects);
	return any_waits;
}
