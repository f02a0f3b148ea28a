/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_reads_test.c - how many reads may be outstanding on a connection.
 *
 * The original asked for one, so that reads of a queue pair took turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fabric/verbs/verbs.h"

static const struct rbx_verbs_device device = {
	.max_responder_resources = 16,
	.max_initiator_depth = 12,
};

static void reads_asked_for_are_all_that_the_device_can(void **state)
{
	struct rdma_conn_param param = {
		.responder_resources = UINT8_MAX,
		.initiator_depth = UINT8_MAX,
	};

	(void)state;
	rbx_verbs_conn_limit_param(&device, &param);
	assert_int_equal(param.responder_resources, 16);
	assert_int_equal(param.initiator_depth, 12);
}

static void reads_answered_are_no_more_than_offered(void **state)
{
	struct rdma_conn_param param = {
		.responder_resources = 4,
		.initiator_depth = 8,
	};

	(void)state;
	rbx_verbs_conn_limit_param(&device, &param);
	assert_int_equal(param.responder_resources, 4);
	assert_int_equal(param.initiator_depth, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_asked_for_are_all_that_the_device_can),
		cmocka_unit_test(reads_answered_are_no_more_than_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
