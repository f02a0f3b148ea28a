/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_cache_test.c - memory that is used again is not registered again; what has changed is
 * never found; budgets hold, refusals pass.
 *
 * The device pins pages as a NIC does (pinning_nic.h), and reads what was in them when it
 * registered them.
 */
#include "lib/buffers/region_cache.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/random.h"
#include "tests/lib/buffers/pinning_nic.h"

#define PAGE 4096u
#define TEST_ADDRESSES ((uint8_t *)0x7ea000000000ull) /* where nobody maps anything by chance */
#define WAIT_US 100u

static struct pinning_nic nic;
static struct rbx_region_cache *cache;

static void open_with(uint64_t pages, uint32_t regions)
{
	const struct rbx_regions_shape shape = {
		.bytes_max = pages * PAGE,
		.regions_max = regions,
		.cost = { 250, 16000, 100, 4000 },
		.policy = rbx_region_policy_find("lru"),
	};

	assert_int_equal(rbx_region_cache_open(&cache, &nic.device, &shape,
					       RBX_MEMORY_MONITOR_USERFAULTFD), 0);
}

static int set_up(void **state)
{
	(void)state;
	pinning_nic_open(&nic);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rbx_region_cache_close(cache);
	cache = NULL;
	pinning_nic_close(&nic);
	return 0;
}

static uint8_t *map_at(uint8_t *at, size_t pages, uint8_t stamp)
{
	uint8_t *addr = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	assert_true(addr != MAP_FAILED);
	memset(addr, stamp, pages * PAGE);
	return addr;
}

static int take(struct rbx_region_use *use, const uint8_t *addr, size_t bytes)
{
	char error[RBX_ERROR_TEXT_MAX];
	int err;

	do {
		while (!rbx_region_cache_is_settled(cache))
			sched_yield();
		err = rbx_region_cache_take(cache, use, addr, bytes, error);
	} while (err == -EAGAIN);
	return err;
}

/* The device reads what is there now, in each page, and the parts have all of it. */
static void expect_read(const struct rbx_region_use *use, const uint8_t *addr, size_t bytes)
{
	const uint8_t *at = addr;

	for (uint32_t i = 0; i < use->count; i++) {
		const struct rbx_mr *mr = rbx_region_cache_mr(cache, use->parts[i]);
		const uint8_t *end = (const uint8_t *)mr->addr + mr->length_bytes;

		assert_true((const uint8_t *)mr->addr <= at && at < end);
		for (; at < end && at < addr + bytes; at += PAGE - (uintptr_t)at % PAGE)
			assert_int_equal(pinning_nic_read(&nic, mr, at), *at);
	}
	assert_true(at >= addr + bytes);
}

static void use_once(const uint8_t *addr, size_t bytes)
{
	struct rbx_region_use use;

	assert_int_equal(take(&use, addr, bytes), 0);
	expect_read(&use, addr, bytes);
	rbx_region_cache_give(cache, use.parts, use.count);
}

/* By the thread of the cache. */
static void wait_for_alive(uint32_t count)
{
	while (pinning_nic_alive(&nic) != count)
		usleep(WAIT_US);
}

/* ---- What is known --------------------------------------------------------------------*/

static void what_is_known_is_not_registered_again(void **state)
{
	uint8_t *memory = map_at(NULL, 8, 1);

	(void)state;
	open_with(64, 16);
	use_once(memory, 8 * PAGE);
	use_once(memory, 8 * PAGE);
	use_once(memory + 100, 5 * PAGE);
	assert_int_equal(nic.registered_count, 1);
	munmap(memory, 8 * PAGE);
}

static void only_what_is_missing_is_registered(void **state)
{
	uint8_t *memory = map_at(NULL, 8, 2);
	struct rbx_region_cache_counters counters;
	struct rbx_region_use use;

	(void)state;
	open_with(64, 16);
	use_once(memory + 2 * PAGE, 2 * PAGE);
	assert_int_equal(take(&use, memory, 8 * PAGE), 0);
	assert_int_equal(use.count, 3);
	expect_read(&use, memory, 8 * PAGE);
	rbx_region_cache_give(cache, use.parts, use.count);
	assert_int_equal(nic.pages_alive, 8);
	rbx_region_cache_counters(cache, &counters);
	assert_int_equal(counters.regions.partial_hits, 1);
	assert_int_equal(counters.regions.registrations, 3);
	munmap(memory, 8 * PAGE);
}

/* ---- What changes ----------------------------------------------------------------------*/

static void what_was_unmapped_is_not_found(void **state)
{
	uint8_t *memory = map_at(TEST_ADDRESSES, 4, 3);

	(void)state;
	open_with(64, 16);
	use_once(memory, 4 * PAGE);
	munmap(memory + PAGE, PAGE);
	wait_for_alive(0);
	map_at(memory, 4, 4);
	use_once(memory, 4 * PAGE);
	assert_int_equal(nic.registered_count, 2);
	munmap(memory, 4 * PAGE);
}

/* The pages that a use has stay as they are, and are nobody's else. */
static void what_is_in_use_is_kept_until_it_is_given_back(void **state)
{
	uint8_t *memory = map_at(TEST_ADDRESSES, 4, 5);
	struct rbx_region_use use;

	(void)state;
	open_with(64, 16);
	assert_int_equal(take(&use, memory, 4 * PAGE), 0);
	munmap(memory, 4 * PAGE);
	map_at(memory, 4, 6);
	use_once(memory, 4 * PAGE);
	assert_int_equal(pinning_nic_alive(&nic), 2);
	usleep(100 * WAIT_US); /* the thread of the cache has nothing to do, and sleeps */
	rbx_region_cache_give(cache, use.parts, use.count);
	wait_for_alive(1);
	munmap(memory, 4 * PAGE);
}

static bool discard(void)
{
	assert_int_equal(madvise(TEST_ADDRESSES, 2 * PAGE, MADV_DONTNEED), 0);
	return true;
}

/* It was pinned before, so it has the old pages. Who registers it has changed it himself. */
static void what_changes_while_it_is_registered_is_not_found(void **state)
{
	uint8_t *memory = map_at(TEST_ADDRESSES, 2, 7);
	struct rbx_region_use use;

	(void)state;
	open_with(64, 16);
	nic.before = discard;
	assert_int_equal(take(&use, memory, 2 * PAGE), 0);
	rbx_region_cache_give(cache, use.parts, use.count);
	memset(memory, 8, 2 * PAGE);
	use_once(memory, 2 * PAGE);
	assert_int_equal(nic.registered_count, 2);
	munmap(memory, 2 * PAGE);
}

static void what_cannot_be_watched_is_refused(void **state)
{
	struct rbx_region_use use;
	FILE *file = tmpfile();
	uint8_t *memory;

	(void)state;
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), 2 * PAGE), 0);
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
	assert_true(memory != MAP_FAILED);
	memset(memory, 9, 2 * PAGE);
	open_with(64, 16);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(take(&use, memory, 2 * PAGE), -EOPNOTSUPP);
	assert_int_equal(nic.registered_count, 0);
	munmap(memory, 2 * PAGE);
	fclose(file);
}

/* ---- Budgets, and refusals --------------------------------------------------------------*/

static void budgets_hold(void **state)
{
	uint8_t *memory = map_at(NULL, 32, 10);
	struct rbx_region_use use, more;

	(void)state;
	open_with(6, 2);
	for (uint32_t i = 0; i < 40; i++)
		use_once(memory + i % 16 * 2 * PAGE, (1 + i % 2) * PAGE);
	assert_in_range(nic.pages_alive_max, 2, 6);
	assert_int_equal(take(&use, memory, 6 * PAGE), 0);
	assert_int_equal(take(&more, memory + 8 * PAGE, PAGE), -ENOBUFS);
	rbx_region_cache_give(cache, use.parts, use.count);
	use_once(memory + 8 * PAGE, PAGE);
	munmap(memory, 32 * PAGE);
}

static void what_is_refused_is_tried_again_with_less(void **state)
{
	uint8_t *memory = map_at(NULL, 16, 11);

	(void)state;
	nic.alive_max = 3;
	open_with(64, 16);
	for (uint32_t i = 0; i < 16; i++)
		use_once(memory + i * PAGE, PAGE);
	assert_int_equal(nic.registered_count, 16);
	assert_in_range(nic.refused_count, 1, 4); /* then the budget is known */
	munmap(memory, 16 * PAGE);
}

static void what_is_refused_for_good_is_told(void **state)
{
	uint8_t *memory = map_at(NULL, 2, 12);
	struct rbx_region_use use;

	(void)state;
	nic.alive_max = 0;
	open_with(64, 16);
	assert_int_equal(take(&use, memory, PAGE), -ENOMEM);
	nic.alive_max = 1;
	use_once(memory, PAGE);
	munmap(memory, 2 * PAGE);
}

/* ---- Threads ---------------------------------------------------------------------------*/

static struct second {
	pthread_t thread;
	uint8_t *memory;
	int err;
} second;

static void *second_take(void *arg)
{
	char error[RBX_ERROR_TEXT_MAX];
	struct rbx_region_use use;

	(void)arg;
	second.err = rbx_region_cache_take(cache, &use, second.memory, PAGE, error);
	if (second.err)
		return NULL;
	expect_read(&use, second.memory, PAGE);
	rbx_region_cache_give(cache, use.parts, use.count);
	return NULL;
}

/* Another thread wants what this one is registering, and waits for it. */
static bool second_comes(void)
{
	struct rbx_region_cache_counters counters;

	assert_int_equal(pthread_create(&second.thread, NULL, second_take, NULL), 0);
	do
		rbx_region_cache_counters(cache, &counters);
	while (!counters.regions.hits);
	usleep(100 * WAIT_US);
	return true;
}

static bool second_comes_in_vain(void)
{
	(void)second_comes();
	return false;
}

static void who_wants_what_is_being_registered_waits(void **state)
{
	(void)state;
	open_with(64, 16);
	second.memory = map_at(NULL, 1, 14);
	nic.before = second_comes;
	use_once(second.memory, PAGE);
	pthread_join(second.thread, NULL);
	assert_int_equal(second.err, 0);
	assert_int_equal(nic.registered_count, 1);
	munmap(second.memory, PAGE);
}

static void who_waited_for_what_is_refused_registers_it(void **state)
{
	struct rbx_region_use use;

	(void)state;
	open_with(64, 16);
	second.memory = map_at(NULL, 1, 15);
	nic.before = second_comes_in_vain;
	assert_int_equal(take(&use, second.memory, PAGE), -EIO);
	pthread_join(second.thread, NULL);
	assert_int_equal(second.err, 0);
	assert_int_equal(nic.registered_count, 1);
	munmap(second.memory, PAGE);
}

#define THREADS 4
#define AREA_PAGES 24u
#define ROUNDS 400u

/* Each has an area that it maps anew, and all use a common one. */
static uint8_t *common;

static void change(uint8_t *area, struct rbx_random *random, uint8_t stamp)
{
	uint64_t first = rbx_random_below(random, AREA_PAGES - 4);

	switch (rbx_random_below(random, 16)) {
	default:
		map_at(area + first * PAGE, 4, stamp);
		break;
	case 1 ... 8:
		munmap(area + first * PAGE, 4 * PAGE);
		map_at(area + first * PAGE, 4, stamp);
		break;
	case 0: /* it is in doubt for a second, and not cached */
		assert_int_equal(madvise(area + first * PAGE, 4 * PAGE, MADV_DONTNEED), 0);
		memset(area + first * PAGE, stamp, 4 * PAGE);
	}
}

static void use_some(const uint8_t *area, struct rbx_random *random)
{
	uint64_t first = rbx_random_below(random, AREA_PAGES - 6);
	size_t bytes = (1 + rbx_random_below(random, 6)) * PAGE;
	char error[RBX_ERROR_TEXT_MAX];
	struct rbx_region_use use;
	int err = -EAGAIN;

	if (rbx_region_cache_is_settled(cache))
		err = rbx_region_cache_take(cache, &use, area + first * PAGE, bytes, error);
	if (err) { /* the others have all room in use, the device has no slot, or memory changes */
		assert_true(err == -ENOBUFS || err == -ENOMEM || err == -EAGAIN);
		return;
	}
	expect_read(&use, area + first * PAGE, bytes);
	rbx_region_cache_give(cache, use.parts, use.count);
}

static void *worker(void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg;
	uint8_t *area = map_at(TEST_ADDRESSES + (number + 1) * 1024 * PAGE, AREA_PAGES, 1);
	struct rbx_random random;

	rbx_random_seed(&random, number);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		change(area, &random, (uint8_t)(round + number));
		for (uint32_t i = 0; i < 4; i++) {
			use_some(area, &random);
			use_some(common, &random);
		}
	}
	munmap(area, AREA_PAGES * PAGE);
	return NULL;
}

static void nobody_reads_what_has_changed(void **state)
{
	pthread_t threads[THREADS];
	struct rbx_region_cache_counters counters;

	(void)state;
	open_with(64, 20);
	common = map_at(NULL, AREA_PAGES, 13);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_in_range(nic.pages_alive_max, 20, 64);
	rbx_region_cache_counters(cache, &counters);
	assert_true(counters.regions.hits && counters.regions.partial_hits &&
		    counters.regions.misses);
	munmap(common, AREA_PAGES * PAGE);
}

#define CACHE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(what_is_known_is_not_registered_again),
		CACHE_TEST(only_what_is_missing_is_registered),
		CACHE_TEST(what_was_unmapped_is_not_found),
		CACHE_TEST(what_is_in_use_is_kept_until_it_is_given_back),
		CACHE_TEST(what_changes_while_it_is_registered_is_not_found),
		CACHE_TEST(what_cannot_be_watched_is_refused),
		CACHE_TEST(budgets_hold),
		CACHE_TEST(what_is_refused_is_tried_again_with_less),
		CACHE_TEST(what_is_refused_for_good_is_told),
		CACHE_TEST(who_wants_what_is_being_registered_waits),
		CACHE_TEST(who_waited_for_what_is_refused_registers_it),
		CACHE_TEST(nobody_reads_what_has_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
