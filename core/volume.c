/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.c - the map of a volume, see volume.h.
 *
 * The memory of a map is one block: the map, the groups of slabs that share a lock, the
 * slabs, the checksums or intent words of all slabs, the tables of the index of loans, and the
 * lists of slabs that want attention.
 */
#include "core/volume.h"

#include "core/extents.h"
#include "core/slab_spare.h"

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

bool rbx_slab_bytes_are_good(uint64_t slab_bytes)
{
	return is_power_of_two(slab_bytes) &&
	       slab_bytes >= RBX_SLAB_BYTES_MIN &&
	       slab_bytes <= RBX_SLAB_BYTES_MAX;
}

int rbx_volume_shape_check(const struct rbx_volume_shape *shape)
{
	if (!rbx_slab_bytes_are_good(shape->slab_bytes))
		return -EINVAL;
	if (!is_power_of_two(shape->fragment_bytes) ||
	    shape->fragment_bytes < RBX_FRAGMENT_BYTES_MIN ||
	    shape->fragment_bytes > RBX_FRAGMENT_BYTES_MAX)
		return -EINVAL;
	if (!shape->replicas || shape->replicas > RBX_REPLICAS_MAX)
		return -EINVAL;
	if (!shape->size_bytes || shape->size_bytes % RBX_PAGE_BYTES ||
	    shape->size_bytes > shape->slab_bytes * RBX_SLABS_MAX)
		return -EINVAL;
	if (shape->size_max_bytes && (shape->size_max_bytes < shape->size_bytes ||
				      shape->size_max_bytes > shape->slab_bytes * RBX_SLABS_MAX))
		return -EINVAL;
	return 0;
}

static uint32_t slabs_of(const struct rbx_volume_shape *shape, uint64_t size_bytes)
{
	return (uint32_t)((size_bytes + shape->slab_bytes - 1) / shape->slab_bytes);
}

/* For how many there is memory. */
static uint32_t slab_max(const struct rbx_volume_shape *shape)
{
	return slabs_of(shape, RBX_MAX(shape->size_bytes, shape->size_max_bytes));
}

static uint64_t cell_bytes(const struct rbx_volume_shape *shape)
{
	return RBX_MIN((uint64_t)shape->fragment_bytes, shape->slab_bytes);
}

static size_t checksums_size(const struct rbx_volume_shape *shape)
{
	return shape->checksums ? slab_max(shape) * shape->slab_bytes /
					  RBX_PAGE_BYTES * sizeof(uint32_t) :
				  0;
}

static size_t doubts_size(const struct rbx_volume_shape *shape)
{
	return shape->checksums ? RBX_SLAB_RECORDS * sizeof(struct rbx_doubts) : 0;
}

static bool is_guarded(const struct rbx_volume_shape *shape)
{
	return shape->is_named && shape->replicas > 1;
}

static uint32_t extents_max(const struct rbx_volume_shape *shape)
{
	return rbx_extents_max(shape->crash_copy_bytes, shape->slab_bytes);
}

static size_t extents_size(const struct rbx_volume_shape *shape)
{
	return is_guarded(shape) ? rbx_extents_size(slab_max(shape), extents_max(shape)) : 0;
}

static uint32_t slab_size(const struct rbx_volume_shape *shape)
{
	return rbx_slab_size(shape->replicas);
}

/* How many places for replicas there are. */
static uint32_t numbers(const struct rbx_volume_shape *shape)
{
	return rbx_replica_numbers(slab_max(shape), shape->replicas);
}

size_t rbx_volume_map_size(const struct rbx_volume_shape *shape)
{
	RBX_ASSERT(rbx_volume_shape_check(shape) == 0);
	return sizeof(struct rbx_volume_map) +
	       RBX_SLAB_LOCKS * sizeof(struct rbx_slab_group) +
	       rbx_slab_table_size(slab_max(shape), slab_size(shape)) +
	       checksums_size(shape) + doubts_size(shape) +
	       extents_size(shape) + rbx_loan_index_size(numbers(shape)) +
	       rbx_attention_size(slab_max(shape));
}

static void extents_open(struct rbx_volume_map *map, const struct rbx_volume_shape *shape,
			 void *memory)
{
	struct rbx_extents *extents =
		rbx_extents_init(memory, slab_max(shape), extents_max(shape));
	uint32_t i;

	for (i = 0; i < RBX_SLAB_LOCKS; i++)
		map->shape.groups[i].extents = extents;
}

/* Slabs of these indices, with the heads of their blocks. */
static void slabs_make(struct rbx_volume_map *map, uint32_t first, uint32_t end)
{
	uint32_t i;

	rbx_slab_table_extend(&map->shape.table, first, end, &map->shape);
	for (i = first; i < end; i++)
		rbx_slab_init(rbx_slab_at(&map->shape, i));
}

struct rbx_volume_map *
rbx_volume_map_init(void *memory, const struct rbx_volume_shape *shape,
		    uint64_t seed)
{
	struct rbx_volume_map *map = memory;
	struct rbx_slab_group *groups = (struct rbx_slab_group *)(map + 1);
	char *tables;
	uint32_t i;

	RBX_ASSERT(rbx_volume_shape_check(shape) == 0);
	map->shape.slab_shift = (uint32_t)__builtin_ctzll(shape->slab_bytes);
	map->shape.cell_shift = (uint32_t)__builtin_ctzll(cell_bytes(shape));
	map->shape.replicas = shape->replicas;
	map->shape.slots = shape->replicas + 1;
	map->shape.on_demand = shape->on_demand;
	map->shape.is_named = shape->is_named;
	map->shape.is_guarded = is_guarded(shape);
	map->shape.has_tails = is_guarded(shape) && shape->checksums;
	map->size_bytes = shape->size_bytes;
	map->slab_count = slabs_of(shape, shape->size_bytes);
	map->slab_max = slab_max(shape);
	map->slab_mask = (uint32_t)(shape->slab_bytes - 1);
	map->cell_mask = (uint32_t)(cell_bytes(shape) - 1);
	map->shape.groups = groups;
	map->shape.records = &map->records;
	rbx_slab_records_init(&map->records);
	tables = (char *)(groups + RBX_SLAB_LOCKS);
	rbx_slab_table_init(&map->shape.table, tables, map->slab_max, slab_size(shape));
	tables += rbx_slab_table_size(map->slab_max, slab_size(shape));
	if (shape->checksums) {
		map->shape.checksums = (uint32_t *)tables;
		map->shape.doubts =
			(struct rbx_doubts *)(tables + checksums_size(shape));
	}
	rbx_random_seed(&map->random, seed);
	for (i = 0; i < RBX_SLAB_LOCKS; i++)
		rbx_slab_group_init(&groups[i], map->shape.cell_shift);
	slabs_make(map, 0, map->slab_count);
	tables += checksums_size(shape) + doubts_size(shape);
	if (is_guarded(shape))
		extents_open(map, shape, tables);
	tables += extents_size(shape);
	rbx_loan_index_init(&map->loans, tables, numbers(shape), &map->shape);
	tables += rbx_loan_index_size(numbers(shape));
	rbx_attention_init(&map->attention, tables, &map->shape, map->slab_max, map->slab_count);
	return map;
}

int rbx_volume_map_add_slabs(struct rbx_volume_map *map, uint64_t end)
{
	uint32_t count = map->slab_count;

	RBX_ASSERT(map->shape.on_demand);
	if (end > map->slab_max)
		return -ENOSPC;
	if (end <= count)
		return 0;
	slabs_make(map, count, (uint32_t)end);
	rbx_attention_grow(&map->attention, (uint32_t)end - count);
	/* Pairs with rbx_volume_map_slabs(). */
	RBX_STORE_RELEASE(&map->slab_count, (uint32_t)end);
	return 0;
}

int rbx_volume_map_grow(struct rbx_volume_map *map, uint64_t size_bytes)
{
	uint32_t shift = map->shape.slab_shift;
	bool has_rest = size_bytes & (((uint64_t)1 << shift) - 1);
	int err = rbx_volume_map_add_slabs(map, (size_bytes >> shift) + has_rest);

	RBX_ASSERT(size_bytes >= map->size_bytes);
	/* Pairs with rbx_volume_map_bytes(). */
	if (!err)
		RBX_STORE_RELEASE(&map->size_bytes, size_bytes);
	return err;
}

void rbx_volume_map_take_place(struct rbx_volume_map *map, uint32_t server)
{
	RBX_ASSERT(server <= map->server_count && server < RBX_SERVERS_MAX);
	if (server == map->server_count)
		RBX_STORE_RELEASE(&map->server_count, server + 1);
}

void rbx_volume_map_add_server(struct rbx_volume_map *map, uint32_t server)
{
	rbx_volume_map_take_place(map, server);
	rbx_server_set_add(&map->servers_up, server);
}

void rbx_volume_map_server_down(struct rbx_volume_map *map, uint32_t server)
{
	RBX_ASSERT(server < map->server_count);
	rbx_server_set_remove(&map->servers_up, server);
}

uint32_t rbx_volume_map_draw(struct rbx_volume_map *map,
			     const struct rbx_server_set *not_servers,
			     uint32_t drawn[2])
{
	return rbx_placement_draw(&map->servers_up, not_servers, &map->random,
				  drawn);
}
