/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_first.c - the first writes of a slab, see upkeep_slab.h: servers are asked for all its
 * replicas at once, and the writes that wait begin with those that were lent.
 *
 * If none was lent, or too few, the writes go on waiting or fail: upkeep.h says how long for whom.
 * A slab of a named volume that a server may have labelled without saying so is owed, or dead.
 */
#include "core/upkeep_slab.h"

#include "core/borrow.h"
#include "core/extents.h"
#include "core/loans.h"
#include "core/slab_spare.h"
#include "core/status.h"

static void note(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
}

/* A dead slab needs memory for its pages before it is placed; 0 or -ENOMEM. */
static int place(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_lost_pages *pages = NULL;
	bool wanted;

	rbx_slab_lock(slab);
	wanted = rbx_slab_wants_pages(slab);
	rbx_slab_unlock(slab);
	if (wanted)
		pages = upkeep->ops->memory_lend(
			upkeep, rbx_lost_pages_size(rbx_slab_shape(slab)->slab_shift));
	if (wanted && !pages)
		return -ENOMEM;
	rbx_slab_lock(slab);
	if (pages)
		rbx_slab_lend_pages(slab, pages);
	rbx_slab_place(slab);
	rbx_slab_unlock(slab);
	return 0;
}

/* Its waiting writes go on with what was lent, or end. */
static void begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab, int err)
{
	struct rbx_piece_list todo = { 0 };

	rbx_slab_lock(slab);
	rbx_extents_begin(slab);
	rbx_slab_begin(slab, err, &todo);
	note(upkeep, slab);
	rbx_slab_unlock(slab);
	rbx_flow_do(upkeep->flow, &todo);
}

static bool is_blank(struct rbx_slab *slab)
{
	bool blank;

	rbx_slab_lock(slab);
	blank = slab->blank;
	rbx_slab_unlock(slab);
	return blank;
}

/*
 * No server has lent for the first writes of a slab. Those of a blank slab go on waiting for
 * a silent server, as writes to one of its replicas do: it comes back, or counts as down in
 * time. They wait for a server that is there and does not lend no longer than
 * rbx_upkeep_lend_ns().
 */
static enum rbx_slab_outcome lend_failed(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
					 int err, uint64_t since_ns, bool is_overdue)
{
	bool was_blank = is_blank(slab);

	if (rbx_status_is_away(err) && RBX_LOAD_RELAXED(&upkeep->is_closing))
		err = -ECANCELED;
	if (!was_blank || !rbx_status_is_away(err) || is_overdue) {
		begin(upkeep, slab, err);
		return RBX_OUTCOME_DONE;
	}
	if (err == -ENOTCONN)
		upkeep->in_vain_since_ns = 0;
	else if (!upkeep->in_vain_since_ns)
		upkeep->in_vain_since_ns = since_ns;
	return RBX_OUTCOME_WAITS;
}

/* A first write would get what is allowed by no record, and fail like all others. */
static bool is_over(struct rbx_upkeep *upkeep)
{
	return rbx_held_has_ended(&upkeep->flow->held);
}

enum rbx_slab_outcome rbx_upkeep_lend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	int err = rbx_asks_room(upkeep) ? 0 : -EAGAIN;

	/* A blank one stays blank, and can be had when records are accepted again, or when it is
	 * known that no server has labelled it. */
	if (rbx_slab_shape(slab)->is_named &&
	    (!is_blank(slab) || is_over(upkeep) ||
	     rbx_loans_label_owed(upkeep, slab) == -EIO)) {
		begin(upkeep, slab, -ENODEV);
		return RBX_OUTCOME_DONE;
	}
	if (rbx_loans_label_owed(upkeep, slab))
		return RBX_OUTCOME_WAITS;
	if (!err)
		err = place(upkeep, slab);
	if (!err)
		err = rbx_borrow_begin(upkeep, slab, RBX_REPLICA_LIVE,
				       upkeep->flow->map->shape.replicas,
				       RBX_LIST_LEND);
	if (!err || err == -EAGAIN)
		return rbx_upkeep_outcome(upkeep, err);
	return lend_failed(upkeep, slab, err == -ENOSPC ? -ENODEV : err,
			   upkeep->now_ns, false);
}

/* Replicas at servers that are down are lost, even if no round has handled that yet: a write
 * that is sent only there would fail. */
static void down_lose(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t slot, server;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		if (rbx_slab_state(slab, slot) != RBX_REPLICA_LIVE)
			continue;
		server = rbx_replica_server(rbx_slab_replica(slab, slot));
		if (rbx_upkeep_server_is_down(upkeep, server))
			(void)rbx_slab_server_down(slab, server);
	}
}

/* Whether a loan is still valid: its server may be dead, or may have lent the same memory again. */
static bool is_on_loan(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	bool is_so;

	rbx_slab_lock(slab);
	down_lose(upkeep, slab);
	is_so = rbx_slab_find(slab, RBX_REPLICA_LIVE) >= 0;
	rbx_slab_unlock(slab);
	return is_so;
}

/* A slab that a server may have, of a named volume. What others have lent is all zeros, and is owed
 * as well: it is lent anew when all of them have taken it back, or are out. With one replica it is
 * of use to nobody until the next client asks the servers. */
static void uncertain(struct rbx_slab *slab, bool is_hopeless)
{
	rbx_slab_lock(slab);
	rbx_slab_abandon(slab);
	slab->blank &= !is_hopeless;
	rbx_slab_unlock(slab);
}

/* Whether somebody has lent it that will not be put out: the record that does so was proposed
 * without a look at this slab (held.h). */
static bool is_sound(struct rbx_upkeep *upkeep, const struct rbx_borrowing *borrowing)
{
	struct rbx_server_set suspects, gone, have = { .words = { 0 } };
	uint32_t i;

	if (!rbx_slab_shape(borrowing->slab)->is_guarded || !borrowing->lent_count)
		return true;
	(void)rbx_held_suspects(&upkeep->flow->held, &suspects, &gone);
	rbx_slab_lock(borrowing->slab);
	(void)rbx_slab_servers(borrowing->slab, &have);
	rbx_slab_unlock(borrowing->slab);
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		if (have.words[i] & ~gone.words[i])
			return true;
	return false;
}

static uint32_t lent_count(struct rbx_slab *slab)
{
	uint32_t count;

	rbx_slab_lock(slab);
	count = rbx_slab_count(slab, RBX_REPLICA_LIVE);
	rbx_slab_unlock(slab);
	return count;
}

uint32_t rbx_upkeep_short_of_copies(struct rbx_upkeep *upkeep)
{
	uint32_t i, fewest = 0;

	for (i = 0; i < RBX_ASKS_MAX && upkeep->borrowings_count; i++) {
		const struct rbx_borrowing *borrowing = &upkeep->borrowings[i];
		uint32_t count;

		if (!borrowing->slab || !borrowing->is_short)
			continue;
		count = lent_count(borrowing->slab);
		fewest = fewest ? RBX_MIN(fewest, count) : count;
	}
	return fewest;
}

enum rbx_slab_outcome rbx_upkeep_lend_over(struct rbx_upkeep *upkeep,
					   const struct rbx_borrowing *borrowing)
{
	if (borrowing->is_uncertain || !is_sound(upkeep, borrowing)) {
		uncertain(borrowing->slab, borrowing->is_hopeless);
		return RBX_OUTCOME_DONE;
	}
	if (rbx_borrow_waits(upkeep, borrowing))
		return RBX_OUTCOME_LACKS_SERVERS;
	if (!borrowing->lent_count)
		return lend_failed(upkeep, borrowing->slab, borrowing->err,
				   borrowing->since_ns, borrowing->is_overdue);
	if (!is_on_loan(upkeep, borrowing->slab)) {
		/* The server that is down has it all the same, unless the record says otherwise. */
		if (rbx_slab_shape(borrowing->slab)->is_named &&
		    !rbx_slab_shape(borrowing->slab)->is_guarded)
			uncertain(borrowing->slab, true);
		return lend_failed(upkeep, borrowing->slab, -ENOTCONN,
				   borrowing->since_ns, borrowing->is_overdue);
	}
	if (lent_count(borrowing->slab) < upkeep->copies_least) {
		bool is_closing = RBX_LOAD_RELAXED(&upkeep->is_closing);

		if (!is_closing && !is_over(upkeep))
			return RBX_OUTCOME_SHORT;
		uncertain(borrowing->slab, false);
		begin(upkeep, borrowing->slab, is_closing ? -ECANCELED : -ENODEV);
		return RBX_OUTCOME_DONE;
	}
	upkeep->in_vain_since_ns = 0;
	begin(upkeep, borrowing->slab, borrowing->err);
	return RBX_OUTCOME_DONE;
}

/* First writes wait no longer: those of so many slabs in a round. Returns whether that was all. */
static bool waits_end(struct rbx_upkeep *upkeep, int err)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint32_t i;

	for (i = 0; i < RBX_UPKEEP_LOOKS_MAX; i++) {
		struct rbx_slab *slab =
			rbx_attention_first(attention, RBX_LIST_LEND_WAITS);

		if (!slab)
			return true;
		begin(upkeep, slab, err);
		rbx_attention_relist(attention, slab, RBX_PARK_NOT);
	}
	return false;
}

uint64_t rbx_upkeep_waits_tick(struct rbx_upkeep *upkeep, bool *more)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint64_t end_ns = upkeep->in_vain_since_ns + rbx_upkeep_lend_ns(upkeep);

	if (RBX_LOAD_RELAXED(&upkeep->is_closing))
		*more |= !waits_end(upkeep, -ECANCELED);
	if (!rbx_attention_length(attention, RBX_LIST_LEND_WAITS))
		upkeep->in_vain_since_ns = 0;
	if (!upkeep->in_vain_since_ns)
		return UINT64_MAX;
	if (upkeep->now_ns >= end_ns)
		*more |= !waits_end(upkeep, -ETIMEDOUT);
	return RBX_MAX(end_ns, upkeep->now_ns + 1);
}
