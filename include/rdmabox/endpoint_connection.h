/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_connection.h - how endpoints find each other, and part.
 */
#ifndef RDMABOX_ENDPOINT_CONNECTION_H
#define RDMABOX_ENDPOINT_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_completion; /* of endpoint_queue.h */
struct rbx_protection_domain; /* of endpoint_memory.h */
struct rbx_queue;
struct rbx_shared_receives; /* of endpoint_operation.h */
struct rbx_endpoint; /* one end of a connection */
struct rbx_endpoint_listener; /* where others connect */
struct rbx_endpoint_request; /* somebody who wants to connect */

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
	/* Conditional operations at a time, and offers (exchange.h), up to 64. Its messages
	 * are RDMAbox's then: instead of receive_depth it takes 256 of the queue's depth. Both
	 * ends have it or neither; they may have different numbers. Default: 0 (none). */
	uint32_t exchanges;
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

#ifdef __cplusplus
}
#endif

#endif
