/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.h - a thread that takes completions of a context.
 *
 * A context has one for each interrupt vector that its device offers for completions,
 * but no more than there are processors. Each queue pair belongs to one of them.
 *
 * It follows a rule of core/poll_policy.h. Who ends fragments without a
 * completion hands them to it too, so that their done() is called by this thread
 * whatever happens, never by who submits.
 *
 * It begins with one completion queue, as deep as some queue pairs need, and gets another
 * when it is to serve more (context_room.c).
 *
 * A work request carries a struct ib_cqe; its done() adds what has completed to
 * poller->round.harvest, which is settled once for all that one poll has found.
 */
#ifndef RBX_KERNEL_POLLER_H
#define RBX_KERNEL_POLLER_H

#include <linux/mutex.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "core/poll_round.h"

struct rbx_context;

/* Queue pairs of one completion queue at most, and queues of a poller. */
#define RBX_CQ_QPS 64u
#define RBX_POLLER_CQS_MAX (RBX_PEERS_MAX / RBX_CQ_QPS)

struct rbx_poller {
	struct rbx_context *ctx;
	uint32_t number; /* among those of the context */
	uint32_t qps_count; /* that it serves; with peers_lock, as the next */
	uint32_t cq_qps_counts[RBX_POLLER_CQS_MAX];
	struct task_struct *thread;
	wait_queue_head_t wait;
	bool event; /* atomic: a completion queue has one */
	bool asleep; /* atomic: it waits for an event */

	/* Who has the lock: it calls back. Atomic; whoever asks only knows itself. */
	struct task_struct *holder;
	struct mutex lock; /* held while it polls; guards all below */
	uint32_t cqs_count; /* grows only, from 1 */
	struct ib_cq *cqs[RBX_POLLER_CQS_MAX]; /* NULL: it is bound to no device */
	struct rbx_poll_round round;
	struct ib_wc wcs[RBX_POLL_BATCH];
};

/* Whatever is told of completions is told by who has it: the thread, or one who ends what
 * has no completion. */
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

/* Bound to no device, for the time being, and on a node of memory. */
int rbx_poller_open(struct rbx_poller *poller, struct rbx_context *ctx,
		    uint32_t number, const struct rbx_poll_rule *rule,
		    const char *name, int node);
void rbx_poller_close(struct rbx_poller *poller);

/* Makes its completion queues, of that depth each, which it polls. 0 or -errno. */
int rbx_poller_bind(struct rbx_poller *poller, struct ib_device *device,
		    uint32_t depth_count);
/* Frees them; there is no queue pair on them any more. */
void rbx_poller_unbind(struct rbx_poller *poller);
/* Makes one more; device: that it is bound to, or NULL. 0 or -errno. */
int rbx_poller_grow(struct rbx_poller *poller, struct ib_device *device,
		    uint32_t depth_count);

/* Has the fragments of a list, status set, ended by the thread. Any context. */
void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list);
/* Has it let parked combiners look again. Any context. */
void rbx_poller_unpark(struct rbx_poller *poller);
/* Whether it has looked for completions since *polls_count, or would be told of one. A
 * done() may take its time, and so may others that the processor runs. One thread for
 * each polls_count. */
bool rbx_poller_has_looked(const struct rbx_poller *poller,
			   uint64_t *polls_count);
/* When it returns the thread has given back all that it had in hand. */
void rbx_poller_visit(struct rbx_poller *poller);
/* When it returns all that was in the completion queues has been taken. Blocks. */
void rbx_poller_sweep(struct rbx_poller *poller);

#endif
