/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * membership_test.c - quorums of a membership, and what is wrong with one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/acceptor.h"
#include "core/proposer.h"

/* Incarnations 1 to count, all IN and all voters of before. */
static struct rbx_membership make(uint32_t count)
{
	struct rbx_membership m = { .epoch = 1, .version = 1, .count = count };

	for (uint32_t i = 0; i < count; i++)
		m.members[i] = (struct rbx_member){ i + 1, RBX_MEMBER_IN, true };
	return m;
}

/* The first count of them. */
static struct rbx_member_set first(uint32_t count)
{
	struct rbx_member_set set = { .count = count };

	for (uint32_t i = 0; i < count; i++)
		set.incarnations[i] = i + 1;
	return set;
}

static void quorums_are_those_of_the_page(void **state)
{
	static const uint32_t open[] = { 0, 1, 2, 2, 3, 3, 4 };
	static const uint32_t change[] = { 0, 1, 1, 2, 2, 3, 3 };

	(void)state;
	for (uint32_t count = 1; count <= 6; count++) {
		struct rbx_membership m = make(count);

		for (uint32_t votes = 0; votes <= count; votes++) {
			struct rbx_member_set set = first(votes);

			assert_int_equal(rbx_membership_can_open(&m, &set),
					 votes >= open[count]);
			assert_int_equal(rbx_membership_can_change(&m, &set),
					 votes >= change[count]);
		}
	}
}

static void servers_that_are_no_members_or_out_have_no_vote(void **state)
{
	struct rbx_membership m = make(3);
	struct rbx_member_set set = { .count = 3, .incarnations = { 1, 7, 8 } };

	(void)state;
	assert_false(rbx_membership_can_open(&m, &set));
	assert_false(rbx_membership_can_change(&m, &set));
	rbx_membership_find(&m, 1)->state = RBX_MEMBER_OUT;
	rbx_membership_find(&m, 1)->was_in = false;
	set = (struct rbx_member_set){ .count = 2, .incarnations = { 1, 2 } };
	assert_false(rbx_membership_can_open(&m, &set));
	assert_true(rbx_membership_can_change(&m, &set));
	rbx_member_set_add(&set, 3);
	assert_true(rbx_membership_can_open(&m, &set));
}

static void change_of_voters_needs_those_of_before_and_after(void **state)
{
	struct rbx_membership m = make(3), next;
	struct rbx_member_set last = { .count = 1, .incarnations = { 3 } };
	struct rbx_member_set two = { .count = 2, .incarnations = { 1, 3 } };

	(void)state;
	rbx_membership_find(&m, 1)->state = RBX_MEMBER_OUT;
	rbx_membership_find(&m, 2)->state = RBX_MEMBER_OUT;
	assert_true(rbx_membership_is_joint(&m));
	assert_false(rbx_membership_can_change(&m, &last));
	assert_false(rbx_membership_can_open(&m, &last));
	assert_true(rbx_membership_can_change(&m, &two));
	assert_true(rbx_membership_can_open(&m, &two));
	rbx_membership_next(&next, &m);
	assert_int_equal(next.version, 2);
	assert_false(rbx_membership_is_joint(&next));
	assert_true(rbx_membership_can_change(&next, &last));
	assert_true(rbx_membership_can_open(&next, &last));
}

static void memberships_that_cannot_be_are_told(void **state)
{
	struct rbx_membership m = make(3);

	(void)state;
	assert_null(rbx_membership_fault(&m));
	m.epoch = 0;
	assert_non_null(rbx_membership_fault(&m));
	m = make(3);
	m.version = 0;
	assert_non_null(rbx_membership_fault(&m));
	m.version = UINT64_MAX; /* the next one would be 0 */
	assert_non_null(rbx_membership_fault(&m));
	m = make(3);
	m.count = RBX_MEMBERS_MAX + 1;
	assert_non_null(rbx_membership_fault(&m));
	m = make(3);
	m.members[2].incarnation = 1;
	assert_non_null(rbx_membership_fault(&m));
	m = make(3);
	m.members[1].incarnation = 0;
	assert_non_null(rbx_membership_fault(&m));
	m = make(3);
	m.members[1].state = RBX_MEMBER_OUT + 1;
	assert_non_null(rbx_membership_fault(&m));
	m = make(1);
	m.members[0].state = RBX_MEMBER_OUT;
	assert_non_null(rbx_membership_fault(&m));
}

static void full_set_takes_no_more(void **state)
{
	struct rbx_member_set set = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= RBX_MEMBERS_MAX + 5; i++)
		rbx_member_set_add(&set, i);
	rbx_member_set_add(&set, 1);
	assert_int_equal(set.count, RBX_MEMBERS_MAX);
}

static void acceptor_keeps_its_promise(void **state)
{
	struct rbx_acceptor acceptor = { 0 };
	struct rbx_membership m = make(1);

	(void)state;
	assert_false(rbx_acceptor_accept(&acceptor, &m));
	assert_true(rbx_acceptor_promise(&acceptor, 2));
	assert_false(rbx_acceptor_promise(&acceptor, 2));
	assert_false(rbx_acceptor_promise(&acceptor, 1));
	assert_false(rbx_acceptor_accept(&acceptor, &m));
	m.epoch = 2;
	m.version = 5;
	assert_true(rbx_acceptor_accept(&acceptor, &m));
	m.version = 4; /* comes late */
	assert_true(rbx_acceptor_accept(&acceptor, &m));
	assert_int_equal(acceptor.membership.version, 5);
}

static void volume_that_nobody_has_is_not_opened(void **state)
{
	struct rbx_membership none = { 0 };
	struct rbx_proposer proposer;

	(void)state;
	rbx_proposer_open(&proposer, 1);
	for (uint64_t i = 1; i < 10; i++)
		rbx_proposer_promised(&proposer, i, &none);
	assert_int_equal(proposer.state, RBX_PROPOSER_OPENING);
}

static void writer_that_is_shut_out_stays_so(void **state)
{
	struct rbx_membership m = make(1);
	struct rbx_proposer proposer;

	(void)state;
	rbx_proposer_open(&proposer, 2);
	rbx_proposer_promised(&proposer, 1, &m);
	assert_int_equal(proposer.state, RBX_PROPOSER_OPENED);
	rbx_proposer_adopt(&proposer);
	rbx_proposer_refused(&proposer);
	rbx_proposer_accepted(&proposer, 1, 2);
	rbx_proposer_promised(&proposer, 1, &m);
	assert_int_equal(proposer.state, RBX_PROPOSER_SHUT_OUT);
}

/* It was not chosen, but it says who is out, and the opener may have heard of that before. */
static void newer_record_counts_until_one_is_adopted(void **state)
{
	struct rbx_membership old = make(5), newer = make(5);
	struct rbx_proposer proposer;

	(void)state;
	newer.version = 2;
	newer.members[4].state = RBX_MEMBER_OUT;
	rbx_proposer_open(&proposer, 2);
	for (uint32_t i = 2; i <= 4; i++)
		rbx_proposer_promised(&proposer, i, &old);
	assert_int_equal(proposer.state, RBX_PROPOSER_OPENED);
	rbx_proposer_promised(&proposer, 1, &newer);
	assert_int_equal(proposer.state, RBX_PROPOSER_OPENED);
	assert_int_equal(proposer.membership.version, 2);
	rbx_proposer_adopt(&proposer);
	assert_int_equal(proposer.membership.members[4].state, RBX_MEMBER_OUT);
	newer.version = 3;
	rbx_proposer_promised(&proposer, 5, &newer); /* too late */
	assert_int_equal(proposer.state, RBX_PROPOSER_PROPOSED);
}

/* 3 of 5 are gone. The others need no vote of them, in this record and in the next open. */
static void overruled_record_needs_those_that_are_left_alone(void **state)
{
	struct rbx_membership old = make(5);
	struct rbx_member_set left = first(2), one = first(1);
	struct rbx_proposer proposer;

	(void)state;
	rbx_proposer_open(&proposer, 9);
	old.members[0].was_in = false; /* it has come just now */
	old.members[4].state = RBX_MEMBER_OUT;
	rbx_proposer_promised(&proposer, 1, &old);
	rbx_proposer_promised(&proposer, 2, &old);
	assert_int_equal(proposer.state, RBX_PROPOSER_OPENING);
	assert_true(rbx_proposer_overrule(&proposer, &left));
	assert_int_equal(proposer.state, RBX_PROPOSER_PROPOSED);
	assert_int_equal(proposer.membership.count, 2);
	assert_int_equal(proposer.membership.epoch, 9);
	assert_int_equal(proposer.membership.version, 2);
	assert_true(rbx_membership_is_newer(&proposer.membership, &old));
	assert_false(rbx_membership_can_open(&proposer.membership, &one));
	assert_true(rbx_membership_can_open(&proposer.membership, &left));
	rbx_proposer_accepted(&proposer, 3, 2); /* one of those that were given up */
	assert_int_equal(proposer.state, RBX_PROPOSER_PROPOSED);
	rbx_proposer_accepted(&proposer, 1, 2);
	rbx_proposer_accepted(&proposer, 2, 2);
	assert_int_equal(proposer.state, RBX_PROPOSER_CHOSEN);
}

/* Whatever a server says of who is IN. */
static void record_in_which_nobody_left_votes_is_not_overruled(void **state)
{
	struct rbx_membership old = make(3);
	struct rbx_member_set left = first(2), none = { .count = 0 };
	struct rbx_proposer proposer;

	(void)state;
	old.members[0].state = old.members[1].state = RBX_MEMBER_OUT;
	rbx_proposer_open(&proposer, 9);
	rbx_proposer_promised(&proposer, 1, &old);
	assert_false(rbx_proposer_overrule(&proposer, &left));
	assert_false(rbx_proposer_overrule(&proposer, &none));
	assert_int_equal(proposer.state, RBX_PROPOSER_OPENING);
	assert_int_equal(proposer.membership.count, 3);
	assert_int_equal(proposer.membership.version, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quorums_are_those_of_the_page),
		cmocka_unit_test(servers_that_are_no_members_or_out_have_no_vote),
		cmocka_unit_test(change_of_voters_needs_those_of_before_and_after),
		cmocka_unit_test(memberships_that_cannot_be_are_told),
		cmocka_unit_test(full_set_takes_no_more),
		cmocka_unit_test(newer_record_counts_until_one_is_adopted),
		cmocka_unit_test(overruled_record_needs_those_that_are_left_alone),
		cmocka_unit_test(record_in_which_nobody_left_votes_is_not_overruled),
		cmocka_unit_test(acceptor_keeps_its_promise),
		cmocka_unit_test(volume_that_nobody_has_is_not_opened),
		cmocka_unit_test(writer_that_is_shut_out_stays_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
