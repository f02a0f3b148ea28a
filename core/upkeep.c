/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep.c - the rounds of the keeper, and the first and last borrowing, see
 * upkeep.h. What servers lend and are given back is in loans.c, and which servers there
 * are in upkeep_servers.c.
 */
#include "core/upkeep.h"

#include "core/status.h"

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops)
{
	rbx_port_fill(upkeep, 0, sizeof(*upkeep));
	upkeep->flow = flow;
	upkeep->ops = ops;
	rbx_lock_init(&upkeep->servers_lock);
}

/* ---- Steps of a slab ------------------------------------------------------*/

void rbx_upkeep_evict(struct rbx_upkeep *upkeep, uint32_t server,
		      const struct rbx_eviction *eviction)
{
	struct rbx_volume_map *map = RBX_LOAD_ACQUIRE(&upkeep->flow->map);
	struct rbx_slab *slab;
	uint32_t number;
	bool found;

	if (!map) /* it is being opened, and has borrowed nothing */
		return;
	number = rbx_loan_index_find(&map->loans, server, eviction->slab_id,
				     eviction->epoch);
	if (number == RBX_REPLICA_NONE)
		return;
	slab = rbx_slab_at(&map->shape, number / map->shape.slots);
	rbx_slab_lock(slab);
	found = rbx_slab_evict(slab, server, eviction->slab_id,
			       eviction->epoch);
	if (found)
		rbx_attention_until(&map->attention, slab, eviction->until_ns);
	(void)rbx_attention_note(&map->attention, slab);
	rbx_slab_unlock(slab);
	if (found)
		upkeep->flow->ops->wake(upkeep->flow);
}

static void note(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
}

/* ---- Status ---------------------------------------------------------------*/

static uint32_t lacking_count(const struct rbx_attention *attention)
{
	return rbx_attention_count(attention, RBX_SLAB_LACKING) +
	       rbx_attention_count(attention, RBX_SLAB_REBUILDING);
}

void rbx_upkeep_census(struct rbx_upkeep *upkeep, struct rbx_census *census)
{
	const struct rbx_volume_map *map = upkeep->flow->map;
	const struct rbx_attention *attention = &map->attention;
	uint32_t i;

	*census = (struct rbx_census){
		.slabs = map->slab_count,
		.blank = rbx_attention_count(attention, RBX_SLAB_BLANK),
		.whole = rbx_attention_count(attention, RBX_SLAB_WHOLE),
		.rebuilding =
			rbx_attention_count(attention, RBX_SLAB_REBUILDING),
		.dead = rbx_attention_count(attention, RBX_SLAB_DEAD),
		.last = rbx_attention_marked(attention, RBX_MARK_LAST),
		.holes = rbx_attention_marked(attention, RBX_MARK_HOLES),
		.lacking = lacking_count(attention),
		.servers = rbx_upkeep_servers_count(upkeep),
	};
	rbx_lock(&upkeep->servers_lock);
	for (i = 0; i < census->servers; i++)
		census->servers_up += rbx_server_set_has(&map->servers_up, i) &&
				      !rbx_upkeep_server_is_down(upkeep, i);
	rbx_unlock(&upkeep->servers_lock);
}

/* ---- A round --------------------------------------------------------------*/

static enum rbx_slab_task task_of(struct rbx_slab *slab)
{
	enum rbx_slab_task task;

	rbx_slab_lock(slab);
	task = rbx_slab_task(slab);
	rbx_slab_unlock(slab);
	return task;
}

/* 0, or why no server could take the replica. */
static int replace(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	int err;

	if (!rbx_loans_borrow(upkeep, slab, RBX_REPLICA_REBUILDING, 1, &err)) {
		rbx_loans_check_leaving(upkeep, slab);
		return err;
	}
	if (!upkeep->rebuilt_count)
		upkeep->ops->tell(
			upkeep, RBX_NEWS_REBUILD_STARTED,
			lacking_count(&upkeep->flow->map->attention), 0, 0);
	upkeep->rebuilt_count++;
	return 0;
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
			upkeep, rbx_lost_pages_size(slab->shape->slab_shift));
	if (wanted && !pages)
		return -ENOMEM;
	rbx_slab_lock(slab);
	if (pages)
		rbx_slab_lend_pages(slab, pages);
	rbx_slab_place(slab);
	rbx_slab_unlock(slab);
	return 0;
}

/* The first writes of a blank slab wait, or of a dead one. One replica is enough for
 * them to begin; the others are made like those that were lost. Those of a blank one
 * wait on for a server that is away, as writes do that it has a replica of: it comes
 * back, or is down in time. -EAGAIN: they wait on. */
static int lend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_piece_list todo = { 0 };
	int err = place(upkeep, slab);
	uint32_t lent_count = 0;
	bool waits;

	if (!err)
		lent_count = rbx_loans_borrow(upkeep, slab, RBX_REPLICA_LIVE,
					      upkeep->flow->map->shape.replicas,
					      &err);
	upkeep->lent_count += lent_count > 0;
	rbx_slab_lock(slab);
	waits = !lent_count && rbx_status_is_away(err) && slab->blank;
	if (!waits) {
		rbx_slab_begin(slab, err, &todo);
		note(upkeep, slab);
	}
	rbx_slab_unlock(slab);
	rbx_flow_do(upkeep->flow, &todo);
	return waits ? -EAGAIN : 0;
}

static void pages_free(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_lost_pages *pages;

	rbx_slab_lock(slab);
	pages = rbx_slab_take_pages(slab);
	rbx_slab_unlock(slab);
	if (pages)
		upkeep->ops->memory_take_back(upkeep, pages);
}

/* 0, or why nothing more can be done for the slab now. */
static int task_do(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		   enum rbx_slab_task task)
{
	int err;

	if (upkeep->ops->tending)
		upkeep->ops->tending(upkeep, slab, task);
	switch (task) {
	case RBX_TASK_GIVE_BACK:
		rbx_loans_give_back(upkeep, slab);
		return 0;
	case RBX_TASK_FREE_PAGES:
		upkeep->returns_count++;
		pages_free(upkeep, slab);
		return 0;
	case RBX_TASK_BORROW:
		upkeep->borrows_count++;
		err = replace(upkeep, slab);
		if (err)
			upkeep->stuck_err = err;
		upkeep->lent_count += !err;
		return err;
	case RBX_TASK_LEND:
		upkeep->borrows_count++;
		return lend(upkeep, slab);
	case RBX_TASK_COPY: /* in its turn, if it came out of what was returned */
		if (!rbx_rebuild_is_under_way(upkeep->flow))
			rbx_rebuild_start(upkeep->flow, slab);
		return 0;
	case RBX_TASK_NONE:
		break;
	}
	return 0;
}

/* Does what is to be done for a slab at the head of a list. What was borrowed is
 * copied in its turn. */
static void slab_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	enum rbx_slab_task task;
	uint32_t i;
	int err = 0;

	/* Bounded: each slot may be given back, and one task follows. */
	for (i = 0; i <= RBX_SLOTS_MAX && !err; i++) {
		task = task_of(slab);
		if (task != RBX_TASK_NONE)
			err = task_do(upkeep, slab, task);
		if (task != RBX_TASK_GIVE_BACK)
			break;
	}
	rbx_attention_relist(&upkeep->flow->map->attention, slab, err != 0);
}

/* Whether something can be done for the slabs of this list now. */
static bool is_served(const struct rbx_upkeep *upkeep,
		      enum rbx_attention_list list)
{
	const struct rbx_attention *attention = &upkeep->flow->map->attention;

	switch (list) {
	case RBX_LIST_LEND:
		return upkeep->borrows_count < RBX_UPKEEP_BORROWS_MAX;
	case RBX_LIST_COPY_ONE:
	case RBX_LIST_COPY_SOME:
	case RBX_LIST_COPY_LEAVING:
		return !rbx_rebuild_is_under_way(upkeep->flow);
	case RBX_LIST_BORROW_ONE:
	case RBX_LIST_BORROW_SOME:
	case RBX_LIST_LEAVING: /* those that can be copied are the list before */
		return upkeep->borrows_count < RBX_UPKEEP_BORROWS_MAX &&
		       rbx_attention_length(attention, list - 1) <
			       RBX_UPKEEP_AHEAD_MAX;
	case RBX_LIST_RETURN: /* what could not even be owed stays */
		return upkeep->returns_count < RBX_UPKEEP_RETURNS_MAX &&
		       upkeep->owed_count < RBX_OWED_MAX;
	default:
		return false;
	}
}

/* The slab to see to next; NULL: there is none, or enough was done. */
static struct rbx_slab *slab_next(struct rbx_upkeep *upkeep)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	struct rbx_slab *slab = NULL;
	uint32_t list;

	for (list = RBX_LIST_LEND; list <= RBX_LIST_RETURN && !slab; list++)
		if (is_served(upkeep, list))
			slab = rbx_attention_first(attention, list);
	return slab;
}

/* Whether this round has left anything of the list that another one could do. */
static bool is_left(struct rbx_upkeep *upkeep, enum rbx_attention_list list)
{
	return rbx_attention_length(&upkeep->flow->map->attention, list) > 0;
}

/* What was parked is tried again, a few at a time. */
static void unpark(struct rbx_upkeep *upkeep, enum rbx_attention_list list)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint32_t i;

	for (i = 0; i < RBX_UPKEEP_RETRIES_MAX && is_left(upkeep, list); i++)
		rbx_attention_relist(
			attention, rbx_attention_first(attention, list), false);
}

/* All have been asked for that want a replica. */
static bool borrowing_is_over(struct rbx_upkeep *upkeep)
{
	return !is_left(upkeep, RBX_LIST_BORROW_ONE) &&
	       !is_left(upkeep, RBX_LIST_BORROW_SOME) &&
	       !is_left(upkeep, RBX_LIST_LEAVING);
}

static void stuck_tell(struct rbx_upkeep *upkeep)
{
	uint32_t count = rbx_attention_length(&upkeep->flow->map->attention,
					      RBX_LIST_STUCK);

	if (!borrowing_is_over(upkeep))
		return;
	if (count && !upkeep->is_stuck)
		upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_STUCK, count, 0,
				  upkeep->stuck_err);
	upkeep->is_stuck = count > 0;
}

static void news_tell(struct rbx_upkeep *upkeep)
{
	const struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint32_t dead_count = rbx_attention_count(attention, RBX_SLAB_DEAD);

	if (dead_count > upkeep->dead_count)
		upkeep->ops->tell(upkeep, RBX_NEWS_DATA_LOST,
				  dead_count - upkeep->dead_count, 0, 0);
	upkeep->dead_count = dead_count;
	stuck_tell(upkeep);
	if (upkeep->rebuilt_count && !lacking_count(attention)) {
		upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_DONE,
				  upkeep->rebuilt_count, 0, 0);
		upkeep->rebuilt_count = 0;
	}
}

/* More could be done at once, but there is a bound to a round. */
static bool is_cut_short(struct rbx_upkeep *upkeep)
{
	bool lent = upkeep->lent_count > 0;
	bool borrowed = upkeep->borrows_count >= RBX_UPKEEP_BORROWS_MAX;
	bool returned = upkeep->returns_count >= RBX_UPKEEP_RETURNS_MAX;

	/* If a server lends again, those that wait for one need not wait longer. */
	return (lent && (is_left(upkeep, RBX_LIST_LEND_WAITS) ||
			 is_left(upkeep, RBX_LIST_STUCK))) ||
	       (borrowed && (is_left(upkeep, RBX_LIST_LEND) ||
			     !borrowing_is_over(upkeep))) ||
	       (returned && is_left(upkeep, RBX_LIST_RETURN));
}

bool rbx_upkeep_round(struct rbx_upkeep *upkeep)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	struct rbx_slab *slab;
	bool more, was_paid;

	upkeep->borrows_count = 0;
	upkeep->lent_count = 0;
	upkeep->returns_count = 0;
	more = rbx_upkeep_servers_tend(upkeep);
	more |= rbx_attention_take(attention, RBX_UPKEEP_LOOKS_MAX);
	unpark(upkeep, RBX_LIST_LEND_WAITS);
	unpark(upkeep, RBX_LIST_STUCK);
	while ((slab = slab_next(upkeep)))
		slab_tend(upkeep, slab);
	if (!more)
		news_tell(upkeep);
	was_paid = rbx_loans_pay_owed(upkeep);
	rbx_upkeep_places_free(upkeep);
	if (more || is_cut_short(upkeep) ||
	    (was_paid && is_left(upkeep, RBX_LIST_RETURN)))
		upkeep->flow->ops->wake(upkeep->flow);
	return upkeep->owed_count || is_left(upkeep, RBX_LIST_STUCK) ||
	       is_left(upkeep, RBX_LIST_LEND_WAITS);
}

/* ---- Open and close -------------------------------------------------------*/

int rbx_upkeep_borrow_all(struct rbx_upkeep *upkeep)
{
	if (upkeep->flow->map->shape.on_demand)
		return 0;
	return rbx_loans_borrow_all(upkeep);
}

bool rbx_upkeep_fits(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, server_count = rbx_upkeep_servers_count(upkeep);
	uint64_t room = 0;

	for (i = 0; i < server_count; i++)
		room += rbx_placement_room(upkeep->ops->free_bytes(upkeep, i) >>
						   map->shape.slab_shift,
					   map->slab_count);
	return room >= (uint64_t)map->slab_count * map->shape.replicas;
}

void rbx_upkeep_abandon(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	for (i = 0; i < map->slab_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		rbx_slab_abandon(slab);
		rbx_slab_unlock(slab);
	}
}

void rbx_upkeep_end(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	for (i = 0; i < map->slab_count; i++)
		pages_free(upkeep, rbx_slab_at(&map->shape, i));
}
