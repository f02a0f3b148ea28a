/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doors.c - lets visitors in: accepts sockets and hears their hello.
 *
 * The service thread takes each new socket and waits for its hello, without
 * blocking, beside its other work. A visitor whose hello is complete and right
 * becomes a request of its listener and makes event_fd readable.
 *
 * Strangers may come to a door, say nothing, say garbage, or come in crowds.
 * A visitor that says something wrong is closed without a word, one of another
 * version is told ours. Those who have not said their hello are bounded in
 * number, the oldest making room for the newest, and in time. Requests that
 * nobody takes are bounded too; further visitors are turned away, and so are those
 * for whom this process has no descriptor left. If the one that is kept for that is gone
 * too, since another thread was quicker, the doors rest until the next tick.
 *
 * A visitor is on one list at a time, the doors' waiting list or its
 * listener's ready list, under doors.lock; a request that was taken belongs to
 * the program and is on none.
 */
#include "doors.h"

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

struct soft_doors *soft_doors_of(struct soft_listener *listener)
{
	return &soft_device_of(listener->listener.device)->doors;
}

static void spare_open(struct soft_doors *doors)
{
	doors->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int soft_doors_open(struct soft_doors *doors)
{
	*doors = (struct soft_doors){
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	if (doors->epoll_fd < 0)
		return -errno;
	spare_open(doors);
	pthread_mutex_init(&doors->lock, NULL);
	return 0;
}

void soft_doors_close(struct soft_doors *doors)
{
	assert(!doors->first_waiting);
	if (doors->spare_fd >= 0)
		close(doors->spare_fd);
	close(doors->epoll_fd);
	pthread_mutex_destroy(&doors->lock);
}

int soft_door_watch(struct soft_doors *doors, struct door *door)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = door };

	return epoll_ctl(doors->epoll_fd, EPOLL_CTL_ADD, door->fd, &event) ?
		-errno : 0;
}

void soft_door_close(struct soft_doors *doors, struct door *door)
{
	if (door->fd < 0)
		return;
	epoll_ctl(doors->epoll_fd, EPOLL_CTL_DEL, door->fd, NULL);
	shutdown(door->fd, SHUT_RDWR);
	close(door->fd);
}

void soft_visitor_free(struct soft_visitor *visitor)
{
	if (visitor->door.fd >= 0)
		close(visitor->door.fd);
	free(visitor);
}

void soft_visitor_stop_waiting(struct soft_doors *doors,
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
		soft_visitor_stop_waiting(doors, oldest);
		soft_visitor_free(oldest);
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

/* Of the service thread, which is woken by them no more, or again. */
static void doors_rest(struct soft_device *device, bool rest)
{
	struct epoll_event event = {
		.events = rest ? 0 : EPOLLIN,
		.data.u64 = SOFT_TOKEN_DOORS,
	};

	device->doors.rests = rest;
	epoll_ctl(device->served.epoll_fd, EPOLL_CTL_MOD,
		  device->doors.epoll_fd, &event);
}

static bool no_file_is_left(void)
{
	return errno == EMFILE || errno == ENFILE;
}

/* There is no descriptor for this visitor. The socket would stay readable, and the
 * service thread do nothing else; so the one that is kept for this is given up. */
static void visitor_send_away(struct soft_device *device, const struct door *door)
{
	struct soft_doors *doors = &device->doors;
	int fd;

	if (doors->spare_fd >= 0)
		close(doors->spare_fd);
	fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 && no_file_is_left())
		doors_rest(device, true);
	if (fd >= 0)
		close(fd);
	spare_open(doors);
}

static void visitor_come(struct door *door)
{
	struct soft_listener *listener = door->listener;
	struct soft_device *device = soft_device_of(listener->listener.device);
	struct soft_doors *doors = &device->doors;
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	struct soft_visitor *visitor;
	int fd;

	fd = accept4(door->fd, (struct sockaddr *)&from, &length,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (no_file_is_left())
			visitor_send_away(device, door);
		return;
	}
	visitor = calloc(1, sizeof(*visitor));
	if (!visitor || listener->ready_count >= SOFT_REQUESTS_MAX ||
	    (door->local && !soft_socket_is_our_users(fd))) {
		close(fd);
		free(visitor);
		return;
	}
	soft_socket_tune(fd);
	visitor->door = (struct door){ listener, visitor, fd, door->local };
	visitor->request.listener = &listener->listener;
	visitor->deadline_ns = soft_now_ns() + SOFT_HANDSHAKE_MS * 1000000ull;
	visitor_name(visitor, &from);
	waiting_add_locked(doors, visitor);
	if (soft_door_watch(doors, &visitor->door)) {
		soft_visitor_stop_waiting(doors, visitor);
		soft_visitor_free(visitor);
	}
}

void soft_visitor_reject(struct soft_visitor *visitor, const void *private_data,
			 size_t private_bytes)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_REJECT,
		.private_bytes = (uint8_t)private_bytes,
	};

	if (private_bytes)
		memcpy(hello.private_data, private_data, private_bytes);
	soft_hello_send(visitor->door.fd, &hello);
}

/* Whether the hello of a visitor makes a request. */
static bool hello_take(struct soft_visitor *visitor)
{
	struct rbx_conn_request *request = &visitor->request;
	struct soft_hello hello;

	if (soft_hello_decode(visitor->hello, &hello))
		return false;
	if (hello.version != SOFT_VERSION) {
		soft_visitor_reject(visitor, NULL, 0);
		return false;
	}
	if (hello.type != SOFT_HELLO)
		return false;
	visitor->send_depth_count = hello.send_depth_count;
	visitor->shares_receives = hello.shares_receives;
	request->private_data_bytes = hello.private_bytes;
	memcpy(request->private_data, hello.private_data,
	       sizeof(request->private_data));
	return true;
}

static void visitor_speak(struct soft_visitor *visitor)
{
	struct soft_listener *listener = visitor->door.listener;
	struct soft_doors *doors = soft_doors_of(listener);
	int rc;

	rc = soft_hello_receive(visitor->door.fd, visitor->hello,
				&visitor->hello_bytes);
	if (rc == -EAGAIN)
		return;
	soft_visitor_stop_waiting(doors, visitor);
	if (rc || listener->ready_count >= SOFT_REQUESTS_MAX ||
	    !hello_take(visitor)) {
		soft_visitor_free(visitor);
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
	for (i = 0; i < SOFT_EVENTS_MAX && !doors->rests; i++) {
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
	if (doors->rests) {
		doors_rest(device, false);
		if (doors->spare_fd < 0)
			spare_open(doors);
	}
	while ((oldest = doors->first_waiting) &&
	       now_ns >= oldest->deadline_ns) {
		soft_visitor_stop_waiting(doors, oldest);
		soft_visitor_free(oldest);
	}
	pthread_mutex_unlock(&doors->lock);
}
