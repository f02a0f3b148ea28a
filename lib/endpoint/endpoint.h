/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - what the files of an endpoint share, see README.md.
 *
 * Locks. post_lock of an endpoint: held to post, one thread at a time. lock of a queue:
 * held to poll; an endpoint is freed only after the thread that polls has let go of it.
 * Neither is taken under the other.
 */
#ifndef RBX_LIB_ENDPOINT_ENDPOINT_H
#define RBX_LIB_ENDPOINT_ENDPOINT_H

#include <pthread.h>

#include "core/harvest.h"
#include "core/limits.h"
#include "include/rdmabox/endpoint.h"
#include "lib/context.h"

/* What a completion will report. Written before the post, read after the completion. */
struct rbx_endpoint_slot {
	void *user;
	bool is_silent;
	bool is_of_exchange; /* the user is the exchanger's */
};

/* Work requests of one direction that were posted and have not completed. */
struct rbx_endpoint_ring {
	struct rbx_endpoint_slot *slots; /* at number & mask, so numbers may wrap */
	uint32_t mask;
	uint32_t depth_count; /* the most that may be posted at a time */
	uint32_t posted_count; /* modulo 2^32; with post_lock */
	uint32_t completed_count; /* the same; atomic, written by the thread that polls */
};

struct rbx_endpoint {
	struct rbx_queue *queue;
	struct rbx_protection_domain *domain; /* NULL: the context's */
	struct rbx_qp *qp;
	void (*completed)(const struct rbx_completion *completion); /* or NULL */
	void *user;
	struct rbx_shared_receives *shared; /* NULL: its receives are its own */
	struct rbx_paced_endpoint *paced; /* NULL: operations are posted at once */
	struct rbx_exchanger *exchanger; /* NULL: its messages are the program's */
	uint32_t segments_max, receive_segments_max;
	uint32_t inline_bytes_max;
	uint32_t windows_count; /* atomic */
	uint32_t queue_room_count; /* the room in the queue that it has taken */
	pthread_mutex_t post_lock;
	struct rbx_endpoint_ring sends, receives;
};

struct rbx_queue {
	struct rbx_context *ctx;
	struct rbx_cq *cq;
	pthread_mutex_t lock; /* held while it is polled */
	bool is_armed; /* used by the thread that polls */
	uint32_t room_count; /* atomic: room that no endpoint has taken */
	uint32_t endpoints_count; /* atomic */
	struct rbx_queue *next; /* in the context's list, guarded by queues_lock */
	/* For paced endpoints, guarded by the lock: operations that have ended and were
	 * not polled. */
	struct rbx_fragment *done_first, *done_last;
	struct rbx_harvest harvest; /* of the poll that is running; else zero */
	uint32_t exchangers_count; /* atomic */
	pthread_mutex_t exchanges_lock; /* see exchange.h; guards the list */
	struct rbx_exchanger *exchangers;
};

struct rbx_endpoint_listener {
	struct rbx_context *ctx;
	struct rbx_listener *listener;
};

/* The id of a work request is its number in its ring, and this bit if it is a receive. */
#define RBX_ENDPOINT_RECEIVE_ID (1ull << 32)

/*
 * Takes the options, with their defaults, and makes an endpoint without a queue pair.
 * *init describes the queue pair to make; its callback gives the queue pair to the
 * endpoint. 0, -EINVAL, -ENOSPC, -ENOMEM.
 */
int rbx_endpoint_make(struct rbx_context *ctx,
		      const struct rbx_endpoint_options *wanted,
		      struct rbx_endpoint_options *options,
		      struct rbx_qp_init *init, struct rbx_endpoint **endpoint);
/* Frees an endpoint that has no queue pair. */
void rbx_endpoint_free(struct rbx_endpoint *endpoint);

/* 0 if a ring has room for `count` more, else -EAGAIN. */
int rbx_endpoint_room(const struct rbx_endpoint_ring *ring, unsigned int count);
/* Takes the next slot of a ring, and returns its number. */
uint32_t rbx_endpoint_slot_take(struct rbx_endpoint_ring *ring, void *user,
				bool is_silent);

/* Takes room in a queue for completions. 0 or -ENOSPC. */
int rbx_queue_take(struct rbx_queue *queue, uint32_t count);
void rbx_queue_give(struct rbx_queue *queue, uint32_t count);

/* A flag of operations that the exchanger of the endpoint posts (exchange.h). */
#define RBX_OPERATION_OF_EXCHANGE (1u << 31)
/* Posts what was checked. *taken_count: how many the device has taken, and completes. 0;
 * -EAGAIN: no room, and none is taken; -EIO. */
int rbx_endpoint_post_checked(struct rbx_endpoint *endpoint,
			      const struct rbx_operation *operations,
			      uint32_t count, uint32_t *taken_count);
int rbx_endpoint_receive_checked(struct rbx_endpoint *endpoint,
				 const struct rbx_receive *receives,
				 uint32_t count);
/* Ends the connection. */
void rbx_endpoint_cut(struct rbx_endpoint *endpoint);

/* Posts a chain of `count` whose slots are taken. With post_lock. 0 or -EIO. */
int rbx_endpoint_chain_post(struct rbx_endpoint *endpoint, struct rbx_wr *first,
			    uint32_t count);

/* Translates an operation that was checked; sges has segments_max entries. */
void rbx_operation_translate(const struct rbx_endpoint *endpoint,
			     const struct rbx_operation *operation,
			     struct rbx_sge *sges, struct rbx_wr *wr);

/* ---- Receives -------------------------------------------------------------------*/

/* One chain of receives, translated. */
struct rbx_receive_chain {
	uint32_t count, sges_count;
	struct rbx_recv_wr wrs[RBX_CHAIN_MAX];
	struct rbx_sge sges[RBX_CHAIN_MAX * RBX_SGE_MAX];
};

/* Checks all receives of a call, before the first is posted. depth_count: the most that
 * may be posted at a time. */
int rbx_receives_check(const struct rbx_device_caps *caps,
		       const struct rbx_receive *receives, unsigned int count,
		       uint32_t segments_max, uint32_t depth_count);
/* Adds a receive to a chain that has less than RBX_CHAIN_MAX. It was checked before. */
void rbx_receive_chain_add(struct rbx_receive_chain *chain,
			   const struct rbx_device_caps *caps,
			   const struct rbx_receive *receive, uint64_t wr_id);

/* Adds an endpoint whose options name the shared receives; it leaves when it is freed.
 * Completes *init. 0 or -EINVAL. */
int rbx_shared_receives_use(struct rbx_shared_receives *shared,
			    const struct rbx_endpoint_options *options,
			    struct rbx_qp_init *init);
void rbx_shared_receives_leave(struct rbx_shared_receives *shared);
/* Called when a shared receive has completed: frees its slot and returns its user
 * pointer. */
void *rbx_shared_receives_complete(struct rbx_shared_receives *shared,
				   uint32_t number);

/* The time left of timeout_ms since begin_ns, as poll() wants it: -1 means for ever. */
int rbx_endpoint_left_ms(int timeout_ms, uint64_t begin_ns);

#endif
