/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_receives.h - shared receive queues, from which several qps take.
 */
#ifndef SOFT_SHARED_RECEIVES_H
#define SOFT_SHARED_RECEIVES_H

#include "device.h"

struct soft_cq;
struct soft_qp;

/* A place for a receive: free, posted, or taken by a qp until its completion is polled. */
struct soft_shared_receive {
	uint64_t wr_id;
	uint64_t length_bytes;
	uint32_t next; /* in the same list; SOFT_SRQ_NONE: none */
};

#define SOFT_SRQ_NONE UINT32_MAX

struct soft_srq {
	struct rbx_srq srq;
	struct soft_device *device;
	struct soft_cq *cq; /* of all qps that take from it */
	const struct soft_domain *domain; /* the same */
	uint32_t max_sge;
	struct rbx_raised_event low;
	LIST_ENTRY(soft_srq) entry; /* in the list of the device */

	pthread_mutex_t lock; /* guards all below */
	uint32_t limit_count; /* an event if fewer are posted; 0: no event */
	uint32_t free_first;
	uint32_t posted_first, posted_last, posted_count;
	uint32_t reserved_count; /* of those posted: promised to a peer */
	struct soft_shared_receive *places;
	struct iovec *pieces; /* max_sge of each place */
	TAILQ_HEAD(, soft_qp) waiting; /* whose peers wait for receives */
};

static inline struct soft_srq *soft_srq_of(struct rbx_srq *base)
{
	return (struct soft_srq *)base;
}

int soft_create_srq(struct rbx_device *device, const struct rbx_srq_init *init,
		    struct rbx_srq **srq, char *error);
void soft_destroy_srq(struct rbx_srq *srq);
int soft_post_srq_recv(struct rbx_srq *srq, struct rbx_recv_wr *first,
		       struct rbx_recv_wr **bad);
void soft_set_srq_limit(struct rbx_srq *srq, uint32_t limit_count);

/* Serves peers that wait, after a qp left and its receives came back. */
void soft_srqs_serve(struct soft_device *device);

/* A completion was polled: its place is free. */
void soft_srq_free(struct soft_srq *srq, uint32_t place);
/* The completion will never be polled: the receive is posted once more, as the oldest. */
void soft_srq_return(struct soft_srq *srq, uint32_t place);

/* For a qp with an srq, whose lock is held. */

/* The peer asks for receives up to this message. Returns NULL, or what is wrong with that. */
const char *soft_srq_ask(struct soft_qp *qp, uint32_t wanted);
/* A message takes a receive that the peer was promised. */
void soft_srq_take(struct soft_qp *qp);
/* Ends a qp whose peer keeps receives that others have waited for too long. `counts_ns` have
 * passed since the last call. */
void soft_srq_check_promise(struct soft_qp *qp, uint64_t now_ns, uint64_t counts_ns);
/* The qp has ended: the receives that it was promised go to others. */
void soft_srq_leave(struct soft_qp *qp);

#endif
