/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_comer.c - servers that come to a named volume while it is open; see keeper.h.
 *
 * What was asked of a server that then does not come may still be accepted by it. That record was
 * told to nobody else, so it was never chosen, and the next one has a higher version.
 */
#include "client/keeper.h"
#include "client/newcomer.h"
#include "client/session.h"
#include "core/membership_change.h"

/* ---- By the thread that has connected it ---------------------------------------------- */

bool rbx_keeper_is_done_with(const struct rbx_keeper *keeper, uint32_t server)
{
	return !RBX_LOAD_ACQUIRE(&keeper->asks[server].is_out);
}

int rbx_keeper_welcome(struct rbx_named *named, struct rbx_session *session)
{
	enum rbx_membership_place place;

	rbx_lock(&named->lock);
	place = rbx_membership_place(&named->proposer.membership,
				     rbx_session_incarnation(session));
	rbx_unlock(&named->lock);
	if (place == RBX_PLACE_IN || place == RBX_PLACE_COMES)
		return rbx_error(-EEXIST, "server %s is one of the servers of volume %s already",
				 rbx_session_name(session), named->record.name);
	return rbx_newcomer_join(named, session);
}

int rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former)
{
	struct rbx_comer *comer = &keeper->comer;
	int err;

	rbx_monitor_enter(&comer->monitor);
	comer->server = server;
	comer->incarnation = keeper->control->upkeep.servers[server].incarnation;
	comer->former = former;
	comer->is_over = false;
	comer->is_new = true;
	rbx_monitor_leave(&comer->monitor);
	rbx_volume_upkeep_wake(keeper->control);
	rbx_monitor_enter(&comer->monitor);
	while (!comer->is_over)
		rbx_monitor_wait(&comer->monitor);
	err = comer->err;
	rbx_monitor_leave(&comer->monitor);
	return err ? rbx_error(err, "server %s does not become one of volume %s: the record that names it was not accepted",
			       rbx_peer_name(keeper->control->servers[server].peer),
			       keeper->named->record.name) :
		     0;
}

void rbx_keeper_take_no_more(struct rbx_keeper *keeper)
{
	rbx_monitor_enter(&keeper->comer.monitor);
	keeper->comer.is_closing = true;
	rbx_monitor_leave(&keeper->comer.monitor);
	rbx_volume_upkeep_wake(keeper->control);
}

/* ---- By the upkeep thread ---------------------------------------------------------------- */

static void over(struct rbx_comer *comer, int err)
{
	comer->state = RBX_COMER_NONE;
	rbx_monitor_enter(&comer->monitor);
	comer->err = err;
	comer->is_over = true;
	rbx_monitor_wake(&comer->monitor);
	rbx_monitor_leave(&comer->monitor);
}

/* Returns whether the volume is being closed. */
static bool news_take(struct rbx_comer *comer)
{
	bool is_closing;

	rbx_monitor_enter(&comer->monitor);
	if (comer->is_new)
		comer->state = RBX_COMER_WANTED;
	comer->is_new = false;
	is_closing = comer->is_closing;
	rbx_monitor_leave(&comer->monitor);
	return is_closing;
}

/* Nobody but the comer was asked. */
static void take_back(struct rbx_keeper *keeper)
{
	struct rbx_comer *comer = &keeper->comer;

	comer->state = RBX_COMER_WANTED;
	keeper->is_proposing = false;
	keeper->asks[comer->server].is_wanted = false;
	if (!rbx_named_is_shut_out(keeper->named))
		rbx_named_withdraw(keeper->named, &comer->before);
}

void rbx_keeper_comer_look(struct rbx_keeper *keeper, bool any_suspects)
{
	struct rbx_comer *comer = &keeper->comer;
	bool is_closing = news_take(comer);

	if (comer->state == RBX_COMER_ALONE && (any_suspects || is_closing))
		take_back(keeper);
	if (comer->state == RBX_COMER_NONE || keeper->asks[comer->server].is_out)
		return;
	if (keeper->is_over || (comer->state == RBX_COMER_WANTED && is_closing))
		over(comer, -ECANCELED);
}

void rbx_keeper_comer_begin(struct rbx_keeper *keeper)
{
	struct rbx_comer *comer = &keeper->comer;
	struct rbx_membership next;

	if (comer->state != RBX_COMER_WANTED || keeper->asks[comer->server].is_out)
		return;
	comer->before = keeper->named->proposer.membership;
	rbx_membership_next(&next, &comer->before);
	rbx_membership_forget(&next, comer->former);
	if (!rbx_membership_add(&next, comer->incarnation)) {
		over(comer, -ENOSPC);
		return;
	}
	rbx_named_change_to(keeper->named, &next);
	comer->state = RBX_COMER_ALONE;
	keeper->is_proposing = true;
	keeper->again_ns = 0;
	keeper->asks[comer->server].is_wanted = true;
}

bool rbx_keeper_comer_answered(struct rbx_keeper *keeper, int err)
{
	struct rbx_comer *comer = &keeper->comer;

	if (!err) {
		comer->state = RBX_COMER_NAMED;
		return true;
	}
	take_back(keeper);
	over(comer, err);
	return false;
}

void rbx_keeper_comer_chosen(struct rbx_keeper *keeper)
{
	struct rbx_volume_control *control = keeper->control;
	struct rbx_comer *comer = &keeper->comer;
	uint32_t server = comer->server;

	if (comer->state != RBX_COMER_NAMED)
		return;
	rbx_held_renew(&control->flow.held, server);
	RBX_STORE_RELEASE(&control->servers[server].is_shunned, false);
	rbx_server_set_add(&keeper->members, server);
	rbx_upkeep_server_added(&control->upkeep, server);
	if (RBX_LOAD_ACQUIRE(&control->servers[server].is_given_up)) /* meanwhile */
		rbx_held_suspect(&control->flow.held, server);
	over(comer, 0);
}
