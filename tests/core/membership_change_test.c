/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * membership_change_test.c - who becomes a member of a volume, and what a server is to one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/membership_change.h"
#include "core/proposer.h"

/* Incarnations 1 to count, all IN. */
static struct rbx_membership make(uint32_t count, bool was_in)
{
	struct rbx_membership m = { .epoch = 1, .version = 1, .count = count };

	for (uint32_t i = 0; i < count; i++)
		m.members[i] = (struct rbx_member){ i + 1, RBX_MEMBER_IN, was_in };
	return m;
}

static void new_member_is_in_and_needs_the_votes_of_before(void **state)
{
	struct rbx_membership m = make(3, true), next;
	struct rbx_member_set set = { .count = 2, .incarnations = { 4, 5 } };

	(void)state;
	rbx_membership_next(&next, &m);
	assert_true(rbx_membership_add(&next, 4));
	assert_true(rbx_membership_add(&next, 5));
	assert_null(rbx_membership_fault(&next));
	assert_true(rbx_membership_is_joint(&next));
	assert_false(rbx_membership_can_change(&next, &set));
	assert_false(rbx_membership_can_open(&next, &set));
	rbx_member_set_add(&set, 1);
	assert_false(rbx_membership_can_change(&next, &set));
	rbx_member_set_add(&set, 2);
	assert_true(rbx_membership_can_change(&next, &set));
	rbx_membership_next(&m, &next);
	assert_false(rbx_membership_is_joint(&m));
}

static void change_is_accepted_by_those_that_stay(void **state)
{
	struct rbx_membership m = make(4, true), next;
	struct rbx_member_set away = { .count = 0 };

	(void)state;
	rbx_membership_next(&next, &m);
	assert_true(rbx_membership_is_acceptable(&next, &away));
	rbx_membership_find(&next, 1)->state = RBX_MEMBER_OUT;
	rbx_membership_find(&next, 2)->state = RBX_MEMBER_OUT;
	assert_true(rbx_membership_is_acceptable(&next, &away));
	rbx_membership_find(&next, 3)->state = RBX_MEMBER_OUT;
	assert_false(rbx_membership_is_acceptable(&next, &away)); /* two votes of before */
	m = make(1, true);
	rbx_membership_next(&next, &m);
	rbx_membership_find(&next, 1)->state = RBX_MEMBER_OUT;
	assert_false(rbx_membership_is_acceptable(&next, &away)); /* nobody is left */
	/* One that stays, and cannot answer, is none of those that accept it. */
	m = make(3, true);
	rbx_membership_next(&next, &m);
	rbx_membership_find(&next, 1)->state = RBX_MEMBER_OUT;
	assert_true(rbx_membership_is_acceptable(&next, &away));
	rbx_member_set_add(&away, 2);
	assert_false(rbx_membership_is_acceptable(&next, &away));
}

static void place_tells_what_a_server_is(void **state)
{
	struct rbx_membership m = make(3, true), first = make(3, false);

	(void)state;
	assert_true(rbx_membership_add(&m, 4));
	rbx_membership_find(&m, 2)->state = RBX_MEMBER_OUT;
	assert_int_equal(rbx_membership_place(&m, 1), RBX_PLACE_IN);
	assert_int_equal(rbx_membership_place(&m, 2), RBX_PLACE_OUT);
	assert_int_equal(rbx_membership_place(&m, 4), RBX_PLACE_COMES);
	assert_int_equal(rbx_membership_place(&m, 5), RBX_PLACE_NOT);
	/* Those that a volume was made on did not come to it. */
	assert_int_equal(rbx_membership_place(&first, 1), RBX_PLACE_IN);
}

static void full_membership_takes_no_more(void **state)
{
	struct rbx_membership m = make(RBX_MEMBERS_MAX, true);

	(void)state;
	assert_false(rbx_membership_add(&m, RBX_MEMBERS_MAX + 1));
	assert_int_equal(m.count, RBX_MEMBERS_MAX);
}

static void server_that_was_out_is_in_again(void **state)
{
	struct rbx_membership m = make(3, true);

	(void)state;
	*rbx_membership_find(&m, 2) = (struct rbx_member){ 2, RBX_MEMBER_OUT, false };
	assert_true(rbx_membership_add(&m, 2));
	assert_int_equal(m.count, 3);
	assert_int_equal(rbx_membership_place(&m, 2), RBX_PLACE_COMES);
	assert_true(rbx_membership_is_joint(&m));
}

static void member_is_forgotten_if_it_is_out_and_has_no_vote(void **state)
{
	struct rbx_membership m = make(4, true);

	(void)state;
	rbx_membership_find(&m, 1)->state = RBX_MEMBER_OUT; /* it voted until now */
	*rbx_membership_find(&m, 2) = (struct rbx_member){ 2, RBX_MEMBER_OUT, false };
	rbx_membership_forget(&m, 0);
	assert_int_equal(m.count, 4);
	rbx_membership_forget(&m, 1);
	rbx_membership_forget(&m, 3);
	rbx_membership_forget(&m, 9);
	assert_int_equal(m.count, 4);
	rbx_membership_forget(&m, 2);
	assert_int_equal(m.count, 3);
	assert_int_equal(rbx_membership_place(&m, 2), RBX_PLACE_NOT);
	assert_null(rbx_membership_fault(&m));
}

static void full_membership_forgets_one_that_is_out(void **state)
{
	struct rbx_membership m = make(RBX_MEMBERS_MAX, true);

	(void)state;
	*rbx_membership_find(&m, 7) = (struct rbx_member){ 7, RBX_MEMBER_OUT, false };
	*rbx_membership_find(&m, 8) = (struct rbx_member){ 8, RBX_MEMBER_OUT, false };
	rbx_membership_forget(&m, 0);
	assert_int_equal(m.count, RBX_MEMBERS_MAX - 1);
	assert_int_equal(rbx_membership_place(&m, 8), RBX_PLACE_OUT);
	assert_true(rbx_membership_add(&m, RBX_MEMBERS_MAX + 1));
	assert_null(rbx_membership_fault(&m));
}

static void change_that_only_new_members_know_is_taken_back(void **state)
{
	struct rbx_membership next;
	struct rbx_proposer p;
	const uint64_t incarnations[] = { 1, 2 };
	const struct rbx_membership none = { .epoch = 0 };
	struct rbx_membership before;

	(void)state;
	rbx_proposer_create(&p, 1, incarnations, 2);
	rbx_proposer_promised(&p, 1, &none);
	rbx_proposer_promised(&p, 2, &none);
	rbx_proposer_adopt(&p);
	rbx_proposer_accepted(&p, 1, 1);
	rbx_proposer_accepted(&p, 2, 1);
	before = p.membership;
	rbx_membership_next(&next, &before);
	assert_true(rbx_membership_add(&next, 3));
	rbx_proposer_propose(&p, &next);
	rbx_proposer_accepted(&p, 3, 2);
	assert_int_equal(p.state, RBX_PROPOSER_PROPOSED);
	rbx_proposer_withdraw(&p, &before);
	assert_int_equal(p.state, RBX_PROPOSER_CHOSEN);
	assert_int_equal(rbx_membership_place(&p.membership, 3), RBX_PLACE_NOT);
	rbx_membership_next(&next, &p.membership);
	assert_int_equal(next.version, 3); /* the new member may have accepted 2 */
	rbx_proposer_accepted(&p, 1, 2); /* of nobody */
	rbx_proposer_propose(&p, &next);
	assert_int_equal(p.state, RBX_PROPOSER_PROPOSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_member_is_in_and_needs_the_votes_of_before),
		cmocka_unit_test(change_is_accepted_by_those_that_stay),
		cmocka_unit_test(place_tells_what_a_server_is),
		cmocka_unit_test(full_membership_takes_no_more),
		cmocka_unit_test(server_that_was_out_is_in_again),
		cmocka_unit_test(member_is_forgotten_if_it_is_out_and_has_no_vote),
		cmocka_unit_test(full_membership_forgets_one_that_is_out),
		cmocka_unit_test(change_that_only_new_members_know_is_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
