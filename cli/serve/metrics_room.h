/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * metrics_room.h - room for the next scraper among the connections for metrics.
 *
 * Whoever can reach the port can hold connections with a byte now and then, which
 * no idle time ends. So if all places are taken, a newcomer gets the place of a
 * connection from the network that has most of them; there, of the oldest one from
 * the host that has most. So neither a host nor a network can keep another one out,
 * and nobody keeps a place against one who comes later.
 *
 * With IPv6 a host is a /64, of which any machine there can take all addresses, and
 * a network is a /48. With IPv4 it is an address, and a /24.
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
		uint8_t host[9]; /* its family and address; the network begins it */
		uint8_t network_bytes;
	} visits[METRICS_CONNECTIONS_MAX]; /* the oldest one first */
};

/** metrics_room_enter() - a connection begins; another one may be shut down for it. */
void metrics_room_enter(struct metrics_room *room, int fd,
			const struct sockaddr *from);
/** metrics_room_leave() - a connection has ended, of its own or shut down. */
void metrics_room_leave(struct metrics_room *room, int fd);

#endif
