/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* status_test.c - whose fault it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/status.h"

static void status_says_whose_fault_it_was(void **state)
{
	static const struct {
		int32_t status;
		enum rbx_status_class class;
		bool may_pass;
	} table[] = {
		{ -EFAULT, RBX_STATUS_LOCAL, false },
		{ -EINVAL, RBX_STATUS_LOCAL, false },
		{ -ENOMEM, RBX_STATUS_LOCAL, false },
		{ -EMSGSIZE, RBX_STATUS_LOCAL, false },
		{ -EIO, RBX_STATUS_LOCAL, true }, /* a device comes back */
		{ -ECANCELED, RBX_STATUS_PATH, true },
		{ -EHOSTUNREACH, RBX_STATUS_PATH, true },
		{ -ETIMEDOUT, RBX_STATUS_PATH, true },
		{ -EACCES, RBX_STATUS_KEY, false },
		{ -EREMOTEIO, RBX_STATUS_REMOTE, true },
		{ -ENOBUFS, RBX_STATUS_REMOTE, true },
		{ -EPROTO, RBX_STATUS_REMOTE, true }, /* nobody promised it */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(rbx_status_class(table[i].status),
				 table[i].class);
		assert_int_equal(rbx_status_may_pass(table[i].status),
				 table[i].may_pass);
	}
}

static void status_of_a_completion_out_of_the_table_is_our_device(void **state)
{
	(void)state;
	assert_int_equal(rbx_status_of_completion(0), 0);
	assert_int_equal(rbx_status_of_completion(4), -EFAULT);
	assert_int_equal(rbx_status_of_completion(10), -EACCES);
	assert_int_equal(rbx_status_of_completion(3), -EIO);
	assert_int_equal(rbx_status_of_completion(21), -EIO);
	assert_int_equal(rbx_status_of_completion(UINT32_MAX), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_says_whose_fault_it_was),
		cmocka_unit_test(
			status_of_a_completion_out_of_the_table_is_our_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
