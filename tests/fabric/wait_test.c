/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_test.c - sleeping for completions without losing one, and ends that
 * are broken or destroyed while other threads use them.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"

#define PAGE 4096u

/* A completion, by the book: poll, arm, poll, sleep, consume. */
static struct rbx_wc sleep_for(const struct test_pair *pair, struct rbx_cq *cq)
{
	struct pollfd poller = { .fd = cq->event_fd, .events = POLLIN };
	struct rbx_wc wc;

	for (;;) {
		if (pair->ops->poll(cq, &wc, 1))
			return wc;
		assert_int_equal(pair->ops->arm(cq), 0);
		if (pair->ops->poll(cq, &wc, 1))
			return wc;
		/* A minute: longer than anything but a lost wake-up. */
		assert_int_equal(poll(&poller, 1, 60000), 1);
		pair->ops->consume_events(cq);
	}
}

static void sleeping_client_wakes_for_each_completion(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 3000; i++) {
		wr = test_wr(&pair, i % 2 ? RBX_OP_READ : RBX_OP_WRITE, &sge, 0,
			     0, i % 100 ? 64 : 1 << 20);
		wr.wr_id = (uint64_t)i;
		test_post(&pair, &wr);
		struct rbx_wc wc = sleep_for(&pair, pair.client_cq);

		assert_int_equal(wc.status, 0);
		assert_int_equal(wc.wr_id, i);
	}
	test_pair_close(&pair);
}

/* Who always finds something after arming never consumes an event; the kernel of a
 * NIC keeps each until somebody does. */
static void events_of_many_arms_are_consumed_at_once(void **state)
{
	struct test_pair pair;
	struct pollfd poller;
	struct rbx_sge sge;
	struct rbx_wr wr;
	struct rbx_wc wc;

	(void)state;
	test_pair_open(&pair, NULL);
	for (int i = 0; i < 100; i++) {
		wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, 64);
		assert_int_equal(pair.ops->arm(pair.client_cq), 0);
		test_post(&pair, &wr);
		while (!pair.ops->poll(pair.client_cq, &wc, 1))
			;
		assert_int_equal(wc.status, 0);
	}
	usleep(100000); /* a completion is seen before its event */
	pair.ops->consume_events(pair.client_cq);
	poller = (struct pollfd){ .fd = pair.client_cq->event_fd,
				  .events = POLLIN };
	assert_int_equal(poll(&poller, 1, 0), 0);
	test_pair_close(&pair);
}

/* Both have come since it was armed, and a poll has taken one. */
static void what_a_poll_leaves_wakes_who_has_armed(void **state)
{
	struct rbx_sge sges[2];
	struct test_pair pair;
	struct pollfd poller;
	struct rbx_wr wrs[2];
	struct rbx_wc wc;

	(void)state;
	test_pair_open(&pair, NULL);
	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 2; j++)
			wrs[j] = test_wr(&pair, RBX_OP_WRITE, &sges[j], 0,
					 (uint64_t)j * PAGE, 64);
		wrs[0].next = &wrs[1];
		assert_int_equal(pair.ops->arm(pair.client_cq), 0);
		test_post(&pair, wrs);
		while (!pair.ops->poll(pair.client_cq, &wc, 1))
			;
		assert_int_equal(wc.status, 0);
		poller = (struct pollfd){ .fd = pair.client_cq->event_fd,
					  .events = POLLIN };
		assert_int_equal(poll(&poller, 1, 60000), 1);
		pair.ops->consume_events(pair.client_cq);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	}
	test_pair_close(&pair);
}

struct echo {
	struct test_pair *pair;
	int count;
};

/* Answers each message; sleeps in between. */
static void *echo_run(void *argument)
{
	struct echo *echo = argument;
	struct test_pair *pair = echo->pair;
	struct rbx_sge sge = { (uintptr_t)pair->target_memory + PAGE, 8,
			       pair->target_mr->lkey };
	struct rbx_wc wc;
	int i;

	for (i = 0; i < echo->count; i++) {
		do {
			wc = sleep_for(pair, pair->server_cq);
		} while (wc.opcode == RBX_OP_SEND);
		if (wc.status)
			break;
		test_post_recv(pair, pair->server, 0, pair->target_memory, PAGE,
			       pair->target_mr->lkey);
		struct rbx_wr wr = {
			.wr_id = 500,
			.sges = &sge,
			.sge_count = 1,
			.opcode = RBX_OP_SEND,
			.flags = RBX_WR_SIGNALED,
		}, *bad;

		assert_int_equal(pair->ops->post_send(pair->server, &wr, &bad),
				 0);
	}
	return NULL;
}

/* Two sleeping threads wake each other; one lost wake-up would hang both. */
static void ping_pong(bool server_polls)
{
	struct test_options options = { .server_polls = server_polls };
	struct test_pair pair;
	struct echo echo = { .pair = &pair, .count = 2000 };
	struct rbx_sge sge;
	pthread_t thread;
	struct rbx_wc wc;
	struct rbx_wr wr;
	int i;

	test_pair_open(&pair, &options);
	test_post_recv(&pair, pair.server, 0, pair.target_memory, PAGE,
		       pair.target_mr->lkey);
	test_post_recv(&pair, pair.client, 0, pair.local, PAGE,
		       pair.local_mr->lkey);
	assert_int_equal(pthread_create(&thread, NULL, echo_run, &echo), 0);
	for (i = 0; i < echo.count; i++) {
		wr = test_wr(&pair, RBX_OP_SEND, &sge, PAGE, 0, 8);
		test_post(&pair, &wr);
		do {
			wc = sleep_for(&pair, pair.client_cq);
			assert_int_equal(wc.status, 0);
		} while (wc.opcode == RBX_OP_SEND);
		test_post_recv(&pair, pair.client, 0, pair.local, PAGE,
			       pair.local_mr->lkey);
	}
	pthread_join(thread, NULL);
	test_pair_close(&pair);
}

static void sleeping_ends_served_ping_pong(void **state)
{
	(void)state;
	ping_pong(false);
}

static void sleeping_ends_polled_ping_pong(void **state)
{
	(void)state;
	ping_pong(true);
}

static void *disconnect_later(void *argument)
{
	struct test_pair *pair = argument;

	usleep(2000);
	pair->ops->disconnect(pair->client);
	return NULL;
}

static void disconnect_wakes_sleeper(void **state)
{
	struct test_pair pair;
	pthread_t thread;
	struct rbx_wc wc;
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		test_pair_open(&pair, NULL);
		test_post_recv(&pair, pair.client, 9, pair.local, PAGE,
			       pair.local_mr->lkey);
		assert_int_equal(pthread_create(&thread, NULL,
						disconnect_later, &pair), 0);
		wc = sleep_for(&pair, pair.client_cq);
		assert_int_equal(wc.status, -ECANCELED);
		assert_int_equal(wc.wr_id, 9);
		pthread_join(thread, NULL);
		test_pair_close(&pair);
	}
}

struct racer {
	struct test_pair *pair;
	atomic_bool stop;
	atomic_uint posted;
};

static void *poster_run(void *argument)
{
	struct racer *racer = argument;
	struct test_pair *pair = racer->pair;
	struct rbx_sge sges[4];
	struct rbx_wr wrs[4], *bad;
	int i, err;

	while (!atomic_load(&racer->stop)) {
		for (i = 0; i < 4; i++) {
			wrs[i] = test_wr(pair, i % 2 ? RBX_OP_READ :
					 RBX_OP_WRITE, &sges[i],
					 (uint64_t)i * PAGE,
					 (uint64_t)i * PAGE, PAGE);
			wrs[i].next = i < 3 ? &wrs[i + 1] : NULL;
		}
		bad = NULL;
		err = pair->ops->post_send(pair->client, wrs, &bad);
		if (err && err != -ENOMEM)
			abort();
		atomic_fetch_add(&racer->posted, err ? (unsigned int)
				 (bad - wrs) : 4);
	}
	return NULL;
}

/* One thread posts, one polls, one disconnects; each post completes once. */
static void disconnect_races_with_post_and_poll(void **state)
{
	struct test_pair pair;
	struct racer racer = { .pair = &pair };
	pthread_t poster, breaker;
	struct rbx_wc wcs[16];
	uint64_t deadline_ms;
	unsigned int seen;
	bool failed;
	int i, n, round;

	(void)state;
	for (round = 0; round < 30; round++) {
		test_pair_open(&pair, NULL);
		atomic_store(&racer.stop, false);
		atomic_store(&racer.posted, 0);
		seen = 0;
		failed = false;
		assert_int_equal(pthread_create(&poster, NULL, poster_run,
						&racer), 0);
		assert_int_equal(pthread_create(&breaker, NULL,
						disconnect_later, &pair), 0);
		deadline_ms = test_now_ms() + 60000;
		while (!failed && test_now_ms() < deadline_ms) {
			n = pair.ops->poll(pair.client_cq, wcs, 16);
			for (i = 0; i < n; i++) {
				assert_true(wcs[i].status == 0 ||
					    wcs[i].status == -ECANCELED);
				assert_false(failed && !wcs[i].status);
				failed |= wcs[i].status != 0;
			}
			seen += (unsigned int)n;
		}
		atomic_store(&racer.stop, true);
		pthread_join(poster, NULL);
		pthread_join(breaker, NULL);
		while (seen < atomic_load(&racer.posted) &&
		       test_now_ms() < deadline_ms)
			seen += (unsigned int)pair.ops->poll(pair.client_cq,
							     wcs, 16);
		assert_true(failed);
		assert_int_equal(seen, atomic_load(&racer.posted));
		test_nothing(&pair, pair.client_cq);
		test_pair_close(&pair);
	}
}

static void *poller_run(void *argument)
{
	struct racer *racer = argument;
	struct rbx_wc wcs[4];

	while (!atomic_load(&racer->stop))
		racer->pair->ops->poll(racer->pair->client_cq, wcs, 4);
	return NULL;
}

/* Destroying an end with work outstanding, beside a thread that polls. */
static void destroy_races_with_poll_and_peer(void **state)
{
	struct test_pair pair;
	struct racer racer = { .pair = &pair };
	struct rbx_sge sges[32];
	struct rbx_wr wrs[32], *bad;
	struct rbx_wc wc;
	pthread_t poller;
	int i, round;

	(void)state;
	for (round = 0; round < 60; round++) {
		test_pair_open(&pair, NULL);
		atomic_store(&racer.stop, false);
		for (i = 0; i < 32; i++) {
			wrs[i] = test_wr(&pair, i % 2 ? RBX_OP_READ :
					 RBX_OP_WRITE, &sges[i],
					 (uint64_t)i * PAGE,
					 (uint64_t)i * PAGE, PAGE);
			wrs[i].next = i < 31 ? &wrs[i + 1] : NULL;
		}
		assert_int_equal(pthread_create(&poller, NULL, poller_run,
						&racer), 0);
		assert_int_equal(pair.ops->post_send(pair.client, wrs, &bad),
				 0);
		if (round % 3 == 0)
			pair.ops->disconnect(pair.server);
		if (round % 3 == 1) {
			pair.ops->destroy_qp(pair.server);
			pair.server = NULL;
		}
		pair.ops->destroy_qp(pair.client);
		atomic_store(&racer.stop, true);
		pthread_join(poller, NULL);
		while (pair.ops->poll(pair.client_cq, &wc, 1))
			assert_ptr_not_equal(wc.qp, pair.client);
		pair.client = NULL;
		test_pair_close(&pair);
	}
}

/* Several ends on one queue: more than a poll looks at one by one. */
static void many_qps_on_one_cq_all_complete(void **state)
{
	enum { QPS = 12 };
	struct rbx_qp_init client_init = { .send_depth_count = 16,
					   .recv_depth_count = 1,
					   .max_sge = 1 }, server_init;
	struct rbx_qp *clients[QPS], *servers[QPS], *first;
	struct test_pair pair;
	uint32_t seen[QPS] = { 0 };
	struct rbx_sge sge;
	struct rbx_wr wr;
	int i, round;

	(void)state;
	test_pair_open(&pair, NULL);
	first = pair.client;
	client_init.send_cq = client_init.recv_cq = pair.client_cq;
	server_init = client_init;
	server_init.send_cq = server_init.recv_cq = pair.server_cq;
	server_init.served = true;
	for (i = 0; i < QPS; i++)
		test_connect(&pair, &client_init, &server_init, &clients[i],
			     &servers[i]);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < QPS; i++) {
			pair.client = clients[i];
			wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0,
				     (uint64_t)i * PAGE, PAGE);
			wr.wr_id = (uint64_t)i;
			test_post(&pair, &wr);
		}
		for (i = 0; i < QPS; i++) {
			struct rbx_wc wc = sleep_for(&pair, pair.client_cq);

			assert_int_equal(wc.status, 0);
			assert_ptr_equal(wc.qp, clients[wc.wr_id]);
			seen[wc.wr_id]++;
		}
	}
	for (i = 0; i < QPS; i++) {
		assert_int_equal(seen[i], 50);
		pair.ops->destroy_qp(clients[i]);
		pair.ops->destroy_qp(servers[i]);
	}
	pair.client = first;
	test_pair_close(&pair);
}

/* Receives have a queue of their own, and only that one is slept on. */
static void separate_receive_queue_wakes_its_sleeper(void **state)
{
	struct rbx_qp_init client_init = { .send_depth_count = 16,
					   .recv_depth_count = 4,
					   .max_sge = 1 }, server_init;
	struct rbx_qp *client, *server;
	struct test_pair pair;
	struct rbx_cq *recv_cq;
	struct rbx_wc wc;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->create_cq(pair.client_device, 16, &recv_cq,
					     NULL), 0);
	client_init.send_cq = pair.client_cq;
	client_init.recv_cq = pair.client_cq;
	server_init = client_init;
	server_init.send_cq = server_init.recv_cq = pair.server_cq;
	server_init.served = true;
	client_init.recv_cq = recv_cq;
	test_connect(&pair, &client_init, &server_init, &client, &server);
	for (i = 0; i < 500; i++) {
		struct rbx_wr wr = { .opcode = RBX_OP_SEND,
				     .flags = RBX_WR_SIGNALED }, *bad;

		test_post_recv(&pair, client, (uint64_t)i, pair.local, PAGE,
			       pair.local_mr->lkey);
		assert_int_equal(pair.ops->post_send(server, &wr, &bad), 0);
		wc = sleep_for(&pair, recv_cq);
		assert_int_equal(wc.status, 0);
		assert_int_equal(wc.wr_id, i);
		assert_ptr_equal(wc.qp, client);
		assert_int_equal(test_wait(&pair, pair.server_cq).status, 0);
	}
	pair.ops->destroy_qp(client);
	pair.ops->destroy_qp(server);
	pair.ops->destroy_cq(recv_cq);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeping_client_wakes_for_each_completion),
		cmocka_unit_test(events_of_many_arms_are_consumed_at_once),
		cmocka_unit_test(what_a_poll_leaves_wakes_who_has_armed),
		cmocka_unit_test(sleeping_ends_served_ping_pong),
		cmocka_unit_test(sleeping_ends_polled_ping_pong),
		cmocka_unit_test(disconnect_wakes_sleeper),
		cmocka_unit_test(disconnect_races_with_post_and_poll),
		cmocka_unit_test(destroy_races_with_poll_and_peer),
		cmocka_unit_test(separate_receive_queue_wakes_its_sleeper),
		cmocka_unit_test(many_qps_on_one_cq_all_complete),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
