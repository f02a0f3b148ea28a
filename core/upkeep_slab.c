/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_slab.c - what a round does for a slab, see upkeep_slab.h: what rbx_slab_task() says, one
 * more replica among it, and what follows when servers have answered. Also where a slab is parked
 * if nothing can be done.
 */
#include "core/upkeep_slab.h"

#include "core/balance.h"
#include "core/borrow.h"
#include "core/labels.h"
#include "core/loans.h"
#include "core/slab_spare.h"

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

static enum rbx_attention_parking parking_of(enum rbx_slab_outcome outcome)
{
	if (outcome == RBX_OUTCOME_STUCK)
		return RBX_PARK_STUCK;
	return outcome == RBX_OUTCOME_WAITS ? RBX_PARK_WAITS : RBX_PARK_NOT;
}

enum rbx_slab_outcome rbx_upkeep_outcome(struct rbx_upkeep *upkeep, int err)
{
	if (err == -EBUSY)
		return RBX_OUTCOME_WAITS;
	if (err == -EAGAIN)
		upkeep->lacks_servers = true;
	return err == -EAGAIN ? RBX_OUTCOME_LACKS_SERVERS : RBX_OUTCOME_DONE;
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
static enum rbx_slab_outcome replace_failed(struct rbx_upkeep *upkeep,
					    struct rbx_slab *slab, int err)
{
	rbx_slab_return_record(slab, &upkeep->flow->map->loans);
	rbx_loans_check_leaving(upkeep, slab);
	if (is_draining(slab))
		return RBX_OUTCOME_WAITS;
	upkeep->stuck_err = err;
	return RBX_OUTCOME_STUCK;
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

static enum rbx_slab_outcome replace(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				     enum rbx_attention_list list)
{
	int err;

	if (!has_source(upkeep, slab) || rbx_labels_keep(upkeep, slab) ||
	    !record_give(upkeep, slab))
		return RBX_OUTCOME_WAITS;
	err = rbx_borrow_begin(upkeep, slab, RBX_REPLICA_REBUILDING, 1, list);
	if (!err)
		return RBX_OUTCOME_DONE;
	if (err == -EAGAIN) {
		rbx_slab_return_record(slab, &upkeep->flow->map->loans);
		return rbx_upkeep_outcome(upkeep, err);
	}
	return replace_failed(upkeep, slab, err == -ENOSPC ? -ENODEV : err);
}

static enum rbx_slab_outcome replace_over(struct rbx_upkeep *upkeep,
					  const struct rbx_borrowing *borrowing)
{
	if (rbx_borrow_waits(upkeep, borrowing)) {
		rbx_slab_return_record(borrowing->slab, &upkeep->flow->map->loans);
		return RBX_OUTCOME_LACKS_SERVERS;
	}
	if (!borrowing->lent_count)
		return replace_failed(upkeep, borrowing->slab, borrowing->err);
	if (!upkeep->rebuilt_count)
		upkeep->ops->tell(
			upkeep, RBX_NEWS_REBUILD_STARTED,
			rbx_upkeep_lacking(&upkeep->flow->map->attention), 0, 0);
	upkeep->rebuilt_count++;
	return RBX_OUTCOME_DONE;
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
static enum rbx_slab_outcome copy(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	if (rbx_rebuild_is_under_way(upkeep->flow))
		return RBX_OUTCOME_DONE;
	if (!record_give(upkeep, slab) || copy_rests(upkeep, slab))
		return RBX_OUTCOME_WAITS;
	rbx_rebuild_start(upkeep->flow, slab, upkeep->now_ns);
	return RBX_OUTCOME_DONE;
}

/* ---- The tasks of a slab ----------------------------------------------------- */

void rbx_upkeep_borrowed(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing)
{
	struct rbx_slab *slab = borrowing->slab;
	enum rbx_slab_outcome outcome = RBX_OUTCOME_DONE;

	if (borrowing->moves)
		rbx_balance_over(upkeep, borrowing);
	else if (borrowing->state == RBX_REPLICA_LIVE)
		outcome = rbx_upkeep_lend_over(upkeep, borrowing);
	else
		outcome = replace_over(upkeep, borrowing);
	borrowing->is_short = outcome == RBX_OUTCOME_SHORT;
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

static enum rbx_slab_outcome task_do(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				     enum rbx_slab_task task, enum rbx_attention_list list)
{
	if (upkeep->ops->tending)
		upkeep->ops->tending(upkeep, slab, task);
	switch (task) {
	case RBX_TASK_GIVE_BACK:
		if (rbx_loans_must_wait(upkeep, slab, list)) {
			upkeep->passed_count += list == RBX_LIST_RETURN;
			return RBX_OUTCOME_WAITS;
		}
		rbx_loans_give_back(upkeep, slab);
		break;
	case RBX_TASK_FREE_PAGES:
		upkeep->returns_count++;
		rbx_upkeep_pages_free(upkeep, slab);
		break;
	case RBX_TASK_RETURN_RECORD:
		rbx_slab_return_record(slab, &upkeep->flow->map->loans);
		break;
	case RBX_TASK_BORROW:
		upkeep->borrows_count++;
		return replace(upkeep, slab, list);
	case RBX_TASK_LEND:
		upkeep->borrows_count++;
		return rbx_upkeep_lend(upkeep, slab);
	case RBX_TASK_COPY:
		return copy(upkeep, slab);
	case RBX_TASK_LABEL:
	case RBX_TASK_UNLABEL:
		return rbx_upkeep_outcome(upkeep, rbx_labels_task(upkeep, slab, task));
	case RBX_TASK_NONE:
		break;
	}
	return RBX_OUTCOME_DONE;
}

/* Does what is needed for a slab at the head of a list. Borrowed memory is copied to when its
 * turn comes. */
void rbx_upkeep_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_attention_list list)
{
	enum rbx_slab_outcome outcome = RBX_OUTCOME_DONE;
	enum rbx_slab_task task;
	uint32_t i;

	/* Bounded: each slot may be given back, then the record, and one task follows. */
	for (i = 0; i <= RBX_SLOTS_MAX + 1 && outcome == RBX_OUTCOME_DONE; i++) {
		task = task_of(slab);
		if (task != RBX_TASK_NONE)
			outcome = task_do(upkeep, slab, task, list);
		if (task != RBX_TASK_GIVE_BACK && task != RBX_TASK_RETURN_RECORD)
			break;
	}
	rbx_attention_relist(&upkeep->flow->map->attention, slab,
			     parking_of(outcome));
}

