/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * segments.h - a request whose memory has several keys.
 *
 * Its memory is a list of segments, or a buffer that several regions of the cache have
 * together. The list belongs to the caller and is only read. So the keys are kept at the
 * request: a chain in the order of its bytes (local_keys.h). A segment has none if it lies in a
 * region of the program or is copied. A walk goes along both lists, and knows the key of
 * each byte. It stops wherever another segment or another key begins.
 */
#ifndef RBX_LIB_SEGMENTS_H
#define RBX_LIB_SEGMENTS_H

#include "core/request.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/buffers/local_keys.h"

struct rbx_segment_walk {
	const struct rbx_segment *segments; /* of the request; NULL: it has a buffer */
	const struct rbx_local_key *key; /* of the next byte or of a later one; NULL: no more */
	uint64_t addr; /* of the next byte */
	uint32_t left_bytes; /* of the segment or buffer */
	uint16_t segment; /* its index; 0 for a buffer */
	uint16_t segments_count; /* 0 for a buffer */
};

/* Whether the key is that of the next byte. A segment has keys for all its bytes, or none. */
static inline bool rbx_segment_has_key(const struct rbx_segment_walk *walk)
{
	return walk->key && walk->key->segment == walk->segment;
}

/* How many bytes have one key and follow each other in memory. */
static inline uint32_t rbx_segment_left(const struct rbx_segment_walk *walk)
{
	if (!rbx_segment_has_key(walk))
		return walk->left_bytes;
	return (uint32_t)(walk->key->addr + walk->key->length_bytes - walk->addr);
}

static inline uint64_t rbx_segment_addr(const struct rbx_segment_walk *walk)
{
	return walk->addr;
}

/* Starts at the first byte of a request that was checked. */
void rbx_segment_first(struct rbx_segment_walk *walk,
		       const struct rbx_request *request);

/* Goes on by so many bytes. After the last byte nothing may be read from the walk. */
void rbx_segment_skip(struct rbx_segment_walk *walk, uint32_t length_bytes);

/* The key of the next byte, and the flags that fragments need for it. */
uint32_t rbx_segment_lkey(const struct rbx_segment_walk *walk,
			  uint8_t *fragment_flags);

/* Copy from this position on: out of the segments, or into them. */
void rbx_segments_gather(struct rbx_segment_walk walk, void *to,
			 uint32_t length_bytes);
void rbx_segments_scatter(struct rbx_segment_walk walk, const void *from,
			  uint32_t length_bytes);

/* 0, or -EINVAL; rbx_last_error() names the segment. */
int rbx_segments_check(const struct rbx_request *request);

/* How many pieces a request becomes if it is cut where a walk stops, and after each
 * length_max_bytes of what is between. */
uint32_t rbx_segments_pieces(const struct rbx_request *request,
			     uint32_t length_max_bytes);

#endif
