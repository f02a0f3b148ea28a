/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planner_test.c - what is merged and what is not, and that a planned work
 * request moves the same bytes as its members would have one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/planner.h"

#define PAGE RBX_PAGE_BYTES

static uint8_t memory[1 << 20];
static uint8_t staging_memory[RBX_STAGING_BYTES];

struct fixture {
	struct rbx_staging staging;
	struct rbx_planner planner;
	struct rbx_merge_queue queue;
	struct rbx_fragment fragments[64];
	int count;
	struct rbx_work work;
};

static void setup(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	rbx_staging_init(&fixture->staging, staging_memory, 77);
	fixture->planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
		.any_lkey = 5,
		.staging = &fixture->staging,
	};
	rbx_merge_queue_init(&fixture->queue, true);
}

/* Adds a fragment whose local memory touches no other's. */
static struct rbx_fragment *add(struct fixture *fixture, int direction,
				uint64_t remote_addr, uint32_t length_bytes)
{
	struct rbx_fragment *fragment = &fixture->fragments[fixture->count];

	*fragment = (struct rbx_fragment){
		.direction = (uint8_t)direction,
		.rkey = 9,
		.remote_addr = remote_addr,
		.length_bytes = length_bytes,
		.local_addr = (uintptr_t)memory +
			      (uint64_t)fixture->count * 4 * PAGE,
	};
	fixture->count++;
	rbx_merge_queue_add(&fixture->queue, &fragment->node);
	return fragment;
}

/* As the channel does, if there is credit. */
static int take(struct fixture *fixture)
{
	int err = 0;

	if (fixture->work.staged)
		err = rbx_planner_stage(&fixture->planner, &fixture->work);
	if (!err)
		(void)rbx_merge_queue_take(&fixture->queue, fixture->work.last);
	return err;
}

/* Plans the next work request; its member count, 0: none. */
static uint32_t next(struct fixture *fixture)
{
	if (!rbx_planner_next(&fixture->planner, &fixture->queue,
			      &fixture->work))
		return 0;
	assert_int_equal(take(fixture), 0);
	return fixture->work.member_count;
}

static void planner_merges_neighbours(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	for (int i = 0; i < 4; i++)
		add(&f, RBX_DIRECTION_WRITE, 0x10000 + (uint64_t)i * PAGE, PAGE);
	assert_int_equal(next(&f), 4);
	assert_int_equal(f.work.remote_addr, 0x10000);
	assert_int_equal(f.work.length_bytes, 4 * PAGE);
	assert_int_equal(f.work.sge_count, 4);
	assert_int_equal(f.work.sges[2].addr, f.fragments[2].local_addr);
	assert_int_equal(f.work.sges[2].lkey, 5);
	assert_int_equal(next(&f), 0);
}

static void planner_lone_request_leaves_alone(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	add(&f, RBX_DIRECTION_READ, 0x10000, PAGE);
	assert_int_equal(next(&f), 1);
	assert_int_equal(next(&f), 0);
}

static void expect_no_merge(struct fixture *f)
{
	assert_int_equal(next(f), 1);
	assert_int_equal(next(f), 1);
	assert_int_equal(next(f), 0);
}

static void planner_gap_is_not_merged(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE + 1, PAGE);
	expect_no_merge(&f);
}

static void planner_overlap_is_not_merged(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE - 1, PAGE);
	expect_no_merge(&f);
}

static void planner_directions_are_not_merged(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	add(&f, RBX_DIRECTION_READ, 0x10000 + PAGE, PAGE);
	expect_no_merge(&f);
}

static void planner_other_key_is_not_merged(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE, PAGE)->rkey = 10;
	expect_no_merge(&f);
}

static void planner_alone_flag_is_not_merged(void **state)
{
	static struct fixture f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		setup(&f);
		add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
		add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE, PAGE);
		f.fragments[i].flags = RBX_FRAGMENT_ALONE;
		expect_no_merge(&f);
	}
}

static void planner_without_merging_keeps_all_apart(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	f.planner.merge = false;
	add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE, PAGE);
	expect_no_merge(&f);
}

static void planner_scatter_limit_ends_merging(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	f.planner.sge_max = 3;
	for (int i = 0; i < 7; i++)
		add(&f, RBX_DIRECTION_READ, 0x10000 + (uint64_t)i * 512, 512);
	assert_int_equal(next(&f), 3);
	assert_int_equal(next(&f), 3);
	assert_int_equal(next(&f), 1);
}

static void planner_message_limit_ends_merging(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	f.planner.message_bytes_max = 3 * PAGE - 1;
	for (int i = 0; i < 4; i++)
		add(&f, RBX_DIRECTION_READ, 0x10000 + (uint64_t)i * PAGE, PAGE);
	assert_int_equal(next(&f), 2);
	assert_int_equal(next(&f), 2);
}

static void planner_local_neighbours_share_an_entry(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	f.planner.sge_max = 1;
	for (int i = 0; i < 8; i++)
		add(&f, RBX_DIRECTION_READ, 0x10000 + (uint64_t)i * PAGE, PAGE)
			->local_addr = (uintptr_t)memory + (uint64_t)i * PAGE;
	assert_int_equal(next(&f), 8);
	assert_int_equal(f.work.sge_count, 1);
	assert_int_equal(f.work.sges[0].length_bytes, 8 * PAGE);
}

static void planner_regions_with_other_keys_do_not_share_an_entry(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	for (int i = 0; i < 2; i++) {
		struct rbx_fragment *fragment =
			add(&f, RBX_DIRECTION_READ,
			    0x10000 + (uint64_t)i * PAGE, PAGE);

		fragment->local_addr = (uintptr_t)memory + (uint64_t)i * PAGE;
		fragment->flags = RBX_FRAGMENT_HAS_LKEY;
		fragment->lkey = 100 + (uint32_t)i;
	}
	assert_int_equal(next(&f), 2);
	assert_int_equal(f.work.sge_count, 2);
	assert_int_equal(f.work.sges[0].lkey, 100);
	assert_int_equal(f.work.sges[1].lkey, 101);
}

/* Moves the bytes of the work request as a device would. */
static void carry_out(const struct fixture *f, uint8_t *remote)
{
	uint8_t *at = remote + f->work.remote_addr;

	for (uint32_t i = 0; i < f->work.sge_count; i++) {
		const struct rbx_sge *sge = &f->work.sges[i];

		memcpy(at, (void *)(uintptr_t)sge->addr, sge->length_bytes);
		at += sge->length_bytes;
	}
}

/* The original kept the address of the last request, and registered the memory
 * of the first for all of them. */
static void planner_merged_writes_go_where_each_would_alone(void **state)
{
	static uint8_t remote[32 * PAGE], plain[32 * PAGE];
	static struct fixture f;
	uint64_t at = 1000;

	(void)state;
	setup(&f);
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t length_bytes = 700 * i + 1;
		struct rbx_fragment *fragment =
			add(&f, RBX_DIRECTION_WRITE, at, length_bytes);

		memset((void *)(uintptr_t)fragment->local_addr, 'a' + (int)i,
		       length_bytes);
		memset(plain + at, 'a' + (int)i, length_bytes);
		at += length_bytes;
	}
	assert_int_equal(next(&f), 6);
	assert_int_equal(f.work.remote_addr, 1000);
	carry_out(&f, remote);
	assert_memory_equal(remote, plain, sizeof(remote));
}

/* The original took each request for one page. */
static void planner_merges_reads_of_any_length(void **state)
{
	static const uint32_t lengths[] = { 1, 512, PAGE, 3 * PAGE, 70000, 7 };
	static struct fixture f;
	uint64_t at = 0x10000;

	(void)state;
	setup(&f);
	for (int i = 0; i < 6; i++) {
		add(&f, RBX_DIRECTION_READ, at, lengths[i])->local_addr =
			(uint64_t)i << 20;
		at += lengths[i];
	}
	assert_int_equal(next(&f), 6);
	assert_int_equal(f.work.length_bytes, at - 0x10000);
	for (int i = 0; i < 6; i++)
		assert_int_equal(f.work.sges[i].length_bytes, lengths[i]);
}

/* The original compared with the first request of a batch, without offsets. */
static void planner_neighbour_of_the_first_alone_does_not_join(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE, PAGE);
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + 5 * PAGE, PAGE);
	assert_int_equal(next(&f), 2);
	assert_int_equal(next(&f), 1);
	assert_int_equal(next(&f), 1);
	assert_int_equal(next(&f), 0);
}

/* The original kept the members in an array of ten, without a check. */
static void planner_many_small_members_stay_within_the_bounds(void **state)
{
	static struct fixture f;
	uint32_t members = 0, count;

	(void)state;
	setup(&f);
	for (int i = 0; i < 64; i++)
		add(&f, RBX_DIRECTION_WRITE, 0x10000 + (uint64_t)i, 1);
	while ((count = next(&f)) != 0) {
		assert_true(f.work.sge_count <= RBX_SGE_MAX);
		members += count;
	}
	assert_int_equal(members, 64);
}

static void planner_staged_write_is_one_piece(void **state)
{
	static struct fixture f;
	uint8_t *staged;

	(void)state;
	setup(&f);
	f.planner.has_any_lkey = false;
	for (int i = 0; i < 3; i++) {
		struct rbx_fragment *fragment =
			add(&f, RBX_DIRECTION_WRITE,
			    0x10000 + (uint64_t)i * 1000, 1000);

		memset((void *)(uintptr_t)fragment->local_addr, 'a' + i, 1000);
	}
	assert_int_equal(next(&f), 3);
	assert_int_equal(f.work.sge_count, 1);
	assert_int_equal(f.work.sges[0].lkey, 77);
	assert_int_equal(f.work.sges[0].length_bytes, 3000);
	staged = (uint8_t *)(uintptr_t)f.work.sges[0].addr;
	for (int i = 0; i < 3000; i++)
		assert_int_equal(staged[i], 'a' + i / 1000);
	rbx_planner_finish(&f.planner, &f.work, true);
	assert_int_equal(f.staging.taken[0], 0);
}

static void planner_staged_read_arrives_where_it_belongs(void **state)
{
	static struct fixture f;
	uint8_t *staged;

	(void)state;
	setup(&f);
	f.planner.has_any_lkey = false;
	for (int i = 0; i < 3; i++)
		add(&f, RBX_DIRECTION_READ, 0x10000 + (uint64_t)i * 1000, 1000);
	memset(memory, 0, sizeof(memory));
	assert_int_equal(next(&f), 3);
	staged = (uint8_t *)(uintptr_t)f.work.sges[0].addr;
	for (int i = 0; i < 3000; i++)
		staged[i] = (uint8_t)('a' + i / 1000);
	rbx_planner_finish(&f.planner, &f.work, true);
	for (int i = 0; i < 3; i++) {
		uint8_t *local =
			(uint8_t *)(uintptr_t)f.fragments[i].local_addr;

		assert_int_equal(local[0], 'a' + i);
		assert_int_equal(local[999], 'a' + i);
		assert_int_equal(local[1000], 0);
	}
}

static void planner_failed_staged_read_changes_no_memory(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	f.planner.has_any_lkey = false;
	add(&f, RBX_DIRECTION_READ, 0x10000, 1000);
	memset(memory, 3, sizeof(memory));
	next(&f);
	memset((void *)(uintptr_t)f.work.sges[0].addr, 'x', 1000);
	rbx_planner_finish(&f.planner, &f.work, false);
	assert_int_equal(memory[0], 3);
	assert_int_equal(f.staging.taken[0], 0);
}

static void planner_staging_used_up_takes_nothing(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f);
	f.planner.has_any_lkey = false;
	for (unsigned int i = 0; i < RBX_STAGING_WORDS; i++)
		rbx_staging_take(&f.staging, RBX_STAGING_RUN_BYTES);
	add(&f, RBX_DIRECTION_READ, 0x10000, PAGE);
	assert_true(rbx_planner_next(&f.planner, &f.queue, &f.work));
	assert_int_equal(take(&f), -EAGAIN);
	assert_false(rbx_merge_queue_empty(&f.queue));
	rbx_staging_give(&f.staging, 0, RBX_STAGING_RUN_BYTES);
	assert_int_equal(next(&f), 1);
}

static void planner_region_is_never_staged(void **state)
{
	static struct fixture f;
	struct rbx_fragment *fragment;

	(void)state;
	setup(&f);
	f.planner.stage_always = true;
	fragment = add(&f, RBX_DIRECTION_WRITE, 0x10000, PAGE);
	fragment->flags = RBX_FRAGMENT_HAS_LKEY;
	fragment->lkey = 123;
	add(&f, RBX_DIRECTION_WRITE, 0x10000 + PAGE, PAGE);
	assert_int_equal(next(&f), 1);
	assert_int_equal(f.work.sges[0].lkey, 123);
	assert_int_equal(next(&f), 1);
	assert_int_equal(f.work.sges[0].lkey, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planner_merges_neighbours),
		cmocka_unit_test(planner_lone_request_leaves_alone),
		cmocka_unit_test(planner_gap_is_not_merged),
		cmocka_unit_test(planner_overlap_is_not_merged),
		cmocka_unit_test(planner_directions_are_not_merged),
		cmocka_unit_test(planner_other_key_is_not_merged),
		cmocka_unit_test(planner_alone_flag_is_not_merged),
		cmocka_unit_test(planner_without_merging_keeps_all_apart),
		cmocka_unit_test(planner_scatter_limit_ends_merging),
		cmocka_unit_test(planner_message_limit_ends_merging),
		cmocka_unit_test(planner_local_neighbours_share_an_entry),
		cmocka_unit_test(
			planner_regions_with_other_keys_do_not_share_an_entry),
		cmocka_unit_test(planner_merged_writes_go_where_each_would_alone),
		cmocka_unit_test(planner_merges_reads_of_any_length),
		cmocka_unit_test(
			planner_neighbour_of_the_first_alone_does_not_join),
		cmocka_unit_test(
			planner_many_small_members_stay_within_the_bounds),
		cmocka_unit_test(planner_staged_write_is_one_piece),
		cmocka_unit_test(planner_staged_read_arrives_where_it_belongs),
		cmocka_unit_test(planner_failed_staged_read_changes_no_memory),
		cmocka_unit_test(planner_staging_used_up_takes_nothing),
		cmocka_unit_test(planner_region_is_never_staged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
