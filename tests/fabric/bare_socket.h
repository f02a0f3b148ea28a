/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bare_socket.h - a peer over TCP that speaks the wire format of the soft device by
 * hand, and keeps to its rules as far as a test wants. */
#ifndef RBX_TESTS_BARE_SOCKET_H
#define RBX_TESTS_BARE_SOCKET_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/soft/frame.h"
#include "tests/fabric/endpoint.h"

#define PAGE 4096u

/* From 127.0.0.`host`, which is one source. */
static inline int socket_open_from(const struct rbx_listener *listener, uint32_t host)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct sockaddr_in from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) + host);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t)atoi(
		strrchr(listener->address, ':') + 1));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address,
				 sizeof(address)), 0);
	return fd;
}

static inline int socket_open(const struct rbx_listener *listener)
{
	return socket_open_from(listener, 1);
}

/* Whether the other end closes, whatever it says before. */
static inline bool socket_is_closed(int fd)
{
	struct timeval patience = { .tv_sec = 30 };
	uint8_t bytes[256];
	ssize_t got;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	do {
		got = recv(fd, bytes, sizeof(bytes), 0);
	} while (got > 0);
	return got == 0 || errno == ECONNRESET;
}

static inline void hello_send(int fd, const struct soft_hello *hello)
{
	struct soft_wire_hello wire;
	size_t bytes = soft_hello_encode(hello, &wire);

	assert_int_equal(send(fd, &wire, bytes, 0), bytes);
}

static inline void hello_hear(int fd, struct soft_hello *hello)
{
	uint8_t bytes[SOFT_HELLO_MAX_BYTES];
	size_t more;

	assert_int_equal(recv(fd, bytes, SOFT_HELLO_MIN_BYTES, MSG_WAITALL),
			 SOFT_HELLO_MIN_BYTES);
	more = soft_hello_length(bytes) - SOFT_HELLO_MIN_BYTES;
	if (more)
		assert_int_equal(recv(fd, bytes + SOFT_HELLO_MIN_BYTES, more,
				      MSG_WAITALL), more);
	assert_null(soft_hello_decode(bytes, hello));
}

/* A hand-made connection that claims this depth: our socket, and the server's end of it, which
 * allows so many READs; 0: as many as it claims. */
static inline int hostile_connect_with(struct test_pair *pair, struct rbx_qp **qp,
				       uint32_t depth_count, uint32_t reads_max_count)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.send_depth_count = depth_count,
	};
	struct rbx_qp_init init = {
		.send_cq = pair->server_cq,
		.recv_cq = pair->server_cq,
		.send_depth_count = 8,
		.recv_depth_count = 8,
		.max_sge = 1,
		.served = true,
		.peer_reads_max_count = reads_max_count,
	};
	int fd = socket_open(pair->listener);

	hello_send(fd, &hello);
	assert_int_equal(pair->ops->accept(test_request_wait(pair->listener),
					   &init, NULL, 0, qp, NULL), 0);
	hello_hear(fd, &hello);
	return fd;
}

static inline int hostile_connect(struct test_pair *pair, struct rbx_qp **qp)
{
	return hostile_connect_with(pair, qp, 8, 0);
}

/* The server still serves a peer that behaves. */
static inline void expect_served(struct test_pair *pair)
{
	assert_int_equal(test_do(pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
}

#endif
