/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_servers.c - the servers of a volume, as the upkeep thread sees them: which there
 * are, which went down, and which places in the table are free again, see upkeep.h.
 *
 * Any thread may report that a server is dead; the rounds do the rest. They look for its
 * replicas slab by slab, so many in a round, and free its place when nothing refers to it.
 */
#include "core/upkeep_servers.h"

#include "core/asks.h"
#include "core/slab_away.h"

uint32_t rbx_upkeep_servers_count(struct rbx_upkeep *upkeep)
{
	uint32_t count;

	rbx_lock(&upkeep->servers_lock);
	count = upkeep->flow->map->server_count;
	rbx_unlock(&upkeep->servers_lock);
	return count;
}

/* ---- For the host ----------------------------------------------------------------- */

bool rbx_upkeep_server_is_down(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return RBX_LOAD_ACQUIRE(&upkeep->servers[server].is_down);
}

bool rbx_upkeep_server_is_busy(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return rbx_server_set_has(&upkeep->busy, server);
}

uint64_t rbx_upkeep_server_incarnation(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return upkeep->servers[server].incarnation;
}

void rbx_upkeep_server_set_incarnation(struct rbx_upkeep *upkeep, uint32_t server,
				       uint64_t incarnation)
{
	upkeep->servers[server].incarnation = incarnation;
}

uint32_t rbx_upkeep_server_replicas(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return RBX_LOAD_RELAXED(&upkeep->servers[server].replicas_count);
}

struct rbx_lock *rbx_upkeep_servers_lock(struct rbx_upkeep *upkeep)
{
	return &upkeep->servers_lock;
}

/* ---- Servers that come and go ------------------------------------------------------ */

int rbx_upkeep_server_place(struct rbx_upkeep *upkeep, uint32_t *server)
{
	uint32_t i, count = rbx_upkeep_servers_count(upkeep);

	/* Pairs with rbx_upkeep_places_free(): the upkeep thread is done with that place. */
	for (i = 0; i < count; i++)
		if (RBX_LOAD_ACQUIRE(&upkeep->servers[i].is_free))
			break;
	*server = i;
	return i < RBX_SERVERS_MAX ? 0 : -ENOSPC;
}

void rbx_upkeep_server_begins(struct rbx_upkeep *upkeep, uint32_t server)
{
	struct rbx_upkeep_server *place = &upkeep->servers[server];

	RBX_STORE_RELEASE(&place->is_free, false);
	RBX_STORE_RELEASE(&place->is_down, false);
	RBX_STORE_RELEASE(&place->went_down, false);
	place->incarnation = 0;
	rbx_upkeep_server_domain(upkeep, server, 0);
	rbx_lock(&upkeep->servers_lock);
	rbx_server_set_remove(&upkeep->leaving, server);
	rbx_unlock(&upkeep->servers_lock);
}

bool rbx_upkeep_server_leaves(struct rbx_upkeep *upkeep, uint32_t server)
{
	bool leaves;

	rbx_lock(&upkeep->servers_lock);
	leaves = rbx_server_set_has(&upkeep->leaving, server);
	rbx_unlock(&upkeep->servers_lock);
	return leaves;
}

uint32_t rbx_upkeep_server_leave(struct rbx_upkeep *upkeep, uint32_t server)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, count = 0;

	rbx_lock(&upkeep->servers_lock);
	rbx_server_set_add(&upkeep->leaving, server);
	rbx_unlock(&upkeep->servers_lock);
	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		count += rbx_slab_leave(slab, server);
		(void)rbx_attention_note(&map->attention, slab);
		rbx_slab_unlock(slab);
	}
	upkeep->flow->ops->wake(upkeep->flow);
	return count;
}

bool rbx_upkeep_server_is_empty(const struct rbx_upkeep *upkeep, uint32_t server)
{
	uint32_t i;

	for (i = 0; i < upkeep->owed_count; i++)
		if (upkeep->owed[i].server == server)
			return false;
	return !upkeep->servers[server].replicas_count &&
	       !rbx_server_set_has(&upkeep->busy, server);
}

void rbx_upkeep_server_domain(struct rbx_upkeep *upkeep, uint32_t server,
			      uint64_t domain)
{
	rbx_domains_set(&upkeep->flow->domains, server, domain);
}

void rbx_upkeep_server_failed(struct rbx_upkeep *upkeep, uint32_t server)
{
	struct rbx_upkeep_server *place = &upkeep->servers[server];

	RBX_STORE_RELEASE(&place->is_down, true);
	RBX_STORE_RELEASE(&place->went_down, false);
	RBX_STORE_RELEASE(&place->is_free, true);
}

int rbx_upkeep_server_connected(struct rbx_upkeep *upkeep, uint32_t server,
				uint64_t incarnation, uint32_t *other)
{
	uint32_t i;

	RBX_ASSERT(server < RBX_SERVERS_MAX && incarnation);
	for (i = 0; i < RBX_SERVERS_MAX; i++) {
		if (i == server || rbx_upkeep_server_is_down(upkeep, i) ||
		    upkeep->servers[i].incarnation != incarnation)
			continue;
		*other = i;
		return -EEXIST;
	}
	upkeep->servers[server].incarnation = incarnation;
	return 0;
}

void rbx_upkeep_server_comes(struct rbx_upkeep *upkeep, uint32_t server)
{
	rbx_lock(&upkeep->servers_lock);
	rbx_volume_map_take_place(upkeep->flow->map, server);
	rbx_unlock(&upkeep->servers_lock);
}

void rbx_upkeep_server_added(struct rbx_upkeep *upkeep, uint32_t server)
{
	rbx_lock(&upkeep->servers_lock);
	rbx_volume_map_add_server(upkeep->flow->map, server);
	rbx_unlock(&upkeep->servers_lock);
	if (rbx_upkeep_server_is_down(upkeep, server))
		rbx_upkeep_server_down(upkeep, server); /* now it counts */
	upkeep->flow->ops->wake(upkeep->flow);
}

void rbx_upkeep_server_down(struct rbx_upkeep *upkeep, uint32_t server)
{
	RBX_STORE_RELEASE(&upkeep->servers[server].is_down, true);
	(void)RBX_EXCHANGE(&upkeep->servers[server].went_down, true);
	(void)RBX_EXCHANGE(&upkeep->any_went_down, true);
	upkeep->flow->ops->wake(upkeep->flow);
}

/* ---- Servers that went down ---------------------------------------------------*/

static void slab_lose(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t server = upkeep->lost.server;

	rbx_slab_lock(slab);
	upkeep->lost.slab_count += rbx_slab_has_server(slab, server);
	rbx_slab_server_down(slab, server);
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
	rbx_slab_unlock(slab);
}

/* Goes on looking for the replicas of the dead server, so many slabs in a round. Parts that
 * failed there have lost their replicas already. Returns whether that was all. */
static bool lost_go_on(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t count = rbx_volume_map_slabs(map);
	uint32_t end = RBX_MIN(count, upkeep->lost.next + RBX_UPKEEP_LOOKS_MAX);

	for (; upkeep->lost.next < end; upkeep->lost.next++)
		slab_lose(upkeep, rbx_slab_at(&map->shape, upkeep->lost.next));
	if (end < count)
		return false;
	upkeep->lost.is_on = false;
	upkeep->servers[upkeep->lost.server].is_gone = true;
	upkeep->gone_count++;
	upkeep->ops->tell(upkeep, RBX_NEWS_SERVER_DOWN,
			  upkeep->lost.slab_count, upkeep->lost.server, 0);
	return true;
}

/* False: the server was never added, or the adding was not handled yet. */
static bool lost_begin(struct rbx_upkeep *upkeep, uint32_t server)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	bool was_up;

	rbx_lock(&upkeep->servers_lock);
	was_up = rbx_server_set_has(&map->servers_up, server);
	rbx_volume_map_server_down(map, server);
	rbx_unlock(&upkeep->servers_lock);
	if (was_up)
		upkeep->lost = (struct rbx_lost){ .is_on = true,
						  .server = server };
	return was_up;
}

bool rbx_upkeep_servers_tend(struct rbx_upkeep *upkeep)
{
	uint32_t i, count = rbx_upkeep_servers_count(upkeep);

	if (upkeep->lost.is_on && !lost_go_on(upkeep))
		return true;
	if (!RBX_LOAD_RELAXED(&upkeep->any_went_down))
		return false;
	(void)RBX_EXCHANGE(&upkeep->any_went_down, false);
	for (i = 0; i < count; i++) {
		if (!RBX_EXCHANGE(&upkeep->servers[i].went_down, false))
			continue;
		if (!lost_begin(upkeep, i) || lost_go_on(upkeep))
			continue;
		(void)RBX_EXCHANGE(&upkeep->any_went_down, true);
		return true;
	}
	return false;
}

/* ---- Servers that were silent ------------------------------------------------------ */

/* The words of all slabs: they are lent once, by whichever server is silent first. */
static void missed_lend(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = RBX_LOAD_ACQUIRE(&upkeep->flow->map);
	uint64_t *none = NULL, *missed;

	if (!map || map->shape.is_named || map->shape.replicas == 1 ||
	    RBX_LOAD_RELAXED(&map->shape.missed))
		return;
	missed = upkeep->ops->memory_lend(upkeep, map->slab_max * sizeof(*missed));
	if (missed && !RBX_COMPARE_EXCHANGE(&map->shape.missed, &none, missed))
		upkeep->ops->memory_take_back(upkeep, missed);
}

void rbx_upkeep_missed_free(struct rbx_upkeep *upkeep)
{
	static uint64_t ended; /* no more is lent. No replica is LIVE, so no word is used */
	struct rbx_slab_shape *shape = &upkeep->flow->map->shape;
	uint64_t *missed = shape->is_named ? NULL : RBX_EXCHANGE(&shape->missed, &ended);

	if (missed && missed != &ended)
		upkeep->ops->memory_take_back(upkeep, missed);
}

void rbx_upkeep_server_silent(struct rbx_upkeep *upkeep, uint32_t server)
{
	missed_lend(upkeep);
	/* Pairs with slab_return(): the lock of a slab that is AWAY comes later. */
	RBX_STORE_RELEASE(&upkeep->servers[server].is_silent, true);
}

static void back_set(struct rbx_upkeep *upkeep, uint32_t server)
{
	(void)RBX_EXCHANGE(&upkeep->servers[server].is_back, true);
	(void)RBX_EXCHANGE(&upkeep->any_is_back, true);
}

void rbx_upkeep_server_back(struct rbx_upkeep *upkeep, uint32_t server)
{
	struct rbx_upkeep_server *place = &upkeep->servers[server];

	if (!RBX_EXCHANGE(&place->is_silent, false))
		return; /* it was not silent for long */
	back_set(upkeep, server);
	upkeep->flow->ops->wake(upkeep->flow);
}

/* Whether it is silent again. What is AWAY by that stays so until it is back once more. */
static bool is_gone(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return RBX_LOAD_ACQUIRE(&upkeep->servers[server].is_silent) ||
	       rbx_upkeep_server_is_down(upkeep, server);
}

static void slab_return(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_back *back = &upkeep->back;
	uint64_t missed = 0;
	int err = -ENOENT;

	rbx_slab_lock(slab);
	if (!is_gone(upkeep, back->server))
		err = rbx_slab_server_back(slab, back->server, &missed);
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
	rbx_slab_unlock(slab);
	back->some_wait |= err == -EAGAIN;
	if (err)
		return;
	upkeep->back_count++;
	upkeep->extents_stale += rbx_server_set_count_word(missed);
	upkeep->extents_kept += rbx_server_set_count_word(~missed);
}

/* So many slabs in a round. Returns whether it is over, for this server. */
static bool back_go_on(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_back *back = &upkeep->back;
	uint32_t count = rbx_volume_map_slabs(map);
	uint32_t end = RBX_MIN(count, back->next + RBX_UPKEEP_LOOKS_MAX);

	for (; back->next < end; back->next++)
		slab_return(upkeep, rbx_slab_at(&map->shape, back->next));
	if (is_gone(upkeep, back->server))
		return true;
	if (end < count)
		return false;
	if (back->some_wait) {
		rbx_server_set_add(&back->again, back->server);
		if (!back->again_ns)
			back->again_ns = upkeep->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull;
	}
	return true;
}

/* It is time for those at which some have waited. */
static void back_again(struct rbx_upkeep *upkeep)
{
	struct rbx_back *back = &upkeep->back;
	uint32_t i, count = rbx_server_set_count(&back->again);

	for (i = 0; i < count; i++)
		back_set(upkeep, rbx_server_set_member(&back->again, i));
	back->again = (struct rbx_server_set){ 0 };
	back->again_ns = 0;
}

/* The next one, if any. */
static void back_begin(struct rbx_upkeep *upkeep)
{
	uint32_t i, count = rbx_upkeep_servers_count(upkeep);

	(void)RBX_EXCHANGE(&upkeep->any_is_back, false);
	for (i = 0; i < count; i++) {
		if (!RBX_EXCHANGE(&upkeep->servers[i].is_back, false))
			continue;
		(void)RBX_EXCHANGE(&upkeep->any_is_back, true); /* there may be others */
		upkeep->back.is_on = true;
		upkeep->back.some_wait = false;
		upkeep->back.server = i;
		upkeep->back.next = 0;
		return;
	}
}

uint64_t rbx_upkeep_servers_return(struct rbx_upkeep *upkeep, bool *more)
{
	struct rbx_back *back = &upkeep->back;

	if (upkeep->flow->map->shape.is_named)
		return UINT64_MAX; /* its servers know themselves what they have missed */
	if (back->again_ns && upkeep->now_ns >= back->again_ns)
		back_again(upkeep);
	if (!back->is_on && RBX_LOAD_RELAXED(&upkeep->any_is_back))
		back_begin(upkeep);
	if (back->is_on) {
		back->is_on = !back_go_on(upkeep);
		*more |= back->is_on || RBX_LOAD_RELAXED(&upkeep->any_is_back);
	}
	return back->again_ns ? back->again_ns : UINT64_MAX;
}

/* At the end of a round, so nothing is owed to a dead server any more. */
void rbx_upkeep_places_free(struct rbx_upkeep *upkeep)
{
	uint32_t i, count;

	if (!upkeep->gone_count)
		return;
	count = rbx_upkeep_servers_count(upkeep);
	for (i = 0; i < count; i++) {
		struct rbx_upkeep_server *place = &upkeep->servers[i];

		if (!place->is_gone || place->replicas_count ||
		    rbx_server_set_has(&upkeep->busy, i))
			continue;
		place->is_gone = false;
		/* Nobody says any more that it is silent, nor that it is back. */
		place->is_silent = place->is_back = false;
		upkeep->gone_count--;
		rbx_asks_forget(upkeep, i);
		RBX_STORE_RELEASE(&place->is_free, true);
	}
}
