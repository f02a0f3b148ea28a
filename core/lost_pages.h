/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lost_pages.h - which pages of a slab have been written since it was lost.
 *
 * A slab whose last replica is lost gets new memory, which is all zeros, for the
 * writes that come after it. What was there before is gone, and zeros in its place
 * would be junk. So the pages of such a slab are bad until they are written whole:
 * a read of a bad page ends with -EIO, and so does a write of a part of one, since
 * nobody has the rest. A slab that was never lost has none of this, and one whose
 * last bad page is written, or that is discarded, needs it no longer.
 *
 * A bit for each page: 2 KiB for a slab of 64 MiB. The host lends that memory when
 * the slab is placed anew; the slab's lock guards it.
 */
#ifndef RBX_LOST_PAGES_H
#define RBX_LOST_PAGES_H

#include "core/limits.h"
#include "core/port.h"

struct rbx_lost_pages {
	struct rbx_lost_pages *next; /* the slab's: where it finds them again, */
	uint32_t slab_index; /* and by what */
	uint32_t bad_count;
	uint64_t good[]; /* a bit for each page */
};

/* Bytes for a slab of so many bytes. */
static inline size_t rbx_lost_pages_size(uint32_t slab_shift)
{
	size_t bits = ((size_t)1 << slab_shift) / RBX_PAGE_BYTES;

	return sizeof(struct rbx_lost_pages) + (bits + 63) / 64 * 8;
}

/* All pages are bad. The slab's own fields stay. */
void rbx_lost_pages_begin(struct rbx_lost_pages *pages, uint32_t slab_shift);

/* Whether all pages that a range touches are good. */
bool rbx_lost_pages_may_read(const struct rbx_lost_pages *pages,
			     uint32_t offset_bytes, uint32_t length_bytes);

/* Whether all pages are good that a range has a part of only. */
bool rbx_lost_pages_may_write(const struct rbx_lost_pages *pages,
			      uint32_t offset_bytes, uint32_t length_bytes);

/* The range was written: the pages that it has whole are good. Returns whether all
 * pages of the slab are. */
bool rbx_lost_pages_written(struct rbx_lost_pages *pages, uint32_t offset_bytes,
			    uint32_t length_bytes);

#endif
