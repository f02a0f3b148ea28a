/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cached_test.c - buffers=cached: what is registered once is not registered again, and what
 * cannot be kept goes as without a cache.
 */
#include "tests/lib/registering.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "core/random.h"
#include "lib/context.h"

#define PAGE 4096u
#define CACHED REGISTERED "buffers=cached tune_file=none "

static struct tenant tenant;
static uint64_t measured; /* registrations while the context was opened */

static void open_with(const char *settings)
{
	tenant_open(&tenant, settings);
	measured = registered(tenant.ctx);
}

static uint64_t made(void)
{
	return registered(tenant.ctx) - measured;
}

static uint8_t *map(size_t pages)
{
	uint8_t *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	tenant_fill(memory, pages * PAGE, 5);
	return memory;
}

/* There and back again: what comes is what went. */
static void there_and_back(uint8_t *memory, size_t bytes)
{
	uint8_t *model = malloc(bytes);

	memcpy(model, memory, bytes);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, memory, bytes, 0), 0);
	memset(memory, 0, bytes);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, memory, bytes, 0), 0);
	assert_memory_equal(memory, model, bytes);
	free(model);
}

static struct rbx_stats stats(void)
{
	return tenant_stats(tenant.ctx);
}

/* ---- What is kept -----------------------------------------------------------------*/

static void what_was_registered_is_not_registered_again(void **state)
{
	uint8_t *memory = map(32);

	(void)state;
	open_with(CACHED);
	for (int i = 0; i < 50; i++)
		there_and_back(memory, 32 * PAGE);
	there_and_back(memory + PAGE + 7, 20 * PAGE);
	assert_int_equal(made(), 1);
	assert_int_equal(stats().region_misses, 1);
	assert_int_equal(stats().region_hits, 2 * 51 - 1);
	assert_int_equal(stats().region_bytes, 32 * PAGE);
	assert_int_equal(stats().region_evictions, 0);
	assert_int_equal(stats().staged_bytes, 0);
	assert_true(stats().region_spent_ns > 0);
	tenant_close(&tenant);
	munmap(memory, 32 * PAGE);
}

/* The known part is used, the rest is registered, and one work request has both. */
static void buffer_in_several_regions_is_one_work_request(void **state)
{
	uint8_t *memory = map(12);
	uint64_t work_requests;

	(void)state;
	open_with(CACHED);
	there_and_back(memory + 3 * PAGE, 4 * PAGE);
	work_requests = stats().work_requests;
	there_and_back(memory + 100, 12 * PAGE - 200);
	assert_int_equal(stats().region_partial_hits, 1);
	assert_int_equal(made(), 3);
	assert_int_equal(stats().region_bytes, 12 * PAGE);
	assert_int_equal(stats().work_requests, work_requests + 2);
	assert_int_equal(stats().staged_bytes, 0);
	there_and_back(memory + 100, 12 * PAGE - 200);
	assert_int_equal(made(), 3);
	tenant_close(&tenant);
	munmap(memory, 12 * PAGE);
}

static void memory_that_is_mapped_anew_is_registered_anew(void **state)
{
	uint8_t *memory = map(4);

	(void)state;
	open_with(CACHED);
	there_and_back(memory, 4 * PAGE);
	munmap(memory + PAGE, PAGE);
	assert_ptr_equal(mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 memory + PAGE);
	there_and_back(memory, 4 * PAGE);
	assert_int_equal(stats().region_misses, 2);
	assert_int_equal(made(), 2);
	tenant_close(&tenant);
	munmap(memory, 4 * PAGE);
}

static void regions_leave_if_there_is_no_room(void **state)
{
	uint8_t *memory = map(64);

	(void)state;
	open_with(CACHED "region_cache_bytes=64K region_policy=lru");
	for (int i = 0; i < 160; i++)
		there_and_back(memory + i % 16 * 4 * PAGE, 4 * PAGE);
	assert_int_equal(stats().region_misses, 160);
	assert_true(stats().region_evictions >= 156);
	assert_true(stats().region_bytes <= 16 * PAGE);
	assert_int_equal(stats().staged_bytes, 0);
	tenant_close(&tenant);
	munmap(memory, 64 * PAGE);
}

/* ---- What is not kept ---------------------------------------------------------------*/

/* A device of that break-even; it registers for one request what is longer. */
static void more_than_the_cache_has_room_for_goes_without_it(void **state)
{
	uint8_t *memory = map(64);
	char settings[256];

	(void)state;
	snprintf(settings, sizeof(settings), "%s buffers=cached region_cache_bytes=64K",
		 auto_settings);
	open_with(settings);
	there_and_back(memory, 64 * PAGE);
	assert_int_equal(stats().region_bytes, 0);
	assert_int_equal(made(), 2);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	munmap(memory, 64 * PAGE);
}

static void files_are_registered_for_each_request(void **state)
{
	char path[] = "/tmp/rdmabox-cached.XXXXXX";
	int fd = mkstemp(path);
	uint8_t *memory;
	char settings[256];

	(void)state;
	assert_int_equal(ftruncate(fd, 64 * PAGE), 0);
	memory = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	tenant_fill(memory, 64 * PAGE, 6);
	snprintf(settings, sizeof(settings), "%s buffers=cached", auto_settings);
	open_with(settings);
	there_and_back(memory, 64 * PAGE);
	assert_int_equal(made(), 2);
	assert_all_end(tenant.ctx);
	assert_int_equal(stats().region_hits, 0);
	there_and_back(memory, 4 * PAGE); /* below the break-even: copied, as ever */
	assert_int_equal(made(), 2);
	tenant_close(&tenant);
	munmap(memory, 64 * PAGE);
	close(fd);
	unlink(path);
}

static void short_buffers_are_copied(void **state)
{
	uint8_t *memory = map(RBX_CACHED_BYTES_MIN / PAGE);
	char settings[256];

	(void)state;
	snprintf(settings, sizeof(settings), "%s buffers=cached", auto_settings);
	open_with(settings);
	there_and_back(memory, RBX_CACHED_BYTES_MIN - 1);
	assert_int_equal(made(), 0);
	assert_int_equal(stats().staged_bytes, 2 * (RBX_CACHED_BYTES_MIN - 1));
	there_and_back(memory, RBX_CACHED_BYTES_MIN);
	assert_int_equal(made(), 1);
	assert_int_equal(stats().staged_bytes, 2 * (RBX_CACHED_BYTES_MIN - 1));
	munmap(memory, RBX_CACHED_BYTES_MIN);
	tenant_close(&tenant);
}

static bool is_changing; /* atomic: the kernel says so */

/* Calls of the library come here. */
int ioctl(int fd, unsigned long request, ...)
{
	void *arg;
	va_list args;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == UFFDIO_WRITEPROTECT && RBX_LOAD_ACQUIRE(&is_changing)) {
		errno = EAGAIN;
		return -1;
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* The region may be of memory that is gone. */
static void region_is_not_used_while_memory_changes(void **state)
{
	uint8_t *memory = map(32);
	char settings[256];

	(void)state;
	snprintf(settings, sizeof(settings), "%s buffers=cached", auto_settings);
	open_with(settings);
	there_and_back(memory, 32 * PAGE);
	assert_int_equal(made(), 1);
	RBX_STORE_RELEASE(&is_changing, true);
	there_and_back(memory, 32 * PAGE);
	RBX_STORE_RELEASE(&is_changing, false);
	assert_int_equal(made(), 3);
	there_and_back(memory, 32 * PAGE);
	assert_int_equal(made(), 3);
	assert_int_equal(stats().region_hits, 3);
	tenant_close(&tenant);
	munmap(memory, 32 * PAGE);
}

static void nothing_is_kept_if_nobody_tells_of_changes(void **state)
{
	uint8_t *memory = map(64);
	char settings[256], text[4096];

	(void)state;
	snprintf(settings, sizeof(settings), "%s buffers=cached memory_monitor=none",
		 auto_settings);
	open_with(settings);
	rbx_describe(tenant.ctx, text, sizeof(text));
	assert_non_null(strstr(text, "; kept: none: "));
	there_and_back(memory, 64 * PAGE);
	assert_int_equal(made(), 2);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	munmap(memory, 64 * PAGE);
}

/* With 64 pieces of a page each, a request of 64 pages must go, though it is in two regions and
 * its buffer begins within a page: whole it is 64 pieces, cut 65. */
static void request_for_which_pieces_are_short_goes_as_a_whole(void **state)
{
	uint8_t *memory = map(66);

	(void)state;
	open_with(CACHED "fragment_bytes=4K requests_max=64");
	there_and_back(memory + 100, 10 * PAGE);
	assert_int_equal(made(), 1);
	there_and_back(memory + 100, 64 * PAGE);
	assert_int_equal(stats().region_partial_hits, 1);
	assert_int_equal(stats().errors, 0);
	tenant_close(&tenant);
	munmap(memory, 66 * PAGE);
}

/* ---- Threads ----------------------------------------------------------------------*/

#define THREADS 4u
#define ROUNDS 150u
#define COMMON_PAGES 64u
#define PART_BYTES (TENANT_SLAB_BYTES / THREADS) /* of what was borrowed, for each thread */

static uint8_t *common;

static void count_up(struct rbx_request *request)
{
	RBX_FETCH_ADD((uint32_t *)request->user, 1);
}

/* Of one thread of many. */
static void transfer(enum rbx_op op, const uint8_t *buf, uint32_t bytes, uint64_t offset)
{
	uint32_t done_count = 0;
	struct rbx_request request = { .op = (uint8_t)op,
				       .offset = offset,
				       .length_bytes = bytes,
				       .buf = (void *)(uintptr_t)buf,
				       .complete = count_up,
				       .user = &done_count };

	tenant_submit(&tenant, &request);
	tenant_wait(tenant.ctx, &done_count, 1, false);
	assert_int_equal(request.status, 0);
}

/* Sends what all send from, in any pieces of it, and receives in memory that comes and goes. */
static void *sender(void *arg)
{
	uint64_t offset = (uintptr_t)arg * PART_BYTES;
	struct rbx_random random;

	rbx_random_seed(&random, (uintptr_t)arg);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t bytes = 1 + rbx_random_below(&random, COMMON_PAGES * PAGE);
		const uint8_t *from = common + rbx_random_below(&random,
								COMMON_PAGES * PAGE - bytes + 1);
		uint8_t *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		transfer(RBX_WRITE, from, bytes, offset);
		transfer(RBX_READ, to, bytes, offset);
		assert_memory_equal(to, from, bytes);
		munmap(to, bytes);
	}
	return NULL;
}

static void threads_share_regions_while_memory_comes_and_goes(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	common = map(COMMON_PAGES);
	open_with(CACHED "region_cache_bytes=512K region_cache_regions=32");
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sender, (void *)i), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(stats().region_hits && stats().region_partial_hits && stats().region_misses);
	assert_int_equal(stats().errors, 0);
	tenant_close(&tenant);
	munmap(common, COMMON_PAGES * PAGE);
}

/* ---- Options ------------------------------------------------------------------------*/

static void options_that_make_no_sense_are_named(void **state)
{
	static const char *const bad[][2] = {
		{ "region_policy=fifo", "auto|lru|mre|gdsf|s3fifo|sieve" },
		{ "region_cache_regions=0", "1 to 16384" },
		{ "region_cache_regions=16385", "1 to 16384" },
		{ "region_cache_bytes=4095", "4096 to" },
		{ "memory_monitor=hooks", "auto|userfaultfd|none" },
		{ "buffers=cache", "auto|staging|direct|cached" },
	};
	struct rbx_options options;

	(void)state;
	rbx_options_defaults(&options);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rbx_options_set(&options, bad[i][0]), -EINVAL);
		assert_non_null(strstr(rbx_last_error(), bad[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_registered_is_not_registered_again),
		cmocka_unit_test(buffer_in_several_regions_is_one_work_request),
		cmocka_unit_test(memory_that_is_mapped_anew_is_registered_anew),
		cmocka_unit_test(regions_leave_if_there_is_no_room),
		cmocka_unit_test(more_than_the_cache_has_room_for_goes_without_it),
		cmocka_unit_test(files_are_registered_for_each_request),
		cmocka_unit_test(short_buffers_are_copied),
		cmocka_unit_test(region_is_not_used_while_memory_changes),
		cmocka_unit_test(nothing_is_kept_if_nobody_tells_of_changes),
		cmocka_unit_test(request_for_which_pieces_are_short_goes_as_a_whole),
		cmocka_unit_test(threads_share_regions_while_memory_comes_and_goes),
		cmocka_unit_test(options_that_make_no_sense_are_named),
	};

	return cmocka_run_group_tests(tests, make_tune_file, remove_tune_file);
}
