/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - what the files of an endpoint share, see README.md.
 *
 * Locks. post_lock of an endpoint: one thread posts. lock of a queue: an endpoint is freed
 * when who polls has let go of it. Neither is taken under the other.
 */
#ifndef RBX_LIB_ENDPOINT_ENDPOINT_H
#define RBX_LIB_ENDPOINT_ENDPOINT_H

#include <pthread.h>

#include "core/harvest.h"
#include "core/limits.h"
#include "include/rdmabox/endpoint.h"
#include "lib/context.h"

/* What a completion will say. Written before the post, read after its completion. */
struct rbx_endpoint_slot {
	void *user;
	bool is_silent;
};

/* What is posted and has not completed, in one direction. */
struct rbx_endpoint_ring {
	struct rbx_endpoint_slot *slots; /* of number & mask: so numbers may wrap */
	uint32_t mask;
	uint32_t depth_count; /* that may be posted at a time */
	uint32_t posted_count; /* modulo 2^32; with post_lock */
	uint32_t completed_count; /* the same; atomic, by who polls */
};

struct rbx_endpoint {
	struct rbx_queue *queue;
	struct rbx_protection_domain *domain; /* NULL: the context's */
	struct rbx_qp *qp;
	void (*completed)(const struct rbx_completion *completion); /* or NULL */
	void *user;
	struct rbx_shared_receives *shared; /* NULL: its receives are its own */
	struct rbx_paced_endpoint *paced; /* NULL: operations are posted as they come */
	uint32_t segments_max, receive_segments_max;
	uint32_t inline_bytes_max;
	uint32_t windows_count; /* atomic */
	uint32_t queue_room_count; /* that it has taken of the queue */
	pthread_mutex_t post_lock;
	struct rbx_endpoint_ring sends, receives;
};

struct rbx_queue {
	struct rbx_context *ctx;
	struct rbx_cq *cq;
	pthread_mutex_t lock; /* held while it is polled */
	bool is_armed; /* whoever polls */
	uint32_t room_count; /* atomic: that no endpoint has taken */
	uint32_t endpoints_count; /* atomic */
	struct rbx_queue *next; /* of the context's, with its queues_lock */
	/* Of endpoints that are paced, with the lock: what has ended and was not
	 * polled. */
	struct rbx_fragment *done_first, *done_last;
	struct rbx_harvest harvest; /* of the poll under way; else zero */
};

struct rbx_endpoint_listener {
	struct rbx_context *ctx;
	struct rbx_listener *listener;
};

/* An id of a work request: its number in its ring, and which ring that is. */
#define RBX_ENDPOINT_RECEIVE_ID (1ull << 32)

/*
 * Takes the options, with their defaults, and makes an endpoint that has no queue pair
 * yet; *init is what that is to be, and gives it to the endpoint when it is made. 0,
 * -EINVAL, -ENOSPC, -ENOMEM.
 */
int rbx_endpoint_make(struct rbx_context *ctx,
		      const struct rbx_endpoint_options *wanted,
		      struct rbx_endpoint_options *options,
		      struct rbx_qp_init *init, struct rbx_endpoint **endpoint);
/* One without a queue pair. */
void rbx_endpoint_free(struct rbx_endpoint *endpoint);

/* For so many more in a ring: 0 or -EAGAIN. */
int rbx_endpoint_room(const struct rbx_endpoint_ring *ring, unsigned int count);
/* The number of the next that is posted. */
uint32_t rbx_endpoint_slot_take(struct rbx_endpoint_ring *ring, void *user,
				bool is_silent);

/* Room in a queue, for its completions. 0 or -ENOSPC. */
int rbx_queue_take(struct rbx_queue *queue, uint32_t count);
void rbx_queue_give(struct rbx_queue *queue, uint32_t count);

/* Posts a chain whose slots are taken; count: of it. With post_lock. 0 or -EIO. */
int rbx_endpoint_chain_post(struct rbx_endpoint *endpoint, struct rbx_wr *first,
			    uint32_t count);

/* One that was checked; segments_max entries. */
void rbx_operation_translate(const struct rbx_endpoint *endpoint,
			     const struct rbx_operation *operation,
			     struct rbx_sge *sges, struct rbx_wr *wr);

/* ---- Receives -------------------------------------------------------------------*/

/* What one chain of them is translated into. */
struct rbx_receive_chain {
	uint32_t count, sges_count;
	struct rbx_recv_wr wrs[RBX_CHAIN_MAX];
	struct rbx_sge sges[RBX_CHAIN_MAX * RBX_SGE_MAX];
};

/* All of a call, before the first is posted. depth_count: that may be posted at a time. */
int rbx_receives_check(const struct rbx_device_caps *caps,
		       const struct rbx_receive *receives, unsigned int count,
		       uint32_t segments_max, uint32_t depth_count);
/* At most RBX_CHAIN_MAX, to an empty chain; checked before. */
void rbx_receive_chain_add(struct rbx_receive_chain *chain,
			   const struct rbx_device_caps *caps,
			   const struct rbx_receive *receive, uint64_t wr_id);

/* An endpoint with them in its options, from its making until it is freed: *init is
 * completed. 0 or -EINVAL. */
int rbx_shared_receives_use(struct rbx_shared_receives *shared,
			    const struct rbx_endpoint_options *options,
			    struct rbx_qp_init *init);
void rbx_shared_receives_leave(struct rbx_shared_receives *shared);
/* One has completed: what its user was. */
void *rbx_shared_receives_complete(struct rbx_shared_receives *shared,
				   uint32_t number);

/* What is left of timeout_ms, which began at begin_ns, as poll() wants it: -1 for ever. */
int rbx_endpoint_left_ms(int timeout_ms, uint64_t begin_ns);

#endif
