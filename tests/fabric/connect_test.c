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
	uint8_t heard[RBX_PRIVATE_DATA_MAX];
	size_t heard_bytes;
	bool same_host;
};

static const uint8_t reply[] = "the answer";

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
		pair->ops->reject(request, reply, sizeof(reply));
	else if (!pair->ops->accept(request, &init, reply, sizeof(reply), &qp,
				    NULL))
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

static void private_data_goes_both_ways(void **state)
{
	uint8_t hello[RBX_PRIVATE_DATA_MAX], heard[RBX_PRIVATE_DATA_MAX];
	struct rbx_connect_init connect = {
		.timeout_ms = 20000,
		.private_data = hello,
		.private_data_bytes = sizeof(hello),
		.reply_data = heard,
		.reply_data_max_bytes = sizeof(heard),
	};
	struct test_pair pair;
	struct answer answer = { .pair = &pair };
	struct rbx_qp *qp;
	pthread_t thread;
	int rejected;

	(void)state;
	test_fill(hello, sizeof(hello), 3);
	for (rejected = 0; rejected < 2; rejected++) {
		test_pair_open(&pair, NULL);
		answer.reject = rejected;
		memset(heard, 0, sizeof(heard));
		assert_int_equal(pthread_create(&thread, NULL, answer_run,
						&answer), 0);
		assert_int_equal(connect_with(&pair, pair.listener->address,
					      &connect, &qp, NULL),
				 rejected ? -ECONNREFUSED : 0);
		pthread_join(thread, NULL);
		assert_int_equal(answer.heard_bytes, sizeof(hello));
		assert_memory_equal(answer.heard, hello, sizeof(hello));
		/* A NIC may hand over more bytes than were given: padding. */
		assert_true(connect.reply_data_bytes >= sizeof(reply));
		assert_memory_equal(heard, reply, sizeof(reply));
		if (!rejected)
			pair.ops->destroy_qp(qp);
		test_pair_close(&pair);
	}
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
		"host:port:more",
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
		cmocka_unit_test(private_data_goes_both_ways),
		cmocka_unit_test(nobody_listens_is_an_error),
		cmocka_unit_test(bad_address_is_einval),
		cmocka_unit_test(unanswered_request_times_out),
		cmocka_unit_test(address_in_use_is_an_error),
		cmocka_unit_test(listener_without_requests_says_again),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
