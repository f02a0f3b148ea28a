/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce.h - pages that stand in for memory that is in more than one segment.
 *
 * A piece is one stretch of memory. If the bytes of one checksum, or of writes that
 * wait for each other (core/cell.h), lie in several segments, they are copied through a
 * page of these: written bytes at submit, read bytes when the piece has ended well.
 */
#ifndef RBX_LIB_BOUNCE_H
#define RBX_LIB_BOUNCE_H

#include <pthread.h>

#include "core/piece.h"
#include "lib/buffers/segments.h"

/* Of one volume: 2 MiB, touched only as they are used. */
#define RBX_BOUNCES_MAX 512u
RBX_STATIC_ASSERT(RBX_BOUNCES_MAX >= RBX_SEGMENTS_MAX,
		  "a page for each two segments of a request that meet");

struct rbx_bounce {
	struct rbx_segment_walk from; /* where its bytes belong */
	uint32_t next; /* free, or of those that one call has taken */
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

/* Takes at least one; they are numbered by the chain from *first on. 0 or -EAGAIN. */
int rbx_bounces_take(struct rbx_bounces *bounces, uint32_t count,
		     uint32_t *first);
/* Gives back what take() gave and nobody used. */
void rbx_bounces_give(struct rbx_bounces *bounces, uint32_t first);

/* Points a piece, whose kind and length are set, at the first of the chain, which it
 * comes off. */
void rbx_bounce_begin(struct rbx_bounces *bounces, uint32_t *first,
		      const struct rbx_segment_walk *from,
		      struct rbx_piece *piece);

/* Those of ended pieces go back, what was read into them goes where it belongs. */
void rbx_bounces_end(struct rbx_bounces *bounces,
		     const struct rbx_piece_list *ended);

#endif
