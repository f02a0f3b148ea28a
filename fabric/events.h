/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.h - a device's unsolicited events for its program: a list that both fabrics use.
 *
 * Each object that can raise an event has its place in the list made in advance. So raising
 * an event neither allocates nor fails, and the list is never longer than the number of such
 * objects. An event that was not taken yet is not added twice.
 */
#ifndef RBX_FABRIC_EVENTS_H
#define RBX_FABRIC_EVENTS_H

#include <pthread.h>
#include <sys/queue.h>

#include "fabric.h"

/* Zeroed by its owner, except for the event. */
struct rbx_raised_event {
	struct rbx_device_event event;
	bool is_raised; /* under the lock of the list */
	TAILQ_ENTRY(rbx_raised_event) entry;
};

struct rbx_device_events {
	pthread_mutex_t lock; /* guards what follows; no other is taken under it */
	TAILQ_HEAD(, rbx_raised_event) raised; /* the oldest first */
	int fd; /* eventfd: readable while there is one */
};

/* Returns 0 or -errno. The device's event_fd is that of the list. */
int rbx_device_events_open(struct rbx_device_events *events,
			   struct rbx_device *device);
void rbx_device_events_close(struct rbx_device_events *events);

/* Any thread, never blocks. An event that is raised already becomes the latest. */
void rbx_device_events_raise(struct rbx_device_events *events,
			     struct rbx_raised_event *raised);
/* The object of the event is about to be destroyed. */
void rbx_device_events_forget(struct rbx_device_events *events,
			      struct rbx_raised_event *raised);
/* Returns 0 or -EAGAIN. */
int rbx_device_events_take(struct rbx_device_events *events,
			   struct rbx_device_event *event);

#endif
