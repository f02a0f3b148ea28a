/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limits.h - all bounds of the soft device, with their arithmetic.
 */
#ifndef SOFT_LIMITS_H
#define SOFT_LIMITS_H

/* Maxima that a qp may ask for. */
#define SOFT_SGE_MAX 32
#define SOFT_SEND_DEPTH_MAX 16384
#define SOFT_RECV_DEPTH_MAX 16384
#define SOFT_CQ_DEPTH_MAX (1u << 24)
#define SOFT_INLINE_MAX_BYTES 256
#define SOFT_MESSAGE_MAX_BYTES (1u << 30)

/* How many qps the device reports that it can have: each takes a socket, and a process may
 * have 1,024 descriptors on most hosts. Opening more fails when they run out. */
#define SOFT_QPS_MAX 1024

/* Keys are 16 bits of table index and 16 bits of generation. */
#define SOFT_KEY_INDEX_BITS 16
#define SOFT_KEY_COUNT (1u << SOFT_KEY_INDEX_BITS)

/*
 * For one sendmsg(). A frame is a header and up to SOFT_SGE_MAX pieces; 512 pieces are 128
 * frames of three sges and half of what the kernel allows.
 */
#define SOFT_GATHER_FRAMES_MAX 128
#define SOFT_GATHER_PIECES_MAX 512
/* For one post or poll; later polls send the rest. */
#define SOFT_FLUSH_MAX_BYTES (8u << 20)

/*
 * Look-ahead of one recvmsg(). Copying a page out of the look-ahead is cheaper than a system
 * call for it. Above SOFT_DIRECT_BYTES it is the other way round, and then only a header's
 * worth is read ahead.
 */
#define SOFT_LOOKAHEAD_BYTES (256u << 10)
#define SOFT_LOOKAHEAD_SHORT_BYTES 4096
#define SOFT_DIRECT_BYTES (16u << 10)
/* For one recvmsg() into its destination: bounds how long the lock is held. */
#define SOFT_RECEIVE_MAX_BYTES (1u << 20)
/* recvmsg() calls before other connections get their turn. */
#define SOFT_RECEIVE_ROUNDS_MAX 8

/* Messages that one frame asks credit for, and about how many bytes may come before the last
 * of them, so that they are sent soon. At most that many bytes are before the first of them,
 * or on their way to us before the answer. A peer that keeps receives that others wait for is
 * cut off. */
#define SOFT_ASK_MAX 64
#define SOFT_ASK_BYTES (4u << 20)

/* Frames besides requests and responses: maps asked for, maps answered, one error, one
 * request for credit. */
#define SOFT_MAPS_ASKED_MAX 4
#define SOFT_CONTROL_MAX 16
_Static_assert(SOFT_CONTROL_MAX >= 2 * SOFT_MAPS_ASKED_MAX + 2,
	       "every control frame that may be due has its place");

/* In an answer to a map question: the memory file, the table of key words. */
#define SOFT_MAP_FDS 2
#define SOFT_MAP_FDS_MAX (SOFT_MAPS_ASKED_MAX * SOFT_MAP_FDS)

/* Mappings of a peer's memory that a qp keeps; further keys use frames. */
#define SOFT_MAPPINGS_MAX 1024

/* Connections that have not sent their hello, in all and of one source. Each has the first
 * time for sure, and the second if no other one wants its place (listeners.c). */
#define SOFT_HALF_OPEN_MAX 128
#define SOFT_HALF_OPEN_OF_SOURCE_MAX 64
#define SOFT_HALF_OPEN_UNDISTURBED_MS 500
#define SOFT_HANDSHAKE_MS 5000
/* What is read of a peer that speaks TLS to one that does not, or the reverse, in KiB: what it
 * sends before it waits for an answer is far less. */
#define SOFT_UNFIT_READS_MAX 64
/* Keys of TLS: of all secrets that a server may have, twice, as peers may not have heard of a
 * new one. They take 160 bytes each, once there are so many. */
#define SOFT_TLS_KEYS_MAX 8448
/* A record of TLS: its text at most (RFC 8446, 5.1), and with all that goes around it. */
#define SOFT_TLS_RECORD_BYTES (16u << 10)
#define SOFT_TLS_SEALED_BYTES (SOFT_TLS_RECORD_BYTES + 256)
/* What is encrypted for one send(). */
#define SOFT_TLS_SEND_BYTES (8 * SOFT_TLS_RECORD_BYTES)
/* The sealed records of one send(), and one more: an alert, or a new key. */
#define SOFT_TLS_OUT_BYTES (9 * SOFT_TLS_SEALED_BYTES)
/* What one recv() brings. All of it is decrypted into the look-ahead at once. */
#define SOFT_TLS_READ_BYTES (8 * SOFT_TLS_SEALED_BYTES)
_Static_assert(SOFT_TLS_READ_BYTES + SOFT_TLS_SEALED_BYTES <= SOFT_LOOKAHEAD_BYTES,
	       "nothing decrypted stays behind");
/* Records under one key; far below what AES-GCM allows (2^24.5, RFC 8446, 5.5), since a new
 * key costs microseconds. */
#define SOFT_TLS_RECORDS_MAX (1u << 16)

/* Requests that wait for get_request(); further ones are closed. */
#define SOFT_REQUESTS_MAX 128

/* How long a SEND waits for a receive to be posted; then -ENOBUFS. */
#define SOFT_RECEIVER_WAIT_MS 2000
/* How long a peer may keep shared receives that another peer has waited for as long. The
 * other's message still gets one before it fails. */
#define SOFT_PROMISE_MS 1000
/* A peer has as long again if its connection has moved so much meanwhile, in either
 * direction: a message may be longer than what a network carries in a second. */
#define SOFT_PROMISE_BYTES (1u << 20)
_Static_assert(SOFT_PROMISE_MS < SOFT_RECEIVER_WAIT_MS, "who waits outlasts who keeps");
/* A host that has vanished is noticed after this long, busy or idle. */
#define SOFT_SILENT_PEER_MS 5000
#define SOFT_KEEPALIVE_S 1

/* The highest cost of one work request under simulated overload. */
#define SOFT_OVERLOAD_MAX_NS 100000

/* Service thread: how long it polls after the last activity, before it blocks. */
#define SOFT_SERVICE_SPIN_US 50

/* How often a service thread checks whether its processor is crowded, and for how long the
 * result counts (crowd.h). */
#define SOFT_CROWD_LOOK_NS 1000000u
#define SOFT_CROWDED_NS 100000000u
/* While a deadline is set, the service thread checks it this often. */
#define SOFT_TICK_MS 50
/* A late check counts as so long at most. */
#define SOFT_TICK_COUNTS_MS (2 * SOFT_TICK_MS)
/* So few bytes held by the system will soon reach the peer. */
#define SOFT_QUEUED_BYTES (64u << 10)
/* Up to so many sockets of a cq are read without asking epoll first. */
#define SOFT_DIRECT_QPS 2
/* A cq that always has completions still looks at its sockets now and then. */
#define SOFT_POLLS_WITHOUT_SOCKET 64
#define SOFT_EVENTS_MAX 32

#endif
