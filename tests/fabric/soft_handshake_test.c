/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_handshake_test.c - connections to the soft device that say their hello, say it
 * wrong, or say nothing; none of them is in the way of others.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "fabric/soft/connect.h"
#include "fabric/soft/device.h"
#include "fabric/soft/limits.h"
#include "tests/fabric/bare_socket.h"

static void garbage_handshake_closed(void **state)
{
	uint8_t garbage[SOFT_HELLO_MAX_BYTES];
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
	struct test_pair pair;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = socket_open(pair.listener);
	hello_send(fd, &hello);
	hello_hear(fd, &hello);
	assert_int_equal(hello.version, SOFT_VERSION);
	assert_int_equal(hello.type, SOFT_REJECT);
	assert_true(socket_is_closed(fd));
	close(fd);
	test_pair_close(&pair);
}

/* All messages of version 2 had 64 bytes, and its peers wait for as many. */
static void version_two_peer_is_told_ours_in_its_own_length(void **state)
{
	uint8_t bytes[64] = { 'R', 'B', 'X', 'S', 2, 0, SOFT_HELLO, 48, 8 };
	struct test_pair pair;
	int fd;

	(void)state;
	memset(bytes + 16, 0xff, 48);
	test_pair_open(&pair, NULL);
	fd = socket_open(pair.listener);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL),
			 sizeof(bytes));
	assert_int_equal(bytes[4], SOFT_VERSION);
	assert_true(socket_is_closed(fd));
	close(fd);
	test_pair_close(&pair);
}

/* Bytes that are none of our protocols', one at a time, both ways. */
static void foreign_private_data_arrives_to_the_byte(void **state)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.private_bytes = RBX_CONNECT_DATA_MAX,
		.send_depth_count = 8,
	};
	uint8_t back[RBX_REJECT_DATA_MAX];
	struct rbx_conn_request *request;
	struct soft_wire_hello wire;
	struct test_pair pair;
	size_t bytes, i;
	int fd;

	(void)state;
	memset(hello.private_data, 0xff, RBX_CONNECT_DATA_MAX);
	test_fill(back, sizeof(back), 5);
	test_pair_open(&pair, NULL);
	fd = socket_open(pair.listener);
	bytes = soft_hello_encode(&hello, &wire);
	for (i = 0; i < bytes; i++)
		assert_int_equal(send(fd, (uint8_t *)&wire + i, 1, 0), 1);
	request = test_request_wait(pair.listener);
	assert_int_equal(request->private_data_bytes, RBX_CONNECT_DATA_MAX);
	assert_memory_equal(request->private_data, hello.private_data,
			    RBX_CONNECT_DATA_MAX);
	pair.ops->reject(request, back, sizeof(back));
	hello_hear(fd, &hello);
	assert_int_equal(hello.type, SOFT_REJECT);
	assert_int_equal(hello.private_bytes, sizeof(back));
	assert_memory_equal(hello.private_data, back, sizeof(back));
	close(fd);
	test_pair_close(&pair);
}

static void private_data_beyond_the_limit_closed(void **state)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.private_bytes = RBX_CONNECT_DATA_MAX + 1,
		.send_depth_count = 8,
	};
	struct test_pair pair;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = socket_open(pair.listener);
	hello_send(fd, &hello);
	assert_true(socket_is_closed(fd));
	close(fd);
	test_pair_close(&pair);
}

/* A crowd of silent connections does not keep out one that speaks. */
/* So many were accepted, and have said nothing yet. */
static void half_open_wait(const struct test_pair *pair, uint32_t count)
{
	const struct soft_device *device = soft_device_of(pair->listener->device);

	while (atomic_load(&device->listeners.waiting_count) < count)
		usleep(500);
}

static void silent_half_open_connections_make_room(void **state)
{
	int fds[SOFT_HALF_OPEN_OF_SOURCE_MAX];
	struct test_pair pair;
	uint64_t begin_ms;
	struct rbx_qp *qp;
	size_t i;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	begin_ms = test_now_ms();
	for (i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		fds[i] = socket_open(pair.listener);
	half_open_wait(&pair, sizeof(fds) / sizeof(*fds));
	usleep(SOFT_HALF_OPEN_UNDISTURBED_MS * 1000);
	fd = hostile_connect(&pair, &qp);
	assert_true(socket_is_closed(fds[0]));
	/* Not because its time was up. */
	assert_true(test_now_ms() - begin_ms < SOFT_HANDSHAKE_MS);
	close(fd);
	for (i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		close(fds[i]);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

#define CROWD_COUNT (2 * SOFT_HALF_OPEN_MAX)

/* They say nothing, and so many of them have been crowded out by then. */
static void crowd_wait(struct rbx_listener *listener, uint64_t crowded_out_count)
{
	uint64_t deadline_ms = test_now_ms() + 60000;

	while (listener->crowded_out_count < crowded_out_count) {
		assert_true(test_now_ms() < deadline_ms);
		usleep(500);
	}
}

static void slow_one_is_heard(struct test_pair *pair, int slow)
{
	struct soft_hello hello = { .version = SOFT_VERSION,
				    .type = SOFT_HELLO,
				    .send_depth_count = 8 };

	hello_send(slow, &hello);
	pair->ops->reject(test_request_wait(pair->listener), NULL, 0);
	hello_hear(slow, &hello);
	assert_int_equal(hello.type, SOFT_REJECT);
	close(slow);
}

/* It connects, and others crowd in before it has said its hello. */
static void crowd_of_one_source_throws_no_other_out(void **state)
{
	int fds[CROWD_COUNT], slow = -1;
	struct test_pair pair;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < CROWD_COUNT; i++) {
		if (i == CROWD_COUNT / 2)
			slow = socket_open(pair.listener);
		fds[i] = socket_open_from(pair.listener, 2);
	}
	crowd_wait(pair.listener, CROWD_COUNT - SOFT_HALF_OPEN_OF_SOURCE_MAX);
	slow_one_is_heard(&pair, slow);
	for (i = 0; i < CROWD_COUNT; i++)
		close(fds[i]);
	test_pair_close(&pair);
}

/* Two sources have all places, and have come just before. */
static void crowds_of_two_sources_keep_no_other_out(void **state)
{
	int fds[CROWD_COUNT], slow;
	struct test_pair pair;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < CROWD_COUNT; i++)
		fds[i] = socket_open_from(pair.listener, 2 + i % 2);
	slow = socket_open(pair.listener);
	crowd_wait(pair.listener, CROWD_COUNT - 2 * SOFT_HALF_OPEN_OF_SOURCE_MAX + 1);
	slow_one_is_heard(&pair, slow);
	for (i = 0; i < CROWD_COUNT; i++)
		close(fds[i]);
	test_pair_close(&pair);
}

static void silent_half_open_connection_is_closed(void **state)
{
	struct test_pair pair;
	uint64_t begin_ms;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	begin_ms = test_now_ms();
	fd = socket_open(pair.listener);
	assert_true(socket_is_closed(fd)); /* it waits for half a minute */
	assert_true(test_now_ms() - begin_ms + 100 >= SOFT_HANDSHAKE_MS);
	close(fd);
	expect_served(&pair);
	test_pair_close(&pair);
}

static void *door_slam(void *listening)
{
	int fd = accept(*(int *)listening, NULL, NULL);
	uint8_t bytes[SOFT_HELLO_MIN_BYTES];

	recv(fd, bytes, sizeof(bytes), MSG_WAITALL);
	close(fd);
	return NULL;
}

/* As one does that has too many connections. It may be asked again
 * (core/reject.h). */
static void connection_that_is_closed_before_the_answer_is_refused(void **state)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	struct rbx_connect_init connect = { .timeout_ms = 30000 };
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t name_bytes = sizeof(name);
	char address[32], error[RBX_ERROR_TEXT_MAX];
	struct test_pair pair;
	pthread_t thread;
	struct rbx_qp *qp;

	(void)state;
	test_pair_open(&pair, NULL);
	const struct rbx_qp_init init = {
		.send_cq = pair.client_cq, .recv_cq = pair.client_cq,
		.send_depth_count = 4, .recv_depth_count = 4, .max_sge = 1,
	};

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listening, (struct sockaddr *)&name, name_bytes), 0);
	assert_int_equal(listen(listening, 1), 0);
	getsockname(listening, (struct sockaddr *)&name, &name_bytes);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(name.sin_port));
	connect.address = address;
	pthread_create(&thread, NULL, door_slam, &listening);
	assert_int_equal(pair.ops->connect(pair.client_device, &init, &connect, &qp,
					   error), -EBUSY);
	assert_non_null(strstr(error, "without an answer"));
	pthread_join(thread, NULL);
	close(listening);
	test_pair_close(&pair);
}

/* As it is seen on this machine, if it is closed before we have said anything. */
static void socket_that_is_closed_before_we_speak_is_reset(void **state)
{
	const struct soft_hello hello = { .version = SOFT_VERSION,
					  .type = SOFT_HELLO,
					  .send_depth_count = 8 };
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	close(fds[1]);
	assert_int_equal(soft_hello_send(fds[0], NULL, &hello), -ECONNRESET);
	close(fds[0]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_handshake_closed),
		cmocka_unit_test(other_version_told_ours),
		cmocka_unit_test(version_two_peer_is_told_ours_in_its_own_length),
		cmocka_unit_test(foreign_private_data_arrives_to_the_byte),
		cmocka_unit_test(private_data_beyond_the_limit_closed),
		cmocka_unit_test(silent_half_open_connections_make_room),
		cmocka_unit_test(crowd_of_one_source_throws_no_other_out),
		cmocka_unit_test(crowds_of_two_sources_keep_no_other_out),
		cmocka_unit_test(silent_half_open_connection_is_closed),
		cmocka_unit_test(
			connection_that_is_closed_before_the_answer_is_refused),
		cmocka_unit_test(socket_that_is_closed_before_we_speak_is_reset),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
