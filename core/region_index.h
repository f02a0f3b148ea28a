/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_index.h - regions by their first page: a B+ tree with 64 keys in a node.
 *
 * A look-up takes six comparisons in each node without a branch, whatever the keys. A thousand
 * regions take two levels, a hundred thousand take three or four. A node is at least 24/64 full, so
 * that the memory is bounded: about 34 bytes for each region.
 *
 * A key of an inner node is the smallest key of its child. But key 0 is never compared: all smaller
 * pages belong to child 0. What it says may be out of date; it is set right when it becomes another
 * place's.
 *
 * One thread at a time.
 */
#ifndef RBX_REGION_INDEX_H
#define RBX_REGION_INDEX_H

#include "core/region.h"

#define RBX_REGION_NODE_KEYS 64u
#define RBX_REGION_NODE_MIN 24u
/* 24^6 regions are 191 million. */
#define RBX_REGION_LEVELS_MAX 7u

struct rbx_region_node {
	uint64_t keys[RBX_REGION_NODE_KEYS]; /* first pages; unused ones are UINT64_MAX */
	uint32_t values[RBX_REGION_NODE_KEYS]; /* regions in a leaf, else nodes */
	uint32_t count;
	uint32_t next_free;
};

struct rbx_region_index {
	struct rbx_region_node *nodes;
	uint32_t root;
	uint32_t levels; /* 1: the root is a leaf */
	uint32_t free;
};

/* Bytes for so many regions. */
size_t rbx_region_index_size(uint32_t regions);

/* memory: aligned for words, borrowed for the life of the index. */
void rbx_region_index_init(struct rbx_region_index *index, void *memory, uint32_t regions);

/* The region with the greatest first page up to this one, or RBX_REGION_NONE. */
uint32_t rbx_region_index_at(const struct rbx_region_index *index, uint64_t page);

/* The region with the smallest first page from this one on, or RBX_REGION_NONE. */
uint32_t rbx_region_index_from(const struct rbx_region_index *index, uint64_t page);

/* No region with that first page may be in it, and there must be room. */
void rbx_region_index_add(struct rbx_region_index *index, uint64_t page, uint32_t region);

/* A region with that first page must be in it. */
void rbx_region_index_remove(struct rbx_region_index *index, uint64_t page);

#endif
