/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_newcomer.c - servers that come to a named volume while it is open; see keeper.h.
 *
 * What was asked of a server that then does not come may still be accepted by it. That record was
 * told to nobody else, so it was never chosen, and the next one has a higher version.
 */
#include "client/keeper_state.h"
#include "client/newcomer.h"
#include "client/session.h"
#include "core/membership_change.h"

/* ---- By the thread that has connected it ---------------------------------------------- */

bool rbx_keeper_is_done_with(const struct rbx_keeper *keeper, uint32_t server)
{
	/* In this order: it is not asked any more once it is not to be told. */
	return !RBX_LOAD_ACQUIRE(&keeper->asks[server].is_to_be_told) &&
	       !RBX_LOAD_ACQUIRE(&keeper->asks[server].is_asked) &&
	       rbx_intents_is_done_with(&keeper->intents, server);
}

bool rbx_keeper_any_is_out(struct rbx_named *named)
{
	struct rbx_membership *membership = &named->proposer.membership;
	bool any = false;
	uint32_t i;

	rbx_lock(&named->lock);
	for (i = 0; i < membership->count && !any; i++)
		any = membership->members[i].state == RBX_MEMBER_OUT;
	rbx_unlock(&named->lock);
	return any;
}

bool rbx_keeper_is_out(struct rbx_named *named, uint64_t incarnation)
{
	bool is;

	rbx_lock(&named->lock);
	is = rbx_membership_place(&named->proposer.membership, incarnation) == RBX_PLACE_OUT;
	rbx_unlock(&named->lock);
	return is;
}

/* What a server has is needed until a record was chosen in which it is OUT; and its vote, until the
 * next one was chosen, before which it was not IN. */
static bool is_on_its_way_out(struct rbx_named *named, uint64_t incarnation,
			      enum rbx_membership_place *place)
{
	struct rbx_membership *membership = &named->proposer.membership;
	bool is;

	rbx_lock(&named->lock);
	*place = rbx_membership_place(membership, incarnation);
	is = *place == RBX_PLACE_OUT && (rbx_membership_find(membership, incarnation)->was_in ||
					 !rbx_named_is_chosen(named));
	rbx_unlock(&named->lock);
	return is;
}

int rbx_keeper_welcome(struct rbx_named *named, struct rbx_session *session, bool returns,
		       struct rbx_returned *returned)
{
	enum rbx_membership_place place;

	if (is_on_its_way_out(named, rbx_session_incarnation(session), &place))
		return rbx_error(-EAGAIN, "server %s is being put out of volume %s",
				 rbx_session_name(session), named->record.name);
	if (place == RBX_PLACE_IN || place == RBX_PLACE_COMES)
		return rbx_error(-EEXIST, "server %s is one of the servers of volume %s already",
				 rbx_session_name(session), named->record.name);
	if (rbx_session_drains(session)) {
		if (place == RBX_PLACE_OUT)
			rbx_newcomer_spare(named, session);
		return rbx_error(-ENOSPC, "server %s drains: it lends nothing to volume %s",
				 rbx_session_name(session), named->record.name);
	}
	if (returns && place == RBX_PLACE_NOT)
		return rbx_error(-ENOENT, "server %s was none of the servers of volume %s",
				 rbx_session_name(session), named->record.name);
	return place == RBX_PLACE_OUT ? rbx_newcomer_return(named, session, returned) :
				      rbx_newcomer_join(named, session);
}

/* The last place is for all for which there is no other. */
void rbx_keeper_former_note(struct rbx_keeper *keeper, const char *address, uint64_t incarnation)
{
	struct rbx_former *former = keeper->formers;
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX - 1; i++, former++)
		if (!former->incarnation || !strcmp(former->address, address))
			break;
	former->incarnation = incarnation;
	rbx_text_copy(former->address, sizeof(former->address), address);
}

uint64_t rbx_keeper_former_at(const struct rbx_keeper *keeper, const char *address)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (keeper->formers[i].incarnation && !strcmp(keeper->formers[i].address, address))
			return keeper->formers[i].incarnation;
	return 0;
}

void rbx_keeper_former_drop(struct rbx_keeper *keeper, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		if (keeper->formers[i].incarnation == incarnation)
			keeper->formers[i].incarnation = 0;
}

int rbx_keeper_newcomer_wait(struct rbx_keeper *keeper)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	int err;

	rbx_monitor_enter(&newcomer->monitor);
	newcomer->is_over = false;
	newcomer->is_new = true;
	rbx_monitor_leave(&newcomer->monitor);
	rbx_volume_upkeep_wake(keeper->control);
	rbx_monitor_enter(&newcomer->monitor);
	while (!newcomer->is_over)
		rbx_monitor_wait(&newcomer->monitor);
	err = newcomer->err;
	rbx_monitor_leave(&newcomer->monitor);
	return err;
}

int rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	int err;

	rbx_monitor_enter(&newcomer->monitor);
	newcomer->server = server;
	newcomer->incarnation =
		rbx_upkeep_server_incarnation(&keeper->control->upkeep, server);
	newcomer->former = former;
	newcomer->is_again = false;
	rbx_monitor_leave(&newcomer->monitor);
	err = rbx_keeper_newcomer_wait(keeper);
	if (!err)
		rbx_returned_give_back(&keeper->control->servers[server].returned,
				       rbx_peer_session(keeper->control->servers[server].peer));
	return err ? rbx_error(err, "server %s does not become one of volume %s: the record that names it was not accepted",
			       rbx_peer_name(keeper->control->servers[server].peer),
			       keeper->named->record.name) :
		     0;
}

void rbx_keeper_take_no_more(struct rbx_keeper *keeper)
{
	rbx_monitor_enter(&keeper->newcomer.monitor);
	keeper->newcomer.is_closing = true;
	rbx_monitor_leave(&keeper->newcomer.monitor);
	rbx_volume_upkeep_wake(keeper->control);
}

/* ---- By the upkeep thread ---------------------------------------------------------------- */

void rbx_keeper_newcomer_over(struct rbx_newcomer *newcomer, int err)
{
	newcomer->state = RBX_NEWCOMER_NONE;
	rbx_monitor_enter(&newcomer->monitor);
	newcomer->err = err;
	newcomer->is_over = true;
	rbx_monitor_wake(&newcomer->monitor);
	rbx_monitor_leave(&newcomer->monitor);
}

/* Returns whether the volume is being closed. */
static bool news_take(struct rbx_newcomer *newcomer)
{
	bool is_closing;

	rbx_monitor_enter(&newcomer->monitor);
	if (newcomer->is_new)
		newcomer->state = newcomer->is_again ? RBX_NEWCOMER_AGAIN : RBX_NEWCOMER_WANTED;
	newcomer->is_new = false;
	is_closing = newcomer->is_closing;
	rbx_monitor_leave(&newcomer->monitor);
	return is_closing;
}

/* Nobody but the newcomer was asked. */
static void take_back(struct rbx_keeper *keeper)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;

	newcomer->state = RBX_NEWCOMER_WANTED;
	keeper->is_proposing = false;
	keeper->asks[newcomer->server].is_wanted = false;
	if (!rbx_named_is_shut_out(keeper->named))
		rbx_named_withdraw(keeper->named, &newcomer->before);
}

void rbx_keeper_newcomer_look(struct rbx_keeper *keeper, bool any_suspects)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	bool is_closing = news_take(newcomer);

	if (newcomer->state == RBX_NEWCOMER_ALONE &&
	    (any_suspects || is_closing || keeper->is_over))
		take_back(keeper);
	if (newcomer->state == RBX_NEWCOMER_AGAIN && is_closing)
		rbx_keeper_newcomer_over(newcomer, newcomer->has_begun ? 0 : -ECANCELED);
	if (newcomer->state == RBX_NEWCOMER_NONE || keeper->asks[newcomer->server].is_asked)
		return;
	if ((keeper->is_over && newcomer->state != RBX_NEWCOMER_AGAIN) ||
	    (newcomer->state == RBX_NEWCOMER_WANTED && is_closing))
		rbx_keeper_newcomer_over(newcomer, -ECANCELED);
}

void rbx_keeper_newcomer_begin(struct rbx_keeper *keeper)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	struct rbx_membership next;

	if (newcomer->state != RBX_NEWCOMER_WANTED || keeper->asks[newcomer->server].is_asked)
		return;
	newcomer->before = keeper->named->proposer.membership;
	rbx_membership_next(&next, &newcomer->before);
	rbx_membership_forget(&next, newcomer->former);
	if (!rbx_membership_add(&next, newcomer->incarnation)) {
		rbx_keeper_newcomer_over(newcomer, -ENOSPC);
		return;
	}
	rbx_named_change_to(keeper->named, &next);
	newcomer->state = RBX_NEWCOMER_ALONE;
	keeper->is_proposing = true;
	keeper->again_ns = 0;
	keeper->asks[newcomer->server].is_wanted = true;
}

/* It has nothing, so there are as many copies as before. */
void rbx_keeper_absent_put_out(struct rbx_keeper *keeper)
{
	const struct rbx_server_set none = { .words = { 0 } };
	struct rbx_membership next;
	struct rbx_member *member;

	rbx_membership_next(&next, &keeper->named->proposer.membership);
	member = rbx_membership_find(&next, keeper->absent);
	keeper->absent = 0;
	if (!member)
		return;
	member->state = RBX_MEMBER_OUT;
	rbx_keeper_put_out(keeper, &none, &next);
}

bool rbx_keeper_newcomer_answered(struct rbx_keeper *keeper, int err)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;

	if (!err) {
		newcomer->state = RBX_NEWCOMER_NAMED;
		return true;
	}
	take_back(keeper);
	rbx_keeper_newcomer_over(newcomer, err);
	return false;
}

void rbx_keeper_newcomer_chosen(struct rbx_keeper *keeper)
{
	struct rbx_volume_control *control = keeper->control;
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	uint32_t server = newcomer->server;

	if (newcomer->state != RBX_NEWCOMER_NAMED)
		return;
	rbx_held_renew(&control->flow.held, server);
	RBX_STORE_RELEASE(&control->servers[server].is_shunned, false);
	rbx_server_set_add(&keeper->members, server);
	/* Before anything is borrowed there in place of that. */
	(void)rbx_returned_take(&control->servers[server].returned, &control->upkeep, server);
	rbx_upkeep_server_added(&control->upkeep, server);
	if (RBX_LOAD_ACQUIRE(&control->servers[server].is_given_up)) /* meanwhile */
		rbx_held_suspect(&control->flow.held, server);
	rbx_keeper_newcomer_over(newcomer, 0);
}
