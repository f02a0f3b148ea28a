/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep.c - the rounds of the keeper, and the first and last borrowing, see
 * upkeep.h. What servers lend and are given back is in loans.c.
 */
#include "core/upkeep.h"

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops)
{
	rbx_port_fill(upkeep, 0, sizeof(*upkeep));
	upkeep->flow = flow;
	upkeep->ops = ops;
	rbx_lock_init(&upkeep->servers_lock);
}

/* ---- Servers --------------------------------------------------------------*/

static uint32_t servers_count(struct rbx_upkeep *upkeep)
{
	uint32_t count;

	rbx_lock(&upkeep->servers_lock);
	count = upkeep->flow->map->server_count;
	rbx_unlock(&upkeep->servers_lock);
	return count;
}

void rbx_upkeep_server_begins(struct rbx_upkeep *upkeep, uint32_t server)
{
	RBX_STORE_RELEASE(&upkeep->servers[server].is_down, false);
	RBX_STORE_RELEASE(&upkeep->servers[server].went_down, false);
}

void rbx_upkeep_server_added(struct rbx_upkeep *upkeep)
{
	rbx_lock(&upkeep->servers_lock);
	(void)rbx_volume_map_add_server(upkeep->flow->map);
	rbx_unlock(&upkeep->servers_lock);
	upkeep->flow->ops->wake(upkeep->flow);
}

void rbx_upkeep_server_down(struct rbx_upkeep *upkeep, uint32_t server)
{
	RBX_STORE_RELEASE(&upkeep->servers[server].is_down, true);
	(void)RBX_EXCHANGE(&upkeep->servers[server].went_down, true);
	upkeep->flow->ops->wake(upkeep->flow);
}

void rbx_upkeep_evict(struct rbx_upkeep *upkeep, uint32_t server,
		      uint64_t slab_id)
{
	struct rbx_volume_map *map = RBX_LOAD_ACQUIRE(&upkeep->flow->map);
	bool found = false;
	uint32_t i;

	for (i = 0; map && i < map->slab_count && !found; i++) {
		struct rbx_slab *slab = &map->slabs[i];

		rbx_lock(&slab->lock);
		found = rbx_slab_evict(slab, server, slab_id);
		rbx_unlock(&slab->lock);
	}
	if (found)
		upkeep->flow->ops->wake(upkeep->flow);
}

/* Marks what a dead server held as lost; parts that failed there have done so
 * already for their slabs. */
static void server_lose(struct rbx_upkeep *upkeep, uint32_t server)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, slab_count = 0;

	rbx_lock(&upkeep->servers_lock);
	rbx_volume_map_server_down(map, server);
	rbx_unlock(&upkeep->servers_lock);
	for (i = 0; i < map->slab_count; i++) {
		struct rbx_slab *slab = &map->slabs[i];

		rbx_lock(&slab->lock);
		slab_count += rbx_slab_servers(slab) >> server & 1;
		rbx_slab_server_down(slab, server);
		rbx_unlock(&slab->lock);
	}
	upkeep->ops->tell(upkeep, RBX_NEWS_SERVER_DOWN, slab_count, server, 0);
}

static void servers_tend(struct rbx_upkeep *upkeep)
{
	uint32_t i, count = servers_count(upkeep);

	for (i = 0; i < count; i++)
		if (RBX_EXCHANGE(&upkeep->servers[i].went_down, false))
			server_lose(upkeep, i);
}

/* ---- Status ---------------------------------------------------------------*/

static enum rbx_slab_health health_of(struct rbx_slab *slab)
{
	enum rbx_slab_health health;

	rbx_lock(&slab->lock);
	health = rbx_slab_health(slab);
	rbx_unlock(&slab->lock);
	return health;
}

static void slabs_count(struct rbx_upkeep *upkeep, struct rbx_census *census)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	rbx_port_fill(census, 0, sizeof(*census));
	census->slabs = map->slab_count;
	for (i = 0; i < map->slab_count; i++) {
		enum rbx_slab_health health = health_of(&map->slabs[i]);

		census->blank += health == RBX_SLAB_BLANK;
		census->whole += health == RBX_SLAB_WHOLE;
		census->lacking += health == RBX_SLAB_LACKING ||
				   health == RBX_SLAB_REBUILDING;
		census->rebuilding += health == RBX_SLAB_REBUILDING;
		census->dead += health == RBX_SLAB_DEAD;
	}
}

void rbx_upkeep_census(struct rbx_upkeep *upkeep, struct rbx_census *census)
{
	uint32_t i;

	slabs_count(upkeep, census);
	census->servers = servers_count(upkeep);
	for (i = 0; i < census->servers; i++)
		census->servers_up += !rbx_upkeep_server_is_down(upkeep, i);
}

/* ---- A round --------------------------------------------------------------*/

static enum rbx_slab_task task_of(struct rbx_slab *slab)
{
	enum rbx_slab_task task;

	rbx_lock(&slab->lock);
	task = rbx_slab_task(slab);
	rbx_unlock(&slab->lock);
	return task;
}

/* 0, or why no server could take the replica. */
static int replace(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	int err = rbx_loans_borrow(upkeep, slab, RBX_REPLICA_REBUILDING);
	struct rbx_census census;

	if (err) {
		rbx_loans_check_leaving(upkeep, slab);
		return err;
	}
	if (!upkeep->rebuilt_count) {
		slabs_count(upkeep, &census);
		upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_STARTED,
				  census.lacking, 0, 0);
	}
	upkeep->rebuilt_count++;
	return 0;
}

/* The first writes of a blank slab wait. One replica is enough for them to begin;
 * the others are made like those that were lost. They wait on for a server that is
 * away, as writes do that it has a replica of: it comes back, or is down in time.
 * Returns whether they wait on. */
static bool lend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t lent_count = 0, replicas = upkeep->flow->map->shape.replicas;
	struct rbx_piece_list todo = { 0 };
	int err;

	do
		err = rbx_loans_borrow(upkeep, slab, RBX_REPLICA_LIVE);
	while (!err && ++lent_count < replicas);
	if (!lent_count && rbx_loans_server_is_away(err)) {
		upkeep->lend_waits = true;
		return true;
	}
	rbx_lock(&slab->lock);
	rbx_slab_begin(slab, err, &todo);
	rbx_unlock(&slab->lock);
	rbx_flow_do(upkeep->flow, &todo);
	return false;
}

/* 0, or why the slab stays without a replica. */
static int slab_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t i;
	int err;

	/* Bounded: a slot can be given back once, and one more is borrowed. */
	for (i = 0; i < 2 * RBX_SLOTS_MAX; i++) {
		enum rbx_slab_task task = task_of(slab);

		if (task != RBX_TASK_NONE && upkeep->ops->tending)
			upkeep->ops->tending(upkeep, slab, task);
		switch (task) {
		case RBX_TASK_GIVE_BACK:
			if (upkeep->returns_count >= RBX_UPKEEP_RETURNS_MAX)
				return 0;
			rbx_loans_give_back(upkeep, slab);
			break;
		case RBX_TASK_BORROW:
			err = replace(upkeep, slab);
			if (err)
				return err;
			break;
		case RBX_TASK_LEND:
			if (lend(upkeep, slab))
				return 0;
			break;
		case RBX_TASK_COPY:
			if (!rbx_rebuild_is_under_way(upkeep->flow))
				rbx_rebuild_start(upkeep->flow, slab);
			return 0;
		case RBX_TASK_NONE:
			return 0;
		}
	}
	return 0;
}

/* stuck_count: slabs that stay without a replica, and why the last of them. */
static void news_tell(struct rbx_upkeep *upkeep, uint32_t stuck_count,
		      int stuck_err)
{
	struct rbx_census census;

	slabs_count(upkeep, &census);
	if (census.dead > upkeep->dead_count)
		upkeep->ops->tell(upkeep, RBX_NEWS_DATA_LOST,
				  census.dead - upkeep->dead_count, 0, 0);
	upkeep->dead_count = census.dead;
	if (stuck_count && !upkeep->is_stuck)
		upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_STUCK, stuck_count,
				  0, stuck_err);
	upkeep->is_stuck = stuck_count > 0;
	if (upkeep->rebuilt_count && !census.lacking) {
		upkeep->ops->tell(upkeep, RBX_NEWS_REBUILD_DONE,
				  upkeep->rebuilt_count, 0, 0);
		upkeep->rebuilt_count = 0;
	}
}

static bool writes_wait(struct rbx_slab *slab)
{
	bool wait;

	rbx_lock(&slab->lock);
	wait = slab->waiting.first != NULL;
	rbx_unlock(&slab->lock);
	return wait;
}

/* Slabs whose writes wait, or the others. Returns how many stay without a replica;
 * *stuck_err: why the last of them. */
static uint32_t slabs_tend(struct rbx_upkeep *upkeep, bool that_wait,
			   int *stuck_err)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, stuck_count = 0;
	int err;

	for (i = 0; i < map->slab_count; i++) {
		struct rbx_slab *slab = &map->slabs[i];

		err = writes_wait(slab) == that_wait ? slab_tend(upkeep, slab) :
						       0;
		if (err)
			*stuck_err = err;
		stuck_count += err != 0;
	}
	return stuck_count;
}

bool rbx_upkeep_round(struct rbx_upkeep *upkeep)
{
	uint32_t stuck_count;
	int stuck_err = 0;

	upkeep->returns_count = 0;
	upkeep->lend_waits = false;
	servers_tend(upkeep);
	/* What is stuck among these is seen once more with the others. */
	(void)slabs_tend(upkeep, true, &stuck_err);
	stuck_count = slabs_tend(upkeep, false, &stuck_err);
	news_tell(upkeep, stuck_count, stuck_err);
	if (upkeep->returns_count >= RBX_UPKEEP_RETURNS_MAX)
		upkeep->flow->ops->wake(upkeep->flow);
	return rbx_loans_pay_owed(upkeep) || stuck_count > 0 ||
	       upkeep->lend_waits;
}

/* ---- Open and close -------------------------------------------------------*/

int rbx_upkeep_borrow_all(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, replica;
	int err = 0;

	if (map->shape.on_demand)
		return 0;
	for (i = 0; i < map->slab_count && !err; i++)
		for (replica = 0; replica < map->shape.replicas && !err;
		     replica++)
			err = rbx_loans_borrow(upkeep, &map->slabs[i],
					       RBX_REPLICA_LIVE);
	return err;
}

bool rbx_upkeep_fits(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, server_count = servers_count(upkeep);
	uint64_t free_slabs[RBX_SERVERS_MAX];

	for (i = 0; i < server_count; i++)
		free_slabs[i] = upkeep->ops->free_bytes(upkeep, i) >>
				map->shape.slab_shift;
	return rbx_placement_fits(free_slabs, server_count, map->slab_count,
				  map->shape.replicas);
}

void rbx_upkeep_abandon(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	for (i = 0; i < map->slab_count; i++) {
		struct rbx_slab *slab = &map->slabs[i];

		rbx_lock(&slab->lock);
		rbx_slab_abandon(slab);
		rbx_unlock(&slab->lock);
	}
}

void rbx_upkeep_return(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	for (i = 0; i < map->slab_count; i++)
		while (task_of(&map->slabs[i]) == RBX_TASK_GIVE_BACK)
			rbx_loans_give_back(upkeep, &map->slabs[i]);
}
