/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remains_test.c - the kernel watches what a watch covers, and nothing else: a change of
 * anything else would wait for the monitor, for as long as the process lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "tests/lib/monitor/kernel.h"
#include "tests/lib/monitor/stand_in.h"

#define PAGES 8u
#define MANY 100u

static struct stand_in cache;

static uint8_t *map(size_t pages)
{
	uint8_t *addr = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(addr, MAP_FAILED);
	return addr;
}

static void map_file_at(uint8_t *addr)
{
	int fd = memfd_create("a file", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_ptr_equal(mmap(addr, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), addr);
	close(fd);
}

/* One of a disk, as a rule, of which userfaultfd wants to know nothing. */
static void map_program_at(uint8_t *addr)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_ptr_equal(mmap(addr, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), addr);
	close(fd);
}

static void watch(void *addr, size_t pages)
{
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr, pages * PAGE), 0);
}

static void unwatch(void *addr, size_t pages)
{
	rbx_memory_monitor_unwatch(&cache.listener, addr, pages * PAGE);
}

static int open_cache(void **state)
{
	(void)state;
	stand_in_open(&cache, RBX_MEMORY_MONITOR_USERFAULTFD);
	return 0;
}

static int open_on_older_kernel(void **state)
{
	kernel.has_no_query = true;
	return open_cache(state);
}

static int close_cache(void **state)
{
	(void)state;
	stand_in_close(&cache);
	assert_false(kernel_watches_some());
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static void refused_watch_leaves_nothing(void **state)
{
	uint8_t *addr = map(PAGES);

	(void)state;
	map_file_at(addr + PAGE);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr,
						  PAGES * PAGE), -EOPNOTSUPP);
	assert_false(kernel_watches_some());
	munmap(addr + PAGE, PAGE);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr, PAGES * PAGE), -EFAULT);
	assert_false(kernel_watches_some());
	munmap(addr, PAGES * PAGE);
}

/* A small watch in every second page of a large one. */
static void unwatch_leaves_many_that_others_watch(void **state)
{
	uint8_t *addr = map(2 * MANY);

	(void)state;
	watch(addr, 2 * MANY);
	for (size_t i = 0; i < MANY; i++)
		watch(addr + 2 * i * PAGE, 1);
	unwatch(addr, 2 * MANY);
	for (size_t i = 0; i < 2 * MANY; i++)
		assert_int_equal(kernel_watches(addr + i * PAGE), i % 2 == 0);
	for (size_t i = 0; i < MANY; i++)
		unwatch(addr + 2 * i * PAGE, 1);
	assert_false(kernel_watches_some());
	munmap(addr, 2 * MANY * PAGE);
}

static uint8_t *move(uint8_t *from, uint8_t *to)
{
	assert_ptr_equal(mremap(from, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				to),
			 to);
	rbx_memory_monitor_wait();
	return to;
}

static void moved_memory_is_not_watched(void **state)
{
	uint8_t *addr = map(PAGES);
	uint8_t *to = map(PAGES);

	(void)state;
	watch(addr, PAGES);
	move(addr, to);
	assert_false(kernel_watches(to));
	unwatch(addr, PAGES);
	munmap(to, PAGES * PAGE);
}

/* What was watched there goes on to be, in its part. */
static void moved_memory_is_watched_where_a_watch_is(void **state)
{
	uint8_t *addr = map(PAGES);
	uint8_t *to = map(PAGES);

	(void)state;
	watch(addr, PAGES);
	watch(to + PAGE, 2);
	move(addr, to);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(kernel_watches(to + i * PAGE), i == 1 || i == 2);
	unwatch(addr, PAGES);
	unwatch(to + PAGE, 2);
	assert_false(kernel_watches_some());
	munmap(to, PAGES * PAGE);
}

/* Where only the text tells of mappings, what was added remains until all have left. */
static void expect_nothing_or_older_kernel(void)
{
	assert_int_equal(kernel_watches_some(), !kernel_has_query());
}

static void memory_that_moved_and_grew_is_not_watched(void **state)
{
	uint8_t *addr = map(PAGES + 1);
	uint8_t *to;

	(void)state;
	mprotect(addr + PAGES * PAGE, PAGE, PROT_NONE); /* in the way */
	watch(addr, PAGES);
	to = mremap(addr, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE);
	assert_ptr_not_equal(to, MAP_FAILED);
	assert_ptr_not_equal(to, addr);
	rbx_memory_monitor_wait();
	unwatch(addr, PAGES);
	expect_nothing_or_older_kernel();
	munmap(to, 2 * PAGES * PAGE);
	munmap(addr + PAGES * PAGE, PAGE);
}

/* The mapping of the watched pages gets longer. */
static uint8_t *map_and_grow(void)
{
	uint8_t *addr = map(2 * PAGES);

	watch(addr, PAGES);
	munmap(addr + PAGES * PAGE, PAGES * PAGE);
	assert_ptr_equal(mremap(addr, PAGES * PAGE, 2 * PAGES * PAGE, 0), addr);
	return addr;
}

static void memory_that_grew_in_place_is_not_watched(void **state)
{
	uint8_t *addr = map_and_grow();

	(void)state;
	unwatch(addr, PAGES);
	expect_nothing_or_older_kernel();
	munmap(addr, 2 * PAGES * PAGE);
}

static void rest_of_what_was_replaced_is_not_watched(void **state)
{
	uint8_t *addr = map(PAGES);

	(void)state;
	watch(addr, PAGES);
	map_program_at(addr);
	map_program_at(addr + 3 * PAGE);
	unwatch(addr, PAGES);
	assert_false(kernel_watches_some());
	munmap(addr, PAGES * PAGE);
}

/* No handler of fork() runs in it: it keeps the descriptors. Ends with its parent's pipe. */
static pid_t begin_child_that_keeps(int go_on[2])
{
	char byte;
	pid_t child;

	assert_int_equal(pipe(go_on), 0);
	child = _Fork();
	if (child == 0) {
		close(go_on[1]);
		_exit(read(go_on[0], &byte, 1) == 0 ? 0 : 1);
	}
	assert_true(child > 0);
	return child;
}

static void end_child(pid_t child, const int go_on[2])
{
	int status;

	close(go_on[0]);
	close(go_on[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A child has the descriptor, so the kernel goes on watching when it is closed here. The
 * pages that the memory grew by are cut off from what is watched, and unwatch() knows
 * nothing of them. */
static void leaving_gives_back_all_though_a_child_has_the_descriptor(void **state)
{
	uint8_t *addr = map_and_grow();
	int go_on[2];
	pid_t child = begin_child_that_keeps(go_on);

	(void)state;
	munmap(addr + (PAGES - 1) * PAGE, PAGE);
	unwatch(addr, PAGES);
	assert_true(kernel_watches(addr + PAGES * PAGE));
	stand_in_close(&cache);
	assert_false(kernel_watches_some());
	munmap(addr, 2 * PAGES * PAGE);
	end_child(child, go_on);
	stand_in_open(&cache, RBX_MEMORY_MONITOR_USERFAULTFD);
}

/* What a cache does when its context is closed. */
static int close_in_child(uint8_t *addr)
{
	alarm(60);
	if (rbx_memory_monitor_watch(&cache.listener, addr, PAGE) != -EOPNOTSUPP)
		return 1;
	unwatch(addr, PAGES);
	rbx_memory_monitor_leave(&cache.listener);
	return 0;
}

/* One that has a monitor of its own, too. */
static int close_in_child_that_listens(uint8_t *addr)
{
	static struct stand_in mine;
	int result;

	stand_in_open(&mine, RBX_MEMORY_MONITOR_USERFAULTFD);
	result = close_in_child(addr);
	stand_in_close(&mine);
	return result;
}

static void check_child(int (*look)(uint8_t *addr))
{
	uint8_t *addr = map(PAGES);
	int status;
	pid_t child;

	watch(addr, PAGES);
	child = fork();
	if (child == 0)
		_exit(look(addr));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(kernel_watches(addr));
	unwatch(addr, PAGES);
	munmap(addr, PAGES * PAGE);
}

static void child_may_end_the_watches_of_its_parent(void **state)
{
	(void)state;
	check_child(close_in_child);
	kernel_skip_under_tsan();
	check_child(close_in_child_that_listens);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_cache, close_cache)
#define BOTH(test)                                                                     \
	TEST(test),                                                                    \
	{                                                                              \
		#test " on an older kernel", test, open_on_older_kernel, close_cache,  \
			NULL                                                           \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(refused_watch_leaves_nothing),
		TEST(unwatch_leaves_many_that_others_watch),
		BOTH(moved_memory_is_not_watched),
		TEST(moved_memory_is_watched_where_a_watch_is),
		BOTH(memory_that_moved_and_grew_is_not_watched),
		BOTH(memory_that_grew_in_place_is_not_watched),
		BOTH(rest_of_what_was_replaced_is_not_watched),
		BOTH(leaving_gives_back_all_though_a_child_has_the_descriptor),
		TEST(child_may_end_the_watches_of_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
