/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_hostile_test.c - peers that break the protocol of the soft device are
 * cut off, everything posted is flushed, and others are served on.
 *
 * The hostile peer is a bare socket that speaks the wire format by hand.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"
#include "fabric/soft/frame.h"
#include "fabric/soft/limits.h"

#define PAGE 4096u

static int socket_open(const struct rbx_listener *listener)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t)atoi(
		strrchr(listener->address, ':') + 1));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address,
				 sizeof(address)), 0);
	return fd;
}

/* Whether the other end closes, whatever it says before. */
static bool socket_is_closed(int fd)
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

/* A hand-made connection: our socket, and the server's end of it. */
static int hostile_connect(struct test_pair *pair, struct rbx_qp **qp)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.send_depth_count = 8,
	};
	struct rbx_qp_init init = {
		.send_cq = pair->server_cq,
		.recv_cq = pair->server_cq,
		.send_depth_count = 8,
		.recv_depth_count = 8,
		.max_sge = 1,
		.served = true,
	};
	struct soft_wire_hello wire;
	int fd = socket_open(pair->listener);

	soft_hello_encode(&hello, &wire);
	assert_int_equal(send(fd, &wire, sizeof(wire), 0), sizeof(wire));
	assert_int_equal(pair->ops->accept(test_request_wait(pair->listener),
					   &init, NULL, 0, qp, NULL), 0);
	assert_int_equal(recv(fd, &wire, sizeof(wire), MSG_WAITALL),
			 sizeof(wire));
	return fd;
}

/* The server still serves a peer that behaves. */
static void expect_served(struct test_pair *pair)
{
	assert_int_equal(test_do(pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
}

static void garbage_handshake_closed(void **state)
{
	uint8_t garbage[200];
	struct test_pair pair;
	struct rbx_conn_request *request;
	uint32_t i;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 20; i++) {
		test_fill(garbage, sizeof(garbage), i);
		if (i % 2) { /* the right beginning */
			struct soft_hello hello = { .version = SOFT_VERSION,
						    .type = (uint8_t)i };

			soft_hello_encode(&hello,
					  (struct soft_wire_hello *)garbage);
		}
		fd = socket_open(pair.listener);
		send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL);
		assert_true(socket_is_closed(fd));
		close(fd);
	}
	assert_int_equal(pair.ops->get_request(pair.listener, &request),
			 -EAGAIN);
	expect_served(&pair);
	test_pair_close(&pair);
}

static void other_version_told_ours(void **state)
{
	struct soft_hello hello = { .version = SOFT_VERSION + 1,
				    .type = SOFT_HELLO,
				    .send_depth_count = 8 };
	struct soft_wire_hello wire;
	struct test_pair pair;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = socket_open(pair.listener);
	soft_hello_encode(&hello, &wire);
	assert_int_equal(send(fd, &wire, sizeof(wire), 0), sizeof(wire));
	assert_int_equal(recv(fd, &wire, sizeof(wire), MSG_WAITALL),
			 sizeof(wire));
	assert_null(soft_hello_decode((uint8_t *)&wire, &hello));
	assert_int_equal(hello.version, SOFT_VERSION);
	assert_int_equal(hello.type, SOFT_REJECT);
	assert_true(socket_is_closed(fd));
	close(fd);
	test_pair_close(&pair);
}

/* A crowd of silent visitors does not keep out one who speaks. */
static void silent_visitors_make_room(void **state)
{
	int fds[SOFT_HALF_OPEN_MAX + 40];
	struct test_pair pair;
	struct rbx_qp *qp;
	size_t i;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		fds[i] = socket_open(pair.listener);
	fd = hostile_connect(&pair, &qp);
	assert_true(socket_is_closed(fds[0]));
	close(fd);
	for (i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		close(fds[i]);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* Each breaks one rule. */
static struct soft_frame bad_frame(const struct test_pair *pair, int which)
{
	struct soft_frame frame = {
		.opcode = SOFT_WRITE,
		.sequence = SOFT_FIRST_SEQUENCE,
		.length_bytes = 16,
		.rkey = pair->target_mr->rkey,
		.remote_addr = (uintptr_t)pair->target_memory,
	};

	switch (which) {
	case 0: frame.opcode = 0; break;
	case 1: frame.opcode = SOFT_MAP_ANSWER + 1; break;
	case 2: frame.sequence++; break;
	case 3: frame.length_bytes = SOFT_MESSAGE_MAX_BYTES + 1; break;
	case 4: frame.opcode = SOFT_SEND; break; /* no credit */
	case 5: /* acknowledges nothing that was sent */
		frame = (struct soft_frame){ .opcode = SOFT_ACK,
					     .sequence = SOFT_FIRST_SEQUENCE };
		break;
	case 6: frame.opcode = SOFT_RESPONSE; break;
	case 7:
		frame = (struct soft_frame){ .opcode = SOFT_ERROR,
					     .status = SOFT_REFUSED_ACCESS,
					     .sequence = SOFT_FIRST_SEQUENCE };
		break;
	case 8: /* only on a local socket */
		frame = (struct soft_frame){ .opcode = SOFT_MAP_ASK };
		break;
	case 9:
		frame = (struct soft_frame){ .opcode = SOFT_MAP_ANSWER };
		break;
	case 10: frame.rkey ^= 0x10000; break;
	case 11: frame.remote_addr--; break;
	case 12:
		frame = (struct soft_frame){ .opcode = SOFT_ACK,
					     .length_bytes = 1 };
		break;
	default:
		frame.status = 1;
	}
	return frame;
}

static void rule_breaker_cut_off_and_flushed(void **state)
{
	struct soft_wire_frame wire[4];
	struct soft_frame frame;
	struct test_pair pair;
	struct rbx_qp *qp;
	struct rbx_wc wc;
	int fd, which;

	(void)state;
	test_pair_open(&pair, NULL);
	for (which = 0; which < 14; which++) {
		fd = hostile_connect(&pair, &qp);
		if (which != 4)
			test_post_recv(&pair, qp, 77, pair.target_memory, PAGE,
				       pair.target_mr->lkey);
		/* What would be payload would be seen in the memory. */
		memset(wire, 0xaa, sizeof(wire));
		frame = bad_frame(&pair, which);
		soft_frame_encode(&frame, wire);
		send(fd, wire, sizeof(wire), MSG_NOSIGNAL);
		assert_true(socket_is_closed(fd));
		if (which == 4)
			test_post_recv(&pair, qp, 77, pair.target_memory, PAGE,
				       pair.target_mr->lkey);
		wc = test_wait(&pair, pair.server_cq);
		assert_ptr_equal(wc.qp, qp);
		assert_int_equal(wc.status, -ECANCELED);
		assert_int_equal(wc.wr_id, 77);
		pair.ops->destroy_qp(qp);
		close(fd);
	}
	assert_int_equal(pair.target[0], 0);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* More reads than the depth it said: bounded, not stored. */
static void too_many_reads_cut_off(void **state)
{
	struct soft_wire_frame wire[64];
	struct test_pair pair;
	struct rbx_qp *qp;
	uint32_t i;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = hostile_connect(&pair, &qp);
	for (i = 0; i < 64; i++) {
		struct soft_frame frame = {
			.opcode = SOFT_READ,
			.sequence = SOFT_FIRST_SEQUENCE + i,
			.length_bytes = TARGET_BYTES,
			.rkey = pair.target_mr->rkey,
			.remote_addr = (uintptr_t)pair.target_memory,
		};

		soft_frame_encode(&frame, &wire[i]);
	}
	send(fd, wire, sizeof(wire), MSG_NOSIGNAL);
	assert_true(socket_is_closed(fd));
	close(fd);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* A peer that dies in mid-payload: no completion, the memory's owner goes on. */
static void half_a_payload_then_death_flushes(void **state)
{
	struct soft_frame frame = { .opcode = SOFT_SEND,
				    .sequence = SOFT_FIRST_SEQUENCE,
				    .length_bytes = 1000 };
	uint8_t bytes[SOFT_FRAME_BYTES + 500] = { 0 };
	struct test_pair pair;
	struct rbx_qp *qp;
	struct rbx_wc wc;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = hostile_connect(&pair, &qp);
	test_post_recv(&pair, qp, 5, pair.target_memory, PAGE, pair.target_mr->lkey);
	soft_frame_encode(&frame, (struct soft_wire_frame *)bytes);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	close(fd);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, -ECANCELED);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_handshake_closed),
		cmocka_unit_test(other_version_told_ours),
		cmocka_unit_test(silent_visitors_make_room),
		cmocka_unit_test(rule_breaker_cut_off_and_flushed),
		cmocka_unit_test(too_many_reads_cut_off),
		cmocka_unit_test(half_a_payload_then_death_flushes),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
