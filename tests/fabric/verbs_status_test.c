/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_status_test.c - foreign completion and connection codes become ours. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fabric/fabric.h"
#include "fabric/verbs/status.h"

static void send_status_each_code_is_as_the_fabric_promises(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		int32_t expected;
	} table[] = {
		{ IBV_WC_SUCCESS, 0 },
		{ IBV_WC_WR_FLUSH_ERR, -ECANCELED },
		{ IBV_WC_REM_ACCESS_ERR, -EACCES },
		{ IBV_WC_LOC_PROT_ERR, -EFAULT },
		{ IBV_WC_LOC_QP_OP_ERR, -EFAULT },
		{ IBV_WC_REM_ABORT_ERR, -EHOSTUNREACH },
		{ IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT },
		{ IBV_WC_RNR_RETRY_EXC_ERR, -ENOBUFS },
		{ IBV_WC_LOC_LEN_ERR, -EMSGSIZE },
		{ IBV_WC_REM_INV_REQ_ERR, -EREMOTEIO },
		{ IBV_WC_REM_OP_ERR, -EREMOTEIO },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(rbx_verbs_send_status(table[i].status),
				 table[i].expected);
}

static void send_status_unknown_code_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(rbx_verbs_send_status(IBV_WC_FATAL_ERR), -EIO);
	assert_int_equal(rbx_verbs_send_status((enum ibv_wc_status)999), -EIO);
}

static void recv_status_operation_error_is_too_long(void **state)
{
	(void)state;
	assert_int_equal(rbx_verbs_recv_status(IBV_WC_LOC_QP_OP_ERR),
			 -EMSGSIZE);
	assert_int_equal(rbx_verbs_recv_status(IBV_WC_LOC_LEN_ERR), -EMSGSIZE);
	assert_int_equal(rbx_verbs_recv_status(IBV_WC_LOC_PROT_ERR), -EFAULT);
	assert_int_equal(rbx_verbs_recv_status(IBV_WC_SUCCESS), 0);
}

static void wc_opcode_each_code_is_ours(void **state)
{
	(void)state;
	assert_int_equal(rbx_verbs_wc_opcode(IBV_WC_RDMA_WRITE), RBX_OP_WRITE);
	assert_int_equal(rbx_verbs_wc_opcode(IBV_WC_RDMA_READ), RBX_OP_READ);
	assert_int_equal(rbx_verbs_wc_opcode(IBV_WC_SEND), RBX_OP_SEND);
	assert_int_equal(rbx_verbs_wc_opcode(IBV_WC_RECV), RBX_OP_RECV);
}

static void cm_status_good_events_are_zero(void **state)
{
	(void)state;
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
	assert_int_equal(
		rbx_verbs_cm_status(RDMA_CM_EVENT_CONNECT_RESPONSE, 0), 0);
}

static void cm_status_rejection_reason_is_no_errno(void **state)
{
	(void)state;
	/* 28: rejected by the program, 8: nobody listens */
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_REJECTED, 28),
			 -EBUSY);
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_REJECTED, 8),
			 -ECONNREFUSED);
}

static void cm_status_bad_events_are_never_zero(void **state)
{
	(void)state;
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV),
			 -ENODEV);
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_UNREACHABLE,
					     -ETIMEDOUT), -ETIMEDOUT);
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_CONNECT_ERROR, 0),
			 -EHOSTUNREACH);
	assert_int_equal(rbx_verbs_cm_status(RDMA_CM_EVENT_DEVICE_REMOVAL, 0),
			 -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_status_each_code_is_as_the_fabric_promises),
		cmocka_unit_test(send_status_unknown_code_is_an_error),
		cmocka_unit_test(recv_status_operation_error_is_too_long),
		cmocka_unit_test(wc_opcode_each_code_is_ours),
		cmocka_unit_test(cm_status_good_events_are_zero),
		cmocka_unit_test(cm_status_rejection_reason_is_no_errno),
		cmocka_unit_test(cm_status_bad_events_are_never_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
