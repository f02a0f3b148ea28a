/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.h - what a device tells its program unasked: a list that both fabrics use.
 *
 * Each thing that can tell of something has its place in the list made in advance, so
 * raising an event neither allocates nor fails, and the list is never longer than
 * there are such things. An event that nobody has taken yet is not told twice.
 */
#ifndef RBX_FABRIC_EVENTS_H
#define RBX_FABRIC_EVENTS_H

#include <pthread.h>
#include <sys/queue.h>

#include "fabric.h"

/* Zeroed, but for the event, by its owner. */
struct rbx_raised_event {
	struct rbx_device_event event;
	bool is_raised; /* with the lock of the list */
	TAILQ_ENTRY(rbx_raised_event) entry;
};

struct rbx_device_events {
	pthread_mutex_t lock; /* guards what follows; no other is taken under it */
	TAILQ_HEAD(, rbx_raised_event) raised; /* the oldest first */
	int fd; /* eventfd: readable while there is one */
};

/* 0 or -errno. The device's event_fd is that of the list. */
int rbx_device_events_open(struct rbx_device_events *events,
			   struct rbx_device *device);
void rbx_device_events_close(struct rbx_device_events *events);

/* Any thread, never blocks. One that is raised already becomes the latest. */
void rbx_device_events_raise(struct rbx_device_events *events,
			     struct rbx_raised_event *raised);
/* Whatever it is of is about to go. */
void rbx_device_events_forget(struct rbx_device_events *events,
			      struct rbx_raised_event *raised);
/* 0 or -EAGAIN. */
int rbx_device_events_take(struct rbx_device_events *events,
			   struct rbx_device_event *event);

#endif
