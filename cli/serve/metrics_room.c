/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* metrics_room.c - see metrics_room.h. All of it runs on libmicrohttpd's thread. */
#include <netinet/in.h>
#include <string.h>

#include "cli/serve/metrics_room.h"

static void visit_from(struct metrics_visit *visit, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)from)->sin6_addr;

	visit->host[0] = (uint8_t)from->sa_family;
	visit->network_bytes = 1;
	if (from->sa_family == AF_INET) {
		memcpy(&visit->host[1], &v4->sin_addr, 4);
		visit->network_bytes += 3;
	} else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
		visit->host[0] = AF_INET;
		memcpy(&visit->host[1], &v6->s6_addr[12], 4);
		visit->network_bytes += 3;
	} else if (from->sa_family == AF_INET6) {
		memcpy(&visit->host[1], v6, 8);
		visit->network_bytes += 6;
	}
}

/* How many begin like this one. */
static uint32_t count_like(const struct metrics_room *room,
			   const struct metrics_visit *visit, size_t bytes)
{
	uint32_t count = 0, i;

	for (i = 0; i < room->count; i++)
		count += !memcmp(room->visits[i].host, visit->host, bytes);
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
		const struct metrics_visit *visit = &room->visits[i];

		/* The network counts first, and in it the host. */
		count = count_like(room, visit, visit->network_bytes) *
				(METRICS_CONNECTIONS_MAX + 1) +
			count_like(room, visit, sizeof(visit->host));
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

	visit_from(&visit, from);
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
