/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_qp_table_test.c - finding queue pairs by number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fabric/verbs/qp_table.h"

/* The table never looks into a queue pair; any address will do. */
static struct rbx_verbs_qp *fake(uint32_t qp_num)
{
	return (struct rbx_verbs_qp *)((uintptr_t)qp_num * 16 + 16);
}

static int table_make(void **state)
{
	*state = malloc(sizeof(struct rbx_verbs_qp_table));
	if (!*state)
		return -1;
	rbx_verbs_qp_table_init(*state);
	return 0;
}

static int table_drop(void **state)
{
	rbx_verbs_qp_table_destroy(*state);
	free(*state);
	return 0;
}

static void table_find_added_returns_it(void **state)
{
	/* both ends, and both sides of the border between two leaves */
	static const uint32_t numbers[] = { 0, 4095, 4096, 0x123456, 0xffffff };
	size_t count = sizeof(numbers) / sizeof(numbers[0]);
	size_t i;

	for (i = 0; i < count; i++)
		assert_int_equal(rbx_verbs_qp_table_add(*state, numbers[i],
							fake(numbers[i])), 0);
	for (i = 0; i < count; i++)
		assert_ptr_equal(rbx_verbs_qp_table_find(*state, numbers[i]),
				 fake(numbers[i]));
}

static void table_find_never_added_is_null(void **state)
{
	assert_null(rbx_verbs_qp_table_find(*state, 17));
	assert_int_equal(rbx_verbs_qp_table_add(*state, 17, fake(17)), 0);
	assert_null(rbx_verbs_qp_table_find(*state, 18));
	assert_null(rbx_verbs_qp_table_find(*state, 17 + 4096));
}

static void table_find_removed_is_null_and_number_is_free_again(void **state)
{
	assert_int_equal(rbx_verbs_qp_table_add(*state, 17, fake(1)), 0);
	assert_int_equal(rbx_verbs_qp_table_add(*state, 18, fake(2)), 0);
	rbx_verbs_qp_table_remove(*state, 17);
	assert_null(rbx_verbs_qp_table_find(*state, 17));
	assert_ptr_equal(rbx_verbs_qp_table_find(*state, 18), fake(2));
	assert_int_equal(rbx_verbs_qp_table_add(*state, 17, fake(3)), 0);
	assert_ptr_equal(rbx_verbs_qp_table_find(*state, 17), fake(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(table_find_added_returns_it,
						table_make, table_drop),
		cmocka_unit_test_setup_teardown(table_find_never_added_is_null,
						table_make, table_drop),
		cmocka_unit_test_setup_teardown(
			table_find_removed_is_null_and_number_is_free_again,
			table_make, table_drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
