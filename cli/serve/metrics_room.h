/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * metrics_room.h - room for the next scraper among the connections for metrics.
 *
 * Whoever can reach the port can hold connections with a byte now and then, which
 * no idle time ends. So if all places are taken, a newcomer gets the place of the
 * oldest connection from the address that has most of them: one address cannot
 * keep another one out, and nobody keeps a place against one who comes later.
 */
#ifndef METRICS_ROOM_H
#define METRICS_ROOM_H

#include <stdint.h>
#include <sys/socket.h>

/* A scraper needs one; the rest is for people. */
#define METRICS_CONNECTIONS_MAX 16

struct metrics_room {
	uint32_t count;
	struct metrics_visit {
		int fd;
		uint8_t host[16]; /* an address of 4 bytes begins it */
	} visits[METRICS_CONNECTIONS_MAX]; /* the oldest one first */
};

/** metrics_room_enter() - a connection begins; another one may be shut down for it. */
void metrics_room_enter(struct metrics_room *room, int fd,
			const struct sockaddr *from);
/** metrics_room_leave() - a connection has ended, of its own or shut down. */
void metrics_room_leave(struct metrics_room *room, int fd);

#endif
