/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mappings.h - tells what is mapped in this process.
 *
 * The kernel is asked for one mapping at a time by PROCMAP_QUERY (Linux 6.11), which costs a
 * microsecond, whatever else is mapped. An older kernel has only the text of the whole
 * address space: a line for each mapping before the one that is asked for, about a
 * microsecond each. So no lock of the monitor may be held meanwhile.
 *
 * Nothing is allocated. A walk has a buffer of 8 KiB, on the stack.
 */
#ifndef RBX_LIB_MONITOR_MAPPINGS_H
#define RBX_LIB_MONITOR_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of the text has a path at its end, of PATH_MAX bytes at most. */
#define RBX_MAPPINGS_TEXT_BYTES 8192u

/* The end of huge pages' path, which is no file that a program can name. */
#define RBX_MAPPINGS_HUGE_PAGES "/anon_hugepage (deleted)"

struct rbx_mapping {
	uintptr_t start;
	uintptr_t end;
	bool is_shared;
	bool has_file;
};

/* A walk from low addresses to high ones. */
struct rbx_mappings_walk {
	int text_fd; /* -1: each mapping is asked for */
	size_t used_bytes; /* of the text: the lines that were passed */
	size_t text_bytes;
	char text[RBX_MAPPINGS_TEXT_BYTES];
};

/* To be opened before all calls below. 0, or -errno: there is no /proc. */
int rbx_mappings_open(void);
void rbx_mappings_close(void);

/* 0, or -errno: the text cannot be opened. Then end() must not be called. */
int rbx_mappings_begin(struct rbx_mappings_walk *walk);
/* The first mapping that ends behind this address, which must not fall. 0; -ENOENT: there is
 * none; or -errno. */
int rbx_mappings_next(struct rbx_mappings_walk *walk, uintptr_t at, struct rbx_mapping *mapping);
void rbx_mappings_end(struct rbx_mappings_walk *walk);

/* The mapping that has this address. False: there is none, or it would take the text. */
bool rbx_mappings_find(uintptr_t at, struct rbx_mapping *mapping);

/*
 * Whether all of a range is private memory without a file. 0, with the number of mappings;
 * -EFAULT: not all is mapped; -EOPNOTSUPP: a file or shared memory is mapped there; or another
 * -errno.
 */
int rbx_mappings_check(uintptr_t start, uintptr_t end, uint32_t *count);

/* The same of the text (mappings_text.c), for this file alone. */
int rbx_mappings_text_open(void);
int rbx_mappings_text_next(struct rbx_mappings_walk *walk, uintptr_t at,
			   struct rbx_mapping *mapping);

#endif
