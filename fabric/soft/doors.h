/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doors.h - what listen.c and doors.c share: listeners and their visitors.
 * doors.lock is held by the caller of all calls but the two of the service
 * thread, which stand in listen.h.
 */
#ifndef SOFT_DOORS_H
#define SOFT_DOORS_H

#include "frame.h"
#include "listen.h"

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
	uint8_t hello[SOFT_HELLO_MAX_BYTES];
	size_t hello_bytes; /* so far */
	uint32_t send_depth_count;
	bool shares_receives;
};

struct soft_listener {
	struct rbx_listener listener;
	struct door tcp, local; /* fd -1: no such door */
	struct soft_visitor *first_ready; /* oldest first */
	struct soft_visitor *last_ready;
	uint32_t ready_count;
};

struct soft_doors *soft_doors_of(struct soft_listener *listener);
int soft_door_watch(struct soft_doors *doors, struct door *door);
/*
 * Closes a listening socket, if there is one. A child of fork() may have it too: then
 * close() alone leaves it listening, and in the epoll instance.
 */
void soft_door_close(struct soft_doors *doors, struct door *door);
/* Takes a visitor that waits off its list. */
void soft_visitor_stop_waiting(struct soft_doors *doors,
			       struct soft_visitor *visitor);
/* Closes what the visitor still owns. Needs no lock once it is on no list. */
void soft_visitor_free(struct soft_visitor *visitor);
/* Answers a hello. */
void soft_visitor_reject(struct soft_visitor *visitor, const void *private_data,
			 size_t private_bytes);

#endif
