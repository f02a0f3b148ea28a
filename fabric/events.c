/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* events.c - see events.h. */
#include "events.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int rbx_device_events_open(struct rbx_device_events *events,
			   struct rbx_device *device)
{
	events->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (events->fd < 0)
		return -errno;
	pthread_mutex_init(&events->lock, NULL);
	TAILQ_INIT(&events->raised);
	device->event_fd = events->fd;
	return 0;
}

void rbx_device_events_close(struct rbx_device_events *events)
{
	pthread_mutex_destroy(&events->lock);
	close(events->fd);
}

static void remove_locked(struct rbx_device_events *events,
			  struct rbx_raised_event *raised)
{
	eventfd_t value;

	TAILQ_REMOVE(&events->raised, raised, entry);
	raised->is_raised = false;
	if (TAILQ_EMPTY(&events->raised))
		eventfd_read(events->fd, &value);
}

void rbx_device_events_raise(struct rbx_device_events *events,
			     struct rbx_raised_event *raised)
{
	pthread_mutex_lock(&events->lock);
	if (raised->is_raised)
		TAILQ_REMOVE(&events->raised, raised, entry);
	else if (TAILQ_EMPTY(&events->raised))
		eventfd_write(events->fd, 1);
	TAILQ_INSERT_TAIL(&events->raised, raised, entry);
	raised->is_raised = true;
	pthread_mutex_unlock(&events->lock);
}

void rbx_device_events_forget(struct rbx_device_events *events,
			      struct rbx_raised_event *raised)
{
	pthread_mutex_lock(&events->lock);
	if (raised->is_raised)
		remove_locked(events, raised);
	pthread_mutex_unlock(&events->lock);
}

static void *user_of(const struct rbx_device_event *event)
{
	if (event->qp)
		return event->qp->user;
	return event->srq ? event->srq->user : NULL;
}

int rbx_device_events_take(struct rbx_device_events *events,
			   struct rbx_device_event *event)
{
	struct rbx_raised_event *first;

	pthread_mutex_lock(&events->lock);
	first = TAILQ_FIRST(&events->raised);
	if (first) {
		*event = first->event;
		/* Under the lock: a thread that destroys the object takes the event off the
		 * list first. */
		event->user = user_of(event);
		remove_locked(events, first);
	}
	pthread_mutex_unlock(&events->lock);
	return first ? 0 : -EAGAIN;
}
