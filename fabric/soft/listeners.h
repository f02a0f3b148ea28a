/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listeners.h - what listen.c and listeners.c share: listeners and their half-open
 * connections. The caller holds listeners.lock, except for the two functions of the service
 * thread in listen.h.
 */
#ifndef SOFT_LISTENERS_H
#define SOFT_LISTENERS_H

#include "frame.h"
#include "listen.h"
#include "tls.h"

/* What the epoll instance of the listeners points to: a listening socket, or a half-open
 * connection. */
struct watched_socket {
	struct soft_listener *listener;
	struct soft_half_open *half_open; /* NULL: a listening socket */
	int fd;
	bool local; /* a local socket */
};

struct soft_half_open {
	struct rbx_conn_request request;
	struct watched_socket socket;
	struct soft_half_open *next;
	uint64_t arrived_ns;
	uint8_t hello[SOFT_HELLO_MAX_BYTES];
	size_t hello_bytes; /* so far */
	uint32_t send_depth_count;
	bool shares_receives;
	bool wants_tls;
	struct soft_tls *tls; /* or NULL, if it speaks in clear text all the same */
	bool is_secure; /* tls has proved who it is */
};

struct soft_listener {
	struct rbx_listener listener;
	struct watched_socket tcp, local; /* fd -1: no such socket */
	struct soft_half_open *first_ready; /* oldest first */
	struct soft_half_open *last_ready;
	uint32_t ready_count;
};

struct soft_listeners *soft_listeners_of(struct soft_listener *listener);
int soft_socket_watch(struct soft_listeners *listeners,
		      struct watched_socket *watched);
/*
 * Closes a listening socket, if there is one. A child of fork() may have it too: then close()
 * alone leaves it listening, and in the epoll instance.
 */
void soft_socket_close(struct soft_listeners *listeners,
		       struct watched_socket *watched);
/* Takes a half-open connection that waits off its list. */
void soft_half_open_stop_waiting(struct soft_listeners *listeners,
				 struct soft_half_open *half_open);
/* Closes what it still owns. Needs no lock if it is on no list. */
void soft_half_open_free(struct soft_half_open *half_open);
/* Answers a hello. */
void soft_half_open_reject(struct soft_half_open *half_open,
			   const void *private_data, size_t private_bytes);

#endif
