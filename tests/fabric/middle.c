/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * middle.c - see middle.h.
 */
#include "tests/fabric/middle.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEGMENT_BYTES 1400

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static int socket_make(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void connection_take(struct middle *middle)
{
	const struct sockaddr_in to = loopback(middle->port);
	const int i = middle->count, on = 1;

	middle->clients[i] = accept(middle->listener, NULL, NULL);
	middle->servers[i] = socket_make();
	if (connect(middle->servers[i], (const struct sockaddr *)&to, sizeof(to)))
		shutdown(middle->clients[i], SHUT_RDWR);
	setsockopt(middle->clients[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(middle->servers[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	middle->count++;
}

static void send_all(int fd, const uint8_t *bytes, size_t count)
{
	ssize_t sent;

	while (count) {
		sent = send(fd, bytes, count, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		bytes += sent;
		count -= (size_t)sent;
	}
}

static void cut(struct middle *middle, int i)
{
	shutdown(middle->clients[i], SHUT_RDWR);
	shutdown(middle->servers[i], SHUT_RDWR);
}

/* Passes a segment of the first connection on, in the direction of the deed. */
static void tamper(struct middle *middle, int to, uint8_t *bytes, size_t count,
		   uint64_t before)
{
	const bool holds_it = before <= middle->at && middle->at < before + count;
	const size_t offset = (size_t)(middle->at - before);
	int times = 1;

	if (holds_it)
		atomic_store(&middle->is_done, true);
	if (middle->deed == MIDDLE_HOLD && before + count > middle->at)
		times = 0;
	if (holds_it && middle->deed == MIDDLE_FLIP)
		bytes[offset] ^= 0x10;
	if (holds_it && middle->deed == MIDDLE_DROP)
		times = 0;
	if (holds_it && middle->deed == MIDDLE_REPLAY)
		times = 2;
	if (holds_it && middle->deed == MIDDLE_TRUNCATE)
		count = offset;
	while (times--)
		send_all(to, bytes, count);
	if (holds_it && middle->deed == MIDDLE_TRUNCATE)
		cut(middle, 0);
}

/* The other one of two, once they are spliced. */
static int receiver(const struct middle *middle, int i, bool to_client)
{
	const bool swaps = middle->deed == MIDDLE_SPLICE && middle->to_client == to_client &&
			   atomic_load(&middle->is_done) && middle->count == 2;
	const int to = swaps ? 1 - i : i;

	return to_client ? middle->clients[to] : middle->servers[to];
}

static void pass(struct middle *middle, int i, bool to_client)
{
	uint8_t bytes[SEGMENT_BYTES];
	ssize_t got = recv(to_client ? middle->servers[i] : middle->clients[i], bytes,
			   sizeof(bytes), MSG_DONTWAIT);
	int to = receiver(middle, i, to_client);

	if (got <= 0) {
		cut(middle, i);
		if (middle->deed == MIDDLE_SPLICE && middle->count == 2)
			cut(middle, 1 - i);
		return;
	}
	if (i == 0 && to_client == middle->to_client)
		tamper(middle, to, bytes, (size_t)got, middle->passed[to_client]);
	else
		send_all(to, bytes, (size_t)got);
	if (i == 0)
		middle->passed[to_client] += (uint64_t)got;
}

static void *middle_run(void *argument)
{
	struct middle *middle = argument;
	struct pollfd fds[1 + 2 * MIDDLE_CONNECTIONS_MAX];
	int i;

	while (!atomic_load(&middle->stop)) {
		fds[0] = (struct pollfd){ middle->listener, POLLIN, 0 };
		if (middle->count == MIDDLE_CONNECTIONS_MAX)
			fds[0].fd = -1;
		for (i = 0; i < middle->count; i++) {
			fds[1 + 2 * i] = (struct pollfd){ middle->clients[i], POLLIN, 0 };
			fds[2 + 2 * i] = (struct pollfd){ middle->servers[i], POLLIN, 0 };
		}
		if (poll(fds, 1 + 2 * (nfds_t)middle->count, 10) <= 0)
			continue;
		for (i = 0; i < middle->count; i++) {
			if (fds[1 + 2 * i].revents)
				pass(middle, i, false);
			if (fds[2 + 2 * i].revents)
				pass(middle, i, true);
		}
		if (fds[0].revents)
			connection_take(middle);
	}
	return NULL;
}

void middle_open(struct middle *middle, const char *server)
{
	struct sockaddr_in name = loopback(0);
	socklen_t length = sizeof(name);

	middle->port = atoi(strrchr(server, ':') + 1);
	middle->count = 0;
	memset(middle->passed, 0, sizeof(middle->passed));
	middle->listener = socket_make();
	if (bind(middle->listener, (struct sockaddr *)&name, sizeof(name)) ||
	    listen(middle->listener, 8) ||
	    getsockname(middle->listener, (struct sockaddr *)&name, &length))
		abort();
	sprintf(middle->address, "127.0.0.1:%u", ntohs(name.sin_port));
	atomic_store(&middle->is_done, false);
	atomic_store(&middle->stop, false);
	pthread_create(&middle->thread, NULL, middle_run, middle);
}

void middle_close(struct middle *middle)
{
	atomic_store(&middle->stop, true);
	pthread_join(middle->thread, NULL);
	while (middle->count--) {
		close(middle->clients[middle->count]);
		close(middle->servers[middle->count]);
	}
	close(middle->listener);
}
