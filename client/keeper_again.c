/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_again.c - a server that has FAILED serves the volume again; see keeper.h.
 *
 * A thread of the host has connected it, in another place of the table, and it has granted the
 * volume once more in the epoch that it had promised. So no other client had it meanwhile, and
 * nothing of the session before can still be carried out. What it has it tells by its labels. A
 * server that was started anew with its memory file has the same loans, at other addresses.
 *
 * The upkeep thread then takes slab after slab from the former place. A slab is left where it is
 * while parts are under way to that place, which end soon: all that is sent there fails. So in the
 * end nothing refers to the former place any more, and it is free. A slab of which the server has
 * no label was being copied there: that replica is lost.
 *
 * If so many fail that another client may have opened the volume, nothing is sent any more. Then
 * all servers come in this way, also those that did not fail, and when enough have, the volume goes
 * on.
 *
 * A server that is started without its memory is another one, and does not come in this way.
 */
#include "client/keeper_state.h"
#include "client/session.h"
#include "core/labels.h"

/* ---- By the thread that has connected it --------------------------------------------------- */

/*
 * What was written while the server had FAILED counts as noted (core/extents.h), though it was not
 * asked to. So it notes that all may be written, before anything is.
 */
static int intents_fill(struct rbx_session *session, const struct rbx_returned *told)
{
	uint32_t i, j;
	int err = 0;

	for (i = 0; i < told->count && !err; i += j) {
		struct rbx_wire_message m = { .type = RBX_WIRE_INTENTS };

		for (j = 0; j < RBX_WIRE_INTENTS_MAX && i + j < told->count; j++)
			m.intents.intents[j] = (struct rbx_wire_intent){
				.slab_id = told->slabs[i + j].loan.slab_id,
				.epoch = told->slabs[i + j].loan.epoch,
				.word = UINT64_MAX,
				.behind = told->slabs[i + j].behind,
			};
		m.intents.count = j;
		err = rbx_session_talk(session, &m);
	}
	return err;
}

static int wait_for(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;

	rbx_monitor_enter(&newcomer->monitor);
	newcomer->server = server;
	newcomer->is_again = true;
	newcomer->failed_place = failed_place;
	newcomer->has_begun = false;
	rbx_monitor_leave(&newcomer->monitor);
	return rbx_keeper_newcomer_wait(keeper);
}

int rbx_keeper_again(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place)
{
	struct rbx_volume_server *there = &keeper->control->servers[server];
	struct rbx_session *session = rbx_peer_session(there->peer);
	int err = rbx_named_tell(keeper->named, session, &there->returned);

	if (!err)
		err = intents_fill(session, &there->returned);
	if (err)
		return err;
	err = wait_for(keeper, server, failed_place);
	rbx_returned_forget(&there->returned);
	if (err == -EAGAIN)
		return rbx_error(err, "server %s is being put out of volume %s",
				 rbx_session_name(session), keeper->named->record.name);
	return err ? rbx_error(err, "volume %s is being closed", keeper->named->record.name) : 0;
}

/* ---- By the upkeep thread -------------------------------------------------------------------- */

/* Returns whether it is still one that has not been put OUT, while it was connected. */
static bool begin(struct rbx_keeper *keeper)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	struct rbx_volume_control *control = keeper->control;

	if (!rbx_server_set_has(&keeper->members, newcomer->failed_place) ||
	    rbx_server_set_has(&keeper->going, newcomer->failed_place))
		return false;
	newcomer->has_begun = true;
	rbx_server_set_remove(&keeper->members, newcomer->failed_place);
	rbx_server_set_add(&keeper->members, newcomer->server);
	rbx_server_set_remove(&keeper->not_granted, newcomer->server);
	rbx_held_renew(&control->flow.held, newcomer->server);
	/* While another client may have the volume, what this one says does not count. */
	RBX_STORE_RELEASE(&control->servers[newcomer->server].is_shunned, keeper->is_over);
	rbx_upkeep_server_comes(&control->upkeep, newcomer->server);
	return true;
}

/* Returns whether nothing is left at the former place that the server has. */
static bool slabs_take(struct rbx_keeper *keeper)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	struct rbx_returned *told = &keeper->control->servers[newcomer->server].returned;
	bool is_all = true;
	uint32_t i;

	for (i = 0; i < told->count; i++) {
		struct rbx_returned_slab *slab = &told->slabs[i];
		const struct rbx_labels_told one = {
			.loan = slab->loan,
			.label = slab->label,
			.is_complete = slab->is_complete,
		};

		if (!slab->is_done)
			slab->is_done = rbx_labels_again(&keeper->control->upkeep,
							 newcomer->failed_place, newcomer->server,
							 &one) != -EAGAIN;
		is_all &= slab->is_done;
	}
	return is_all;
}

void rbx_keeper_again_go_on(struct rbx_keeper *keeper)
{
	struct rbx_newcomer *newcomer = &keeper->newcomer;
	struct rbx_volume_control *control = keeper->control;

	if (!newcomer->has_begun && !begin(keeper)) {
		rbx_keeper_newcomer_over(newcomer, -EAGAIN);
		return;
	}
	/* If the volume was over, its former place was not judged, and is not to become a suspect:
	 * the record would put the server out that is used at its new place. And what waits there
	 * to be judged would hold up its slabs. */
	rbx_flow_go_on(&control->flow,
		       rbx_held_failed(&control->flow.held, newcomer->failed_place));
	/* What it was asked at the former place ends before its labels count: what has no answer is
	 * owed then, and found with them. */
	if (rbx_upkeep_server_is_busy(&control->upkeep, newcomer->failed_place) ||
	    !slabs_take(keeper))
		return;
	RBX_STORE_RELEASE(&control->servers[newcomer->failed_place].has_failed, false);
	rbx_intents_not_wanted(&keeper->intents, newcomer->failed_place);
	rbx_upkeep_server_down(&control->upkeep, newcomer->failed_place);
	rbx_upkeep_server_added(&control->upkeep, newcomer->server);
	if (RBX_LOAD_ACQUIRE(&control->servers[newcomer->server].is_given_up)) /* meanwhile */
		rbx_held_suspect(&control->flow.held, newcomer->server);
	rbx_keeper_newcomer_over(newcomer, 0);
}
