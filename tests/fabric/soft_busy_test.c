/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_busy_test.c - a poll that finds another thread with the qp leaves it the CPU; and
 * one cq for qps that come and go.
 *
 * This program has a sched_yield() of its own, which stands in for that of the C
 * library and counts. What the other thread would hold, the test holds.
 */
#include <sched.h>
#include <unistd.h>

#include "endpoint.h"
#include "fabric/soft/queue_pair.h"

static _Thread_local int yield_count;

int sched_yield(void)
{
	yield_count++;
	return 0;
}

static void poll_of_a_qp_in_use_yields(void **state)
{
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	soft_qp_lock(soft_qp_of(pair.client));
	yield_count = 0;
	test_nothing(&pair, pair.client_cq);
	assert_true(yield_count > 0);
	soft_qp_unlock(soft_qp_of(pair.client));
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 64), 0);
	test_pair_close(&pair);
}

#define DEPTH 1900u

static bool all_is_done(struct soft_qp *qp)
{
	bool is_done;

	soft_qp_lock(qp);
	is_done = qp->send_done == qp->send_posted;
	soft_qp_unlock(qp);
	return is_done;
}

static void make_full(struct test_pair *pair, struct rbx_qp **client,
		      struct rbx_qp **server)
{
	const struct rbx_qp_init init = {
		.send_cq = pair->client_cq,
		.recv_cq = pair->client_cq,
		.send_depth_count = DEPTH,
		.recv_depth_count = 1,
		.max_sge = 1,
		.served = true,
	};
	struct rbx_qp_init there = init;
	struct rbx_sge sge;
	struct rbx_wr *bad;

	there.send_cq = there.recv_cq = pair->server_cq;
	test_connect(pair, &init, &there, client, server);
	for (uint64_t i = 0; i < DEPTH; i++) {
		struct rbx_wr wr = test_wr(pair, RBX_OP_WRITE, &sge, 0, 0, 8);

		wr.wr_id = i;
		assert_int_equal(pair->ops->post_send(*client, &wr, &bad), 0);
	}
	while (!all_is_done(soft_qp_of(*client)))
		usleep(1000);
}

/* What a destroyed qp has left in the queue keeps its room until it is polled. */
static void queue_with_what_a_destroyed_qp_left_has_room(void **state)
{
	struct rbx_qp *client, *server;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	make_full(&pair, &client, &server);
	pair.ops->destroy_qp(client);
	pair.ops->destroy_qp(server);
	make_full(&pair, &client, &server);
	for (uint64_t i = 0; i < DEPTH; i++) {
		struct rbx_wc wc = test_wait(&pair, pair.client_cq);

		assert_int_equal(wc.status, 0);
		assert_int_equal(wc.wr_id, i);
	}
	test_nothing(&pair, pair.client_cq);
	pair.ops->destroy_qp(client);
	pair.ops->destroy_qp(server);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll_of_a_qp_in_use_yields),
		cmocka_unit_test(queue_with_what_a_destroyed_qp_left_has_room),
	};

	return test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
