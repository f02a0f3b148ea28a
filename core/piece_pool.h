/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * piece_pool.h - the pieces of a volume; their number bounds what may be outstanding.
 * Lock-free, any thread.
 *
 * The free pieces are a stack of indices. Its head is one word with a tag that changes with
 * every operation, so taking or giving back several pieces is one compare-exchange: a submit
 * gets all it needs or nothing.
 *
 * The pool also knows the order of taking: each piece in use carries the tag of that moment
 * as a sequence number. A fence waits until no piece in use is older than itself. It sets a
 * bit in the head word, which a thread that puts a piece back cannot miss, because it changes
 * the same word. So fences cost nothing for programs that use none.
 */
#ifndef RBX_PIECE_POOL_H
#define RBX_PIECE_POOL_H

#include "core/piece.h"

struct rbx_piece_pool {
	uint64_t head; /* atomic: tag, fence bit, index of the first free */
	char *memory;
	size_t piece_bytes;
	uint32_t count;
};

/* Bytes for count pieces; slots and pages as in rbx_piece_size(). */
size_t rbx_piece_pool_size(uint32_t count, uint32_t slots, uint32_t pages);

/* memory: zeroed, of that size, borrowed for the life of the pool. owner and done: as in
 * rbx_piece_init(). */
void rbx_piece_pool_init(struct rbx_piece_pool *pool, void *memory,
			 uint32_t count, uint32_t slots, uint32_t pages,
			 void *owner,
			 struct rbx_fragment *(*done)(struct rbx_fragment *list));

/* Adds count pieces to the list, or returns -EAGAIN and adds none. */
int rbx_piece_pool_take(struct rbx_piece_pool *pool, uint32_t count,
			struct rbx_piece_list *list);

/* Puts back the pieces of a list, at least one; the list is empty afterwards. Returns whether
 * a fence waits: then the caller has to check it. */
bool rbx_piece_pool_give(struct rbx_piece_pool *pool,
			 struct rbx_piece_list *list);

/* A number that changes if pieces are taken or put back. */
uint64_t rbx_piece_pool_uses(const struct rbx_piece_pool *pool);

/* Sets the fence bit. Returns the sequence number of the fence: all that was taken before is
 * older. */
uint64_t rbx_piece_pool_fence(struct rbx_piece_pool *pool);
/* Clears the fence bit. */
void rbx_piece_pool_unfence(struct rbx_piece_pool *pool);

/* Whether a piece in use is older than the fence. *cursor: 0 at first; keeps how far it
 * looked, so that all calls for one fence together walk the pool once. */
bool rbx_piece_pool_older(const struct rbx_piece_pool *pool, uint64_t fence,
			  uint32_t *cursor);

/* The piece of an index below the count, if it is in use, or NULL. */
struct rbx_piece *rbx_piece_pool_used(const struct rbx_piece_pool *pool,
				      uint32_t index);

/* Whether no piece is in use; only while no thread takes any. */
bool rbx_piece_pool_is_idle(const struct rbx_piece_pool *pool);

#endif
