/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ending.c - ends requests in a softirq, see ending.h.
 *
 * The block layer itself hands requests over that have to end on another processor. Those
 * that end on this processor it would end at once, as a driver usually calls it from an
 * interrupt. Here the tasklet of the processor ends them.
 */
#include <linux/interrupt.h>

#include "kernel/block/ending.h"

/* The requests that end on one processor. */
struct queue {
	struct llist_head endings;
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct queue, queues);

static void endings_complete(struct tasklet_struct *tasklet)
{
	struct queue *queue = from_tasklet(queue, tasklet, tasklet);
	struct llist_node *list =
		llist_reverse_order(llist_del_all(&queue->endings));
	struct rbx_ending *ending, *next;

	/* Ending a request may free it, with its struct rbx_ending. */
	llist_for_each_entry_safe(ending, next, list, node)
		ending->rq->q->mq_ops->complete(ending->rq);
}

static void add_here(struct rbx_ending *ending)
{
	struct queue *queue = get_cpu_ptr(&queues);

	if (llist_add(&ending->node, &queue->endings))
		tasklet_schedule(&queue->tasklet);
	put_cpu_ptr(&queues);
}

static void begin(struct rbx_ending *ending, struct request *rq)
{
	if (blk_mq_complete_request_remote(rq))
		return;
	ending->rq = rq;
	add_here(ending);
}

void rbx_ending_begin(struct rbx_ending *ending, struct request *rq)
{
	/* The driver of a disk may end a bio in its interrupt thread, with interrupts off
	 * and under its own lock. Bottom halves run when it enables them again. */
	if (!in_task() || irqs_disabled()) {
		begin(ending, rq);
		return;
	}
	/* The tasklet runs when bottom halves are enabled again. The volume does so when
	 * all requests of a poll have ended, so no thread has to be woken. Also, the
	 * processor that gets a request cannot go offline between the block layer's check
	 * and the interrupt that it sends; otherwise the interrupt and the request would
	 * be lost. */
	local_bh_disable();
	begin(ending, rq);
	local_bh_enable();
}

void rbx_endings_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_setup(&per_cpu(queues, cpu).tasklet, endings_complete);
}

void rbx_endings_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu(queues, cpu).tasklet);
}
