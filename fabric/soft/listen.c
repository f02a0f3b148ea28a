/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.c - opens listeners, and answers the requests that come to them.
 *
 * A listener has a TCP socket and, if the device maps memory, a local one beside it.
 * listeners.c accepts connections and puts those with a valid hello on the ready list.
 * get_request() takes from it, accept() and reject() answer. An acceptance is sent before the
 * qp is made, since it must be the first thing that the peer receives.
 */
#include "listeners.h"

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
	int fd, on = 1, err;

	fd = socket(address->sa_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, address, length) && !listen(fd, SOFT_HALF_OPEN_MAX))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* The TCP socket and its address as bound. */
static int tcp_open(struct soft_listener *listener, const char *address,
		    struct sockaddr_storage *bound, char *error)
{
	struct addrinfo *list, *info;
	socklen_t length = sizeof(*bound);
	int err, fd = -EADDRNOTAVAIL;

	err = soft_address_resolve(address, true, &list, error);
	if (err)
		return err;
	for (info = list; info; info = info->ai_next) {
		fd = socket_listen(info->ai_addr, info->ai_addrlen);
		if (fd >= 0)
			break;
	}
	freeaddrinfo(list);
	if (fd < 0) {
		soft_explain(error, "cannot listen on %.100s: %s; choose an "
			     "address of this host and a free port", address,
			     strerror(-fd));
		return fd;
	}
	listener->tcp.fd = fd;
	if (getsockname(fd, (struct sockaddr *)bound, &length))
		return -errno;
	soft_address_name((struct sockaddr *)bound, listener->listener.address);
	return 0;
}

/*
 * The local socket beside it. A name that is taken cannot be an accident, because the port is
 * ours: another process of this host waits for our peers, and would intercept them.
 */
static int local_open(struct soft_listener *listener,
		      const struct sockaddr *bound, char *error)
{
	struct sockaddr_un local;
	socklen_t length;

	length = soft_address_local(bound, soft_address_is_any(bound), &local);
	listener->local.fd = socket_listen((struct sockaddr *)&local, length);
	if (listener->local.fd != -EADDRINUSE)
		return 0; /* without a local socket peers use TCP */
	soft_explain(error, "cannot listen on %.100s: another process has taken "
		     "the name of its local socket; end that, or choose "
		     "another port or soft:tcp", listener->listener.address);
	return -EADDRINUSE;
}

static int listener_watch(struct soft_listener *listener)
{
	struct soft_listeners *listeners = soft_listeners_of(listener);
	int err;

	err = soft_socket_watch(listeners, &listener->tcp);
	if (!err && listener->local.fd >= 0)
		err = soft_socket_watch(listeners, &listener->local);
	return err;
}

static void listener_free_locked(struct soft_listener *listener)
{
	struct soft_listeners *listeners = soft_listeners_of(listener);

	soft_socket_close(listeners, &listener->tcp);
	soft_socket_close(listeners, &listener->local);
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
	int err;

	listener = calloc(1, sizeof(*listener));
	if (!listener) {
		soft_explain(error, "cannot listen: no memory");
		return -ENOMEM;
	}
	listener->listener.device = base;
	listener->tcp = (struct watched_socket){ listener, NULL, -1, false };
	listener->local = (struct watched_socket){ listener, NULL, -1, true };
	listener->listener.event_fd =
		eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	err = tcp_open(listener, address, &bound, error);
	if (err)
		goto out_close;
	if (device->same_host_mapping)
		err = local_open(listener, (struct sockaddr *)&bound, error);
	if (err)
		goto out_close;
	err = listener->listener.event_fd < 0 ? -EMFILE :
						listener_watch(listener);
	if (err) {
		soft_explain(error, "cannot listen on %.100s: %s; raise the "
			     "limit of open files", address, strerror(-err));
		goto out_close;
	}
	*out = &listener->listener;
	return 0;

out_close: /* the first socket may have connections already */
	soft_close_listener(&listener->listener);
	return err;
}

void soft_close_listener(struct rbx_listener *base)
{
	struct soft_listener *listener = (struct soft_listener *)base;
	struct soft_listeners *listeners = soft_listeners_of(listener);
	struct soft_half_open *half_open, *next;

	pthread_mutex_lock(&listeners->lock);
	for (half_open = listeners->first_waiting; half_open;
	     half_open = next) {
		next = half_open->next;
		if (half_open->socket.listener != listener)
			continue;
		soft_half_open_stop_waiting(listeners, half_open);
		soft_half_open_free(half_open);
	}
	for (half_open = listener->first_ready; half_open; half_open = next) {
		next = half_open->next;
		soft_half_open_free(half_open);
	}
	/* Under the lock: no thread is handling an event of these sockets. */
	listener_free_locked(listener);
	pthread_mutex_unlock(&listeners->lock);
}

int soft_get_request(struct rbx_listener *base,
		     struct rbx_conn_request **request)
{
	struct soft_listener *listener = (struct soft_listener *)base;
	struct soft_listeners *listeners = soft_listeners_of(listener);
	struct soft_half_open *half_open;
	eventfd_t value;

	pthread_mutex_lock(&listeners->lock);
	half_open = listener->first_ready;
	if (half_open) {
		listener->first_ready = half_open->next;
		listener->ready_count--;
		eventfd_read(base->event_fd, &value);
	}
	pthread_mutex_unlock(&listeners->lock);
	if (!half_open)
		return -EAGAIN;
	*request = &half_open->request;
	return 0;
}

int soft_accept(struct rbx_conn_request *request,
		const struct rbx_qp_init *init, const void *private_data,
		size_t private_data_bytes, struct rbx_qp **out, char *error)
{
	struct soft_half_open *half_open = (struct soft_half_open *)request;
	struct soft_device *device = soft_device_of(request->listener->device);
	struct soft_peer peer = {
		.fd = half_open->socket.fd,
		.tls = half_open->tls,
		.send_depth_count = half_open->send_depth_count,
		.shares_receives = half_open->shares_receives,
		.mapped = half_open->socket.local,
	};
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_ACCEPT,
		.private_bytes = (uint8_t)private_data_bytes,
		.send_depth_count = init->send_depth_count,
		.shares_receives = init->srq,
	};
	struct soft_qp *qp;
	int err;

	err = soft_qp_init_check(init, error);
	if (!err && request->unfit) {
		soft_explain(error, "cannot accept %s: %s", request->peer_name, request->unfit);
		err = -EPROTO;
	}
	if (!err && private_data_bytes > RBX_ACCEPT_DATA_MAX)
		err = -EINVAL;
	if (err)
		goto out_free;
	memcpy(peer.name, request->peer_name, sizeof(peer.name));
	if (private_data_bytes)
		memcpy(hello.private_data, private_data, private_data_bytes);
	/* Before the qp is made: the answer must be the first thing sent. */
	err = soft_hello_send(peer.fd, peer.tls, &hello);
	if (err) {
		soft_explain(error, "cannot accept %s: %s", peer.name,
			     strerror(-err));
		goto out_free;
	}
	err = soft_qp_create(device, init, &peer, &qp, error);
	if (err)
		goto out_free;
	half_open->socket.fd = -1;
	half_open->tls = NULL;
	*out = &qp->qp;
out_free:
	soft_half_open_free(half_open);
	return err;
}

void soft_reject(struct rbx_conn_request *request, const void *private_data,
		 size_t private_data_bytes)
{
	struct soft_half_open *half_open = (struct soft_half_open *)request;

	if (private_data_bytes > RBX_REJECT_DATA_MAX)
		private_data_bytes = RBX_REJECT_DATA_MAX;
	if (!request->unfit)
		soft_half_open_reject(half_open, private_data, private_data_bytes);
	soft_half_open_free(half_open);
}
