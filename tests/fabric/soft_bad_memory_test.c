/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_bad_memory_test.c - memory of a program that is none, or ends: who is blamed.
 *
 * Requests go by frames here, with those before and behind it in one sendmsg(), which
 * the system refuses as a whole. Nothing of the bad one may reach the peer that could
 * not be read, those before it are done, or flushed if nobody can know, and it alone
 * has failed.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "endpoint.h"

#define PAGE 4096u
#define CHAIN 6u
#define FULL 8u /* writes of 4 MiB: more than a socket takes at once */

static struct test_pair pair;
static struct rbx_mr *plain_mr;

/* The server's memory without a file, so that it cannot be mapped. */
static int pair_make(void **state)
{
	struct rbx_mr_init init = {
		.length_bytes = TARGET_BYTES,
		.rights = RBX_REMOTE_READ | RBX_REMOTE_WRITE | RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};

	(void)state;
	test_pair_open(&pair, NULL);
	init.addr = pair.target_memory;
	return pair.ops->register_memory(pair.server_device, &init, 1,
					 &plain_mr, NULL);
}

static int pair_free(void **state)
{
	(void)state;
	pair.ops->deregister_memory(pair.server_device, &plain_mr, 1);
	test_pair_close(&pair);
	return 0;
}

/* From here to its end it is no memory any more. */
static void local_ends_at(uint64_t offset)
{
	assert_int_equal(mprotect(pair.local + offset, LOCAL_BYTES - offset,
				  PROT_NONE),
			 0);
}

/* Of a chain whose requests are all good but one, in their order. */
static void expect_bad_alone(uint8_t opcode, uint32_t bad, uint32_t length_bytes)
{
	uint32_t i, flushed_count = 0;

	for (i = 0; i < CHAIN; i++) {
		struct rbx_wc wc = test_wait(&pair, pair.client_cq);

		assert_int_equal(wc.wr_id, i);
		if (i == bad) {
			assert_int_equal(wc.status, -EFAULT);
		} else if (i > bad) {
			assert_int_equal(wc.status, -ECANCELED);
		} else if (wc.status) {
			assert_int_equal(opcode, RBX_OP_WRITE);
			assert_int_equal(wc.status, -ECANCELED);
			flushed_count++;
		} else {
			assert_int_equal(flushed_count, 0);
			assert_memory_equal(pair.target + i * length_bytes,
					    pair.local + i * length_bytes,
					    length_bytes);
		}
	}
}

static void post_chain(uint8_t opcode, uint8_t flags, uint32_t bad,
		       uint64_t bad_offset, uint32_t length_bytes)
{
	struct rbx_sge sges[CHAIN];
	struct rbx_wr wrs[CHAIN];
	uint32_t i;

	for (i = 0; i < CHAIN; i++) {
		wrs[i] = test_wr(&pair, opcode, &sges[i],
				 i == bad ? bad_offset : i * length_bytes,
				 i * length_bytes, length_bytes);
		wrs[i].wr_id = i;
		wrs[i].flags |= flags;
		wrs[i].rkey = plain_mr->rkey;
		wrs[i].next = i + 1 < CHAIN ? &wrs[i + 1] : NULL;
	}
	test_post(&pair, wrs);
	expect_bad_alone(opcode, bad, length_bytes);
}

static void bad_memory_is_blamed_alone_wherever_it_stands(void **state)
{
	static const uint32_t lengths[] = { 8, 512, PAGE, 256 << 10 };
	uint32_t i, bad;

	for (i = 0; i < 4; i++) {
		for (bad = 0; bad < CHAIN; bad++) {
			pair_make(state);
			test_fill(pair.local, LOCAL_BYTES, bad);
			local_ends_at(4 << 20);
			post_chain(RBX_OP_WRITE, 0, bad, 4 << 20, lengths[i]);
			/* Of the bad one nothing arrived. */
			assert_int_equal(pair.target[bad * lengths[i]], 0);
			assert_memory_equal(pair.target + bad * lengths[i],
					    pair.target + bad * lengths[i] + 1,
					    lengths[i] - 1);
			pair_free(state);
		}
	}
}

/* What could be read of it may arrive; what is behind that stays as it was. */
static void memory_that_ends_within_a_request_is_blamed(void **state)
{
	uint32_t length_bytes = 64 << 10, bad = 2;

	(void)state;
	test_fill(pair.local, LOCAL_BYTES, 1);
	local_ends_at(4 << 20);
	post_chain(RBX_OP_WRITE, 0, bad, (4 << 20) - 2 * PAGE, length_bytes);
	assert_true(test_is_zero(pair.target + bad * length_bytes + 2 * PAGE,
				 length_bytes - 2 * PAGE));
}

/* Data that would be copied during the post, by us. */
static void bad_inline_memory_is_blamed_alone(void **state)
{
	uint32_t bad;

	for (bad = 0; bad < CHAIN; bad++) {
		pair_make(state);
		test_fill(pair.local, LOCAL_BYTES, bad);
		local_ends_at(4 << 20);
		post_chain(RBX_OP_WRITE, RBX_WR_INLINE, bad, 4 << 20, 32);
		pair_free(state);
	}
}

/* Behind so much that the socket takes none of it, so that it is copied by us. */
static void bad_inline_memory_behind_a_full_socket_is_blamed(void **state)
{
	struct rbx_wc wc;
	struct rbx_sge sges[FULL + 1];
	struct rbx_wr wrs[FULL + 1];
	uint32_t i;

	(void)state;
	local_ends_at(4 << 20);
	for (i = 0; i <= FULL; i++) {
		wrs[i] = test_wr(&pair, RBX_OP_WRITE, &sges[i], 0, 0, 4 << 20);
		wrs[i].wr_id = i;
		wrs[i].rkey = plain_mr->rkey;
		wrs[i].next = i < FULL ? &wrs[i + 1] : NULL;
	}
	sges[FULL].addr += 4 << 20;
	sges[FULL].length_bytes = 32;
	wrs[FULL].flags |= RBX_WR_INLINE;
	test_post(&pair, wrs);
	for (i = 0; i < FULL; i++) {
		wc = test_wait(&pair, pair.client_cq);
		assert_int_equal(wc.wr_id, i);
		assert_true(wc.status == 0 || wc.status == -ECANCELED);
	}
	wc = test_wait(&pair, pair.client_cq);
	assert_int_equal(wc.wr_id, FULL);
	assert_int_equal(wc.status, -EFAULT);
}

/* Wherever it stands, and whatever of it lay in the look-ahead. */
static void bad_memory_of_a_long_read_is_blamed_alone(void **state)
{
	static const uint32_t lengths[] = { 16 << 10, 64 << 10, 256 << 10 };
	static const uint32_t good_bytes[] = { 0, PAGE, 3 * PAGE };
	uint32_t i, good, bad;

	for (i = 0; i < 9 * CHAIN; i++) {
		bad = i % CHAIN;
		good = good_bytes[i / CHAIN % 3];
		pair_make(state);
		test_fill(pair.target, TARGET_BYTES, i);
		local_ends_at(4 << 20);
		post_chain(RBX_OP_READ, 0, bad, (4 << 20) - good,
			   lengths[i / CHAIN / 3]);
		pair_free(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_memory_is_blamed_alone_wherever_it_stands),
		cmocka_unit_test_setup_teardown(
			memory_that_ends_within_a_request_is_blamed, pair_make,
			pair_free),
		cmocka_unit_test(bad_inline_memory_is_blamed_alone),
		cmocka_unit_test_setup_teardown(
			bad_inline_memory_behind_a_full_socket_is_blamed,
			pair_make, pair_free),
		cmocka_unit_test(bad_memory_of_a_long_read_is_blamed_alone),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
