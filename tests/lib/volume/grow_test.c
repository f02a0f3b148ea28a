/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* grow_test.c - a named volume becomes larger while it is open, and is written to meanwhile. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tests/lib/volume/third_server.h"

#define PAGE 4096u
#define SLAB ((uint64_t)TENANT_SLAB_BYTES)
#define SIZE (2 * SLAB)
#define STEPS 4u

static struct rbx_volume *make(struct rbx_context *ctx, uint32_t replicas, uint64_t size_max)
{
	struct rbx_volume_create_options create;
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_create_options_defaults(&create);
	create.replicas = replicas;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &create), 0);
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.size_max = size_max;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	return volume;
}

static void end(struct rbx_context *ctx, struct rbx_volume *volume)
{
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* ---- A thread that writes to the last page there is ------------------------------------ */

static bool writes; /* atomic */
static uint32_t writes_count; /* atomic */

static void *write_last(void *arg)
{
	struct rbx_volume *volume = arg;
	uint8_t page[PAGE];

	memset(page, 7, PAGE);
	while (__atomic_load_n(&writes, __ATOMIC_ACQUIRE)) {
		assert_int_equal(rbx_write(volume, page, PAGE, rbx_volume_size(volume) - PAGE), 0);
		__atomic_add_fetch(&writes_count, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void page_is(struct rbx_volume *volume, uint64_t offset, uint8_t byte)
{
	uint8_t page[PAGE], expected[PAGE];

	memset(expected, byte, PAGE);
	assert_int_equal(rbx_read(volume, page, PAGE, offset), 0);
	assert_memory_equal(page, expected, PAGE);
}

static void grows_while_it_is_written(uint32_t replicas)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume = make(ctx, replicas, 0);
	uint64_t size = SIZE;
	pthread_t thread;
	uint32_t step, seen;

	writes_count = 0;
	writes = true;
	assert_int_equal(pthread_create(&thread, NULL, write_last, volume), 0);
	for (step = 0; step < STEPS; step++) {
		size += SLAB + PAGE; /* ends within a slab */
		assert_int_equal(rbx_volume_extend(volume, size), 0);
		assert_int_equal(rbx_volume_size(volume), size);
		page_is(volume, size - SLAB, 0);
		seen = __atomic_load_n(&writes_count, __ATOMIC_ACQUIRE);
		tenant_wait(ctx, &writes_count, seen + 2, false);
	}
	__atomic_store_n(&writes, false, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	assert_int_equal(rbx_volume_size(volume), size);
	for (step = 0; step < STEPS; step++, size -= SLAB + PAGE)
		page_is(volume, size - PAGE, 7);
	end(ctx, volume);
}

static void volume_with_replicas_grows(void **state)
{
	(void)state;
	grows_while_it_is_written(2);
}

static void volume_with_one_replica_grows(void **state)
{
	(void)state;
	grows_while_it_is_written(1);
}

static void growth_that_cannot_be_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume = make(ctx, 2, 3 * SLAB), *other;

	(void)state;
	assert_int_equal(rbx_volume_extend(volume, SIZE), 0);
	assert_int_equal(rbx_volume_extend(volume, SIZE - PAGE), -EINVAL);
	assert_int_equal(rbx_volume_extend(volume, SIZE + 1), -EINVAL);
	assert_int_equal(rbx_volume_extend(volume, 3 * SLAB + PAGE), -EFBIG);
	assert_non_null(strstr(rbx_last_error(), "size_max"));
	assert_int_equal(rbx_volume_extend(volume, 3 * SLAB), 0);
	assert_int_equal(rbx_volume_extend(NULL, SIZE), -EINVAL);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 4 * SLAB), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "have that program grow it"));
	assert_int_equal(rbx_volume_open(ctx, &other, pool, SIZE, NULL), 0);
	assert_int_equal(rbx_volume_extend(other, 2 * SIZE), -EOPNOTSUPP);
	assert_int_equal(rbx_volume_close(other), 0);
	end(ctx, volume);
}

static void volume_that_was_taken_over_does_not_grow(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = make(ctx, 2, 0), *taken;
	struct rbx_volume_options options;

	(void)state;
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	assert_int_equal(rbx_volume_open(ctx, &taken, pool, 0, &options), 0);
	assert_int_equal(rbx_volume_extend(volume, 2 * SIZE), -ESTALE);
	assert_int_equal(rbx_volume_size(volume), SIZE);
	assert_int_equal(rbx_volume_size(taken), SIZE);
	(void)rbx_volume_close(volume);
	end(ctx, taken);
}

/* Two of three servers have gone. The size is that of the record, and nobody has chosen that. The
 * servers end, so this is the last test. */
static void size_that_too_few_have_accepted_is_none(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = make(ctx, 1, 0);
	int i;

	(void)state;
	for (i = 1; i < SERVERS; i++) {
		rbx_server_stop(servers[i]);
		servers[i] = NULL;
	}
	for (i = 0; i < 2; i++) {
		assert_int_not_equal(rbx_volume_extend(volume, 2 * SIZE), 0);
		assert_int_equal(rbx_volume_size(volume), SIZE);
	}
	(void)rbx_volume_close(volume);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_with_replicas_grows),
		cmocka_unit_test(volume_with_one_replica_grows),
		cmocka_unit_test(growth_that_cannot_be_is_refused),
		cmocka_unit_test(volume_that_was_taken_over_does_not_grow),
		cmocka_unit_test(size_that_too_few_have_accepted_is_none),
	};

	return cmocka_run_group_tests(tests, third_server_start, servers_stop);
}
