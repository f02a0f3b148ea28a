/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Did you mean: slips lead to the word, and words that are like none lead nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/cli.h"

static const char *const words[] = { "depth", "device", "op", "overload", "server", "servers", NULL };

static const char *next(const void *of, size_t index)
{
	const char *const *list = of;

	return list[index];
}

static const char *nearest(const char *word)
{
	return cli_nearest(word, next, words);
}

static void a_slip_leads_to_the_word(void **state)
{
	(void)state;
	assert_string_equal(nearest("deph"), "depth"); /* missing */
	assert_string_equal(nearest("deppth"), "depth"); /* too many */
	assert_string_equal(nearest("debth"), "depth"); /* wrong */
	assert_string_equal(nearest("dpeth"), "depth"); /* swapped */
	assert_string_equal(nearest("sevrer"), "server");
	assert_string_equal(nearest("depth"), "depth");
}

static void a_word_like_none_leads_nowhere(void **state)
{
	(void)state;
	assert_null(nearest("colour"));
	assert_null(nearest("d"));
	assert_null(nearest(""));
	assert_null(nearest("zz"));
	assert_null(nearest("tops")); /* half of it is wrong */
	assert_null(nearest("a-word-that-is-longer-than-any-option-has-ever-been"));
}

static void the_nearer_of_two_is_taken(void **state)
{
	(void)state;
	assert_string_equal(nearest("devise"), "device");
	assert_string_equal(nearest("overlaod"), "overload");
	assert_string_equal(nearest("serversx"), "servers"); /* "server" comes first */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_leads_to_the_word),
		cmocka_unit_test(a_word_like_none_leads_nowhere),
		cmocka_unit_test(the_nearer_of_two_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
