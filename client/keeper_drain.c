/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_drain.c - servers that drain leave a named volume while it is open; see keeper.h.
 *
 * A server that drains says so, and ends soon. What it has moves to the others (upkeep.h). Then it
 * is put OUT in a record that says as many copies as before, for it has none. If it ended as a
 * member that is IN, and the record said one copy, nobody could open the volume without it.
 *
 * It waits until it has heard of that, but for no longer than its drain lasts. So it is told when
 * the next record was chosen, which needs no vote of it: not before, or it could take a vote away
 * that the next client needs.
 *
 * If no other server takes what it has, it ends like one that dies, and is judged as such (held.h).
 */
#include "client/keeper_state.h"

#include "client/session.h"
#include "core/status.h"

#define LOOK_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)

static bool drains(const struct rbx_keeper *keeper, uint32_t server)
{
	/* Who is at another place is not this thread's to look at (joining.h). */
	return rbx_server_set_has(&keeper->members, server) &&
	       !rbx_server_set_has(&keeper->gone, server) &&
	       rbx_session_drains(rbx_peer_session(keeper->control->servers[server].peer));
}

uint64_t rbx_keeper_drains_look(struct rbx_keeper *keeper, uint64_t now_ns)
{
	struct rbx_upkeep *upkeep = &keeper->control->upkeep;
	bool any = false;
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		bool is_left = rbx_upkeep_server_leaves(upkeep, i);

		if (!drains(keeper, i) || (is_left && rbx_upkeep_server_is_empty(upkeep, i)))
			continue;
		any = true;
		/* What could not leave then may be able to now. It looks at all slabs. */
		if (!is_left || now_ns >= keeper->drains_again_ns)
			(void)rbx_upkeep_server_leave(upkeep, i);
	}
	if (any && now_ns >= keeper->drains_again_ns)
		keeper->drains_again_ns = now_ns + LOOK_NS;
	return any ? keeper->drains_again_ns : UINT64_MAX;
}

void rbx_keeper_drains_begin(struct rbx_keeper *keeper)
{
	struct rbx_upkeep *upkeep = &keeper->control->upkeep;
	struct rbx_server_set empty = { .words = { 0 } };
	struct rbx_membership next;
	uint32_t i;

	rbx_membership_next(&next, &keeper->named->proposer.membership);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		struct rbx_member *member;

		if (!drains(keeper, i) || !rbx_upkeep_server_leaves(upkeep, i) ||
		    !rbx_upkeep_server_is_empty(upkeep, i))
			continue;
		/* Those of other places may be written by the thread that adds servers. */
		member = rbx_membership_find(&next, rbx_upkeep_server_incarnation(upkeep, i));
		if (!member || member->state != RBX_MEMBER_IN)
			continue;
		member->state = RBX_MEMBER_OUT;
		if (rbx_keeper_is_acceptable(keeper, &next))
			rbx_server_set_add(&empty, i);
		else /* with the next record, or never: the last one stays */
			member->state = RBX_MEMBER_IN;
	}
	if (rbx_server_set_count(&empty))
		rbx_keeper_put_out(keeper, &empty, &next);
}

void rbx_keeper_drained(struct rbx_keeper *keeper, uint32_t server)
{
	struct rbx_keeper_ask *one = &keeper->asks[server];

	if (!drains(keeper, server))
		return;
	keeper->control->servers[server].has_drained = true;
	one->tell_version = UINT64_MAX;
	RBX_STORE_RELEASE(&one->is_to_be_told, true);
}

/* The record that was chosen last names it OUT, and needs no vote of it. */
void rbx_keeper_drains_tell(struct rbx_keeper *keeper)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		if (!keeper->asks[i].is_to_be_told)
			continue;
		keeper->asks[i].is_wanted = true;
		keeper->asks[i].tell_version = RBX_MIN(keeper->asks[i].tell_version,
						       keeper->named->record.version);
		keeper->again_ns = 0;
	}
}

bool rbx_keeper_drains_wait(const struct rbx_keeper *keeper)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (keeper->asks[i].is_to_be_told && keeper->asks[i].is_wanted)
			return true;
	return false;
}

bool rbx_keeper_drained_answered(struct rbx_keeper *keeper, uint32_t server, int err)
{
	const struct rbx_volume_server *there = &keeper->control->servers[server];
	struct rbx_keeper_ask *one = &keeper->asks[server];

	if (!one->is_to_be_told)
		return false;
	/* It may have been asked for a record before, and answer only now. */
	if ((one->version >= one->tell_version && !rbx_status_is_away(err)) ||
	    RBX_LOAD_ACQUIRE(&there->is_given_up)) {
		one->is_wanted = false; /* whatever the record says by now */
		RBX_STORE_RELEASE(&one->is_to_be_told, false);
	}
	return true;
}
