/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * order_test.c - the order in which a fabric carries out requests and completes them
 * when nothing goes wrong: chains, fences, sends and receives, queues that wrap around.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"

#define PAGE 4096u

/* Only signaled ones are seen, in order, and each vouches for all before. */
static void selective_signaling_keeps_order(void **state)
{
	enum { COUNT = 60 };
	struct rbx_sge sges[COUNT];
	struct rbx_wr wrs[COUNT];
	struct test_pair pair;
	uint32_t i, round;

	(void)state;
	test_pair_open(&pair, NULL);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < COUNT; i++) {
			wrs[i] = test_wr(&pair, (i + round) % 3 ? RBX_OP_WRITE :
						RBX_OP_READ, &sges[i],
					 i * PAGE, i * PAGE, 64 + i);
			wrs[i].wr_id = i;
			wrs[i].flags = i % 5 == 4 ? RBX_WR_SIGNALED : 0;
			wrs[i].next = i % 7 == 6 || i + 1 == COUNT ? NULL :
								&wrs[i + 1];
		}
		for (i = 0; i < COUNT; i += 7)
			test_post(&pair, &wrs[i]);
		for (i = 4; i < COUNT; i += 5) {
			struct rbx_wc wc = test_wait(&pair, pair.client_cq);

			assert_int_equal(wc.status, 0);
			assert_int_equal(wc.wr_id, i);
			assert_ptr_equal(wc.qp, pair.client);
		}
		test_nothing(&pair, pair.client_cq);
	}
	test_pair_close(&pair);
}

/*
 * Where keys differ in what the fabric can do with them (the soft one maps
 * memory that has a file, and sends frames for other memory), a chain of both is
 * still one chain: the last completion comes, and it speaks for all.
 */
static void chain_over_different_memory_completes(void **state)
{
	struct rbx_mr_init init = {
		.length_bytes = 1 << 20,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
		.memory_fd = -1,
	};
	struct test_pair pair;
	struct rbx_sge sges[3];
	struct rbx_wr wrs[3];
	struct rbx_mr *plain;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	init.addr = pair.target_memory + (1 << 20);
	assert_int_equal(pair.ops->register_memory(pair.server_device, &init, 1,
						   &plain, NULL), 0);
	for (i = 0; i < 3; i++) /* a mapping, where there is one, is in use */
		assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 64), 0);
	test_fill(pair.local, 3 * 4096, 7);
	for (i = 0; i < 3; i++) {
		wrs[i] = test_wr(&pair, RBX_OP_WRITE, &sges[i], i * 4096u,
				 (i == 1 ? 1u << 20 : 0) + i * 4096u, 4096);
		wrs[i].flags = i == 2 ? RBX_WR_SIGNALED : 0;
		wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
	}
	wrs[1].rkey = plain->rkey;
	test_post(&pair, &wrs[0]);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	test_nothing(&pair, pair.client_cq);
	for (i = 0; i < 3; i++)
		assert_memory_equal(pair.target + (i == 1 ? 1 << 20 : 0) +
					    i * 4096,
				    pair.local + i * 4096, 4096);
	pair.ops->deregister_memory(pair.server_device, &plain, 1);
	test_pair_close(&pair);
}

static void send_queue_full_refused_and_wraps(void **state)
{
	struct test_options options = { .send_depth_count = 5 };
	struct rbx_sge sges[8];
	struct rbx_wr wrs[8], *bad;
	struct test_pair pair;
	uint32_t i, round;

	(void)state;
	test_pair_open(&pair, &options);
	assert_int_equal(pair.client->send_depth_count, 5);
	for (round = 0; round < 60; round++) {
		for (i = 0; i < 8; i++) {
			wrs[i] = test_wr(&pair, RBX_OP_WRITE, &sges[i],
					 i * PAGE, i * PAGE, PAGE);
			wrs[i].next = i < 7 ? &wrs[i + 1] : NULL;
			wrs[i].wr_id = round * 8 + i;
		}
		test_fill(pair.local, 8 * PAGE, round);
		bad = NULL;
		assert_int_equal(pair.ops->post_send(pair.client, wrs, &bad),
				 -ENOMEM);
		assert_ptr_equal(bad, &wrs[5]);
		for (i = 0; i < 5; i++) {
			struct rbx_wc wc = test_wait(&pair, pair.client_cq);

			assert_int_equal(wc.status, 0);
			assert_int_equal(wc.wr_id, round * 8 + i);
		}
		assert_memory_equal(pair.target, pair.local, 5 * PAGE);
	}
	test_pair_close(&pair);
}

static void fenced_write_after_read_reads_old(void **state)
{
	struct rbx_sge sges[2];
	struct rbx_wr wrs[2];
	struct test_pair pair;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 200; i++) {
		memset(pair.target, i, PAGE);
		memset(pair.local + PAGE, i + 1, PAGE);
		wrs[0] = test_wr(&pair, RBX_OP_READ, &sges[0], 0, 0, PAGE);
		wrs[1] = test_wr(&pair, RBX_OP_WRITE, &sges[1], PAGE, 0, PAGE);
		wrs[0].flags = 0;
		wrs[0].next = &wrs[1];
		wrs[1].flags |= RBX_WR_FENCE;
		test_post(&pair, wrs);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		assert_int_equal(pair.local[0], i & 0xff);
		assert_int_equal(pair.local[PAGE - 1], i & 0xff);
		assert_int_equal(pair.target[0], (i + 1) & 0xff);
	}
	test_pair_close(&pair);
}

static void sends_arrive_in_order_with_length(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	uint32_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 16; i++)
		test_post_recv(&pair, pair.server, i, pair.target_memory + i * PAGE,
			       PAGE, pair.target_mr->lkey);
	for (i = 0; i < 300; i++) {
		test_fill(pair.local, PAGE, i);
		wr = test_wr(&pair, RBX_OP_SEND, &sge, 0, 0, i % PAGE);
		wr.wr_id = 1000 + i;
		test_post(&pair, &wr);
		struct rbx_wc wc = test_wait(&pair, pair.server_cq);

		assert_int_equal(wc.status, 0);
		assert_int_equal(wc.opcode, RBX_OP_RECV);
		assert_int_equal(wc.wr_id, i % 16);
		assert_int_equal(wc.length_bytes, i % PAGE);
		assert_memory_equal(pair.target + i % 16 * PAGE, pair.local,
				    i % PAGE);
		test_post_recv(&pair, pair.server, i % 16,
			       pair.target_memory + i % 16 * PAGE, PAGE,
			       pair.target_mr->lkey);
		wc = test_wait(&pair, pair.client_cq);
		assert_int_equal(wc.status, 0);
		assert_int_equal(wc.wr_id, 1000 + i);
	}
	test_pair_close(&pair);
}

/* A receiver that is late, but not too late, loses nothing. */
static void send_before_receive_waits_for_it(void **state)
{
	struct test_pair pair;
	struct rbx_sge sges[2];
	struct rbx_wr wrs[2];

	(void)state;
	test_pair_open(&pair, NULL);
	memset(pair.local, 0x5a, PAGE);
	wrs[0] = test_wr(&pair, RBX_OP_SEND, &sges[0], 0, 0, 100);
	wrs[1] = test_wr(&pair, RBX_OP_WRITE, &sges[1], 0, 2 * PAGE, 100);
	wrs[0].next = &wrs[1];
	wrs[0].wr_id = 10;
	wrs[1].wr_id = 11;
	test_post(&pair, wrs);
	test_nothing(&pair, pair.client_cq);
	assert_int_equal(pair.target[2 * PAGE], 0);
	test_post_recv(&pair, pair.server, 5, pair.target_memory, PAGE,
		       pair.target_mr->lkey);
	assert_int_equal(test_wait(&pair, pair.server_cq).wr_id, 5);
	assert_int_equal(test_wait(&pair, pair.client_cq).wr_id, 10);
	assert_int_equal(test_wait(&pair, pair.client_cq).wr_id, 11);
	assert_int_equal(pair.target[0], 0x5a);
	assert_int_equal(pair.target[99], 0x5a);
	assert_int_equal(pair.target[2 * PAGE + 99], 0x5a);
	test_pair_close(&pair);
}

/* Both ends post at once while only the client is polled. */
static void requests_in_both_directions_all_complete(void **state)
{
	struct rbx_mr_init init = {
		.rights = RBX_REMOTE_READ | RBX_REMOTE_WRITE | RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	struct rbx_wr there, back, *bad;
	struct rbx_sge sge, back_sge;
	struct test_pair pair;
	struct rbx_mr *mr;
	uint32_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	init.addr = pair.local + (4 << 20);
	init.length_bytes = 1 << 20;
	assert_int_equal(pair.ops->register_memory(pair.client_device, &init, 1,
						   &mr, NULL), 0);
	for (i = 0; i < 100; i++) {
		test_fill(pair.local, 300000, i);
		test_fill(pair.target + (1 << 20), 300000, i + 50);
		there = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, 300000);
		back_sge = (struct rbx_sge){
			(uintptr_t)pair.target_memory + (1 << 20), 300000,
			pair.target_mr->lkey,
		};
		back = (struct rbx_wr){
			.sges = &back_sge,
			.sge_count = 1,
			.opcode = RBX_OP_WRITE,
			.flags = RBX_WR_SIGNALED,
			.rkey = mr->rkey,
			.remote_addr = (uintptr_t)mr->addr,
		};
		assert_int_equal(pair.ops->post_send(pair.server, &back, &bad),
				 0);
		test_post(&pair, &there);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		assert_int_equal(test_wait(&pair, pair.server_cq).status, 0);
		assert_memory_equal(pair.target, pair.local, 300000);
		assert_memory_equal(mr->addr, pair.target + (1 << 20), 300000);
	}
	pair.ops->deregister_memory(pair.client_device, &mr, 1);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(selective_signaling_keeps_order),
		cmocka_unit_test(chain_over_different_memory_completes),
		cmocka_unit_test(send_queue_full_refused_and_wraps),
		cmocka_unit_test(fenced_write_after_read_reads_old),
		cmocka_unit_test(sends_arrive_in_order_with_length),
		cmocka_unit_test(send_before_receive_waits_for_it),
		cmocka_unit_test(requests_in_both_directions_all_complete),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
