/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - converts status values of libibverbs and librdmacm to ours.
 *
 * The only file of this fabric that turns foreign conventions into -errno. Work completions
 * use the core's table, which the kernel's verbs share.
 */
#include "fabric/verbs/status.h"

#include <errno.h>

#include "core/reject.h"
#include "core/status.h"
#include "fabric/fabric.h"

#define SAME_NUMBER(name, number, errno) \
	RBX_STATIC_ASSERT(IBV_WC_##name == (number), "as the specification has it");
RBX_COMPLETION_STATUSES(SAME_NUMBER)

int32_t rbx_verbs_send_status(enum ibv_wc_status status)
{
	return rbx_status_of_completion((uint32_t)status);
}

int32_t rbx_verbs_recv_status(enum ibv_wc_status status)
{
	/* Soft-RoCE reports this for a message longer than the receive. */
	if (status == IBV_WC_LOC_QP_OP_ERR)
		return -EMSGSIZE;
	return rbx_verbs_send_status(status);
}

uint8_t rbx_verbs_wc_opcode(enum ibv_wc_opcode opcode)
{
	switch (opcode) {
	case IBV_WC_RDMA_WRITE:
		return RBX_OP_WRITE;
	case IBV_WC_RDMA_READ:
		return RBX_OP_READ;
	case IBV_WC_SEND:
		return RBX_OP_SEND;
	case IBV_WC_BIND_MW:
		return RBX_OP_OPEN_WINDOW;
	case IBV_WC_COMP_SWAP:
		return RBX_OP_COMPARE_SWAP;
	case IBV_WC_FETCH_ADD:
		return RBX_OP_FETCH_ADD;
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return RBX_OP_RECV_WRITE;
	default:
		return RBX_OP_RECV;
	}
}

int rbx_verbs_cm_status(enum rdma_cm_event_type event, int status)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		return 0;
	case RDMA_CM_EVENT_REJECTED: /* its status is a reason, not an errno */
		return rbx_reject_errno(status);
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNRESET;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	default:
		return status < 0 ? status : -EHOSTUNREACH;
	}
}
