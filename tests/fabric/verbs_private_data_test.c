/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_private_data_test.c - exact bytes through padded messages, or refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/verbs/private_data.h"

#define REPLY_BYTES 196 /* as a reply of rdma_cm is padded */

static void private_data_any_length_survives_padding(void **state)
{
	uint8_t sent[RBX_PRIVATE_DATA_MAX];
	uint8_t got[RBX_PRIVATE_DATA_MAX];
	uint8_t message[REPLY_BYTES];
	int length;

	(void)state;
	for (length = 0; length <= RBX_PRIVATE_DATA_MAX; length++) {
		memset(sent, 0xa0 + length, sizeof(sent));
		memset(message, 0xee, sizeof(message));
		assert_int_equal(rbx_verbs_private_data_frame(message, sent,
							      (size_t)length),
				 length + 1);
		assert_int_equal(rbx_verbs_private_data_unframe(
					 message, sizeof(message), got),
				 length);
		assert_memory_equal(got, sent, (size_t)length);
	}
}

static void private_data_missing_is_empty(void **state)
{
	uint8_t got[RBX_PRIVATE_DATA_MAX];
	uint8_t zeros[REPLY_BYTES] = { 0 };

	(void)state;
	assert_int_equal(rbx_verbs_private_data_unframe(NULL, 0, got), 0);
	assert_int_equal(rbx_verbs_private_data_unframe(zeros, 0, got), 0);
	assert_int_equal(rbx_verbs_private_data_unframe(zeros, REPLY_BYTES,
							got), 0);
}

static void private_data_length_beyond_limit_is_refused(void **state)
{
	uint8_t got[RBX_PRIVATE_DATA_MAX];
	uint8_t message[REPLY_BYTES] = { RBX_PRIVATE_DATA_MAX + 1 };

	(void)state;
	assert_int_equal(rbx_verbs_private_data_unframe(
				 message, sizeof(message), got), -EPROTO);
	message[0] = 255;
	assert_int_equal(rbx_verbs_private_data_unframe(
				 message, sizeof(message), got), -EPROTO);
}

static void private_data_length_beyond_message_is_refused(void **state)
{
	uint8_t got[RBX_PRIVATE_DATA_MAX];
	uint8_t message[4] = { 4, 1, 2, 3 };

	(void)state;
	assert_int_equal(rbx_verbs_private_data_unframe(
				 message, sizeof(message), got), -EPROTO);
	message[0] = 3;
	assert_int_equal(rbx_verbs_private_data_unframe(
				 message, sizeof(message), got), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_any_length_survives_padding),
		cmocka_unit_test(private_data_missing_is_empty),
		cmocka_unit_test(private_data_length_beyond_limit_is_refused),
		cmocka_unit_test(private_data_length_beyond_message_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
