/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lost_pages.h - which pages of a slab have been written since it was lost.
 *
 * A slab whose last replica is lost gets new memory, all zeros, for the writes that come
 * later. Its earlier data is gone, and zeros in its place would be wrong data. So the pages
 * of such a slab are bad until they are written whole. A read of a bad page ends with -EIO.
 * So does a write of a part of one, since no server has the rest. A slab that was never lost
 * has no such pages; neither has one whose last bad page was written, or that was discarded.
 *
 * A bit for each page: 2 KiB for a slab of 64 MiB. The host lends that memory when
 * the slab is placed anew; the slab's lock guards it.
 */
#ifndef RBX_LOST_PAGES_H
#define RBX_LOST_PAGES_H

#include "core/limits.h"
#include "core/port.h"

struct rbx_lost_pages {
	struct rbx_lost_pages *next; /* in the bucket of the slab's group, where it is found */
	uint32_t slab_index; /* by this index */
	uint32_t bad_count;
	uint64_t good[]; /* a bit for each page */
};

/* Bytes for a slab of so many bytes. */
static inline size_t rbx_lost_pages_size(uint32_t slab_shift)
{
	size_t bits = ((size_t)1 << slab_shift) / RBX_PAGE_BYTES;

	return sizeof(struct rbx_lost_pages) + (bits + 63) / 64 * 8;
}

/* Marks all pages bad. The slab's own fields stay. */
void rbx_lost_pages_begin(struct rbx_lost_pages *pages, uint32_t slab_shift);

/* Whether all pages that a range touches are good. */
bool rbx_lost_pages_may_read(const struct rbx_lost_pages *pages,
			     uint32_t offset_bytes, uint32_t length_bytes);

/* Whether all pages are good that the range covers only in part. */
bool rbx_lost_pages_may_write(const struct rbx_lost_pages *pages,
			      uint32_t offset_bytes, uint32_t length_bytes);

/* The range was written: the pages that it covers whole are good. Returns whether all pages
 * of the slab are. */
bool rbx_lost_pages_written(struct rbx_lost_pages *pages, uint32_t offset_bytes,
			    uint32_t length_bytes);

#endif
