/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.h - an opened soft device, and what all of its parts share.
 *
 * Locks, in the order in which they may be taken:
 *   listeners.lock  listeners and handshakes (listen.c)
 *   device->lock    the list of qps
 *   qp->lock        everything of a qp (queue_pair.h)
 *   cq->lock        completions (completion.h)
 *   srq->lock       shared receives (shared_receives.h)
 *   set->lock       which thread serves which socket (qp_set.h)
 *   events.lock     what the program is to be told (../events.h)
 *   keys.lock       the free list of keys
 */
#ifndef SOFT_DEVICE_H
#define SOFT_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../events.h"
#include "../fabric.h"
#include "keys.h"
#include "listen.h"
#include "overload.h"
#include "qp_set.h"
#include "tls.h"
#include "traffic.h"

struct soft_qp;

struct soft_device {
	struct rbx_device device;
	bool same_host_mapping;
	struct soft_keys keys;
	struct soft_overload overload;
	struct rbx_device_events events;
	enum rbx_tls_use tls_use;
	struct soft_tls_keys *tls_keys; /* NULL: never */

	pthread_mutex_t lock; /* guards the list of qps */
	struct soft_qp *qps;
	LIST_HEAD(, soft_srq) srqs; /* the same lock */

	/* The service thread (service.c). */
	pthread_t service_thread;
	uint64_t service_spin_ns;
	int service_wake_fd;
	struct soft_qp_set served; /* qps that it serves */
	struct soft_listeners listeners;
	/* Stop and deadlines. Each is followed by a write to service_wake_fd, which orders
	 * it, so the accesses themselves are relaxed. */
	atomic_bool service_stop;
	atomic_bool srqs_due; /* peers wait for receives that are there */
	atomic_uint stalled_count; /* qps whose SEND waits for a receive */
	atomic_uint srq_waiting_count; /* qps whose peer waits for a shared receive */
	struct soft_traffic traffic;
};

static inline struct soft_device *soft_device_of(struct rbx_device *base)
{
	return (struct soft_device *)base;
}

static inline uint64_t soft_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Writes one line into an error buffer of a caller, which may be NULL. */
void soft_explain(char *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns when no qp still uses what it looked up before the call. */
void soft_device_wait_for_qps(struct soft_device *device);

/* service.c */
int soft_service_start(struct soft_device *device, char *error);
void soft_service_stop(struct soft_device *device);
/* Makes the service thread check its deadlines. Any thread, under any lock. */
void soft_service_wake(struct soft_device *device);

#endif
