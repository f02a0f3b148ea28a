/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_test.c - requests on borrowed memory: what is written is read, however
 * it is cut, and bad requests send nothing.
 */
#include "tests/lib/remote_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "core/random.h"

#define MANY 3000u

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
	any_size_at_any_offset("fragment_bytes=4K queue_pairs=4");
}

static void any_size_in_large_fragments_is_read_as_written(void **state)
{
	(void)state;
	any_size_at_any_offset("fragment_bytes=256K mode=single");
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
	for (int left = 64; left > 0;) {
		int taken = rbx_reap(tenant.ctx, done, 64, TENANT_WAIT_MS);

		assert_true(taken > 0);
		left -= taken;
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list + 64, 1), 0);
	tenant_reap(tenant.ctx, 1);
	/* It can never fit, so waiting would be for ever. */
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 65), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "requests_max"));
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
	assert_refused(&tenant, bad, "at least 1 byte");
	bad = good;
	bad.buf = NULL;
	assert_refused(&tenant, bad, "has neither");
	bad = good;
	bad.op = 2;
	assert_refused(&tenant, bad, "op 2");
	bad = good;
	bad.flags = 8; /* of the core, not the program's */
	assert_refused(&tenant, bad, "flags 0x8");
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
		cmocka_unit_test(bad_request_is_refused_and_sends_nothing),
		cmocka_unit_test(borrowing_too_much_or_nothing_is_refused),
		cmocka_unit_test(two_loans_are_apart),
	};

	return cmocka_run_group_tests(tests, memory_get, memory_free);
}
