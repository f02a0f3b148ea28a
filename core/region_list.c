/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_list.c - see region_list.h.
 *
 * To sort, runs of 1, 2, 4... regions are merged in pairs, as a carry runs through the bits of a
 * counter. That needs no memory but the links.
 */
#include "core/region_list.h"

void rbx_region_list_push(struct rbx_region_list *list, struct rbx_cached_region *slots,
			  uint32_t region)
{
	slots[region].prev = RBX_REGION_NONE;
	slots[region].next = list->newest;
	if (list->newest == RBX_REGION_NONE)
		list->oldest = region;
	else
		slots[list->newest].prev = region;
	list->newest = region;
	list->count++;
	list->pages += slots[region].pages;
}

void rbx_region_list_remove(struct rbx_region_list *list, struct rbx_cached_region *slots,
			    uint32_t region)
{
	const struct rbx_cached_region *removed = &slots[region];

	if (removed->prev == RBX_REGION_NONE)
		list->newest = removed->next;
	else
		slots[removed->prev].next = removed->next;
	if (removed->next == RBX_REGION_NONE)
		list->oldest = removed->prev;
	else
		slots[removed->next].prev = removed->prev;
	list->count--;
	list->pages -= removed->pages;
}

void rbx_region_list_join(struct rbx_region_list *older, struct rbx_cached_region *slots,
			  const struct rbx_region_list *newer)
{
	if (!newer->count)
		return;
	if (!older->count) {
		*older = *newer;
		return;
	}
	slots[older->newest].prev = newer->oldest;
	slots[newer->oldest].next = older->newest;
	older->newest = newer->newest;
	older->count += newer->count;
	older->pages += newer->pages;
}

/* ---- Sorting --------------------------------------------------------------------*/

static uint64_t value_of(const struct rbx_cached_region *region, size_t by)
{
	return *(const uint64_t *)((const char *)region + by);
}

/* Two runs linked by next, the greatest first. Of equal ones those of @newer come first. */
static uint32_t merge(struct rbx_cached_region *slots, uint32_t newer, uint32_t older, size_t by)
{
	uint32_t first = RBX_REGION_NONE, *link = &first;

	while (newer != RBX_REGION_NONE && older != RBX_REGION_NONE) {
		uint32_t *greater = value_of(&slots[newer], by) >= value_of(&slots[older], by) ?
					    &newer : &older;

		*link = *greater;
		link = &slots[*greater].next;
		*greater = *link;
	}
	*link = newer != RBX_REGION_NONE ? newer : older;
	return first;
}

static void link_back(struct rbx_region_list *list, struct rbx_cached_region *slots, uint32_t first)
{
	uint32_t before = RBX_REGION_NONE, at;

	list->newest = first;
	for (at = first; at != RBX_REGION_NONE; at = slots[at].next) {
		slots[at].prev = before;
		before = at;
	}
	list->oldest = before;
}

void rbx_region_list_sort(struct rbx_region_list *list, struct rbx_cached_region *slots, size_t by)
{
	uint32_t runs[32], at, next, bit, sorted = RBX_REGION_NONE;

	for (bit = 0; bit < 32; bit++)
		runs[bit] = RBX_REGION_NONE;
	for (at = list->newest; at != RBX_REGION_NONE; at = next) {
		next = slots[at].next;
		slots[at].next = RBX_REGION_NONE;
		sorted = at;
		/* A run that is there already came from nearer the newest. */
		for (bit = 0; bit < 31 && runs[bit] != RBX_REGION_NONE; bit++) {
			sorted = merge(slots, runs[bit], sorted, by);
			runs[bit] = RBX_REGION_NONE;
		}
		if (runs[bit] != RBX_REGION_NONE)
			sorted = merge(slots, runs[bit], sorted, by);
		runs[bit] = sorted;
	}
	sorted = RBX_REGION_NONE;
	for (bit = 0; bit < 32; bit++)
		sorted = merge(slots, runs[bit], sorted, by);
	link_back(list, slots, sorted);
}
