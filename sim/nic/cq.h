/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cq.h - a completion queue, and its interrupt.
 *
 * An entry is there once its DMA has arrived. Polling it frees the slots of its queue pair,
 * up to its own. Entries that are there already when the queue is armed raise no interrupt.
 * The next one does; the interrupt waits moderation_ns for more entries, or until there are
 * moderation_count.
 */
#ifndef RBX_SIM_NIC_CQ_H
#define RBX_SIM_NIC_CQ_H

#include "sim/nic/qp.h"

int rbx_nic_cq_create(struct rbx_device *base, uint32_t depth_count,
		      struct rbx_cq **cq, char *error);
void rbx_nic_cq_destroy(struct rbx_cq *base);
/* All queues of a node that has lost its power; their event descriptors are closed already. */
void rbx_nic_cqs_vanish(struct rbx_nic_device *device);
int rbx_nic_cq_poll(struct rbx_cq *base, struct rbx_wc *wcs, int max);
int rbx_nic_cq_arm(struct rbx_cq *base);
void rbx_nic_cq_consume(struct rbx_cq *base);

/* An entry has arrived: of a work request or a receive of that number. */
void rbx_nic_cq_add(struct rbx_cq *base, const struct rbx_wc *wc,
		    struct rbx_nic_qp *qp, uint32_t number, bool is_recv);
/* Takes all entries of a queue pair out. */
void rbx_nic_cq_forget(struct rbx_cq *base, const struct rbx_nic_qp *qp);

#endif
