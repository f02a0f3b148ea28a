/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans_open.c - borrows all replicas of all slabs, when a volume is opened.
 *
 * Slabs are handled in order. For each replica a server is drawn, so that all servers are used in
 * proportion to their free memory. A server does one thing at a time for us, so what was drawn for
 * one that is busy waits for it. As long as another one is idle, servers are drawn for the next
 * slabs, up to a bound: chance draws some servers several times in a row. But no sooner than that,
 * because a server is chosen by what has been answered.
 *
 * A slab's place for the replica is taken when its server is drawn, as if it had been asked. If a
 * server refuses, what was drawn for it is drawn again, for other servers, from its first slab on.
 */
#include "core/loans.h"

/* How many replicas have memory or are asked for; adds their servers. */
static uint32_t servers_of(struct rbx_slab *slab, struct rbx_server_set *servers)
{
	uint32_t count;

	rbx_slab_lock(slab);
	count = rbx_slab_servers(slab, servers);
	rbx_slab_unlock(slab);
	return count;
}

/* If possible, one that is not lost together with another replica of the slab. */
static int draw(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		const struct rbx_server_set *not_servers)
{
	struct rbx_server_set set = *not_servers, holders = { 0 };
	int server = -ENOSPC;

	rbx_slab_lock(slab);
	rbx_slab_holders(slab, &holders);
	rbx_slab_unlock(slab);
	if (rbx_asks_join_domains(upkeep, &holders, &set))
		server = rbx_asks_draw(upkeep, &set);
	return server >= 0 ? server : rbx_asks_draw(upkeep, not_servers);
}

/* Takes an entry off the table; the others keep their order. */
static struct rbx_drawn drawn_take(struct rbx_upkeep *upkeep, uint32_t index)
{
	struct rbx_drawn drawn = upkeep->drawn[index];

	upkeep->drawn_count--;
	upkeep->servers[drawn.server].drawn_count--;
	for (; index < upkeep->drawn_count; index++)
		upkeep->drawn[index] = upkeep->drawn[index + 1];
	return drawn;
}

static void drawn_take_back(struct rbx_upkeep *upkeep, uint32_t index)
{
	struct rbx_drawn drawn = drawn_take(upkeep, index);

	rbx_loans_unreserve(upkeep, drawn.slab, drawn.server, drawn.slot);
	upkeep->open_next = RBX_MIN(upkeep->open_next, rbx_slab_index(drawn.slab));
}

/* Asks the servers that can be asked now. */
static void drawn_send(struct rbx_upkeep *upkeep)
{
	uint32_t i = 0;

	while (i < upkeep->drawn_count) {
		uint32_t server = upkeep->drawn[i].server;

		if (rbx_server_set_has(&upkeep->open_refused, server)) {
			drawn_take_back(upkeep, i);
		} else if (upkeep->asked_count < RBX_ASKS_MAX &&
			   !rbx_server_set_has(&upkeep->busy, server)) {
			struct rbx_drawn drawn = drawn_take(upkeep, i);

			(void)rbx_loans_send(upkeep, drawn.slab, server, drawn.slot);
		} else {
			i++;
		}
	}
}

static int answers_wait(struct rbx_upkeep *upkeep)
{
	return rbx_loans_take(upkeep) ? 0 : upkeep->ops->wait(upkeep);
}

/* Whether a server is not asked for anything that could lend. */
static bool is_one_idle(struct rbx_upkeep *upkeep)
{
	const struct rbx_server_set *up = &upkeep->flow->map->servers_up;
	uint64_t idle = 0;
	uint32_t i;

	rbx_lock(&upkeep->servers_lock);
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		idle |= up->words[i] & ~upkeep->busy.words[i] &
			~upkeep->open_refused.words[i];
	rbx_unlock(&upkeep->servers_lock);
	return idle != 0;
}

static bool may_draw(struct rbx_upkeep *upkeep)
{
	return upkeep->open_next < upkeep->flow->map->slab_count &&
	       upkeep->drawn_count < RBX_OPEN_DRAWS_MAX &&
	       (is_one_idle(upkeep) || !upkeep->asked_count);
}

/* A server for one more replica of the next slab. 0; or why not. */
static int draw_next(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_slab *slab = rbx_slab_at(&map->shape, upkeep->open_next);
	struct rbx_server_set not_servers = upkeep->open_refused;
	int server;

	if (servers_of(slab, &not_servers) >= map->shape.replicas) {
		upkeep->open_next++;
		return 0;
	}
	server = draw(upkeep, slab, &not_servers);
	if (server < 0)
		return upkeep->asked_count ? answers_wait(upkeep) :
					     upkeep->open_err;
	upkeep->drawn[upkeep->drawn_count++] = (struct rbx_drawn){
		.slab = slab,
		.server = (uint32_t)server,
		.slot = rbx_loans_reserve(upkeep, slab, (uint32_t)server),
	};
	upkeep->servers[server].drawn_count++;
	return 0;
}

int rbx_loans_borrow_all(struct rbx_upkeep *upkeep)
{
	const struct rbx_volume_map *map = upkeep->flow->map;
	int err = 0;

	upkeep->open_err = -ENODEV;
	/* Bounded: open_next goes back only if a server has refused, and that is not asked
	 * again. */
	while (!err && (upkeep->open_next < map->slab_count || upkeep->drawn_count ||
			upkeep->asked_count)) {
		err = may_draw(upkeep) ? draw_next(upkeep) : answers_wait(upkeep);
		(void)rbx_loans_take(upkeep);
		drawn_send(upkeep); /* so if some are left, their servers have not answered */
	}
	while (upkeep->drawn_count)
		drawn_take_back(upkeep, 0);
	return err;
}
