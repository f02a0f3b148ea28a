/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep.c - the rounds of the upkeep thread, see upkeep.h: which slab is next, when a round
 * ends, what there is to tell. upkeep_slab.c has what is done for a slab.
 */
#include "core/balance.h"
#include "core/borrow.h"
#include "core/loans.h"
#include "core/upkeep_servers.h"
#include "core/upkeep_slab.h"

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops, uint64_t timeout_ns)
{
	rbx_port_fill(upkeep, 0, sizeof(*upkeep));
	upkeep->flow = flow;
	upkeep->ops = ops;
	upkeep->timeout_ns = timeout_ns;
	rbx_lock_init(&upkeep->servers_lock);
}

uint64_t rbx_upkeep_timeout_ns(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->timeout_ns);
}

void rbx_upkeep_set_timeout_ns(struct rbx_upkeep *upkeep, uint64_t timeout_ns)
{
	RBX_STORE_RELAXED(&upkeep->timeout_ns, timeout_ns);
}

uint32_t rbx_upkeep_copies_least(const struct rbx_upkeep *upkeep)
{
	return upkeep->copies_least;
}

void rbx_upkeep_set_copies_least(struct rbx_upkeep *upkeep, uint32_t copies)
{
	upkeep->copies_least = copies;
}

/* ---- Steps of a slab ------------------------------------------------------*/

void rbx_upkeep_evict(struct rbx_upkeep *upkeep, uint32_t server,
		      const struct rbx_eviction *eviction)
{
	struct rbx_volume_map *map = RBX_LOAD_ACQUIRE(&upkeep->flow->map);
	struct rbx_slab *slab;
	uint32_t index;
	bool found;

	/* The volume is being opened, and has borrowed nothing. Or nothing can be moved. */
	if (!map || (map->shape.is_named && !map->shape.is_guarded))
		return;
	index = rbx_loan_index_find(&map->loans, server, eviction->slab_id,
				    eviction->epoch);
	if (index == RBX_SLAB_NONE)
		return;
	slab = rbx_slab_at(&map->shape, index);
	rbx_slab_lock(slab);
	found = rbx_slab_evict(slab, server, eviction->slab_id,
			       eviction->epoch);
	if (found)
		rbx_attention_until(&map->attention, slab, eviction->now_ns,
				    eviction->until_ns);
	(void)rbx_attention_note(&map->attention, slab);
	rbx_slab_unlock(slab);
	if (found)
		upkeep->flow->ops->wake(upkeep->flow);
}

/* ---- Status ---------------------------------------------------------------*/

void rbx_upkeep_census(struct rbx_upkeep *upkeep, struct rbx_census *census)
{
	const struct rbx_volume_map *map = upkeep->flow->map;
	const struct rbx_attention *attention = &map->attention;
	uint32_t i;

	*census = (struct rbx_census){
		.slabs = rbx_volume_map_slabs(map),
		.blank = rbx_attention_count(attention, RBX_SLAB_BLANK),
		.whole = rbx_attention_count(attention, RBX_SLAB_WHOLE),
		.rebuilding =
			rbx_attention_count(attention, RBX_SLAB_REBUILDING),
		.dead = rbx_attention_count(attention, RBX_SLAB_DEAD),
		.last = rbx_attention_marked(attention, RBX_MARK_LAST),
		.holes = rbx_attention_marked(attention, RBX_MARK_HOLES),
		.together = rbx_attention_marked(attention, RBX_MARK_TOGETHER),
		.lacking = rbx_upkeep_lacking(attention),
		.moved = RBX_LOAD_RELAXED(&upkeep->moved_count),
		.servers = rbx_upkeep_servers_count(upkeep),
	};
	rbx_lock(&upkeep->servers_lock);
	for (i = 0; i < census->servers; i++)
		census->servers_up += rbx_server_set_has(&map->servers_up, i) &&
				      !rbx_upkeep_server_is_down(upkeep, i);
	rbx_unlock(&upkeep->servers_lock);
}

bool rbx_upkeep_any_went_down(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->any_went_down);
}

bool rbx_upkeep_is_stuck(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->is_stuck);
}

/* A server that has gone down may have replicas that no round has looked for yet. */
bool rbx_upkeep_is_whole(const struct rbx_upkeep *upkeep)
{
	const struct rbx_attention *attention = &upkeep->flow->map->attention;

	return !upkeep->lost.is_on && !RBX_LOAD_RELAXED(&upkeep->any_went_down) &&
	       rbx_attention_count(attention, RBX_SLAB_BLANK) +
			       rbx_attention_count(attention, RBX_SLAB_WHOLE) +
			       upkeep->lost_slabs_count ==
		       rbx_volume_map_slabs(upkeep->flow->map);
}

/* ---- A round --------------------------------------------------------------*/

static bool may_borrow(const struct rbx_upkeep *upkeep)
{
	return upkeep->borrows_count < RBX_UPKEEP_BORROWS_MAX &&
	       !upkeep->lacks_servers;
}

/* Whether something can be done for the slabs of this list now. */
static bool is_served(const struct rbx_upkeep *upkeep,
		      enum rbx_attention_list list)
{
	const struct rbx_attention *attention = &upkeep->flow->map->attention;

	switch (list) {
	case RBX_LIST_LEND:
		return may_borrow(upkeep);
	case RBX_LIST_COPY_ONE:
	case RBX_LIST_COPY_SOME:
	case RBX_LIST_COPY_LEAVING:
		return !rbx_rebuild_is_under_way(upkeep->flow);
	case RBX_LIST_BORROW_ONE:
	case RBX_LIST_BORROW_SOME:
	case RBX_LIST_LEAVING: /* slabs that can be copied are on the list before */
		return may_borrow(upkeep) && !RBX_LOAD_RELAXED(&upkeep->is_closing) &&
		       rbx_attention_length(attention, list - 1) +
				       rbx_borrowings_of(upkeep, list) <
			       RBX_UPKEEP_AHEAD_MAX;
	case RBX_LIST_RETURN:
		return upkeep->returns_count < RBX_UPKEEP_RETURNS_MAX &&
		       (!rbx_loans_owe_much(upkeep) ||
			(upkeep->passed_count < rbx_attention_length(attention, list) &&
			 rbx_loans_may_return(upkeep)));
	default:
		return false;
	}
}

/* The list to handle next, or RBX_LIST_NONE: nothing is left, or enough was done. Slabs that
 * a server will revoke go before all else: they have a deadline, only a few are borrowed for
 * in advance, and first writes may come without end. */
static enum rbx_attention_list list_next(struct rbx_upkeep *upkeep)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint32_t list;

	if (rbx_attention_length(attention, RBX_LIST_LEAVING) &&
	    is_served(upkeep, RBX_LIST_LEAVING))
		return RBX_LIST_LEAVING;
	for (list = RBX_LIST_LEND; list <= RBX_LIST_RETURN; list++)
		if (rbx_attention_length(attention, list) &&
		    is_served(upkeep, list))
			return list;
	return RBX_LIST_NONE;
}

/* Whether this round has left something on the list that another round could do. */
static bool is_left(const struct rbx_upkeep *upkeep, enum rbx_attention_list list)
{
	return rbx_attention_length(&upkeep->flow->map->attention, list) > 0;
}

/* Tries parked slabs again, a few at a time. */
static void unpark(struct rbx_upkeep *upkeep, enum rbx_attention_list list)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint32_t i;

	if (!upkeep->may_retry)
		return;
	for (i = 0; i < RBX_UPKEEP_RETRIES_MAX && is_left(upkeep, list); i++)
		rbx_attention_relist(attention,
				     rbx_attention_first(attention, list),
				     RBX_PARK_NOT);
}

/* STUCK and WAITS lists take turns, as the retries of a round are bounded: a slab that waits
 * for a record comes back in each round until there is one. */
static enum rbx_attention_list unpark_next(struct rbx_upkeep *upkeep)
{
	bool waits = is_left(upkeep, RBX_LIST_BORROW_WAITS);

	if (waits && is_left(upkeep, RBX_LIST_STUCK) && upkeep->may_retry) {
		upkeep->stuck_is_next = !upkeep->stuck_is_next;
		waits = upkeep->stuck_is_next;
	}
	return waits ? RBX_LIST_BORROW_WAITS : RBX_LIST_STUCK;
}

/* Whether any slab is to be tried again. */
static bool is_parked(struct rbx_upkeep *upkeep)
{
	return is_left(upkeep, RBX_LIST_LEND_WAITS) ||
	       is_left(upkeep, RBX_LIST_BORROW_WAITS) ||
	       is_left(upkeep, RBX_LIST_STUCK);
}

/* Whether servers were asked for all slabs that need a replica. */
static bool borrowing_is_over(struct rbx_upkeep *upkeep)
{
	return !rbx_borrowings_of(upkeep, RBX_LIST_BORROW_ONE) &&
	       !rbx_borrowings_of(upkeep, RBX_LIST_BORROW_SOME) &&
	       !rbx_borrowings_of(upkeep, RBX_LIST_LEAVING) &&
	       !is_left(upkeep, RBX_LIST_BORROW_ONE) &&
	       !is_left(upkeep, RBX_LIST_BORROW_SOME) &&
	       !is_left(upkeep, RBX_LIST_LEAVING);
}

/* How many slabs are stuck, and why, is of the same moment: of a round at whose end servers
 * were asked for all slabs, and some of the stuck ones in vain. */
static void stuck_tell(struct rbx_upkeep *upkeep)
{
	uint32_t count = rbx_attention_length(&upkeep->flow->map->attention,
					      RBX_LIST_STUCK);

	if (!borrowing_is_over(upkeep) || is_left(upkeep, RBX_LIST_BORROW_WAITS))
		return;
	if (!count)
		RBX_STORE_RELAXED(&upkeep->is_stuck, false);
	if (!count || upkeep->is_stuck || !upkeep->stuck_err)
		return;
	RBX_STORE_RELAXED(&upkeep->is_stuck, true);
	upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_STUCK, count, 0,
			  upkeep->stuck_err);
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
	if (upkeep->rebuilt_count && !rbx_upkeep_lacking(attention)) {
		upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_DONE,
				  upkeep->rebuilt_count, 0, 0);
		upkeep->rebuilt_count = 0;
	}
}

/* Whether some of the owed loans could be returned at once. */
static bool payable_left(const struct rbx_upkeep *upkeep)
{
	return upkeep->pays_count >= RBX_UPKEEP_RETURNS_MAX &&
	       upkeep->owed_count > 0;
}

/* Whether more could be done at once, and the bound of a round ended it. */
static bool is_cut_short(struct rbx_upkeep *upkeep)
{
	bool lent = upkeep->lent_count > 0;
	bool borrowed = upkeep->borrows_count >= RBX_UPKEEP_BORROWS_MAX &&
			!upkeep->lacks_servers;
	bool returned = upkeep->returns_count >= RBX_UPKEEP_RETURNS_MAX;
	bool records = upkeep->lacks_records &&
		       rbx_slab_records_free(&upkeep->flow->map->records) > 0;

	/* If a server lends again, slabs that wait for one need not wait longer; nor if there
	 * are records again. */
	return records || payable_left(upkeep) || (lent && is_parked(upkeep)) ||
	       (borrowed && (is_left(upkeep, RBX_LIST_LEND) ||
			     !borrowing_is_over(upkeep))) ||
	       (returned && is_left(upkeep, RBX_LIST_RETURN));
}

/* Whether another round is needed soon, to try something again. */
static bool is_to_be_retried(struct rbx_upkeep *upkeep)
{
	uint32_t i, asked_count = 0;

	for (i = 0; i < upkeep->asked_count; i++)
		asked_count += upkeep->asked[i].kind == RBX_CALL_UNMAP;
	/* What a server was asked for a named volume may have to be asked again. */
	return upkeep->owed_count > asked_count || is_parked(upkeep) ||
	       (upkeep->flow->map->shape.is_named && upkeep->asked_count);
}

static void round_begin(struct rbx_upkeep *upkeep, uint64_t now_ns)
{
	upkeep->now_ns = now_ns;
	upkeep->borrows_count = 0;
	upkeep->lent_count = 0;
	upkeep->returns_count = 0;
	upkeep->passed_count = 0;
	upkeep->pays_count = 0;
	upkeep->lacks_records = false;
	upkeep->stuck_err = 0;
	upkeep->lacks_servers = false;
}

/* A round that was caused by an answer retries nothing, unless a retry is due: otherwise a
 * request that was just refused would be sent again at once. */
static void retries_begin(struct rbx_upkeep *upkeep, bool any_answered)
{
	upkeep->may_retry = !any_answered || upkeep->now_ns >= upkeep->retry_next_ns;
	if (upkeep->may_retry)
		upkeep->retry_next_ns =
			upkeep->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull;
}

/* Handles slabs until nothing is left that could be done now. */
static void slabs_tend(struct rbx_upkeep *upkeep)
{
	enum rbx_attention_list list;

	do {
		while ((list = list_next(upkeep)) != RBX_LIST_NONE) {
			rbx_upkeep_tend(upkeep,
					rbx_attention_first(
						&upkeep->flow->map->attention,
						list),
					list);
			(void)rbx_loans_take(upkeep);
		}
		rbx_loans_pay_owed(upkeep);
	} while (rbx_loans_take(upkeep)); /* bounded: a round asks for only so much */
}

uint64_t rbx_upkeep_round(struct rbx_upkeep *upkeep, uint64_t now_ns)
{
	struct rbx_attention *attention = &upkeep->flow->map->attention;
	uint64_t due_ns;
	bool more;

	round_begin(upkeep, now_ns);
	retries_begin(upkeep, rbx_loans_take(upkeep));
	more = rbx_upkeep_servers_tend(upkeep);
	more |= rbx_attention_take(attention, RBX_UPKEEP_LOOKS_MAX);
	due_ns = rbx_upkeep_waits_tick(upkeep, &more);
	due_ns = RBX_MIN(due_ns, rbx_upkeep_servers_return(upkeep, &more));
	(void)rbx_asks_tick(upkeep);
	rbx_borrowings_tick(upkeep);
	unpark(upkeep, RBX_LIST_LEND_WAITS);
	unpark(upkeep, unpark_next(upkeep));
	slabs_tend(upkeep);
	due_ns = RBX_MIN(due_ns, rbx_asks_tick(upkeep));
	due_ns = RBX_MIN(due_ns, rbx_borrowings_due_ns(upkeep));
	due_ns = RBX_MIN(due_ns, rbx_balance_look(upkeep));
	due_ns = RBX_MIN(due_ns, rbx_rebuild_go_on(upkeep->flow, now_ns));
	if (!more)
		news_tell(upkeep);
	rbx_upkeep_places_free(upkeep);
	/* Other slabs may get memory, or a record, too. */
	if (upkeep->lent_count || upkeep->lacks_records)
		upkeep->retry_next_ns = 0;
	if (more || is_cut_short(upkeep))
		upkeep->flow->ops->wake(upkeep->flow);
	if (is_to_be_retried(upkeep))
		due_ns = RBX_MIN(due_ns,
				 now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull);
	return due_ns;
}

void rbx_upkeep_opened(struct rbx_upkeep *upkeep, uint64_t copy_rate_bytes)
{
	rbx_copy_pace_limit(&upkeep->flow->rebuild.pace, copy_rate_bytes);
	RBX_STORE_RELEASE(&upkeep->is_open, true);
	upkeep->flow->ops->wake(upkeep->flow);
}

void rbx_upkeep_closes(struct rbx_upkeep *upkeep)
{
	RBX_STORE_RELEASE(&upkeep->is_closing, true);
	upkeep->flow->ops->wake(upkeep->flow);
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
					   rbx_volume_map_slabs(map));
	return room >= (uint64_t)rbx_volume_map_slabs(map) * map->shape.replicas;
}

void rbx_upkeep_abandon(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	rbx_loans_withdraw(upkeep);
	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		rbx_slab_abandon(slab);
		rbx_slab_unlock(slab);
	}
	rbx_rebuild_run_out(upkeep->flow);
}

void rbx_upkeep_end(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	for (i = 0; i < rbx_volume_map_slabs(map); i++)
		rbx_upkeep_pages_free(upkeep, rbx_slab_at(&map->shape, i));
	rbx_upkeep_missed_free(upkeep);
}
