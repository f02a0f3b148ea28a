/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.h - does somebody else want the processor that this thread runs on?
 *
 * Who looks for work instead of sleeping saves a wake-up, as long as the processor
 * has nothing else to do. Where others wait for it, and other servers or the client
 * may be among them, it keeps from them the time in which they would make the next
 * work. The kernel knows: it counts how long a thread was ready to run and did not.
 * Where that is more than a CROWDED_PART of the time the processor is crowded, and
 * it is taken to be so for CROWDED_NS more, since who sleeps at once is seldom
 * made to wait. (To yield is no answer: a thread that only computes would have the
 * processor for a whole time slice then.)
 */
#ifndef SOFT_CROWD_H
#define SOFT_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct soft_crowd {
	int fd; /* what the kernel counts; -1: it does not */
	uint64_t looked_ns;
	uint64_t waited_ns; /* until then */
	uint64_t crowded_until_ns;
};

/* By the thread itself. Where the kernel does not count nothing is ever crowded. */
void soft_crowd_open(struct soft_crowd *crowd);
void soft_crowd_close(struct soft_crowd *crowd);

/* Asks the kernel every SOFT_CROWD_LOOK_NS at most. */
bool soft_crowd_look(struct soft_crowd *crowd, uint64_t now_ns);

#endif
