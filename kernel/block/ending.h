/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ending.h - requests end where an interrupt would end them, never in a task.
 *
 * The end of a request calls whoever submitted it. Those see whether they may sleep
 * there: erofs decompresses at once in a task, and allocates for it. In the thread
 * of the poller that could wait for memory which only a later request of the same
 * thread frees. So a request goes to the processor that asked, if the block layer
 * wants that (queue/rq_affinity), else to this one; and it is a softirq that calls
 * the complete() of its queue there.
 */
#ifndef RBX_KERNEL_ENDING_H
#define RBX_KERNEL_ENDING_H

#include <linux/blk-mq.h>
#include <linux/llist.h>

/* What a request brings for it. */
struct rbx_ending {
	struct llist_node node;
	struct request *rq;
};

/* Has complete() of the queue called for a request, once. Any context. */
void rbx_ending_begin(struct rbx_ending *ending, struct request *rq);

/* For the module. None is under way when it exits. */
void rbx_endings_init(void);
void rbx_endings_exit(void);

#endif
