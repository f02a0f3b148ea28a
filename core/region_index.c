/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_index.c - a B+ tree in a pool of nodes, see region_index.h.
 *
 * A full node is split when something is added. If it was the greatest key, as when buffers are
 * allocated upwards, the left half keeps more. A node that has become too empty takes entries from
 * a neighbour, or is merged with it.
 */
#include "core/region_index.h"

#define KEYS RBX_REGION_NODE_KEYS
#define KEYS_MIN RBX_REGION_NODE_MIN

RBX_STATIC_ASSERT(KEYS == 64, "six comparisons find the place");
RBX_STATIC_ASSERT(KEYS - KEYS_MIN >= KEYS_MIN && KEYS + 1 >= 2 * KEYS_MIN,
		  "both halves of a split are full enough");

/* The way from the root to a leaf: nodes, and the entry taken in each. */
struct path {
	uint32_t nodes[RBX_REGION_LEVELS_MAX];
	uint32_t at[RBX_REGION_LEVELS_MAX];
};

static uint32_t nodes_count(uint32_t regions)
{
	/* Each level has 1/24 of the one below, so all have 1/23 of the regions. */
	return regions / (KEYS_MIN - 1) + RBX_REGION_LEVELS_MAX + 1;
}

size_t rbx_region_index_size(uint32_t regions)
{
	return (size_t)nodes_count(regions) * sizeof(struct rbx_region_node);
}

static uint32_t node_take(struct rbx_region_index *index)
{
	uint32_t taken = index->free;

	RBX_ASSERT(taken != RBX_REGION_NONE);
	index->free = index->nodes[taken].next_free;
	index->nodes[taken].count = 0;
	rbx_port_fill(index->nodes[taken].keys, 0xff, sizeof(index->nodes[taken].keys));
	return taken;
}

static void node_give(struct rbx_region_index *index, uint32_t node)
{
	index->nodes[node].next_free = index->free;
	index->free = node;
}

void rbx_region_index_init(struct rbx_region_index *index, void *memory, uint32_t regions)
{
	uint32_t i;

	*index = (struct rbx_region_index){ .nodes = memory, .levels = 1, .free = RBX_REGION_NONE };
	for (i = nodes_count(regions); i--;)
		node_give(index, i);
	index->root = node_take(index);
}

/* The last key up to this page; 0 if there is none. */
static inline uint32_t place_of(const struct rbx_region_node *node, uint64_t page)
{
	const uint64_t *keys = node->keys;

	keys += keys[32] <= page ? 32 : 0;
	keys += keys[16] <= page ? 16 : 0;
	keys += keys[8] <= page ? 8 : 0;
	keys += keys[4] <= page ? 4 : 0;
	keys += keys[2] <= page ? 2 : 0;
	keys += keys[1] <= page ? 1 : 0;
	return (uint32_t)(keys - node->keys);
}

uint32_t rbx_region_index_at(const struct rbx_region_index *index, uint64_t page)
{
	const struct rbx_region_node *node = &index->nodes[index->root];
	uint32_t level, at;

	for (level = index->levels; --level;)
		node = &index->nodes[node->values[place_of(node, page)]];
	at = place_of(node, page);
	return node->keys[at] <= page && node->count ? node->values[at] : RBX_REGION_NONE;
}

static struct rbx_region_node *descend(const struct rbx_region_index *index, uint64_t page,
				       struct path *path)
{
	uint32_t level, node = index->root;

	for (level = 0; level < index->levels; level++) {
		path->nodes[level] = node;
		path->at[level] = place_of(&index->nodes[node], page);
		node = index->nodes[node].values[path->at[level]];
	}
	return &index->nodes[path->nodes[index->levels - 1]];
}

/* The first entry of the leaf behind the one of the path. */
static uint32_t first_behind(const struct rbx_region_index *index, const struct path *path)
{
	uint32_t level = index->levels - 1;

	while (level--) {
		const struct rbx_region_node *node = &index->nodes[path->nodes[level]];

		if (path->at[level] + 1 == node->count)
			continue;
		node = &index->nodes[node->values[path->at[level] + 1]];
		while (++level < index->levels - 1)
			node = &index->nodes[node->values[0]];
		return node->values[0];
	}
	return RBX_REGION_NONE;
}

uint32_t rbx_region_index_from(const struct rbx_region_index *index, uint64_t page)
{
	const struct rbx_region_node *leaf;
	struct path path;
	uint32_t at;

	leaf = descend(index, page, &path);
	at = path.at[index->levels - 1];
	if (leaf->keys[at] < page)
		at++;
	return at < leaf->count ? leaf->values[at] : first_behind(index, &path);
}

/* ---- Entries of nodes -----------------------------------------------------------*/

static void entries_copy(struct rbx_region_node *to, uint32_t to_at,
			 const struct rbx_region_node *from, uint32_t from_at, uint32_t count)
{
	rbx_port_copy(&to->keys[to_at], &from->keys[from_at], count * sizeof(*to->keys));
	rbx_port_copy(&to->values[to_at], &from->values[from_at], count * sizeof(*to->values));
}

static void entries_end(struct rbx_region_node *node, uint32_t count)
{
	uint32_t i;

	for (i = count; i < node->count; i++)
		node->keys[i] = UINT64_MAX;
	node->count = count;
}

/* Opens a gap of some entries at a place. */
static void entries_shift(struct rbx_region_node *node, uint32_t at, uint32_t by)
{
	uint32_t i;

	for (i = node->count; i-- > at;) {
		node->keys[i + by] = node->keys[i];
		node->values[i + by] = node->values[i];
	}
	node->count += by;
}

static void entry_put(struct rbx_region_node *node, uint32_t at, uint64_t key, uint32_t value)
{
	entries_shift(node, at, 1);
	node->keys[at] = key;
	node->values[at] = value;
}

static void entries_drop(struct rbx_region_node *node, uint32_t at, uint32_t dropped)
{
	uint32_t i;

	for (i = at; i + dropped < node->count; i++) {
		node->keys[i] = node->keys[i + dropped];
		node->values[i] = node->values[i + dropped];
	}
	entries_end(node, node->count - dropped);
}

/* ---- Adding ---------------------------------------------------------------------*/

/* Puts an entry into a full node, of which the right part becomes a new one. */
static uint32_t split(struct rbx_region_index *index, uint32_t full, uint32_t at, uint64_t key,
		      uint32_t value)
{
	uint32_t right = node_take(index), keep = at == KEYS ? KEYS - KEYS_MIN : KEYS / 2;
	struct rbx_region_node *from = &index->nodes[full], *to = &index->nodes[right];

	entries_copy(to, 0, from, keep, KEYS - keep);
	to->count = KEYS - keep;
	entries_end(from, keep);
	if (at > keep)
		entry_put(to, at - keep, key, value);
	else
		entry_put(from, at, key, value);
	return right;
}

static void grow(struct rbx_region_index *index, uint32_t right)
{
	uint32_t root = node_take(index);
	struct rbx_region_node *node = &index->nodes[root];

	RBX_ASSERT(index->levels < RBX_REGION_LEVELS_MAX);
	entry_put(node, 0, index->nodes[index->root].keys[0], index->root);
	entry_put(node, 1, index->nodes[right].keys[0], right);
	index->root = root;
	index->levels++;
}

void rbx_region_index_add(struct rbx_region_index *index, uint64_t page, uint32_t region)
{
	struct rbx_region_node *node;
	uint32_t level = index->levels, value = region, at;
	uint64_t key = page;
	struct path path;

	node = descend(index, page, &path);
	/* Behind the last smaller one; in a leaf that may be none. */
	at = path.at[level - 1];
	at += node->count && node->keys[at] < page;
	RBX_ASSERT(at == node->count || node->keys[at] != page);
	while (node->count == KEYS) {
		value = split(index, path.nodes[--level], at, key, value);
		key = index->nodes[value].keys[0];
		if (!level) {
			grow(index, value);
			return;
		}
		node = &index->nodes[path.nodes[level - 1]];
		at = path.at[level - 1] + 1;
	}
	entry_put(node, at, key, value);
}

/* ---- Removing -------------------------------------------------------------------*/

/* Mends a child that has too few entries, by a neighbour. */
static void mend(struct rbx_region_index *index, struct rbx_region_node *parent, uint32_t at,
		 bool is_inner)
{
	uint32_t right_at = at ? at : 1, count, moved;
	struct rbx_region_node *left = &index->nodes[parent->values[right_at - 1]];
	struct rbx_region_node *right = &index->nodes[parent->values[right_at]];

	if (is_inner)
		right->keys[0] = parent->keys[right_at];
	count = left->count + right->count;
	if (count <= KEYS) {
		entries_copy(left, left->count, right, 0, right->count);
		left->count = count;
		node_give(index, parent->values[right_at]);
		entries_drop(parent, right_at, 1);
		return;
	}
	if (left->count > count / 2) {
		moved = left->count - count / 2;
		entries_shift(right, 0, moved);
		entries_copy(right, 0, left, left->count - moved, moved);
		entries_end(left, left->count - moved);
	} else {
		moved = count / 2 - left->count;
		entries_copy(left, left->count, right, 0, moved);
		left->count += moved;
		entries_drop(right, 0, moved);
	}
	parent->keys[right_at] = right->keys[0];
}

/* The first key of a leaf went: what its ancestors say of it has to be right, else a page between
 * the two would be looked for here, and not in the leaf before. */
static void first_key_changed(struct rbx_region_index *index, const struct path *path, uint64_t key)
{
	uint32_t level = index->levels - 1;

	while (level--)
		if (path->at[level]) {
			index->nodes[path->nodes[level]].keys[path->at[level]] = key;
			return;
		}
}

void rbx_region_index_remove(struct rbx_region_index *index, uint64_t page)
{
	uint32_t level = index->levels - 1, at;
	struct rbx_region_node *node;
	struct path path;

	node = descend(index, page, &path);
	at = path.at[level];
	RBX_ASSERT(node->count && node->keys[at] == page);
	entries_drop(node, at, 1);
	if (!at && node->count)
		first_key_changed(index, &path, node->keys[0]);
	while (level && node->count < KEYS_MIN) {
		struct rbx_region_node *parent = &index->nodes[path.nodes[--level]];

		mend(index, parent, path.at[level], level + 2 < index->levels);
		node = parent;
	}
	node = &index->nodes[index->root];
	if (index->levels > 1 && node->count == 1) {
		uint32_t child = node->values[0];

		node_give(index, index->root);
		index->root = child;
		index->levels--;
	}
}
