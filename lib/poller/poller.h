/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.h - completion queues and who polls them.
 *
 * Either a thread of ours polls, following a poll policy, or the program does
 * by rbx_poll(). One thread at a time: it holds the poller's lock.
 *
 * A poller begins with one queue, as deep as some queue pairs need, and gets another when
 * it is to serve more: what it costs follows what it serves. cqs.c.
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

/* Queue pairs of one completion queue, where a poller serves many. */
#define RBX_CQ_QPS 64u
#define RBX_POLLER_CQS_MAX (RBX_PEERS_MAX / RBX_CQ_QPS)
#define RBX_POLLER_QPS_MAX (RBX_POLLER_CQS_MAX * RBX_CQ_QPS)

/* Written by the thread that polls, read for the statistics. */
struct rbx_poller_counters {
	uint64_t requests;
	uint64_t bytes;
	uint64_t errors;
};

/* What the system says of the poller's thread since it was started. */
struct rbx_poller_usage {
	uint64_t cpu_ns;
	uint64_t context_switches; /* of its own accord or not */
};

struct rbx_poller {
	struct rbx_context *ctx;
	struct rbx_poll_round round; /* with lock, but for what any thread may do */

	/* Change under the context's peers_lock. */
	uint32_t qps_each_count; /* of a completion queue, at most */
	uint32_t qps_count; /* of all */
	uint32_t cq_qps_counts[RBX_POLLER_CQS_MAX];
	uint32_t cq_count; /* atomic; grows only, from 1 */
	struct rbx_cq *cqs[RBX_POLLER_CQS_MAX];
	/* Atomic: its device has gone, and its descriptor will say so for ever. */
	bool cq_is_mute[RBX_POLLER_CQS_MAX];
	bool has_mute_cq; /* atomic */

	bool has_thread;
	pthread_t thread;
	int thread_id; /* atomic: the kernel's number; 0: not running yet */
	uint64_t context_switches; /* atomic: as the kernel last told */
	int wake_fd; /* eventfd: ends the sleep of the thread */
	int event_fd; /* where the program polls: readable when one of the queues'
			 and wake_fd is; else -1 */
	bool stop; /* atomic */
	uint32_t lock_waiters; /* atomic: threads that want the lock */
	pthread_mutex_t lock; /* who polls; guards all below */
	bool armed; /* atomic: events are to be consumed before the next poll */
	struct rbx_poller_counters counters;
	struct rbx_histogram latency;
};

/* qps_each_count: for so many queue pairs each completion queue has room. */
int rbx_poller_create(struct rbx_context *ctx, uint32_t qps_each_count,
		      bool with_thread, struct rbx_poller **poller);
void rbx_poller_destroy(struct rbx_poller *poller);

/* ---- cqs.c. The context's peers_lock is held. */

/* Opens and closes the first. */
int rbx_poller_cqs_open(struct rbx_poller *poller);
void rbx_poller_cqs_close(struct rbx_poller *poller);
/* Room for one more queue pair, in whichever queue. 0; -ENOSPC, or why the device makes
 * no other queue. */
int rbx_poller_qp_take_locked(struct rbx_poller *poller, uint32_t *cq_index);
void rbx_poller_qp_give_locked(struct rbx_poller *poller, uint32_t cq_index);

/* No more than a system call and a file: for the statistics. Zeros where there
 * is no thread, or where the system does not tell. */
void rbx_poller_usage_get(struct rbx_poller *poller,
			  struct rbx_poller_usage *usage);

/* Runs while nobody polls: between visit and leave no completion is handled
 * by this poller. Not from a poller's own thread. */
void rbx_poller_visit(struct rbx_poller *poller);
void rbx_poller_leave(struct rbx_poller *poller);

/* Hands over fragments that ended otherwise than by a completion, linked to a
 * NULL, status set: their done() is called by who polls. Any thread. */
void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list);

/* Has who polls look at all there is, also at what it did not know of when it went to
 * sleep. Any thread. */
void rbx_poller_wake(struct rbx_poller *poller);

/* Has who polls look for parked combiners, completions or none. Any thread. */
void rbx_poller_unpark(struct rbx_poller *poller);

/* Polls once and handles what is there; the caller holds the lock. Returns the
 * number of completions. */
uint32_t rbx_poller_poll(struct rbx_poller *poller);

/* For who polls: what comes after arm() makes the descriptors readable, and
 * disarm() makes them unreadable again. */
void rbx_poller_arm(struct rbx_poller *poller);
void rbx_poller_disarm(struct rbx_poller *poller);

/*
 * Whether nothing that completed long ago can be waiting here: it has polled since
 * *polls_count was set, which is set anew, or it sleeps and has no reason to wake.
 * Any thread.
 */
bool rbx_poller_has_looked(const struct rbx_poller *poller,
			   uint64_t *polls_count);

/* The poller whose callbacks this thread is running, or NULL. */
struct rbx_poller *rbx_poller_current(void);

#endif
