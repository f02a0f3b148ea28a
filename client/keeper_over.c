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
#include "client/keeper.h"
#include "client/session.h"
#include "core/extents.h"

static struct rbx_flow *flow_of(const struct rbx_keeper *keeper)
{
	return &keeper->control->flow;
}

static struct rbx_peer *peer_at(const struct rbx_keeper *keeper, uint32_t server)
{
	return keeper->control->servers[server].peer;
}

/* ---- Whether it is over ------------------------------------------------------------------- */

/* Its answer counts for what is proposed. */
static bool has_vote(const struct rbx_keeper *keeper, uint32_t server)
{
	if (keeper->is_over && rbx_server_set_has(&keeper->former, server))
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
	const struct rbx_session *session = rbx_peer_session(peer_at(keeper, server));

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
		rbx_member_set_add(&there, rbx_peer_incarnation(peer_at(keeper, i)));
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
	keeper->former = keeper->members;
	keeper->control->upkeep.copies_least = 0; /* first writes fail like all others */
	for (i = 0; i < RBX_MEMBERS_MAX; i++, server++) {
		RBX_STORE_RELEASE(&server->is_shunned, true);
		if (rbx_server_set_has(&keeper->members, i) &&
		    !rbx_server_set_has(&keeper->going, i))
			RBX_STORE_RELEASE(&server->has_failed, true);
	}
	rbx_flow_go_on(flow_of(keeper), rbx_held_end(&flow_of(keeper)->held));
}

/* What waits to be sent would come too late. */
void rbx_keeper_lose(struct rbx_keeper *keeper)
{
	uint32_t i;

	(void)rbx_error(-ESTALE, "volume %s is read and written no more: %s",
			keeper->named->record.name,
			rbx_named_is_shut_out(keeper->named) ?
				"another client has opened it" :
				"too few of its servers answer in time");
	end(keeper);
	keeper->may_differ = true;
	rbx_extents_end(flow_of(keeper)->map);
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (rbx_server_set_has(&keeper->members, i))
			rbx_peer_renounce(peer_at(keeper, i), "the volume is another client's");
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
 * yet have FAILED. A record that was proposed is proposed again, as some may have accepted it.
 */
static void resume(struct rbx_keeper *keeper)
{
	struct rbx_volume_server *servers = keeper->control->servers;
	uint32_t i;

	RBX_STORE_RELAXED(&keeper->is_over, false);
	keeper->control->upkeep.copies_least = keeper->named->record.copies;
	rbx_held_resume(&flow_of(keeper)->held);
	rbx_extents_resume(flow_of(keeper)->map);
	for (i = 0; i < RBX_MEMBERS_MAX; i++) {
		if (!rbx_server_set_has(&keeper->members, i) ||
		    rbx_server_set_has(&keeper->going, i))
			continue;
		if (rbx_server_set_has(&keeper->former, i))
			rbx_keeper_failed(keeper, i);
		else
			RBX_STORE_RELEASE(&servers[i].is_shunned, false);
	}
	/* What is there is still being moved to the place of the same server (keeper_again.c). */
	if (keeper->newcomer.state == RBX_NEWCOMER_AGAIN && keeper->newcomer.has_begun)
		rbx_keeper_failed(keeper, keeper->newcomer.failed_place);
	if (!rbx_named_is_chosen(keeper->named))
		rbx_keeper_propose(keeper);
}

/* It is over: servers that have come again may be lost once more. */
static void former_note(struct rbx_keeper *keeper)
{
	struct rbx_volume_server *server = keeper->control->servers;
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++, server++) {
		if (!rbx_server_set_has(&keeper->members, i) ||
		    rbx_server_set_has(&keeper->going, i) ||
		    !RBX_LOAD_ACQUIRE(&server->is_given_up))
			continue;
		rbx_server_set_add(&keeper->former, i);
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
	former_note(keeper);
	if (keeper->newcomer.state == RBX_NEWCOMER_AGAIN)
		rbx_keeper_again_go_on(keeper);
	if (may_resume(keeper, now_ns))
		resume(keeper);
}
