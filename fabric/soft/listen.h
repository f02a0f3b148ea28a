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

/* All listeners of a device; the service thread looks after them. */
struct soft_listeners {
	int epoll_fd; /* listening sockets, and half-open connections */
	/* Half-open connections with a deadline; read without the lock as a hint. */
	atomic_uint waiting_count;
	/* Guards what follows, listeners and half-open connections. */
	pthread_mutex_t lock;
	struct soft_half_open *first_waiting; /* oldest first */
	struct soft_half_open *last_waiting;
	int spare_fd; /* in place of which one that cannot be let in is sent away */
	bool rests; /* nobody looks until the next tick; of the service thread */
};

int soft_listeners_open(struct soft_listeners *listeners);
void soft_listeners_close(struct soft_listeners *listeners);
/* Something came to a socket. */
void soft_listeners_serve(struct soft_device *device);
/* Sends away who has not said hello in time. */
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
