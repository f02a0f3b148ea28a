/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - what libibverbs and librdmacm say, in our words.
 *
 * The only place of the fabric where foreign conventions turn into -errno.
 */
#include "fabric/verbs/status.h"

#include <errno.h>

#include "fabric/fabric.h"

int32_t rbx_verbs_send_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	case IBV_WC_REM_ACCESS_ERR:
		return -EACCES;
	/*
	 * A wrong key is a protection error; Soft-RoCE calls it an operation
	 * error, which by the specification is a work request of wrong form,
	 * and those we do not post.
	 */
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
		return -EFAULT;
	case IBV_WC_REM_ABORT_ERR:
		return -EHOSTUNREACH;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return -ENOBUFS;
	case IBV_WC_LOC_LEN_ERR:
		return -EMSGSIZE;
	/* The sender of a message longer than the receive sees the first. */
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_BAD_RESP_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
		return -EREMOTEIO;
	default: /* our own device failed, or was asked for what we never ask */
		return -EIO;
	}
}

int32_t rbx_verbs_recv_status(enum ibv_wc_status status)
{
	/* What Soft-RoCE says of a message longer than the receive. */
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
	case RDMA_CM_EVENT_REJECTED: /* its status is a reason, no errno */
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNRESET;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	default:
		return status < 0 ? status : -EHOSTUNREACH;
	}
}
