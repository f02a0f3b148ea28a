/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * id_map.h - from a number that travels to the place in a table that it stands for.
 *
 * A session has an identity of 64 random bits, so that nobody meets another one by
 * chance, and an entry in the tables of its server. Open addressing with linear
 * probing at a load of a half at most; what is removed leaves no mark, since those
 * behind it move up. So a look costs one or two lines of cache, however many have
 * come and gone.
 *
 * The identities are drawn by whoever owns the map: a peer that could choose them
 * could have them all collide.
 *
 * One thread at a time; memory is the owner's, one block of rbx_id_map_size().
 */
#ifndef RBX_ID_MAP_H
#define RBX_ID_MAP_H

#include "core/port.h"

#define RBX_ID_MAP_NONE UINT32_MAX

struct rbx_id_place {
	uint64_t id; /* 0: nobody's place */
	uint32_t index;
};

struct rbx_id_map {
	uint32_t mask; /* of places: a power of two, less one */
	struct rbx_id_place *places;
};

/* count_max: identities at a time, 1 to 2^30. */
size_t rbx_id_map_size(uint32_t count_max);

/* Makes an empty map, its places in memory that the caller keeps. */
void rbx_id_map_init(struct rbx_id_map *map, void *memory, uint32_t count_max);

/* Where it stands, or RBX_ID_MAP_NONE; of 0 always that. */
uint32_t rbx_id_map_find(const struct rbx_id_map *map, uint64_t id);

/* An id that is not 0 and not in the map. */
void rbx_id_map_put(struct rbx_id_map *map, uint64_t id, uint32_t index);

/* One that is in the map. */
void rbx_id_map_remove(struct rbx_id_map *map, uint64_t id);

#endif
