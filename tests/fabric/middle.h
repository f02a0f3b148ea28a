/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * middle.h - a man in the middle: passes the bytes of TCP connections on, and does one thing
 * to them on their way.
 */
#ifndef RBX_TESTS_MIDDLE_H
#define RBX_TESTS_MIDDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum middle_deed {
	MIDDLE_NOTHING,
	MIDDLE_FLIP, /* one bit of the byte */
	MIDDLE_DROP, /* the segment */
	MIDDLE_TRUNCATE, /* ends the stream there, in both directions */
	MIDDLE_REPLAY, /* the segment comes twice */
	MIDDLE_SPLICE, /* from there on the first two connections get each other's bytes */
	MIDDLE_HOLD, /* passes nothing on from there, and closes nothing */
};

#define MIDDLE_CONNECTIONS_MAX 2

struct middle {
	/* Set by the test before it opens it. */
	enum middle_deed deed;
	bool to_client; /* the direction in which it happens */
	uint64_t at; /* the byte, in the stream of the first connection */

	char address[64]; /* to connect to, after opening */
	atomic_bool is_done; /* the deed */
	atomic_bool stop;
	int listener, port, count;
	int clients[MIDDLE_CONNECTIONS_MAX], servers[MIDDLE_CONNECTIONS_MAX];
	uint64_t passed[2]; /* by the first connection: to the server, to the client */
	pthread_t thread;
};

/* In front of a listener on a loopback address, "127.0.0.1:port". */
void middle_open(struct middle *middle, const char *server);
void middle_close(struct middle *middle);

#endif
