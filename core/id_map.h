/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * id_map.h - a hash map from a random identity to an index of a table.
 *
 * A session has an identity of 64 random bits, so that it cannot be guessed or met by chance,
 * and an entry in the tables of its server. The map uses open addressing with linear probing,
 * at most half full. A removal leaves no mark, because the entries behind it move up. So a
 * lookup costs one or two cache lines, however many entries have come and gone.
 *
 * The owner of the map draws the identities: a peer that could choose them could make them
 * all collide.
 *
 * One thread at a time. The memory is the owner's, one block of rbx_id_map_size().
 */
#ifndef RBX_ID_MAP_H
#define RBX_ID_MAP_H

#include "core/port.h"

#define RBX_ID_MAP_NONE UINT32_MAX

struct rbx_id_place {
	uint64_t id; /* 0: the place is free */
	uint32_t index;
};

struct rbx_id_map {
	uint32_t mask; /* number of places, a power of two, minus 1 */
	struct rbx_id_place *places;
};

/* count_max: identities at a time, 1 to 2^30. */
size_t rbx_id_map_size(uint32_t count_max);

/* Makes an empty map in memory that the caller keeps. */
void rbx_id_map_init(struct rbx_id_map *map, void *memory, uint32_t count_max);

/* The index of an identity, or RBX_ID_MAP_NONE; of 0 always that. */
uint32_t rbx_id_map_find(const struct rbx_id_map *map, uint64_t id);

/* Adds an id that is not 0 and not in the map. */
void rbx_id_map_put(struct rbx_id_map *map, uint64_t id, uint32_t index);

/* Removes an id that is in the map. */
void rbx_id_map_remove(struct rbx_id_map *map, uint64_t id);

#endif
