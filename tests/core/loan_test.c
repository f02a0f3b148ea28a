/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* loan_test.c - which loan a new one of the same server puts an end to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/loan.h"

#define SLAB 65536u

static const struct rbx_loan loan = {
	.slab_id = 1,
	.epoch = 5,
	.remote_addr = 16 * SLAB,
	.rkey = 7,
};

static bool is_twin(struct rbx_loan other)
{
	bool twin = rbx_loan_is_twin(&loan, &other, SLAB);

	assert_int_equal(rbx_loan_is_twin(&other, &loan, SLAB), twin);
	return twin;
}

static void loan_of_the_same_slab_is_twin_wherever_it_lies(void **state)
{
	(void)state;
	assert_true(is_twin((struct rbx_loan){ 1, 6, 99 * SLAB, 8 }));
}

static void loan_that_shares_a_byte_under_the_same_key_is_twin(void **state)
{
	(void)state;
	assert_true(is_twin((struct rbx_loan){ 2, 6, 16 * SLAB, 7 }));
	assert_true(is_twin((struct rbx_loan){ 2, 6, 17 * SLAB - 1, 7 }));
	assert_true(is_twin((struct rbx_loan){ 2, 6, 15 * SLAB + 1, 7 }));
	assert_false(is_twin((struct rbx_loan){ 2, 6, 17 * SLAB, 7 }));
	assert_false(is_twin((struct rbx_loan){ 2, 6, 15 * SLAB, 7 }));
}

static void loan_under_another_key_is_no_twin(void **state)
{
	(void)state;
	assert_false(is_twin((struct rbx_loan){ 2, 6, 16 * SLAB, 8 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loan_of_the_same_slab_is_twin_wherever_it_lies),
		cmocka_unit_test(loan_that_shares_a_byte_under_the_same_key_is_twin),
		cmocka_unit_test(loan_under_another_key_is_no_twin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
