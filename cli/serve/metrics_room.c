/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* metrics_room.c - see metrics_room.h. All of it runs on libmicrohttpd's thread. */
#include <netinet/in.h>
#include <string.h>

#include "cli/serve/metrics_room.h"

static void visit_host(const struct sockaddr *from, uint8_t host[16])
{
	memset(host, 0, 16);
	if (from->sa_family == AF_INET)
		memcpy(host, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else if (from->sa_family == AF_INET6)
		memcpy(host, &((const struct sockaddr_in6 *)from)->sin6_addr,
		       16);
}

static uint32_t count_of_host(const struct metrics_room *room,
			      const uint8_t host[16])
{
	uint32_t count = 0, i;

	for (i = 0; i < room->count; i++)
		count += !memcmp(room->visits[i].host, host, 16);
	return count;
}

static void forget(struct metrics_room *room, uint32_t place)
{
	room->count--;
	memmove(&room->visits[place], &room->visits[place + 1],
		(room->count - place) * sizeof(room->visits[0]));
}

static void make_room(struct metrics_room *room)
{
	uint32_t most = 0, victim = 0, count, i;

	for (i = 0; i < room->count; i++) {
		count = count_of_host(room, room->visits[i].host);
		if (count <= most)
			continue;
		most = count;
		victim = i;
	}
	shutdown(room->visits[victim].fd, SHUT_RDWR);
	forget(room, victim);
}

void metrics_room_enter(struct metrics_room *room, int fd,
			const struct sockaddr *from)
{
	struct metrics_visit visit = { .fd = fd };

	visit_host(from, visit.host);
	if (room->count == METRICS_CONNECTIONS_MAX)
		make_room(room);
	room->visits[room->count++] = visit;
}

void metrics_room_leave(struct metrics_room *room, int fd)
{
	uint32_t i;

	for (i = 0; i < room->count; i++)
		if (room->visits[i].fd == fd) {
			forget(room, i);
			return;
		}
}
