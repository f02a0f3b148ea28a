/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lost_pages.c - see lost_pages.h. */
#include "core/lost_pages.h"

void rbx_lost_pages_begin(struct rbx_lost_pages *pages, uint32_t slab_shift)
{
	rbx_port_fill(pages->good, 0,
		      rbx_lost_pages_size(slab_shift) - sizeof(*pages));
	pages->bad_count = (1u << slab_shift) / RBX_PAGE_BYTES;
}

static bool is_good(const struct rbx_lost_pages *pages, uint32_t page)
{
	return pages->good[page / 64] >> (page % 64) & 1;
}

/* Bounded by the pages of a piece. */
bool rbx_lost_pages_may_read(const struct rbx_lost_pages *pages,
			     uint32_t offset_bytes, uint32_t length_bytes)
{
	uint32_t page = offset_bytes / RBX_PAGE_BYTES;
	uint32_t last = (offset_bytes + length_bytes - 1) / RBX_PAGE_BYTES;

	while (page <= last && is_good(pages, page))
		page++;
	return page > last;
}

/* Only the first and the last page may be covered in part. */
bool rbx_lost_pages_may_write(const struct rbx_lost_pages *pages,
			      uint32_t offset_bytes, uint32_t length_bytes)
{
	uint32_t end_bytes = offset_bytes + length_bytes;

	return (offset_bytes % RBX_PAGE_BYTES == 0 ||
		is_good(pages, offset_bytes / RBX_PAGE_BYTES)) &&
	       (end_bytes % RBX_PAGE_BYTES == 0 ||
		is_good(pages, end_bytes / RBX_PAGE_BYTES));
}

bool rbx_lost_pages_written(struct rbx_lost_pages *pages, uint32_t offset_bytes,
			    uint32_t length_bytes)
{
	uint32_t end = (offset_bytes + length_bytes) / RBX_PAGE_BYTES;
	uint32_t page = (offset_bytes + RBX_PAGE_BYTES - 1) / RBX_PAGE_BYTES;

	for (; page < end; page++) {
		if (is_good(pages, page))
			continue;
		pages->good[page / 64] |= (uint64_t)1 << (page % 64);
		pages->bad_count--;
	}
	return !pages->bad_count;
}
