/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * waiting_test.c - a thread that changes memory waits for the monitor, and must never wait for
 * itself, for a thread that registers, or for one that is not there. A test that fails so
 * hangs, until an alarm ends it.
 */
#include <errno.h>
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
#include "lib/monitor/internal.h"
#include "tests/lib/monitor/kernel.h"
#include "tests/lib/monitor/stand_in.h"

#define HANGS_SECONDS 60

/* Asked by the run-time library of TSan: here a child of fork() starts threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static struct stand_in cache;
static uint8_t *shared; /* of a test and its threads */

static uint8_t *map(size_t pages)
{
	uint8_t *addr = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(addr, MAP_FAILED);
	return addr;
}

/* The addresses may be in doubt, as something was discarded there before. */
static void watch(void *addr, size_t pages)
{
	int err;

	while ((err = rbx_monitor_watch(&cache.listener, addr, pages * PAGE)) == -EAGAIN)
		;
	assert_int_equal(err, 0);
}

static int open_cache(void **state)
{
	(void)state;
	alarm(HANGS_SECONDS);
	stand_in_open(&cache, RBX_MONITOR_USERFAULTFD);
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
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static void unmap_shared(void)
{
	munmap(shared, PAGE);
}

/* The mappings are being looked at for one thread. Another change is told meanwhile. */
static void change_during_a_look_is_told(void **state)
{
	uint8_t *addr = map(1);
	uint32_t told = stand_in_told(&cache);

	(void)state;
	shared = map(1);
	watch(shared, 1);
	kernel.before_look = unmap_shared;
	watch(addr, 1);
	assert_null(kernel.before_look);
	assert_int_equal(stand_in_told(&cache), told + 1);
	rbx_monitor_unwatch(&cache.listener, shared, PAGE);
	rbx_monitor_unwatch(&cache.listener, addr, PAGE);
	munmap(addr, PAGE);
}

static void fill_the_hole(void)
{
	assert_ptr_equal(mmap(shared, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 shared);
}

/* A hole that another thread fills just after the kernel was asked to watch. Either all is
 * watched or the caller is refused. */
static void hole_that_is_filled_meanwhile_is_watched(void **state)
{
	uint8_t *addr = map(3);

	(void)state;
	shared = addr + PAGE;
	munmap(shared, PAGE);
	kernel.before_look = fill_the_hole;
	watch(addr, 3);
	assert_null(kernel.before_look);
	for (size_t page = 0; page < 3; page++)
		assert_true(kernel_watches(addr + page * PAGE));
	rbx_monitor_unwatch(&cache.listener, addr, 3 * PAGE);
	munmap(addr, 3 * PAGE);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_cache, close_cache)
#define OLDER_TEST(test)                                                                          \
	{                                                                                         \
		#test " on an older kernel", test, open_on_older_kernel, close_cache, NULL        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(change_during_a_look_is_told),
		OLDER_TEST(change_during_a_look_is_told),
		TEST(hole_that_is_filled_meanwhile_is_watched),
		OLDER_TEST(hole_that_is_filled_meanwhile_is_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
