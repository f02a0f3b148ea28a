/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * storm_test.c - threads change memory and use one cache of registrations (stand_in.h). Each
 * stamps its pages with a word of its own after each change, and what the device reads then
 * must be that word.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/monitor/stand_in.h"

#define PAGES 4u
#define MAPPERS 3
#define ROUNDS 1500u

static struct stand_in cache;

static struct {
	uint8_t *addr; /* of the tests in which threads share an address */
	uint32_t is_over; /* atomic */
	uint32_t stale_count; /* atomic */
} storm;

static int setup(void **state)
{
	(void)state;
	stand_in_open(&cache, RBX_MEMORY_MONITOR_USERFAULTFD);
	memset(&storm, 0, sizeof(storm));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stand_in_close(&cache);
	return 0;
}

static uint8_t *map(void *at, int flags)
{
	uint8_t *addr = mmap(at, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	assert_ptr_not_equal(addr, MAP_FAILED);
	return addr;
}

/* The caller has these pages for itself. */
static void stamp_and_look(uint8_t *addr, uint64_t word)
{
	uint64_t words[PAGES] = { 0 };

	pages_stamp(addr, PAGES, word);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(stand_in_read(&cache, addr, PAGES, words), 0);
		for (uint32_t i = 0; i < PAGES; i++)
			if (words[i] != word)
				RBX_ADD_RELAXED(&storm.stale_count, 1);
	}
}

static uint64_t word_of(uintptr_t thread, uint32_t round)
{
	return ((uint64_t)thread << 32) + round + 1;
}

/* The kernel gives the addresses that one thread has unmapped to the next at once. */
static void *map_and_unmap(void *arg)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint8_t *addr = map(NULL, 0);

		stamp_and_look(addr, word_of((uintptr_t)arg, round));
		munmap(addr, (size_t)PAGES * PAGE);
	}
	return NULL;
}

/* glibc unmaps within free(), with buffers of this length; with a lock held, if it trims. */
static void *allocate_and_free(void *arg)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		void *memory = NULL;
		void *other = malloc(300000);

		assert_non_null(other);
		assert_int_equal(posix_memalign(&memory, PAGE, 200000), 0);
		stamp_and_look(memory, word_of((uintptr_t)arg, round));
		free(memory);
		free(other);
	}
	return NULL;
}

/* Registers at any time, whatever is there. */
static void *look_on(void *arg)
{
	uint64_t words[PAGES];

	(void)arg;
	while (!RBX_LOAD_RELAXED(&storm.is_over)) {
		(void)stand_in_read(&cache, storm.addr, PAGES, words);
		(void)stand_in_read(&cache, storm.addr + PAGE, 1, words);
	}
	return NULL;
}

static void run(void *(*main_of)(void *), uintptr_t count)
{
	pthread_t threads[MAPPERS];

	for (uintptr_t i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, main_of, (void *)(i + 1)), 0);
	for (uintptr_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(storm.stale_count, 0);
}

static void same_addresses_of_other_threads_are_never_stale(void **state)
{
	(void)state;
	run(map_and_unmap, MAPPERS);
}

static void allocators_are_never_stale(void **state)
{
	(void)state;
	run(allocate_and_free, MAPPERS);
#ifndef __SANITIZE_ADDRESS__ /* its allocator unmaps nothing */
	assert_int_not_equal(stand_in_told(&cache), 0);
#endif
}

/* One thread changes what is at an address; another registers and looks up there meanwhile. */
static void change_in_a_race(void (*change)(void))
{
	pthread_t thread;

	storm.addr = map((void *)(uintptr_t)TEST_ADDRESSES, 0);
	assert_int_equal(pthread_create(&thread, NULL, look_on, NULL), 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		change();
		stamp_and_look(storm.addr, word_of(1, round));
	}
	RBX_STORE_RELAXED(&storm.is_over, 1);
	pthread_join(thread, NULL);
	munmap(storm.addr, (size_t)PAGES * PAGE);
	assert_int_equal(storm.stale_count, 0);
}

static void map_anew(void)
{
	map(storm.addr, MAP_FIXED);
}

static void unmap_and_map(void)
{
	munmap(storm.addr + PAGE, PAGE);
	assert_ptr_equal(mmap(storm.addr + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 storm.addr + PAGE);
}

static void move_over(void)
{
	uint8_t *from = map(NULL, 0);

	assert_ptr_equal(mremap(from, (size_t)PAGES * PAGE, (size_t)PAGES * PAGE,
				MREMAP_MAYMOVE | MREMAP_FIXED, storm.addr),
			 storm.addr);
}

static void discard(void)
{
	assert_int_equal(madvise(storm.addr, (size_t)PAGES * PAGE, MADV_DONTNEED), 0);
}

static void registering_races_mapping_over(void **state)
{
	(void)state;
	change_in_a_race(map_anew);
}

static void registering_races_unmap(void **state)
{
	(void)state;
	change_in_a_race(unmap_and_map);
}

static void registering_races_mremap(void **state)
{
	(void)state;
	change_in_a_race(move_over);
}

static void registering_races_a_discard(void **state)
{
	(void)state;
	change_in_a_race(discard);
}

#define STORM(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORM(same_addresses_of_other_threads_are_never_stale),
		STORM(allocators_are_never_stale),
		STORM(registering_races_mapping_over),
		STORM(registering_races_unmap),
		STORM(registering_races_mremap),
		STORM(registering_races_a_discard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
