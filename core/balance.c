/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * balance.c - which replica moves, and where to, see balance.h.
 *
 * First the servers are looked at: most of the time they are even, and no slab is looked at. Else
 * slabs are, a few in a round, from where the last look has ended. When all were looked at in
 * vain, there is a pause: the servers with much memory free have a replica of each slab that could
 * move, or are in the domain of one.
 */
#include "core/balance.h"

#include "core/asks.h"
#include "core/borrow.h"
#include "core/loans.h"
#include "core/slab_rebuild.h"
#include "core/slab_spare.h"
#include "core/upkeep_servers.h"

/* What one more replica at the better server takes, and what it must be better by. */
static uint64_t gap_bytes(const struct rbx_upkeep *upkeep)
{
	return (uint64_t)2 << upkeep->flow->map->shape.slab_shift;
}

static uint64_t free_bytes(struct rbx_upkeep *upkeep, uint32_t server)
{
	return upkeep->ops->free_bytes(upkeep, server);
}

/* A while from now: not all clients at the same moment. */
static uint64_t pause(struct rbx_upkeep *upkeep)
{
	uint32_t ms = RBX_BALANCE_MS +
		      rbx_random_below(&upkeep->flow->map->random, RBX_BALANCE_MS / 2);

	upkeep->balance_ns = upkeep->now_ns + ms * 1000000ull;
	return upkeep->balance_ns;
}

/* ---- Whether anything may move ------------------------------------------------------*/

/* A server that has left keeps its mark until its place is taken, and is not up. */
static bool any_leaves(struct rbx_upkeep *upkeep)
{
	uint64_t found = 0;
	uint32_t i;

	rbx_lock(&upkeep->servers_lock);
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		found |= upkeep->leaving.words[i] & upkeep->flow->map->servers_up.words[i];
	rbx_unlock(&upkeep->servers_lock);
	return found != 0;
}

static bool is_at_rest(struct rbx_upkeep *upkeep, struct rbx_server_set *gone)
{
	const struct rbx_slab_shape *shape = &upkeep->flow->map->shape;

	if (upkeep->asked_count || upkeep->owed_count || upkeep->borrowings_count ||
	    rbx_rebuild_is_under_way(upkeep->flow) || !rbx_upkeep_is_whole(upkeep) ||
	    any_leaves(upkeep))
		return false;
	if (!shape->is_guarded)
		return true;
	return upkeep->copies_least >= shape->replicas &&
	       !rbx_held_suspects(&upkeep->flow->held, &(struct rbx_server_set){ 0 }, gone);
}

/* Whether two servers differ by so much that a replica could move. */
static bool is_uneven(struct rbx_upkeep *upkeep)
{
	const struct rbx_server_set *up = &upkeep->flow->map->servers_up;
	uint64_t least = UINT64_MAX, most = 0;
	uint32_t i, count = rbx_upkeep_servers_count(upkeep);

	for (i = 0; i < count; i++) {
		uint64_t bytes;

		if (!rbx_server_set_has(up, i) || rbx_upkeep_server_is_down(upkeep, i))
			continue;
		bytes = free_bytes(upkeep, i);
		most = RBX_MAX(most, bytes);
		if (upkeep->servers[i].replicas_count)
			least = RBX_MIN(least, bytes);
	}
	return most >= gap_bytes(upkeep) && least <= most - gap_bytes(upkeep);
}

/* ---- Which replica --------------------------------------------------------------------*/

/* A replica that would move. */
struct move {
	uint32_t from, to; /* servers */
};

/* The servers of a slab that may be moved; false: something else is to be done for it. */
static bool slab_is_at_rest(struct rbx_slab *slab, const struct rbx_server_set *gone,
			    struct rbx_server_set *servers)
{
	uint32_t i;
	bool is_so;

	rbx_slab_lock(slab);
	is_so = rbx_slab_health(slab) == RBX_SLAB_WHOLE &&
		rbx_slab_task(slab) == RBX_TASK_NONE;
	(void)rbx_slab_servers(slab, servers);
	rbx_slab_unlock(slab);
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		is_so &= !(servers->words[i] & gone->words[i]);
	return is_so;
}

static bool is_worth_it(struct rbx_upkeep *upkeep, const struct move *move)
{
	return free_bytes(upkeep, move->to) >= free_bytes(upkeep, move->from) + gap_bytes(upkeep);
}

/* A server that could take the replica, or -ENOSPC: not one that has another replica, or is in the
 * failure domain of one that stays, or has refused lately. */
static int place_find(struct rbx_upkeep *upkeep, const struct rbx_server_set *servers,
		      uint32_t from)
{
	struct rbx_server_set not_servers = *servers, stay = *servers;

	rbx_server_set_remove(&stay, from);
	(void)rbx_asks_join_domains(upkeep, &stay, &not_servers);
	rbx_asks_join_refused(upkeep, &not_servers);
	return rbx_asks_place_well(upkeep, &not_servers);
}

static bool move_find(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		      const struct rbx_server_set *gone, struct move *move)
{
	struct rbx_server_set servers = { 0 };
	uint32_t nth;
	int to;

	if (!slab_is_at_rest(slab, gone, &servers))
		return false;
	for (nth = 0; nth < upkeep->flow->map->shape.replicas; nth++) {
		move->from = rbx_server_set_member(&servers, nth);
		to = place_find(upkeep, &servers, move->from);
		if (to < 0 || rbx_server_set_has(gone, (uint32_t)to))
			continue;
		move->to = (uint32_t)to;
		if (is_worth_it(upkeep, move))
			return true;
	}
	return false;
}

static bool move_begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab, const struct move *move)
{
	bool given;

	rbx_slab_lock(slab);
	/* It may have been written to and lost something since, or was discarded. */
	given = rbx_slab_health(slab) == RBX_SLAB_WHOLE &&
		rbx_slab_find(slab, RBX_REPLICA_EMPTY) >= 0 && rbx_slab_record_give(slab);
	rbx_slab_unlock(slab);
	if (!given)
		return false;
	upkeep->balance_from = move->from;
	rbx_borrow_move(upkeep, slab, move->to);
	return true;
}

uint64_t rbx_balance_look(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, count = rbx_volume_map_slabs(map);
	struct rbx_server_set gone = { 0 };
	struct move move;

	if (!RBX_LOAD_RELAXED(&upkeep->is_open) || map->shape.replicas < 2 ||
	    RBX_LOAD_RELAXED(&upkeep->is_closing))
		return UINT64_MAX;
	if (!is_at_rest(upkeep, &gone))
		return upkeep->balance_is_on ? UINT64_MAX : pause(upkeep);
	if (!upkeep->balance_ns)
		return pause(upkeep); /* it was opened just now */
	if (!upkeep->balance_is_on && upkeep->now_ns < upkeep->balance_ns)
		return upkeep->balance_ns;
	upkeep->balance_is_on = false;
	if (!is_uneven(upkeep))
		return pause(upkeep);
	for (i = 0; i < RBX_BALANCE_LOOKS_MAX; i++) {
		struct rbx_slab *slab;

		if (upkeep->balance_looked++ >= count) {
			upkeep->balance_looked = 0;
			return pause(upkeep);
		}
		slab = rbx_slab_at(&map->shape, upkeep->balance_next++ % count);
		if (!move_find(upkeep, slab, &gone, &move) || !move_begin(upkeep, slab, &move))
			continue;
		upkeep->balance_looked = 0;
		upkeep->balance_is_on = true;
		return UINT64_MAX;
	}
	upkeep->balance_is_on = true;
	return upkeep->now_ns + 1;
}

/* ---- A server has lent, or not -------------------------------------------------------*/

void rbx_balance_over(struct rbx_upkeep *upkeep, const struct rbx_borrowing *borrowing)
{
	struct rbx_slab *slab = borrowing->slab;
	uint32_t from = upkeep->balance_from, to = borrowing->to;
	bool is_better = free_bytes(upkeep, to) + gap_bytes(upkeep) / 2 >=
			 free_bytes(upkeep, from) + gap_bytes(upkeep);
	int slot, leaving;

	rbx_slab_lock(slab);
	/* If one was lost meanwhile, this one takes its place. */
	slot = rbx_slab_slot_of(slab, to);
	if (slot >= 0 && rbx_slab_staying(slab) > rbx_slab_shape(slab)->replicas) {
		leaving = rbx_slab_slot_of(slab, from);
		if (is_better && leaving >= 0)
			rbx_slab_move_away(slab, (uint32_t)leaving, (uint32_t)slot);
		else
			rbx_slab_lose(slab, (uint32_t)slot);
		RBX_ADD_RELAXED(&upkeep->moved_count, is_better);
	}
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
	rbx_slab_unlock(slab);
	rbx_slab_return_record(slab, &upkeep->flow->map->loans);
}
