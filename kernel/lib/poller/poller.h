/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.h - pollers: threads that take completions for a context.
 *
 * A context has one for each completion vector of its device, but no more than there are
 * processors. Each queue pair belongs to one of them.
 *
 * A poller follows a rule of core/poll_policy.h. Fragments that end without a completion
 * are handed to it too. So this thread always calls their done(), and a submitter never
 * does.
 *
 * A poller begins with one completion queue, which is deep enough for some queue pairs.
 * It gets another one when it has to serve more (context_room.c).
 *
 * A work request has a struct ib_cqe. Its done() adds what has completed to
 * poller->round.harvest, which is settled once for all that one poll has found.
 */
#ifndef RBX_KERNEL_POLLER_H
#define RBX_KERNEL_POLLER_H

#include <linux/mutex.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "core/poll_round.h"

struct rbx_context;

/* The most queue pairs of one completion queue, and the most queues of a poller. */
#define RBX_CQ_QPS 64u
#define RBX_POLLER_CQS_MAX (RBX_PEERS_MAX / RBX_CQ_QPS)

struct rbx_poller {
	struct rbx_context *ctx;
	uint32_t number; /* among those of the context */
	uint32_t qps_count; /* that it serves; guarded by peers_lock, as the next */
	uint32_t cq_qps_counts[RBX_POLLER_CQS_MAX];
	struct task_struct *thread;
	wait_queue_head_t wait;
	bool event; /* atomic: a completion queue has an event */
	bool asleep; /* atomic: it waits for an event */

	/* The thread that has the lock, and calls callbacks. Atomic; other threads only
	 * compare it with themselves. */
	struct task_struct *holder;
	struct mutex lock; /* held while it polls; guards all below */
	uint32_t cqs_count; /* grows only, from 1 */
	struct ib_cq *cqs[RBX_POLLER_CQS_MAX]; /* NULL: not bound to a device */
	struct rbx_poll_round round;
	struct ib_wc wcs[RBX_POLL_BATCH];
};

/* Callbacks are always called by the thread that has this lock: the poller's thread, or
 * one that ends work requests without a completion. */
static inline void rbx_poller_lock(struct rbx_poller *poller)
{
	mutex_lock(&poller->lock);
	WRITE_ONCE(poller->holder, current);
}

static inline void rbx_poller_unlock(struct rbx_poller *poller)
{
	WRITE_ONCE(poller->holder, NULL);
	mutex_unlock(&poller->lock);
}

/* Makes a poller on a memory node; it is not bound to a device yet. */
int rbx_poller_open(struct rbx_poller *poller, struct rbx_context *ctx,
		    uint32_t number, const struct rbx_poll_rule *rule,
		    const char *name, int node);
void rbx_poller_close(struct rbx_poller *poller);

/* Makes and polls its completion queues, each of that depth. 0 or -errno. */
int rbx_poller_bind(struct rbx_poller *poller, struct ib_device *device,
		    uint32_t depth_count);
/* Frees them. They must have no queue pairs any more. */
void rbx_poller_unbind(struct rbx_poller *poller);
/* Makes one more queue. device: the one that it is bound to, or NULL. 0 or -errno. */
int rbx_poller_grow(struct rbx_poller *poller, struct ib_device *device,
		    uint32_t depth_count);

/* Makes the thread end the fragments of a list, whose status is set. Any context. */
void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list);
/* Makes the thread look for parked combiners. Any context. */
void rbx_poller_unpark(struct rbx_poller *poller);
/* Whether no old completion can still be waiting here: it has looked since *polls_count,
 * or it would be woken by one. A done() may take long, and so may other tasks on the
 * processor. One thread for each polls_count. */
bool rbx_poller_has_looked(const struct rbx_poller *poller,
			   uint64_t *polls_count);
/* When it returns, the thread has no completion in hand that it had taken before the
 * call. */
void rbx_poller_visit(struct rbx_poller *poller);
/* When it returns, all that was in the completion queues has been taken. Blocks. */
void rbx_poller_sweep(struct rbx_poller *poller);

#endif
