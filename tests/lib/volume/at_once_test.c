/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* at_once_test.c - several servers are asked at a time, and each error is kept. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "client/at_once.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"

#define SERVERS 8u

struct world {
	pthread_barrier_t all_are_asked;
	int errs[SERVERS];
	bool asked[SERVERS];
};

/* Answers when all others have been asked, too. */
static int meet(void *user, uint32_t index)
{
	struct world *world = user;

	world->asked[index] = true;
	(void)pthread_barrier_wait(&world->all_are_asked);
	return 0;
}

static int refuse(void *user, uint32_t index)
{
	(void)index;
	RBX_FETCH_ADD((uint32_t *)user, 1);
	return rbx_error(-ECONNREFUSED, "it refuses");
}

static void at_once_no_server_answers_before_all_are_asked_they_are(void **state)
{
	struct world world = { .errs = { 0 } };

	(void)state;
	assert_int_equal(pthread_barrier_init(&world.all_are_asked, NULL, SERVERS), 0);
	assert_int_equal(rbx_at_once(SERVERS, meet, &world), 0);
	for (uint32_t i = 0; i < SERVERS; i++)
		assert_true(world.asked[i]);
	pthread_barrier_destroy(&world.all_are_asked);
}

static int answer(void *user, uint32_t index)
{
	struct world *world = user;

	world->asked[index] = true;
	return world->errs[index] ? rbx_error(world->errs[index], "server %u", index) : 0;
}

static void at_once_two_fail_each_error_is_kept_with_its_text(void **state)
{
	struct world world = { .errs = { [2] = -EBUSY, [5] = -ETIMEDOUT } };
	struct rbx_at_once all;

	(void)state;
	assert_int_equal(rbx_at_once_do(&all, SERVERS, false, answer, &world), 0);
	for (uint32_t i = 0; i < SERVERS; i++) {
		assert_true(world.asked[i]);
		assert_int_equal(rbx_at_once_error(&all, i), world.errs[i]);
	}
	assert_int_equal(rbx_at_once_error(&all, 5), -ETIMEDOUT);
	assert_string_equal(rbx_last_error(), "server 5");
	assert_int_equal(rbx_at_once_error(&all, 2), -EBUSY);
	assert_string_equal(rbx_last_error(), "server 2");
	rbx_at_once_free(&all);
}

static void at_once_one_fails_that_is_reported(void **state)
{
	struct world world = { .errs = { [6] = -EACCES } };

	(void)state;
	assert_int_equal(rbx_at_once(SERVERS, answer, &world), -EACCES);
	assert_string_equal(rbx_last_error(), "server 6");
}

/* Each thread that acts ends with its first error. */
static void at_once_an_error_is_one_of_all_no_other_is_begun_with(void **state)
{
	enum { MANY = 4 * RBX_CONNECTS_MAX };
	struct rbx_at_once all;
	uint32_t begun_count = 0;

	(void)state;
	assert_int_equal(rbx_at_once_do(&all, MANY, true, refuse, &begun_count), 0);
	assert_in_range(begun_count, 1, RBX_CONNECTS_MAX);
	rbx_at_once_free(&all);
	begun_count = 0;
	assert_int_equal(rbx_at_once_do(&all, MANY, false, refuse, &begun_count), 0);
	assert_int_equal(begun_count, MANY);
	rbx_at_once_free(&all);
}

static void at_once_no_server_is_no_error(void **state)
{
	struct world world = { .errs = { 0 } };

	(void)state;
	assert_int_equal(rbx_at_once(0, answer, &world), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_once_no_server_answers_before_all_are_asked_they_are),
		cmocka_unit_test(at_once_two_fail_each_error_is_kept_with_its_text),
		cmocka_unit_test(at_once_one_fails_that_is_reported),
		cmocka_unit_test(at_once_an_error_is_one_of_all_no_other_is_begun_with),
		cmocka_unit_test(at_once_no_server_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
