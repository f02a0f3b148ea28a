/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - a connection between two programs, and what RDMA can do over it.
 *
 * Volumes and peers (rdmabox.h) know what the other side is: a memory server. An
 * endpoint does not. What comes over it, and who may reach which memory, is the
 * business of the two programs; the other one need not even use RDMAbox.
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
 * What is posted is carried out by the devices; it ends as a completion, which is
 * polled out of the queue of its endpoint. A queue may have many endpoints, and one
 * thread at a time polls it; a program that serves with several threads gives each a
 * queue, which has a completion vector of its own as far as the device has some.
 *
 * The promises of a reliable connection:
 * - What is posted on one endpoint is carried out, and completes, in the order in
 *   which it was posted. One that completes with status 0 says that all before it are
 *   done too. The data of a WRITE are in the memory of the other side then.
 * - Between an operation and a receive there is no order: the answer to a message may
 *   be polled before the completion of the message itself.
 * - A message (SEND, or WRITE with an immediate) takes the oldest receive of the other
 *   side, and completes it. If there is none it waits, for a second at least and a few at
 *   most; then the connection ends. A message that is longer than the receive ends it at
 *   once.
 * - With the first failure the connection is over. All that was posted completes, each
 *   with its own status, receives too (-ECANCELED if it was never tried), and so does
 *   what is posted later. So whoever wants to hear of the end keeps a receive posted.
 *
 * Status: 0; -ECANCELED never tried, or cut off; -EACCES key, bounds or rights at the
 * other side; -EFAULT the same at ours; -EHOSTUNREACH, -ETIMEDOUT it is gone; -ENOBUFS
 * no receive in time; -EMSGSIZE, of a receive, the message is longer; -EREMOTEIO another
 * failure of its device, or its receive is too short; -EIO a failure of ours.
 * When the other side has gone one operation at most says so, the oldest that was under
 * way; those behind it, and what is posted later, end with -ECANCELED (see also paced).
 *
 * A peer that stands still has not gone. If its process is stopped, or in a debugger, its
 * device goes on over verbs; the soft fabric is part of the process, and may wait for it
 * without bound. A program that cannot wait has a timeout of its own, and disconnects.
 * On the soft fabric the time that a message waits for a receive does not count while our
 * own process stands still, nor while what has gone out before the message is on its way,
 * and begins anew with each part of an answer to a READ that was posted before it.
 *
 * Calls return 0 or -errno, and rbx_last_error() says why. Post, receive and poll
 * neither allocate nor block. Where nothing else is said any thread may call. Options
 * start with their size; fields that are zero mean the default.
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
struct rbx_endpoint_listener;
struct rbx_endpoint_request; /* somebody who wants to connect */

/* ---- What the device can do -----------------------------------------------------*/

struct rbx_endpoint_limits {
	size_t size_bytes; /* of this struct, set by the caller */
	uint32_t send_depth_max; /* operations of one endpoint at a time */
	uint32_t receive_depth_max;
	uint32_t segments_max; /* of an operation */
	uint32_t receive_segments_max;
	uint32_t message_bytes_max; /* of an operation: all its segments */
	uint32_t queue_depth_max;
	/* Bytes of private data; what arrives may be longer by zeros: up to so many. */
	uint32_t connect_data_max; /* to who listens */
	uint32_t accept_data_max;
	uint32_t reject_data_max;
	/* 0 or 1. */
	uint8_t has_immediate;
	uint8_t has_invalidate;
	uint8_t has_atomics;
	uint8_t needs_regions; /* segments have to name theirs */
	uint32_t shared_depth_max; /* of shared receives; 0: there are none */
	uint32_t shared_segments_max;
	uint8_t has_window_invalidate; /* RBX_REGION_INVALIDATE of a memory window */
	uint8_t has_dmabuf;
	uint8_t has_service_level;
	uint32_t completion_vectors; /* of rbx_queue_create_on(), at least 1 */
};

/** rbx_endpoint_limits() - of the device of a context. Returns 0, -EINVAL. */
int rbx_endpoint_limits(struct rbx_context *ctx,
			struct rbx_endpoint_limits *limits);

/* ---- Memory ---------------------------------------------------------------------*/

/**
 * rbx_protection_domain_create() - makes one.
 *
 * A key works only over endpoints of its own domain. So whoever serves several programs
 * that must not reach each other's memory gives each a domain. Without one, regions and
 * endpoints are in that of the context. Returns 0, -EINVAL, -ENOMEM. Blocks.
 */
int rbx_protection_domain_create(struct rbx_context *ctx,
				 struct rbx_protection_domain **domain);

/** rbx_protection_domain_destroy() - frees one. Returns 0; -EBUSY: it has regions or
 * endpoints. */
int rbx_protection_domain_destroy(struct rbx_protection_domain *domain);

/* What the other side of an endpoint of its domain may do, if it knows the key. */
enum rbx_region_rights {
	RBX_REGION_READ = 1,
	RBX_REGION_WRITE = 2,
	RBX_REGION_ATOMIC = 4, /* neither of the two above implies it */
	/* It may end the key, by a SEND with RBX_OPERATION_INVALIDATE. */
	RBX_REGION_INVALIDATE = 8,
	RBX_REGION_WINDOWS = 16, /* nothing: but parts of it may be opened, see below */
};

/**
 * rbx_region_export() - registers memory that others may reach.
 * @domain: NULL: that of the context
 * @rights: of enum rbx_region_rights; 0: nobody may, as rbx_region_register().
 *
 * Everybody who is connected to an endpoint of the domain and learns the key may use
 * it. The memory stays the caller's, and mapped until rbx_region_release(): that ends
 * the key, and when it returns nobody reaches the memory, not even by an operation that
 * was under way. Returns 0, -EINVAL, -ENOMEM, -EOPNOTSUPP the device has no such right.
 * Blocks.
 */
int rbx_region_export(struct rbx_context *ctx,
		      struct rbx_protection_domain *domain, void *addr,
		      size_t length, uint32_t rights,
		      struct rbx_region **region);

/**
 * rbx_region_export_dmabuf() - the same of memory of another device.
 * @fd: a dmabuf; borrowed until rbx_region_release()
 * @offset: where the region begins in it
 *
 * No CPU touches it: it is not copied, zeroed or summed, cannot be posted inline, and is
 * refused as the buffer of a volume or a peer. Segments name its bytes by the addresses
 * of rbx_region_key(). Returns as rbx_region_export(), or -EOPNOTSUPP: this device, as
 * the soft fabric, cannot reach it. Blocks.
 */
int rbx_region_export_dmabuf(struct rbx_context *ctx,
			     struct rbx_protection_domain *domain, int fd,
			     uint64_t offset, size_t length, uint32_t rights,
			     struct rbx_region **region);

/* What the other side has to be told, in whatever way. */
struct rbx_region_key {
	uint64_t address; /* of the first byte */
	uint64_t length_bytes;
	uint32_t key;
};

/** rbx_region_key() - a region as others name it. Never blocks. */
void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key);

/* ---- Completions ----------------------------------------------------------------*/

enum rbx_completion_kind {
	RBX_COMPLETION_POSTED, /* an operation of ours */
	RBX_COMPLETION_RECEIVED, /* a SEND has filled a receive */
	RBX_COMPLETION_WRITTEN, /* a WRITE with an immediate has come: the receive is
				   used up, and its memory untouched */
};

struct rbx_completion {
	struct rbx_endpoint *endpoint;
	void *user; /* of the operation or the receive */
	int status;
	enum rbx_completion_kind kind; /* of one with status 0; else only whether it
					  is POSTED means something */
	uint32_t length_bytes; /* of what has come */
	uint8_t has_immediate; /* 0 or 1 */
	uint8_t has_invalidated; /* the peer has ended a key of ours */
	uint32_t immediate;
	uint32_t invalidated_key;
};

/**
 * rbx_queue_create() - makes a queue.
 * @depth: completions that it has room for; each endpoint takes its two depths of it.
 *
 * Returns 0, -EINVAL, -ENOMEM. Blocks.
 */
int rbx_queue_create(struct rbx_context *ctx, uint32_t depth,
		     struct rbx_queue **queue);

/**
 * rbx_queue_create_on() - makes a queue whose completions interrupt a given processor.
 * @vector: below completion_vectors of the limits
 *
 * For a program that serves with several threads, each on a processor of its own.
 * rbx_queue_create() takes the vectors in turn. Returns as that.
 */
int rbx_queue_create_on(struct rbx_context *ctx, uint32_t depth, uint32_t vector,
			struct rbx_queue **queue);

/** rbx_queue_destroy() - frees one. Returns 0; -EBUSY: it has endpoints. */
int rbx_queue_destroy(struct rbx_queue *queue);

/**
 * rbx_queue_poll() - takes completions.
 * @timeout_ms: waits so long for the first; 0: not at all, -1: for ever.
 *
 * Returns how many there are in @completions, 0 to @max, or -errno. With a timeout of 0
 * it does not block. One thread at a time polls and arms a queue.
 */
int rbx_queue_poll(struct rbx_queue *queue, struct rbx_completion *completions,
		   unsigned int max, int timeout_ms);

/**
 * rbx_queue_run() - takes completions, and has those of each endpoint told to
 * completed() of its options.
 * @timeout_ms: as rbx_queue_poll()
 *
 * Those of an endpoint without completed() are dropped. In the callback endpoints are
 * posted on, and disconnected; what blocks is refused (-EDEADLK). Returns how many
 * there were, or -errno.
 */
int rbx_queue_run(struct rbx_queue *queue, int timeout_ms);

/** rbx_queue_fd() - a descriptor for a loop of the program: readable if something has
 * completed since rbx_queue_arm(). */
int rbx_queue_fd(const struct rbx_queue *queue);

/**
 * rbx_queue_arm() - has the descriptor tell of the next completion, once.
 *
 * What completed before is told of by nobody: so poll once more, and wait for the
 * descriptor if there was nothing. Returns 0 or -errno. Never blocks.
 */
int rbx_queue_arm(struct rbx_queue *queue);

/* ---- Connecting -----------------------------------------------------------------*/

struct rbx_endpoint_options {
	size_t size_bytes; /* of this struct, set by the caller */
	struct rbx_queue *queue; /* of all its completions */
	struct rbx_protection_domain *domain; /* NULL: that of the context */
	void (*completed)(const struct rbx_completion *completion); /* rbx_queue_run() */
	uint32_t send_depth; /* operations at a time; 64 */
	uint32_t receive_depth; /* receives at a time; 64 */
	uint32_t segments; /* of an operation at most; 1 */
	uint32_t receive_segments; /* of a receive at most; 1 */
	uint32_t inline_bytes; /* of RBX_OPERATION_INLINE at most; 0 */
	uint32_t timeout_ms; /* of rbx_endpoint_connect(); 5000 */
	/* Soft fabric: 1: this end does its work in rbx_queue_poll(), which is quicker
	 * and asks for a program that polls without a pause. 0: a thread of the library
	 * does it, as the NIC of the verbs fabric would. */
	uint8_t works_when_polled;
	void *user; /* for rbx_endpoint_user() */
	uint8_t tells_end; /* 1: by RBX_ENDPOINT_ENDED, beside its completions */
	/* Messages take receives of these, which are of the same queue and domain;
	 * receive_depth and receive_segments mean nothing then. NULL: of its own. */
	struct rbx_shared_receives *receives;
	/* Of its packets; 0: as the device and its routes have it. Soft fabric: the
	 * traffic class is that of its TCP, and there is no service level. */
	uint8_t traffic_class;
	uint8_t service_level;
	/*
	 * 1: its operations share the device with the volumes and peers of the context:
	 * they take part in its window and its turns, and WRITEs and READs of one
	 * segment that are neighbours in the memory of the other side are merged, as
	 * the options mode and window of the context say. For bulk data. Then
	 * - READs and plain WRITEs are in no order with each other, nor with the rest; one
	 *   with RBX_OPERATION_FENCE begins when all before it have ended, and what comes
	 *   after it does not begin before. All else keeps its order among itself;
	 * - an operation has 256 KiB at most;
	 * - what was not tried ends with -EHOSTUNREACH.
	 * The queue is to be polled while something is outstanding, as others may wait for
	 * what that gives back.
	 */
	uint8_t paced;
};

/* Private data: in both directions bytes that the program chooses. */
struct rbx_endpoint_data {
	void *bytes;
	size_t length_bytes; /* in: room, or how many; out: how many have come */
};

/**
 * rbx_endpoint_connect() - connects to a program that listens.
 * @address: "host:port", "[v6]:port"
 * @data: goes to it with the request; NULL: nothing does
 * @answer: what it accepts or refuses with; NULL: does not matter
 *
 * Returns 0; -EINVAL; -ECONNREFUSED nobody listens there; -EBUSY it has refused, and
 * @answer is set; -ECONNRESET it has left meanwhile; -EHOSTUNREACH; -ETIMEDOUT; -ENOSPC
 * the queue has no room; -ENOMEM. Blocks, for timeout_ms at most.
 */
int rbx_endpoint_connect(struct rbx_context *ctx, const char *address,
			 const struct rbx_endpoint_options *options,
			 const struct rbx_endpoint_data *data,
			 struct rbx_endpoint_data *answer,
			 struct rbx_endpoint **endpoint);

/**
 * rbx_endpoint_listen() - lets others connect.
 * @address: "host:port"; port 0 takes one that is free
 *
 * Returns 0, -EINVAL, -EADDRINUSE, -EADDRNOTAVAIL, -ENOMEM. Blocks.
 */
int rbx_endpoint_listen(struct rbx_context *ctx, const char *address,
			struct rbx_endpoint_listener **listener);

/** rbx_endpoint_listener_address() - as it is bound, with its real port. */
const char *
rbx_endpoint_listener_address(const struct rbx_endpoint_listener *listener);

/** rbx_endpoint_listener_fd() - readable while somebody asks. */
int rbx_endpoint_listener_fd(const struct rbx_endpoint_listener *listener);

/** rbx_endpoint_listener_close() - those that ask are refused; connections stay. What
 * was taken from it is answered before. */
void rbx_endpoint_listener_close(struct rbx_endpoint_listener *listener);

/**
 * rbx_endpoint_next_request() - takes somebody who asks.
 * @timeout_ms: waits so long; 0: not at all, -1: for ever
 *
 * Returns 0, -EAGAIN nobody does. The request ends with rbx_endpoint_accept() or
 * rbx_endpoint_reject(). One thread at a time.
 */
int rbx_endpoint_next_request(struct rbx_endpoint_listener *listener,
			      int timeout_ms,
			      struct rbx_endpoint_request **request);

/** rbx_endpoint_request_data() - the private data of the other side, until it is
 * answered. */
const void *
rbx_endpoint_request_data(const struct rbx_endpoint_request *request,
			  size_t *length_bytes);

/** rbx_endpoint_request_name() - who it is, in words; until it is answered. */
const char *
rbx_endpoint_request_name(const struct rbx_endpoint_request *request);

/**
 * rbx_endpoint_accept() - makes a connection of a request, and ends that.
 *
 * A message that comes before a receive is posted waits for one. Returns as
 * rbx_endpoint_connect(), or -ENOTCONN: the other side has left. Blocks for the device.
 *
 * With shared receives a completion, and with tells_end an event, may name an endpoint
 * before the call that accepts or connects has returned. It can be used then, but not be
 * closed.
 */
int rbx_endpoint_accept(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_options *options,
			const struct rbx_endpoint_data *data,
			struct rbx_endpoint **endpoint);

/** rbx_endpoint_reject() - refuses a request, and ends it. Never blocks. */
void rbx_endpoint_reject(struct rbx_endpoint_request *request,
			 const struct rbx_endpoint_data *data);

/** rbx_endpoint_disconnect() - ends a connection. All that is posted completes. */
void rbx_endpoint_disconnect(struct rbx_endpoint *endpoint);

/**
 * rbx_endpoint_close() - ends a connection, and frees the endpoint.
 *
 * What has not completed is not told of any more, and its memory is the program's when
 * it returns. No other thread uses the endpoint or looks at its completions. Returns 0;
 * -EBUSY: it has memory windows; -EDEADLK in a callback of rbx_queue_run() or another. Blocks.
 */
int rbx_endpoint_close(struct rbx_endpoint *endpoint);

/** rbx_endpoint_user() - of its options. */
void *rbx_endpoint_user(const struct rbx_endpoint *endpoint);

/** rbx_endpoint_name() - who the other side is, in words. */
const char *rbx_endpoint_name(const struct rbx_endpoint *endpoint);

/** rbx_endpoint_send_depth() - operations at a time, as it was negotiated: not more than
 * the options asked for. */
uint32_t rbx_endpoint_send_depth(const struct rbx_endpoint *endpoint);

/* ---- Operations -----------------------------------------------------------------*/

/* The segments of operations and receives (rdmabox.h) have a region if needs_regions of
 * the limits says so, but for what is inline. */

enum rbx_operation_kind {
	RBX_OPERATION_SEND, /* into a receive of the other side */
	RBX_OPERATION_WRITE, /* into its memory */
	RBX_OPERATION_READ, /* out of its memory */
	/* On 8 bytes of its memory, at a multiple of 8, in the byte order of its host;
	 * brings what they held before. Atomic to other atomics of that device. */
	RBX_OPERATION_COMPARE_SWAP, /* if they are compare_add they become swap */
	RBX_OPERATION_FETCH_ADD, /* compare_add is added */
};

enum rbx_operation_flags {
	RBX_OPERATION_SILENT = 1, /* no completion, unless it fails */
	RBX_OPERATION_INLINE = 2, /* SEND, WRITE: the data are copied by the post, and
				     the memory can be used again when it returns */
	RBX_OPERATION_FENCE = 4, /* begins when all READs and atomics before it have
				    ended */
	RBX_OPERATION_IMMEDIATE = 8, /* SEND, WRITE: `immediate` comes along, and takes
					a receive */
	/* SEND: the key invalidate_key of the other side ends before its receive
	 * completes. */
	RBX_OPERATION_INVALIDATE = 16,
	/* Of an endpoint that is paced: before what has not been posted to the device. */
	RBX_OPERATION_URGENT = 32,
};

/* It and its list are copied by the post, and are the program's again when that returns.
 * The memory that its segments name is lent until it has completed; that of a silent one
 * until a later one of its endpoint has. */
struct rbx_operation {
	enum rbx_operation_kind kind;
	uint32_t flags; /* of enum rbx_operation_flags */
	const struct rbx_segment *segments;
	uint32_t segments_count;
	uint32_t key; /* all but SEND: of the memory there */
	uint64_t address; /* all but SEND */
	uint32_t immediate;
	uint32_t invalidate_key;
	uint64_t compare_add;
	uint64_t swap;
	void *user;
};

/**
 * rbx_endpoint_post() - posts operations, in order, with one doorbell for each 32.
 *
 * All of them or none. Returns 0; -EINVAL what is wrong with which; -EFAULT a segment
 * is not in its region; -EOPNOTSUPP the device cannot; -EAGAIN more than there is room
 * for: poll first, but for more than the depth there never is; -EIO the device has failed,
 * and the connection is over: those that it took complete. Never blocks.
 */
int rbx_endpoint_post(struct rbx_endpoint *endpoint,
		      const struct rbx_operation *operations,
		      unsigned int count);

/* It and its list are copied by the call; the memory is lent until it has completed. */
struct rbx_receive {
	const struct rbx_segment *segments;
	uint32_t segments_count; /* 0: for messages of no bytes */
	void *user;
};

/** rbx_endpoint_receive() - posts receives. Returns as rbx_endpoint_post(). */
int rbx_endpoint_receive(struct rbx_endpoint *endpoint,
			 const struct rbx_receive *receives,
			 unsigned int count);

/* ---- Memory windows -------------------------------------------------------------*/

struct rbx_memory_window;

/**
 * rbx_memory_window_open() - lets the other side of one endpoint reach a part of a region.
 * @region: of the endpoint's domain, with RBX_REGION_WINDOWS
 * @rights: of enum rbx_region_rights, without RBX_REGION_WINDOWS
 * @user: of the completion if it fails
 *
 * Its key is of no use on another endpoint, if has_window_invalidate of the limits; else
 * it is as one of rbx_region_export(). What is posted later may tell of it; of an endpoint
 * that is paced, any operation but a READ or a plain WRITE. It takes a place among the
 * operations of the endpoint, unless the device has no windows, and is silent. If it fails,
 * or the connection ends before it, it completes with a status, and is closed as any
 * other. Returns as rbx_endpoint_post(), or -ENOMEM. May block for the device.
 */
int rbx_memory_window_open(struct rbx_endpoint *endpoint,
			   const struct rbx_region *region, void *addr,
			   size_t length, uint32_t rights, void *user,
			   struct rbx_memory_window **window);

/** rbx_memory_window_key() - as the other side names it. Never blocks. */
void rbx_memory_window_key(const struct rbx_memory_window *window,
			   struct rbx_region_key *key);

/**
 * rbx_memory_window_close() - ends the key, whether or not the other side has done so
 * by RBX_OPERATION_INVALIDATE; when it returns nobody reaches the memory by it.
 *
 * Before its endpoint and its region. Returns 0, -EBUSY its opening has not completed:
 * poll first. Blocks for the device.
 */
int rbx_memory_window_close(struct rbx_memory_window *window);

/* ---- Shared receives ------------------------------------------------------------*/

struct rbx_shared_receives_options {
	size_t size_bytes; /* of this struct, set by the caller */
	struct rbx_queue *queue; /* of its endpoints; the depth is taken of its room */
	struct rbx_protection_domain *domain; /* of its endpoints */
	uint32_t depth; /* receives at a time, until they are polled; 64 */
	uint32_t segments; /* of a receive at most; 1 */
	void *user; /* for rbx_shared_receives_user() */
};

/**
 * rbx_shared_receives_create() - receives that many endpoints take from.
 *
 * A message on any of them takes the oldest receive, and its completion names the
 * endpoint. So a program with many endpoints, of which few are busy, needs fewer
 * buffers. If there is none a message waits, as for a receive of its endpoint. Such an
 * endpoint has nothing posted that would tell of its end: see tells_end. When one ends
 * the receives stay for the others; only one that a message had taken in part completes,
 * with -ECANCELED. (Soft-RoCE keeps that one until the destroy.)
 *
 * On the soft fabric a message is promised a receive before it is sent. If other peers
 * have waited for a second, a peer that has not used all that it was promised may be cut
 * off, if its connection moves less than about 1 MiB a second, both directions together.
 *
 * Returns 0, -EINVAL, -ENOMEM, -ENOSPC the queue has no room, -EOPNOTSUPP. Blocks.
 */
int rbx_shared_receives_create(struct rbx_context *ctx,
			       const struct rbx_shared_receives_options *options,
			       struct rbx_shared_receives **receives);

/** rbx_shared_receives_destroy() - frees them; what is posted is the program's again.
 * Returns 0; -EBUSY: it has endpoints. */
int rbx_shared_receives_destroy(struct rbx_shared_receives *receives);

/** rbx_shared_receives_post() - posts receives. Any thread. Returns as
 * rbx_endpoint_post(). */
int rbx_shared_receives_post(struct rbx_shared_receives *receives,
			     const struct rbx_receive *list, unsigned int count);

/** rbx_shared_receives_tell_low() - has RBX_ENDPOINT_RECEIVES_LOW told, once, when fewer
 * than this are posted. 0: not any more. Returns 0 or -EINVAL. */
int rbx_shared_receives_tell_low(struct rbx_shared_receives *receives,
				 uint32_t count);

/** rbx_shared_receives_user() - of its options. */
void *rbx_shared_receives_user(const struct rbx_shared_receives *receives);

/* ---- Events ---------------------------------------------------------------------*/

enum rbx_endpoint_event_kind {
	/* The device is of no use any more: it has failed, or was taken away. All that
	 * was connected over it has ended. Close what is open, and the context. */
	RBX_ENDPOINT_DEVICE_FAILED,
	/* The cable, or what is at its other end. Connections go on if it comes back
	 * soon; else what is posted on them fails. */
	RBX_ENDPOINT_PORT_DOWN,
	RBX_ENDPOINT_PORT_UP,
	/* The connection of an endpoint with tells_end in its options is over. */
	RBX_ENDPOINT_ENDED,
	/* Fewer shared receives are posted than rbx_shared_receives_tell_low() said. */
	RBX_ENDPOINT_RECEIVES_LOW,
};

struct rbx_endpoint_event {
	enum rbx_endpoint_event_kind kind;
	struct rbx_endpoint *endpoint; /* or NULL */
	struct rbx_shared_receives *receives; /* or NULL */
};

/**
 * rbx_endpoint_next_event() - takes what the device of a context tells, the oldest first.
 * @timeout_ms: waits so long; 0: not at all, -1: for ever
 *
 * An event that nobody takes is kept, and not told twice. What is closed is told of by no
 * call that begins later. A call that another thread is in meanwhile may have taken its
 * event before, and still names it: so the thread that takes events closes, or both hold a
 * lock of the program. The verbs fabric tells of the device, its port and its endpoints, the
 * soft fabric of endpoints. Returns 0; -EINVAL; -EAGAIN there is none; -EDEADLK it is to
 * wait in a callback. One thread at a time.
 */
int rbx_endpoint_next_event(struct rbx_context *ctx, struct rbx_endpoint_event *event,
		   int timeout_ms);

/** rbx_endpoint_event_fd() - a descriptor for a loop of the program: readable while there is an
 * event. */
int rbx_endpoint_event_fd(const struct rbx_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
