/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * piece_pool.c - a lock-free stack of free pieces, see piece_pool.h.
 *
 * The head word, from its low end: 20 bits of index, the fence bit, 43 bits of tag. The tag
 * makes a stale compare fail (the ABA problem): at ten million operations a second a tag
 * comes again after ten days, and a thread would have to sleep exactly that long between its
 * load and its exchange. A walk along pool_next may read links that change under it; they
 * always lead to pieces of the pool, and the exchange fails afterwards.
 */
#include "core/piece_pool.h"

#define INDEX_BITS 20
#define INDEX_NONE ((1u << INDEX_BITS) - 1)
#define FENCE_BIT ((uint64_t)1 << INDEX_BITS)
#define TAG_SHIFT (INDEX_BITS + 1)
#define TAG_ONE ((uint64_t)1 << TAG_SHIFT)

RBX_STATIC_ASSERT(RBX_PIECES_MAX < INDEX_NONE, "an index fits into the head");

/* The head word after an operation: another first free piece, and the next tag. */
static inline uint64_t head_after(uint64_t head, const struct rbx_piece *first)
{
	uint32_t index = first ? first->pool_index : INDEX_NONE;

	return (head & ~(uint64_t)INDEX_NONE) + TAG_ONE + index;
}

/* A sequence number is the tag, left in its place, with the lowest bit set: 0 is free. */
static inline uint64_t head_sequence(uint64_t head)
{
	return head >> TAG_SHIFT << TAG_SHIFT | 1;
}

static inline struct rbx_piece *pool_piece(const struct rbx_piece_pool *pool,
					   uint32_t index)
{
	RBX_DEBUG_ASSERT(index < pool->count);
	return (struct rbx_piece *)(pool->memory + index * pool->piece_bytes);
}

/* The first free piece, or NULL. */
static inline struct rbx_piece *pool_first(const struct rbx_piece_pool *pool,
					   uint64_t head)
{
	uint32_t index = head & INDEX_NONE;

	return index == INDEX_NONE ? NULL : pool_piece(pool, index);
}

size_t rbx_piece_pool_size(uint32_t count, uint32_t slots, uint32_t pages)
{
	return count * rbx_piece_size(slots, pages);
}

void rbx_piece_pool_init(struct rbx_piece_pool *pool, void *memory,
			 uint32_t count, uint32_t slots, uint32_t pages,
			 void *owner,
			 struct rbx_fragment *(*done)(struct rbx_fragment *list))
{
	uint32_t index;

	RBX_ASSERT(count >= 1 && count <= RBX_PIECES_MAX);
	pool->memory = memory;
	pool->piece_bytes = rbx_piece_size(slots, pages);
	pool->count = count;
	for (index = 0; index < count; index++) {
		struct rbx_piece *piece = pool_piece(pool, index);

		rbx_piece_init(piece, slots, pages, owner, done);
		piece->pool_index = index;
		piece->pool_next =
			index + 1 < count ? pool_piece(pool, index + 1) : NULL;
	}
	pool->head = 0;
}

/* Adds the pieces from one on to the list, up to another one, which may be NULL. */
static inline void list_add_taken(struct rbx_piece_list *list,
				  struct rbx_piece *first,
				  const struct rbx_piece *end, uint64_t sequence)
{
	struct rbx_node head, *last = list->first ? list->last : &head;
	struct rbx_piece *piece = first;

	do {
		RBX_STORE_RELAXED(&piece->sequence, sequence);
		last->next = &piece->node;
		last = &piece->node;
		piece = RBX_LOAD_RELAXED(&piece->pool_next);
	} while (piece != end);
	last->next = NULL;
	list->last = last;
	if (!list->first)
		list->first = &first->node;
}

int rbx_piece_pool_take(struct rbx_piece_pool *pool, uint32_t count,
			struct rbx_piece_list *list)
{
	uint64_t head = RBX_LOAD_ACQUIRE(&pool->head);
	struct rbx_piece *first, *end;
	uint32_t left;

	RBX_DEBUG_ASSERT(count >= 1);
	do {
		first = end = pool_first(pool, head);
		left = count;
		do {
			if (!end)
				return -EAGAIN;
			end = RBX_LOAD_RELAXED(&end->pool_next);
		} while (--left);
	} while (!RBX_COMPARE_EXCHANGE(&pool->head, &head,
				       head_after(head, end)));
	list_add_taken(list, first, end, head_sequence(head));
	return 0;
}

/* Before the exchange, which releases it: a fence that is set after that exchange sees the
 * piece as free. */
static inline void piece_free(const struct rbx_piece_pool *pool,
			      struct rbx_piece *piece)
{
	RBX_DEBUG_ASSERT(piece == pool_piece(pool, piece->pool_index));
	RBX_DEBUG_ASSERT(piece->state == RBX_PIECE_IDLE && piece->sequence);
	(void)pool;
	RBX_STORE_RELAXED(&piece->sequence, 0);
}

bool rbx_piece_pool_give(struct rbx_piece_pool *pool,
			 struct rbx_piece_list *list)
{
	struct rbx_piece *first, *last, *next;
	uint64_t head = RBX_LOAD_RELAXED(&pool->head);

	RBX_ASSERT(list->first);
	first = last = rbx_piece_of(list->first);
	list->first = NULL;
	piece_free(pool, first);
	while (last->node.next) {
		next = rbx_piece_of(last->node.next);
		piece_free(pool, next);
		RBX_STORE_RELAXED(&last->pool_next, next);
		last = next;
	}
	do {
		RBX_STORE_RELAXED(&last->pool_next, pool_first(pool, head));
	} while (!RBX_COMPARE_EXCHANGE(&pool->head, &head,
				       head_after(head, first)));
	return head & FENCE_BIT;
}

uint64_t rbx_piece_pool_uses(const struct rbx_piece_pool *pool)
{
	return RBX_LOAD_RELAXED(&pool->head) >> TAG_SHIFT;
}

uint64_t rbx_piece_pool_fence(struct rbx_piece_pool *pool)
{
	uint64_t head = RBX_LOAD_RELAXED(&pool->head);
	uint64_t after;

	do {
		after = (head + TAG_ONE) | FENCE_BIT;
	} while (!RBX_COMPARE_EXCHANGE(&pool->head, &head, after));
	return head_sequence(after);
}

void rbx_piece_pool_unfence(struct rbx_piece_pool *pool)
{
	uint64_t head = RBX_LOAD_RELAXED(&pool->head);

	while (!RBX_COMPARE_EXCHANGE(&pool->head, &head, head & ~FENCE_BIT))
		continue;
}

bool rbx_piece_pool_older(const struct rbx_piece_pool *pool, uint64_t fence,
			  uint32_t *cursor)
{
	for (; *cursor < pool->count; ++*cursor) {
		uint64_t sequence = RBX_LOAD_ACQUIRE(
			&pool_piece(pool, *cursor)->sequence);

		/* As a difference, because tags wrap around. */
		if (sequence && (int64_t)(sequence - fence) < 0)
			return true;
	}
	return false;
}

struct rbx_piece *rbx_piece_pool_used(const struct rbx_piece_pool *pool,
				      uint32_t index)
{
	struct rbx_piece *piece = pool_piece(pool, index);

	return RBX_LOAD_ACQUIRE(&piece->sequence) ? piece : NULL;
}

bool rbx_piece_pool_is_idle(const struct rbx_piece_pool *pool)
{
	const struct rbx_piece *piece =
		pool_first(pool, RBX_LOAD_ACQUIRE(&pool->head));
	uint32_t free_count = 0;

	while (piece && free_count < pool->count) {
		piece = RBX_LOAD_RELAXED(&piece->pool_next);
		free_count++;
	}
	return free_count == pool->count;
}
