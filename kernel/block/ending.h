/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ending.h - ends requests in a softirq, as an interrupt would, never in a task.
 *
 * The end of a request calls its submitter. Some submitters check whether they may sleep
 * there: in a task, erofs decompresses at once and allocates memory for it. In the thread
 * of a poller this could wait for memory that only a later request of the same thread
 * frees. So a softirq calls complete() of the request's queue. It runs on the processor
 * that submitted the request, if the block layer wants that (queue/rq_affinity), else on
 * this one.
 */
#ifndef RBX_KERNEL_ENDING_H
#define RBX_KERNEL_ENDING_H

#include <linux/blk-mq.h>
#include <linux/llist.h>

/* The state that each request needs for it. */
struct rbx_ending {
	struct llist_node node;
	struct request *rq;
};

/* Makes a softirq call complete() of the queue for a request, once. Any context. */
void rbx_ending_begin(struct rbx_ending *ending, struct request *rq);

/* Called by the module. No request may be ending when it exits. */
void rbx_endings_init(void);
void rbx_endings_exit(void);

#endif
