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
};

/* Set while no monitor runs. */
extern struct kernel kernel;

/* Called once, before the monitor is told of the next mapping. */
void kernel_call_before_look(void (*before_look)(void));
bool kernel_has_called(void);

/* Whether one mapping can be asked for. */
bool kernel_has_query(void);

/* Whether the kernel tells of changes of this page. */
bool kernel_watches(const void *page);
/* Whether there is any page of which it does. */
bool kernel_watches_some(void);

/* For tests whose child of fork() starts threads: TSan takes them for the parent's, whose stacks
 * they have. */
void kernel_skip_under_tsan(void);

#endif
