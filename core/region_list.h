/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_list.h - regions in an order, for the policies that keep one.
 *
 * Linked by the numbers of their slots, so a region needs 8 bytes for it. The newest is the head.
 */
#ifndef RBX_REGION_LIST_H
#define RBX_REGION_LIST_H

#include "core/region.h"

struct rbx_region_list {
	uint32_t newest; /* RBX_REGION_NONE: it is empty */
	uint32_t oldest;
	uint32_t count;
	uint64_t pages;
};

static inline void rbx_region_list_init(struct rbx_region_list *list)
{
	*list = (struct rbx_region_list){ .newest = RBX_REGION_NONE, .oldest = RBX_REGION_NONE };
}

void rbx_region_list_push(struct rbx_region_list *list, struct rbx_cached_region *slots,
			  uint32_t region);
void rbx_region_list_remove(struct rbx_region_list *list, struct rbx_cached_region *slots,
			    uint32_t region);

/* What the order is by: a field of 64 bits, by its place in a region. */
#define RBX_REGION_BY(field) offsetof(struct rbx_cached_region, field)

/* The smallest becomes the oldest. What is equal stays in its order. */
void rbx_region_list_sort(struct rbx_region_list *list, struct rbx_cached_region *slots, size_t by);

/* Puts all of one list behind the oldest, or before the newest, of another one. */
void rbx_region_list_join(struct rbx_region_list *older, struct rbx_cached_region *slots,
			  const struct rbx_region_list *newer);

#endif
