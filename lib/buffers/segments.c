/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* segments.c - a request whose memory is a list, see segments.h. */
#include "lib/buffers/segments.h"

#include <errno.h>
#include <string.h>

#include "lib/context.h"

/* At the first byte of a segment. */
static void segment_begin(struct rbx_segment_walk *walk)
{
	const struct rbx_segment *segment = &walk->segments[walk->segment];

	walk->addr = (uintptr_t)segment->addr;
	walk->left_bytes = segment->length_bytes;
}

void rbx_segment_first(struct rbx_segment_walk *walk,
		       const struct rbx_request *request)
{
	walk->segments = request->segments;
	walk->segment = 0;
	walk->segments_count = walk->segments ? (uint16_t)request->segments_count : 0;
	walk->key = rbx_buffers_keys(request);
	if (walk->segments) {
		segment_begin(walk);
		return;
	}
	walk->addr = (uintptr_t)request->buf;
	walk->left_bytes = request->length_bytes;
}

void rbx_segment_skip(struct rbx_segment_walk *walk, uint32_t length_bytes)
{
	while (length_bytes) {
		uint32_t left_bytes = rbx_segment_left(walk);
		uint32_t step = RBX_MIN(length_bytes, left_bytes);

		length_bytes -= step;
		walk->addr += step;
		walk->left_bytes -= step;
		if (step < left_bytes)
			return;
		if (rbx_segment_has_key(walk))
			walk->key = walk->key->next;
		if (walk->left_bytes)
			continue;
		if (++walk->segment < walk->segments_count)
			segment_begin(walk);
	}
}

uint32_t rbx_segment_lkey(const struct rbx_segment_walk *walk,
			  uint8_t *fragment_flags)
{
	const struct rbx_segment *segment = walk->segments ? &walk->segments[walk->segment] : NULL;
	uint32_t lkey;

	if (segment && segment->region &&
	    rbx_region_covers(segment->region, segment->addr, segment->length_bytes, &lkey)) {
		*fragment_flags |= RBX_FRAGMENT_HAS_LKEY;
		return lkey;
	}
	if (!rbx_segment_has_key(walk))
		return 0;
	*fragment_flags |= RBX_FRAGMENT_HAS_LKEY;
	return walk->key->lkey;
}

void rbx_segments_gather(struct rbx_segment_walk walk, void *to,
			 uint32_t length_bytes)
{
	char *at = to;

	while (length_bytes) {
		uint32_t step = RBX_MIN(length_bytes, rbx_segment_left(&walk));

		memcpy(at, (const void *)(uintptr_t)rbx_segment_addr(&walk), step);
		rbx_segment_skip(&walk, step);
		at += step;
		length_bytes -= step;
	}
}

void rbx_segments_scatter(struct rbx_segment_walk walk, const void *from,
			  uint32_t length_bytes)
{
	const char *at = from;

	while (length_bytes) {
		uint32_t step = RBX_MIN(length_bytes, rbx_segment_left(&walk));

		memcpy((void *)(uintptr_t)rbx_segment_addr(&walk), at, step);
		rbx_segment_skip(&walk, step);
		at += step;
		length_bytes -= step;
	}
}

static int segment_check(const struct rbx_request *request, uint32_t index)
{
	const struct rbx_segment *segment = &request->segments[index];
	uint32_t lkey;

	if (!segment->addr)
		return rbx_error(-EINVAL, "segment %u of %u of a request has no memory",
				 index, request->segments_count);
	if (!segment->length_bytes)
		return rbx_error(-EINVAL, "segment %u of %u of a request is 0 bytes long",
				 index, request->segments_count);
	if (segment->region && !rbx_region_covers(segment->region, segment->addr,
						  segment->length_bytes, &lkey))
		return rbx_error(-EINVAL, "segment %u of %u of a request lies outside of its region",
				 index, request->segments_count);
	return 0;
}

int rbx_segments_check(const struct rbx_request *request)
{
	uint64_t sum_bytes = 0;
	uint32_t i;
	int err;

	if (!request->segments_count ||
	    request->segments_count > RBX_SEGMENTS_MAX)
		return rbx_error(-EINVAL, "a request with %u segments: it must be 1 to %u",
				 request->segments_count, RBX_SEGMENTS_MAX);
	if (request->region)
		return rbx_error(-EINVAL, "a request with segments has a region: give each segment its own");
	for (i = 0; i < request->segments_count; i++) {
		err = segment_check(request, i);
		if (err)
			return err;
		sum_bytes += request->segments[i].length_bytes;
		if (sum_bytes > request->length_bytes)
			return rbx_error(-EINVAL, "segment %u of %u of a request ends at byte %llu, but the request ends at %u",
					 i, request->segments_count,
					 (unsigned long long)sum_bytes,
					 request->length_bytes);
	}
	if (sum_bytes == request->length_bytes)
		return 0;
	return rbx_error(-EINVAL, "segment %u, the last, of a request ends at byte %llu, but the request ends at %u",
			 i - 1, (unsigned long long)sum_bytes,
			 request->length_bytes);
}

uint32_t rbx_segments_pieces(const struct rbx_request *request,
			     uint32_t length_max_bytes)
{
	uint32_t left_bytes = request->length_bytes, count = 0;
	struct rbx_segment_walk walk;

	rbx_segment_first(&walk, request);
	while (left_bytes) {
		uint32_t step = RBX_MIN(rbx_segment_left(&walk), left_bytes);

		count += (uint32_t)(((uint64_t)step + length_max_bytes - 1) / length_max_bytes);
		rbx_segment_skip(&walk, step);
		left_bytes -= step;
	}
	return count;
}
