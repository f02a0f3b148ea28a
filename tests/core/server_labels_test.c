/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* server_labels_test.c - which labels a server may have, and the failure domain that they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/server_labels.h"

static void labels_are_pairs_each_name_once(void **state)
{
	static const char *const good[] = {
		"", "rack=7", "rack=7,zone=b", "zone=b=c", "rack=7,rac=8,racks=9", "a.b/c=-_!",
	};
	static const char *const bad[] = {
		"rack", "rack=", "=7", "=", ",", "rack=7,", ",rack=7", "rack=7,,zone=b",
		"rack,zone=b", "rack=7,zone=b,rack=8", "rack=7 8", "ra ck=7", "rack=\"7\"",
		"rack=\\7", "rack=\xc3\xa4", "rack=\x7f", "rack=\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (!rbx_server_labels_are_good(good[i]))
			fail_msg("refused: '%s'", good[i]);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (rbx_server_labels_are_good(bad[i]))
			fail_msg("taken: '%s'", bad[i]);
}

static void labels_end_within_their_room(void **state)
{
	char labels[RBX_SERVER_LABELS_BYTES + 1] = "rack=";

	(void)state;
	memset(labels + 5, 'x', RBX_SERVER_LABELS_BYTES - 6);
	assert_true(rbx_server_labels_are_good(labels));
	labels[RBX_SERVER_LABELS_BYTES - 1] = 'x';
	assert_false(rbx_server_labels_are_good(labels));
}

static void spread_is_a_name(void **state)
{
	char name[RBX_SPREAD_BYTES + 1] = "";

	(void)state;
	assert_true(rbx_spread_is_good("rack"));
	assert_true(rbx_spread_is_good("topology.kubernetes.io/zone"));
	assert_false(rbx_spread_is_good(""));
	assert_false(rbx_spread_is_good("rack=7"));
	assert_false(rbx_spread_is_good("rack,zone"));
	assert_false(rbx_spread_is_good("ra ck"));
	memset(name, 'x', RBX_SPREAD_BYTES);
	assert_false(rbx_spread_is_good(name));
	name[RBX_SPREAD_BYTES - 1] = '\0';
	assert_true(rbx_spread_is_good(name));
}

static void domain_is_the_value_of_the_label(void **state)
{
	uint64_t seven = rbx_server_domain("rack=7", "rack");

	(void)state;
	assert_int_not_equal(seven, 0);
	assert_int_equal(rbx_server_domain("zone=b,rack=7", "rack"), seven);
	assert_int_equal(rbx_server_domain("rack=7,zone=b", "rack"), seven);
	assert_int_equal(rbx_server_domain("zone=7", "zone"), seven);
	assert_int_not_equal(rbx_server_domain("rack=8", "rack"), seven);
	assert_int_not_equal(rbx_server_domain("rack=77", "rack"), seven);
	assert_int_not_equal(rbx_server_domain("rack=7=", "rack"), seven);
}

static void server_without_the_label_has_no_domain(void **state)
{
	(void)state;
	assert_int_equal(rbx_server_domain("", "rack"), 0);
	assert_int_equal(rbx_server_domain("zone=b", "rack"), 0);
	assert_int_equal(rbx_server_domain("racks=7,rac=7", "rack"), 0);
	assert_int_equal(rbx_server_domain("zone=rack=7", "rack"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_pairs_each_name_once),
		cmocka_unit_test(labels_end_within_their_room),
		cmocka_unit_test(spread_is_a_name),
		cmocka_unit_test(domain_is_the_value_of_the_label),
		cmocka_unit_test(server_without_the_label_has_no_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
