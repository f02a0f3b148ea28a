/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* members_test.c - what may be the address and the labels of a member. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pool/members.h"

static void address_is_host_and_port_that_print(void **state)
{
	char longest[400];

	(void)state;
	assert_true(rbx_member_address_is_good("10.0.0.1:7471"));
	assert_true(rbx_member_address_is_good("[fe80::1%eth0]:7471"));
	assert_true(rbx_member_address_is_good("memory-7.example:1"));
	assert_false(rbx_member_address_is_good(""));
	assert_false(rbx_member_address_is_good("10.0.0.1"));
	assert_false(rbx_member_address_is_good("10.0.0.1:"));
	assert_false(rbx_member_address_is_good("10.0.0.1:0"));
	assert_false(rbx_member_address_is_good("10.0.0.1:65536"));
	assert_false(rbx_member_address_is_good(":7471"));
	assert_false(rbx_member_address_is_good("a b:1"));
	assert_false(rbx_member_address_is_good("a,b:1"));
	assert_false(rbx_member_address_is_good("\x1b[2J:1"));
	assert_false(rbx_member_address_is_good("etcd://a:1"));
	memset(longest, 'a', sizeof(longest));
	strcpy(longest + 255, ":65535");
	assert_true(rbx_member_address_is_good(longest));
	memset(longest, 'a', sizeof(longest));
	strcpy(longest + 256, ":65535");
	assert_false(rbx_member_address_is_good(longest));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_false(rbx_member_address_is_good(longest));
}

static void labels_are_pairs_each_once(void **state)
{
	char longest[400] = "n=";

	(void)state;
	assert_true(rbx_member_labels_are_good(""));
	assert_true(rbx_member_labels_are_good("rack=7"));
	assert_true(rbx_member_labels_are_good("rack=7,zone=b=c"));
	assert_true(rbx_member_labels_are_good("rack=7,rac=8,racks=9"));
	assert_false(rbx_member_labels_are_good("rack"));
	assert_false(rbx_member_labels_are_good("=7"));
	assert_false(rbx_member_labels_are_good("rack=7,"));
	assert_false(rbx_member_labels_are_good(",rack=7"));
	assert_false(rbx_member_labels_are_good("rack,zone=b"));
	assert_false(rbx_member_labels_are_good("rack=7,zone=b,rack=8"));
	assert_false(rbx_member_labels_are_good("rack=7 8"));
	assert_false(rbx_member_labels_are_good("rack=\xc3\xa4"));
	memset(longest + 2, 'v', 253);
	assert_true(rbx_member_labels_are_good(longest));
	longest[255] = 'v';
	assert_false(rbx_member_labels_are_good(longest));
}

static void members_are_at_most_so_many_and_each_once(void **state)
{
	struct rbx_members members = { .count = 0 }, same = { .count = 0 };
	struct rbx_pool_member member;
	char address[32];
	int i;

	(void)state;
	for (i = 0; i < RBX_POOL_MEMBERS_MAX; i++) {
		snprintf(address, sizeof(address), "h%d:1", i);
		rbx_member_init(&member, address);
		assert_int_equal(rbx_members_add(&members, &member), 0);
		assert_int_equal(rbx_members_add(&same, &member), 0);
		assert_int_equal(rbx_members_add(&members, &member), -EEXIST);
	}
	assert_true(rbx_members_are_equal(&members, &same));
	same.list[7].draining = 1;
	assert_false(rbx_members_are_equal(&members, &same));
	rbx_member_init(&member, "one-more:1");
	assert_int_equal(rbx_members_add(&members, &member), -ENOSPC);
	rbx_members_free(&members);
	rbx_members_free(&same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_is_host_and_port_that_print),
		cmocka_unit_test(labels_are_pairs_each_once),
		cmocka_unit_test(members_are_at_most_so_many_and_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
