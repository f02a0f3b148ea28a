/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * waiting_test.c - a thread that changes memory waits for the monitor, and must never wait for
 * itself, for a thread that registers, or for one that is not there. A test that fails so
 * hangs, until an alarm ends it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
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
#define MANY 40u /* threads */

static struct stand_in cache;
static uint8_t *shared; /* of a test and its threads */

/* At addresses that no test has had, and nobody else takes when they are unmapped. */
static uint8_t *map(size_t pages)
{
	static uintptr_t next = TEST_ADDRESSES;
	uint8_t *addr = mmap((void *)next, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	next += 64u * PAGE;
	assert_ptr_not_equal(addr, MAP_FAILED);
	return addr;
}

/* The addresses may be in doubt, as something was discarded there before. */
static void watch(void *addr, size_t pages)
{
	int err;

	while ((err = rbx_memory_monitor_watch(&cache.listener, addr, pages * PAGE)) == -EAGAIN)
		;
	assert_int_equal(err, 0);
}

static int open_cache(void **state)
{
	(void)state;
	alarm(HANGS_SECONDS);
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
	kernel_call_before_look(unmap_shared);
	watch(addr, 1);
	assert_true(kernel_has_called());
	assert_int_equal(stand_in_told(&cache), told + 1);
	rbx_memory_monitor_unwatch(&cache.listener, shared, PAGE);
	rbx_memory_monitor_unwatch(&cache.listener, addr, PAGE);
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
	kernel_call_before_look(fill_the_hole);
	watch(addr, 3);
	assert_true(kernel_has_called());
	for (size_t page = 0; page < 3; page++)
		assert_true(kernel_watches(addr + page * PAGE));
	rbx_memory_monitor_unwatch(&cache.listener, addr, 3 * PAGE);
	munmap(addr, 3 * PAGE);
}

static void *unmap(void *page)
{
	munmap(page, PAGE);
	return NULL;
}

/* More changes than events are read at once. */
struct changes {
	pthread_t threads[MANY];
	uint8_t *pages[MANY];
};

static bool is_mapped(uint8_t *page)
{
	unsigned char residency;

	return mincore(page, PAGE, &residency) == 0;
}

/* They are made, and none of them is told: the gate is closed, and stays so. */
static void begin_changes(struct changes *changes)
{
	for (unsigned int i = 0; i < MANY; i++) {
		changes->pages[i] = map(1);
		watch(changes->pages[i], 1);
	}
	rbx_memory_monitor_tell_begin();
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&changes->threads[i], NULL, unmap,
						changes->pages[i]),
				 0);
	for (unsigned int i = 0; i < MANY; i++)
		while (is_mapped(changes->pages[i]))
			sched_yield();
}

static void end_changes(struct changes *changes)
{
	for (unsigned int i = 0; i < MANY; i++) {
		pthread_join(changes->threads[i], NULL);
		rbx_memory_monitor_unwatch(&cache.listener, changes->pages[i], PAGE);
	}
}

static void changes_of_many_threads_are_all_told(void **state)
{
	struct changes changes;
	uint32_t told = stand_in_told(&cache);

	(void)state;
	begin_changes(&changes);
	rbx_memory_monitor_tell_end();
	end_changes(&changes);
	assert_int_equal(stand_in_told(&cache), told + MANY);
}

static void *close_source(void *arg)
{
	rbx_userfaultfd_close();
	return arg;
}

/* The source ends while threads wait for it. Their events have to be read: a child of _Fork()
 * has the descriptor, too, so closing it lets nobody go. */
static void source_reads_all_before_it_ends(void **state)
{
	struct changes changes;
	int go_on[2], status;
	pthread_t thread;
	char byte, text[256];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(go_on), 0);
	child = _Fork();
	if (child == 0) {
		close(go_on[1]);
		_exit(read(go_on[0], &byte, 1) == 0 ? 0 : 1);
	}
	begin_changes(&changes);
	assert_int_equal(pthread_create(&thread, NULL, close_source, NULL), 0);
	while (kernel_watches_some())
		sched_yield();
	usleep(10000); /* most often it is told to end by now */
	rbx_memory_monitor_tell_end();
	pthread_join(thread, NULL);
	assert_int_equal(rbx_userfaultfd_open(text, sizeof(text)), 0);
	end_changes(&changes);
	close(go_on[0]);
	close(go_on[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Holds all that can be waited for, until it is told to go on. */
static void *hold_the_gate(void *arg)
{
	pthread_barrier_t *barrier = arg;

	rbx_memory_monitor_tell_begin();
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	rbx_memory_monitor_tell_end();
	return NULL;
}

/* Exit codes, as the child is not a test of its own. */
static int listen_in_child(void)
{
	struct stand_in mine;
	uint8_t *addr = map(1);

	alarm(HANGS_SECONDS);
	stand_in_open(&mine, RBX_MEMORY_MONITOR_USERFAULTFD);
	if (rbx_memory_monitor_watch(&mine.listener, addr, PAGE))
		return 1;
	munmap(addr, PAGE);
	rbx_memory_monitor_unwatch(&mine.listener, addr, PAGE);
	return stand_in_told(&mine) == 1 ? 0 : 2;
}

static void child_waits_for_no_thread_of_its_parent(void **state)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	int status;
	pid_t child;

	(void)state;
	kernel_skip_under_tsan();
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, hold_the_gate, &barrier), 0);
	pthread_barrier_wait(&barrier);
	child = fork();
	if (child == 0)
		_exit(listen_in_child());
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void *listen_alone(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	_exit(listen_in_child());
}

/* The main thread ends, and the process goes on without. */
static void listens_after_the_main_thread(void **state)
{
	static pthread_t main_thread;
	pthread_t thread;
	int status;
	pid_t child;

	(void)state;
	kernel_skip_under_tsan();
	child = fork();
	if (child == 0) {
		main_thread = pthread_self();
		if (pthread_create(&thread, NULL, listen_alone, &main_thread))
			_exit(3);
		pthread_exit(NULL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
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
		TEST(changes_of_many_threads_are_all_told),
		TEST(source_reads_all_before_it_ends),
		TEST(child_waits_for_no_thread_of_its_parent),
		TEST(listens_after_the_main_thread),
		OLDER_TEST(listens_after_the_main_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
