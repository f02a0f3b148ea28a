/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * extents_bound.c - how many extents may be noted at a time, and the memory for them (extents.h).
 */
#include "core/extents.h"

uint32_t rbx_extents_max(uint64_t crash_copy_bytes, uint64_t slab_bytes)
{
	uint64_t bytes = crash_copy_bytes ? crash_copy_bytes : RBX_EXTENTS_BYTES;
	uint64_t most = crash_copy_bytes ? RBX_EXTENTS_MAX : RBX_EXTENTS_PRESET;
	uint64_t count = bytes / (slab_bytes / 64);

	return count ? (uint32_t)RBX_MIN(count, most) : 1;
}

static uint32_t room_for(uint32_t set_max)
{
	return set_max + RBX_MAX(set_max / 4, RBX_EXTENTS_MORE);
}

size_t rbx_extents_size(uint32_t slab_count, uint32_t set_max)
{
	/* The ring, which ends at a multiple of eight bytes. */
	return sizeof(struct rbx_extents) + slab_count * sizeof(struct rbx_extent_word) +
	       (RBX_MIN(slab_count, room_for(set_max)) + 1) / 2 * sizeof(uint64_t);
}

struct rbx_extents *rbx_extents_init(void *memory, uint32_t slab_count, uint32_t set_max)
{
	struct rbx_extents *extents = memory;

	rbx_lock_init(&extents->lock);
	extents->words = (struct rbx_extent_word *)(extents + 1);
	extents->ring = (uint32_t *)(extents->words + slab_count);
	extents->set_max = set_max;
	extents->room = room_for(set_max);
	extents->quiet_ns = RBX_EXTENTS_QUIET_NS;
	return extents;
}
