/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listeners.c - accepts connections and reads their hello.
 *
 * The service thread takes each new socket and waits for its hello, without blocking, beside
 * its other work. A half-open connection with a complete and valid hello becomes a request of
 * its listener and makes event_fd readable.
 *
 * An untrusted client may connect and send nothing, send garbage, or open many connections. A
 * connection that sends something invalid is closed without an answer; one of another version
 * is told ours. One that uses TLS if this device does not, or the reverse, or that has another
 * secret, is refused here, and handed on for the owner to tell (rbx_conn_request). Half-open
 * connections are bounded in time and in number, in all and of each source. If a new one finds no
 * place, it takes that of the oldest of its own source, or of the source that has most. But if
 * that one is so young that its hello may be on its way, the new one is closed, and may try
 * again. So a source that makes many connections is in its own way, and in nobody else's. The
 * owner is told how many were closed (rbx_listener).
 * Requests that are not taken are bounded, too. Further connections are closed, and so are
 * those for which this process has no descriptor left. If the descriptor that is kept for
 * that was taken by another thread, or the kernel has no memory for a socket, the listeners
 * rest until the next tick.
 *
 * A half-open connection is on one list at a time, the listeners' waiting list or its
 * listener's ready list, under listeners.lock. A request that was taken belongs to the
 * program and is on none.
 */
#include "listeners.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "connect.h"
#include "device.h"
#include "fabric/loopback.h"
#include "fabric/source.h"

struct soft_listeners *soft_listeners_of(struct soft_listener *listener)
{
	return &soft_device_of(listener->listener.device)->listeners;
}

static void spare_open(struct soft_listeners *listeners)
{
	listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int soft_listeners_open(struct soft_listeners *listeners)
{
	*listeners = (struct soft_listeners){
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	if (listeners->epoll_fd < 0)
		return -errno;
	spare_open(listeners);
	pthread_mutex_init(&listeners->lock, NULL);
	return 0;
}

void soft_listeners_close(struct soft_listeners *listeners)
{
	assert(!listeners->first_waiting);
	if (listeners->spare_fd >= 0)
		close(listeners->spare_fd);
	close(listeners->epoll_fd);
	pthread_mutex_destroy(&listeners->lock);
}

int soft_socket_watch(struct soft_listeners *listeners,
		      struct watched_socket *watched)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = watched };

	return epoll_ctl(listeners->epoll_fd, EPOLL_CTL_ADD, watched->fd,
			 &event) ? -errno : 0;
}

void soft_socket_close(struct soft_listeners *listeners,
		       struct watched_socket *watched)
{
	if (watched->fd < 0)
		return;
	epoll_ctl(listeners->epoll_fd, EPOLL_CTL_DEL, watched->fd, NULL);
	shutdown(watched->fd, SHUT_RDWR);
	close(watched->fd);
}

void soft_half_open_free(struct soft_half_open *half_open)
{
	soft_tls_free(half_open->tls);
	if (half_open->socket.fd >= 0)
		close(half_open->socket.fd);
	free(half_open);
}

void soft_half_open_stop_waiting(struct soft_listeners *listeners,
				 struct soft_half_open *half_open)
{
	struct soft_half_open **link = &listeners->first_waiting,
			      *before = NULL;

	for (; *link != half_open; link = &before->next)
		before = *link;
	*link = half_open->next;
	if (listeners->last_waiting == half_open)
		listeners->last_waiting = before;
	atomic_fetch_sub(&listeners->waiting_count, 1);
	epoll_ctl(listeners->epoll_fd, EPOLL_CTL_DEL, half_open->socket.fd,
		  NULL);
}

/* How many half-open connections are of this source. */
static uint32_t of_source_count(const struct soft_listeners *listeners, const char *name)
{
	const struct soft_half_open *one;
	uint32_t count = 0;

	for (one = listeners->first_waiting; one; one = one->next)
		count += rbx_is_same_source(one->request.peer_name, name);
	return count;
}

static struct soft_half_open *oldest_of_source(const struct soft_listeners *listeners,
					       const char *name)
{
	struct soft_half_open *one = listeners->first_waiting;

	while (!rbx_is_same_source(one->request.peer_name, name))
		one = one->next;
	return one;
}

/* That of the source that has most. */
static struct soft_half_open *oldest_of_most(const struct soft_listeners *listeners)
{
	struct soft_half_open *one, *of_most = NULL;
	uint32_t count, most_count = 0;

	for (one = listeners->first_waiting; one; one = one->next) {
		count = of_source_count(listeners, one->request.peer_name);
		if (count <= most_count)
			continue;
		most_count = count;
		of_most = one;
	}
	return of_most;
}

/* Makes room for a new one; false: there is none now. One that came just before is left alone, so
 * that it can say hello; but not if its source would still have more than that of the new one. */
static bool waiting_fits_locked(struct soft_listeners *listeners,
				const struct soft_half_open *half_open)
{
	const char *name = half_open->request.peer_name;
	struct soft_half_open *victim = NULL;

	if (of_source_count(listeners, name) >= SOFT_HALF_OPEN_OF_SOURCE_MAX)
		victim = oldest_of_source(listeners, name);
	else if (atomic_load(&listeners->waiting_count) >= SOFT_HALF_OPEN_MAX)
		victim = oldest_of_most(listeners);
	if (!victim)
		return true;
	atomic_fetch_add_explicit(&half_open->socket.listener->listener.crowded_out_count, 1,
				  memory_order_relaxed);
	if (half_open->arrived_ns - victim->arrived_ns <
		    SOFT_HALF_OPEN_UNDISTURBED_MS * 1000000ull &&
	    of_source_count(listeners, victim->request.peer_name) <=
		    of_source_count(listeners, name) + 1)
		return false;
	soft_half_open_stop_waiting(listeners, victim);
	soft_half_open_free(victim);
	return true;
}

static void waiting_add_locked(struct soft_listeners *listeners,
			       struct soft_half_open *half_open)
{
	half_open->next = NULL;
	if (listeners->first_waiting)
		listeners->last_waiting->next = half_open;
	else
		listeners->first_waiting = half_open;
	listeners->last_waiting = half_open;
	atomic_fetch_add(&listeners->waiting_count, 1);
}

static void half_open_name(struct soft_half_open *half_open,
			   const struct sockaddr_storage *from)
{
	char *name = half_open->request.peer_name;
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	if (half_open->socket.local) {
		getsockopt(half_open->socket.fd, SOL_SOCKET, SO_PEERCRED, &peer,
			   &length);
		snprintf(name, RBX_NAME_MAX, "process %d (same host)",
			 (int)peer.pid);
		half_open->request.same_host = true;
		return;
	}
	soft_address_name((const struct sockaddr *)from, name);
	half_open->request.same_host =
		rbx_sockaddr_is_loopback((const struct sockaddr *)from);
}

/* For the service thread: stops or resumes watching the listening sockets. */
static void listeners_rest(struct soft_device *device, bool rest)
{
	struct epoll_event event = {
		.events = rest ? 0 : EPOLLIN,
		.data.u64 = SOFT_TOKEN_LISTENERS,
	};

	device->listeners.rests = rest;
	epoll_ctl(device->served.epoll_fd, EPOLL_CTL_MOD,
		  device->listeners.epoll_fd, &event);
}

static bool no_file_is_left(int err)
{
	return err == EMFILE || err == ENFILE;
}

/* The connection is still there for the next attempt. With other errors it has gone. */
static bool no_room_is_left(int err)
{
	return no_file_is_left(err) || err == ENOMEM || err == ENOBUFS;
}

/* There is no descriptor for this connection. The socket would stay readable and keep the
 * service thread busy, so the descriptor that is kept for this is used. */
static void accept_and_close(struct soft_device *device,
			     const struct watched_socket *watched)
{
	struct soft_listeners *listeners = &device->listeners;
	int fd;

	if (listeners->spare_fd >= 0)
		close(listeners->spare_fd);
	fd = accept4(watched->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 && no_room_is_left(errno))
		listeners_rest(device, true);
	if (fd >= 0)
		close(fd);
	spare_open(listeners);
}

static void half_open_accept(struct watched_socket *watched)
{
	struct soft_listener *listener = watched->listener;
	struct soft_device *device = soft_device_of(listener->listener.device);
	struct soft_listeners *listeners = &device->listeners;
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	struct soft_half_open *half_open;
	int fd;

	fd = accept4(watched->fd, (struct sockaddr *)&from, &length,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (no_file_is_left(errno))
			accept_and_close(device, watched);
		else if (no_room_is_left(errno))
			listeners_rest(device, true);
		return;
	}
	half_open = calloc(1, sizeof(*half_open));
	if (!half_open || listener->ready_count >= SOFT_REQUESTS_MAX ||
	    (watched->local && !soft_socket_is_our_users(fd))) {
		close(fd);
		free(half_open);
		return;
	}
	soft_socket_tune(fd);
	half_open->socket = (struct watched_socket){ listener, half_open, fd,
						     watched->local };
	half_open->request.listener = &listener->listener;
	half_open->wants_tls = !watched->local && soft_wants_tls(device, fd, true);
	half_open->arrived_ns = soft_now_ns();
	half_open_name(half_open, &from);
	if (!waiting_fits_locked(listeners, half_open)) {
		soft_half_open_free(half_open);
		return;
	}
	waiting_add_locked(listeners, half_open);
	if (soft_socket_watch(listeners, &half_open->socket)) {
		soft_half_open_stop_waiting(listeners, half_open);
		soft_half_open_free(half_open);
	}
}

void soft_half_open_reject(struct soft_half_open *half_open,
			   const void *private_data, size_t private_bytes)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_REJECT,
		.private_bytes = (uint8_t)private_bytes,
	};

	if (private_bytes)
		memcpy(hello.private_data, private_data, private_bytes);
	soft_hello_send(half_open->socket.fd, half_open->tls, &hello);
}

/* The hello came, or did not come, under TLS, and the device wants it otherwise. */
static void half_open_misfits(struct soft_half_open *half_open)
{
	const struct soft_hello refusal = {
		.version = SOFT_VERSION,
		.type = SOFT_REJECT,
		.wants_tls = half_open->wants_tls,
		.wants_no_tls = !half_open->wants_tls,
	};
	uint8_t rest[1024];
	int i;

	half_open->request.unfit =
		half_open->wants_tls ?
			"it does not use TLS: it needs integrity=tls, and the secret" :
			"it uses TLS, and this side does not: integrity=tls is needed here, or "
			"integrity=mac there";
	/* Closed with bytes unread, it would be reset, and the refusal be lost. A peer may send
	 * without an end: it gets no refusal. */
	for (i = 0; i < SOFT_UNFIT_READS_MAX; i++)
		if (recv(half_open->socket.fd, rest, sizeof(rest), MSG_DONTWAIT) != sizeof(rest))
			break;
	soft_hello_send(half_open->socket.fd, NULL, &refusal);
}

/* The first bytes of TLS: a record with a message of its handshake, in any version. */
static bool is_tls(const uint8_t *bytes)
{
	return bytes[0] == SOFT_TLS_FIRST_BYTE && bytes[1] == 3;
}

/* Whether the hello of a half-open connection makes a request, though an unfit one. */
static bool hello_take(struct soft_half_open *half_open)
{
	struct rbx_conn_request *request = &half_open->request;
	struct soft_hello hello;

	if (!half_open->wants_tls && is_tls(half_open->hello)) {
		half_open_misfits(half_open);
		return true;
	}
	if (soft_hello_decode(half_open->hello, &hello))
		return false;
	if (hello.version != SOFT_VERSION) {
		soft_half_open_reject(half_open, NULL, 0);
		return false;
	}
	if (hello.type != SOFT_HELLO)
		return false;
	if (half_open->wants_tls && !half_open->tls) {
		half_open_misfits(half_open);
		return true;
	}
	half_open->send_depth_count = hello.send_depth_count;
	half_open->shares_receives = hello.shares_receives;
	request->private_data_bytes = hello.private_bytes;
	memcpy(request->private_data, hello.private_data,
	       sizeof(request->private_data));
	return true;
}

/* Begins with TLS if the peer does: 0, -EAGAIN or -errno. What it says in clear text is read
 * as a hello, for an answer. */
static int tls_begin(struct soft_half_open *half_open)
{
	struct soft_device *device =
		soft_device_of(half_open->request.listener->device);
	uint8_t first;
	ssize_t got = recv(half_open->socket.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got <= 0)
		return got ? -errno : -ECONNRESET;
	if (first != SOFT_TLS_FIRST_BYTE)
		return 0;
	half_open->tls = soft_tls_open(device->tls_keys, half_open->socket.fd, true);
	return half_open->tls ? 0 : -ENOMEM;
}

/* A step towards its hello. */
static int half_open_receive(struct soft_half_open *half_open)
{
	int err = 0;

	if (half_open->wants_tls && !half_open->tls && !half_open->hello_bytes)
		err = tls_begin(half_open);
	if (!err && half_open->tls && !half_open->is_secure) {
		err = soft_tls_handshake(half_open->tls);
		half_open->is_secure = !err;
		if (err == -EACCES)
			half_open->request.unfit = "it does not have our secret (TLS)";
	}
	return err ? err : soft_hello_receive(half_open->socket.fd, half_open->tls,
					      half_open->hello, &half_open->hello_bytes);
}

static void half_open_hear(struct soft_half_open *half_open)
{
	struct soft_listener *listener = half_open->socket.listener;
	struct soft_listeners *listeners = soft_listeners_of(listener);
	int err;

	err = half_open_receive(half_open);
	if (err == -EAGAIN)
		return;
	soft_half_open_stop_waiting(listeners, half_open);
	if (listener->ready_count >= SOFT_REQUESTS_MAX ||
	    (!half_open->request.unfit && (err || !hello_take(half_open)))) {
		soft_half_open_free(half_open);
		return;
	}
	half_open->next = NULL;
	if (listener->first_ready)
		listener->last_ready->next = half_open;
	else
		listener->first_ready = half_open;
	listener->last_ready = half_open;
	listener->ready_count++;
	eventfd_write(listener->listener.event_fd, 1);
}

void soft_listeners_serve(struct soft_device *device)
{
	struct soft_listeners *listeners = &device->listeners;
	struct epoll_event event;
	struct watched_socket *watched;
	int i;

	/*
	 * One event at a time, under the lock: serving one connection may end another one,
	 * whose event must not have been fetched then.
	 */
	pthread_mutex_lock(&listeners->lock);
	for (i = 0; i < SOFT_EVENTS_MAX && !listeners->rests; i++) {
		if (epoll_wait(listeners->epoll_fd, &event, 1, 0) != 1)
			break;
		watched = event.data.ptr;
		if (watched->half_open)
			half_open_hear(watched->half_open);
		else
			half_open_accept(watched);
	}
	pthread_mutex_unlock(&listeners->lock);
}

void soft_listeners_check_deadlines(struct soft_device *device, uint64_t now_ns)
{
	struct soft_listeners *listeners = &device->listeners;
	struct soft_half_open *oldest;

	pthread_mutex_lock(&listeners->lock);
	if (listeners->rests) {
		listeners_rest(device, false);
		if (listeners->spare_fd < 0)
			spare_open(listeners);
	}
	while ((oldest = listeners->first_waiting) &&
	       now_ns >= oldest->arrived_ns + SOFT_HANDSHAKE_MS * 1000000ull) {
		soft_half_open_stop_waiting(listeners, oldest);
		soft_half_open_free(oldest);
	}
	pthread_mutex_unlock(&listeners->lock);
}
