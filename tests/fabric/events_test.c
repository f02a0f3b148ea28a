/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events_test.c - what a device tells unasked: ends of connections, once each, to those
 * who want to know.
 */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>

static struct rbx_qp_init qp_init(struct rbx_cq *cq, bool tells_end)
{
	return (struct rbx_qp_init){
		.send_cq = cq,
		.recv_cq = cq,
		.send_depth_count = 4,
		.recv_depth_count = 4,
		.max_sge = 1,
		.served = true,
		.tells_end = tells_end,
	};
}

static bool has_event(const struct rbx_device *device, int timeout_ms)
{
	struct pollfd readable = { device->event_fd, POLLIN, 0 };

	return poll(&readable, 1, timeout_ms) == 1;
}

static void expect_no_event(struct rbx_device *device)
{
	struct rbx_device_event event;

	assert_int_equal(device->ops->get_event(device, &event), -EAGAIN);
	assert_false(has_event(device, 0));
}

static void expect_end(struct rbx_device *device, const struct rbx_qp *qp)
{
	struct rbx_device_event event;

	assert_true(has_event(device, 20000));
	assert_int_equal(device->ops->get_event(device, &event), 0);
	assert_int_equal(event.kind, RBX_DEVICE_QP_ENDED);
	assert_ptr_equal(event.qp, qp);
	assert_null(event.srq);
}

/* Ends of `pair`, of which the client's side tells. */
static void connect_one(struct test_pair *pair, bool tells_end,
			struct rbx_qp **client, struct rbx_qp **server)
{
	const struct rbx_qp_init client_init =
		qp_init(pair->client_cq, tells_end);
	const struct rbx_qp_init server_init = qp_init(pair->server_cq, false);

	test_connect(pair, &client_init, &server_init, client, server);
}

/* No receive is posted that would be flushed. */
static void end_by_the_peer_told_once_without_a_receive(void **state)
{
	struct rbx_qp *clients[2], *servers[2];
	struct test_pair pair;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 2; i++)
		connect_one(&pair, true, &clients[i], &servers[i]);
	expect_no_event(pair.client_device);
	pair.ops->disconnect(servers[1]);
	expect_end(pair.client_device, clients[1]);
	pair.ops->disconnect(clients[1]);
	expect_no_event(pair.client_device);
	pair.ops->destroy_qp(servers[0]);
	expect_end(pair.client_device, clients[0]);
	expect_no_event(pair.client_device);
	pair.ops->destroy_qp(servers[1]);
	for (i = 0; i < 2; i++)
		pair.ops->destroy_qp(clients[i]);
	expect_no_event(pair.server_device); /* it did not ask */
	test_pair_close(&pair);
}

static void own_disconnect_told(void **state)
{
	struct rbx_qp *client, *server;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	connect_one(&pair, true, &client, &server);
	pair.ops->disconnect(client);
	expect_end(pair.client_device, client);
	pair.ops->destroy_qp(client);
	pair.ops->destroy_qp(server);
	expect_no_event(pair.client_device);
	test_pair_close(&pair);
}

static void destroyed_qp_told_of_no_more(void **state)
{
	struct rbx_qp *clients[2], *servers[2];
	struct test_pair pair;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 2; i++) {
		connect_one(&pair, true, &clients[i], &servers[i]);
		pair.ops->disconnect(clients[i]);
	}
	assert_true(has_event(pair.client_device, 0));
	pair.ops->destroy_qp(clients[0]);
	expect_end(pair.client_device, clients[1]);
	expect_no_event(pair.client_device);
	pair.ops->disconnect(clients[1]);
	pair.ops->destroy_qp(clients[1]);
	expect_no_event(pair.client_device);
	for (i = 0; i < 2; i++)
		pair.ops->destroy_qp(servers[i]);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_by_the_peer_told_once_without_a_receive),
		cmocka_unit_test(own_disconnect_told),
		cmocka_unit_test(destroyed_qp_told_of_no_more),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
