/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - reads and writes, many at once, and how each ends.
 *
 * A request is the caller's memory. RDMAbox borrows it and its buffer from
 * submit until completion; neither may be touched in between. So a request that
 * is outstanding cannot be submitted again.
 *
 * Requests that are outstanding together have no order, as in verbs and NVMe.
 * A request submitted after another one has completed sees its effect. Of
 * overlapping outstanding writes each byte holds one or the other.
 */
#ifndef RDMABOX_REQUEST_H
#define RDMABOX_REQUEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_volume;
struct rbx_region; /* of region.h */

enum rbx_op {
	RBX_READ, /* from remote memory into the buffer */
	RBX_WRITE, /* from the buffer into remote memory */
};

enum rbx_request_flags {
	/* It starts after all earlier requests have completed that go to the same
	 * peer. */
	RBX_FENCE = 1,
	/* It gets a work request of its own. */
	RBX_NO_MERGE = 2,
	/* Somebody waits for it: it leaves before requests to the same peer that are not
	 * urgent, such as a page that is read in before pages that are written out. It
	 * does not pass a fence, and the others keep at least one work request in 17. */
	RBX_URGENT = 4,
	/* Once it was posted it ends with its connection, and is not sent again when the
	 * session is resumed. Nobody knows then whether it was carried out. It is not
	 * merged. For borrowed memory only: a volume refuses it. */
	RBX_NO_RESEND = 32,
};

/* A stretch of our memory. */
struct rbx_segment {
	const void *addr; /* what is received or read is written there */
	uint32_t length_bytes; /* at least 1 */
	const struct rbx_region *region; /* that holds it; NULL: none */
};

/* Segments of one request: a MiB of pages. */
#define RBX_SEGMENTS_MAX 256

struct rbx_request {
	uint8_t op; /* enum rbx_op */
	uint8_t flags; /* of enum rbx_request_flags */
	/*
	 * Out: how it ended.
	 *	0	it is done
	 *	-EIO	every replica is lost, or was lost and the page has not been
	 *		written whole since; the data is not what was written; the
	 *		device of this machine failed; or the volume has a name, and
	 *		another program has opened it or too few of its servers answer
	 *	-EFAULT	the buffer is no memory of the program, or not as long. No replica
	 *		is lost. A failed write may have changed the bytes that could be
	 *		read; the others keep their contents
	 *	-ENOSPC	first write with on_demand: no server will lend memory
	 *	-ETIMEDOUT	first write with on_demand: the servers lend nothing for
	 *		twice peer_timeout_ms
	 *	-ECANCELED	the volume was closed
	 * Of borrowed memory, without a volume, also:
	 *	-EHOSTUNREACH	its connection has broken, and the peer was given up
	 *	-ETIMEDOUT	the peer's device has not acknowledged, and it was given up
	 *	-EREMOTEIO	the device of the peer failed
	 *	-EACCES	the server took the memory back
	 * If the CPU copies, a bad buffer is a SIGSEGV, as in memcpy(): with checksums;
	 * with buffers=staging, and short buffers with auto; with a server on this host
	 * without an RDMA device; on the soft device for a read of which a part is below
	 * 16 KiB; on verbs for a write so short that it goes inline. A check would double
	 * the time that these take.
	 */
	int32_t status;
	/* At least 1. All requests of one submit are together at most requests_max
	 * fragments of fragment_bytes. */
	uint32_t length_bytes;
	uint64_t offset; /* in the volume or in the borrowed memory, bytes */
	void *buf; /* where the data is, or goes; NULL: in segments */
	struct rbx_region *region; /* that holds buf; NULL: none */
	/*
	 * Called once at completion, from the thread that polls. It may submit, and must
	 * not block. The request is the caller's again: it may be freed or submitted
	 * again there. Requests that it submits are plugged: they leave together after the
	 * last callback of this poll. NULL: the request comes out of rbx_reap().
	 */
	void (*complete)(struct rbx_request *request);
	void *user; /* the caller's */
	/*
	 * In place of buf: a list of memory, together length_bytes, in the order of the
	 * bytes in the volume; NULL: none. List and memory are borrowed until
	 * completion. The list is only read, so several requests may share one. Segments
	 * of a write may overlap.
	 *
	 * The request is cut where segments meet, and its pieces are merged again on
	 * their way unless RBX_NO_MERGE forbids it. On a volume some bytes stay together:
	 * the 4 KiB page of a checksum, and 1/64 of fragment_bytes of what is written. If
	 * segments meet within such a place, the CPU copies it through memory of the
	 * volume; up to 512 such places of one volume may be outstanding. If buffers are
	 * registered, each segment is by itself, and one call has at most 2048 of them.
	 */
	const struct rbx_segment *segments;
	uint32_t segments_count; /* 1 to RBX_SEGMENTS_MAX */
	uint64_t reserved[6]; /* RDMAbox's own; zero before the first use */
};

/**
 * rbx_submit() - hands over requests on a volume.
 * @requests: borrows each until it completes
 * @count: 1 to 1024
 *
 * All or nothing: after an error nothing was sent, and all requests are the caller's.
 * The call never waits for a completion. If a buffer has to be registered for its
 * request (the option buffers), that takes the time of a system call.
 *
 * Returns 0, or:
 *	-EAGAIN: too many requests are outstanding: submit again from a completion, or
 *		after rbx_wait_room()
 *	-EINVAL: a request is out of range or malformed, or all together are more than may
 *		be outstanding; rbx_last_error() says what is wrong
 *	-EBUSY: a request is outstanding already, or twice in @requests
 *	-EOPNOTSUPP: a region of a request is a dmabuf
 *	-ENOMEM: with buffers=direct: a buffer cannot be pinned
 *	-EFAULT: with buffers=direct: a buffer is no memory of the program
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_submit(struct rbx_volume *volume, struct rbx_request *const requests[],
	       unsigned int count);

/**
 * rbx_wait_room() - waits after an -EAGAIN until it is worth trying again.
 * @timeout_ms: at most this long, and never longer than 1 ms; -1: 1 ms
 *
 * After 0 submit again; that may still return -EAGAIN.
 *
 * Returns 0 after a completion, or after 1 ms, or:
 *	-ETIMEDOUT: @timeout_ms is 0 or 1, and nothing completed
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened the context
 * Context: any thread; blocks for 1 ms at most.
 */
int rbx_wait_room(struct rbx_context *ctx, int timeout_ms);

/**
 * rbx_plug(), rbx_unplug() - hold back what this thread submits, and let it leave as one batch.
 *
 * Nested pairs count. The last unplug sends, and so does every call that waits:
 * rbx_read(), rbx_reap(), rbx_wait_room() and so on. An unplug without a plug does
 * nothing.
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_plug(struct rbx_context *ctx);
void rbx_unplug(struct rbx_context *ctx);

/* ---- Completion: by callback, by reaping, or from a loop of the program -----
 *
 * The paper has a handler of CQ events (figure 3). RDMAbox has three, for three
 * kinds of program:
 *	complete	of a request is called as soon as a completion is polled,
 *			on the thread of a poller
 *	rbx_reap()	waits for completed requests, one or many
 *	pollers = 0	makes the program the poller: rbx_event_fd() is readable in
 *			its event loop after an event of a completion queue, and
 *			rbx_poll() calls `complete` on the thread that calls it
 * A program that wants a completion queue of its own has it in rdmabox/verbs.h.
 */

/**
 * rbx_reap() - takes completed requests that have no callback.
 * @done: receives at most @max of them
 * @timeout_ms: waits this long for the first; 0: not at all, -1: for ever
 *
 * The requests of all threads of a context come out of one list: a thread may get those
 * of another.
 *
 * Returns how many requests it took, 0 after the timeout, or:
 *	-EINVAL: an argument is NULL, or @max is 0
 *	-EDEADLK: called in a callback, with a timeout that is not 0
 * Context: any thread, callbacks too if @timeout_ms is 0; blocks for @timeout_ms at most.
 */
int rbx_reap(struct rbx_context *ctx, struct rbx_request *done[],
	     unsigned int max, int timeout_ms);

/**
 * rbx_event_fd() - gives a descriptor for epoll(7) or poll(2).
 *
 * It is readable while rbx_reap() has something or, with pollers = 0, while rbx_poll()
 * may have work. It must not be read or closed.
 *
 * Returns the descriptor; never fails.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_close().
 */
int rbx_event_fd(struct rbx_context *ctx);

/**
 * rbx_poll() - completes on this thread what has arrived, with pollers = 0.
 *
 * Returns the number of work completions handled, or:
 *	-EBUSY: the context has pollers of its own, or another thread is polling
 *	-EINVAL: called in a child of the process that opened the context
 * Context: any thread, one at a time; never blocks.
 */
int rbx_poll(struct rbx_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
