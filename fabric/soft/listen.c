/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.c - lets visitors in: accepts sockets, hears their hello, and hands
 * them to the program as requests.
 *
 * The service thread takes each new socket and waits for its hello, without
 * blocking, beside its other work. A visitor whose hello is complete and right
 * becomes a request and makes the listener's event_fd readable; get_request()
 * only takes from that list, accept() and reject() answer.
 *
 * Strangers may come to a door, say nothing, say garbage, or come in crowds.
 * A visitor that says something wrong is closed without a word, one of another
 * version is told ours. Those who have not said their hello are bounded in
 * number, the oldest making room for the newest, and in time. Requests that
 * nobody takes are bounded too; further visitors are turned away.
 *
 * A visitor is on one list at a time, its listener's ready list or the doors'
 * waiting list, under doors.lock; a request that was taken belongs to the
 * program and is on none.
 */
#include "listen.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "address.h"
#include "connect.h"
#include "device.h"
#include "queue_pair.h"

/* What the doors' epoll instance points at: a listening socket, a visitor. */
struct door {
	struct soft_listener *listener;
	struct soft_visitor *visitor; /* NULL: a listening socket */
	int fd;
	bool local; /* a local socket */
};

struct soft_visitor {
	struct rbx_conn_request request;
	struct door door;
	struct soft_visitor *next;
	uint64_t deadline_ns;
	uint8_t hello[SOFT_HELLO_BYTES];
	size_t hello_bytes; /* so far */
	int key_words_fd;
	uint32_t send_depth_count;
};

struct soft_listener {
	struct rbx_listener listener;
	struct door tcp, local; /* fd -1: no such door */
	struct soft_visitor *first_ready; /* oldest first */
	struct soft_visitor *last_ready;
	uint32_t ready_count;
};

static struct soft_doors *doors_of(struct soft_listener *listener)
{
	return &soft_device_of(listener->listener.device)->doors;
}

int soft_doors_open(struct soft_doors *doors)
{
	*doors = (struct soft_doors){
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	if (doors->epoll_fd < 0)
		return -errno;
	pthread_mutex_init(&doors->lock, NULL);
	return 0;
}

void soft_doors_close(struct soft_doors *doors)
{
	assert(!doors->first_waiting);
	close(doors->epoll_fd);
	pthread_mutex_destroy(&doors->lock);
}

static int door_watch(struct soft_doors *doors, struct door *door)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = door };

	return epoll_ctl(doors->epoll_fd, EPOLL_CTL_ADD, door->fd, &event) ?
		-errno : 0;
}

static void visitor_free(struct soft_visitor *visitor)
{
	if (visitor->key_words_fd >= 0)
		close(visitor->key_words_fd);
	if (visitor->door.fd >= 0)
		close(visitor->door.fd);
	free(visitor);
}

static void waiting_remove_locked(struct soft_doors *doors,
				  struct soft_visitor *visitor)
{
	struct soft_visitor **link = &doors->first_waiting, *before = NULL;

	for (; *link != visitor; link = &before->next)
		before = *link;
	*link = visitor->next;
	if (doors->last_waiting == visitor)
		doors->last_waiting = before;
	atomic_fetch_sub(&doors->waiting_count, 1);
	epoll_ctl(doors->epoll_fd, EPOLL_CTL_DEL, visitor->door.fd, NULL);
}

static void waiting_add_locked(struct soft_doors *doors,
			       struct soft_visitor *visitor)
{
	struct soft_visitor *oldest = doors->first_waiting;

	if (atomic_load(&doors->waiting_count) == SOFT_HALF_OPEN_MAX) {
		waiting_remove_locked(doors, oldest);
		visitor_free(oldest);
	}
	visitor->next = NULL;
	if (doors->first_waiting)
		doors->last_waiting->next = visitor;
	else
		doors->first_waiting = visitor;
	doors->last_waiting = visitor;
	atomic_fetch_add(&doors->waiting_count, 1);
}

static void visitor_name(struct soft_visitor *visitor,
			 const struct sockaddr_storage *from)
{
	char *name = visitor->request.peer_name;
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	if (visitor->door.local) {
		getsockopt(visitor->door.fd, SOL_SOCKET, SO_PEERCRED, &peer,
			   &length);
		snprintf(name, RBX_NAME_MAX, "process %d (same host)",
			 (int)peer.pid);
		visitor->request.same_host = true;
		return;
	}
	soft_address_name((const struct sockaddr *)from, name);
	visitor->request.same_host =
		soft_address_is_loopback((const struct sockaddr *)from);
}

static void visitor_come(struct door *door)
{
	struct soft_listener *listener = door->listener;
	struct soft_doors *doors = doors_of(listener);
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	struct soft_visitor *visitor;
	int fd;

	fd = accept4(door->fd, (struct sockaddr *)&from, &length,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	visitor = calloc(1, sizeof(*visitor));
	if (!visitor || listener->ready_count >= SOFT_REQUESTS_MAX ||
	    (door->local && !soft_socket_is_our_users(fd))) {
		close(fd);
		free(visitor);
		return;
	}
	soft_socket_tune(fd);
	visitor->door = (struct door){ listener, visitor, fd, door->local };
	visitor->key_words_fd = -1;
	visitor->request.listener = &listener->listener;
	visitor->deadline_ns = soft_now_ns() + SOFT_HANDSHAKE_MS * 1000000ull;
	visitor_name(visitor, &from);
	waiting_add_locked(doors, visitor);
	if (door_watch(doors, &visitor->door)) {
		waiting_remove_locked(doors, visitor);
		visitor_free(visitor);
	}
}

static void hello_answer(struct soft_visitor *visitor, uint8_t type,
			 const void *private_data, size_t private_bytes)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = type,
		.private_bytes = (uint8_t)private_bytes,
	};

	if (private_bytes)
		memcpy(hello.private_data, private_data, private_bytes);
	soft_hello_send(visitor->door.fd, &hello, -1);
}

/* Whether the hello of a visitor makes a request. */
static bool hello_take(struct soft_visitor *visitor)
{
	struct rbx_conn_request *request = &visitor->request;
	struct soft_hello hello;

	if (soft_hello_decode(visitor->hello, &hello))
		return false;
	if (hello.version != SOFT_VERSION) {
		hello_answer(visitor, SOFT_REJECT, NULL, 0);
		return false;
	}
	if (hello.type != SOFT_HELLO ||
	    (visitor->door.local && visitor->key_words_fd < 0))
		return false;
	visitor->send_depth_count = hello.send_depth_count;
	request->private_data_bytes = hello.private_bytes;
	memcpy(request->private_data, hello.private_data,
	       sizeof(request->private_data));
	return true;
}

static void visitor_speak(struct soft_visitor *visitor)
{
	struct soft_listener *listener = visitor->door.listener;
	struct soft_doors *doors = doors_of(listener);
	int rc;

	rc = soft_hello_receive(visitor->door.fd, visitor->hello,
				&visitor->hello_bytes, &visitor->key_words_fd);
	if (rc == -EAGAIN)
		return;
	waiting_remove_locked(doors, visitor);
	if (rc || listener->ready_count >= SOFT_REQUESTS_MAX ||
	    !hello_take(visitor)) {
		visitor_free(visitor);
		return;
	}
	visitor->next = NULL;
	if (listener->first_ready)
		listener->last_ready->next = visitor;
	else
		listener->first_ready = visitor;
	listener->last_ready = visitor;
	listener->ready_count++;
	eventfd_write(listener->listener.event_fd, 1);
}

void soft_doors_serve(struct soft_device *device)
{
	struct soft_doors *doors = &device->doors;
	struct epoll_event event;
	struct door *door;
	int i;

	/*
	 * One event at a time, under the lock: serving one visitor may end
	 * another, whose event must not be in our hands then.
	 */
	pthread_mutex_lock(&doors->lock);
	for (i = 0; i < SOFT_EVENTS_MAX; i++) {
		if (epoll_wait(doors->epoll_fd, &event, 1, 0) != 1)
			break;
		door = event.data.ptr;
		if (door->visitor)
			visitor_speak(door->visitor);
		else
			visitor_come(door);
	}
	pthread_mutex_unlock(&doors->lock);
}

void soft_doors_check_deadlines(struct soft_device *device, uint64_t now_ns)
{
	struct soft_doors *doors = &device->doors;
	struct soft_visitor *oldest;

	pthread_mutex_lock(&doors->lock);
	while ((oldest = doors->first_waiting) &&
	       now_ns >= oldest->deadline_ns) {
		waiting_remove_locked(doors, oldest);
		visitor_free(oldest);
	}
	pthread_mutex_unlock(&doors->lock);
}

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

/* Beside it, if its name is free; peers go by TCP if it is not. */
static void local_door_open(struct soft_listener *listener,
			    const struct sockaddr *bound)
{
	struct sockaddr_un local;
	socklen_t length;

	length = soft_address_local(bound, soft_address_is_any(bound), &local);
	listener->local.fd = socket_listen((struct sockaddr *)&local, length);
}

static int listener_watch(struct soft_listener *listener)
{
	struct soft_doors *doors = doors_of(listener);
	int rc;

	rc = door_watch(doors, &listener->tcp);
	if (!rc && listener->local.fd >= 0)
		rc = door_watch(doors, &listener->local);
	return rc;
}

static void listener_free(struct soft_listener *listener)
{
	if (listener->tcp.fd >= 0)
		close(listener->tcp.fd);
	if (listener->local.fd >= 0)
		close(listener->local.fd);
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
		goto out_free;
	if (device->same_host_mapping)
		local_door_open(listener, (struct sockaddr *)&bound);
	rc = listener->listener.event_fd < 0 ? -EMFILE :
					       listener_watch(listener);
	if (rc) {
		soft_explain(error, "cannot listen on %.100s: %s; raise the "
			     "limit of open files", address, strerror(-rc));
		goto out_free;
	}
	*out = &listener->listener;
	return 0;

out_free:
	listener_free(listener);
	return rc;
}

void soft_close_listener(struct rbx_listener *base)
{
	struct soft_listener *listener = (struct soft_listener *)base;
	struct soft_doors *doors = doors_of(listener);
	struct soft_visitor *visitor, *next;

	pthread_mutex_lock(&doors->lock);
	for (visitor = doors->first_waiting; visitor; visitor = next) {
		next = visitor->next;
		if (visitor->door.listener != listener)
			continue;
		waiting_remove_locked(doors, visitor);
		visitor_free(visitor);
	}
	for (visitor = listener->first_ready; visitor; visitor = next) {
		next = visitor->next;
		visitor_free(visitor);
	}
	/* Under the lock: no event of these sockets is in anybody's hands. */
	listener_free(listener);
	pthread_mutex_unlock(&doors->lock);
}

int soft_get_request(struct rbx_listener *base,
		     struct rbx_conn_request **request)
{
	struct soft_listener *listener = (struct soft_listener *)base;
	struct soft_doors *doors = doors_of(listener);
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
		.mapped = visitor->door.local,
		.key_words_fd = visitor->key_words_fd,
	};
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_ACCEPT,
		.private_bytes = (uint8_t)private_data_bytes,
		.send_depth_count = init->send_depth_count,
	};
	struct soft_qp *qp;
	int rc;

	rc = soft_qp_init_check(init, error);
	if (!rc && private_data_bytes > RBX_PRIVATE_DATA_MAX)
		rc = -EINVAL;
	if (rc)
		goto out_free;
	memcpy(peer.name, request->peer_name, sizeof(peer.name));
	if (private_data_bytes)
		memcpy(hello.private_data, private_data, private_data_bytes);
	/* Before the qp is made: the answer must be the first thing sent. */
	rc = soft_hello_send(peer.fd, &hello, peer.mapped ?
			     device->keys.words_fd : -1);
	if (rc) {
		soft_explain(error, "cannot accept %s: %s", peer.name,
			     strerror(-rc));
		goto out_free;
	}
	rc = soft_qp_create(device, init, &peer, &qp, error);
	if (rc)
		goto out_free;
	visitor->door.fd = -1;
	visitor->key_words_fd = -1;
	*out = &qp->qp;
out_free:
	visitor_free(visitor);
	return rc;
}

void soft_reject(struct rbx_conn_request *request, const void *private_data,
		 size_t private_data_bytes)
{
	struct soft_visitor *visitor = (struct soft_visitor *)request;

	if (private_data_bytes > RBX_PRIVATE_DATA_MAX)
		private_data_bytes = RBX_PRIVATE_DATA_MAX;
	hello_answer(visitor, SOFT_REJECT, private_data, private_data_bytes);
	visitor_free(visitor);
}
