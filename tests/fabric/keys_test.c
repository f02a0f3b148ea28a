/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys_test.c - how far a key reaches: to each edge of its region, and not one
 * byte beyond, at the target and at home.
 *
 * The region lies in the middle of other memory of its owner, so that what
 * reaches beyond it is not stopped by the end of a mapping.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"

#define PAGE 4096u
#define REGION_OFFSET (16u * PAGE)
#define REGION_BYTES (4u * PAGE)

/* One end of the region to the other, and around. */
struct reach {
	uint64_t offset; /* from the beginning of the region, modulo 2^64 */
	uint32_t length_bytes;
	bool allowed;
};

static const struct reach reaches[] = {
	{ 0, REGION_BYTES, true },
	{ 0, 1, true },
	{ REGION_BYTES - 1, 1, true },
	{ 1, REGION_BYTES - 1, true },
	{ 0, REGION_BYTES + 1, false },
	{ 1, REGION_BYTES, false },
	{ REGION_BYTES - 1, 2, false },
	{ REGION_BYTES, 1, false },
	{ REGION_BYTES + 1, 1, false },
	{ (uint64_t)-1, 1, false },
	{ (uint64_t)-1, 2, false },
	{ (uint64_t)-1, REGION_BYTES, false },
	{ (uint64_t)-PAGE, PAGE, false },
	/* Longer than the region: the rest of a subtraction below zero. */
	{ 0, 2 * REGION_BYTES, false },
	{ PAGE, 3 * REGION_BYTES, false },
	{ 0, TARGET_BYTES - REGION_OFFSET, false },
	/* Its end is past 2^64, and would be within the region again. */
	{ (uint64_t)-8, 16, false },
	{ (uint64_t)-REGION_BYTES, 2 * REGION_BYTES, false },
	{ 1ull << 63, PAGE, false },
	{ 1ull << 32, 1, false },
};

static struct rbx_mr *region(struct rbx_device *device, uint8_t *memory, int fd,
			     uint32_t rights)
{
	struct rbx_mr_init init = {
		.addr = memory + REGION_OFFSET,
		.length_bytes = REGION_BYTES,
		.rights = rights,
		.memory_fd = fd,
		.memory_fd_offset = fd < 0 ? 0 : REGION_OFFSET,
	};
	struct rbx_mr *mr;

	assert_int_equal(device->ops->register_memory(device, &init, 1, &mr,
						      NULL), 0);
	return mr;
}

static int use(struct test_pair *pair, uint8_t opcode, uint32_t rkey,
	       uint64_t addr, uint32_t length_bytes)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, opcode, &sge, 0, 0, length_bytes);

	wr.rkey = rkey;
	wr.remote_addr = addr;
	test_post(pair, &wr);
	return test_wait(pair, pair->client_cq).status;
}

static bool is_untouched(const struct test_pair *pair)
{
	const uint32_t end = REGION_OFFSET + REGION_BYTES;

	return test_is_zero(pair->target, REGION_OFFSET) &&
	       test_is_zero(pair->target + end, TARGET_BYTES - end);
}

/* warm: so often before, so that a mapping, where there is one, is in use. */
static void reach_is_as_said(const struct reach *reach, uint8_t opcode,
			     int warm)
{
	struct test_pair pair;
	struct rbx_mr *mr;
	uint64_t addr;

	test_pair_open(&pair, NULL);
	mr = region(pair.server_device, pair.target_memory, pair.target_fd,
		    RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE);
	memset(pair.local, 0xaa, LOCAL_BYTES);
	addr = (uintptr_t)mr->addr;
	while (warm--)
		assert_int_equal(use(&pair, opcode, mr->rkey, addr, 64), 0);
	assert_int_equal(use(&pair, opcode, mr->rkey, addr + reach->offset,
			     reach->length_bytes), reach->allowed ? 0 : -EACCES);
	assert_true(is_untouched(&pair));
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
}

static void remote_key_reaches_to_its_edges(void **state)
{
	static const uint8_t opcodes[] = { RBX_OP_READ, RBX_OP_WRITE };
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(reaches) / sizeof(*reaches); i++)
		for (j = 0; j < 2; j++) {
			reach_is_as_said(&reaches[i], opcodes[j], 0);
			reach_is_as_said(&reaches[i], opcodes[j], 3);
		}
}

/* As on a NIC: where nothing is moved nothing is checked, but the peer lives. */
static void nothing_moved_is_never_refused(void **state)
{
	static const uint64_t offsets[] = { 0, REGION_BYTES, REGION_BYTES + 1,
					    (uint64_t)-1 };
	struct test_pair pair;
	struct rbx_mr *mr;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	mr = region(pair.server_device, pair.target_memory, pair.target_fd,
		    RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE);
	for (i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		assert_int_equal(use(&pair, RBX_OP_WRITE, mr->rkey,
				     (uintptr_t)mr->addr + offsets[i], 0), 0);
		assert_int_equal(use(&pair, RBX_OP_READ, mr->rkey,
				     (uintptr_t)mr->addr + offsets[i], 0), 0);
	}
	assert_true(is_untouched(&pair));
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
}

/* A message that meets a receive, from memory under a local key. */
static int use_local(struct test_pair *pair, uint8_t opcode, uint32_t lkey,
		     uint64_t addr, uint32_t length_bytes)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, opcode, &sge, 0, 0, 0);

	sge = (struct rbx_sge){ addr, length_bytes, lkey };
	test_post(pair, &wr);
	return test_wait(pair, pair->client_cq).status;
}

static void local_key_reaches_to_its_edges(void **state)
{
	static const uint8_t opcodes[] = { RBX_OP_READ, RBX_OP_WRITE };
	struct test_pair pair;
	struct rbx_mr *mr;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(reaches) / sizeof(*reaches); i++)
		for (j = 0; j < 2; j++) {
			test_pair_open(&pair, NULL);
			mr = region(pair.client_device, pair.local, -1,
				    RBX_LOCAL_WRITE);
			assert_int_equal(
				use_local(&pair, opcodes[j], mr->lkey,
					  (uintptr_t)mr->addr +
						  reaches[i].offset,
					  reaches[i].length_bytes),
				reaches[i].allowed ? 0 : -EFAULT);
			pair.ops->deregister_memory(pair.client_device, &mr, 1);
			test_pair_close(&pair);
		}
}

/* Each way without the right to it, and no other right makes up for that. */
static void right_that_was_not_given_is_missing(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t rights;
	} cases[] = {
		{ RBX_OP_READ, RBX_LOCAL_WRITE | RBX_REMOTE_WRITE },
		{ RBX_OP_WRITE, RBX_LOCAL_WRITE | RBX_REMOTE_READ },
		{ RBX_OP_READ, RBX_LOCAL_WRITE },
		{ RBX_OP_WRITE, RBX_LOCAL_WRITE },
		{ RBX_OP_READ, 0 },
		{ RBX_OP_WRITE, 0 },
	};
	struct test_pair pair;
	struct rbx_mr *mr;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		test_pair_open(&pair, NULL);
		mr = region(pair.server_device, pair.target_memory,
			    pair.target_fd, cases[i].rights);
		memset(pair.local, 0xaa, PAGE);
		assert_int_equal(use(&pair, cases[i].opcode, mr->rkey,
				     (uintptr_t)mr->addr, PAGE), -EACCES);
		assert_int_equal(pair.target[REGION_OFFSET], 0);
		pair.ops->deregister_memory(pair.server_device, &mr, 1);
		test_pair_close(&pair);
	}
	/* At home reading is always granted, and writing is not. */
	test_pair_open(&pair, NULL);
	mr = region(pair.client_device, pair.local, -1, RBX_REMOTE_READ);
	assert_int_equal(use_local(&pair, RBX_OP_WRITE, mr->lkey,
				   (uintptr_t)mr->addr, PAGE), 0);
	assert_int_equal(use_local(&pair, RBX_OP_READ, mr->lkey,
				   (uintptr_t)mr->addr, PAGE), -EFAULT);
	pair.ops->deregister_memory(pair.client_device, &mr, 1);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_key_reaches_to_its_edges),
		cmocka_unit_test(nothing_moved_is_never_refused),
		cmocka_unit_test(local_key_reaches_to_its_edges),
		cmocka_unit_test(right_that_was_not_given_is_missing),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
