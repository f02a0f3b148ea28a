/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.h - pollers: they take completions from completion queues.
 *
 * Either a thread of the library polls, following a poll policy, or the program does with
 * rbx_poll(). One thread polls at a time: it holds the poller's lock.
 *
 * A poller begins with one completion queue, which is deep enough for some queue pairs.
 * It makes another one when it has to serve more (cqs.c). So its memory follows its use.
 */
#ifndef RBX_LIB_POLLER_H
#define RBX_LIB_POLLER_H

#include <pthread.h>

#include "core/histogram.h"
#include "core/poll_round.h"
#include "core/request.h"
#include "fabric/fabric.h"

struct rbx_context;
struct rbx_request;

/* Queue pairs of one completion queue, if a poller serves many. */
#define RBX_CQ_QPS 64u
#define RBX_POLLER_CQS_MAX (RBX_PEERS_MAX / RBX_CQ_QPS)
#define RBX_POLLER_QPS_MAX (RBX_POLLER_CQS_MAX * RBX_CQ_QPS)

/* Written by the thread that polls; the statistics read them. */
struct rbx_poller_counters {
	uint64_t requests;
	uint64_t bytes;
	uint64_t errors;
};

/* What the system tells of the poller's thread since it was started. */
struct rbx_poller_usage {
	uint64_t cpu_ns;
	uint64_t context_switches; /* voluntary or not */
};

struct rbx_poller {
	struct rbx_context *ctx;
	struct rbx_poll_round round; /* with the lock, except what any thread may do */

	/* These change under the context's peers_lock. */
	uint32_t qps_each_count; /* the most of one completion queue */
	uint32_t qps_count; /* of all completion queues */
	uint32_t cq_qps_counts[RBX_POLLER_CQS_MAX];
	uint32_t cq_count; /* atomic; grows only, from 1 */
	struct rbx_cq *cqs[RBX_POLLER_CQS_MAX];
	/* Atomic: the device was unplugged, so its descriptor would report an error for
	 * ever. */
	bool cq_is_mute[RBX_POLLER_CQS_MAX];
	bool has_mute_cq; /* atomic */

	bool has_thread;
	pthread_t thread;
	int thread_id; /* atomic: its number in the kernel; 0: not running yet */
	uint64_t context_switches; /* atomic: as the kernel last reported */
	int wake_fd; /* eventfd: ends the thread's sleep */
	/* If the program polls: readable if one of the queues or wake_fd is. Else -1. */
	int event_fd;
	bool stop; /* atomic */
	uint32_t lock_waiters; /* atomic: threads that want the lock */
	pthread_mutex_t lock; /* held by the thread that polls; guards all below */
	bool armed; /* atomic: events have to be consumed before the next poll */
	struct rbx_poller_counters counters;
	struct rbx_histogram latency;
};

/* qps_each_count: the number of queue pairs that each completion queue has room for. */
int rbx_poller_create(struct rbx_context *ctx, uint32_t qps_each_count,
		      bool with_thread, struct rbx_poller **poller);
void rbx_poller_destroy(struct rbx_poller *poller);

/* ---- cqs.c. The caller holds the context's peers_lock. */

/* Opens the first queue; closes all. */
int rbx_poller_cqs_open(struct rbx_poller *poller);
void rbx_poller_cqs_close(struct rbx_poller *poller);
/* Reserves room for one more queue pair, in any of the queues. 0; -ENOSPC; or the error
 * of the device if it cannot make another queue. */
int rbx_poller_qp_take_locked(struct rbx_poller *poller, uint32_t *cq_index);
void rbx_poller_qp_give_locked(struct rbx_poller *poller, uint32_t cq_index);

/* For the statistics; costs a system call and a file read. All zero if there is no thread
 * or the system does not tell. */
void rbx_poller_usage_get(struct rbx_poller *poller,
			  struct rbx_poller_usage *usage);

/* Stops the polling: between visit and leave this poller handles no completion. Do not
 * call it from a poller's own thread. */
void rbx_poller_visit(struct rbx_poller *poller);
void rbx_poller_leave(struct rbx_poller *poller);

/* Hands over fragments that ended without a completion, linked and ended by NULL, with
 * their status set. The thread that polls calls their done(). Any thread. */
void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list);

/* Makes the thread that polls look at everything, including queues that were made after
 * it went to sleep. Any thread. */
void rbx_poller_wake(struct rbx_poller *poller);

/* Makes the thread that polls look for parked combiners, even if no completion comes. Any
 * thread. */
void rbx_poller_unpark(struct rbx_poller *poller);

/* Polls once and handles what it finds. The caller holds the lock. Returns the number of
 * completions. */
uint32_t rbx_poller_poll(struct rbx_poller *poller);

/* Called by the thread that polls. After arm() a new completion makes the descriptors
 * readable; disarm() makes them unreadable again. */
void rbx_poller_arm(struct rbx_poller *poller);
void rbx_poller_disarm(struct rbx_poller *poller);

/*
 * Whether no old completion can still be waiting here. That is so if the poller has
 * polled since *polls_count was set (it is set anew), or if it sleeps and has no reason
 * to wake. Any thread.
 */
bool rbx_poller_has_looked(const struct rbx_poller *poller,
			   uint64_t *polls_count);

/* The poller whose callbacks this thread is running now, or NULL. */
struct rbx_poller *rbx_poller_current(void);

#endif
