/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* last_loan_test.c - which answers lend, and what a resume says of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/last_loan.h"

#define SLAB_BYTES 65536u

static struct rbx_wire_message loan_of(uint64_t epoch)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_SLAB_LOAN,
		.epoch = epoch,
		.loan = {
			.slab_id = 3,
			.remote_addr = 4096,
			.length_bytes = SLAB_BYTES,
			.rkey = 5,
		},
	};
}

static void map_lends_and_is_known(void **state)
{
	const struct rbx_wire_message answer = loan_of(7);
	struct rbx_last_loan last_loan = { 0 };
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(
		rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES, &loan), 0);
	assert_int_equal(last_loan.epoch, 7);
	assert_int_equal(loan.slab_id, 3);
	assert_int_equal(loan.epoch, 7);
	assert_int_equal(loan.remote_addr, 4096);
	assert_int_equal(loan.rkey, 5);
}

/* The eviction of the oldest slab that nobody takes asks for it, again and again. */
static void map_that_makes_no_sense_is_refused_and_not_known(void **state)
{
	struct rbx_last_loan last_loan = { .epoch = 7 };
	struct rbx_loan loan = { .epoch = 1 };
	struct rbx_wire_message answer;

	(void)state;
	answer = loan_of(8);
	answer.loan.length_bytes--;
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	answer = loan_of(8);
	answer.loan.slab_id = 0;
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	answer = loan_of(8); /* no page begins there */
	answer.loan.remote_addr = 4096 + 512;
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	answer = loan_of(8);
	answer.loan.slab_id = 1u << RBX_LOAN_ID_BITS;
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	answer = loan_of(1ull << RBX_LOAN_EPOCH_BITS);
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	answer = loan_of(7); /* an epoch names one loan */
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	answer = loan_of(6); /* and they grow */
	assert_int_equal(rbx_last_loan_map(&last_loan, &answer, SLAB_BYTES,
					   &loan),
			 -EPROTO);
	assert_int_equal(last_loan.epoch, 7);
	assert_int_equal(loan.epoch, 1);
}

static void query_of_another_loan_is_stale(void **state)
{
	const struct rbx_loan loan = { 3, 7, 4096, 5 };
	struct rbx_wire_message answer;

	(void)state;
	answer = loan_of(8);
	assert_int_equal(rbx_last_loan_query(&answer, &loan), -ESTALE);
	answer = loan_of(7);
	answer.loan.slab_id++;
	assert_int_equal(rbx_last_loan_query(&answer, &loan), -ESTALE);
	answer = loan_of(7);
	answer.loan.remote_addr++;
	assert_int_equal(rbx_last_loan_query(&answer, &loan), -ESTALE);
	answer = loan_of(7);
	answer.loan.rkey++;
	assert_int_equal(rbx_last_loan_query(&answer, &loan), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_lends_and_is_known),
		cmocka_unit_test(
			map_that_makes_no_sense_is_refused_and_not_known),
		cmocka_unit_test(query_of_another_loan_is_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
