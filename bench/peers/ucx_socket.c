/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plain TCP socket beside a UCX connection.
 *
 * It carries what a client must know before it can use UCX. Its end tells that the other side
 * has left. A client waits for PEER_STALL_LIMIT_NS at most. No data of the load passes here.
 */
#include "ucx_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int socket_resolve(const struct peer_options *options, struct addrinfo **address)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };

	return getaddrinfo(options->host, options->port, &hints, address) ? -EADDRNOTAVAIL : 0;
}

int socket_listen(const struct peer_options *options)
{
	struct addrinfo *address;
	int on = 1, err, fd;

	err = socket_resolve(options, &address);
	if (err)
		return err;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 8)) {
		err = -errno;
		close(fd);
	}
	freeaddrinfo(address);
	return err ? err : fd;
}

int socket_connect(const struct peer_options *options)
{
	struct timeval limit = { .tv_sec = PEER_STALL_LIMIT_NS / 1000000000ull };
	struct addrinfo *address;
	int err, fd;

	err = socket_resolve(options, &address);
	if (err)
		return err;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, address->ai_addr, address->ai_addrlen)) {
		err = -errno;
		close(fd);
	}
	freeaddrinfo(address);
	return err ? err : fd;
}

int socket_send(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -EPIPE;
}

int socket_receive(int fd, void *data, size_t len)
{
	return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len ? 0 : -ECONNRESET;
}

int socket_send_blob(int fd, const void *blob, size_t len)
{
	uint64_t announced = len;
	int err = socket_send(fd, &announced, sizeof(announced));

	return err ? err : socket_send(fd, blob, len);
}

int socket_receive_blob(int fd, void *blob, size_t size_bytes)
{
	uint64_t announced;
	int err = socket_receive(fd, &announced, sizeof(announced));

	if (!err && announced > size_bytes)
		err = -EPROTO;
	return err ? err : socket_receive(fd, blob, announced);
}

bool socket_has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ||
	       (errno != EAGAIN && errno != EINTR);
}
