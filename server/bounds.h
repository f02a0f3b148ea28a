/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounds.h - how many of each thing a server has, and how long each step may take.
 *
 * A peer can use up its own share of these, and nobody else's.
 */
#ifndef RBX_SERVER_BOUNDS_H
#define RBX_SERVER_BOUNDS_H

#include "core/mailbox.h"
#include "include/rdmabox/server.h"
#include "wire/message.h"

/* Receives posted for a client: for its requests, and for a USER_MESSAGE_TAKEN for each
 * of our user messages. */
#define RBX_CONTROL_RECEIVES_MAX (RBX_REQUESTS_MAX + RBX_WIRE_USER_MESSAGES_MAX)
/* An answer to each receive, and what the server may send unasked: 20. */
#define RBX_CONTROL_SENDS_MAX (RBX_CONTROL_RECEIVES_MAX + RBX_UNASKED_MAX)
/* A message that is too long for the protocol still fits here, so it is answered. */
#define RBX_CONTROL_BUFFER_BYTES (2 * RBX_WIRE_MESSAGE_BYTES_MAX)

/* Connections that are not authenticated, in all and of one address. Each has the first
 * time for sure, and the second if nobody waits for its slot (half_open.c). */
#define RBX_HANDSHAKES_MAX 64u
#define RBX_HANDSHAKES_OF_SOURCE_MAX 32u
#define RBX_HANDSHAKE_UNDISTURBED_NS (500 * 1000000ull)
#define RBX_HANDSHAKE_NS (5 * 1000000000ull)
/* How often half-open connections are checked for their deadline. */
#define RBX_HALF_OPEN_CHECK_NS (50 * 1000000ull)
/* How long a refused client may take to receive the reason. */
#define RBX_FAREWELL_NS 1000000000ull

/* Buffers and completions of a control connection. */
#define RBX_CONTROL_BUFFERS (RBX_CONTROL_RECEIVES_MAX + RBX_CONTROL_SENDS_MAX)

/* A client has one control connection, which is open or closing, and a second one while
 * it resumes (half_open.c). */
#define RBX_CONNECTIONS_OF(clients) (2 * (clients) + RBX_HANDSHAKES_MAX)
/* Data queue pairs come on top, each with one receive. */
#define RBX_COMPLETIONS_OF(clients)                                       \
	(RBX_CONNECTIONS_OF(clients) * RBX_CONTROL_BUFFERS +              \
	 (clients) * RBX_QUEUE_PAIRS_MAX)

/* Connections whose buffers are allocated and registered together: 1 MiB. */
#define RBX_CONNECTIONS_PER_BLOCK 16u

/* The most that one pass of the loop does of one thing, before the other things are done. */
#define RBX_SERVER_ACCEPTS_PER_TURN 64
#define RBX_SERVER_POLLS_PER_TURN 8
#define RBX_SERVER_ACTIONS_PER_TURN 64 /* actions of the lender */

/* Sessions that may read a volume at the same time, beside its writer. */
#define RBX_READERS_OF_VOLUME_MAX 64u

/* How long a SLAB_MAP waits for a slab that is being emptied. A client that hears nothing
 * for longer would think that the connection is broken. */
#define RBX_MAP_WAIT_NS 1000000000ull

/* Threads that make and empty slabs. If a device takes long to register memory for one of
 * them, the other goes on. */
#define RBX_WORKERS_MAX 2u
/* The most that a worker does before it checks for new orders. With 4 MiB a step took up
 * to 160 ms on a busy machine with two CPUs, and others waited for it. */
#define RBX_SLAB_STEP_BYTES (512u << 10)

/* A client has so long to give back a slab that is wanted back. Then the slab is revoked. */
#define RBX_EVICT_GRACE_NS (10 * 1000000000ull)

#endif
