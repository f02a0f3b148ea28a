/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.h - finds out whether other threads want the processor of this thread.
 *
 * A thread that polls instead of sleeping saves a wake-up, as long as the processor has
 * nothing else to do. If other threads wait for the processor, perhaps other servers or the
 * client, polling takes the time in which they would make the next work. The kernel counts
 * how long a thread was ready to run and did not. If that is more than a CROWDED_PART of the
 * time the processor is crowded. It counts as crowded for CROWDED_NS more, since a thread
 * that sleeps at once is seldom made to wait. (Yielding is no answer: a thread that only
 * computes would then have the processor for a whole time slice.)
 */
#ifndef SOFT_CROWD_H
#define SOFT_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct soft_crowd {
	int fd; /* of the kernel's counter; -1: it does not count */
	uint64_t looked_ns;
	uint64_t waited_ns; /* value of the counter at that time */
	uint64_t crowded_until_ns;
};

/* Called by the thread itself. If the kernel does not count, nothing is ever crowded. */
void soft_crowd_open(struct soft_crowd *crowd);
void soft_crowd_close(struct soft_crowd *crowd);

/* Asks the kernel at most every SOFT_CROWD_LOOK_NS. */
bool soft_crowd_look(struct soft_crowd *crowd, uint64_t now_ns);

#endif
