/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * transfer_test.c - what a fabric carries when nothing goes wrong: contents of
 * all sizes, from lists, and inline. Their order is in order_test.c.
 */
#include <string.h>

#include "endpoint.h"

#define PAGE 4096u

static void write_then_read_same_bytes(void **state)
{
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	test_fill(pair.local, PAGE, 1);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 12345, PAGE), 0);
	assert_memory_equal(pair.target + 12345, pair.local, PAGE);
	assert_int_equal(test_do(&pair, RBX_OP_READ, PAGE, 12345, PAGE), 0);
	assert_memory_equal(pair.local + PAGE, pair.local, PAGE);
	/* Again, by then through a mapping where there is one. */
	test_fill(pair.local, PAGE, 2);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 777, PAGE), 0);
	assert_memory_equal(pair.target + 777, pair.local, PAGE);
	assert_int_equal(test_do(&pair, RBX_OP_READ, PAGE, 777, PAGE), 0);
	assert_memory_equal(pair.local + PAGE, pair.local, PAGE);
	test_pair_close(&pair);
}

static void qp_same_host_is_mapped(void **state)
{
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.client->mapped, !strcmp(test_fabric, "soft"));
	assert_int_equal(pair.server->mapped, pair.client->mapped);
	test_pair_close(&pair);
}

/* A chain of requests with scatter lists of many pieces, both ways. */
static void chain_with_scatter_lists_lands_in_place(void **state)
{
	enum { CHAIN = 24, PIECES = 16 };
	struct rbx_sge sges[CHAIN][PIECES];
	struct rbx_wr wrs[CHAIN];
	struct test_pair pair;
	uint32_t i, j, round;

	(void)state;
	test_pair_open(&pair, NULL);
	for (round = 0; round < 6; round++) {
		uint8_t opcode = round % 2 ? RBX_OP_READ : RBX_OP_WRITE;

		test_fill(opcode == RBX_OP_WRITE ? pair.local : pair.target,
			  1 << 20, round);
		for (i = 0; i < CHAIN; i++) {
			uint32_t bytes = 0;

			for (j = 0; j < PIECES; j++) {
				uint32_t place = i * PIECES + j;

				wrs[i] = test_wr(&pair, opcode, &sges[i][j],
						 place * 2000, 0,
						 j == 3 ? 0 : 100 + place);
				bytes += sges[i][j].length_bytes;
			}
			assert_true(bytes < 40000);
			wrs[i].sges = sges[i];
			wrs[i].sge_count = PIECES;
			wrs[i].wr_id = i;
			wrs[i].remote_addr = (uintptr_t)pair.target_memory + i * 40000;
			wrs[i].flags = i + 1 == CHAIN ? RBX_WR_SIGNALED : 0;
			wrs[i].next = i + 1 == CHAIN ? NULL : &wrs[i + 1];
		}
		test_post(&pair, wrs);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		for (i = 0; i < CHAIN; i++) {
			const uint8_t *far = pair.target + i * 40000;

			for (j = 0; j < PIECES; j++) {
				assert_memory_equal(
					far, (void *)(uintptr_t)sges[i][j].addr,
					sges[i][j].length_bytes);
				far += sges[i][j].length_bytes;
			}
		}
	}
	test_pair_close(&pair);
}

static void big_messages_arrive_whole(void **state)
{
	static const uint32_t sizes[] = { 1 << 20, (4 << 20) + 1, 8 << 20 };
	struct test_pair pair;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 3; i++) {
		test_fill(pair.local, sizes[i], (uint32_t)i + 7);
		assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, sizes[i]),
				 0);
		assert_memory_equal(pair.target, pair.local, sizes[i]);
		memset(pair.local, 0, sizes[i]);
		assert_int_equal(test_do(&pair, RBX_OP_READ, 0, 0, sizes[i]),
				 0);
		assert_memory_equal(pair.target, pair.local, sizes[i]);
	}
	test_pair_close(&pair);
}

/* Many large ones at once: more than sockets hold, in both directions. */
static void big_messages_mixed_all_arrive(void **state)
{
	enum { COUNT = 16, BYTES = 256 << 10 };
	struct rbx_sge sges[COUNT];
	struct rbx_wr wrs[COUNT];
	struct test_pair pair;
	uint32_t i, round;

	(void)state;
	test_pair_open(&pair, NULL);
	for (round = 0; round < 10; round++) {
		/* Even places are written, odd ones read. */
		test_fill(pair.local, COUNT * BYTES, round);
		test_fill(pair.target, COUNT * BYTES, round + 99);
		for (i = 0; i < COUNT; i++) {
			wrs[i] = test_wr(&pair, i % 2 ? RBX_OP_READ :
						RBX_OP_WRITE, &sges[i],
					 i * BYTES, i * BYTES, BYTES);
			wrs[i].next = i + 1 == COUNT ? NULL : &wrs[i + 1];
			wrs[i].wr_id = i;
		}
		test_post(&pair, wrs);
		for (i = 0; i < COUNT; i++) {
			struct rbx_wc wc = test_wait(&pair, pair.client_cq);

			assert_int_equal(wc.status, 0);
			assert_int_equal(wc.wr_id, i);
		}
		assert_memory_equal(pair.local, pair.target, COUNT * BYTES);
	}
	test_pair_close(&pair);
}

/*
 * Data of reads fills the socket on its way back; what was to follow it waits.
 * The word that a later write is done is among that, and nothing comes after the
 * write that would make the target say so again.
 */
static void write_behind_reads_that_fill_the_socket_completes(void **state)
{
	enum { READS = 7, BYTES = 1 << 20 };
	const struct test_options options = { .server_polls = true };
	struct rbx_sge sges[READS + 1];
	struct rbx_wr wrs[READS + 1];
	struct test_pair pair;
	struct rbx_wc wc;
	uint32_t i;

	(void)state;
	test_pair_open(&pair, &options);
	test_fill(pair.local, PAGE, 3);
	test_fill(pair.target + PAGE, READS * BYTES, 4);
	for (i = 0; i < READS; i++) {
		wrs[i] = test_wr(&pair, RBX_OP_READ, &sges[i],
				 PAGE + i * BYTES, PAGE + i * BYTES, BYTES);
		wrs[i].flags = 0;
		wrs[i].next = &wrs[i + 1];
	}
	wrs[READS] = test_wr(&pair, RBX_OP_WRITE, &sges[READS], 0, 0, PAGE);
	test_post(&pair, wrs);
	/* The target works, and the client does not look yet. */
	while (memcmp(pair.target, pair.local, PAGE))
		pair.ops->poll(pair.server_cq, &wc, 1);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	assert_memory_equal(pair.target, pair.local, PAGE + READS * BYTES);
	test_pair_close(&pair);
}

static void zero_length_completes(void **state)
{
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 0), 0);
	assert_int_equal(test_do(&pair, RBX_OP_READ, 0, 0, 0), 0);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 8), 0);
	test_pair_close(&pair);
}

static void inline_data_may_change_after_post(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	if (!pair.client->max_inline_bytes)
		skip();
	for (i = 0; i < 50; i++) {
		memset(pair.local, i, 16);
		wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, 16);
		wr.flags |= RBX_WR_INLINE;
		test_post(&pair, &wr);
		memset(pair.local, 0xee, 16);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		assert_int_equal(pair.target[0], i);
		assert_int_equal(pair.target[15], i);
	}
	test_pair_close(&pair);
}

/* Which is behind more than a socket takes at once. */
static void inline_data_that_waits_may_change_after_post(void **state)
{
	enum { COUNT = 9 };
	struct test_pair pair;
	struct rbx_sge sges[COUNT];
	struct rbx_wr wrs[COUNT];
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	if (!pair.client->max_inline_bytes)
		skip();
	test_fill(pair.local, LOCAL_BYTES, 1);
	for (i = 0; i < COUNT; i++) {
		wrs[i] = test_wr(&pair, RBX_OP_WRITE, &sges[i], 0, 4096, 4 << 20);
		wrs[i].next = i + 1 < COUNT ? &wrs[i + 1] : NULL;
	}
	wrs[COUNT - 1] = test_wr(&pair, RBX_OP_WRITE, &sges[COUNT - 1],
				 5 << 20, 0, 16);
	wrs[COUNT - 1].flags |= RBX_WR_INLINE;
	memset(pair.local + (5 << 20), 1, 16);
	test_post(&pair, wrs);
	memset(pair.local + (5 << 20), 0xee, 16);
	for (i = 0; i < COUNT; i++)
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	assert_int_equal(pair.target[0], 1);
	assert_int_equal(pair.target[15], 1);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_then_read_same_bytes),
		cmocka_unit_test(qp_same_host_is_mapped),
		cmocka_unit_test(chain_with_scatter_lists_lands_in_place),
		cmocka_unit_test(big_messages_arrive_whole),
		cmocka_unit_test(big_messages_mixed_all_arrive),
		cmocka_unit_test(write_behind_reads_that_fill_the_socket_completes),
		cmocka_unit_test(zero_length_completes),
		cmocka_unit_test(inline_data_may_change_after_post),
		cmocka_unit_test(inline_data_that_waits_may_change_after_post),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
