/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen.h - listeners, and the connections that they accept.
 */
#ifndef SOFT_LISTEN_H
#define SOFT_LISTEN_H

#include <pthread.h>
#include <stdatomic.h>

#include "../fabric.h"

struct soft_device;
struct soft_listener;
struct soft_half_open;

/* All listeners of a device, served by the service thread. */
struct soft_listeners {
	int epoll_fd; /* listening sockets, and half-open connections */
	/* Half-open connections with a deadline; read without the lock as a hint. */
	atomic_uint waiting_count;
	/* Guards what follows, listeners and half-open connections. */
	pthread_mutex_t lock;
	struct soft_half_open *first_waiting; /* oldest first */
	struct soft_half_open *last_waiting;
	/* is closed to accept, and then close, a connection when no other descriptor is free */
	int spare_fd;
	bool rests; /* not watched until the next tick; used by the service thread */
};

int soft_listeners_open(struct soft_listeners *listeners);
void soft_listeners_close(struct soft_listeners *listeners);
/* A socket has an event. */
void soft_listeners_serve(struct soft_device *device);
/* Closes connections that have not sent their hello in time. */
void soft_listeners_check_deadlines(struct soft_device *device,
				    uint64_t now_ns);

int soft_listen(struct rbx_device *device, const char *address,
		struct rbx_listener **listener, char *error);
void soft_close_listener(struct rbx_listener *listener);
int soft_get_request(struct rbx_listener *listener,
		     struct rbx_conn_request **request);
int soft_accept(struct rbx_conn_request *request,
		const struct rbx_qp_init *init, const void *private_data,
		size_t private_data_bytes, struct rbx_qp **qp, char *error);
void soft_reject(struct rbx_conn_request *request, const void *private_data,
		 size_t private_data_bytes);

#endif
