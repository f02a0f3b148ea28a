/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel.h - stands between the monitor and the kernel: an older kernel, a system without
 * /proc, and what happens just when the monitor asks.
 */
#ifndef TESTS_KERNEL_H
#define TESTS_KERNEL_H

#include <stdbool.h>

struct kernel {
	bool has_no_query; /* PROCMAP_QUERY came with 6.11 */
	bool has_no_proc;
	bool counts_nothing; /* no change is ever under way */
	/* Called once, before the monitor is told of the next mapping. */
	void (*before_look)(void);
};

extern struct kernel kernel;

/* Whether one mapping can be asked for. */
bool kernel_has_query(void);

/* Whether the kernel tells of changes of this page. */
bool kernel_watches(const void *page);
/* Whether there is any page of which it does. */
bool kernel_watches_some(void);

#endif
