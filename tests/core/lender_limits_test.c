/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_limits_test.c - limits of a lender that change while slabs are lent: what is lent
 * next, what is asked for without a deadline, and how that gets one or is withdrawn.
 */
#include "tests/core/lender_small.h"

static void new_limits_are_for_what_is_lent_next(void **state)
{
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_loan loans[4], more;
	uint32_t i;

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	rbx_lender_admit(lender, 2, 1, 0);
	rbx_lender_set_lend_max(lender, 2);
	assert_int_equal(rbx_lender_room(lender), 2);
	assert_int_equal(lend(lender, 1, &loans[0]), 0);
	assert_int_equal(lend(lender, 1, &loans[1]), 0);
	assert_int_equal(lend(lender, 1, &more), RBX_REASON_FULL);
	rbx_lender_set_lend_max(lender, 4);
	rbx_lender_set_quota(lender, 0, 3);
	for (i = 2; i < 4; i++)
		assert_int_equal(lend(lender, i - 1, &loans[i]), 0);
	assert_int_equal(loans[3].slab_id, 4);
	assert_int_equal(lend(lender, 1, &more), RBX_REASON_QUOTA);
	assert_int_equal(rbx_lender_surplus(lender), 0);
	rbx_lender_set_lend_max(lender, 1);
	rbx_lender_set_quota(lender, 0, 1);
	assert_int_equal(rbx_lender_surplus(lender), 3);
	assert_int_equal(rbx_lender_room(lender), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_lender_check(lender, i < 3 ? 1 : 2, &loans[i]), 0);
	free(lender);
}

/* The memory of a slab that is ending is taken as long as that lasts, also if another
 * entry of the table is free. */
static void ending_slab_counts_against_a_lower_limit(void **state)
{
	struct rbx_lender *lender = lender_make(4, 0);
	struct rbx_lender_loan first, second, more;

	(void)state;
	rbx_lender_admit(lender, 1, 0, 0);
	lend(lender, 1, &first);
	lend(lender, 1, &second);
	rbx_lender_set_lend_max(lender, 2);
	assert_int_equal(rbx_lender_unmap(lender, 1, &first), 0);
	assert_int_equal(rbx_lender_room(lender), 1);
	assert_int_equal(lend(lender, 1, &more), RBX_LENDER_LATER);
	rbx_lender_set_lend_max(lender, 1);
	assert_int_equal(lend(lender, 1, &more), RBX_REASON_FULL);
	rbx_lender_set_lend_max(lender, 2);
	assert_int_equal(serve(lender, 0, RBX_LENDER_END), 1);
	assert_int_equal(lend(lender, 1, &more), 0);
	assert_int_equal(more.slab_id, first.slab_id);
	free(lender);
}

/* ---- Limits that change --------------------------------------------------------*/

#define NOW_NS 10

/* A client has so many slabs, and is asked for all but one without a deadline. */
static struct rbx_lender *lender_with_surplus(uint32_t count, struct rbx_lender_loan *loans)
{
	struct rbx_lender *lender = lender_make(count, 0);
	uint32_t i;

	rbx_lender_admit(lender, 1, 0, NOW_NS);
	for (i = 0; i < count; i++)
		assert_int_equal(lend(lender, 1, &loans[i]), 0);
	rbx_lender_set_lend_max(lender, 1);
	assert_int_equal(rbx_lender_surplus(lender), count - 1);
	assert_int_equal(rbx_lender_shrink(lender, count - 1, NOW_NS, RBX_LENDER_NEVER_NS),
			 count - 1);
	assert_int_equal(serve(lender, NOW_NS, RBX_LENDER_ASK), count - 1);
	return lender;
}

static struct rbx_lender_counts counts_of(const struct rbx_lender *lender)
{
	struct rbx_lender_counts counts;

	rbx_lender_counts(lender, &counts);
	return counts;
}

static void what_has_no_deadline_is_never_revoked(void **state)
{
	const uint64_t later_ns = 1000 * RBX_EVICT_REMIND_NS;
	struct rbx_lender_loan loans[3];
	struct rbx_lender *lender = lender_with_surplus(3, loans);

	(void)state;
	assert_in_range(rbx_lender_deadline_ns(lender, NOW_NS), NOW_NS + 1,
			NOW_NS + RBX_EVICT_REMIND_NS);
	rbx_lender_heard(lender, 1, later_ns);
	assert_int_equal(serve(lender, later_ns, RBX_LENDER_ASK), 2);
	assert_int_equal(counts_of(lender).slabs_lent, 3);
	assert_int_equal(counts_of(lender).slabs_asked, 2);
	assert_int_equal(counts_of(lender).slabs_due, 0);
	free(lender);
}

/* One of two requests is withdrawn. A client that has moved its data already gives the
 * slab back. */
static void higher_limit_withdraws_what_is_not_too_much(void **state)
{
	struct rbx_lender_loan loans[3];
	struct rbx_lender *lender = lender_with_surplus(3, loans);
	uint32_t i;

	(void)state;
	rbx_lender_set_lend_max(lender, 2);
	assert_int_equal(counts_of(lender).slabs_asked, 1);
	rbx_lender_set_lend_max(lender, 3);
	assert_int_equal(counts_of(lender).slabs_asked, 0);
	rbx_lender_heard(lender, 1, NOW_NS + RBX_EVICT_REMIND_NS);
	assert_int_equal(serve(lender, NOW_NS + RBX_EVICT_REMIND_NS, RBX_LENDER_ASK), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(rbx_lender_unmap(lender, 1, &loans[i]), 0);
	assert_int_equal(serve(lender, NOW_NS, RBX_LENDER_END), 3);
	rbx_lender_leave(lender, 1);
	assert_int_equal(counts_of(lender).slabs_free, 3);
	free(lender);
}

/* The surplus goes with what another client gives back, and with what has a deadline. */
static void requests_are_withdrawn_when_nothing_is_too_much(void **state)
{
	struct rbx_lender_loan loans[3];
	struct rbx_lender *lender = lender_with_surplus(3, loans);

	(void)state;
	assert_int_equal(rbx_lender_unmap(lender, 1, &loans[2]), 0);
	rbx_lender_withdraw(lender);
	assert_int_equal(counts_of(lender).slabs_asked, 1);
	free(lender);

	lender = lender_with_surplus(3, loans);
	assert_int_equal(rbx_lender_shrink(lender, 1, NOW_NS, 50), 1);
	rbx_lender_set_lend_max(lender, 2);
	assert_int_equal(counts_of(lender).slabs_asked, 1);
	assert_int_equal(counts_of(lender).slabs_due, 1);
	free(lender);
}

static void drain_withdraws_nothing(void **state)
{
	struct rbx_lender_loan loans[3];
	struct rbx_lender *lender = lender_with_surplus(3, loans);

	(void)state;
	rbx_lender_drain(lender, NOW_NS);
	rbx_lender_set_lend_max(lender, 3);
	assert_int_equal(counts_of(lender).slabs_asked, 3);
	assert_int_equal(rbx_lender_deadline_ns(lender, NOW_NS), NOW_NS);
	free(lender);
}

/* The client is told of the deadline at once, and has the time; also while it cannot be
 * told again of the others, which would come first. */
static void short_host_sets_a_deadline(void **state)
{
	struct rbx_lender_loan loans[6];
	struct rbx_lender *lender = lender_with_surplus(6, loans);
	uint64_t now_ns = NOW_NS + 1, until_ns = now_ns + RBX_EVICT_REMIND_NS + 50;
	struct rbx_lender_action action;
	int i;

	(void)state;
	assert_int_equal(rbx_lender_shrink(lender, 2, now_ns, until_ns - now_ns), 2);
	assert_int_equal(counts_of(lender).slabs_due, 2);
	assert_int_equal(counts_of(lender).slabs_asked, 5);
	assert_int_equal(rbx_lender_deadline_ns(lender, now_ns), now_ns);
	for (i = 0; i < 2; i++) {
		assert_true(rbx_lender_next(lender, now_ns, &action));
		assert_int_equal(action.kind, RBX_LENDER_ASK);
		assert_int_equal(action.until_ns, until_ns);
	}
	assert_false(rbx_lender_next(lender, now_ns, &action));

	now_ns = until_ns - 1;
	rbx_lender_heard(lender, 1, now_ns);
	while (rbx_lender_next(lender, now_ns, &action)) {
		assert_int_equal(action.kind, RBX_LENDER_ASK);
		rbx_lender_ask_again(lender, action.loan.slab_id, now_ns);
	}
	assert_int_equal(serve(lender, until_ns, RBX_LENDER_END), 2);
	assert_int_equal(counts_of(lender).slabs_revoked, 2);
	assert_int_equal(counts_of(lender).slabs_due, 0);
	assert_int_equal(counts_of(lender).slabs_asked, 3);
	free(lender);
}

/* Of two clients, that have four and one. */
static void deadline_is_set_for_all_about_alike(void **state)
{
	struct rbx_lender *lender = lender_make(5, 0);
	struct rbx_lender_loan loan;
	uint32_t i;

	(void)state;
	rbx_lender_admit(lender, 1, 0, NOW_NS);
	rbx_lender_admit(lender, 2, 0, NOW_NS);
	for (i = 0; i < 5; i++)
		assert_int_equal(lend(lender, i < 4 ? 1 : 2, &loan), 0);
	assert_int_equal(rbx_lender_shrink(lender, 5, NOW_NS, RBX_LENDER_NEVER_NS), 5);
	assert_int_equal(rbx_lender_shrink(lender, 2, NOW_NS, 50), 2);
	assert_int_equal(serve(lender, NOW_NS + 50, RBX_LENDER_END), 2);
	assert_int_equal(rbx_lender_lent_to(lender, 1), 3);
	assert_int_equal(rbx_lender_lent_to(lender, 2), 0);
	free(lender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_limits_are_for_what_is_lent_next),
		cmocka_unit_test(ending_slab_counts_against_a_lower_limit),
		cmocka_unit_test(what_has_no_deadline_is_never_revoked),
		cmocka_unit_test(higher_limit_withdraws_what_is_not_too_much),
		cmocka_unit_test(requests_are_withdrawn_when_nothing_is_too_much),
		cmocka_unit_test(drain_withdraws_nothing),
		cmocka_unit_test(short_host_sets_a_deadline),
		cmocka_unit_test(deadline_is_set_for_all_about_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
