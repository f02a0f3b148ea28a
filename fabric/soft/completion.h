/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * completion.h - completion queues of the soft device.
 */
#ifndef SOFT_COMPLETION_H
#define SOFT_COMPLETION_H

#include <pthread.h>

#include "../fabric.h"
#include "qp_set.h"

struct soft_completion {
	struct rbx_wc wc; /* wc.qp is NULL: its qp was destroyed */
	bool receive;
	/* Polling it frees the qp's queue up to this index, or this place of a shared one. */
	uint32_t frees;
};

struct soft_cq {
	struct rbx_cq cq;
	/* Sockets that poll() reads; cq.event_fd is the epoll instance of this set. */
	struct soft_qp_set polled;
	int wake_fd; /* eventfd in it: completions by other threads */
	uint32_t polls_without_socket; /* of the polling thread */
	bool holds; /* used by the polling thread: the next field is valid */
	uint64_t holding; /* token of the qp that holds an acknowledgement back */

	pthread_mutex_t lock; /* guards all below */
	bool armed;
	bool announced; /* wake_fd is readable */
	uint32_t reserved_count; /* work requests its qps may have posted */
	uint32_t head, tail; /* free running; tail is the next one to write */
	uint32_t capacity_count; /* of the ring, a power of two */
	struct soft_completion *ring;
};

static inline struct soft_cq *soft_cq_of(struct rbx_cq *base)
{
	return (struct soft_cq *)base;
}

int soft_create_cq(struct rbx_device *device, uint32_t depth_count,
		   struct rbx_cq **cq, char *error);
void soft_destroy_cq(struct rbx_cq *cq);
int soft_poll(struct rbx_cq *cq, struct rbx_wc *wcs, int max);
int soft_arm(struct rbx_cq *cq);
void soft_consume_events(struct rbx_cq *cq);

/* Makes room for all completions that a new qp may have at once. */
int soft_cq_reserve(struct soft_cq *cq, uint32_t count);
void soft_cq_unreserve(struct soft_cq *cq, uint32_t count);
/* The qp is destroyed: gives its room back and forgets its completions. */
void soft_cq_release(struct soft_cq *cq, struct soft_qp *qp, uint32_t count);
/*
 * Adds a completion; the caller holds the qp's lock. `quiet`: the caller is the thread that
 * polls this cq, so no thread has to be woken.
 */
void soft_cq_push(struct soft_cq *cq, const struct soft_completion *completion,
		  bool quiet);

#endif
