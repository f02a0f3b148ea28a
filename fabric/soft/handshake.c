/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - moves the message that each side of a connection says first.
 *
 * It is read to its last byte and no further, since frames may follow at once.
 * On a local socket the sender's key table comes with it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect.h"
#include "descriptors.h"

int soft_hello_send(int fd, const struct soft_hello *hello, int with_fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .space = { 0 } };
	struct soft_wire_hello wire;
	struct iovec piece = { &wire, sizeof(wire) };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
	ssize_t sent;

	soft_hello_encode(hello, &wire);
	if (with_fd >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &with_fd, sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.space);
	}
	sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		return -errno;
	return sent == sizeof(wire) ? 0 : -ECONNABORTED;
}

int soft_hello_receive(int fd, uint8_t *bytes, size_t *got_bytes, int *with_fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec piece = {
		bytes + *got_bytes, SOFT_HELLO_BYTES - *got_bytes,
	};
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;

	got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	/* The first that comes; any other is closed. */
	(void)soft_descriptors_keep(&message, with_fd, *with_fd >= 0, 1);
	if (!got)
		return -ECONNRESET;
	*got_bytes += (size_t)got;
	return *got_bytes == SOFT_HELLO_BYTES ? 0 : -EAGAIN;
}
