/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_device.h - what the device of endpoints can do, and what it tells.
 */
#ifndef RDMABOX_ENDPOINT_DEVICE_H
#define RDMABOX_ENDPOINT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_endpoint;
struct rbx_shared_receives;

struct rbx_endpoint_limits {
	size_t size_bytes; /* of this struct, set by the caller */
	uint32_t send_depth_max; /* operations of one endpoint at a time */
	uint32_t receive_depth_max; /* receives of one endpoint at a time */
	uint32_t segments_max; /* of an operation */
	uint32_t receive_segments_max; /* of a receive */
	uint32_t message_bytes_max; /* of an operation: all its segments */
	uint32_t queue_depth_max; /* completions of a queue */
	/* Bytes of private data to a program that listens. What arrives may be longer by
	 * zeros: up to this length. So for the two below. */
	uint32_t connect_data_max;
	uint32_t accept_data_max; /* with rbx_endpoint_accept() */
	uint32_t reject_data_max; /* with rbx_endpoint_reject() */
	uint8_t has_immediate; /* 0 or 1, as all that follow: RBX_OPERATION_IMMEDIATE */
	uint8_t has_invalidate; /* RBX_OPERATION_INVALIDATE */
	uint8_t has_atomics; /* COMPARE_SWAP and FETCH_ADD */
	uint8_t needs_regions; /* segments have to name theirs */
	uint32_t shared_depth_max; /* of shared receives; 0: there are none */
	uint32_t shared_segments_max; /* of a shared receive */
	uint8_t has_window_invalidate; /* RBX_REGION_INVALIDATE of a memory window */
	uint8_t has_dmabuf; /* rbx_region_export_dmabuf() */
	uint8_t has_service_level; /* of the packets of an endpoint */
	uint32_t completion_vectors; /* of rbx_queue_create_on(), at least 1 */
};

/**
 * rbx_endpoint_limits() - tells what the device of a context can do.
 * @limits: its size_bytes is set before
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the size is 0
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_endpoint_limits(struct rbx_context *ctx,
			struct rbx_endpoint_limits *limits);

/* ---- Events --------------------------------------------------------------------------*/

enum rbx_endpoint_event_kind {
	/* The device is of no use any more: it has failed, or was taken away. All that
	 * was connected over it has ended. Close what is open, and the context: the kernel
	 * may wait for that with the removal of the device. */
	RBX_ENDPOINT_DEVICE_FAILED,
	/* The cable, or what is at its other end. Connections go on if it comes back
	 * soon; else what is posted on them fails. */
	RBX_ENDPOINT_PORT_DOWN,
	RBX_ENDPOINT_PORT_UP, /* it is back */
	/* The connection of an endpoint with tells_end in its options is over. */
	RBX_ENDPOINT_ENDED,
	/* Fewer shared receives are posted than rbx_shared_receives_tell_low() said. */
	RBX_ENDPOINT_RECEIVES_LOW,
};

struct rbx_endpoint_event {
	enum rbx_endpoint_event_kind kind; /* what has happened */
	struct rbx_endpoint *endpoint; /* or NULL */
	struct rbx_shared_receives *receives; /* or NULL */
};

/**
 * rbx_endpoint_next_event() - takes what the device of a context tells, the oldest first.
 * @event: receives it
 * @timeout_ms: waits this long; 0: not at all, -1: for ever
 *
 * An event that nobody takes is kept, and not told twice. No call that begins after an
 * endpoint was closed names it. A call that another thread is in meanwhile may have taken
 * its event before, and still names it: so the thread that takes events closes, or both
 * hold a lock of the program. The verbs fabric tells of the device, its port and its
 * endpoints, the soft fabric of endpoints.
 *
 * Returns 0, or:
 *	-EAGAIN: there is no event
 *	-EINVAL: an argument is NULL
 *	-EDEADLK: called in a callback, with a timeout that is not 0
 * Context: one thread at a time; blocks for @timeout_ms at most.
 */
int rbx_endpoint_next_event(struct rbx_context *ctx, struct rbx_endpoint_event *event,
			    int timeout_ms);

/**
 * rbx_endpoint_event_fd() - gives a descriptor for a loop of the program.
 *
 * It is readable while there is an event. It must not be read or closed.
 *
 * Returns the descriptor; never fails.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_close().
 */
int rbx_endpoint_event_fd(const struct rbx_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
