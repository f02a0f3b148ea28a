/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * intents_test.c - a server keeps an intent word for each slab of a named volume, from one client
 * to the next.
 */
#include "tests/server/named_volume.h"

static int note(struct rbx_session *session, const struct rbx_loan *loan, uint64_t word)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_INTENTS,
		.intents = { 1, { { loan->slab_id, loan->epoch, word, 0 } } },
	};

	return rbx_session_talk(session, &m);
}

static uint64_t noted(struct rbx_session *session)
{
	struct rbx_wire_labels labels = named_labels(session, 0);

	assert_int_equal(labels.count, 1);
	return labels.labels[0].intent;
}

/* It may be written anywhere until its writer says more. */
static void slab_begins_with_all_bits(void **state)
{
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(noted(two.writer), UINT64_MAX);
	named_two_end(&two);
}

static void next_client_reads_what_the_last_one_has_noted(void **state)
{
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(note(two.writer, &two.loan, 0x8001), 0);
	assert_int_equal(noted(two.writer), 0x8001);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	assert_int_equal(noted(two.other), 0x8001);
	assert_int_equal(note(two.other, &two.loan, 0), 0);
	assert_int_equal(noted(two.other), 0);
	named_two_end(&two);
}

/* The slab may be gone, and the others of the message have to be noted. */
static void loan_that_is_none_is_passed_over(void **state)
{
	struct named_two two;
	struct rbx_loan loan;

	(void)state;
	named_two_begin(&two);
	loan = two.loan;
	loan.epoch++;
	assert_int_equal(note(two.writer, &loan, 1), 0);
	loan.epoch--;
	loan.slab_id = UINT64_MAX;
	assert_int_equal(note(two.writer, &loan, 1), 0);
	assert_int_equal(noted(two.writer), UINT64_MAX);
	named_two_end(&two);
}

static void client_that_was_shut_out_notes_nothing(void **state)
{
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(note(two.writer, &two.loan, 1), 0);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	assert_int_not_equal(note(two.writer, &two.loan, 2), 0);
	assert_int_equal(noted(two.other), 1);
	named_two_end(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_begins_with_all_bits),
		cmocka_unit_test(next_client_reads_what_the_last_one_has_noted),
		cmocka_unit_test(loan_that_is_none_is_passed_over),
		cmocka_unit_test(client_that_was_shut_out_notes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
