/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watches.h - the table of watches, and what no watch covers.
 *
 * Watches are ranges of whole pages. They may overlap and be equal, as several caches, and
 * several regions of one cache, may have the same memory. They are sorted by their starts, so
 * what lies between them is found by one walk. A watch more moves the entries behind it:
 * 128 KiB on the average if the table is full.
 *
 * The lock of the monitor guards all of it.
 */
#ifndef RBX_LIB_MONITOR_WATCHES_H
#define RBX_LIB_MONITOR_WATCHES_H

#include <stdbool.h>
#include <stdint.h>

/* There must be fewer than RBX_MEMORY_MONITOR_WATCHES_MAX. */
void rbx_watches_add(uintptr_t start, uintptr_t end);
/* It must be there. */
void rbx_watches_remove(uintptr_t start, uintptr_t end);
void rbx_watches_clear(void);
uint32_t rbx_watches_count(void);

/* A walk over what no watch covers. Valid until the table changes. */
struct rbx_watches_walk {
	uintptr_t at; /* all before it was passed */
	uintptr_t end;
	uint32_t index; /* of the watch that comes next */
};

/* The next hole between the watches; false: there is none before the end. */
bool rbx_watches_next_hole(struct rbx_watches_walk *walk, uintptr_t *start, uintptr_t *end);

#endif
