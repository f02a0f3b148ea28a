/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_volumes_test.c - slabs of a named volume stay while clients come and go, and are
 * taken from nobody.
 */
#include "tests/core/lender_small.h"

#include "core/random.h"

#define CLIENT 1
#define VOLUME 1000
#define OTHER 1001

static uint32_t held(const struct rbx_lender *lender, uint64_t volume_id)
{
	struct rbx_lender_loan loan = { 0 };
	uint32_t count = 0;

	while (rbx_lender_next_of(lender, volume_id, loan.slab_id, &loan))
		count++;
	return count;
}

static void volumes_are_bounded_and_are_no_clients(void **state)
{
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_counts counts;
	uint64_t id;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	assert_int_equal(rbx_lender_keep(lender, OTHER, 0), 0);
	assert_int_equal(rbx_lender_keep(lender, 1002, 0), RBX_REASON_TOO_MANY_VOLUMES);
	for (id = 1; id <= CLIENTS_MAX; id++)
		assert_int_equal(rbx_lender_admit(lender, id, 1, 0), 0);
	assert_int_equal(rbx_lender_admit(lender, id, 1, 0), RBX_REASON_TOO_MANY);
	rbx_lender_counts(lender, &counts);
	assert_int_equal(counts.clients, CLIENTS_MAX);
	assert_int_equal(counts.volumes, 2);
	rbx_lender_leave(lender, OTHER);
	assert_int_equal(rbx_lender_admit(lender, id, 1, 0), RBX_REASON_TOO_MANY);
	assert_int_equal(rbx_lender_keep(lender, OTHER, 0), 0);
	free(lender);
}

static void volume_has_no_lease(void **state)
{
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_loan loan;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	rbx_lender_opened(lender, VOLUME);
	assert_int_equal(lend(lender, VOLUME, &loan), 0);
	rbx_lender_closed(lender, VOLUME);
	assert_int_equal(rbx_lender_deadline_ns(lender, 0), RBX_LENDER_NEVER_NS);
	assert_int_equal(serve(lender, 1000 * LEASE_NS, RBX_LENDER_EXPIRE), 0);
	assert_int_equal(rbx_lender_check(lender, VOLUME, &loan), 0);
	free(lender);
}

/* The answer to its last MAP may have been lost; that of a writer before it was not. */
static void writer_keeps_what_was_there_before(void **state)
{
	struct rbx_lender *lender = lender_make(8, 0);
	struct rbx_lender_loan old, known, lost, preparing;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	rbx_lender_opened(lender, VOLUME);
	assert_int_equal(lend(lender, VOLUME, &old), 0);
	rbx_lender_opened(lender, VOLUME); /* by another one */
	assert_int_equal(rbx_lender_last_epoch(lender), old.epoch);
	rbx_lender_writer_resumed(lender, VOLUME, 0); /* it was told of nothing yet */
	assert_int_equal(held(lender, VOLUME), 1);
	assert_int_equal(lend(lender, VOLUME, &known), 0);
	assert_int_equal(lend(lender, VOLUME, &lost), 0);
	assert_int_equal(rbx_lender_lend(lender, VOLUME, &preparing), 0);
	rbx_lender_writer_resumed(lender, VOLUME, known.epoch);
	assert_int_equal(rbx_lender_check(lender, VOLUME, &old), 0);
	assert_int_equal(rbx_lender_check(lender, VOLUME, &known), 0);
	assert_int_equal(rbx_lender_check(lender, VOLUME, &lost), RBX_REASON_NOT_YOURS);
	assert_false(rbx_lender_prepared(lender, &preparing));
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 2);
	free(lender);
}

static void next_writer_does_not_get_what_is_being_prepared(void **state)
{
	struct rbx_lender *lender = lender_make(8, 0);
	struct rbx_lender_loan loan;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	rbx_lender_opened(lender, VOLUME);
	assert_int_equal(rbx_lender_lend(lender, VOLUME, &loan), 0);
	rbx_lender_opened(lender, VOLUME);
	assert_false(rbx_lender_prepared(lender, &loan));
	assert_int_equal(rbx_lender_lend(lender, VOLUME, &loan), 0);
	rbx_lender_closed(lender, VOLUME);
	assert_false(rbx_lender_prepared(lender, &loan));
	assert_int_equal(held(lender, VOLUME), 0);
	free(lender);
}

static void clients_are_asked_first_and_volumes_without_a_deadline(void **state)
{
	struct rbx_lender *lender = lender_make(8, 0);
	struct rbx_lender_loan loan;
	struct rbx_lender_action action;

	(void)state;
	assert_int_equal(rbx_lender_admit(lender, CLIENT, 1, 0), 0);
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	assert_int_equal(rbx_lender_keep(lender, OTHER, 0), 0);
	rbx_lender_opened(lender, VOLUME);
	assert_int_equal(lend(lender, CLIENT, &loan), 0);
	assert_int_equal(lend(lender, VOLUME, &loan), 0);
	assert_int_equal(lend(lender, VOLUME, &loan), 0);
	assert_int_equal(lend(lender, OTHER, &loan), 0); /* nobody could move it */
	assert_int_equal(rbx_lender_shrink(lender, 1, 0, 10), 1);
	assert_true(rbx_lender_next(lender, 0, &action));
	assert_int_equal(action.session_id, CLIENT);
	assert_int_equal(rbx_lender_shrink(lender, 8, 0, 10), 2);
	(void)serve(lender, 0, RBX_LENDER_ASK); /* ends the round that has begun */
	assert_int_equal(serve(lender, 0, RBX_LENDER_ASK), 2);
	/* What was asked for without a deadline does not get one. */
	assert_int_equal(rbx_lender_shrink(lender, 8, 0, 10), 0);
	assert_int_equal(serve(lender, 20, RBX_LENDER_END), 1);
	assert_int_equal(held(lender, VOLUME), 2);
	assert_int_equal(held(lender, OTHER), 1);
	free(lender);
}

static void volume_leaves_with_all_its_slabs(void **state)
{
	struct rbx_lender *lender = lender_make(8, 0);
	struct rbx_lender_loan loan;
	struct rbx_lender_counts counts;
	int i;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	assert_int_equal(rbx_lender_keep(lender, OTHER, 0), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(lend(lender, VOLUME, &loan), 0);
		assert_int_equal(lend(lender, OTHER, &loan), 0);
	}
	rbx_lender_drain(lender, 0);
	rbx_lender_leave(lender, VOLUME);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 3);
	assert_int_equal(held(lender, OTHER), 3);
	rbx_lender_counts(lender, &counts);
	assert_int_equal(counts.slabs_lent, 3);
	assert_int_equal(counts.volumes, 1);
	free(lender);
}

/* Whatever happens to others, a volume loses only what it gives back. */
static void volumes_lose_nothing_in_a_storm(void **state)
{
	struct rbx_random random = { 7 };
	struct rbx_lender *lender = lender_make(12, 0);
	struct rbx_lender_action action;
	struct rbx_lender_loan loan = { 0 };
	uint32_t had = 0, step;
	uint64_t now_ns = 0;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	for (step = 0; step < 200000; step++) {
		now_ns += rbx_random_below(&random, 50);
		switch (rbx_random_below(&random, 12)) {
		case 0:
			(void)rbx_lender_lend(lender, CLIENT, &loan);
			break;
		case 1:
			if (rbx_lender_heard(lender, CLIENT, now_ns))
				(void)rbx_lender_admit(lender, CLIENT, 1, now_ns);
			break;
		case 2:
			(void)rbx_lender_shrink(lender, 1 + rbx_random_below(&random, 12),
						now_ns, 100);
			break;
		case 3:
			rbx_lender_set_lend_max(lender, 1 + rbx_random_below(&random, 12));
			break;
		case 4:
			rbx_lender_opened(lender, VOLUME);
			break;
		case 5:
			rbx_lender_closed(lender, VOLUME);
			break;
		case 6 ... 7:
			had += !lend(lender, VOLUME, &loan);
			break;
		case 8:
			if (rbx_random_below(&random, 3) ||
			    !rbx_lender_next_of(lender, VOLUME, 0, &loan))
				break;
			assert_int_equal(rbx_lender_unmap(lender, VOLUME, &loan), 0);
			had--;
			break;
		default:
			if (!rbx_lender_next(lender, now_ns, &action))
				break;
			if (action.kind == RBX_LENDER_EXPIRE)
				rbx_lender_leave(lender, action.session_id);
			else if (action.kind == RBX_LENDER_END)
				rbx_lender_ended(lender, action.loan.slab_id);
			else if (action.session_id == VOLUME)
				assert_int_equal(action.until_ns, RBX_LENDER_NEVER_NS);
		}
		assert_int_equal(held(lender, VOLUME), had);
	}
	free(lender);
}

/* As of a host that was there before: slabs 2 and 4 of 4, lent in the other order. */
static void what_is_restored_is_lent_as_before(void **state)
{
	const struct rbx_lender_loan first = { 4, 7 }, second = { 2, 9 };
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_counts counts;
	struct rbx_lender_loan loan;
	uint32_t lent = 0;

	(void)state;
	assert_int_equal(rbx_lender_keep(lender, VOLUME, 0), 0);
	assert_int_equal(rbx_lender_keep(lender, OTHER, 0), 0);
	rbx_lender_restore(lender, VOLUME, &first);
	rbx_lender_restore(lender, OTHER, &second);
	rbx_lender_restored(lender, 100);
	assert_int_equal(rbx_lender_check(lender, VOLUME, &first), 0);
	assert_int_equal(rbx_lender_check(lender, VOLUME, &second), RBX_REASON_NOT_YOURS);
	assert_int_equal(held(lender, VOLUME), 1);
	assert_int_equal(held(lender, OTHER), 1);
	rbx_lender_counts(lender, &counts);
	assert_int_equal(counts.slabs_lent, 2);
	assert_int_equal(counts.slabs_free, 2);
	/* The others are lent, each once, and in newer epochs. */
	rbx_lender_opened(lender, VOLUME);
	for (; !lend(lender, VOLUME, &loan); lent++) {
		assert_true(loan.slab_id == 1 || loan.slab_id == 3);
		assert_true(loan.epoch > 100);
	}
	assert_int_equal(lent, 2);
	assert_int_equal(held(lender, VOLUME), 3);
	assert_int_equal(rbx_lender_unmap(lender, VOLUME, &first), 0);
	rbx_lender_leave(lender, OTHER);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 2);
	free(lender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volumes_are_bounded_and_are_no_clients),
		cmocka_unit_test(volume_has_no_lease),
		cmocka_unit_test(writer_keeps_what_was_there_before),
		cmocka_unit_test(next_writer_does_not_get_what_is_being_prepared),
		cmocka_unit_test(clients_are_asked_first_and_volumes_without_a_deadline),
		cmocka_unit_test(volume_leaves_with_all_its_slabs),
		cmocka_unit_test(volumes_lose_nothing_in_a_storm),
		cmocka_unit_test(what_is_restored_is_lent_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
