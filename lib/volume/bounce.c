/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce.c - bounce pages, see bounce.h.
 *
 * The address in a piece tells which page it has. A page has no key: if the device needs
 * one, the page is copied through staging memory like any short buffer.
 */
#include "lib/volume/bounce.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/error.h"

static void *page(const struct rbx_bounces *bounces, uint32_t index)
{
	return bounces->memory + (size_t)index * RBX_PAGE_BYTES;
}

int rbx_bounces_open(struct rbx_bounces *bounces)
{
	uint32_t i;

	bounces->memory = calloc(RBX_BOUNCES_MAX, RBX_PAGE_BYTES);
	if (!bounces->memory)
		return rbx_error(-ENOMEM, "out of memory for %u pages",
				 RBX_BOUNCES_MAX);
	pthread_mutex_init(&bounces->lock, NULL);
	for (i = 0; i < RBX_BOUNCES_MAX; i++)
		bounces->bounces[i].next = i + 1;
	bounces->bounces[RBX_BOUNCES_MAX - 1].next = RBX_BOUNCE_NONE;
	return 0;
}

void rbx_bounces_close(struct rbx_bounces *bounces)
{
	if (!bounces->memory)
		return;
	RBX_ASSERT(!bounces->used_count);
	pthread_mutex_destroy(&bounces->lock);
	free(bounces->memory);
}

/* Takes a chain of so many free pages, with another one behind it. The lock is held. */
static uint32_t take_locked(struct rbx_bounces *bounces, uint32_t count, uint32_t rest)
{
	uint32_t first = bounces->free_first, last = first, i;

	for (i = 1; i < count; i++)
		last = bounces->bounces[last].next;
	bounces->free_first = bounces->bounces[last].next;
	bounces->bounces[last].next = rest;
	return first;
}

int rbx_bounces_take(struct rbx_bounces *bounces, uint32_t count,
		     uint32_t *first)
{
	int err = -EAGAIN;

	RBX_ASSERT(count && count <= RBX_BOUNCES_MAX);
	pthread_mutex_lock(&bounces->lock);
	if (count <= RBX_BOUNCES_MAX - bounces->used_count) {
		*first = take_locked(bounces, count, *first);
		RBX_STORE_RELAXED(&bounces->used_count,
				  bounces->used_count + count);
		err = 0;
	}
	pthread_mutex_unlock(&bounces->lock);
	return err;
}

/* The lock is held. */
static void give_locked(struct rbx_bounces *bounces, uint32_t index)
{
	bounces->bounces[index].next = bounces->free_first;
	bounces->free_first = index;
	RBX_STORE_RELAXED(&bounces->used_count, bounces->used_count - 1);
}

void rbx_bounces_give(struct rbx_bounces *bounces, uint32_t first)
{
	uint32_t next;

	pthread_mutex_lock(&bounces->lock);
	for (; first != RBX_BOUNCE_NONE; first = next) {
		next = bounces->bounces[first].next;
		give_locked(bounces, first);
	}
	pthread_mutex_unlock(&bounces->lock);
}

void rbx_bounce_begin(struct rbx_bounces *bounces, uint32_t *first,
		      const struct rbx_segment_walk *from,
		      struct rbx_piece *piece)
{
	uint32_t index = *first;

	RBX_ASSERT(index < RBX_BOUNCES_MAX &&
		   piece->length_bytes <= RBX_PAGE_BYTES);
	*first = bounces->bounces[index].next;
	bounces->bounces[index].from = *from;
	piece->local_addr = (uintptr_t)page(bounces, index);
	piece->lkey = 0;
	if (piece->kind == RBX_PIECE_WRITE)
		rbx_segments_gather(*from, page(bounces, index),
				    piece->length_bytes);
}

/* RBX_BOUNCE_NONE: the piece's memory is the request's own. */
static uint32_t index_of(const struct rbx_bounces *bounces,
			 const struct rbx_piece *piece)
{
	uint64_t at_bytes = piece->local_addr - (uintptr_t)bounces->memory;

	if (at_bytes >= (uint64_t)RBX_BOUNCES_MAX * RBX_PAGE_BYTES)
		return RBX_BOUNCE_NONE;
	return (uint32_t)(at_bytes / RBX_PAGE_BYTES);
}

void rbx_bounces_end(struct rbx_bounces *bounces,
		     const struct rbx_piece_list *ended)
{
	const struct rbx_node *node;

	for (node = ended->first; node; node = node->next) {
		const struct rbx_piece *piece =
			RBX_CONTAINER_OF(node, const struct rbx_piece, node);
		uint32_t index = index_of(bounces, piece);

		if (index == RBX_BOUNCE_NONE)
			continue;
		if (piece->kind == RBX_PIECE_READ && !piece->status)
			rbx_segments_scatter(bounces->bounces[index].from,
					     page(bounces, index),
					     piece->length_bytes);
		pthread_mutex_lock(&bounces->lock);
		give_locked(bounces, index);
		pthread_mutex_unlock(&bounces->lock);
	}
}
