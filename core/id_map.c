/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* id_map.c - see id_map.h. */
#include "core/id_map.h"

/* 2^64 divided by the golden ratio: spreads neighbours far apart. */
#define SPREAD 0x9e3779b97f4a7c15ull

static uint32_t places_count(uint32_t count_max)
{
	uint32_t count = 2;

	RBX_ASSERT(count_max > 0 && count_max <= 1u << 30);
	while (count < 2 * count_max)
		count *= 2;
	return count;
}

size_t rbx_id_map_size(uint32_t count_max)
{
	return places_count(count_max) * sizeof(struct rbx_id_place);
}

void rbx_id_map_init(struct rbx_id_map *map, void *memory, uint32_t count_max)
{
	rbx_port_fill(memory, 0, rbx_id_map_size(count_max));
	map->places = memory;
	map->mask = places_count(count_max) - 1;
}

static uint32_t home_of(const struct rbx_id_map *map, uint64_t id)
{
	return (uint32_t)(id * SPREAD >> 32) & map->mask;
}

/* The place of an identity, or the free place where it would be. */
static uint32_t place_of(const struct rbx_id_map *map, uint64_t id)
{
	uint32_t place = home_of(map, id);

	while (map->places[place].id && map->places[place].id != id)
		place = (place + 1) & map->mask;
	return place;
}

uint32_t rbx_id_map_find(const struct rbx_id_map *map, uint64_t id)
{
	uint32_t place = place_of(map, id);

	return id && map->places[place].id ? map->places[place].index :
					     RBX_ID_MAP_NONE;
}

void rbx_id_map_put(struct rbx_id_map *map, uint64_t id, uint32_t index)
{
	struct rbx_id_place *place = &map->places[place_of(map, id)];

	RBX_ASSERT(id && !place->id);
	*place = (struct rbx_id_place){ .id = id, .index = index };
}

void rbx_id_map_remove(struct rbx_id_map *map, uint64_t id)
{
	uint32_t gap = place_of(map, id);
	uint32_t next = gap, home;

	RBX_ASSERT(id && map->places[gap].id);
	for (;;) {
		next = (next + 1) & map->mask;
		if (!map->places[next].id)
			break;
		home = home_of(map, map->places[next].id);
		/* A lookup starts at its home place, so the entry may not move before that. */
		if (((next - home) & map->mask) < ((next - gap) & map->mask))
			continue;
		map->places[gap] = map->places[next];
		gap = next;
	}
	map->places[gap].id = 0;
}
