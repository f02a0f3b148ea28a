/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packed_test.c - numbers are read as they were written, beside others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/packed.h"
#include "core/random.h"

#define NUMBERS 100u

static void number_takes_what_the_highest_needs(void **state)
{
	(void)state;
	assert_int_equal(rbx_packed_bits(0), 1);
	assert_int_equal(rbx_packed_bits(1), 1);
	assert_int_equal(rbx_packed_bits(2), 2);
	assert_int_equal(rbx_packed_bits(0xffffff), 24);
	assert_int_equal(rbx_packed_bits(0x1000000), 25);
	assert_int_equal(rbx_packed_bits(UINT32_MAX), 32);
	assert_int_equal(rbx_packed_size(1, 1), 8);
	assert_int_equal(rbx_packed_size(64, 25), 25 * 8);
	assert_int_equal(rbx_packed_size(65, 25), 26 * 8);
}

/* Of each width; what lies behind the table is not touched. */
static void table_at_random_is_as_one_of_whole_words(void **state)
{
	uint64_t words[NUMBERS];
	uint32_t whole[NUMBERS];
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 5);
	for (uint32_t bits = 1; bits <= 32; bits++) {
		const struct rbx_packed table = { words, bits };
		size_t used = rbx_packed_size(NUMBERS, bits) / 8;

		memset(words, 0, sizeof(words));
		memset(whole, 0, sizeof(whole));
		memset(&words[used], 0x5a, sizeof(words) - 8 * used);
		for (uint32_t i = 0; i < 10000; i++) {
			uint32_t at = rbx_random_below(&random, NUMBERS);
			uint32_t other = rbx_random_below(&random, NUMBERS);

			whole[at] = (uint32_t)rbx_random_next(&random) >>
				    (32 - bits);
			rbx_packed_set(&table, at, whole[at]);
			assert_int_equal(rbx_packed_get(&table, other),
					 whole[other]);
		}
		for (uint32_t i = 0; i < NUMBERS; i++)
			assert_int_equal(rbx_packed_get(&table, i), whole[i]);
		for (size_t i = used; i < NUMBERS; i++)
			assert_true(words[i] == 0x5a5a5a5a5a5a5a5a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_takes_what_the_highest_needs),
		cmocka_unit_test(table_at_random_is_as_one_of_whole_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
