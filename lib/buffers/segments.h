/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * segments.h - a request whose memory is a list of segments.
 *
 * The list belongs to the caller and is only read. So its registrations are kept at the
 * request: a chain in the order of the segments. A segment has none if it lies in a
 * region or is short. A walk goes along both lists, and knows the key of each byte.
 */
#ifndef RBX_LIB_SEGMENTS_H
#define RBX_LIB_SEGMENTS_H

#include "core/request.h"
#include "fabric/fabric.h"
#include "include/rdmabox/rdmabox.h"

struct rbx_context;

struct rbx_segment_walk {
	const struct rbx_segment *segment;
	struct rbx_mr *mr; /* of this segment or of a later one; NULL: no more */
	uint32_t done_bytes; /* of this segment */
};

static inline uint32_t rbx_segment_left(const struct rbx_segment_walk *walk)
{
	return walk->segment->length_bytes - walk->done_bytes;
}

static inline uint64_t rbx_segment_addr(const struct rbx_segment_walk *walk)
{
	return (uintptr_t)walk->segment->addr + walk->done_bytes;
}

/* Starts at the first byte of a request that was checked. */
void rbx_segment_first(struct rbx_segment_walk *walk,
		       const struct rbx_request *request);

/* Goes on by so many bytes. After the last byte nothing may be read from the walk. */
void rbx_segment_skip(struct rbx_segment_walk *walk, uint32_t length_bytes);

/* The key of the segment, and the flags that fragments need for it. */
uint32_t rbx_segment_lkey(const struct rbx_segment_walk *walk,
			  uint8_t *fragment_flags);

/* Copy from this position on: out of the segments, or into them. */
void rbx_segments_gather(struct rbx_segment_walk walk, void *to,
			 uint32_t length_bytes);
void rbx_segments_scatter(struct rbx_segment_walk walk, const void *from,
			  uint32_t length_bytes);

/* 0, or -EINVAL; rbx_last_error() names the segment. */
int rbx_segments_check(const struct rbx_request *request);

/* How many pieces a request becomes if it is cut at the end of each segment and after
 * each length_max_bytes. */
uint32_t rbx_segments_pieces(const struct rbx_request *request,
			     uint32_t length_max_bytes);

#endif
