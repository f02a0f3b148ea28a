/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * segments.h - a request whose memory is a list.
 *
 * The list is the caller's and is only read, so what is registered for it hangs on the
 * request: a chain of registrations, in the order of their segments. Not each segment
 * has one, as it may lie in a region or be short. A walk goes along both, and knows
 * the key of each byte.
 */
#ifndef RBX_LIB_SEGMENTS_H
#define RBX_LIB_SEGMENTS_H

#include "core/request.h"
#include "fabric/fabric.h"
#include "include/rdmabox/rdmabox.h"

struct rbx_context;

struct rbx_segment_walk {
	const struct rbx_segment *segment;
	struct rbx_mr *mr; /* of this segment, or of one that comes; NULL: no more */
	uint32_t done_bytes; /* of the segment */
};

static inline uint32_t rbx_segment_left(const struct rbx_segment_walk *walk)
{
	return walk->segment->length_bytes - walk->done_bytes;
}

static inline uint64_t rbx_segment_addr(const struct rbx_segment_walk *walk)
{
	return (uintptr_t)walk->segment->addr + walk->done_bytes;
}

/* The first byte of a request that was checked. */
void rbx_segment_first(struct rbx_segment_walk *walk,
		       const struct rbx_request *request);

/* So many bytes further. Behind the last byte there is nothing to ask for. */
void rbx_segment_skip(struct rbx_segment_walk *walk, uint32_t length_bytes);

/* The key of the segment, and the flags of fragments for it. */
uint32_t rbx_segment_lkey(const struct rbx_segment_walk *walk,
			  uint8_t *fragment_flags);

/* Copies from here on: out of the segments, or into them. */
void rbx_segments_gather(struct rbx_segment_walk walk, void *to,
			 uint32_t length_bytes);
void rbx_segments_scatter(struct rbx_segment_walk walk, const void *from,
			  uint32_t length_bytes);

/* 0, or -EINVAL, and rbx_last_error() says which segment. */
int rbx_segments_check(const struct rbx_request *request);

/* Into how many a request is cut that is cut where segments end, and after each
 * length_max. */
uint32_t rbx_segments_pieces(const struct rbx_request *request,
			     uint32_t length_max_bytes);

#endif
