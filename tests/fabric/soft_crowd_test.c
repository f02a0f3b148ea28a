/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_crowd_test.c - who looks for work leaves a processor to others that want it.
 *
 * This program has a pread() of its own, which says of a thread what the kernel would
 * say, and an epoll_wait() that counts looks: calls that do not block.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "endpoint.h"
#include "fabric/soft/crowd.h"
#include "fabric/soft/limits.h"

#define ROUNDS 50
#define MS 1000000ull

static _Thread_local bool is_test; /* this thread is the test's */
static _Atomic uint64_t waited_ns; /* each time it is asked for: */
static _Atomic uint64_t waits_ns; /* so much more */
static _Atomic int looks_count; /* of all threads but the test's */

ssize_t pread(int fd, void *buf, size_t length, off_t offset)
{
	uint64_t ns = atomic_fetch_add(&waited_ns, atomic_load(&waits_ns));

	(void)fd;
	(void)offset;
	return snprintf(buf, length, "17 %llu 4\n", (unsigned long long)ns);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
	if (!is_test && timeout_ms == 0)
		atomic_fetch_add(&looks_count, 1);
	return epoll_pwait(fd, events, max, timeout_ms, NULL);
}

static void crowd_is_where_a_thread_waits_for_the_processor(void **state)
{
	struct soft_crowd crowd = { .fd = 0 };

	(void)state;
	atomic_store(&waited_ns, 70 * MS);
	atomic_store(&waits_ns, 0);
	assert_false(soft_crowd_look(&crowd, 1000 * MS));
	atomic_fetch_add(&waited_ns, MS / 2);
	assert_false(soft_crowd_look(&crowd, 1000 * MS + MS / 2)); /* too soon */
	assert_true(soft_crowd_look(&crowd, 1001 * MS));
	/* For a while, and again as long as that when it is once more. */
	assert_true(soft_crowd_look(&crowd, 1050 * MS));
	atomic_fetch_add(&waited_ns, 20 * MS);
	assert_true(soft_crowd_look(&crowd, 1090 * MS));
	assert_true(soft_crowd_look(&crowd, 1180 * MS));
	assert_false(soft_crowd_look(&crowd, 1200 * MS));
}

static void crowd_is_nowhere_where_the_kernel_does_not_count(void **state)
{
	struct soft_crowd crowd = { .fd = -1 };

	(void)state;
	atomic_store(&waits_ns, 1000 * MS);
	assert_false(soft_crowd_look(&crowd, 1000 * MS));
	assert_false(soft_crowd_look(&crowd, 2000 * MS));
}

/* Requests to a server whose thread waited for so long whenever it asked; returns how
 * often it looked for more. */
static int looks_with(uint64_t each_ns)
{
	struct test_pair pair;

	atomic_store(&waits_ns, each_ns);
	test_pair_open(&pair, NULL);
	for (int i = 0; i < 2; i++) {
		/* The first times it asks, to know that it waits. */
		atomic_store(&looks_count, 0);
		for (int round = 0; round < ROUNDS; round++) {
			assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 64),
					 0);
			usleep(2 * SOFT_CROWD_LOOK_NS / 1000);
		}
	}
	test_pair_close(&pair);
	return atomic_load(&looks_count);
}

static void service_looks_for_more_unless_it_is_crowded(void **state)
{
	(void)state;
	if (strcmp(test_fabric, "soft:tcp"))
		skip(); /* a mapping needs no service */
	assert_true(looks_with(0) >= ROUNDS);
	/* More than passes from one request to the next. */
	assert_int_equal(looks_with(1000 * 1000 * MS), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(crowd_is_where_a_thread_waits_for_the_processor),
		cmocka_unit_test(crowd_is_nowhere_where_the_kernel_does_not_count),
		cmocka_unit_test(service_looks_for_more_unless_it_is_crowded),
	};

	is_test = true;
	return test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
