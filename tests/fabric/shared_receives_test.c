/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_receives_test.c - receives that several connections take from: each message
 * finds one, whole and told of on its own connection, whoever else comes and goes.
 */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define QPS 6
#define DEPTH 16
#define BYTES 3000u

struct world {
	struct test_pair pair;
	struct rbx_srq *srq; /* of the server */
	struct rbx_qp *clients[QPS], *servers[QPS];
};

static void connect_one(struct world *world, int which)
{
	struct test_pair *pair = &world->pair;
	const struct rbx_qp_init client = {
		.send_cq = pair->client_cq,
		.recv_cq = pair->client_cq,
		.send_depth_count = 16,
		.recv_depth_count = 1,
		.max_sge = 1,
	};
	const struct rbx_qp_init server = {
		.send_cq = pair->server_cq,
		.recv_cq = pair->server_cq,
		.send_depth_count = 4,
		.recv_depth_count = 4, /* ignored */
		.max_sge = 1,
		.srq = world->srq,
		.served = true,
		.tells_end = true,
	};

	test_connect(pair, &client, &server, &world->clients[which],
		     &world->servers[which]);
}

static void world_open(struct world *world)
{
	struct rbx_srq_init init = { .depth_count = DEPTH, .max_sge = 2 };
	int i;

	memset(world, 0, sizeof(*world));
	test_pair_open(&world->pair, NULL);
	init.cq = world->pair.server_cq;
	init.user = world;
	assert_int_equal(world->pair.ops->create_srq(world->pair.server_device,
						     &init, &world->srq, NULL),
			 0);
	assert_ptr_equal(world->srq->user, world);
	for (i = 0; i < QPS; i++)
		connect_one(world, i);
}

static void drop(struct world *world, int which)
{
	const struct rbx_fabric_ops *ops = world->pair.ops;

	if (world->clients[which])
		ops->destroy_qp(world->clients[which]);
	if (world->servers[which])
		ops->destroy_qp(world->servers[which]);
	world->clients[which] = world->servers[which] = NULL;
}

static void world_close(struct world *world)
{
	int i;

	for (i = 0; i < QPS; i++)
		drop(world, i);
	world->pair.ops->destroy_srq(world->srq);
	test_pair_close(&world->pair);
}

/* The place of a receive in the server's memory, by its wr_id. */
static uint64_t place_of(uint64_t wr_id)
{
	return wr_id % 256 * 4096;
}

static int receive_post(struct world *world, uint64_t wr_id, uint32_t length_bytes)
{
	const struct rbx_sge sges[2] = {
		{ (uintptr_t)world->pair.target_memory + place_of(wr_id),
		  length_bytes / 2, world->pair.target_mr->lkey },
		{ (uintptr_t)world->pair.target_memory + place_of(wr_id) +
			  length_bytes / 2,
		  length_bytes - length_bytes / 2, world->pair.target_mr->lkey },
	};
	struct rbx_recv_wr wr = { .wr_id = wr_id, .sges = sges, .sge_count = 2 };
	struct rbx_recv_wr *bad = NULL;
	int err = world->pair.ops->post_srq_recv(world->srq, &wr, &bad);

	assert_ptr_equal(bad, err ? &wr : NULL);
	return err;
}

/* Its bytes are those of the seed. */
static void message_post(struct world *world, int which, uint32_t seed)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(&world->pair, RBX_OP_SEND, &sge,
				   seed % 1024 * 4096, 0, BYTES);
	struct rbx_wr *bad;

	wr.wr_id = seed;
	wr.flags |= RBX_WR_IMMEDIATE;
	wr.immediate = seed;
	test_fill(world->pair.local + seed % 1024 * 4096, BYTES, seed);
	assert_int_equal(world->pair.ops->post_send(world->clients[which], &wr,
						    &bad), 0);
}

static int which_of(const struct world *world, const struct rbx_qp *qp)
{
	int which = 0;

	while (which < QPS && world->servers[which] != qp)
		which++;
	assert_true(which < QPS);
	return which;
}

/* The next message is whole; returns its seed. */
static uint32_t message_expect(struct world *world, int *which, uint64_t *wr_id)
{
	struct rbx_wc wc = test_wait(&world->pair, world->pair.server_cq);
	uint8_t wanted[BYTES];

	assert_int_equal(wc.status, 0);
	assert_int_equal(wc.opcode, RBX_OP_RECV);
	assert_int_equal(wc.length_bytes, BYTES);
	assert_int_equal(wc.flags, RBX_WC_IMMEDIATE);
	test_fill(wanted, BYTES, wc.immediate);
	assert_memory_equal(world->pair.target + place_of(wc.wr_id), wanted,
			    BYTES);
	*which = which_of(world, wc.qp);
	*wr_id = wc.wr_id;
	return wc.immediate;
}

static void sent_expect(struct world *world, int which, uint32_t seed, int status)
{
	struct rbx_wc wc = test_wait(&world->pair, world->pair.client_cq);

	assert_int_equal(wc.wr_id, seed);
	assert_int_equal(wc.status, status);
	assert_ptr_equal(wc.qp, world->clients[which]);
}

/* More than there are receives, if those who wait have them in turn. A NIC gives a receive
 * to whoever comes just then, and ends who has come too often in vain. */
static int outstanding_most(const struct world *world)
{
	return strcmp(world->pair.ops->name, "verbs") ? 12 : 5;
}

static void messages_of_many_whole_and_in_order_of_each(void **state)
{
	uint32_t sent_count[QPS] = { 0 }, come_count[QPS] = { 0 };
	int outstanding = 0, unacknowledged = 0, posted = 0, come = 0, which;
	struct world world;
	uint64_t wr_id = 0;
	struct rbx_wc wc;
	uint32_t seed;

	(void)state;
	world_open(&world);
	for (; posted < 5; posted++)
		assert_int_equal(receive_post(&world, (uint64_t)posted, BYTES), 0);
	while (come < 600) {
		/* Unevenly: some send much, others now and then. */
		which = rand() % (1 + rand() % QPS);
		if (outstanding < outstanding_most(&world)) {
			/* What has come may not be acknowledged yet. */
			while (unacknowledged == 12)
				unacknowledged -= world.pair.ops->poll(
					world.pair.client_cq, &wc, 1);
			unacknowledged++;
			message_post(&world, which,
				     (uint32_t)which * 100 +
					     sent_count[which]++ % 100);
			outstanding++;
			continue;
		}
		seed = message_expect(&world, &which, &wr_id);
		assert_int_equal(seed, (uint32_t)which * 100 +
					       come_count[which]++ % 100);
		assert_int_equal(receive_post(&world, wr_id, BYTES), 0);
		outstanding--;
		come++;
		while (world.pair.ops->poll(world.pair.client_cq, &wc, 1)) {
			assert_int_equal(wc.status, 0);
			unacknowledged--;
		}
	}
	world_close(&world);
}

/* All receives go to whoever sends: none is kept for those who do not. */
static void last_receive_taken_by_any(void **state)
{
	struct world world;
	uint64_t wr_id;
	uint32_t i;
	int which;

	(void)state;
	world_open(&world);
	for (i = 0; i < 8; i++)
		assert_int_equal(receive_post(&world, i, BYTES), 0);
	message_post(&world, 0, 1);
	assert_int_equal(message_expect(&world, &which, &wr_id), 1);
	sent_expect(&world, 0, 1, 0);
	for (i = 0; i < 7; i++)
		message_post(&world, 1, 10 + i);
	for (i = 0; i < 7; i++) {
		assert_int_equal(message_expect(&world, &which, &wr_id), 10 + i);
		assert_int_equal(which, 1);
		assert_int_equal(wr_id, 1 + i);
		sent_expect(&world, 1, 10 + i, 0);
	}
	world_close(&world);
}

static void message_without_a_receive_waits_for_one(void **state)
{
	struct world world;
	uint64_t wr_id;
	uint32_t i;
	int which;

	(void)state;
	world_open(&world);
	for (i = 0; i < 3; i++)
		message_post(&world, (int)i, i);
	usleep(100000);
	test_nothing(&world.pair, world.pair.server_cq);
	test_nothing(&world.pair, world.pair.client_cq);
	for (i = 0; i < 3; i++)
		assert_int_equal(receive_post(&world, i, BYTES), 0);
	for (i = 0; i < 3; i++)
		(void)message_expect(&world, &which, &wr_id);
	world_close(&world);
}

static void message_that_waits_too_long_fails(void **state)
{
	struct world world;
	uint64_t wr_id;
	int which;

	(void)state;
	world_open(&world);
	message_post(&world, 2, 7);
	sent_expect(&world, 2, 7, -ENOBUFS);
	/* And does no harm to others. */
	assert_int_equal(receive_post(&world, 1, BYTES), 0);
	message_post(&world, 3, 8);
	assert_int_equal(message_expect(&world, &which, &wr_id), 8);
	assert_int_equal(which, 3);
	world_close(&world);
}

static void ends_of_some_leave_the_receives_to_others(void **state)
{
	struct world world;
	uint64_t wr_id = 0;
	uint32_t seed = 0;
	int round, which, i;

	(void)state;
	world_open(&world);
	for (i = 0; i < 4; i++)
		assert_int_equal(receive_post(&world, (uint64_t)i, BYTES), 0);
	for (round = 0; round < 12; round++) {
		int gone = 1 + round % (QPS - 1);

		for (i = 0; i < 3; i++)
			message_post(&world, 0, ++seed);
		if (round % 2)
			world.pair.ops->disconnect(world.servers[gone]);
		drop(&world, gone);
		connect_one(&world, gone);
		message_post(&world, gone, 900);
		for (i = 0; i < 4; i++) {
			uint32_t come = message_expect(&world, &which, &wr_id);

			assert_int_equal(which, come == 900 ? gone : 0);
			assert_int_equal(receive_post(&world, wr_id, BYTES), 0);
		}
		for (i = 0; i < 4; i++)
			assert_int_equal(test_wait(&world.pair,
						   world.pair.client_cq).status, 0);
	}
	world_close(&world);
}

static void receive_nobody_was_told_of_is_posted_again(void **state)
{
	struct world world;
	uint64_t wr_id;
	int which;

	(void)state;
	world_open(&world);
	assert_int_equal(receive_post(&world, 9, BYTES), 0);
	message_post(&world, 0, 1);
	sent_expect(&world, 0, 1, 0);
	drop(&world, 0);
	test_nothing(&world.pair, world.pair.server_cq);
	message_post(&world, 1, 2);
	assert_int_equal(message_expect(&world, &which, &wr_id), 2);
	assert_int_equal(which, 1);
	assert_int_equal(wr_id, 9);
	world_close(&world);
}

/* It was not the last one that was posted. */
static void receives_behind_one_that_is_posted_again_are_taken(void **state)
{
	struct world world;
	uint64_t wr_id;
	int which;

	(void)state;
	world_open(&world);
	assert_int_equal(receive_post(&world, 9, BYTES), 0);
	assert_int_equal(receive_post(&world, 10, BYTES), 0);
	message_post(&world, 0, 1);
	sent_expect(&world, 0, 1, 0);
	message_post(&world, 1, 2);
	sent_expect(&world, 1, 2, 0);
	drop(&world, 0);
	assert_int_equal(message_expect(&world, &which, &wr_id), 2);
	assert_int_equal(wr_id, 10);
	assert_int_equal(receive_post(&world, 11, BYTES), 0);
	message_post(&world, 1, 3);
	assert_int_equal(message_expect(&world, &which, &wr_id), 3);
	message_post(&world, 1, 4);
	assert_int_equal(message_expect(&world, &which, &wr_id), 4);
	world_close(&world);
}

static void queue_is_bounded_until_polled(void **state)
{
	struct world world;
	uint64_t wr_id;
	int which, i;

	(void)state;
	world_open(&world);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(receive_post(&world, (uint64_t)i, BYTES), 0);
	assert_int_equal(receive_post(&world, 100, BYTES), -ENOMEM);
	message_post(&world, 0, 1);
	sent_expect(&world, 0, 1, 0);
	assert_int_equal(receive_post(&world, 100, BYTES), -ENOMEM);
	(void)message_expect(&world, &which, &wr_id);
	assert_int_equal(receive_post(&world, 100, BYTES), 0);
	world_close(&world);
}

static void low_queue_told_once(void **state)
{
	struct rbx_device_event event;
	struct world world;
	struct pollfd readable;
	struct rbx_device *device;
	uint64_t wr_id;
	int which, i;

	(void)state;
	world_open(&world);
	device = world.pair.server_device;
	for (i = 0; i < 6; i++)
		assert_int_equal(receive_post(&world, (uint64_t)i, BYTES), 0);
	world.pair.ops->set_srq_limit(world.srq, 4);
	for (i = 0; i < 2; i++) {
		message_post(&world, 0, (uint32_t)i);
		(void)message_expect(&world, &which, &wr_id);
	}
	assert_int_equal(world.pair.ops->get_event(device, &event), -EAGAIN);
	for (i = 2; i < 5; i++) {
		message_post(&world, 1, (uint32_t)i);
		(void)message_expect(&world, &which, &wr_id);
	}
	readable = (struct pollfd){ device->event_fd, POLLIN, 0 };
	assert_int_equal(poll(&readable, 1, 20000), 1);
	assert_int_equal(world.pair.ops->get_event(device, &event), 0);
	assert_int_equal(event.kind, RBX_DEVICE_SRQ_LOW);
	assert_ptr_equal(event.srq, world.srq);
	assert_null(event.qp);
	assert_int_equal(world.pair.ops->get_event(device, &event), -EAGAIN);
	world_close(&world);
}

static void receive_of_its_own_refused(void **state)
{
	struct rbx_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	struct rbx_qp_init init;
	struct rbx_qp *qp;
	struct world world;

	(void)state;
	world_open(&world);
	assert_int_equal(world.pair.ops->post_recv(world.servers[0], &wr, &bad),
			 -EINVAL);
	assert_ptr_equal(bad, &wr);
	init = (struct rbx_qp_init){
		.send_cq = world.pair.server_cq,
		.recv_cq = world.pair.client_cq, /* is not its */
		.send_depth_count = 1,
		.max_sge = 1,
		.srq = world.srq,
	};
	assert_int_equal(world.pair.ops->connect(
				 world.pair.server_device, &init,
				 &(struct rbx_connect_init){
					 .address = world.pair.listener->address,
					 .timeout_ms = 1000 },
				 &qp, NULL), -EINVAL);
	world_close(&world);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_many_whole_and_in_order_of_each),
		cmocka_unit_test(last_receive_taken_by_any),
		cmocka_unit_test(message_without_a_receive_waits_for_one),
		cmocka_unit_test(message_that_waits_too_long_fails),
		cmocka_unit_test(ends_of_some_leave_the_receives_to_others),
		cmocka_unit_test(receive_nobody_was_told_of_is_posted_again),
		cmocka_unit_test(
			receives_behind_one_that_is_posted_again_are_taken),
		cmocka_unit_test(queue_is_bounded_until_polled),
		cmocka_unit_test(low_queue_told_once),
		cmocka_unit_test(receive_of_its_own_refused),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
