/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.c - opens listeners, and answers the requests that come to them.
 *
 * A listener has a TCP door and, if the device maps memory, a local one beside
 * it. doors.c lets visitors in and puts those who said a right hello on the
 * ready list; get_request() takes from it, accept() and reject() answer.
 * An acceptance is sent before the qp is made, since it must be the first
 * thing that the peer hears.
 */
#include "doors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "address.h"
#include "connect.h"
#include "device.h"
#include "queue_pair.h"

/* A listening socket, or -errno. */
static int socket_listen(const struct sockaddr *address, socklen_t length)
{
	int fd, on = 1, rc;

	fd = socket(address->sa_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, address, length) && !listen(fd, SOFT_HALF_OPEN_MAX))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The TCP door and its address as bound. */
static int tcp_door_open(struct soft_listener *listener, const char *address,
			 struct sockaddr_storage *bound, char *error)
{
	struct addrinfo *list, *info;
	socklen_t length = sizeof(*bound);
	int rc;

	rc = soft_address_resolve(address, true, &list, error);
	if (rc)
		return rc;
	for (info = list; info; info = info->ai_next) {
		rc = socket_listen(info->ai_addr, info->ai_addrlen);
		if (rc >= 0)
			break;
	}
	freeaddrinfo(list);
	if (rc < 0) {
		soft_explain(error, "cannot listen on %.100s: %s; choose an "
			     "address of this host and a free port", address,
			     strerror(-rc));
		return rc;
	}
	listener->tcp.fd = rc;
	if (getsockname(rc, (struct sockaddr *)bound, &length))
		return -errno;
	soft_address_name((struct sockaddr *)bound, listener->listener.address);
	return 0;
}

/*
 * Beside it. A name that is taken cannot be an accident, for the port is ours:
 * another process of this host waits for our peers, and would stand between.
 */
static int local_door_open(struct soft_listener *listener,
			   const struct sockaddr *bound, char *error)
{
	struct sockaddr_un local;
	socklen_t length;

	length = soft_address_local(bound, soft_address_is_any(bound), &local);
	listener->local.fd = socket_listen((struct sockaddr *)&local, length);
	if (listener->local.fd != -EADDRINUSE)
		return 0; /* without a local socket peers go by TCP */
	soft_explain(error, "cannot listen on %.100s: another process has taken "
		     "the name of its local socket; end that, or choose "
		     "another port or soft:tcp", listener->listener.address);
	return -EADDRINUSE;
}

static int listener_watch(struct soft_listener *listener)
{
	struct soft_doors *doors = soft_doors_of(listener);
	int rc;

	rc = soft_door_watch(doors, &listener->tcp);
	if (!rc && listener->local.fd >= 0)
		rc = soft_door_watch(doors, &listener->local);
	return rc;
}

static void listener_free_locked(struct soft_listener *listener)
{
	struct soft_doors *doors = soft_doors_of(listener);

	soft_door_close(doors, &listener->tcp);
	soft_door_close(doors, &listener->local);
	if (listener->listener.event_fd >= 0)
		close(listener->listener.event_fd);
	free(listener);
}

int soft_listen(struct rbx_device *base, const char *address,
		struct rbx_listener **out, char *error)
{
	struct soft_device *device = soft_device_of(base);
	struct sockaddr_storage bound = { 0 };
	struct soft_listener *listener;
	int rc;

	listener = calloc(1, sizeof(*listener));
	if (!listener) {
		soft_explain(error, "cannot listen: no memory");
		return -ENOMEM;
	}
	listener->listener.device = base;
	listener->tcp = (struct door){ listener, NULL, -1, false };
	listener->local = (struct door){ listener, NULL, -1, true };
	listener->listener.event_fd =
		eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	rc = tcp_door_open(listener, address, &bound, error);
	if (rc)
		goto out_close;
	if (device->same_host_mapping)
		rc = local_door_open(listener, (struct sockaddr *)&bound,
				     error);
	if (rc)
		goto out_close;
	rc = listener->listener.event_fd < 0 ? -EMFILE :
					       listener_watch(listener);
	if (rc) {
		soft_explain(error, "cannot listen on %.100s: %s; raise the "
			     "limit of open files", address, strerror(-rc));
		goto out_close;
	}
	*out = &listener->listener;
	return 0;

out_close: /* visitors may have come to the first door already */
	soft_close_listener(&listener->listener);
	return rc;
}

void soft_close_listener(struct rbx_listener *base)
{
	struct soft_listener *listener = (struct soft_listener *)base;
	struct soft_doors *doors = soft_doors_of(listener);
	struct soft_visitor *visitor, *next;

	pthread_mutex_lock(&doors->lock);
	for (visitor = doors->first_waiting; visitor; visitor = next) {
		next = visitor->next;
		if (visitor->door.listener != listener)
			continue;
		soft_visitor_stop_waiting(doors, visitor);
		soft_visitor_free(visitor);
	}
	for (visitor = listener->first_ready; visitor; visitor = next) {
		next = visitor->next;
		soft_visitor_free(visitor);
	}
	/* Under the lock: no event of these sockets is in anybody's hands. */
	listener_free_locked(listener);
	pthread_mutex_unlock(&doors->lock);
}

int soft_get_request(struct rbx_listener *base,
		     struct rbx_conn_request **request)
{
	struct soft_listener *listener = (struct soft_listener *)base;
	struct soft_doors *doors = soft_doors_of(listener);
	struct soft_visitor *visitor;
	eventfd_t value;

	pthread_mutex_lock(&doors->lock);
	visitor = listener->first_ready;
	if (visitor) {
		listener->first_ready = visitor->next;
		listener->ready_count--;
		eventfd_read(base->event_fd, &value);
	}
	pthread_mutex_unlock(&doors->lock);
	if (!visitor)
		return -EAGAIN;
	*request = &visitor->request;
	return 0;
}

int soft_accept(struct rbx_conn_request *request,
		const struct rbx_qp_init *init, const void *private_data,
		size_t private_data_bytes, struct rbx_qp **out, char *error)
{
	struct soft_visitor *visitor = (struct soft_visitor *)request;
	struct soft_device *device = soft_device_of(request->listener->device);
	struct soft_peer peer = {
		.fd = visitor->door.fd,
		.send_depth_count = visitor->send_depth_count,
		.shares_receives = visitor->shares_receives,
		.mapped = visitor->door.local,
	};
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_ACCEPT,
		.private_bytes = (uint8_t)private_data_bytes,
		.send_depth_count = init->send_depth_count,
		.shares_receives = init->srq,
	};
	struct soft_qp *qp;
	int rc;

	rc = soft_qp_init_check(init, error);
	if (!rc && private_data_bytes > RBX_ACCEPT_DATA_MAX)
		rc = -EINVAL;
	if (rc)
		goto out_free;
	memcpy(peer.name, request->peer_name, sizeof(peer.name));
	if (private_data_bytes)
		memcpy(hello.private_data, private_data, private_data_bytes);
	/* Before the qp is made: the answer must be the first thing sent. */
	rc = soft_hello_send(peer.fd, &hello);
	if (rc) {
		soft_explain(error, "cannot accept %s: %s", peer.name,
			     strerror(-rc));
		goto out_free;
	}
	rc = soft_qp_create(device, init, &peer, &qp, error);
	if (rc)
		goto out_free;
	visitor->door.fd = -1;
	*out = &qp->qp;
out_free:
	soft_visitor_free(visitor);
	return rc;
}

void soft_reject(struct rbx_conn_request *request, const void *private_data,
		 size_t private_data_bytes)
{
	struct soft_visitor *visitor = (struct soft_visitor *)request;

	if (private_data_bytes > RBX_REJECT_DATA_MAX)
		private_data_bytes = RBX_REJECT_DATA_MAX;
	soft_visitor_reject(visitor, private_data, private_data_bytes);
	soft_visitor_free(visitor);
}
