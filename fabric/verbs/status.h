/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* status.h - converts status values of libibverbs and librdmacm to ours. */
#ifndef RBX_VERBS_STATUS_H
#define RBX_VERBS_STATUS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

/* 0 or -errno as the head of fabric.h lists them, of either queue. */
int32_t rbx_verbs_send_status(enum ibv_wc_status status);
int32_t rbx_verbs_recv_status(enum ibv_wc_status status);

/* enum rbx_opcode of a completion without error. */
uint8_t rbx_verbs_wc_opcode(enum ibv_wc_opcode opcode);

/*
 * 0 or -errno of an event that answers a step of connecting; `status` is the
 * event's: -errno, or the reason of a rejection.
 */
int rbx_verbs_cm_status(enum rdma_cm_event_type event, int status);

#endif
