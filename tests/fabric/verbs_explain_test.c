/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_explain_test.c - error lines name the cause and the fix. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/fabric.h"
#include "fabric/verbs/explain.h"

#define MIB (1024 * 1024)

static void explain_pin_memlock_limited_names_size_limit_and_fix(void **state)
{
	char error[RBX_ERROR_TEXT_MAX];

	(void)state;
	assert_int_equal(rbx_verbs_explain_pin(error, -ENOMEM, 2 * MIB,
					       64 * 1024), -ENOMEM);
	assert_non_null(strstr(error, "cannot pin 2 MiB"));
	assert_non_null(strstr(error, "RLIMIT_MEMLOCK is 64 KiB"));
	assert_non_null(strstr(error, "ulimit -l unlimited"));
}

static void explain_pin_memlock_unlimited_blames_something_else(void **state)
{
	char error[RBX_ERROR_TEXT_MAX];

	(void)state;
	rbx_verbs_explain_pin(error, -ENOMEM, 2 * MIB, UINT64_MAX);
	assert_null(strstr(error, "RLIMIT_MEMLOCK"));
	assert_non_null(strstr(error, "cannot pin 2 MiB"));
}

static void explain_pin_unmapped_says_so(void **state)
{
	char error[RBX_ERROR_TEXT_MAX];

	(void)state;
	rbx_verbs_explain_pin(error, -EFAULT, 4096, 64 * 1024);
	assert_non_null(strstr(error, "not all of it is mapped"));
	assert_null(strstr(error, "RLIMIT_MEMLOCK"));
}

static void explain_without_buffer_returns_code(void **state)
{
	(void)state;
	assert_int_equal(rbx_verbs_explain(NULL, -ENODEV, "gone"), -ENODEV);
}

static void explain_long_text_stays_within_buffer(void **state)
{
	char error[RBX_ERROR_TEXT_MAX + 1];
	char longer[2 * RBX_ERROR_TEXT_MAX];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	error[RBX_ERROR_TEXT_MAX] = '!';
	rbx_verbs_explain(error, -EINVAL, "%s", longer);
	assert_int_equal(strlen(error), RBX_ERROR_TEXT_MAX - 1);
	assert_int_equal(error[RBX_ERROR_TEXT_MAX], '!');
}

static void format_size_takes_the_largest_exact_unit(void **state)
{
	char text[RBX_VERBS_SIZE_TEXT_MAX];

	(void)state;
	assert_string_equal(rbx_verbs_format_size(0, text), "0 bytes");
	assert_string_equal(rbx_verbs_format_size(100, text), "100 bytes");
	assert_string_equal(rbx_verbs_format_size(1536, text), "1536 bytes");
	assert_string_equal(rbx_verbs_format_size(65536, text), "64 KiB");
	assert_string_equal(rbx_verbs_format_size(3ull << 30, text), "3 GiB");
	assert_string_equal(rbx_verbs_format_size(UINT64_MAX, text),
			    "unlimited");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			explain_pin_memlock_limited_names_size_limit_and_fix),
		cmocka_unit_test(
			explain_pin_memlock_unlimited_blames_something_else),
		cmocka_unit_test(explain_pin_unmapped_says_so),
		cmocka_unit_test(explain_without_buffer_returns_code),
		cmocka_unit_test(explain_long_text_stays_within_buffer),
		cmocka_unit_test(format_size_takes_the_largest_exact_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
