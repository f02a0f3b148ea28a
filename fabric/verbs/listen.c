/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.c - the listening end: peers that ask to connect.
 *
 * The connection thread puts each request into a ring; the owner takes them with
 * get_request(). The event_fd is readable while the ring has requests. A request that finds
 * the ring full, or comes over another device than ours, is rejected at once: waiting for
 * room would delay the events of all others. The peer takes it for "again" (core/reject.h).
 *
 * Ownership: a request belongs to the ring, then to the caller until accept() or reject().
 * Closing the listener rejects what is left in the ring.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/verbs/address.h"
#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"
#include "fabric/loopback.h"

#define WAITING_MAX 128 /* requests in the ring, and asked of librdmacm */

struct verbs_listener {
	struct rbx_listener listener;
	struct rbx_verbs_cm_target target;
	struct rdma_cm_id *id;
	pthread_mutex_t lock; /* guards the ring and the state of event_fd */
	struct rbx_verbs_request *waiting[WAITING_MAX];
	unsigned int first; /* position of the oldest */
	unsigned int count;
};

static struct verbs_listener *of_target(struct rbx_verbs_cm_target *target)
{
	return (struct verbs_listener *)((char *)target -
		offsetof(struct verbs_listener, target));
}

static bool ring_put(struct verbs_listener *listener,
		     struct rbx_verbs_request *request)
{
	bool fits;

	pthread_mutex_lock(&listener->lock);
	fits = listener->count < WAITING_MAX;
	if (fits) {
		listener->waiting[(listener->first + listener->count) %
				  WAITING_MAX] = request;
		if (listener->count++ == 0)
			eventfd_write(listener->listener.event_fd, 1);
	}
	pthread_mutex_unlock(&listener->lock);
	return fits;
}

static struct rbx_verbs_request *ring_take(struct verbs_listener *listener)
{
	struct rbx_verbs_request *request = NULL;
	eventfd_t ignored;

	pthread_mutex_lock(&listener->lock);
	if (listener->count) {
		request = listener->waiting[listener->first];
		listener->first = (listener->first + 1) % WAITING_MAX;
		if (--listener->count == 0)
			eventfd_read(listener->listener.event_fd, &ignored);
	}
	pthread_mutex_unlock(&listener->lock);
	return request;
}

/* Copies what is needed of the event, which is not valid after its handling. */
static void request_fill(struct rbx_verbs_request *request,
			 struct verbs_listener *listener,
			 struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	request->offer = *param;
	request->offer.private_data = NULL;
	request->request.private_data_bytes = rbx_verbs_private_data_take(
		param, request->request.private_data,
		sizeof(request->request.private_data));
	request->request.listener = &listener->listener;
	/*
	 * The origin of a request of rdma_cm is in its text, which the sender writes: too
	 * little to trust that a peer is on this host.
	 */
	request->request.same_host = false;
	rbx_verbs_conn_name_peer(event->id, request->request.peer_name);
}

/* Makes a request from the event and puts it into the ring, or returns -errno. */
static int request_admit(struct verbs_listener *listener,
			 struct rdma_cm_event *event)
{
	struct rbx_verbs_device *device =
		rbx_verbs_device(listener->listener.device);
	struct rbx_verbs_request *request;
	int err;

	if (event->id->verbs != device->verbs ||
	    event->id->port_num != device->port)
		return -EXDEV;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	request_fill(request, listener, event);
	err = rbx_verbs_conn_create(device, event->id, &request->conn);
	if (err) {
		free(request);
		return err;
	}
	if (ring_put(listener, request))
		return 0;
	rdma_reject(event->id, NULL, 0);
	rbx_verbs_conn_destroy(request->conn);
	free(request);
	return 0;
}

static void listener_handle(struct rbx_verbs_cm_target *target,
			    struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		rbx_verbs_device_fail(rbx_verbs_device(
			of_target(target)->listener.device));
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	if (!request_admit(of_target(target), event))
		return;
	rdma_reject(event->id, NULL, 0);
	rdma_destroy_id(event->id);
}

static int explain_bind(const struct verbs_listener *listener,
			const char *address, int err, char *error)
{
	const char *device = rbx_verbs_device(listener->listener.device)
				     ->verbs->device->name;

	if (err == -ENODEV || err == -EADDRNOTAVAIL)
		return rbx_verbs_explain(error, err,
			"cannot listen on %s: it is not an address of an RDMA "
			"device; give one of %s (`rdma link`, `ip addr`), or "
			"use the soft fabric", address, device);
	if (err == -EADDRINUSE)
		return rbx_verbs_explain(error, err,
			"cannot listen on %s: the port is taken; choose "
			"another, or 0 for any", address);
	return rbx_verbs_explain(error, err, "cannot listen on %s: %s", address,
				 strerror(-err));
}

static int listener_bind(struct verbs_listener *listener, const char *text,
			 struct sockaddr_storage *address, char *error)
{
	struct rbx_verbs_device *device =
		rbx_verbs_device(listener->listener.device);
	struct rdma_cm_id *id = listener->id;

	/*
	 * librdmacm would accept it, and the kernel takes a loopback address for any address:
	 * a program that means to serve this host only would serve the network.
	 */
	if (rbx_sockaddr_is_loopback((const struct sockaddr *)address))
		return explain_bind(listener, text, -EADDRNOTAVAIL, error);
	if (rdma_bind_addr(id, (struct sockaddr *)address))
		return explain_bind(listener, text, -errno, error);
	/* For an address of no particular device the id has no device. */
	if (id->verbs && id->verbs != device->verbs) // NOLINT: listener_open() set it
		return rbx_verbs_explain(error, -EXDEV,
			"%s is an address of %s, but %s is open; open that "
			"device, or give an address of this one", text,
			id->verbs->device->name, device->verbs->device->name);
	if (rdma_listen(id, WAITING_MAX))
		return explain_bind(listener, text, -errno, error);
	rbx_verbs_address_format(rdma_get_local_addr(id),
				 listener->listener.address);
	return 0;
}

static int listener_open(struct rbx_verbs_device *device,
			 struct verbs_listener *listener)
{
	listener->listener.device = &device->device;
	listener->target.handle = listener_handle;
	listener->listener.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (listener->listener.event_fd < 0)
		return -errno;
	if (rdma_create_id(device->channel, &listener->id, &listener->target,
			   RDMA_PS_TCP)) {
		int err = -errno;

		close(listener->listener.event_fd);
		return err;
	}
	pthread_mutex_init(&listener->lock, NULL);
	return 0;
}

int rbx_verbs_listen(struct rbx_device *device, const char *text,
		     struct rbx_listener **created, char *error)
{
	struct verbs_listener *listener;
	struct sockaddr_storage address;
	int err = rbx_verbs_address_parse(text, true, &address, error);

	if (err)
		return err;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	err = listener_open(rbx_verbs_device(device), listener);
	if (err) {
		free(listener);
		return rbx_verbs_explain(error, err,
			"cannot listen on %s: %s", text, strerror(-err));
	}
	err = listener_bind(listener, text, &address, error);
	if (err) {
		rbx_verbs_close_listener(&listener->listener);
		return err;
	}
	*created = &listener->listener;
	return 0;
}

int rbx_verbs_get_request(struct rbx_listener *listener,
			  struct rbx_conn_request **request)
{
	struct rbx_verbs_request *taken =
		ring_take((struct verbs_listener *)listener);

	if (!taken)
		return -EAGAIN;
	*request = &taken->request;
	return 0;
}

void rbx_verbs_close_listener(struct rbx_listener *rbx_listener)
{
	struct verbs_listener *listener = (struct verbs_listener *)rbx_listener;
	struct rbx_verbs_request *request;

	/* Waits for the connection thread: after that the ring does not grow. */
	rdma_destroy_id(listener->id);
	while ((request = ring_take(listener)))
		rbx_verbs_reject(&request->request, NULL, 0);
	close(listener->listener.event_fd);
	pthread_mutex_destroy(&listener->lock);
	free(listener);
}
