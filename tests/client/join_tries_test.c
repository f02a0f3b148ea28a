/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* join_tries_test.c - a server that could not be added is tried later and later, up to a limit. */
#include "client/join_tries.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/named.h"

#define TRIES 10u

static struct rbx_join_try all[2];
static struct rbx_named named;
static const struct rbx_volume_control control = { .named = &named };

/* In place of client/joining.c. */
int rbx_joining_failed_at(const struct rbx_volume_control *of, const char *address)
{
	assert_ptr_equal(of, &control);
	return strcmp(address, "failed:1") ? -1 : 0;
}

/* After so many tries that have failed; the first one alone is told. */
static uint32_t wait_ms_after(struct rbx_join_try *one, uint32_t count, int err)
{
	uint32_t i;

	assert_true(rbx_join_try_is_due(one));
	for (i = 0; i < count; i++)
		assert_int_equal(rbx_join_tried(one, &control, err), i == 0);
	assert_false(rbx_join_try_is_due(one));
	return one->wait_ms;
}

static void server_is_tried_later_and_later(void **state)
{
	struct rbx_join_tries tries = { .all = all };

	(void)state;
	assert_int_equal(wait_ms_after(rbx_join_try_of(&tries, "a:1", 1), 1, -ECONNREFUSED), 2000);
	/* What is there now is another one. */
	assert_int_equal(wait_ms_after(rbx_join_try_of(&tries, "a:1", 2), 2, -ECONNREFUSED), 4000);
	assert_int_equal(wait_ms_after(rbx_join_try_of(&tries, "a:1", 3), TRIES, -ECONNREFUSED),
			 60000);
	assert_int_equal(wait_ms_after(rbx_join_try_of(&tries, "a:1", 4), 1, -EINVAL), 60000);
	assert_int_equal(tries.count, 1);
}

/* Requests fail for as long as it is away. */
static void server_that_has_failed_is_tried_often(void **state)
{
	struct rbx_join_tries tries = { .all = all };

	(void)state;
	assert_int_equal(wait_ms_after(rbx_join_try_of(&tries, "failed:1", 1), TRIES, -ECONNREFUSED),
			 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_is_tried_later_and_later),
		cmocka_unit_test(server_that_has_failed_is_tried_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
