/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scrub.h - reads what each replica of a volume with checksums has, and repairs what is damaged.
 */
#ifndef RBX_LIB_SCRUB_H
#define RBX_LIB_SCRUB_H

#include <stdint.h>

struct rbx_volume;

/* What is read at a time, from one replica after another. */
#define RBX_SCRUB_PORTION_BYTES (1u << 20)

/* Scrubs a range, with a buffer of a portion. bad_pages: those are added that are damaged at all
 * servers, or that no server has. 0; -EIO: there are some, and the rest was read all the same; or
 * another -errno of a request; not reported. Blocks. */
int rbx_scrub(struct rbx_volume *volume, uint64_t offset, uint64_t length_bytes, void *buf,
	      uint64_t *bad_pages);

#endif
