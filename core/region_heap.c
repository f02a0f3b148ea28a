/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_heap.c - a heap of four children, see region_heap.h.
 */
#include "core/region_heap.h"

#define CHILDREN 4u

/* Sections of a region. */
#define IN_HEAP 0u
#define ASIDE 1u

/* So many of those aside are looked at for each victim, whether they are still in use. */
#define ASIDE_LOOKS 8u

size_t rbx_region_heap_size(uint32_t regions)
{
	return ((size_t)regions + 1) * sizeof(uint32_t);
}

void rbx_region_heap_init(struct rbx_regions *regions, void *memory)
{
	regions->state.heap = (struct rbx_region_heap){ .places = memory };
	rbx_region_list_init(&regions->state.heap.aside);
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

	rbx_regions_at(regions, region)->section = IN_HEAP;
	heap->places[heap->count] = region;
	move_up(regions, heap->count++);
}

static void take_out(struct rbx_regions *regions, uint32_t region)
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

void rbx_region_heap_remove(struct rbx_regions *regions, uint32_t region)
{
	if (rbx_regions_at(regions, region)->section == ASIDE)
		rbx_region_list_remove(&regions->state.heap.aside, regions->slots, region);
	else
		take_out(regions, region);
}

static void set_aside(struct rbx_regions *regions, uint32_t region)
{
	rbx_regions_at(regions, region)->section = ASIDE;
	rbx_region_list_push(&regions->state.heap.aside, regions->slots, region);
}

/* Those that are not in use any more come back. */
static void look_aside(struct rbx_regions *regions, uint32_t looks)
{
	struct rbx_region_list *aside = &regions->state.heap.aside;

	for (; looks && aside->count; looks--) {
		uint32_t region = aside->oldest;

		rbx_region_list_remove(aside, regions->slots, region);
		if (rbx_regions_at(regions, region)->references)
			set_aside(regions, region);
		else
			rbx_region_heap_put(regions, region);
	}
}

/* The least region of the heap, or RBX_REGION_NONE. */
static uint32_t least(struct rbx_regions *regions,
		      uint64_t (*key)(const struct rbx_regions *regions,
				      const struct rbx_cached_region *region))
{
	const struct rbx_region_heap *heap = &regions->state.heap;

	while (heap->count) {
		uint32_t top = heap->places[0];
		struct rbx_cached_region *region = rbx_regions_at(regions, top);
		uint64_t now = key(regions, region);

		if (region->references) {
			take_out(regions, top);
			set_aside(regions, top);
		} else if (now != region->key) {
			RBX_DEBUG_ASSERT(now > region->key);
			region->key = now;
			move_down(regions, 0);
		} else {
			return top;
		}
	}
	return RBX_REGION_NONE;
}

uint32_t rbx_region_heap_least(struct rbx_regions *regions,
			       uint64_t (*key)(const struct rbx_regions *regions,
					       const struct rbx_cached_region *region))
{
	uint32_t found;

	look_aside(regions, ASIDE_LOOKS);
	found = least(regions, key);
	if (found != RBX_REGION_NONE)
		return found;
	look_aside(regions, regions->state.heap.aside.count);
	return least(regions, key);
}
