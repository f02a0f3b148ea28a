/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * receive_queue.h - buffers that wait for SENDs of the peer.
 */
#ifndef SOFT_RECEIVE_QUEUE_H
#define SOFT_RECEIVE_QUEUE_H

#include <sys/uio.h>

#include "../fabric.h"

struct soft_domain;
struct soft_keys;

int soft_post_recv(struct rbx_qp *qp, struct rbx_recv_wr *first,
		   struct rbx_recv_wr **bad);

/* Returns 0, the memory of a receive and its length; or -EFAULT: a key does not cover its entry. */
int soft_receive_pieces(struct soft_keys *keys, const struct soft_domain *domain,
			const struct rbx_recv_wr *wr, struct iovec *piece,
			uint64_t *length_bytes);

#endif
