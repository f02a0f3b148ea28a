/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * receive_queue.h - buffers that wait for SENDs of the peer.
 */
#ifndef SOFT_RECEIVE_QUEUE_H
#define SOFT_RECEIVE_QUEUE_H

#include "../fabric.h"

int soft_post_recv(struct rbx_qp *qp, struct rbx_recv_wr *first,
		   struct rbx_recv_wr **bad);

#endif
