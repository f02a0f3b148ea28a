/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_world.c - the world of endpoint.h for fabrics of this machine: real
 * time, and a thread that accepts.
 *
 * Waiting polls both ends' queues where needed and gives up after a time that
 * only a hang can take.
 */
#include "endpoint.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000

const char *test_fabric;

uint64_t test_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const char *test_address(void)
{
	const char *address = getenv("RBX_TEST_ADDRESS");

	return address ? address : "127.0.0.1:0";
}

const struct rbx_fabric_ops *test_ops(void)
{
#ifdef RBX_HAVE_VERBS
	if (!strcmp(test_fabric, "verbs"))
		return &rbx_fabric_verbs;
#endif
	return &rbx_fabric_soft;
}

struct rbx_device *test_device_open(void)
{
	static const struct rbx_tls_key key = { "test:1", { 1, 2, 3 } };
	struct rbx_device_options options = {
		.gid_index = -1,
		.same_host_mapping = !strcmp(test_fabric, "soft"),
		.tls = strcmp(test_fabric, "soft:tls") ? RBX_TLS_NEVER : RBX_TLS_ALWAYS,
		.tls_key = &key,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_device *device;

	if (test_ops()->open(&options, &device, error))
		fail_msg("open: %s", error);
	return device;
}

struct rbx_conn_request *test_request_wait(struct rbx_listener *listener)
{
	uint64_t deadline_ms = test_now_ms() + PATIENCE_MS;
	struct rbx_conn_request *request;

	while (listener->device->ops->get_request(listener, &request)) {
		if (test_now_ms() > deadline_ms)
			fail_msg("no connection request came");
		usleep(500);
	}
	return request;
}

struct acceptor {
	struct test_pair *pair;
	const struct rbx_qp_init *init;
	struct rbx_qp **qp;
	int err;
};

static void *acceptor_run(void *argument)
{
	struct acceptor *acceptor = argument;
	struct test_pair *pair = acceptor->pair;
	struct rbx_conn_request *request = test_request_wait(pair->listener);

	acceptor->err = pair->ops->accept(request, acceptor->init, NULL, 0,
					  acceptor->qp, NULL);
	return NULL;
}

void test_connect(struct test_pair *pair, const struct rbx_qp_init *client_init,
		  const struct rbx_qp_init *server_init, struct rbx_qp **client,
		  struct rbx_qp **server)
{
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = 20000,
	};
	struct acceptor acceptor = { pair, server_init, server, 0 };
	char error[RBX_ERROR_TEXT_MAX] = "";
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, acceptor_run, &acceptor),
			 0);
	if (pair->ops->connect(pair->client_device, client_init, &connect,
			       client, error))
		fail_msg("connect: %s", error);
	pthread_join(thread, NULL);
	assert_int_equal(acceptor.err, 0);
}

struct rbx_wc test_wait(const struct test_pair *pair, struct rbx_cq *cq)
{
	uint64_t deadline_ms = test_now_ms() + PATIENCE_MS;
	struct rbx_wc wc;
	uint32_t round;

	for (round = 1; !pair->ops->poll(cq, &wc, 1); round++) {
		/* An end that nobody serves works when it is polled. */
		if (cq != pair->client_cq)
			pair->ops->poll(pair->client_cq, &wc, 0);
		else if (pair->server_polls)
			pair->ops->poll(pair->server_cq, &wc, 0);
		if (round % 1024 == 0 && test_now_ms() > deadline_ms)
			fail_msg("no completion came");
	}
	return wc;
}

int test_run(const struct CMUnitTest *tests, size_t count)
{
	const char *chosen = getenv("RBX_TEST_FABRIC");
	static const char *const soft[] = { "soft", "soft:tcp" };
	int failed = 0;
	size_t i;

	test_fabric = chosen;
	if (chosen)
		return _cmocka_run_group_tests(chosen, tests, count, NULL, NULL);
	for (i = 0; i < 2; i++) {
		test_fabric = soft[i];
		failed += _cmocka_run_group_tests(test_fabric, tests, count,
						  NULL, NULL);
	}
	return failed;
}
