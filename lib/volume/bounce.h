/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce.h - bounce pages, for bytes that must stay together but lie in several segments.
 *
 * A piece is one range of memory. The bytes of one checksum must be in one piece. So must
 * the bytes of a granule that writes wait for (core/cell.h). If they lie in several
 * segments they are copied through a bounce page: written bytes at submit, read bytes
 * after the piece has ended with status 0.
 */
#ifndef RBX_LIB_BOUNCE_H
#define RBX_LIB_BOUNCE_H

#include <pthread.h>

#include "core/piece.h"
#include "lib/buffers/segments.h"

/* Of one volume: 2 MiB of address space; memory is used only as the pages are. */
#define RBX_BOUNCES_MAX 512u
RBX_STATIC_ASSERT(RBX_BOUNCES_MAX >= RBX_SEGMENTS_MAX,
		  "a page for each two segments of a request that meet");

struct rbx_bounce {
	struct rbx_segment_walk from; /* where its bytes belong */
	uint32_t next; /* in the list of free ones, or in the chain that one call has taken */
};

struct rbx_bounces {
	char *memory;
	uint32_t used_count; /* atomic; changed under the lock */
	pthread_mutex_t lock; /* guards the free ones */
	uint32_t free_first;
	struct rbx_bounce bounces[RBX_BOUNCES_MAX];
};

int rbx_bounces_open(struct rbx_bounces *bounces); /* 0 or -ENOMEM */
void rbx_bounces_close(struct rbx_bounces *bounces);

/* The end of a chain. */
#define RBX_BOUNCE_NONE UINT32_MAX

/* Takes at least one page, in front of the chain that begins at *first. 0, or -EAGAIN: nothing is
 * taken. */
int rbx_bounces_take(struct rbx_bounces *bounces, uint32_t count,
		     uint32_t *first);
/* Gives back pages of take() that were not used. */
void rbx_bounces_give(struct rbx_bounces *bounces, uint32_t first);

/* Takes the first page off the chain, and makes it the memory of a piece whose kind and
 * length are set. */
void rbx_bounce_begin(struct rbx_bounces *bounces, uint32_t *first,
		      const struct rbx_segment_walk *from,
		      struct rbx_piece *piece);

/* Copies what was read into the pages of ended pieces to its place, and frees the pages. */
void rbx_bounces_end(struct rbx_bounces *bounces,
		     const struct rbx_piece_list *ended);

#endif
