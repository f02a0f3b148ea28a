/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_network.c - see volume_network.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/volume_network.h"

bool world_chance(struct world *world, uint32_t permille)
{
	return rbx_random_below(&world->random, 1000) < permille;
}

/* ---- Servers --------------------------------------------------------------*/

uint32_t world_server_add(struct world *world)
{
	uint32_t index = world->map->server_count;

	assert_true(index < WORLD_SERVERS_MAX);
	rbx_volume_map_add_server(world->map, index);
	world->servers[index].memory = malloc(WORLD_AREAS * WORLD_SLAB_BYTES);
	world->servers[index].free_bytes = WORLD_AREAS * WORLD_SLAB_BYTES;
	world->server_count = index + 1;
	return index;
}

int world_server_lend(struct world *world, uint32_t index,
		      struct rbx_loan *loan)
{
	struct world_server *server = &world->servers[index];
	uint32_t area;

	if (server->down || server->full)
		return -ENOSPC;
	for (area = 0; area < WORLD_AREAS && server->keys[area]; area++)
		;
	if (area == WORLD_AREAS)
		return -ENOSPC;
	server->lends_count++;
	server->keys[area] = ++world->next_key;
	world->servers[index].free_bytes -= WORLD_SLAB_BYTES;
	memset(server->memory + area * WORLD_SLAB_BYTES, 0, WORLD_SLAB_BYTES);
	*loan = (struct rbx_loan){
		.slab_id = area,
		.epoch = world->next_key,
		.remote_addr = area * WORLD_SLAB_BYTES,
		.rkey = world->next_key,
	};
	return 0;
}

void world_server_take_back(struct world *world, uint32_t index,
			    const struct rbx_loan *loan)
{
	struct world_server *server = &world->servers[index];

	assert_int_equal(server->keys[loan->slab_id], loan->rkey);
	server->keys[loan->slab_id] = 0;
	world->servers[index].free_bytes += WORLD_SLAB_BYTES;
}

uint8_t *world_replica(struct world *world, const struct rbx_slab *slab,
		       uint32_t slot)
{
	const struct rbx_replica *replica = rbx_slab_replica(slab, slot);

	return world->servers[rbx_replica_server(replica)].memory +
	       rbx_replica_addr(replica);
}

/* ---- The network ----------------------------------------------------------*/

/* How much of a write has arrived when this machine fails is anybody's guess. */
static int32_t fail_here(struct world *world,
			 const struct rbx_fragment *fragment,
			 struct world_server *server)
{
	uint32_t units = fragment->length_bytes / HISTORY_UNIT_BYTES;

	if (fragment->direction == RBX_DIRECTION_WRITE &&
	    !world->fails_before_it_sends && world_chance(world, 500))
		memcpy(server->memory + fragment->remote_addr,
		       (void *)(uintptr_t)fragment->local_addr,
		       rbx_random_below(&world->random, units + 1) *
			       HISTORY_UNIT_BYTES);
	return -EFAULT;
}

int32_t world_carry_out(struct world *world, const struct rbx_part *part)
{
	const struct rbx_fragment *fragment = &part->fragment;
	struct world_server *server = &world->servers[part->server];
	void *local = (void *)(uintptr_t)fragment->local_addr;
	uint32_t area = (uint32_t)(fragment->remote_addr / WORLD_SLAB_BYTES);

	if (server->down)
		return -EHOSTUNREACH;
	assert_int_equal(server->keys[area], fragment->rkey);
	if (world_chance(world, world->fail_local_permille))
		return fail_here(world, fragment, server);
	if (fragment->direction == RBX_DIRECTION_READ)
		memcpy(local, server->memory + fragment->remote_addr,
		       fragment->length_bytes);
	else
		memcpy(server->memory + fragment->remote_addr, local,
		       fragment->length_bytes);
	/* What is done may still be reported as failed. */
	return world_chance(world, world->fail_remote_permille) ? -EREMOTEIO :
									  0;
}
