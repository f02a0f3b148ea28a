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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_member_is_in_and_needs_the_votes_of_before),
		cmocka_unit_test(place_tells_what_a_server_is),
		cmocka_unit_test(full_membership_takes_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
