/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - a connection between two programs, and what RDMA can do over it.
 *
 * Volumes and peers (volume.h, peer.h) know what the other side is: a memory server. An
 * endpoint does not. The two programs agree on what goes over it, and on who may reach
 * which memory; the other program need not even use RDMAbox.
 *
 *	one side				the other
 *
 *	rbx_queue_create()			rbx_queue_create()
 *	rbx_endpoint_listen()
 *	rbx_endpoint_next_request() ---------	rbx_endpoint_connect()
 *	rbx_endpoint_accept()
 *	rbx_endpoint_receive()			rbx_endpoint_post()
 *	rbx_queue_poll(), something has come	rbx_queue_poll(), it is there
 *
 * What is posted is carried out by the devices. It ends as a completion, which is polled
 * out of the queue of its endpoint. A queue may have many endpoints, and one thread at a
 * time polls it. A program that serves with several threads gives each thread a queue,
 * which has a completion vector of its own as far as the device has some.
 *
 * The promises of a reliable connection:
 * - Operations on one endpoint are carried out, and complete, in the order in which they
 *   were posted. If one completes with status 0, all before it are done too. The data of
 *   a WRITE are in the memory of the other side then.
 * - Between an operation and a receive there is no order: the answer to a message may
 *   be polled before the completion of the message itself.
 * - A message (SEND, or WRITE with an immediate) takes the oldest receive of the other
 *   side, and completes it. If there is none the message waits, for a second at least and
 *   a few at most; then the connection ends. A message that is longer than the receive
 *   ends it at once.
 * - With the first failure the connection is over. All that was posted completes, each
 *   with its own status, and so do receives (with -ECANCELED if they were never tried)
 *   and what is posted later. So a program that wants to hear of the end keeps a receive
 *   posted.
 *
 * The status of a completion:
 *	0		it is done
 *	-ECANCELED	it was never tried, or cut off, as the connection was over
 *	-EACCES		the other side refuses key, bounds or rights
 *	-EFAULT		this side does
 *	-EHOSTUNREACH	the other side has gone; so says -ETIMEDOUT
 *	-ENOBUFS	the other side had no receive in time
 *	-EMSGSIZE	of a receive: the message is longer
 *	-EREMOTEIO	another failure of the other device, or its receive is too short
 *	-EIO		a failure of this device
 * If the other side has gone, one operation at most says so: the oldest that was under
 * way. Those behind it, and what is posted later, end with -ECANCELED (see also paced).
 *
 * A peer that stands still has not gone. If its process is stopped, or in a debugger, its
 * device goes on over verbs; the soft fabric is part of the process, and may wait for it
 * without bound. A program that cannot wait has a timeout of its own, and disconnects.
 * On the soft fabric the time that a message waits for a receive does not count while our
 * own process stands still, nor while what has gone out before the message is on its way.
 * It begins anew with each part of an answer to a READ that was posted before it.
 *
 * The four rules of rdmabox.h hold for all calls. Post, receive and poll neither allocate
 * nor block. Options start with their size; fields that are zero mean the default.
 *
 * examples/ping.c and examples/one_sided.c are whole programs.
 */
#ifndef RDMABOX_ENDPOINT_H
#define RDMABOX_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context; /* of rbx_open(): the device, by the options fabric and device */
struct rbx_region; /* memory that the device knows */
struct rbx_protection_domain; /* whose keys work for which endpoints */

struct rbx_queue; /* where completions come out */
struct rbx_endpoint; /* one end of a connection */
struct rbx_shared_receives; /* of many endpoints */
struct rbx_endpoint_listener; /* where others connect */
struct rbx_endpoint_request; /* somebody who wants to connect */

/* ---- What the device can do -----------------------------------------------------*/

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

/* ---- Memory ---------------------------------------------------------------------*/

/**
 * rbx_protection_domain_create() - makes a protection domain.
 * @domain: receives it
 *
 * A key works only over endpoints of its own domain. So a program that serves several
 * programs which must not reach each other's memory gives each a domain. Without one,
 * regions and endpoints are in that of the context.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL
 *	-ENOMEM: memory or the room of the device ran out
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_protection_domain_destroy().
 */
int rbx_protection_domain_create(struct rbx_context *ctx,
				 struct rbx_protection_domain **domain);

/**
 * rbx_protection_domain_destroy() - frees a protection domain.
 * @domain: NULL: nothing is done
 *
 * Returns 0, or:
 *	-EBUSY: it has regions or endpoints
 *	-EINVAL: called in a child of the process that made it
 * Context: any thread, callbacks too; blocks for a system call.
 */
int rbx_protection_domain_destroy(struct rbx_protection_domain *domain);

/* What the other side of an endpoint of its domain may do, if it knows the key. */
enum rbx_region_rights {
	RBX_REGION_READ = 1, /* it may read */
	RBX_REGION_WRITE = 2, /* it may write */
	RBX_REGION_ATOMIC = 4, /* atomics; neither of the two above implies it */
	/* It may end the key, by a SEND with RBX_OPERATION_INVALIDATE. */
	RBX_REGION_INVALIDATE = 8,
	/* It may do nothing, but parts may be opened by rbx_memory_window_open(). */
	RBX_REGION_WINDOWS = 16,
};

/**
 * rbx_region_export() - registers memory that others may reach.
 * @domain: NULL: that of the context
 * @addr: borrowed until rbx_region_release(); must stay mapped until then
 * @rights: of enum rbx_region_rights; 0: nobody may, as rbx_region_register()
 * @region: receives the region
 *
 * Everybody who is connected to an endpoint of the domain and learns the key may use it.
 * rbx_region_release() ends the key. When that returns nobody reaches the memory, not even
 * by an operation that was under way.
 *
 * Returns 0, or:
 *	-EINVAL: there is no such right, or the domain is of another context
 *	-EOPNOTSUPP: the device cannot give this right
 *	-E...: as rbx_region_register()
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_region_release().
 */
int rbx_region_export(struct rbx_context *ctx,
		      struct rbx_protection_domain *domain, void *addr,
		      size_t length, uint32_t rights,
		      struct rbx_region **region);

/**
 * rbx_region_export_dmabuf() - registers memory of another device that others may reach.
 * @fd: a dmabuf; borrowed until rbx_region_release()
 * @offset: where the region begins in it
 *
 * No CPU touches it: it is not copied, zeroed or summed, cannot be posted inline, and is
 * refused as the buffer of a volume or a peer. Segments name its bytes by the addresses of
 * rbx_region_key().
 *
 * Returns 0, or:
 *	-EOPNOTSUPP: this device, such as the soft one, cannot reach a dmabuf
 *	-E...: as rbx_region_export()
 * Context: any thread, callbacks too; blocks for a system call.
 * Lifetime: until rbx_region_release().
 */
int rbx_region_export_dmabuf(struct rbx_context *ctx,
			     struct rbx_protection_domain *domain, int fd,
			     uint64_t offset, size_t length, uint32_t rights,
			     struct rbx_region **region);

/* What the other side has to be told, in whatever way. */
struct rbx_region_key {
	uint64_t address; /* of the first byte */
	uint64_t length_bytes; /* of the region */
	uint32_t key; /* that gives access */
};

/**
 * rbx_region_key() - tells what the other side has to know of a region.
 * @key: receives it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key);

/* ---- Completions ----------------------------------------------------------------*/

enum rbx_completion_kind {
	RBX_COMPLETION_POSTED, /* an operation of ours */
	RBX_COMPLETION_RECEIVED, /* a SEND has filled a receive */
	RBX_COMPLETION_WRITTEN, /* a WRITE with an immediate has come: the receive is
				   used up, and its memory untouched */
};

struct rbx_completion {
	struct rbx_endpoint *endpoint; /* that posted, or to which something has come */
	void *user; /* of the operation or the receive */
	int status; /* 0 or -errno, see above */
	/* With status 0; else only whether it is POSTED means something. */
	enum rbx_completion_kind kind;
	uint32_t length_bytes; /* of what has come */
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

/* ---- Connecting -----------------------------------------------------------------*/

struct rbx_endpoint_options {
	size_t size_bytes; /* of this struct, set by the caller */
	struct rbx_queue *queue; /* of all its completions. Default: none, it must be set. */
	/* Keys work inside of it alone. Default: NULL (that of the context). */
	struct rbx_protection_domain *domain;
	/* What rbx_queue_run() calls for each completion. Default: NULL. */
	void (*completed)(const struct rbx_completion *completion);
	uint32_t send_depth; /* operations at a time. Default: 64. */
	uint32_t receive_depth; /* receives at a time. Default: 64. */
	uint32_t segments; /* of an operation at most. Default: 1. */
	uint32_t receive_segments; /* of a receive at most. Default: 1. */
	uint32_t inline_bytes; /* of RBX_OPERATION_INLINE at most. Default: 0. */
	uint32_t timeout_ms; /* of rbx_endpoint_connect(). Default: 5000. */
	/* On the soft fabric 1: this end does its work in rbx_queue_poll(), which is
	 * quicker and asks for a program that polls without a pause. 0: a thread of the
	 * library does it, as the NIC of the verbs fabric would. Default: 0. */
	uint8_t works_when_polled;
	void *user; /* for rbx_endpoint_user(). Default: NULL. */
	/* 1: its end is told by RBX_ENDPOINT_ENDED, beside its completions. Default: 0. */
	uint8_t tells_end;
	/* Messages take receives of these, which are of the same queue and domain;
	 * receive_depth and receive_segments mean nothing then. Default: NULL (receives
	 * of its own). */
	struct rbx_shared_receives *receives;
	/* Of its packets; 0: as the device and its routes have it. On the soft fabric that
	 * of its TCP. Default: 0. */
	uint8_t traffic_class;
	/* Of its packets, if has_service_level of the limits; 0: as the device and its
	 * routes have it. Default: 0. */
	uint8_t service_level;
	/*
	 * 1: its operations share the device with the volumes and peers of the context.
	 * They take part in its window and its turns, and WRITEs and READs of one segment
	 * that are neighbours in the memory of the other side are merged, as the options
	 * mode and window of the context say. For bulk data. Default: 0.
	 *
	 * READs and plain WRITEs are then in no order with each other, nor with the rest.
	 * One with RBX_OPERATION_FENCE begins when all before it have ended, and what
	 * comes after it does not begin before. All else keeps its order among itself.
	 *
	 * An operation has 256 KiB at most. What was not tried ends with -EHOSTUNREACH.
	 * The queue is to be polled while something is outstanding, as others may wait
	 * for what that gives back.
	 */
	uint8_t paced;
};

/* Private data: in both directions bytes that the program chooses. */
struct rbx_endpoint_data {
	void *bytes; /* the data, or room for it */
	size_t length_bytes; /* in: room, or how many; out: how many have come */
};

/**
 * rbx_endpoint_connect() - connects to a program that listens.
 * @address: "host:port" or "[v6]:port"
 * @options: borrowed during the call
 * @data: goes to the other program with the request; NULL: nothing does
 * @answer: receives what that accepts or refuses with; NULL: does not matter
 * @endpoint: receives the endpoint
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, an option is out of range, the private data is too
 *		long, or the address is no address
 *	-EADDRNOTAVAIL: the address cannot be resolved
 *	-ECONNREFUSED: nobody listens there
 *	-EBUSY: the other program has refused, and @answer is set; or it is too busy
 *	-ECONNRESET: the other program has left meanwhile
 *	-EHOSTUNREACH, -ENETUNREACH: there is no way to the other host
 *	-ETIMEDOUT: no answer within timeout_ms
 *	-EPROTO: what answers on the soft fabric is no endpoint
 *	-ENODEV: with verbs: the address is not reached through an RDMA device
 *	-EXDEV: with verbs: the address is reached through another device than the open one
 *	-ENOSPC: the queue has no room, or the context has too many endpoints that are paced
 *	-ENOMEM: memory or the room of the device ran out
 *	-EMFILE: the process has no file descriptors left
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks for timeout_ms at most.
 * Lifetime: until rbx_endpoint_close().
 */
int rbx_endpoint_connect(struct rbx_context *ctx, const char *address,
			 const struct rbx_endpoint_options *options,
			 const struct rbx_endpoint_data *data,
			 struct rbx_endpoint_data *answer,
			 struct rbx_endpoint **endpoint);

/**
 * rbx_endpoint_listen() - lets others connect.
 * @address: "host:port" or "[v6]:port"; port 0 takes a free one
 * @listener: receives the listener
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the address is no address
 *	-EADDRINUSE: the port is taken
 *	-EADDRNOTAVAIL: it is no address of this machine, or of an RDMA device
 *	-EACCES: the process may not use this port
 *	-ENODEV, -EXDEV: with verbs: the address is none of the open device
 *	-ENOMEM: memory ran out
 *	-EMFILE: the process has no file descriptors left
 * Context: any thread, callbacks too; blocks while a name is resolved.
 * Lifetime: until rbx_endpoint_listener_close().
 */
int rbx_endpoint_listen(struct rbx_context *ctx, const char *address,
			struct rbx_endpoint_listener **listener);

/**
 * rbx_endpoint_listener_address() - tells the address as it is bound.
 *
 * Returns "host:port", with the real port.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_endpoint_listener_close().
 */
const char *
rbx_endpoint_listener_address(const struct rbx_endpoint_listener *listener);

/**
 * rbx_endpoint_listener_fd() - gives a descriptor for a loop of the program.
 *
 * It is readable while somebody asks to connect. It must not be read or closed.
 *
 * Returns the descriptor; never fails.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_endpoint_listener_close().
 */
int rbx_endpoint_listener_fd(const struct rbx_endpoint_listener *listener);

/**
 * rbx_endpoint_listener_close() - ends listening.
 * @listener: NULL: nothing is done
 *
 * Those that ask are refused; connections stay. Requests that were taken from it have to be
 * answered before.
 *
 * Context: any thread, callbacks too; blocks for a system call.
 */
void rbx_endpoint_listener_close(struct rbx_endpoint_listener *listener);

/**
 * rbx_endpoint_next_request() - takes the request of somebody who asks to connect.
 * @timeout_ms: waits this long for one; 0: not at all, -1: for ever
 * @request: receives it; it ends with rbx_endpoint_accept() or rbx_endpoint_reject()
 *
 * Returns 0, or:
 *	-EAGAIN: nobody asks
 *	-EINVAL: an argument is NULL
 *	-ENOMEM: memory ran out
 *	-EDEADLK: called in a callback, whatever the timeout
 * Context: one thread at a time for a listener; blocks for @timeout_ms at most.
 */
int rbx_endpoint_next_request(struct rbx_endpoint_listener *listener,
			      int timeout_ms,
			      struct rbx_endpoint_request **request);

/**
 * rbx_endpoint_request_data() - gives the private data of the other side.
 * @length_bytes: receives its length; NULL: does not matter
 *
 * Returns the bytes, as long as was sent or longer by zeros.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until the request is answered.
 */
const void *
rbx_endpoint_request_data(const struct rbx_endpoint_request *request,
			  size_t *length_bytes);

/**
 * rbx_endpoint_request_name() - tells in words who asks to connect.
 *
 * Returns a name for people.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until the request is answered.
 */
const char *
rbx_endpoint_request_name(const struct rbx_endpoint_request *request);

/**
 * rbx_endpoint_accept() - makes a connection of a request, and ends the request.
 * @options: borrowed during the call
 * @data: goes to the other program; NULL: nothing does
 * @endpoint: receives the endpoint
 *
 * A message that comes before a receive is posted waits for one. With shared receives a
 * completion, and with tells_end an event, may name an endpoint before the call that
 * accepts or connects has returned. It can be used then, but not be closed.
 *
 * The request ends, and is refused, after an error too. It stays if @options is NULL, or in
 * a child of the process that took it.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, an option is out of range, or the private data is too
 *		long
 *	-ECONNRESET, -ENOTCONN: the other side has left
 *	-ENOSPC: the queue has no room, or the context has too many endpoints that are paced
 *	-ENOMEM: memory or the room of the device ran out
 *	-EDEADLK: the endpoint is to be paced, in a callback
 * Context: any thread, callbacks too unless paced; blocks for the device.
 * Lifetime: until rbx_endpoint_close().
 */
int rbx_endpoint_accept(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_options *options,
			const struct rbx_endpoint_data *data,
			struct rbx_endpoint **endpoint);

/**
 * rbx_endpoint_reject() - refuses a request, and ends it.
 * @request: NULL: nothing is done
 * @data: goes to the other program; NULL: nothing does
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_endpoint_reject(struct rbx_endpoint_request *request,
			 const struct rbx_endpoint_data *data);

/**
 * rbx_endpoint_disconnect() - ends a connection.
 *
 * All that is posted completes. The endpoint stays until it is closed.
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_endpoint_disconnect(struct rbx_endpoint *endpoint);

/**
 * rbx_endpoint_close() - ends a connection, and frees the endpoint.
 * @endpoint: NULL: nothing is done. No other thread uses it or looks at its completions
 *
 * Nothing tells any more of what has not completed. Its memory is the program's when the
 * call returns.
 *
 * Returns 0, or:
 *	-EBUSY: it has memory windows
 *	-EDEADLK: called in a callback, of rbx_queue_run() or another
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread; blocks until the device has let go.
 */
int rbx_endpoint_close(struct rbx_endpoint *endpoint);

/**
 * rbx_endpoint_user() - gives the user of the options.
 *
 * Returns the pointer that the program chose.
 * Context: any thread, callbacks too; never blocks.
 */
void *rbx_endpoint_user(const struct rbx_endpoint *endpoint);

/**
 * rbx_endpoint_name() - tells in words who the other side is.
 *
 * Returns a name for people.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_endpoint_close().
 */
const char *rbx_endpoint_name(const struct rbx_endpoint *endpoint);

/**
 * rbx_endpoint_send_depth() - tells how many operations may be posted at a time.
 *
 * Returns the depth that was negotiated: not more than the options asked for.
 * Context: any thread, callbacks too; never blocks.
 */
uint32_t rbx_endpoint_send_depth(const struct rbx_endpoint *endpoint);

/* ---- Operations -----------------------------------------------------------------*/

/* The segments of operations and receives (request.h) have a region if needs_regions of
 * the limits says so, but for what is inline. */

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

/* ---- Memory windows -------------------------------------------------------------*/

struct rbx_memory_window;

/**
 * rbx_memory_window_open() - lets the other side of one endpoint reach a part of a region.
 * @region: of the domain of the endpoint, with RBX_REGION_WINDOWS
 * @rights: of enum rbx_region_rights, without RBX_REGION_WINDOWS
 * @user: of the completion, if it fails
 * @window: receives the window
 *
 * If the device has memory windows (has_window_invalidate of the limits), the key works
 * over this endpoint alone. Else the part is registered once more, and its key works in the
 * protection domain, as one of rbx_region_export(). The other side may end the key by a
 * SEND with RBX_OPERATION_INVALIDATE. An RDMA device with windows lets it do so even
 * without RBX_REGION_INVALIDATE.
 *
 * A SEND that is posted later may tell of the key. The opening keeps its order among all
 * operations of the endpoint; if that is paced, among all but READs and plain WRITEs.
 *
 * The opening takes a place among the operations of the endpoint, unless the device has no
 * windows, and is silent. If it fails, or the connection ends before it, it completes with
 * a status, and the window is closed as any other.
 *
 * Returns 0, or:
 *	-EINVAL: the part does not lie in the region, or the region is not for windows
 *	-EOPNOTSUPP: the device cannot give this right
 *	-EAGAIN: the endpoint has no room for an operation: poll first
 *	-EIO: the device has failed, and the connection is over
 *	-ENOMEM: memory or the room of the device ran out
 *	-ENOSPC: all keys of the soft device are in use
 * Context: any thread, callbacks too; may block for a system call.
 * Lifetime: until rbx_memory_window_close(), before that of its endpoint and its region.
 */
int rbx_memory_window_open(struct rbx_endpoint *endpoint,
			   const struct rbx_region *region, void *addr,
			   size_t length, uint32_t rights, void *user,
			   struct rbx_memory_window **window);

/**
 * rbx_memory_window_key() - tells what the other side has to know of a window.
 * @key: receives it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_memory_window_key(const struct rbx_memory_window *window,
			   struct rbx_region_key *key);

/**
 * rbx_memory_window_close() - ends the key of a window.
 * @window: NULL: nothing is done
 *
 * It does so whether or not the other side has ended the key by RBX_OPERATION_INVALIDATE.
 * When it returns nobody reaches the memory by the window. Windows are closed before their
 * endpoint and their region.
 *
 * Returns 0, or:
 *	-EBUSY: its opening has not completed: poll first
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread, callbacks too; blocks for a system call.
 */
int rbx_memory_window_close(struct rbx_memory_window *window);

/* ---- Shared receives ------------------------------------------------------------*/

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

/* ---- Events ---------------------------------------------------------------------*/

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
