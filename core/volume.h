/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - the map of a volume: from an offset to slab and cell, and the table of servers.
 *
 * A volume is a row of slabs (slab.h) of one size, so a shift gives the slab of an offset and
 * the offset in it. The map also keeps the table of the servers, and draws candidates to ask
 * for the memory of a new replica: servers that are up, have no replica of that slab and have
 * not refused just now.
 *
 * The map has no lock of its own. Its shape never changes, but for its end: there may be room for
 * more slabs from the start, into which a named volume grows while it is open. Then the new slabs
 * are made before their number is published, and a thread that has read it finds them. Memory of
 * slabs that are not there is not touched. Each slab has a lock, and upkeep (upkeep.h) has one for
 * the table of servers.
 */
#ifndef RBX_VOLUME_H
#define RBX_VOLUME_H

#include "core/attention.h"
#include "core/loan_index.h"
#include "core/placement.h"
#include "core/slab.h"

struct rbx_volume_shape {
	uint64_t size_bytes; /* as asked for */
	uint64_t size_max_bytes; /* that it may grow to; 0: it does not grow */
	uint64_t slab_bytes; /* a power of two, set by the servers */
	uint32_t fragment_bytes; /* a power of two: the longest piece */
	uint32_t replicas;
	bool checksums;
	uint64_t crash_copy_bytes; /* of a named volume with replicas: rbx_extents_max() */
	bool on_demand; /* slabs have memory from their first write on */
	bool is_named; /* and on_demand: servers keep them when the client goes */
};

struct rbx_volume_map {
	struct rbx_slab_shape shape;
	uint64_t size_bytes; /* atomic: it may grow */
	uint32_t slab_count; /* atomic: rbx_volume_map_slabs() */
	uint32_t slab_max; /* for so many there is room */
	uint32_t slab_mask; /* of an offset, what lies in its slab; and in its cell */
	uint32_t cell_mask;
	struct rbx_slab_records records;
	struct rbx_loan_index loans; /* of all slabs */
	struct rbx_attention attention;

	/* The table of servers. */
	uint32_t server_count; /* atomic: places that are or were in use */
	struct rbx_server_set servers_up;
	struct rbx_random random;
};

/* Whether a volume can be made of slabs of this size, which the server sets. */
bool rbx_slab_bytes_are_good(uint64_t slab_bytes);

/* Returns 0, or -EINVAL for a shape that no volume can have. */
int rbx_volume_shape_check(const struct rbx_volume_shape *shape);

/* Bytes of memory for the map, for a shape that was checked. */
size_t rbx_volume_map_size(const struct rbx_volume_shape *shape);

/* memory: zeroed and of that size. Parts that belong to nothing written are not touched, so
 * it may be memory that exists only once it is touched. */
struct rbx_volume_map *
rbx_volume_map_init(void *memory, const struct rbx_volume_shape *shape,
		    uint64_t seed);

/* How many slabs there are; all of them are made. Any thread. */
static inline uint32_t rbx_volume_map_slabs(const struct rbx_volume_map *map)
{
	/* Pairs with rbx_volume_map_add_slabs(). */
	return RBX_LOAD_ACQUIRE(&map->slab_count);
}

static inline uint64_t rbx_volume_map_bytes(const struct rbx_volume_map *map)
{
	/* The same: who submits a request to a slab finds that slab made. */
	return RBX_LOAD_ACQUIRE(&map->size_bytes);
}

/* Makes slabs up to this number beyond its end, never written, for a volume that is to be larger.
 * No request goes there yet. 0, or -ENOSPC: there is no room for them. One thread at a time; the
 * volume may be in use. */
int rbx_volume_map_add_slabs(struct rbx_volume_map *map, uint64_t end);

/* Makes it larger, by slabs that were never written, if they were not added before. Else the same.
 */
int rbx_volume_map_grow(struct rbx_volume_map *map, uint64_t size_bytes);

/* How many cells a range touches; length_bytes > 0. */
static inline uint32_t rbx_volume_map_pieces(const struct rbx_volume_map *map,
					     uint64_t offset_bytes,
					     uint32_t length_bytes)
{
	uint32_t shift = map->shape.cell_shift;
	uint64_t last_bytes = offset_bytes + length_bytes - 1;

	return (uint32_t)((last_bytes >> shift) - (offset_bytes >> shift)) + 1;
}

static inline struct rbx_slab *
rbx_volume_map_slab(const struct rbx_volume_map *map, uint64_t offset_bytes)
{
	RBX_DEBUG_ASSERT(offset_bytes < rbx_volume_map_bytes(map));
	return rbx_slab_at(&map->shape,
			   (uint32_t)(offset_bytes >> map->shape.slab_shift));
}

/* Where in the volume a piece begins. */
static inline uint64_t rbx_volume_map_offset(const struct rbx_volume_map *map,
					     const struct rbx_piece *piece)
{
	return ((uint64_t)piece->slab_index << map->shape.slab_shift) +
	       piece->offset_bytes;
}

/* Aims a piece at the front of a range: its slab, and where in it. Returns how
 * much of the range it takes. */
static inline uint32_t rbx_volume_map_aim(const struct rbx_volume_map *map,
					  struct rbx_piece *piece,
					  uint64_t offset_bytes,
					  uint32_t length_bytes)
{
	uint32_t in_slab_bytes = (uint32_t)offset_bytes & map->slab_mask;
	uint32_t room_bytes = (~in_slab_bytes & map->cell_mask) + 1;

	RBX_DEBUG_ASSERT(offset_bytes < rbx_volume_map_bytes(map));
	piece->slab_index = (uint32_t)(offset_bytes >> map->shape.slab_shift);
	piece->slab = rbx_slab_at(&map->shape, piece->slab_index);
	piece->group = rbx_slab_group_at(&map->shape, piece->slab_index);
	piece->offset_bytes = in_slab_bytes;
	piece->length_bytes = RBX_MIN(length_bytes, room_bytes);
	return piece->length_bytes;
}

/* A server gets the next place of the table, or one that is free again. */
void rbx_volume_map_take_place(struct rbx_volume_map *map, uint32_t server);
/* The same; from now on slabs are borrowed from it. */
void rbx_volume_map_add_server(struct rbx_volume_map *map, uint32_t server);
void rbx_volume_map_server_down(struct rbx_volume_map *map, uint32_t server);

/* Draws servers to ask for memory, none of not_servers; returns how many, at most two
 * (placement.h). */
uint32_t rbx_volume_map_draw(struct rbx_volume_map *map,
			     const struct rbx_server_set *not_servers,
			     uint32_t drawn[2]);

#endif
