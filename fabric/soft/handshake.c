/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - sends and receives the first message of each side of a connection.
 *
 * It is read to its last byte and no further, since frames may follow at once. It carries no
 * descriptors, as neither side has proved anything yet. If one comes all the same the system
 * closes it, because there is no room for it.
 */
#include <errno.h>
#include <sys/socket.h>

#include "connect.h"

int soft_hello_send(int fd, const struct soft_hello *hello)
{
	struct soft_wire_hello wire;
	size_t bytes = soft_hello_encode(hello, &wire);
	ssize_t sent;

	sent = send(fd, &wire, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0) /* the end of a socket on this machine, before we sent anything */
		return errno == EPIPE ? -ECONNRESET : -errno;
	return (size_t)sent == bytes ? 0 : -ECONNABORTED;
}

/* As far as it is known. */
static size_t hello_length(const uint8_t *bytes, size_t got_bytes)
{
	return got_bytes < SOFT_HELLO_MIN_BYTES ? SOFT_HELLO_MIN_BYTES :
						  soft_hello_length(bytes);
}

int soft_hello_receive(int fd, uint8_t *bytes, size_t *got_bytes)
{
	size_t length = hello_length(bytes, *got_bytes);
	ssize_t got;

	got = recv(fd, bytes + *got_bytes, length - *got_bytes, MSG_DONTWAIT);
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (!got)
		return -ECONNRESET;
	*got_bytes += (size_t)got;
	return *got_bytes == hello_length(bytes, *got_bytes) ? 0 : -EAGAIN;
}
