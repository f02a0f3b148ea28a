/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_slab.c - what is done for a slab in a round, see upkeep.h: what rbx_slab_task()
 * says, and what comes of it when servers have answered. Where it is parked if nothing
 * does.
 */
#include "core/upkeep.h"

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

/* Whether it has a record, for what is to be done next. */
static bool record_give(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	bool given;

	rbx_slab_lock(slab);
	given = rbx_slab_record_give(slab);
	rbx_slab_unlock(slab);
	upkeep->lacks_records |= !given;
	return given;
}

/* What a step of a slab came to. */
enum outcome {
	IS_DONE,
	IS_STUCK, /* nothing more can be done for it now */
	WAITS, /* neither; but that passes by itself */
	LACKS_SERVERS, /* those to be asked have not answered yet */
};

static enum rbx_attention_parking parking_of(enum outcome outcome)
{
	if (outcome == IS_STUCK)
		return RBX_PARK_STUCK;
	return outcome == WAITS ? RBX_PARK_WAITS : RBX_PARK_NOT;
}

static enum outcome outcome_of(struct rbx_upkeep *upkeep, int err)
{
	if (err == -EAGAIN)
		upkeep->lacks_servers = true;
	return err == -EAGAIN ? LACKS_SERVERS : IS_DONE;
}

/* ---- A replica more ----------------------------------------------------------*/

/* A server whose replica was lost can be asked again when that one is given back. */
static bool is_draining(const struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t slot, lost_count = 0;

	rbx_slab_lock(slab);
	for (slot = 0; slot < upkeep->flow->map->shape.slots; slot++)
		lost_count += rbx_slab_state(slab, slot) == RBX_REPLICA_LOST;
	rbx_slab_unlock(slab);
	return lost_count > 0;
}

/* No server has taken the replica. */
static enum outcome replace_failed(struct rbx_upkeep *upkeep,
				   struct rbx_slab *slab, int err)
{
	rbx_slab_settle(slab, &upkeep->flow->map->loans);
	rbx_loans_check_leaving(upkeep, slab);
	if (is_draining(upkeep, slab))
		return WAITS;
	upkeep->stuck_err = err;
	return IS_STUCK;
}

static enum outcome replace(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			    enum rbx_attention_list list)
{
	int err;

	if (!record_give(upkeep, slab))
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

/* In its turn, if it came out of what was returned. It may have to wait for a record. */
static enum outcome copy(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	if (rbx_rebuild_is_under_way(upkeep->flow))
		return IS_DONE;
	if (!record_give(upkeep, slab))
		return WAITS;
	rbx_rebuild_start(upkeep->flow, slab);
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

/* Its writes go on with what was lent, or end. */
static void begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab, int err)
{
	struct rbx_piece_list todo = { 0 };

	rbx_slab_lock(slab);
	rbx_slab_begin(slab, err, &todo);
	note(upkeep, slab);
	rbx_slab_unlock(slab);
	rbx_flow_do(upkeep->flow, &todo);
}

/*
 * Nothing was lent for the first writes of a slab. Those of a blank one wait on for a
 * server that is away, as writes do that it has a replica of: it comes back, or is down
 * in time. For one that is there and does not lend they wait no longer than
 * rbx_upkeep_lend_ns().
 */
static enum outcome lend_failed(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				int err, uint64_t since_ns, bool is_overdue)
{
	bool is_blank;

	rbx_slab_lock(slab);
	is_blank = slab->blank;
	rbx_slab_unlock(slab);
	if (rbx_status_is_away(err) && RBX_LOAD_RELAXED(&upkeep->is_closing))
		err = -ECANCELED;
	if (!is_blank || !rbx_status_is_away(err) || is_overdue) {
		begin(upkeep, slab, err);
		return IS_DONE;
	}
	if (err == -ENOTCONN)
		upkeep->in_vain_since_ns = 0;
	else if (!upkeep->in_vain_since_ns)
		upkeep->in_vain_since_ns = since_ns;
	return WAITS;
}

/* The first writes of a blank slab wait, or of a dead one. */
static enum outcome lend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	int err = rbx_asks_room(upkeep) ? place(upkeep, slab) : -EAGAIN;

	if (!err)
		err = rbx_borrow_begin(upkeep, slab, RBX_REPLICA_LIVE,
				       upkeep->flow->map->shape.replicas,
				       RBX_LIST_LEND);
	if (!err || err == -EAGAIN)
		return outcome_of(upkeep, err);
	return lend_failed(upkeep, slab, err == -ENOSPC ? -ENODEV : err,
			   upkeep->now_ns, false);
}

/* What was lent by servers that are down is lost, also if no round has seen to that: a
 * write that is sent there only would fail. */
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

/* A server may have gone since it lent, or have lent the same again. */
static bool is_on_loan(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	bool is_so;

	rbx_slab_lock(slab);
	down_lose(upkeep, slab);
	is_so = rbx_slab_find(slab, RBX_REPLICA_LIVE) >= 0;
	rbx_slab_unlock(slab);
	return is_so;
}

/* One replica is enough for them to begin; the others are made like those that were
 * lost. */
static enum outcome lend_over(struct rbx_upkeep *upkeep,
			      const struct rbx_borrowing *borrowing)
{
	if (rbx_borrow_waits(upkeep, borrowing))
		return LACKS_SERVERS;
	if (!borrowing->lent_count)
		return lend_failed(upkeep, borrowing->slab, borrowing->err,
				   borrowing->since_ns, borrowing->is_overdue);
	if (!is_on_loan(upkeep, borrowing->slab))
		return lend_failed(upkeep, borrowing->slab, -ENOTCONN,
				   borrowing->since_ns, borrowing->is_overdue);
	upkeep->in_vain_since_ns = 0;
	begin(upkeep, borrowing->slab, borrowing->err);
	return IS_DONE;
}

/* First writes wait no longer: those of so many slabs in a round. Returns whether that was
 * all. */
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

/* ---- All of them -------------------------------------------------------------*/

void rbx_upkeep_borrowed(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing)
{
	struct rbx_slab *slab = borrowing->slab;
	enum outcome outcome = borrowing->state == RBX_REPLICA_LIVE ?
				       lend_over(upkeep, borrowing) :
				       replace_over(upkeep, borrowing);

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
	case RBX_TASK_NONE:
		break;
	}
	return IS_DONE;
}

/* Does what is to be done for a slab at the head of a list. What was borrowed is
 * copied in its turn. */
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

