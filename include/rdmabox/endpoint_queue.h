/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_queue.h - where the completions of endpoints come out.
 */
#ifndef RDMABOX_ENDPOINT_QUEUE_H
#define RDMABOX_ENDPOINT_QUEUE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_endpoint;
struct rbx_queue; /* where completions come out */

enum rbx_completion_kind {
	RBX_COMPLETION_POSTED, /* an operation of ours */
	RBX_COMPLETION_RECEIVED, /* a SEND has filled a receive */
	RBX_COMPLETION_WRITTEN, /* a WRITE with an immediate has come: the receive is
				   used up, and its memory untouched */
	RBX_COMPLETION_OFFERED, /* an offer of ours has ended (exchange.h) */
};

struct rbx_completion {
	struct rbx_endpoint *endpoint; /* that posted, or to which something has come */
	void *user; /* of the operation or the receive */
	int status; /* 0 or -errno, see endpoint.h */
	/* With status 0; else only whether it is POSTED means something. */
	enum rbx_completion_kind kind;
	/* Of what has come; of a conditional operation or an offer: what was written or read. */
	uint32_t length_bytes;
	uint8_t has_immediate; /* 0 or 1 */
	uint8_t has_invalidated; /* 1: the peer has ended a key of ours */
	uint32_t immediate; /* that came along */
	uint32_t invalidated_key; /* the key that has ended */
};

/**
 * rbx_queue_create() - makes a queue.
 * @depth: completions that it has room for; each endpoint takes its two depths of it
 * @queue: receives the queue
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the device has no queue of this depth
 *	-ENOMEM: memory or the room of the device ran out
 *	-EMFILE: the process has no file descriptors left
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_queue_destroy().
 */
int rbx_queue_create(struct rbx_context *ctx, uint32_t depth,
		     struct rbx_queue **queue);

/**
 * rbx_queue_create_on() - makes a queue whose completions interrupt a given processor.
 * @vector: below completion_vectors of the limits
 *
 * For a program that serves with several threads, each on a processor of its own.
 * rbx_queue_create() takes the vectors in turn.
 *
 * Returns 0, or:
 *	-EINVAL: the device has no such vector
 *	-E...: as rbx_queue_create()
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_queue_destroy().
 */
int rbx_queue_create_on(struct rbx_context *ctx, uint32_t depth, uint32_t vector,
			struct rbx_queue **queue);

/**
 * rbx_queue_destroy() - frees a queue.
 * @queue: NULL: nothing is done
 *
 * Returns 0, or:
 *	-EBUSY: it has endpoints or shared receives
 *	-EINVAL: called in a child of the process that made it
 * Context: any thread, callbacks too; blocks for a system call.
 */
int rbx_queue_destroy(struct rbx_queue *queue);

/**
 * rbx_queue_poll() - takes completions.
 * @completions: receives at most @max of them
 * @timeout_ms: waits this long for the first; 0: not at all, -1: for ever
 *
 * Returns how many completions there are, or:
 *	-EINVAL: an argument is NULL, or @max is 0
 *	-EDEADLK: it would have to wait, in a callback
 *	-EIO: the device cannot tell of completions
 * Context: one thread at a time polls and arms a queue; blocks for @timeout_ms at most.
 */
int rbx_queue_poll(struct rbx_queue *queue, struct rbx_completion *completions,
		   unsigned int max, int timeout_ms);

/**
 * rbx_queue_run() - takes completions, and tells each to completed() of its endpoint.
 * @timeout_ms: as rbx_queue_poll()
 *
 * Completions of an endpoint without completed() are dropped. In the callback endpoints
 * may be posted on and disconnected; a call that waits is refused there (-EDEADLK).
 *
 * Returns how many completions there were, or:
 *	-E...: as rbx_queue_poll()
 * Context: one thread at a time polls and arms a queue; blocks for @timeout_ms at most.
 */
int rbx_queue_run(struct rbx_queue *queue, int timeout_ms);

/**
 * rbx_queue_fd() - gives a descriptor for a loop of the program.
 *
 * It is readable if something has completed since rbx_queue_arm(). It must not be read or
 * closed.
 *
 * Returns the descriptor; never fails.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_queue_destroy().
 */
int rbx_queue_fd(const struct rbx_queue *queue);

/**
 * rbx_queue_arm() - has the descriptor tell of the next completion, once.
 *
 * Nothing tells of what completed before. So poll once more, and wait for the descriptor if
 * there was nothing.
 *
 * Returns 0, or:
 *	-EIO: the device cannot tell of completions
 *	-EINVAL: called in a child of the process that made it
 * Context: one thread at a time polls and arms a queue; never blocks.
 */
int rbx_queue_arm(struct rbx_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
