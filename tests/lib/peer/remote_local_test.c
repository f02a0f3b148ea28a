/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_local_test.c - the local memory of requests on borrowed memory: staged,
 * or in a region.
 */
#include "tests/lib/remote_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
		cmocka_unit_test(staged_requests_are_counted_and_whole),
		cmocka_unit_test(more_than_the_staging_memory_waits_its_turn),
		cmocka_unit_test(region_is_used_without_a_copy),
		cmocka_unit_test(region_of_nothing_is_refused),
	};

	return cmocka_run_group_tests(tests, memory_get, memory_free);
}
