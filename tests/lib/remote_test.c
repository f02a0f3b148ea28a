/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_test.c - requests on borrowed memory: what is written is read, however
 * it is cut, merged, fenced, staged or registered, and bad requests send
 * nothing.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "core/random.h"

#define MANY 3000u
#define PAGE 4096u

static uint8_t *model; /* what the borrowed memory should hold */
static uint8_t *bytes;

static int memory_get(void **state)
{
	(void)state;
	model = calloc(1, TENANT_SLAB_BYTES);
	bytes = aligned_alloc(PAGE, TENANT_SLAB_BYTES);
	return !model || !bytes;
}

static int memory_free(void **state)
{
	(void)state;
	free(model);
	free(bytes);
	return 0;
}

static void assert_remote_is(struct tenant *tenant, const uint8_t *expected)
{
	memset(bytes, 0xee, TENANT_SLAB_BYTES);
	assert_int_equal(tenant_transfer(tenant, RBX_READ, bytes,
					 TENANT_SLAB_BYTES, 0),
			 0);
	assert_memory_equal(bytes, expected, TENANT_SLAB_BYTES);
}

static void borrowed_memory_reads_as_zeros(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	memset(model, 0, TENANT_SLAB_BYTES);
	assert_remote_is(&tenant, model);
	tenant_close(&tenant);
}

/* Sizes and offsets without any order, against a plain array. */
static void any_size_at_any_offset(const char *settings)
{
	struct rbx_random random;
	struct tenant tenant;

	rbx_random_seed(&random, 1);
	tenant_open(&tenant, settings);
	memset(model, 0, TENANT_SLAB_BYTES);
	for (int i = 0; i < 300; i++) {
		uint32_t length = 1 + rbx_random_below(&random, i % 7 ? 9000 :
							  700000);
		uint32_t at = rbx_random_below(&random,
					       TENANT_SLAB_BYTES - length + 1);

		if (i % 2) {
			tenant_fill(model + at, length, (uint64_t)i);
			memcpy(bytes, model + at, length);
		}
		assert_int_equal(tenant_transfer(&tenant,
						 i % 2 ? RBX_WRITE : RBX_READ,
						 bytes, length, at),
				 0);
		assert_memory_equal(bytes, model + at, length);
	}
	assert_remote_is(&tenant, model);
	tenant_close(&tenant);
}

static void any_size_at_any_offset_is_read_as_written(void **state)
{
	(void)state;
	any_size_at_any_offset("");
}

static void any_size_in_small_fragments_is_read_as_written(void **state)
{
	(void)state;
	any_size_at_any_offset("fragment=4K queue_pairs=4");
}

static void any_size_in_large_fragments_is_read_as_written(void **state)
{
	(void)state;
	any_size_at_any_offset("fragment=256K mode=single");
}

static void any_size_through_staging_is_read_as_written(void **state)
{
	(void)state;
	any_size_at_any_offset("buffers=staging");
}

/* Thousands outstanding at once; more than the pool lets in waits for room. */
static void pages_of(struct tenant *tenant, struct rbx_request *requests,
		     enum rbx_op op)
{
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t page = i * 7 % (TENANT_SLAB_BYTES / PAGE);

		if (i >= TENANT_SLAB_BYTES / PAGE && op == RBX_WRITE)
			break;
		requests[i] = (struct rbx_request){
			.op = (uint8_t)op,
			.length_bytes = PAGE,
			.offset = (uint64_t)page * PAGE,
			.buf = bytes + (uint64_t)page * PAGE,
		};
		tenant_submit(tenant, &requests[i]);
	}
}

static void thousands_outstanding(const char *settings)
{
	struct rbx_request *requests = calloc(MANY, sizeof(*requests));
	struct tenant tenant;

	assert_non_null(requests);
	tenant_open(&tenant, settings);
	tenant_fill(model, TENANT_SLAB_BYTES, 2);
	memcpy(bytes, model, TENANT_SLAB_BYTES);
	pages_of(&tenant, requests, RBX_WRITE);
	tenant_reap(tenant.ctx, TENANT_SLAB_BYTES / PAGE);
	assert_remote_is(&tenant, model);
	memset(bytes, 0, TENANT_SLAB_BYTES);
	pages_of(&tenant, requests, RBX_READ);
	tenant_reap(tenant.ctx, MANY);
	assert_memory_equal(bytes, model, TENANT_SLAB_BYTES);
	tenant_close(&tenant);
	free(requests);
}

static void thousands_outstanding_all_complete(void **state)
{
	(void)state;
	thousands_outstanding("");
}

static void more_than_the_pool_wait_for_room(void **state)
{
	(void)state;
	thousands_outstanding("requests_max=64");
}

static void full_pool_says_eagain_and_takes_nothing(void **state)
{
	struct rbx_request requests[65], *list[65], *done[64];
	struct tenant tenant;
	uint64_t posted;

	(void)state;
	tenant_open(&tenant, "requests_max=64 pollers=0");
	for (uint32_t i = 0; i < 65; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.length_bytes = PAGE,
			.offset = i * PAGE,
			.buf = bytes,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 60), 0);
	posted = tenant_stats(tenant.ctx).work_requests;
	assert_int_equal(rbx_remote_submit(tenant.remote, list + 60, 5),
			 -EAGAIN);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, posted);
	assert_int_equal(rbx_remote_submit(tenant.remote, list + 60, 4), 0);
	assert_int_equal(rbx_remote_submit(tenant.remote, list + 64, 1),
			 -EAGAIN);
	/* It can never fit, so waiting would be for ever. */
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 65), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "requests_max"));
	for (int left = 64; left > 0;) {
		int taken = rbx_reap(tenant.ctx, done, 64, TENANT_WAIT_MS);

		assert_true(taken > 0);
		left -= taken;
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list + 64, 1), 0);
	tenant_reap(tenant.ctx, 1);
	tenant_close(&tenant);
}

/* ---- Merging and fences ----------------------------------------------------*/

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

static void no_merge_gets_a_work_request_each(void **state)
{
	struct tenant tenant;
	struct rbx_stats stats;

	(void)state;
	tenant_open(&tenant, "");
	neighbours(&tenant, RBX_NO_MERGE);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.requests, 32);
	assert_int_equal(stats.work_requests, 32);
	assert_int_equal(stats.merged_requests, 0);
	tenant_close(&tenant);
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
	tenant_open(&tenant, "queue_pairs=4 fragment=4K");
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

/* ---- What is refused -------------------------------------------------------*/

static void assert_refused(struct tenant *tenant, struct rbx_request request,
			   const char *word)
{
	struct rbx_request good = {
		.op = RBX_WRITE, .length_bytes = PAGE, .buf = bytes
	};
	struct rbx_request *list[] = { &good, &request };

	assert_int_equal(rbx_remote_submit(tenant->remote, list, 2), -EINVAL);
	if (!strstr(rbx_last_error(), word))
		fail_msg("\"%s\" says nothing of \"%s\"", rbx_last_error(),
			 word);
}

static void bad_request_is_refused_and_sends_nothing(void **state)
{
	const struct rbx_request good = {
		.op = RBX_READ, .length_bytes = PAGE, .buf = bytes
	};
	struct rbx_request bad, *none[1025] = { 0 };
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	bad = good;
	bad.offset = TENANT_SLAB_BYTES - PAGE + 1;
	assert_refused(&tenant, bad, "beyond");
	bad.offset = UINT64_MAX - 1;
	assert_refused(&tenant, bad, "beyond");
	bad.offset = TENANT_SLAB_BYTES;
	bad.length_bytes = 1;
	assert_refused(&tenant, bad, "beyond");
	bad = good;
	bad.length_bytes = UINT32_MAX;
	assert_refused(&tenant, bad, "beyond");
	bad.length_bytes = 0;
	assert_refused(&tenant, bad, "malformed");
	bad = good;
	bad.buf = NULL;
	assert_refused(&tenant, bad, "malformed");
	bad = good;
	bad.op = 2;
	assert_refused(&tenant, bad, "malformed");
	bad = good;
	bad.flags = 4; /* of the core, not the program's */
	assert_refused(&tenant, bad, "malformed");
	assert_int_equal(rbx_remote_submit(tenant.remote, none, 1), -EINVAL);
	assert_int_equal(rbx_remote_submit(tenant.remote, none, 0), -EINVAL);
	assert_int_equal(rbx_remote_submit(tenant.remote, none, 1025), -EINVAL);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, 0);
	assert_int_equal(tenant_stats(tenant.ctx).doorbells, 0);
	assert_int_equal(tenant_stats(tenant.ctx).requests, 0);
	tenant_close(&tenant);
}

static void borrowing_too_much_or_nothing_is_refused(void **state)
{
	struct rbx_remote *remotes[TENANT_SLABS];
	struct rbx_remote *remote = NULL;
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_borrow(tenant.peer, &remote, 0), -EINVAL);
	assert_int_equal(rbx_borrow(tenant.peer, &remote,
				    TENANT_SLAB_BYTES + 1),
			 -EINVAL);
	for (uint32_t i = 1; i < TENANT_SLABS; i++)
		assert_int_equal(rbx_borrow(tenant.peer, &remotes[i], PAGE), 0);
	assert_int_equal(rbx_borrow(tenant.peer, &remote, PAGE), -ENOSPC);
	assert_null(remote);
	for (uint32_t i = 1; i < TENANT_SLABS; i++)
		rbx_return(remotes[i]);
	assert_int_equal(rbx_borrow(tenant.peer, &remote, PAGE), 0);
	rbx_return(remote);
	tenant_close(&tenant);
}

/* What one has borrowed is not reached by the requests of another. */
static void two_loans_are_apart(void **state)
{
	struct rbx_remote *other;
	struct tenant tenant, second;

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_borrow(tenant.peer, &other, TENANT_SLAB_BYTES), 0);
	second = tenant;
	second.remote = other;
	tenant_fill(model, TENANT_SLAB_BYTES, 4);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, model,
					 TENANT_SLAB_BYTES, 0),
			 0);
	assert_remote_is(&tenant, model);
	memset(model, 0, TENANT_SLAB_BYTES);
	assert_remote_is(&second, model);
	rbx_return(other);
	tenant_close(&tenant);
}

/* ---- Local memory ----------------------------------------------------------*/

static void staged_requests_are_counted_and_whole(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "buffers=staging");
	tenant_fill(model, TENANT_SLAB_BYTES, 5);
	memcpy(bytes, model, TENANT_SLAB_BYTES);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, bytes,
					 TENANT_SLAB_BYTES, 0),
			 0);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes,
			 TENANT_SLAB_BYTES);
	assert_remote_is(&tenant, model);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes,
			 2 * TENANT_SLAB_BYTES);
	tenant_close(&tenant);
}

/* 24 MiB outstanding, and 16 MiB to stage them in. */
static void more_than_the_staging_memory_waits_its_turn(void **state)
{
	struct rbx_request requests[24];
	struct tenant tenant;
	uint8_t *target;

	(void)state;
	tenant_open(&tenant, "buffers=staging");
	tenant_fill(model, TENANT_SLAB_BYTES, 6);
	memcpy(bytes, model, TENANT_SLAB_BYTES);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, bytes,
					 TENANT_SLAB_BYTES, 0),
			 0);
	target = calloc(24, 1 << 20);
	assert_non_null(target);
	for (uint32_t i = 0; i < 24; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_READ,
			.length_bytes = 1 << 20,
			.offset = (uint64_t)(i % 4) << 20,
			.buf = target + ((uint64_t)i << 20),
		};
		tenant_submit(&tenant, &requests[i]);
	}
	tenant_reap(tenant.ctx, 24);
	for (uint32_t i = 0; i < 24; i++)
		assert_memory_equal(target + ((uint64_t)i << 20),
				    model + ((uint64_t)(i % 4) << 20), 1 << 20);
	free(target);
	tenant_close(&tenant);
}

static void region_is_used_without_a_copy(void **state)
{
	struct rbx_request request, *list = &request;
	struct rbx_region *region;
	struct tenant tenant;
	uint64_t before;

	(void)state;
	tenant_open(&tenant, "buffers=staging");
	before = tenant_stats(tenant.ctx).registrations;
	assert_int_equal(rbx_region_register(tenant.ctx, bytes + PAGE,
					     64 * PAGE, &region),
			 0);
	assert_int_equal(tenant_stats(tenant.ctx).registrations, before + 1);
	tenant_fill(bytes, 66 * PAGE, 7);
	request = (struct rbx_request){
		.op = RBX_WRITE,
		.length_bytes = 64 * PAGE,
		.buf = bytes + PAGE,
		.region = region,
	};
	assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1), 0);
	tenant_reap(tenant.ctx, 1);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes, 0);
	memcpy(model, bytes + PAGE, 64 * PAGE);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, bytes, 64 * PAGE,
					 0),
			 0);
	assert_memory_equal(bytes, model, 64 * PAGE);

	/* A byte too far at either end. */
	request.buf = bytes + PAGE + 1;
	assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1), -EINVAL);
	request.buf = bytes + PAGE - 1;
	assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "region"));
	rbx_region_release(region);
	tenant_close(&tenant);
}

static void region_of_nothing_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_region *region;

	(void)state;
	assert_int_equal(rbx_region_register(ctx, NULL, PAGE, &region),
			 -EINVAL);
	assert_int_equal(rbx_region_register(ctx, bytes, 0, &region), -EINVAL);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borrowed_memory_reads_as_zeros),
		cmocka_unit_test(any_size_at_any_offset_is_read_as_written),
		cmocka_unit_test(any_size_in_small_fragments_is_read_as_written),
		cmocka_unit_test(any_size_in_large_fragments_is_read_as_written),
		cmocka_unit_test(any_size_through_staging_is_read_as_written),
		cmocka_unit_test(thousands_outstanding_all_complete),
		cmocka_unit_test(more_than_the_pool_wait_for_room),
		cmocka_unit_test(full_pool_says_eagain_and_takes_nothing),
		cmocka_unit_test(neighbours_of_one_submit_share_a_work_request),
		cmocka_unit_test(no_merge_gets_a_work_request_each),
		cmocka_unit_test(fenced_read_sees_the_writes_before_it),
		cmocka_unit_test(fenced_writes_take_place_in_order),
		cmocka_unit_test(bad_request_is_refused_and_sends_nothing),
		cmocka_unit_test(borrowing_too_much_or_nothing_is_refused),
		cmocka_unit_test(two_loans_are_apart),
		cmocka_unit_test(staged_requests_are_counted_and_whole),
		cmocka_unit_test(more_than_the_staging_memory_waits_its_turn),
		cmocka_unit_test(region_is_used_without_a_copy),
		cmocka_unit_test(region_of_nothing_is_refused),
	};

	return cmocka_run_group_tests(tests, memory_get, memory_free);
}
