/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect_test.c - how ends come together: private data, refusals, addresses
 * that are wrong, and servers that are not there or do not answer.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"

struct answer {
	struct test_pair *pair;
	bool reject;
	uint8_t heard[RBX_CONNECT_DATA_MAX];
	size_t heard_bytes;
	uint8_t reply[RBX_ACCEPT_DATA_MAX];
	size_t reply_bytes;
	bool same_host;
};

static void *answer_run(void *argument)
{
	struct answer *answer = argument;
	struct test_pair *pair = answer->pair;
	struct pollfd poller = { .fd = pair->listener->event_fd,
				 .events = POLLIN };
	struct rbx_conn_request *request;
	struct rbx_qp_init init = {
		.send_cq = pair->server_cq,
		.recv_cq = pair->server_cq,
		.send_depth_count = 4,
		.recv_depth_count = 4,
		.max_sge = 1,
		.served = true,
	};
	struct rbx_qp *qp;

	if (poll(&poller, 1, 60000) != 1)
		return NULL;
	request = test_request_wait(pair->listener);
	answer->heard_bytes = request->private_data_bytes;
	memcpy(answer->heard, request->private_data,
	       request->private_data_bytes);
	answer->same_host = request->same_host;
	if (answer->reject)
		pair->ops->reject(request, answer->reply, answer->reply_bytes);
	else if (!pair->ops->accept(request, &init, answer->reply,
				    answer->reply_bytes, &qp, NULL))
		pair->ops->destroy_qp(qp);
	return NULL;
}

static int connect_with(struct test_pair *pair, const char *address,
			struct rbx_connect_init *connect, struct rbx_qp **qp,
			char *error)
{
	struct rbx_qp_init init = {
		.send_cq = pair->client_cq,
		.recv_cq = pair->client_cq,
		.send_depth_count = 4,
		.recv_depth_count = 4,
		.max_sge = 1,
	};

	connect->address = address;
	return pair->ops->connect(pair->client_device, &init, connect, qp,
				  error);
}

/* The bytes that were given, and what the device is said to put behind them. */
static void expect_private_data(const uint8_t *heard, size_t heard_bytes,
				const uint8_t *given, size_t given_bytes,
				uint32_t delivered_bytes)
{
	size_t i;

	assert_int_equal(heard_bytes,
			 delivered_bytes ? delivered_bytes : given_bytes);
	assert_memory_equal(heard, given, given_bytes);
	for (i = given_bytes; i < heard_bytes; i++)
		assert_int_equal(heard[i], 0);
}

static void exchange(size_t there_bytes, size_t back_bytes, bool reject)
{
	uint8_t hello[RBX_CONNECT_DATA_MAX], heard[RBX_ACCEPT_DATA_MAX + 1];
	struct rbx_connect_init connect = {
		.timeout_ms = 20000,
		.private_data = hello,
		.private_data_bytes = there_bytes,
		.reply_data = heard,
		.reply_data_max_bytes = sizeof(heard),
	};
	struct test_pair pair;
	struct answer answer = {
		.pair = &pair,
		.reject = reject,
		.reply_bytes = back_bytes,
	};
	const struct rbx_device_caps *caps;
	struct rbx_qp *qp;
	pthread_t thread;

	test_fill(hello, sizeof(hello), 3);
	test_fill(answer.reply, sizeof(answer.reply), 4);
	test_pair_open(&pair, NULL);
	caps = &pair.client_device->caps;
	assert_int_equal(pthread_create(&thread, NULL, answer_run, &answer),
			 0);
	assert_int_equal(connect_with(&pair, pair.listener->address, &connect,
				      &qp, NULL), reject ? -EBUSY : 0);
	pthread_join(thread, NULL);
	expect_private_data(answer.heard, answer.heard_bytes, hello,
			    there_bytes, caps->connect_data_bytes);
	expect_private_data(heard, connect.reply_data_bytes, answer.reply,
			    back_bytes, reject ? caps->reject_data_bytes :
						 caps->accept_data_bytes);
	if (!reject)
		pair.ops->destroy_qp(qp);
	test_pair_close(&pair);
}

static void private_data_arrives_to_the_byte(void **state)
{
	(void)state;
	exchange(RBX_CONNECT_DATA_MAX, RBX_ACCEPT_DATA_MAX, false);
	exchange(RBX_CONNECT_DATA_MAX, RBX_REJECT_DATA_MAX, true);
	exchange(1, 0, false);
	exchange(0, 1, false);
	exchange(47, 48, false); /* about the shortest message of soft */
	exchange(49, 49, true);
}

static void private_data_too_long_is_einval(void **state)
{
	uint8_t bytes[RBX_CONNECT_DATA_MAX + 1] = { 0 };
	struct rbx_connect_init connect = {
		.timeout_ms = 3000,
		.private_data = bytes,
		.private_data_bytes = sizeof(bytes),
	};
	struct test_pair pair;
	struct rbx_qp *qp;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(connect_with(&pair, pair.listener->address, &connect,
				      &qp, NULL), -EINVAL);
	test_pair_close(&pair);
}

static void nobody_listens_is_an_error(void **state)
{
	struct rbx_connect_init connect = { .timeout_ms = 3000 };
	char error[RBX_ERROR_TEXT_MAX] = "";
	char address[RBX_NAME_MAX];
	struct test_pair pair;
	struct rbx_listener *other;
	struct rbx_qp *qp;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->listen(pair.server_device, test_address(),
					  &other, NULL), 0);
	memcpy(address, other->address, sizeof(address));
	pair.ops->close_listener(other);
	assert_true(connect_with(&pair, address, &connect, &qp, error) < 0);
	assert_string_not_equal(error, "");
	test_pair_close(&pair);
}

static void bad_address_is_einval(void **state)
{
	static const char *const addresses[] = {
		"", "nothing", "127.0.0.1", "127.0.0.1:", ":", "::1:80", "[::1:80",
		"host:port:more", "127.0.0.1:0", "127.0.0.1:65536",
		"127.0.0.1:73007", "127.0.0.1:-1", "127.0.0.1:80x", ":80",
	};
	struct rbx_connect_init connect = { .timeout_ms = 3000 };
	char error[RBX_ERROR_TEXT_MAX];
	struct test_pair pair;
	struct rbx_qp *qp;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		error[0] = 0;
		assert_int_equal(connect_with(&pair, addresses[i], &connect,
					      &qp, error), -EINVAL);
		assert_string_not_equal(error, "");
	}
	test_pair_close(&pair);
}

static void listener_at_a_bad_address_is_einval(void **state)
{
	static const char *const addresses[] = {
		"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
		"127.0.0.1:99999", "127.0.0.1:-1", "::1:0",
	};
	char error[RBX_ERROR_TEXT_MAX];
	struct rbx_listener *other;
	struct test_pair pair;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		error[0] = 0;
		assert_int_equal(pair.ops->listen(pair.server_device,
						  addresses[i], &other, error),
				 -EINVAL);
		assert_string_not_equal(error, "");
	}
	test_pair_close(&pair);
}

static void unanswered_request_times_out(void **state)
{
	struct rbx_connect_init connect = { .timeout_ms = 300 };
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct test_pair pair;
	struct rbx_qp *qp;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(connect_with(&pair, pair.listener->address, &connect,
				      &qp, error), -ETIMEDOUT);
	assert_string_not_equal(error, "");
	/* The listener closes with the request untaken. */
	test_pair_close(&pair);
}

static void address_in_use_is_an_error(void **state)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct test_pair pair;
	struct rbx_listener *other;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->listen(pair.client_device,
					  pair.listener->address, &other,
					  error), -EADDRINUSE);
	assert_string_not_equal(error, "");
	test_pair_close(&pair);
}

static void listener_without_requests_says_again(void **state)
{
	struct rbx_conn_request *request;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->get_request(pair.listener, &request),
			 -EAGAIN);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_arrives_to_the_byte),
		cmocka_unit_test(private_data_too_long_is_einval),
		cmocka_unit_test(nobody_listens_is_an_error),
		cmocka_unit_test(bad_address_is_einval),
		cmocka_unit_test(listener_at_a_bad_address_is_einval),
		cmocka_unit_test(unanswered_request_times_out),
		cmocka_unit_test(address_in_use_is_an_error),
		cmocka_unit_test(listener_without_requests_says_again),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
