/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_over.c - when no record is accepted any more a named volume is over, and may go on later;
 * see keeper.h.
 *
 * Too few servers answer, or another client has opened the volume. Then that one may write, or
 * soon, so nothing is sent any more, and the connections end. All servers are asked for the volume
 * once more (keeper_again.c). When so many have granted it that no other client can have had it, it
 * goes on.
 *
 * If a record was proposed that names a newcomer, some may have accepted it. So it is proposed once
 * more, and the newcomer, which does not come, is put OUT by the next one. It may return then.
 */
#include "client/keeper_state.h"
#include "client/session.h"
#include "core/extents.h"

/* ---- Whether it is over ------------------------------------------------------------------- */

/* Its answer counts for what is proposed. */
static bool has_vote(const struct rbx_keeper *keeper, uint32_t server)
{
	if (keeper->is_over && rbx_server_set_has(&keeper->not_granted, server))
		return false;
	return rbx_server_set_has(&keeper->members, server) ||
	       (keeper->newcomer.state == RBX_NEWCOMER_NAMED && keeper->newcomer.server == server);
}

/*
 * A server counts for three quarters of a lease after something was sent to it that it has
 * answered: half a lease, after which the connection counts as lost (core/lease.h), and time to
 * resume for a program that was stopped. Its peer may take longer to give it up.
 */
static uint64_t counts_until_ns(const struct rbx_keeper *keeper, uint32_t server)
{
	const struct rbx_session *session = rbx_peer_session(rbx_keeper_peer(keeper, server));

	if (RBX_LOAD_ACQUIRE(&keeper->control->servers[server].is_given_up))
		return 0;
	return rbx_session_lease_half_ns(session) + rbx_session_lease_ns(session) / 4;
}

bool rbx_keeper_has_lost_the_volume(const struct rbx_keeper *keeper, uint64_t now_ns,
				    uint64_t *again_ns)
{
	struct rbx_member_set there = { .count = 0 };
	uint64_t until_ns;
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		until_ns = has_vote(keeper, i) ? counts_until_ns(keeper, i) : 0;
		if (until_ns <= now_ns)
			continue;
		rbx_member_set_add(&there, rbx_peer_incarnation(rbx_keeper_peer(keeper, i)));
		*again_ns = RBX_MIN(*again_ns, until_ns);
	}
	/* What only a newcomer was asked to accept can be taken back. */
	return !rbx_membership_can_change(keeper->newcomer.state == RBX_NEWCOMER_ALONE ?
						  &keeper->newcomer.before :
						  &keeper->named->proposer.membership,
					  &there);
}

/* ---- It is over ----------------------------------------------------------------------------- */

/* No record will be accepted, so another client may have the volume, now or soon. All servers are
 * asked for it once more (keeper_again.c). */
static void end(struct rbx_keeper *keeper)
{
	struct rbx_volume_server *server = keeper->control->servers;
	uint32_t i;

	RBX_STORE_RELAXED(&keeper->is_over, true);
	keeper->is_proposing = false;
	if (keeper->newcomer.state == RBX_NEWCOMER_NAMED)
		keeper->absent = keeper->newcomer.incarnation;
	keeper->not_granted = keeper->members;
	for (i = 0; i < RBX_MEMBERS_MAX; i++, server++) {
		RBX_STORE_RELEASE(&server->is_shunned, true);
		if (rbx_server_set_has(&keeper->members, i) &&
		    !rbx_server_set_has(&keeper->going, i))
			RBX_STORE_RELEASE(&server->has_failed, true);
	}
	rbx_flow_go_on(rbx_keeper_flow(keeper), rbx_held_end(&rbx_keeper_flow(keeper)->held));
}

/* A member that was given up, and why; NULL: they have only not answered in time. */
static struct rbx_peer *lost_first(const struct rbx_keeper *keeper)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(&keeper->members, i) &&
		    RBX_LOAD_ACQUIRE(&keeper->control->servers[i].is_given_up))
			return rbx_keeper_peer(keeper, i);
	return NULL;
}

static void why_note(struct rbx_keeper *keeper)
{
	const struct rbx_peer *lost = lost_first(keeper);
	char why[RBX_ERROR_BYTES];

	if (rbx_named_is_shut_out(keeper->named)) {
		rbx_named_stopped(keeper->named, "", "another client has opened it", false);
		return;
	}
	snprintf(why, sizeof(why), "too few of its servers answer in time%s%s",
		 lost ? "; " : "", lost ? rbx_peer_reason(lost) : "");
	rbx_named_stopped(keeper->named, lost ? rbx_peer_name(lost) : "", why, false);
}

static void stop_tell(struct rbx_keeper *keeper)
{
	char server[RBX_STOP_SERVER_BYTES], why[RBX_ERROR_BYTES];

	if (rbx_named_stop_take(keeper->named, server, why))
		rbx_volume_stopped(keeper->control, server, why);
}

/* What waits to be sent would come too late. */
void rbx_keeper_lose(struct rbx_keeper *keeper)
{
	uint32_t i;

	why_note(keeper);
	end(keeper);
	keeper->may_differ = true;
	rbx_extents_end(rbx_keeper_flow(keeper)->map);
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(&keeper->members, i))
			rbx_peer_renounce(rbx_keeper_peer(keeper, i), "the volume is another client's");
}

void rbx_keeper_end(struct rbx_keeper *keeper)
{
	keeper->is_closed = true;
	end(keeper);
}

/* ---- It goes on ----------------------------------------------------------------------------- */

/*
 * So many servers have granted the volume once more, in the same epoch, that no other client can
 * have opened it since: each of those would have promised it a later one. Those that have not come
 * yet are suspects, but may come for a while before they are judged. A record that was proposed is
 * proposed again, as some may have accepted it.
 */
static void resume(struct rbx_keeper *keeper, uint64_t now_ns)
{
	struct rbx_volume_server *servers = keeper->control->servers;
	uint32_t i;

	RBX_STORE_RELAXED(&keeper->is_over, false);
	rbx_named_not_stopped(keeper->named);
	rbx_volume_goes_on(keeper->control);
	keeper->judges_from_ns = now_ns + rbx_upkeep_timeout_ns(&keeper->control->upkeep);
	rbx_held_resume(&rbx_keeper_flow(keeper)->held);
	rbx_extents_resume(rbx_keeper_flow(keeper)->map);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		if (!rbx_server_set_has(&keeper->members, i) ||
		    rbx_server_set_has(&keeper->going, i))
			continue;
		if (rbx_server_set_has(&keeper->not_granted, i))
			rbx_held_suspect(&rbx_keeper_flow(keeper)->held, i);
		else
			RBX_STORE_RELEASE(&servers[i].is_shunned, false);
	}
	if (!rbx_named_is_chosen(keeper->named))
		rbx_keeper_propose(keeper);
}

/* It is over: servers that have come again may be lost once more. */
static void not_granted_note(struct rbx_keeper *keeper)
{
	struct rbx_volume_server *server = keeper->control->servers;
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++, server++) {
		if (!rbx_server_set_has(&keeper->members, i) ||
		    rbx_server_set_has(&keeper->going, i) ||
		    !RBX_LOAD_ACQUIRE(&server->is_given_up))
			continue;
		rbx_server_set_add(&keeper->not_granted, i);
		RBX_STORE_RELEASE(&server->has_failed, true);
	}
}

static bool may_resume(const struct rbx_keeper *keeper, uint64_t now_ns)
{
	uint64_t again_ns = UINT64_MAX;

	return !keeper->is_closed && !rbx_named_is_shut_out(keeper->named) &&
	       !rbx_keeper_has_lost_the_volume(keeper, now_ns, &again_ns);
}

void rbx_keeper_over_go_on(struct rbx_keeper *keeper, uint64_t now_ns)
{
	not_granted_note(keeper);
	if (keeper->newcomer.state == RBX_NEWCOMER_AGAIN)
		rbx_keeper_again_go_on(keeper);
	if (may_resume(keeper, now_ns))
		resume(keeper, now_ns);
	else
		stop_tell(keeper);
}
