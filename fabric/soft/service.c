/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * service.c - the thread that serves qps which no thread polls.
 *
 * Each device has one such thread. It waits for all sockets that were given to it and carries
 * out what comes, so peers reach our memory while the program does something else. A wake-up
 * costs far more than a request, so after the last bytes came it polls for a while
 * (service_spin_us) before it blocks. While it spins it looks at the socket that was busy
 * last, and asks epoll for others every few rounds. If other threads want its processor it
 * blocks at once (crowd.h).
 *
 * It also serves the listeners (listen.c) and checks deadlines: of half-open connections that
 * send nothing, of listeners that rest, of SENDs whose receiver is not ready, and of peers
 * that keep shared receives from others. While there are any it wakes up each SOFT_TICK_MS;
 * otherwise an idle device uses no time at all.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "crowd.h"
#include "deadlines.h"
#include "device.h"
#include "queue_pair.h"
#include "shared_receives.h"

/* Looks at the busy socket between two looks at all sockets. */
#define SERVICE_BUSY_ROUNDS 8

struct service {
	struct soft_device *device;
	uint64_t busy_token; /* of the qp that was busy last */
	uint64_t busy_ns; /* when bytes last came */
	uint64_t tick_ns; /* of the last check of deadlines */
	struct soft_crowd crowd;
};

void soft_service_wake(struct soft_device *device)
{
	eventfd_write(device->service_wake_fd, 1);
}

static bool service_qp(struct service *service, uint64_t token)
{
	struct soft_qp *qp = soft_qp_set_get(&service->device->served, token);
	bool received;

	if (!qp)
		return false;
	received = soft_qp_progress(qp, NULL);
	soft_qp_put(qp);
	if (received)
		service->busy_token = token;
	return received;
}

static bool service_event(struct service *service, uint64_t token)
{
	eventfd_t value;

	if (token == SOFT_TOKEN_WAKE)
		return !eventfd_read(service->device->service_wake_fd, &value);
	if (token == SOFT_TOKEN_LISTENERS) {
		soft_listeners_serve(service->device);
		return false;
	}
	return service_qp(service, token);
}

static void check_qps(struct soft_device *device, uint64_t now_ns, uint64_t passed_ns)
{
	struct soft_qp *qp;

	pthread_mutex_lock(&device->lock);
	for (qp = device->qps; qp; qp = qp->next)
		soft_qp_check_deadlines(qp, now_ns, passed_ns);
	pthread_mutex_unlock(&device->lock);
}

static bool has_deadlines(struct soft_device *device)
{
	return atomic_load_explicit(&device->stalled_count,
				    memory_order_relaxed) ||
	       atomic_load_explicit(&device->srq_waiting_count,
				    memory_order_relaxed) ||
	       atomic_load_explicit(&device->listeners.waiting_count,
				    memory_order_relaxed) ||
	       device->listeners.rests;
}

static void check_deadlines(struct service *service, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - service->tick_ns;

	if (passed_ns < SOFT_TICK_MS * 1000000ull)
		return;
	service->tick_ns = now_ns;
	if (!has_deadlines(service->device))
		return;
	check_qps(service->device, now_ns, passed_ns);
	soft_listeners_check_deadlines(service->device, now_ns);
}

static bool service_busy(struct service *service)
{
	bool received = false;
	int round;

	for (round = 0; round < SERVICE_BUSY_ROUNDS && !received; round++)
		received = service_qp(service, service->busy_token);
	return received;
}

static void *service_run(void *argument)
{
	struct service service = { .device = argument };
	struct soft_device *device = argument;
	struct epoll_event events[SOFT_EVENTS_MAX];
	bool spin = false, received;
	uint64_t now_ns;
	int count, i, timeout_ms;

	soft_crowd_open(&service.crowd);
	while (!atomic_load_explicit(&device->service_stop,
				     memory_order_relaxed)) {
		received = spin && service_busy(&service);
		timeout_ms = has_deadlines(device) ? SOFT_TICK_MS : -1;
		count = epoll_wait(device->served.epoll_fd, events,
				   SOFT_EVENTS_MAX, spin ? 0 : timeout_ms);
		for (i = 0; i < count; i++)
			received |= service_event(&service, events[i].data.u64);
		if (atomic_exchange(&device->srqs_due, false))
			soft_srqs_serve(device);
		now_ns = soft_now_ns();
		if (received)
			service.busy_ns = now_ns;
		spin = now_ns - service.busy_ns < device->service_spin_ns &&
		       !soft_crowd_look(&service.crowd, now_ns);
		check_deadlines(&service, now_ns);
	}
	soft_crowd_close(&service.crowd);
	return NULL;
}

int soft_service_start(struct soft_device *device, char *error)
{
	int err;

	device->service_wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (device->service_wake_fd < 0) {
		err = -errno;
		goto out_explain;
	}
	err = soft_qp_set_open(&device->served);
	if (err)
		goto out_wake;
	err = soft_listeners_open(&device->listeners);
	if (err)
		goto out_set;
	err = soft_qp_set_add_fd(&device->served, device->service_wake_fd,
				 SOFT_TOKEN_WAKE);
	if (!err)
		err = soft_qp_set_add_fd(&device->served,
					 device->listeners.epoll_fd,
					 SOFT_TOKEN_LISTENERS);
	if (!err)
		err = -pthread_create(&device->service_thread, NULL,
				      service_run, device);
	if (!err)
		return 0;
	soft_listeners_close(&device->listeners);
out_set:
	soft_qp_set_close(&device->served);
out_wake:
	close(device->service_wake_fd);
out_explain:
	soft_explain(error, "cannot start the service thread: %s; raise the "
		     "limits of open files and threads", strerror(-err));
	return err;
}

void soft_service_stop(struct soft_device *device)
{
	atomic_store_explicit(&device->service_stop, true,
			      memory_order_relaxed);
	soft_service_wake(device);
	pthread_join(device->service_thread, NULL);
	soft_listeners_close(&device->listeners);
	soft_qp_set_close(&device->served);
	close(device->service_wake_fd);
}
