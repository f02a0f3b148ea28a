/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_order_test.c - what requests on borrowed memory do to each other: who
 * shares a work request, who goes first, who waits.
 */
#include "tests/lib/remote_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void neighbours(struct tenant *tenant, uint8_t flags)
{
	struct rbx_request requests[32], *list[32];

	for (uint32_t i = 0; i < 32; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.flags = flags,
			.length_bytes = PAGE,
			.offset = i * PAGE,
			.buf = bytes + (31 - i) * PAGE,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant->remote, list, 32), 0);
	tenant_reap(tenant->ctx, 32);
}

static void neighbours_of_one_submit_share_a_work_request(void **state)
{
	struct tenant tenant;
	struct rbx_stats stats;

	(void)state;
	tenant_open(&tenant, "");
	tenant_fill(bytes, TENANT_SLAB_BYTES, 3);
	for (uint32_t i = 0; i < 32; i++)
		memcpy(model + i * PAGE, bytes + (31 - i) * PAGE, PAGE);
	neighbours(&tenant, 0);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.requests, 32);
	assert_int_equal(stats.bytes, 32 * PAGE);
	assert_true(stats.work_requests <= 2); /* 30 to 32 scatter entries */
	assert_int_equal(stats.work_requests + stats.merged_requests, 32);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, bytes, 32 * PAGE,
					 0),
			 0);
	assert_memory_equal(bytes, model, 32 * PAGE);
	tenant_close(&tenant);
}

static void neighbours_in_any_order_share_a_work_request(void **state)
{
	struct rbx_request requests[32], *list[32];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	tenant_fill(bytes, TENANT_SLAB_BYTES, 4);
	memcpy(model, bytes, 32 * PAGE);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t page = i * 13 % 32; /* each once, none in order */

		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.length_bytes = PAGE,
			.offset = page * PAGE,
			.buf = bytes + page * PAGE,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 32), 0);
	tenant_reap(tenant.ctx, 32);
	assert_true(tenant_stats(tenant.ctx).work_requests <= 2);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, bytes, 32 * PAGE,
					 0),
			 0);
	assert_memory_equal(bytes, model, 32 * PAGE);
	tenant_close(&tenant);
}

/* On one queue pair what is posted first completes first. */
static void urgent_read_completes_before_what_it_came_with(void **state)
{
	struct rbx_request requests[16], *list[16], *done[16];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "mode=doorbell queue_pairs=1");
	for (uint32_t i = 0; i < 16; i++) {
		requests[i] = (struct rbx_request){
			.op = i % 2 ? RBX_READ : RBX_WRITE,
			.flags = i < 15 ? 0 : RBX_URGENT,
			.length_bytes = PAGE,
			.offset = 2 * i * PAGE,
			.buf = bytes + i * PAGE,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 16), 0);
	assert_true(rbx_reap(tenant.ctx, done, 1, -1) == 1);
	assert_ptr_equal(done[0], &requests[15]);
	tenant_reap(tenant.ctx, 15);
	tenant_close(&tenant);
}

static void expect_a_work_request_each(uint8_t flags)
{
	struct tenant tenant;
	struct rbx_stats stats;

	tenant_open(&tenant, "");
	neighbours(&tenant, flags);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.requests, 32);
	assert_int_equal(stats.work_requests, 32);
	assert_int_equal(stats.merged_requests, 0);
	tenant_close(&tenant);
}

static void no_merge_gets_a_work_request_each(void **state)
{
	(void)state;
	expect_a_work_request_each(RBX_NO_MERGE);
}

/* Merged, it would end with the failure of another. */
static void no_resend_gets_a_work_request_each(void **state)
{
	(void)state;
	expect_a_work_request_each(RBX_NO_RESEND);
}

/* A fenced read behind outstanding writes of the same page, over several queue
 * pairs, where nothing else would order them. */
static void fenced_read_sees_the_writes_before_it(void **state)
{
	struct rbx_request requests[17], *list[17];
	struct tenant tenant;
	uint8_t seen[PAGE];

	(void)state;
	tenant_open(&tenant, "queue_pairs=4 mode=single");
	for (uint32_t round = 1; round <= 300; round++) {
		for (uint32_t i = 0; i < 16; i++) {
			memset(bytes + i * PAGE, (int)round, PAGE);
			requests[i] = (struct rbx_request){
				.op = RBX_WRITE,
				.length_bytes = PAGE,
				.offset = i * PAGE,
				.buf = bytes + i * PAGE,
			};
			list[i] = &requests[i];
		}
		requests[16] = (struct rbx_request){
			.op = RBX_READ,
			.flags = RBX_FENCE,
			.length_bytes = PAGE,
			.offset = round % 16 * PAGE,
			.buf = seen,
		};
		list[16] = &requests[16];
		assert_int_equal(rbx_remote_submit(tenant.remote, list, 17), 0);
		tenant_reap(tenant.ctx, 17);
		assert_memory_equal(seen, bytes, PAGE);
	}
	tenant_close(&tenant);
}

/* Each one over the whole page: the last of them is what remains. */
static void fenced_writes_take_place_in_order(void **state)
{
	struct rbx_request requests[64], *list[64];
	static uint8_t pages[64][3 * PAGE];
	struct tenant tenant;
	uint8_t seen[3 * PAGE];

	(void)state;
	tenant_open(&tenant, "queue_pairs=4 fragment_bytes=4K");
	for (uint32_t i = 0; i < 64; i++) {
		memset(pages[i], (int)i, sizeof(pages[i]));
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.flags = RBX_FENCE,
			.length_bytes = 3 * PAGE,
			.buf = pages[i],
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 64), 0);
	tenant_reap(tenant.ctx, 64);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, seen, sizeof(seen),
					 0),
			 0);
	assert_memory_equal(seen, pages[63], sizeof(seen));
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_of_one_submit_share_a_work_request),
		cmocka_unit_test(neighbours_in_any_order_share_a_work_request),
		cmocka_unit_test(urgent_read_completes_before_what_it_came_with),
		cmocka_unit_test(no_merge_gets_a_work_request_each),
		cmocka_unit_test(no_resend_gets_a_work_request_each),
		cmocka_unit_test(fenced_read_sees_the_writes_before_it),
		cmocka_unit_test(fenced_writes_take_place_in_order),
	};

	return cmocka_run_group_tests(tests, memory_get, memory_free);
}
