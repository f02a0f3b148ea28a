/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ending.c - see ending.h.
 *
 * The block layer itself hands over what is to end on another processor. What is to
 * end on this one it would end at once, since a driver calls it from an interrupt as
 * a rule; here the tasklet of the processor does that.
 */
#include <linux/interrupt.h>

#include "kernel/block/ending.h"

/* Of one processor. */
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

	/* A request that has ended may be gone, and its ending with it. */
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
	/* A disk's driver may end a bio in the thread of its interrupt, with interrupts
	 * off and under a lock of its own: bottom halves run when it enables them. */
	if (!in_task() || irqs_disabled()) {
		begin(ending, rq);
		return;
	}
	/* The tasklet runs as bottom halves are enabled again, which the volume does
	 * when all have ended that a poll found; no thread has to be woken for it. And the
	 * processor that a request is handed to cannot go between the block layer's look
	 * at it and the interrupt that it is sent: that would be lost, and the request. */
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
