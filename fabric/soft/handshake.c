/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - sends and receives the first message of each side of a connection.
 *
 * It is read to its last byte and no further, since frames may follow at once. Under TLS it
 * is a record of its own. It carries no
 * descriptors, as neither side has proved anything yet. If one comes all the same the system
 * closes it, because there is no room for it.
 */
#include <errno.h>
#include <sys/socket.h>

#include "connect.h"
#include "device.h"
#include "fabric/loopback.h"

static bool acceptor_is_loopback(int fd, bool accepted)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);
	struct sockaddr *to = (struct sockaddr *)&address;

	return !(accepted ? getsockname(fd, to, &length) : getpeername(fd, to, &length)) &&
	       rbx_sockaddr_is_loopback(to);
}

bool soft_wants_tls(const struct soft_device *device, int fd, bool accepted)
{
	switch (device->tls_use) {
	case RBX_TLS_ALWAYS:
		return true;
	case RBX_TLS_BEYOND_LOOPBACK:
		return !acceptor_is_loopback(fd, accepted);
	default:
		return false;
	}
}

int soft_hello_send(int fd, struct soft_tls *tls, const struct soft_hello *hello)
{
	struct soft_wire_hello wire;
	size_t bytes = soft_hello_encode(hello, &wire);
	ssize_t sent;

	if (tls)
		return soft_tls_send_message(tls, &wire, bytes);
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

static ssize_t hello_read(int fd, struct soft_tls *tls, uint8_t *bytes, size_t max_bytes,
			  bool *more)
{
	ssize_t got;

	*more = false;
	if (tls)
		return soft_tls_receive_message(tls, bytes, max_bytes, more);
	got = recv(fd, bytes, max_bytes, MSG_DONTWAIT);
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return got;
}

/* A record of TLS may hold more than was asked for: then no event of the socket would tell. */
int soft_hello_receive(int fd, struct soft_tls *tls, uint8_t *bytes, size_t *got_bytes)
{
	size_t length;
	ssize_t got;
	bool more;

	do {
		length = hello_length(bytes, *got_bytes);
		got = hello_read(fd, tls, bytes + *got_bytes, length - *got_bytes, &more);
		if (got < 0)
			return (int)got;
		if (!got)
			return -ECONNRESET;
		*got_bytes += (size_t)got;
		length = hello_length(bytes, *got_bytes);
	} while (more && *got_bytes != length);
	if (more)
		return -EPROTO;
	return *got_bytes == length ? 0 : -EAGAIN;
}
