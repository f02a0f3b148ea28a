/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounds.h - how much of each thing a server has, and how long each step may take.
 *
 * What a peer does can use up its share of these, and nobody else's.
 */
#ifndef RBX_SERVER_BOUNDS_H
#define RBX_SERVER_BOUNDS_H

#include "core/mailbox.h"
#include "include/rdmabox/server.h"
#include "wire/message.h"

/* Receives posted for a client: its requests, and a USER_MESSAGE_TAKEN for each of
 * our user messages. */
#define RBX_CONTROL_RECEIVES_MAX (RBX_REQUESTS_MAX + RBX_WIRE_USER_MESSAGES_MAX)
/* What we may have said unasked, and an answer to each receive: 20. */
#define RBX_CONTROL_SENDS_MAX (RBX_CONTROL_RECEIVES_MAX + RBX_UNASKED_MAX)
/* A message too long for the protocol still fits here and is answered. */
#define RBX_CONTROL_BUFFER_BYTES (2 * RBX_WIRE_MESSAGE_BYTES_MAX)

/* Connections that are not authenticated, in all and of one address, and how long
 * they may take: for sure, and if nobody waits for their slot (half_open.c). */
#define RBX_HANDSHAKES_MAX 64u
#define RBX_HANDSHAKES_OF_SOURCE_MAX 32u
#define RBX_HANDSHAKE_UNDISTURBED_NS (500 * 1000000ull)
#define RBX_HANDSHAKE_NS (5 * 1000000000ull)
/* How often it is looked whose time is over. */
#define RBX_HALF_OPEN_CHECK_NS (50 * 1000000ull)
/* How long a refused client may take to receive the reason. */
#define RBX_FAREWELL_NS 1000000000ull

/* Buffers, and completions, of a control connection. */
#define RBX_CONTROL_BUFFERS (RBX_CONTROL_RECEIVES_MAX + RBX_CONTROL_SENDS_MAX)

/* A client has one control connection, which is open or takes its leave, and another
 * one while it resumes (half_open.c). */
#define RBX_CONNECTIONS_OF(clients) (2 * (clients) + RBX_HANDSHAKES_MAX)
/* And data queue pairs, each with one receive. */
#define RBX_COMPLETIONS_OF(clients)                                       \
	(RBX_CONNECTIONS_OF(clients) * RBX_CONTROL_BUFFERS +              \
	 (clients) * RBX_QUEUE_PAIRS_MAX)

/* Connections whose buffers are made and registered together: 1 MiB. */
#define RBX_CONNECTIONS_PER_BLOCK 64u

/* What is done in one pass of the loop before all else gets its turn. */
#define RBX_SERVER_ACCEPTS_PER_TURN 64
#define RBX_SERVER_POLLS_PER_TURN 8
#define RBX_SERVER_ACTIONS_PER_TURN 64 /* of what the lender wants done */

/* How long a SLAB_MAP waits for a slab that is being emptied: a client that heard
 * nothing for longer would take the connection for broken. */
#define RBX_MAP_WAIT_NS 1000000000ull

/* Threads that make and empty slabs: one may be held up by a device that takes its
 * time to register, while the other goes on. */
#define RBX_WORKERS_MAX 2u
/* What one of them does before it looks up. With 4 MiB a step took up to 160 ms on a
 * busy machine of two CPUs, and others waited for it. */
#define RBX_SLAB_STEP_BYTES (512u << 10)

/* A slab that is wanted back is revoked after this. */
#define RBX_EVICT_GRACE_NS (10 * 1000000000ull)

#endif
