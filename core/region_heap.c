/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_heap.c - a heap of four children, see region_heap.h.
 */
#include "core/region_heap.h"

#define CHILDREN 4u

size_t rbx_region_heap_size(uint32_t regions)
{
	return ((size_t)regions + 1) * sizeof(uint32_t);
}

void rbx_region_heap_init(struct rbx_regions *regions, void *memory)
{
	regions->state.heap = (struct rbx_region_heap){ .places = memory };
}

static uint64_t key_at(const struct rbx_regions *regions, uint32_t place)
{
	return rbx_regions_at(regions, regions->state.heap.places[place])->key;
}

static void set(struct rbx_regions *regions, uint32_t place, uint32_t region)
{
	regions->state.heap.places[place] = region;
	rbx_regions_at(regions, region)->prev = place;
}

static void move_up(struct rbx_regions *regions, uint32_t place)
{
	uint32_t region = regions->state.heap.places[place];
	uint64_t key = rbx_regions_at(regions, region)->key;

	for (; place && key < key_at(regions, (place - 1) / CHILDREN);
	     place = (place - 1) / CHILDREN)
		set(regions, place, regions->state.heap.places[(place - 1) / CHILDREN]);
	set(regions, place, region);
}

static uint32_t least_child(const struct rbx_regions *regions, uint32_t place)
{
	uint32_t first = place * CHILDREN + 1, least = first, i;
	uint32_t end = RBX_MIN(first + CHILDREN, regions->state.heap.count);

	for (i = first + 1; i < end; i++)
		if (key_at(regions, i) < key_at(regions, least))
			least = i;
	return least;
}

static void move_down(struct rbx_regions *regions, uint32_t place)
{
	uint32_t region = regions->state.heap.places[place], least;
	uint64_t key = rbx_regions_at(regions, region)->key;

	while (place * CHILDREN + 1 < regions->state.heap.count) {
		least = least_child(regions, place);
		if (key <= key_at(regions, least))
			break;
		set(regions, place, regions->state.heap.places[least]);
		place = least;
	}
	set(regions, place, region);
}

void rbx_region_heap_put(struct rbx_regions *regions, uint32_t region)
{
	struct rbx_region_heap *heap = &regions->state.heap;

	heap->places[heap->count] = region;
	move_up(regions, heap->count++);
}

void rbx_region_heap_remove(struct rbx_regions *regions, uint32_t region)
{
	struct rbx_region_heap *heap = &regions->state.heap;
	uint32_t place = rbx_regions_at(regions, region)->prev, last;

	RBX_ASSERT(heap->count && heap->places[place] == region);
	last = heap->places[--heap->count];
	if (last == region)
		return;
	set(regions, place, last);
	move_up(regions, place);
	move_down(regions, rbx_regions_at(regions, last)->prev);
}

uint32_t rbx_region_heap_least(struct rbx_regions *regions,
			       uint64_t (*key)(const struct rbx_regions *regions,
					       const struct rbx_cached_region *region))
{
	struct rbx_region_heap *heap = &regions->state.heap;
	uint32_t in_use = RBX_REGION_NONE, found = RBX_REGION_NONE;

	while (heap->count && found == RBX_REGION_NONE) {
		uint32_t top = heap->places[0];
		struct rbx_cached_region *region = rbx_regions_at(regions, top);
		uint64_t now = key(regions, region);

		if (region->references) {
			/* Set aside until one is found. */
			rbx_region_heap_remove(regions, top);
			region->next = in_use;
			in_use = top;
		} else if (now != region->key) {
			RBX_DEBUG_ASSERT(now > region->key);
			region->key = now;
			move_down(regions, 0);
		} else {
			found = top;
		}
	}
	while (in_use != RBX_REGION_NONE) {
		uint32_t next = rbx_regions_at(regions, in_use)->next;

		rbx_region_heap_put(regions, in_use);
		in_use = next;
	}
	return found;
}
