/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_slab.c - what a round does for a slab, see upkeep.h: what rbx_slab_task() says, and
 * what follows when servers have answered. Also where a slab is parked if nothing can be
 * done.
 */
#include "core/labels.h"

#include "core/extents.h"
#include "core/slab_spare.h"
#include "core/status.h"

static void note(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
}

static enum rbx_slab_task task_of(struct rbx_slab *slab)
{
	enum rbx_slab_task task;

	rbx_slab_lock(slab);
	task = rbx_slab_task(slab);
	rbx_slab_unlock(slab);
	return task;
}

/* Whether it has a record for the next task; gives it one if needed. */
static bool record_give(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	bool given;

	rbx_slab_lock(slab);
	given = rbx_slab_record_give(slab);
	rbx_slab_unlock(slab);
	upkeep->lacks_records |= !given;
	return given;
}

/* The result of a step for a slab. */
enum outcome {
	IS_DONE,
	IS_STUCK, /* nothing more can be done for it now */
	IS_SHORT, /* too few servers have lent; a record may allow that */
	WAITS, /* the same, for a reason that passes by itself */
	LACKS_SERVERS, /* servers to be asked next have not answered yet */
};

static enum rbx_attention_parking parking_of(enum outcome outcome)
{
	if (outcome == IS_STUCK)
		return RBX_PARK_STUCK;
	return outcome == WAITS ? RBX_PARK_WAITS : RBX_PARK_NOT;
}

static enum outcome outcome_of(struct rbx_upkeep *upkeep, int err)
{
	if (err == -EBUSY)
		return WAITS;
	if (err == -EAGAIN)
		upkeep->lacks_servers = true;
	return err == -EAGAIN ? LACKS_SERVERS : IS_DONE;
}

/* ---- One more replica -------------------------------------------------------- */

/* Whether a lost replica is not given back yet. Its server can be asked again after that. */
static bool is_draining(struct rbx_slab *slab)
{
	bool is_draining;

	rbx_slab_lock(slab);
	is_draining = rbx_slab_find(slab, RBX_REPLICA_LOST) >= 0;
	rbx_slab_unlock(slab);
	return is_draining;
}

/* No server has taken the replica. */
static enum outcome replace_failed(struct rbx_upkeep *upkeep,
				   struct rbx_slab *slab, int err)
{
	rbx_slab_settle(slab, &upkeep->flow->map->loans);
	rbx_loans_check_leaving(upkeep, slab);
	if (is_draining(slab))
		return WAITS;
	upkeep->stuck_err = err;
	return IS_STUCK;
}

/* Whether a slab can be copied from somewhere: what is sent to a server that has FAILED fails. */
static bool has_source(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t sources;
	bool has = false;

	if (!rbx_slab_shape(slab)->is_guarded)
		return true;
	rbx_slab_lock(slab);
	for (sources = slab->read_mask; sources && !has; sources &= sources - 1)
		has = !rbx_held_has_failed(
			&upkeep->flow->held,
			rbx_replica_server(rbx_slab_replica(
				slab, (uint32_t)__builtin_ctz(sources))));
	rbx_slab_unlock(slab);
	return has;
}

static enum outcome replace(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			    enum rbx_attention_list list)
{
	int err;

	if (!has_source(upkeep, slab) || rbx_labels_keep(upkeep, slab) ||
	    !record_give(upkeep, slab))
		return WAITS;
	err = rbx_borrow_begin(upkeep, slab, RBX_REPLICA_REBUILDING, 1, list);
	if (!err)
		return IS_DONE;
	if (err == -EAGAIN) {
		rbx_slab_settle(slab, &upkeep->flow->map->loans);
		return outcome_of(upkeep, err);
	}
	return replace_failed(upkeep, slab, err == -ENOSPC ? -ENODEV : err);
}

static enum outcome replace_over(struct rbx_upkeep *upkeep,
				 const struct rbx_borrowing *borrowing)
{
	if (rbx_borrow_waits(upkeep, borrowing)) {
		rbx_slab_settle(borrowing->slab, &upkeep->flow->map->loans);
		return LACKS_SERVERS;
	}
	if (!borrowing->lent_count)
		return replace_failed(upkeep, borrowing->slab, borrowing->err);
	if (!upkeep->rebuilt_count)
		upkeep->ops->tell(
			upkeep, RBX_NEWS_REBUILD_STARTED,
			rbx_upkeep_lacking(&upkeep->flow->map->attention), 0, 0);
	upkeep->rebuilt_count++;
	return IS_DONE;
}

/* Whether a copy is not to be tried again yet, that has failed by a fault of this machine. Its
 * replicas stay, so without a rest it would fail again and again. */
static bool copy_rests(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	bool rests;

	if (!rbx_slab_shape(slab)->is_guarded)
		return false;
	rbx_slab_lock(slab);
	rests = rbx_slab_record(slab)->copy_rests;
	if (rests && !upkeep->rest_until_ns)
		upkeep->rest_until_ns =
			upkeep->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull;
	if (rests && upkeep->now_ns >= upkeep->rest_until_ns) {
		upkeep->rest_until_ns = 0;
		rbx_slab_record(slab)->copy_rests = rests = false;
	}
	rbx_slab_unlock(slab);
	return rests;
}

/* When its turn comes. It may have to wait for a record. */
static enum outcome copy(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	if (rbx_rebuild_is_under_way(upkeep->flow))
		return IS_DONE;
	if (!record_give(upkeep, slab) || copy_rests(upkeep, slab))
		return WAITS;
	rbx_rebuild_start(upkeep->flow, slab, upkeep->now_ns);
	return IS_DONE;
}

/* ---- First writes ------------------------------------------------------------*/

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
static enum outcome lend_failed(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				int err, uint64_t since_ns, bool is_overdue)
{
	bool was_blank = is_blank(slab);

	if (rbx_status_is_away(err) && RBX_LOAD_RELAXED(&upkeep->is_closing))
		err = -ECANCELED;
	if (!was_blank || !rbx_status_is_away(err) || is_overdue) {
		begin(upkeep, slab, err);
		return IS_DONE;
	}
	if (err == -ENOTCONN)
		upkeep->in_vain_since_ns = 0;
	else if (!upkeep->in_vain_since_ns)
		upkeep->in_vain_since_ns = since_ns;
	return WAITS;
}

/* The first writes of a blank or dead slab wait. */
static enum outcome lend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	int err = rbx_asks_room(upkeep) ? 0 : -EAGAIN;

	if (rbx_slab_shape(slab)->is_named && !is_blank(slab)) {
		begin(upkeep, slab, -ENODEV);
		return IS_DONE;
	}
	if (!err)
		err = place(upkeep, slab);
	if (!err)
		err = rbx_borrow_begin(upkeep, slab, RBX_REPLICA_LIVE,
				       upkeep->flow->map->shape.replicas,
				       RBX_LIST_LEND);
	if (!err || err == -EAGAIN)
		return outcome_of(upkeep, err);
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

/* A slab that a server may have, of a named volume: it is of use to nobody until the next client
 * asks the servers. What others have lent is all zeros. */
static void uncertain(struct rbx_slab *slab)
{
	rbx_slab_lock(slab);
	rbx_slab_abandon(slab);
	slab->blank = false;
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

/* One replica is enough for the writes to begin, unless the record says that there are more. The
 * others are made like lost ones. */
static enum outcome lend_over(struct rbx_upkeep *upkeep,
			      const struct rbx_borrowing *borrowing)
{
	if (borrowing->is_uncertain || !is_sound(upkeep, borrowing)) {
		uncertain(borrowing->slab);
		return lend_failed(upkeep, borrowing->slab, -ENOTCONN,
				   borrowing->since_ns, true);
	}
	if (rbx_borrow_waits(upkeep, borrowing))
		return LACKS_SERVERS;
	if (!borrowing->lent_count)
		return lend_failed(upkeep, borrowing->slab, borrowing->err,
				   borrowing->since_ns, borrowing->is_overdue);
	if (!is_on_loan(upkeep, borrowing->slab)) {
		/* The server that is down has it all the same, unless the record says otherwise. */
		if (rbx_slab_shape(borrowing->slab)->is_named &&
		    !rbx_slab_shape(borrowing->slab)->is_guarded)
			uncertain(borrowing->slab);
		return lend_failed(upkeep, borrowing->slab, -ENOTCONN,
				   borrowing->since_ns, borrowing->is_overdue);
	}
	if (lent_count(borrowing->slab) < upkeep->copies_least) {
		if (!RBX_LOAD_RELAXED(&upkeep->is_closing))
			return IS_SHORT;
		uncertain(borrowing->slab);
		return lend_failed(upkeep, borrowing->slab, -ENOTCONN,
				   borrowing->since_ns, true);
	}
	upkeep->in_vain_since_ns = 0;
	begin(upkeep, borrowing->slab, borrowing->err);
	return IS_DONE;
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

/* ---- The tasks of a slab ----------------------------------------------------- */

void rbx_upkeep_borrowed(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing)
{
	struct rbx_slab *slab = borrowing->slab;
	enum outcome outcome = borrowing->state == RBX_REPLICA_LIVE ?
				       lend_over(upkeep, borrowing) :
				       replace_over(upkeep, borrowing);

	borrowing->is_short = outcome == IS_SHORT;
	if (borrowing->is_short)
		return;
	upkeep->lent_count += borrowing->lent_count > 0;
	rbx_borrow_end(upkeep, borrowing);
	rbx_attention_relist(&upkeep->flow->map->attention, slab,
			     parking_of(outcome));
}

void rbx_upkeep_pages_free(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_lost_pages *pages;

	rbx_slab_lock(slab);
	pages = rbx_slab_take_pages(slab);
	rbx_slab_unlock(slab);
	if (pages)
		upkeep->ops->memory_take_back(upkeep, pages);
}

static enum outcome task_do(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			    enum rbx_slab_task task, enum rbx_attention_list list)
{
	if (upkeep->ops->tending)
		upkeep->ops->tending(upkeep, slab, task);
	switch (task) {
	case RBX_TASK_GIVE_BACK:
		rbx_loans_give_back(upkeep, slab);
		break;
	case RBX_TASK_FREE_PAGES:
		upkeep->returns_count++;
		rbx_upkeep_pages_free(upkeep, slab);
		break;
	case RBX_TASK_SETTLE:
		rbx_slab_settle(slab, &upkeep->flow->map->loans);
		break;
	case RBX_TASK_BORROW:
		upkeep->borrows_count++;
		return replace(upkeep, slab, list);
	case RBX_TASK_LEND:
		upkeep->borrows_count++;
		return lend(upkeep, slab);
	case RBX_TASK_COPY:
		return copy(upkeep, slab);
	case RBX_TASK_LABEL:
	case RBX_TASK_UNLABEL:
		return outcome_of(upkeep, rbx_labels_task(upkeep, slab, task));
	case RBX_TASK_NONE:
		break;
	}
	return IS_DONE;
}

/* Does what is needed for a slab at the head of a list. Borrowed memory is copied to when its
 * turn comes. */
void rbx_upkeep_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_attention_list list)
{
	enum outcome outcome = IS_DONE;
	enum rbx_slab_task task;
	uint32_t i;

	/* Bounded: each slot may be given back, then the record, and one task follows. */
	for (i = 0; i <= RBX_SLOTS_MAX + 1 && outcome == IS_DONE; i++) {
		task = task_of(slab);
		if (task != RBX_TASK_NONE)
			outcome = task_do(upkeep, slab, task, list);
		if (task != RBX_TASK_GIVE_BACK && task != RBX_TASK_SETTLE)
			break;
	}
	rbx_attention_relist(&upkeep->flow->map->attention, slab,
			     parking_of(outcome));
}

