/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_test.c - one rule of the lender each; what random events do to it,
 * lender_model_test.c has.
 */
#include "tests/core/lender_small.h"

/* ---- One rule each -----------------------------------------------------------*/

static void slab_is_not_lent_before_its_access_has_ended(void **state)
{
	struct rbx_lender *lender = lender_make(1, 0);
	struct rbx_lender_action action;
	struct rbx_lender_counts counts;
	struct rbx_lender_loan first, second;

	(void)state;
	assert_int_equal(rbx_lender_admit(lender, 7, 0, 0), 0);
	assert_int_equal(lend(lender, 7, &first), 0);
	assert_int_equal(rbx_lender_unmap(lender, 7, &first), 0);
	assert_int_equal(lend(lender, 7, &second), RBX_LENDER_LATER);
	assert_true(rbx_lender_next(lender, 0, &action));
	assert_int_equal(action.kind, RBX_LENDER_END);
	assert_int_equal(action.loan.slab_id, first.slab_id);
	assert_int_equal(lend(lender, 7, &second), RBX_LENDER_LATER);
	/* To wait is not to be refused. */
	rbx_lender_counts(lender, &counts);
	assert_int_equal(counts.refused_full, 0);
	rbx_lender_ended(lender, first.slab_id);
	assert_int_equal(lend(lender, 7, &second), 0);
	assert_true(second.epoch > first.epoch);
	free(lender);
}

/* Gives it back, and the host has ended the access. */
static void give_back(struct rbx_lender *lender, uint64_t session_id,
		      const struct rbx_lender_loan *loan)
{
	assert_int_equal(rbx_lender_unmap(lender, session_id, loan), 0);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 1);
}

static void slab_given_back_is_lent_after_all_others(void **state)
{
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_loan first, second, other;
	uint32_t i;

	(void)state;
	assert_int_equal(rbx_lender_admit(lender, 7, 0, 0), 0);
	assert_int_equal(lend(lender, 7, &first), 0);
	assert_int_equal(lend(lender, 7, &second), 0);
	give_back(lender, 7, &second);
	give_back(lender, 7, &first);
	for (i = 0; i < 2; i++) {
		assert_int_equal(lend(lender, 7, &other), 0);
		assert_int_not_equal(other.slab_id, first.slab_id);
		assert_int_not_equal(other.slab_id, second.slab_id);
	}
	/* Those that rest are lent rather than nothing, the longest first. */
	assert_int_equal(lend(lender, 7, &other), 0);
	assert_int_equal(other.slab_id, second.slab_id);
	assert_int_equal(lend(lender, 7, &other), 0);
	assert_int_equal(other.slab_id, first.slab_id);
	assert_true(other.epoch > first.epoch);
	assert_int_equal(lend(lender, 7, &other), RBX_REASON_FULL);
	free(lender);
}

static void lease_counts_from_the_last_sign_of_life(void **state)
{
	struct rbx_lender *lender = lender_make(2, 0);
	struct rbx_lender_loan loan;

	(void)state;
	assert_int_equal(rbx_lender_admit(lender, 7, 0, 0), 0);
	assert_int_equal(lend(lender, 7, &loan), 0);
	assert_int_equal(rbx_lender_heard(lender, 7, 600), 0);
	assert_int_equal(rbx_lender_deadline_ns(lender, 600), 600 + LEASE_NS);
	assert_int_equal(serve(lender, 599 + LEASE_NS, RBX_LENDER_EXPIRE), 0);
	assert_int_equal(rbx_lender_check(lender, 7, &loan), 0);
	assert_int_equal(serve(lender, 600 + LEASE_NS, RBX_LENDER_EXPIRE), 1);
	assert_int_equal(rbx_lender_check(lender, 7, &loan),
			 RBX_REASON_STALE_SESSION);
	assert_int_equal(rbx_lender_heard(lender, 7, 2000),
			 RBX_REASON_STALE_SESSION);
	assert_int_equal(rbx_lender_deadline_ns(lender, 600),
			 RBX_LENDER_NEVER_NS);
	free(lender);
}

static void resumed_client_keeps_what_it_knows_of(void **state)
{
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_loan known, unknown, of_another;
	struct rbx_lender_counts counts;

	(void)state;
	rbx_lender_admit(lender, 7, 0, 0);
	rbx_lender_admit(lender, 8, 0, 0);
	lend(lender, 7, &known);
	lend(lender, 8, &of_another);
	lend(lender, 7, &unknown);
	assert_int_equal(rbx_lender_resumed(lender, 7, 10, known.epoch), 0);
	assert_int_equal(rbx_lender_check(lender, 7, &known), 0);
	assert_int_equal(rbx_lender_check(lender, 8, &of_another), 0);
	assert_int_equal(rbx_lender_check(lender, 7, &unknown),
			 RBX_REASON_NOT_YOURS);
	assert_int_equal(serve(lender, 10, RBX_LENDER_END), 1);
	rbx_lender_counts(lender, &counts);
	assert_int_equal(counts.slabs_revoked, 1);
	/* It is a sign of life like any other. */
	assert_int_equal(serve(lender, LEASE_NS, RBX_LENDER_EXPIRE), 1);
	assert_int_equal(rbx_lender_check(lender, 7, &known), 0);
	assert_int_equal(rbx_lender_resumed(lender, 8, LEASE_NS, UINT64_MAX),
			 RBX_REASON_STALE_SESSION);
	free(lender);
}

static void slab_that_is_being_prepared_is_nobodys_yet(void **state)
{
	struct rbx_lender *lender = lender_make(2, 0);
	struct rbx_lender_loan slab, later;

	(void)state;
	rbx_lender_admit(lender, 7, 0, 0);
	assert_int_equal(rbx_lender_lend(lender, 7, &slab), 0);
	assert_int_equal(rbx_lender_check(lender, 7, &slab),
			 RBX_REASON_NOT_YOURS);
	assert_int_equal(rbx_lender_unmap(lender, 7, &slab),
			 RBX_REASON_NOT_YOURS);
	assert_int_equal(rbx_lender_shrink(lender, 1, 0, 50), 0);
	assert_int_equal(rbx_lender_lent_to(lender, 7), 1);
	/* The epoch is that of the moment at which it is lent. */
	assert_int_equal(lend(lender, 7, &later), 0);
	assert_true(rbx_lender_prepared(lender, &slab));
	assert_true(slab.epoch > later.epoch);
	assert_int_equal(rbx_lender_check(lender, 7, &slab), 0);
	free(lender);
}

static void oldest_loan_is_the_one_that_was_ready_first(void **state)
{
	struct rbx_lender *lender = lender_make(2, 0);
	struct rbx_lender_action action;
	struct rbx_lender_loan early, late;

	(void)state;
	rbx_lender_admit(lender, 7, 0, 0);
	assert_int_equal(rbx_lender_lend(lender, 7, &late), 0);
	assert_int_equal(rbx_lender_lend(lender, 7, &early), 0);
	assert_true(rbx_lender_prepared(lender, &early));
	assert_true(rbx_lender_prepared(lender, &late));
	assert_true(early.epoch < late.epoch);
	assert_int_equal(rbx_lender_shrink(lender, 1, 0, 50), 1);
	assert_true(rbx_lender_next(lender, 0, &action));
	assert_int_equal(action.kind, RBX_LENDER_ASK);
	assert_int_equal(action.loan.slab_id, early.slab_id);
	free(lender);
}

static void quota_counts_what_is_being_prepared(void **state)
{
	struct rbx_lender *lender = lender_make(4, 1);
	struct rbx_lender_loan slab, other;

	(void)state;
	rbx_lender_admit(lender, 7, 0, 0);
	assert_int_equal(rbx_lender_lend(lender, 7, &slab), 0);
	assert_int_equal(rbx_lender_lend(lender, 7, &other), RBX_REASON_QUOTA);
	rbx_lender_unprepared(lender, slab.slab_id);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 1);
	assert_int_equal(rbx_lender_lend(lender, 7, &other), 0);
	free(lender);
}

static void quota_is_for_all_sessions_of_an_owner(void **state)
{
	struct rbx_lender *lender = lender_make(6, 2);
	struct rbx_lender_loan slab;

	(void)state;
	rbx_lender_admit(lender, 7, 0, 0);
	rbx_lender_admit(lender, 8, 0, 0);
	rbx_lender_admit(lender, 9, 1, 0);
	assert_int_equal(lend(lender, 7, &slab), 0);
	assert_int_equal(lend(lender, 8, &slab), 0);
	assert_int_equal(lend(lender, 7, &slab), RBX_REASON_QUOTA);
	assert_int_equal(lend(lender, 8, &slab), RBX_REASON_QUOTA);
	assert_int_equal(rbx_lender_lent_to(lender, 7), 1);
	assert_int_equal(lend(lender, 9, &slab), 0);
	rbx_lender_set_quota(lender, 1, 1);
	assert_int_equal(lend(lender, 9, &slab), RBX_REASON_QUOTA);
	rbx_lender_set_quota(lender, 0, 0);
	assert_int_equal(lend(lender, 7, &slab), 0);
	free(lender);
}

/* Else an owner could leave and come back faster than its memory is emptied. */
static void slab_counts_for_its_owner_until_it_has_ended(void **state)
{
	struct rbx_lender *lender = lender_make(6, 1);
	struct rbx_lender_loan slab;

	(void)state;
	rbx_lender_admit(lender, 7, 0, 0);
	assert_int_equal(lend(lender, 7, &slab), 0);
	rbx_lender_leave(lender, 7);
	assert_false(rbx_lender_owner_is_idle(lender, 0));
	rbx_lender_admit(lender, 8, 0, 0);
	rbx_lender_admit(lender, 9, 1, 0);
	assert_int_equal(lend(lender, 8, &slab), RBX_LENDER_QUOTA_LATER);
	assert_int_equal(lend(lender, 9, &slab), 0);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 1);
	assert_int_equal(lend(lender, 8, &slab), 0);
	rbx_lender_leave(lender, 8);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 1);
	assert_true(rbx_lender_owner_is_idle(lender, 0));
	assert_false(rbx_lender_owner_is_idle(lender, 1));
	free(lender);
}

/* Ends a slab that is being prepared in one of the ways in which that comes. */
static void end_while_it_is_prepared(struct rbx_lender *lender, int way,
				     uint64_t slab_id)
{
	switch (way) {
	case 0:
		rbx_lender_unprepared(lender, slab_id);
		break;
	case 1:
		rbx_lender_leave(lender, 7);
		break;
	case 2:
		rbx_lender_resumed(lender, 7, 0, UINT64_MAX);
		break;
	case 3:
		rbx_lender_drain(lender, 0);
		break;
	}
}

static void slab_that_nobody_waits_for_ends_unlent(void **state)
{
	struct rbx_lender_counts counts;
	struct rbx_lender_loan slab;
	int way;

	(void)state;
	for (way = 0; way < 4; way++) {
		struct rbx_lender *lender = lender_make(1, 0);

		rbx_lender_admit(lender, 7, 0, 0);
		assert_int_equal(rbx_lender_lend(lender, 7, &slab), 0);
		end_while_it_is_prepared(lender, way, slab.slab_id);
		assert_false(rbx_lender_prepared(lender, &slab));
		rbx_lender_unprepared(lender, slab.slab_id);
		assert_int_equal(serve(lender, 0, RBX_LENDER_END), 1);
		rbx_lender_counts(lender, &counts);
		assert_int_equal(counts.slabs_free, 1);
		assert_int_equal(counts.slabs_preparing, 0);
		assert_int_equal(counts.slabs_mapped, 0);
		assert_int_equal(counts.slabs_revoked, 0);
		assert_int_equal(counts.slabs_unmapped, 0);
		free(lender);
	}
}

static void shrink_asks_who_has_most_for_the_oldest(void **state)
{
	struct rbx_lender *lender = lender_make(6, 0);
	struct rbx_lender_action action;
	struct rbx_lender_loan small, large[3];

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	rbx_lender_admit(lender, 2, 0, 0);
	lend(lender, 1, &small);
	lend(lender, 2, &large[0]);
	lend(lender, 2, &large[1]);
	lend(lender, 2, &large[2]);
	assert_int_equal(rbx_lender_shrink(lender, 2, 10, 50), 2);
	assert_int_equal(rbx_lender_deadline_ns(lender, 10), 10);
	assert_true(rbx_lender_next(lender, 10, &action));
	assert_int_equal(action.kind, RBX_LENDER_ASK);
	assert_int_equal(action.session_id, 2);
	assert_int_equal(action.loan.slab_id, large[0].slab_id);
	assert_int_equal(action.until_ns, 60);
	assert_true(rbx_lender_next(lender, 10, &action));
	assert_int_equal(action.loan.slab_id, large[1].slab_id);
	assert_false(rbx_lender_next(lender, 10, &action));
	/* With one unasked slab each, the oldest of all is next. */
	assert_int_equal(rbx_lender_shrink(lender, 1, 10, 50), 1);
	assert_true(rbx_lender_next(lender, 10, &action));
	assert_int_equal(action.loan.slab_id, small.slab_id);
	free(lender);
}

/* Asked one at a time: of the client that has most, its oldest. */
static uint64_t oldest_of_who_has_most(uint64_t epochs[][40], uint32_t *counts,
				       uint32_t clients)
{
	uint32_t best = 0, i;
	uint64_t epoch;

	for (i = 1; i < clients; i++)
		if (counts[i] > counts[best] ||
		    (counts[i] && counts[i] == counts[best] &&
		     epochs[i][0] < epochs[best][0]))
			best = i;
	epoch = epochs[best][0];
	counts[best]--;
	for (i = 0; i < counts[best]; i++)
		epochs[best][i] = epochs[best][i + 1];
	return epoch;
}

static void shrink_asks_as_if_for_one_at_a_time(void **state)
{
	uint32_t seed;

	(void)state;
	srand(1);
	for (seed = 0; seed < 300; seed++) {
		struct rbx_lender *lender = lender_make(200, 40);
		uint32_t clients = 1 + (uint32_t)rand() % 20;
		uint32_t loans = (uint32_t)rand() % 200;
		uint32_t count, all = 0, i;
		uint64_t epochs[20][40];
		uint32_t counts[20] = { 0 };
		bool expected[201] = { false };
		struct rbx_lender_action action;
		struct rbx_lender_loan loan;

		for (i = 0; i < clients; i++)
			rbx_lender_admit(lender, i + 1, 0, 0);
		for (i = 0; i < loans; i++) {
			uint32_t client = (uint32_t)rand() % clients;

			if (lend(lender, client + 1, &loan))
				continue;
			epochs[client][counts[client]++] = loan.epoch;
			all++;
		}
		/* In two goes, as what was asked for before does not count. */
		for (i = 0; i < 2; i++) {
			uint32_t left = count = (uint32_t)rand() % (all + 2);

			if (count > all)
				left = all;
			assert_int_equal(rbx_lender_shrink(lender, count, 0, 50),
					 left);
			for (all -= left; left; left--)
				expected[oldest_of_who_has_most(epochs, counts,
								clients)] = true;
		}
		for (count = 0; rbx_lender_next(lender, 0, &action); count++) {
			assert_int_equal(action.kind, RBX_LENDER_ASK);
			assert_true(expected[action.loan.epoch]);
			expected[action.loan.epoch] = false;
		}
		for (i = 0; i < 201; i++)
			assert_false(expected[i]);
		free(lender);
	}
}

/* A client that takes no more is tried once in a round, whatever it was asked for, and
 * the others hear of theirs. */
static void client_that_cannot_be_told_keeps_nobody_waiting(void **state)
{
	struct rbx_lender *lender = lender_make(100, 0);
	struct rbx_lender_action action;
	struct rbx_lender_loan loan;
	int deaf_count = 0, told_count = 0, i;

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	rbx_lender_admit(lender, 2, 0, 0);
	for (i = 0; i < 100; i++)
		lend(lender, i < 50 ? 1 : 2, &loan);
	rbx_lender_drain(lender, 0);
	while (rbx_lender_next(lender, 0, &action)) {
		if (action.session_id == 2) {
			told_count++;
			continue;
		}
		deaf_count++;
		rbx_lender_ask_again(lender, action.loan.slab_id, 0);
	}
	assert_int_equal(deaf_count, 1);
	assert_int_equal(told_count, 50);
	/* It was not forgotten. */
	assert_int_equal(serve(lender, 0, RBX_LENDER_ASK), 50);
	free(lender);
}

static void slab_asked_for_is_revoked_after_its_grace(void **state)
{
	struct rbx_lender *lender = lender_make(2, 0);
	struct rbx_lender_loan kept, lost;

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	lend(lender, 1, &lost);
	lend(lender, 1, &kept);
	rbx_lender_shrink(lender, 1, 0, 50);
	assert_int_equal(serve(lender, 0, RBX_LENDER_ASK), 1);
	assert_int_equal(serve(lender, 49, RBX_LENDER_END), 0);
	assert_int_equal(rbx_lender_check(lender, 1, &lost), 0);
	assert_int_equal(serve(lender, 50, RBX_LENDER_END), 1);
	assert_int_equal(rbx_lender_check(lender, 1, &lost),
			 RBX_REASON_NOT_YOURS);
	assert_int_equal(rbx_lender_check(lender, 1, &kept), 0);
	free(lender);
}

static void drain_asks_for_all_and_again(void **state)
{
	struct rbx_lender *lender = lender_make(3, 0);
	uint64_t later_ns = RBX_EVICT_REMIND_NS;
	struct rbx_lender_loan loan, more;

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	lend(lender, 1, &loan);
	lend(lender, 1, &more);
	rbx_lender_drain(lender, 0);
	assert_int_equal(lend(lender, 1, &more), RBX_REASON_DRAINING);
	assert_int_equal(serve(lender, 0, RBX_LENDER_ASK), 2);
	assert_int_equal(serve(lender, 1, RBX_LENDER_ASK), 0);
	rbx_lender_unmap(lender, 1, &loan);
	rbx_lender_heard(lender, 1, later_ns);
	assert_int_equal(serve(lender, later_ns, RBX_LENDER_ASK), 1);
	free(lender);
}

static void host_that_is_short_lends_nothing(void **state)
{
	struct rbx_lender *lender = lender_make(3, 0);
	struct rbx_lender_loan loan;

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	rbx_lender_set_short(lender, true);
	assert_int_equal(lend(lender, 1, &loan), RBX_REASON_FULL);
	rbx_lender_set_short(lender, false);
	assert_int_equal(lend(lender, 1, &loan), 0);
	free(lender);
}

static void clients_are_bounded(void **state)
{
	struct rbx_lender *lender = lender_make(1, 0);
	uint64_t id;

	(void)state;
	for (id = 1; id <= CLIENTS_MAX; id++)
		assert_int_equal(rbx_lender_admit(lender, id, 0, 0), 0);
	assert_int_equal(rbx_lender_admit(lender, id, 0, 0), RBX_REASON_TOO_MANY);
	rbx_lender_leave(lender, 5);
	assert_int_equal(rbx_lender_admit(lender, id, 0, 0), 0);
	free(lender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_is_not_lent_before_its_access_has_ended),
		cmocka_unit_test(slab_given_back_is_lent_after_all_others),
		cmocka_unit_test(lease_counts_from_the_last_sign_of_life),
		cmocka_unit_test(resumed_client_keeps_what_it_knows_of),
		cmocka_unit_test(slab_that_is_being_prepared_is_nobodys_yet),
		cmocka_unit_test(oldest_loan_is_the_one_that_was_ready_first),
		cmocka_unit_test(quota_counts_what_is_being_prepared),
		cmocka_unit_test(quota_is_for_all_sessions_of_an_owner),
		cmocka_unit_test(slab_counts_for_its_owner_until_it_has_ended),
		cmocka_unit_test(slab_that_nobody_waits_for_ends_unlent),
		cmocka_unit_test(shrink_asks_who_has_most_for_the_oldest),
		cmocka_unit_test(shrink_asks_as_if_for_one_at_a_time),
		cmocka_unit_test(client_that_cannot_be_told_keeps_nobody_waiting),
		cmocka_unit_test(slab_asked_for_is_revoked_after_its_grace),
		cmocka_unit_test(drain_asks_for_all_and_again),
		cmocka_unit_test(host_that_is_short_lends_nothing),
		cmocka_unit_test(clients_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
