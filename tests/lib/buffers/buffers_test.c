/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * buffers_test.c - how the device gets at buffers: which are copied, which are
 * registered, which are neither, and that it works for buffers of all kinds.
 */
#include "tests/lib/registering.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/context.h"

#define PAGE 4096u
#define REQUESTS 400

/* ---- What is copied, what is registered ------------------------------------*/

static void direct_registers_each_request_and_copies_none(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=direct fragment_bytes=64K");
	transfer_any(&tenant, REQUESTS);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes, 0);
	assert_int_equal(registered(tenant.ctx), 2 * REQUESTS);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
}

static void staging_copies_each_request_and_registers_none(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=staging");
	transfer_any(&tenant, REQUESTS);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes,
			 tenant_stats(tenant.ctx).bytes);
	assert_int_equal(registered(tenant.ctx), 0);
	tenant_close(&tenant);
}

static void auto_copies_below_the_break_even_and_registers_from_it(void **state)
{
	uint8_t *bytes = calloc(1, BREAK_EVEN);
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, auto_settings);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, bytes,
					 BREAK_EVEN - 1, 0),
			 0);
	assert_int_equal(registered(tenant.ctx), 0);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes,
			 BREAK_EVEN - 1);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, bytes, BREAK_EVEN,
					 0),
			 0);
	assert_int_equal(registered(tenant.ctx), 1);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes,
			 BREAK_EVEN - 1);
	transfer_any(&tenant, REQUESTS);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	free(bytes);
}

static void auto_without_a_file_measures_and_says_so(void **state)
{
	struct rbx_context *ctx =
		tenant_context(REGISTERED "buffers=auto tune_file=none");
	char text[4096];

	(void)state;
	rbx_describe(ctx, text, sizeof(text));
	assert_non_null(strstr(text, "registering="));
	/* From where on, if at all, is for the machine to say. */
	assert_non_null(strstr(text, "as measured at open\n"));
	rbx_close(ctx);
}

static void one_key_for_all_memory_needs_neither(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "fabric=soft:tcp buffers=direct");
	transfer_any(&tenant, 10);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes, 0);
	assert_int_equal(tenant_stats(tenant.ctx).registrations, 0);
	tenant_close(&tenant);
}

static void region_is_neither_copied_nor_registered_again(void **state)
{
	uint8_t *bytes = calloc(2, BREAK_EVEN);
	struct rbx_request request = { .op = RBX_WRITE, .buf = bytes,
				       .length_bytes = 2 * BREAK_EVEN };
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=direct");
	assert_int_equal(rbx_region_register(tenant.ctx, bytes, 2 * BREAK_EVEN,
					     &request.region),
			 0);
	for (int i = 0; i < 10; i++) {
		tenant_submit(&tenant, &request);
		tenant_reap(tenant.ctx, 1);
	}
	assert_int_equal(registered(tenant.ctx), 1);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes, 0);
	rbx_region_release(request.region);
	tenant_close(&tenant);
	free(bytes);
}

/* ---- Buffers of all kinds --------------------------------------------------*/

struct unmapping {
	struct rbx_request request;
	uint32_t *done_count;
	size_t bytes;
};

/* What a program may do as soon as its request has completed. */
static void unmap(struct rbx_request *request)
{
	struct unmapping *unmapping = request->user;

	assert_int_equal(request->status, 0);
	assert_int_equal(munmap(request->buf, unmapping->bytes), 0);
	RBX_FETCH_ADD(unmapping->done_count, 1);
}

static void buffers_may_be_unmapped_on_completion(void **state)
{
	static struct unmapping all[64];
	uint32_t done_count = 0;
	struct tenant tenant;
	uint8_t *seen = malloc(BREAK_EVEN);

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=direct");
	for (uint32_t i = 0; i < 640; i++) {
		struct unmapping *one = &all[i % 64];

		if (i % 64 == 0)
			tenant_wait(tenant.ctx, &done_count, i, false);
		*one = (struct unmapping){
			.request = { .op = RBX_WRITE,
				     .length_bytes = BREAK_EVEN,
				     .offset = i % 32 * BREAK_EVEN,
				     .complete = unmap,
				     .user = one },
			.done_count = &done_count,
			.bytes = BREAK_EVEN,
		};
		/* Often at the address that the last one had. */
		one->request.buf = mmap(NULL, BREAK_EVEN,
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(one->request.buf, (int)(i % 32), BREAK_EVEN);
		tenant_submit(&tenant, &one->request);
	}
	tenant_wait(tenant.ctx, &done_count, 640, false);
	for (uint32_t i = 0; i < 32; i++) {
		assert_int_equal(tenant_transfer(&tenant, RBX_READ, seen,
						 BREAK_EVEN, i * BREAK_EVEN),
				 0);
		for (uint32_t at = 0; at < BREAK_EVEN; at++)
			assert_int_equal(seen[at], i);
	}
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	free(seen);
}

static void buffers_of_outstanding_requests_may_overlap(void **state)
{
	static struct rbx_request requests[256];
	struct rbx_request *list[256];
	uint8_t *bytes = malloc(256 * 100 + BREAK_EVEN);
	uint8_t *seen = malloc(BREAK_EVEN);
	struct tenant tenant;

	(void)state;
	tenant_fill(bytes, 256 * 100 + BREAK_EVEN, 3);
	tenant_open(&tenant, REGISTERED "buffers=direct");
	for (uint32_t i = 0; i < 256; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.length_bytes = BREAK_EVEN / 16,
			.offset = i * (BREAK_EVEN / 16),
			.buf = bytes + i * 100,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 256), 0);
	tenant_reap(tenant.ctx, 256);
	for (uint32_t i = 0; i < 256; i++) {
		assert_int_equal(tenant_transfer(&tenant, RBX_READ, seen,
						 BREAK_EVEN / 16,
						 i * (BREAK_EVEN / 16)),
				 0);
		assert_memory_equal(seen, bytes + i * 100, BREAK_EVEN / 16);
	}
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	free(bytes);
	free(seen);
}

static void constant_memory_can_be_written_from(void **state)
{
	void *constant = mmap(NULL, PAGE, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=direct");
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, constant, PAGE, 0),
			 0);
	tenant_close(&tenant);
	munmap(constant, PAGE);
}

static void volume_with_replicas_registers_a_request_once(void **state)
{
	struct rbx_server *servers[] = { tenant_server(), tenant_server() };
	struct rbx_context *ctx = tenant_context(REGISTERED "buffers=direct");
	uint8_t *bytes = malloc(1 << 20), *seen = malloc(1 << 20);
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	char addresses[128];

	(void)state;
	snprintf(addresses, sizeof(addresses), "%s,%s",
		 rbx_server_address(servers[0]),
		 rbx_server_address(servers[1]));
	rbx_volume_options_defaults(&options);
	options.replicas = 2;
	assert_int_equal(rbx_volume_open(ctx, &volume, addresses,
					 2 * TENANT_SLAB_BYTES, &options),
			 0);
	tenant_fill(bytes, 1 << 20, 5);
	/* Across the border of two slabs. */
	assert_int_equal(rbx_write(volume, bytes, 1 << 20,
				   TENANT_SLAB_BYTES - PAGE - 1),
			 0);
	assert_int_equal(rbx_read(volume, seen, 1 << 20,
				  TENANT_SLAB_BYTES - PAGE - 1),
			 0);
	assert_memory_equal(seen, bytes, 1 << 20);
	assert_int_equal(registered(ctx), 2);
	assert_int_equal(tenant_stats(ctx).staged_bytes, 0);
	rbx_volume_close(volume);
	assert_all_end(ctx);
	rbx_close(ctx);
	rbx_server_stop(servers[0]);
	rbx_server_stop(servers[1]);
	free(bytes);
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_registers_each_request_and_copies_none),
		cmocka_unit_test(staging_copies_each_request_and_registers_none),
		cmocka_unit_test(
			auto_copies_below_the_break_even_and_registers_from_it),
		cmocka_unit_test(auto_without_a_file_measures_and_says_so),
		cmocka_unit_test(one_key_for_all_memory_needs_neither),
		cmocka_unit_test(region_is_neither_copied_nor_registered_again),
		cmocka_unit_test(buffers_may_be_unmapped_on_completion),
		cmocka_unit_test(buffers_of_outstanding_requests_may_overlap),
		cmocka_unit_test(constant_memory_can_be_written_from),
		cmocka_unit_test(volume_with_replicas_registers_a_request_once),
	};

	return cmocka_run_group_tests(tests, make_tune_file, remove_tune_file);
}
