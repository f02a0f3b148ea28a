/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post_chain.h - translates a chain of the core into a list of the kernel's work
 * requests, and posts it with one call. Only the last one is signaled, and those that ask
 * for it. lib/post_chain.h is its counterpart.
 *
 * A work request and its struct ib_cqe have the same slot in the ring. So the place of
 * the cqe gives the number of the work request.
 */
#ifndef RBX_KERNEL_POST_CHAIN_H
#define RBX_KERNEL_POST_CHAIN_H

#include <linux/preempt.h>
#include <rdma/ib_verbs.h>

#include "core/drive.h"

static_assert(sizeof(struct rbx_sge) == sizeof(struct ib_sge) &&
		      offsetof(struct rbx_sge, addr) ==
			      offsetof(struct ib_sge, addr) &&
		      offsetof(struct rbx_sge, length_bytes) ==
			      offsetof(struct ib_sge, length) &&
		      offsetof(struct rbx_sge, lkey) ==
			      offsetof(struct ib_sge, lkey),
	      "scatter lists are handed on as they are");

struct rbx_posts;

/* A slot of a send ring: it leads from a completion to the queue pair. */
struct rbx_posted {
	struct ib_cqe cqe;
	struct rbx_posts *posts;
};

/* The slots of a queue pair's ring, RBX_SEND_DEPTH at most. */
struct rbx_posts {
	struct rbx_posted posted[RBX_SEND_DEPTH];
	struct ib_rdma_wr wrs[RBX_CHAIN_MAX]; /* used by the combiner */
};

static inline void rbx_posts_init(struct rbx_posts *posts,
				  void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	uint32_t i;

	for (i = 0; i < RBX_SEND_DEPTH; i++)
		posts->posted[i] = (struct rbx_posted){ { .done = done }, posts };
}

static inline struct rbx_posted *rbx_posted_of(const struct ib_wc *wc)
{
	return container_of(wc->wr_cqe, struct rbx_posted, cqe);
}

/* Its number in the ring. Called by the thread that polls. */
static inline uint32_t rbx_posted_number(const struct rbx_posted *posted,
					 const struct rbx_send_ring *ring)
{
	uint32_t slot = (uint32_t)(posted - posted->posts->posted);

	return ring->completed_count +
	       (slot - ring->completed_count) % RBX_SEND_DEPTH;
}

static inline struct ib_send_wr *rbx_post_plain(struct rbx_work *work,
						struct ib_rdma_wr *wr)
{
	wr->wr = (struct ib_send_wr){
		.sg_list = (struct ib_sge *)work->sges,
		.num_sge = (int)work->sge_count,
		.opcode = work->direction == RBX_DIRECTION_READ ?
				  IB_WR_RDMA_READ :
				  IB_WR_RDMA_WRITE,
	};
	wr->remote_addr = work->remote_addr;
	wr->rkey = work->rkey;
	return &wr->wr;
}

/* ordered: gives the work request of an RBX_DIRECTION_ORDERED one; NULL: there are none.
 * It is inlined, as each caller passes it by its name. Returns how many work requests,
 * the last of the chain, the device did not take. Called by the combiner. */
static inline uint32_t
rbx_post_chain(struct rbx_channel *channel, const struct rbx_chain *chain,
	       struct ib_qp *qp, struct rbx_posts *posts,
	       struct ib_send_wr *(*ordered)(struct rbx_work *work))
{
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];
	struct ib_send_wr *first, **link = &first, *wr = NULL;
	const struct ib_send_wr *bad;
	uint32_t i, missed_count = 0;

	for (i = 0; i < chain->work_count; i++) {
		uint32_t number = chain->first_number + i;
		struct rbx_work *work = rbx_send_ring_slot(ring, number);

		wr = ordered && work->direction == RBX_DIRECTION_ORDERED ?
			     ordered(work) :
			     rbx_post_plain(work, &posts->wrs[i]);
		wr->wr_cqe = &posts->posted[number % RBX_SEND_DEPTH].cqe;
		*link = wr;
		link = &wr->next;
	}
	*link = NULL;
	wr->send_flags |= IB_SEND_SIGNALED;
	bad = first;
	if (likely(!ib_post_send(qp, first, &bad)))
		return 0;
	for (; bad; bad = bad->next)
		missed_count++;
	return missed_count;
}

/*
 * The combiner is not preempted, as everything that others submit meanwhile waits for it.
 * The time is bounded (RBX_COMBINE_MAX). In kernels that are fully preemptible the locks
 * of a device sleep, so preemption cannot be disabled there.
 */
static inline void rbx_preemption_stop(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static inline void rbx_preemption_go_on(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

#endif
