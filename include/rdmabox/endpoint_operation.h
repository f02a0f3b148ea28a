/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_operation.h - what goes over an endpoint: operations, and receives for what comes.
 *
 * The segments of operations and receives (request.h) have a region if needs_regions of
 * the limits says so, but for what is inline.
 */
#ifndef RDMABOX_ENDPOINT_OPERATION_H
#define RDMABOX_ENDPOINT_OPERATION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_endpoint;
struct rbx_protection_domain;
struct rbx_queue;
struct rbx_segment; /* of request.h */
struct rbx_shared_receives; /* of many endpoints */

enum rbx_operation_kind {
	RBX_OPERATION_SEND, /* into a receive of the other side */
	RBX_OPERATION_WRITE, /* into its memory */
	RBX_OPERATION_READ, /* out of its memory */
	/* On 8 bytes of its memory, at a multiple of 8, in the byte order of its host.
	 * It brings what they held before. Atomic to other atomics of that device. If they
	 * are compare_add they become swap. */
	RBX_OPERATION_COMPARE_SWAP,
	/* The same, and compare_add is added. */
	RBX_OPERATION_FETCH_ADD,
};

enum rbx_operation_flags {
	RBX_OPERATION_SILENT = 1, /* no completion, unless it fails */
	/* SEND, WRITE: the post copies the data, and the memory can be used again when it
	 * returns. */
	RBX_OPERATION_INLINE = 2,
	/* It begins when all READs and atomics before it have ended. */
	RBX_OPERATION_FENCE = 4,
	/* SEND, WRITE: `immediate` comes along, and takes a receive. */
	RBX_OPERATION_IMMEDIATE = 8,
	/* SEND: the key invalidate_key of the other side ends before its receive
	 * completes. */
	RBX_OPERATION_INVALIDATE = 16,
	/* Of an endpoint that is paced: before what has not been posted to the device. */
	RBX_OPERATION_URGENT = 32,
};

/* The post copies an operation and its list of segments; both are the program's again when
 * it returns. The memory that the segments name is borrowed until the operation has
 * completed; that of a silent one until a later one of its endpoint has. */
struct rbx_operation {
	enum rbx_operation_kind kind; /* what is to be done */
	uint32_t flags; /* of enum rbx_operation_flags */
	const struct rbx_segment *segments; /* the memory here */
	uint32_t segments_count; /* at most as many as the options say */
	uint32_t key; /* all but SEND: of the memory there */
	uint64_t address; /* all but SEND: of the memory there */
	uint32_t immediate; /* with RBX_OPERATION_IMMEDIATE */
	uint32_t invalidate_key; /* with RBX_OPERATION_INVALIDATE */
	uint64_t compare_add; /* of atomics: what is compared, or added */
	uint64_t swap; /* of COMPARE_SWAP: the new value */
	void *user; /* of its completion */
};

/**
 * rbx_endpoint_post() - posts operations, in order, with one doorbell for each 32.
 * @operations: copied; the memory of their segments is borrowed until they complete
 *
 * All of them or none.
 *
 * Returns 0, or:
 *	-EINVAL: an operation is malformed, or longer than the endpoint carries;
 *		rbx_last_error() says what is wrong
 *	-EFAULT: a segment is not in its region
 *	-EOPNOTSUPP: the device has no such operation
 *	-EAGAIN: there is no room for as many: poll first. For more than the depth there
 *		never is
 *	-EIO: the device has failed, and the connection is over. The operations that it
 *		took complete
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_endpoint_post(struct rbx_endpoint *endpoint,
		      const struct rbx_operation *operations,
		      unsigned int count);

/* The call copies a receive and its list of segments. The memory is borrowed until the
 * receive has completed. */
struct rbx_receive {
	const struct rbx_segment *segments; /* what the message fills, in order */
	uint32_t segments_count; /* 0: for messages of no bytes */
	void *user; /* of its completion */
};

/**
 * rbx_endpoint_receive() - posts receives.
 * @receives: copied; the memory of their segments is borrowed until they complete
 *
 * All of them or none.
 *
 * Returns 0, or:
 *	-EINVAL: a receive is malformed, or the endpoint has shared receives
 *	-EFAULT: a segment is not in its region
 *	-EAGAIN: there is no room for as many: poll first. For more than the depth there
 *		never is
 *	-EIO: the device has failed, and the connection is over. The receives that it took
 *		complete
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_endpoint_receive(struct rbx_endpoint *endpoint,
			 const struct rbx_receive *receives,
			 unsigned int count);

/* ---- Shared receives -----------------------------------------------------------------*/

struct rbx_shared_receives_options {
	size_t size_bytes; /* of this struct, set by the caller */
	/* Of its endpoints; the depth is taken of its room. Default: none, it must be set. */
	struct rbx_queue *queue;
	/* Of its endpoints. Default: NULL (that of the context). */
	struct rbx_protection_domain *domain;
	uint32_t depth; /* receives at a time, until they are polled. Default: 64. */
	uint32_t segments; /* of a receive at most. Default: 1. */
	void *user; /* for rbx_shared_receives_user(). Default: NULL. */
};

/**
 * rbx_shared_receives_create() - makes receives that many endpoints take from.
 * @options: borrowed during the call
 * @receives: receives them
 *
 * A message on any of the endpoints takes the oldest receive, and its completion names the
 * endpoint. So a program with many endpoints, of which few are busy, needs fewer buffers.
 * If there is none a message waits, as for a receive of its endpoint. Such an endpoint has
 * nothing posted that would tell of its end: see tells_end. When one ends the receives stay
 * for the others; only a receive that a message had taken in part completes, with
 * -ECANCELED. (Soft-RoCE keeps that receive until the destroy.)
 *
 * On the soft fabric a message is promised a receive before it is sent, which takes a round
 * trip for the first of a batch. If other peers have waited for a second, a peer that has
 * not used all that it was promised may be cut off, if its connection moves less than about
 * 1 MiB a second, both directions together.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or an option is out of range
 *	-EOPNOTSUPP: the device has no shared receives
 *	-ENOSPC: the queue has no room for their completions
 *	-ENOMEM: memory or the room of the device ran out
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_shared_receives_destroy().
 */
int rbx_shared_receives_create(struct rbx_context *ctx,
			       const struct rbx_shared_receives_options *options,
			       struct rbx_shared_receives **receives);

/**
 * rbx_shared_receives_destroy() - frees shared receives.
 * @receives: NULL: nothing is done
 *
 * What is posted is the program's again.
 *
 * Returns 0, or:
 *	-EBUSY: endpoints use them
 *	-EINVAL: called in a child of the process that made them
 * Context: any thread, callbacks too; blocks for a system call.
 */
int rbx_shared_receives_destroy(struct rbx_shared_receives *receives);

/**
 * rbx_shared_receives_post() - posts receives.
 * @list: copied; the memory of their segments is borrowed until they complete
 *
 * All of them or none. A receive keeps its place until its completion is polled.
 *
 * Returns 0, or:
 *	-EINVAL: a receive is malformed
 *	-EFAULT: a segment is not in its region
 *	-EAGAIN: there is no room for as many: poll first. For more than the depth there
 *		never is
 *	-EIO: the device has failed
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_shared_receives_post(struct rbx_shared_receives *receives,
			     const struct rbx_receive *list, unsigned int count);

/**
 * rbx_shared_receives_tell_low() - has an event told when few receives are left.
 * @count: RBX_ENDPOINT_RECEIVES_LOW is told, once, when fewer than this are posted;
 *	0: not any more
 *
 * Returns 0, or:
 *	-EINVAL: the count is more than the depth
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_shared_receives_tell_low(struct rbx_shared_receives *receives,
				 uint32_t count);

/**
 * rbx_shared_receives_user() - gives the user of the options.
 *
 * Returns the pointer that the program chose.
 * Context: any thread, callbacks too; never blocks.
 */
void *rbx_shared_receives_user(const struct rbx_shared_receives *receives);

#ifdef __cplusplus
}
#endif

#endif
