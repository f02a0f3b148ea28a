/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cm_thread.c - the thread that takes the connection events of a device.
 *
 * It sleeps until librdmacm or the device has an event, or the device is closed. It passes
 * each event of librdmacm to the target of its id, and acknowledges it. Handling an event
 * never waits for other threads: a thread that destroys an id waits for this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

/* The pause after an unexpected failure, so as not to spin on it. */
#define FAILURE_PAUSE_US 10000

static void event_take(struct rbx_verbs_device *device)
{
	struct rbx_verbs_cm_target *target;
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(device->channel, &event)) {
		if (errno != EAGAIN && errno != EINTR)
			usleep(FAILURE_PAUSE_US);
		return;
	}
	/* A new id starts with the context of its listener. */
	target = event->id->context;
	target->handle(target, event);
	rdma_ack_cm_event(event);
}

static void *cm_thread_run(void *argument)
{
	struct rbx_verbs_device *device = argument;
	struct pollfd fds[] = {
		{ .fd = device->channel->fd, .events = POLLIN },
		{ .fd = device->stop_fd, .events = POLLIN },
		{ .fd = device->verbs->async_fd, .events = POLLIN },
	};

	while (!fds[1].revents) {
		if (poll(fds, 3, -1) <= 0)
			continue;
		if (fds[0].revents)
			event_take(device);
		if (fds[2].revents && !rbx_verbs_events_hear(device))
			fds[2].fd = -1;
	}
	return NULL;
}

/* The signals of the program are not handled by this thread. */
static int thread_start(struct rbx_verbs_device *device)
{
	sigset_t all;
	sigset_t before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&device->cm_thread, NULL, cm_thread_run, device);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static int channel_open(struct rbx_verbs_device *device)
{
	int flags;

	device->channel = rdma_create_event_channel();
	if (!device->channel)
		return -errno;
	flags = fcntl(device->channel->fd, F_GETFL);
	fcntl(device->channel->fd, F_SETFL, flags | O_NONBLOCK);
	return 0;
}

int rbx_verbs_cm_thread_start(struct rbx_verbs_device *device, char *error)
{
	int err = channel_open(device);

	if (err)
		return rbx_verbs_explain(error, err,
			"no connection events: %s; load the module with "
			"`modprobe rdma_ucm` and see that "
			"/dev/infiniband/rdma_cm is open to you",
			strerror(-err));
	device->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (device->stop_fd < 0) {
		err = -errno;
		goto out_destroy_channel;
	}
	err = thread_start(device);
	if (err)
		goto out_close_stop;
	return 0;

out_close_stop:
	close(device->stop_fd);
out_destroy_channel:
	rdma_destroy_event_channel(device->channel);
	return rbx_verbs_explain(error, err,
		"no thread for connection events: %s; raise the limits on "
		"processes (`ulimit -u`) and files (`ulimit -n`)",
		strerror(-err));
}

void rbx_verbs_cm_thread_stop(struct rbx_verbs_device *device)
{
	eventfd_write(device->stop_fd, 1);
	pthread_join(device->cm_thread, NULL);
	close(device->stop_fd);
	rdma_destroy_event_channel(device->channel);
}
