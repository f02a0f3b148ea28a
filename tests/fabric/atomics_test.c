/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * atomics_test.c - compare-and-swap and fetch-and-add: what they change and bring,
 * and what they need.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"

#define REGION_AT 65536u
#define REGION_BYTES 4096u
#define CLIENTS 2
#define ADDS 2000

struct world {
	struct test_pair pair;
	struct rbx_mr *mr;
};

static struct rbx_mr *region(struct test_pair *pair, uint32_t rights)
{
	struct rbx_mr_init init = {
		.addr = pair->target_memory + REGION_AT,
		.length_bytes = REGION_BYTES,
		.rights = rights,
		.memory_fd = pair->target_fd,
		.memory_fd_offset = REGION_AT,
	};
	struct rbx_mr *mr;

	assert_int_equal(pair->ops->register_memory(pair->server_device, &init,
						    1, &mr, NULL), 0);
	return mr;
}

static void world_open(struct world *world, uint32_t rights)
{
	test_pair_open(&world->pair, NULL);
	world->mr = region(&world->pair, rights);
}

static void world_close(struct world *world)
{
	world->pair.ops->deregister_memory(world->pair.server_device,
					   &world->mr, 1);
	test_pair_close(&world->pair);
}

static uint64_t value_at(const struct world *world, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, world->pair.target + (REGION_AT + offset), sizeof(value));
	return value;
}

static void value_set(const struct world *world, uint64_t offset, uint64_t value)
{
	memcpy(world->pair.target + (REGION_AT + offset), &value, sizeof(value));
}

static struct rbx_wr atomic(const struct world *world, uint8_t opcode,
			    struct rbx_sge *sge, uint64_t offset)
{
	struct rbx_wr wr = test_wr(&world->pair, opcode, sge, 0,
				   REGION_AT + offset, sizeof(uint64_t));

	wr.rkey = world->mr->rkey;
	return wr;
}

static int run(struct world *world, uint8_t opcode, uint64_t offset,
	       uint64_t compare_add, uint64_t swap, uint64_t *before)
{
	struct rbx_sge sge;
	struct rbx_wr wr = atomic(world, opcode, &sge, offset);
	struct rbx_wc wc;

	wr.compare_add = compare_add;
	wr.swap = swap;
	test_post(&world->pair, &wr);
	wc = test_wait(&world->pair, world->pair.client_cq);
	memcpy(before, world->pair.local, sizeof(*before));
	if (!wc.status)
		assert_int_equal(wc.opcode, opcode);
	return wc.status;
}

static void fetch_add_brings_what_was_and_adds(void **state)
{
	struct world world;
	uint64_t before;

	(void)state;
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC);
	value_set(&world, 8, 0x0102030405060708);
	value_set(&world, 16, UINT64_MAX);
	assert_int_equal(run(&world, RBX_OP_FETCH_ADD, 8, 0x10, 77, &before), 0);
	assert_true(before == 0x0102030405060708);
	assert_true(value_at(&world, 8) == 0x0102030405060718);
	assert_int_equal(run(&world, RBX_OP_FETCH_ADD, 16, 2, 0, &before), 0);
	assert_true(before == UINT64_MAX);
	assert_true(value_at(&world, 16) == 1);
	assert_true(value_at(&world, 0) == 0 && value_at(&world, 24) == 0);
	world_close(&world);
}

static void compare_swap_changes_only_what_is_equal(void **state)
{
	struct world world;
	uint64_t before;

	(void)state;
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC);
	value_set(&world, 0, 0x0102030405060708);
	assert_int_equal(run(&world, RBX_OP_COMPARE_SWAP, 0, 5, 6, &before), 0);
	assert_true(before == 0x0102030405060708);
	assert_true(value_at(&world, 0) == 0x0102030405060708);
	assert_int_equal(run(&world, RBX_OP_COMPARE_SWAP, 0, 0x0102030405060708,
			     0x1112131415161718, &before), 0);
	assert_true(before == 0x0102030405060708);
	assert_true(value_at(&world, 0) == 0x1112131415161718);
	world_close(&world);
}

static void atomic_value_may_lie_anywhere_at_home(void **state)
{
	struct world world;
	struct rbx_sge sge;
	struct rbx_wr wr;
	uint64_t before;

	(void)state;
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC);
	value_set(&world, 0, 99);
	memset(world.pair.local, 0xee, 64);
	wr = atomic(&world, RBX_OP_FETCH_ADD, &sge, 0);
	sge.addr += 13;
	test_post(&world.pair, &wr);
	assert_int_equal(test_wait(&world.pair, world.pair.client_cq).status, 0);
	memcpy(&before, world.pair.local + 13, sizeof(before));
	assert_true(before == 99);
	assert_int_equal(world.pair.local[12], 0xee);
	assert_int_equal(world.pair.local[21], 0xee);
	world_close(&world);
}

/* Each ends the connection, so each has its own. */
static void expect_refused(uint32_t rights, uint8_t opcode, uint64_t offset)
{
	struct world world;
	uint64_t before;


	world_open(&world, rights);
	assert_int_equal(run(&world, opcode, offset, 0, 1, &before), -EACCES);
	assert_true(value_at(&world, offset) == 0);
	world_close(&world);
}

static void atomic_needs_its_own_right(void **state)
{
	const uint32_t others = RBX_LOCAL_WRITE | RBX_REMOTE_READ |
				RBX_REMOTE_WRITE;

	(void)state;
	expect_refused(others, RBX_OP_FETCH_ADD, 0);
	expect_refused(others, RBX_OP_COMPARE_SWAP, 0);
	/* Nor does it bring the others along. */
	expect_refused(RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC, RBX_OP_READ, 0);
	expect_refused(RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC, RBX_OP_WRITE, 0);
}

static void atomic_not_aligned_is_refused(void **state)
{
	uint64_t offset;

	(void)state;
	if (!strcmp(test_fabric, "verbs")) /* by each device as it likes */
		skip();
	for (offset = 1; offset < 8; offset++)
		expect_refused(RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC,
			       RBX_OP_COMPARE_SWAP, offset);
}

static void atomic_reaches_to_the_edges_of_its_key(void **state)
{
	const uint32_t rights = RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC;
	struct world world;
	uint64_t before;

	(void)state;
	world_open(&world, rights);
	assert_int_equal(run(&world, RBX_OP_FETCH_ADD, 0, 1, 0, &before), 0);
	assert_int_equal(run(&world, RBX_OP_FETCH_ADD, REGION_BYTES - 8, 1, 0,
			     &before), 0);
	world_close(&world);
	expect_refused(rights, RBX_OP_FETCH_ADD, REGION_BYTES);
	expect_refused(rights, RBX_OP_FETCH_ADD, (uint64_t)-8);
}

static void atomic_of_another_length_is_einval(void **state)
{
	struct rbx_sge sges[2];
	struct world world;
	struct rbx_wr wr, *bad;
	uint64_t before;
	int i;

	(void)state;
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC);
	for (i = 0; i < 4; i++) {
		wr = atomic(&world, RBX_OP_FETCH_ADD, sges, 0);
		sges[1] = sges[0];
		switch (i) {
		case 0: sges[0].length_bytes = 4; break;
		case 1: sges[0].length_bytes = 16; break;
		case 2: /* 8 in all */
			sges[0].length_bytes = sges[1].length_bytes = 4;
			wr.sge_count = 2;
			break;
		default: wr.sge_count = 0;
		}
		assert_int_equal(world.pair.ops->post_send(world.pair.client,
							   &wr, &bad), -EINVAL);
	}
	wr = atomic(&world, RBX_OP_FETCH_ADD, sges, 0);
	wr.flags |= RBX_WR_INLINE;
	assert_int_equal(world.pair.ops->post_send(world.pair.client, &wr,
						   &bad), -EINVAL);
	assert_int_equal(run(&world, RBX_OP_FETCH_ADD, 0, 1, 0, &before), 0);
	world_close(&world);
}

/* Reads behind atomics use their places, and atomics those of reads. */
static void atomics_and_reads_in_turn_bring_their_own(void **state)
{
	struct rbx_sge sges[64];
	struct rbx_wr wrs[64];
	struct world world;
	uint64_t came;
	int turn, i;

	(void)state;
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC |
				   RBX_REMOTE_READ);
	value_set(&world, 512, 4711);
	for (turn = 0; turn < 6; turn++) {
		for (i = 0; i < 64; i++) {
			bool is_read = (turn + i) % 3;

			wrs[i] = atomic(&world, is_read ? RBX_OP_READ :
							  RBX_OP_FETCH_ADD,
					&sges[i], is_read ? 512 : 0);
			sges[i].addr += (uint64_t)i * 8;
			wrs[i].compare_add = 1;
			wrs[i].flags = i == 63 ? RBX_WR_SIGNALED : 0;
			wrs[i].next = i == 63 ? NULL : &wrs[i + 1];
		}
		came = value_at(&world, 0);
		test_post(&world.pair, wrs);
		assert_int_equal(test_wait(&world.pair,
					   world.pair.client_cq).status, 0);
		for (i = 0; i < 64; i++) {
			uint64_t value;

			memcpy(&value, world.pair.local + i * 8, sizeof(value));
			assert_true(value == ((turn + i) % 3 ? 4711 : came++));
		}
	}
	world_close(&world);
}

/* A write before is seen; a fenced read after sees it. */
static void atomic_comes_after_what_was_posted_before(void **state)
{
	struct rbx_sge sges[3];
	struct rbx_wr wrs[3];
	struct world world;
	uint64_t value;
	int i;

	(void)state;
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC |
				   RBX_REMOTE_READ | RBX_REMOTE_WRITE);
	for (i = 0; i < 50; i++) {
		uint64_t start = (uint64_t)i << 32;

		memcpy(world.pair.local + 64, &start, sizeof(start));
		wrs[0] = atomic(&world, RBX_OP_WRITE, &sges[0], 0);
		sges[0].addr += 64;
		wrs[1] = atomic(&world, RBX_OP_FETCH_ADD, &sges[1], 0);
		wrs[1].compare_add = 3;
		wrs[2] = atomic(&world, RBX_OP_READ, &sges[2], 0);
		sges[2].addr += 128;
		wrs[2].flags |= RBX_WR_FENCE;
		wrs[0].flags = wrs[1].flags = 0;
		wrs[0].next = &wrs[1];
		wrs[1].next = &wrs[2];
		test_post(&world.pair, wrs);
		assert_int_equal(test_wait(&world.pair,
					   world.pair.client_cq).status, 0);
		memcpy(&value, world.pair.local, sizeof(value));
		assert_true(value == start);
		memcpy(&value, world.pair.local + 128, sizeof(value));
		assert_true(value == start + 3);
	}
	world_close(&world);
}

static void post_add(struct world *world, struct rbx_qp *qp, int which)
{
	struct rbx_sge sge;
	struct rbx_wr wr = atomic(world, RBX_OP_FETCH_ADD, &sge, 0);
	struct rbx_wr *bad;

	wr.wr_id = (uint64_t)which;
	wr.compare_add = 1;
	sge.addr += (uint64_t)which * 8;
	assert_int_equal(world->pair.ops->post_send(qp, &wr, &bad), 0);
}

/* One end is served by the device's thread, the other by who polls. */
static void adds_of_two_connections_are_all_there(void **state)
{
	static bool seen[CLIENTS * ADDS];
	struct rbx_qp_init init = { .send_depth_count = 8, .max_sge = 1,
				    .recv_depth_count = 1 };
	struct rbx_qp_init server;
	struct rbx_qp *qps[CLIENTS], *other;
	struct world world;
	int posted[CLIENTS] = { 0 };
	int i;

	(void)state;
	memset(seen, 0, sizeof(seen));
	world_open(&world, RBX_LOCAL_WRITE | RBX_REMOTE_ATOMIC);
	world.pair.server_polls = true;
	init.send_cq = init.recv_cq = world.pair.client_cq;
	server = init;
	server.send_cq = server.recv_cq = world.pair.server_cq;
	qps[0] = world.pair.client;
	test_connect(&world.pair, &init, &server, &qps[1], &other);
	for (i = 0; i < CLIENTS; i++, posted[i - 1]++)
		post_add(&world, qps[i], i);
	for (i = 0; i < CLIENTS * ADDS; i++) {
		struct rbx_wc wc = test_wait(&world.pair, world.pair.client_cq);
		uint64_t value;

		assert_int_equal(wc.status, 0);
		memcpy(&value, world.pair.local + wc.wr_id * 8, sizeof(value));
		assert_true(value < CLIENTS * ADDS && !seen[value]);
		seen[value] = true;
		if (posted[wc.wr_id]++ < ADDS)
			post_add(&world, qps[wc.wr_id], (int)wc.wr_id);
	}
	assert_true(value_at(&world, 0) == CLIENTS * ADDS);
	world.pair.ops->destroy_qp(qps[1]);
	world.pair.ops->destroy_qp(other);
	world_close(&world);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fetch_add_brings_what_was_and_adds),
		cmocka_unit_test(compare_swap_changes_only_what_is_equal),
		cmocka_unit_test(atomic_value_may_lie_anywhere_at_home),
		cmocka_unit_test(atomic_needs_its_own_right),
		cmocka_unit_test(atomic_not_aligned_is_refused),
		cmocka_unit_test(atomic_reaches_to_the_edges_of_its_key),
		cmocka_unit_test(atomic_of_another_length_is_einval),
		cmocka_unit_test(atomics_and_reads_in_turn_bring_their_own),
		cmocka_unit_test(atomic_comes_after_what_was_posted_before),
		cmocka_unit_test(adds_of_two_connections_are_all_there),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
