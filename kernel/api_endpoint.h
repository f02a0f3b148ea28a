/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * api_endpoint.h - a connection between two programs, for modules: the kernel's
 * counterpart of rdmabox/endpoint.h. The other program may be a module or not. It need
 * not even use RDMAbox.
 *
 *	one side				the other
 *
 *	rbx_protection_domain_create()		rbx_protection_domain_create()
 *	rbx_endpoint_listen()
 *	rbx_endpoint_next_request() ---------	rbx_endpoint_connect()
 *	rbx_endpoint_accept()
 *	rbx_endpoint_receive()			rbx_endpoint_post()
 *	completed(), something has come		completed(), it is there
 *
 * Names, promises of a connection, and the meaning of a status are those of
 * rdmabox/endpoint.h, which tells more about them. The differences:
 * - A protection domain takes the place of a context and a queue. It has the device,
 *   whose pollers report completions by a callback. Nobody polls a queue.
 * - A module names its own memory by the address for the device (ib_dma_map_sg() and the
 *   like), without a region. Memory for others is exported by the operations EXPORT and
 *   END_EXPORT, in a chain with others.
 * - Every operation and every receive that was posted completes once, or is silent. All
 *   have ended when rbx_endpoint_close() returns. Then the device does not use their
 *   memory any more, whatever happened.
 * - There is no inline data, as devices offer it only to programs.
 * - Left out: shared receive queues, asynchronous events except `gone`, traffic class and
 *   service level (those of the route are used), and the choice of a completion vector
 *   (each poller of the device has one, and an endpoint goes to the poller that serves
 *   the fewest).
 *
 * Contexts: each call says whether it may sleep. A call that does not sleep allocates
 * nothing.
 *
 * kernel/example/ping.c and kernel/example/one_sided.c are whole modules.
 */
#ifndef RBX_KERNEL_API_ENDPOINT_H
#define RBX_KERNEL_API_ENDPOINT_H

#include <linux/scatterlist.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct rbx_protection_domain; /* a device; keys work only inside of one domain */
struct rbx_endpoint; /* one end of a connection */
struct rbx_endpoint_listener;
struct rbx_endpoint_request; /* a program that wants to connect */
struct rbx_region; /* memory that others may access */

/* ---- The device -----------------------------------------------------------------*/

struct rbx_protection_domain_options {
	const char *device; /* its name, such as "mlx5_0"; NULL: found by the address */
	/*
	 * The RDMA device is being removed. Every endpoint of the domain has ended or is
	 * about to, completes what is posted, and no new one can be made. The removal
	 * waits until the domain is destroyed. Process context; must not block, and must
	 * destroy nothing. NULL: rbx_endpoint_next_request() and completions report it.
	 */
	void (*gone)(struct rbx_protection_domain *domain, void *user);
	void *user;
};

/*
 * Makes a domain on an RDMA device: the one that is named, or the one that leads to an
 * address. The address may be the module's own or that of another machine; its port does
 * not matter. A key works only over endpoints of its own domain. options may be NULL.
 * Sleeps. 0; -EINVAL; -EHOSTUNREACH, -ENODEV: no device leads there or has the name;
 * -EOPNOTSUPP: a kind of device that is not supported; -ENOMEM.
 */
int rbx_protection_domain_create(
	const char *address, const struct rbx_protection_domain_options *options,
	struct rbx_protection_domain **domain);

/* 0; -EBUSY: it has endpoints, listeners or requests. Sleeps. */
int rbx_protection_domain_destroy(struct rbx_protection_domain *domain);

/* The device, to map memory for. Valid as long as the domain is. */
struct ib_device *
rbx_protection_domain_device(const struct rbx_protection_domain *domain);

struct rbx_endpoint_limits {
	u32 send_depth_max; /* operations of one endpoint at a time */
	u32 receive_depth_max;
	u32 segments_max; /* of an operation */
	u32 receive_segments_max;
	u32 message_bytes_max; /* of an operation: all its segments */
	u32 region_pages_max; /* 0: no memory can be exported */
	/* Bytes of private data. What arrives may be padded with zeros up to this length. */
	u32 connect_data_max; /* to the side that listens */
	u32 accept_data_max;
	u32 reject_data_max;
	bool has_invalidate;
	bool has_atomics;
};

/* What the device of the domain can do. Any context. */
void rbx_endpoint_limits(const struct rbx_protection_domain *domain,
			 struct rbx_endpoint_limits *limits);

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
	int status; /* as in rdmabox/endpoint.h */
	enum rbx_completion_kind kind; /* of one with status 0; else only whether it
					  is POSTED means something */
	u32 length_bytes; /* of what has come */
	bool has_immediate;
	bool has_invalidated; /* the peer has ended a key of ours */
	u32 immediate;
	u32 invalidated_key;
};

/* ---- Connecting -----------------------------------------------------------------*/

struct rbx_endpoint_options {
	/*
	 * Called for each completion, one at a time for an endpoint, in process context,
	 * by a poller of the device or by the thread that closes the endpoint. It may
	 * post and disconnect. It must not block, as everything else that uses the device
	 * waits meanwhile.
	 */
	void (*completed)(const struct rbx_completion *completion);
	u32 send_depth; /* operations at a time; 0: 64 */
	u32 receive_depth; /* receives at a time; 0: 64 */
	u32 segments; /* of an operation at most; 0: 1 */
	u32 receive_segments; /* of a receive at most; 0: 1 */
	u32 regions; /* exported at a time, 256 at most; 0: none */
	u32 region_pages; /* of one region at most, of PAGE_SIZE; 0: 1 */
	u32 timeout_ms; /* of connect and accept; 0: 5000 */
	void *user; /* for rbx_endpoint_user() */
	/*
	 * Its operations share the device with the volumes and with other paced
	 * endpoints. They take part in its window and its turns. WRITEs and READs with
	 * one segment are merged if they are neighbours in the memory of the other side.
	 * For bulk data. Then
	 * - READs and plain WRITEs have no order with each other, nor with the rest. An
	 *   operation with RBX_OPERATION_FENCE begins when all before it have ended, and
	 *   those after it begin later. All others keep their order among themselves,
	 *   EXPORT and END_EXPORT too;
	 * - an operation has 256 KiB at most;
	 * - operations that were not tried end with -EHOSTUNREACH.
	 */
	bool paced;
};

/* Private data: bytes that the caller chooses, in both directions. */
struct rbx_endpoint_data {
	void *bytes;
	size_t length_bytes; /* in: room, or how many; out: how many have come */
};

/*
 * Connects to a program that listens at "10.0.0.1:7480"; names are not resolved. data:
 * sent with the request. answer: receives the data with which the other side accepts or
 * refuses. Either may be NULL. All that the endpoint ever needs is allocated here,
 * regions too. Sleeps for timeout_ms at most, and for a second more to clean up. 0;
 * -EINVAL; -ECONNREFUSED: nobody listens there; -EBUSY: it refused, and answer is set;
 * -EHOSTUNREACH; -ETIMEDOUT; -EXDEV: the address is reached over another device; -ENODEV:
 * the device is being removed; -ENOSPC: its pollers have no room: they have room for 256
 * endpoints of at most 256 operations and receives, and queue pairs of volumes take of
 * the same room; -ENOMEM.
 */
int rbx_endpoint_connect(struct rbx_protection_domain *domain,
			 const char *address,
			 const struct rbx_endpoint_options *options,
			 const struct rbx_endpoint_data *data,
			 struct rbx_endpoint_data *answer,
			 struct rbx_endpoint **endpoint);

/*
 * Listens at "10.0.0.1:7480". Port 0 takes a free port. At the address 0.0.0.0 it gets
 * the requests that come over the domain's device. asked(), if not NULL, is called when a
 * request comes, in process context, and must not block. Up to 128 requests wait, each
 * for 5 seconds at most; then they are refused. Sleeps. 0, -EINVAL, -EADDRINUSE,
 * -EADDRNOTAVAIL, -EXDEV: an address of another device, -ENOMEM.
 */
int rbx_endpoint_listen(struct rbx_protection_domain *domain, const char *address,
			void (*asked)(struct rbx_endpoint_listener *listener,
				      void *user),
			void *user, struct rbx_endpoint_listener **listener);

/* The address on which it listens, with the real port. Any context. */
const char *
rbx_endpoint_listener_address(const struct rbx_endpoint_listener *listener);

/* Refuses the requests that wait. Connections stay, and so do requests that were taken.
 * No thread may be in rbx_endpoint_next_request(). Sleeps. */
void rbx_endpoint_listener_close(struct rbx_endpoint_listener *listener);

/*
 * Takes a request. Sleeps for timeout_ms at most (-1: for ever); a signal interrupts it.
 * 0; -EAGAIN: there is none; -ENODEV: the device is being removed; -ERESTARTSYS; -ENOMEM.
 * Answer the request soon by rbx_endpoint_accept() or rbx_endpoint_reject(), as the other
 * side waits.
 */
int rbx_endpoint_next_request(struct rbx_endpoint_listener *listener,
			      int timeout_ms,
			      struct rbx_endpoint_request **request);

/* The private data and the name of the other side, valid until the request is answered.
 * Any context. */
const void *
rbx_endpoint_request_data(const struct rbx_endpoint_request *request,
			  size_t *length_bytes);
const char *
rbx_endpoint_request_name(const struct rbx_endpoint_request *request);

/* Makes a connection of a request, and frees the request in any case. A message that
 * comes before a receive is posted waits for one, for about a second. Sleeps. As
 * rbx_endpoint_connect(), or -ENOTCONN: the other side has left. */
int rbx_endpoint_accept(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_options *options,
			const struct rbx_endpoint_data *data,
			struct rbx_endpoint **endpoint);

/* Refuses a request and frees it. Data that do not fit are left out. Sleeps. */
void rbx_endpoint_reject(struct rbx_endpoint_request *request,
			 const struct rbx_endpoint_data *data);

/* Ends a connection. All that is posted completes, and so does what is posted later. Any
 * context; never sleeps. */
void rbx_endpoint_disconnect(struct rbx_endpoint *endpoint);

/*
 * Ends a connection and frees the endpoint and its regions. When it returns, all that was
 * posted has completed, exports have ended, and no callback comes any more. If the device
 * does not give work requests back, it waits for a second and no longer. No other thread
 * may use the endpoint. What completed() posts meanwhile is refused (-ENOTCONN). Sleeps.
 * 0; -EDEADLK: called in completed().
 */
int rbx_endpoint_close(struct rbx_endpoint *endpoint);

/* user of its options; the name of the other side; operations at a time. Any context. */
void *rbx_endpoint_user(const struct rbx_endpoint *endpoint);
const char *rbx_endpoint_name(const struct rbx_endpoint *endpoint);
u32 rbx_endpoint_send_depth(const struct rbx_endpoint *endpoint);

/* ---- Operations -----------------------------------------------------------------*/

/* A range of our memory, by its address for the device. It is mapped, and its contents
 * are synced, DMA_TO_DEVICE or DMA_FROM_DEVICE. */
struct rbx_segment {
	u64 address;
	u32 length_bytes;
};

enum rbx_operation_kind {
	RBX_OPERATION_SEND, /* into a receive of the other side */
	RBX_OPERATION_WRITE, /* into its memory */
	RBX_OPERATION_READ, /* out of its memory */
	/* On 8 bytes of its memory, at a multiple of 8, in the byte order of its host.
	 * Returns what they held before. Atomic with respect to other atomics of that
	 * device. */
	RBX_OPERATION_COMPARE_SWAP, /* if they are compare_add they become swap */
	RBX_OPERATION_FETCH_ADD, /* compare_add is added */
	RBX_OPERATION_EXPORT, /* the key of a region works from now on */
	/* And from now on it does not. With status 0 nobody can access the memory any
	 * more, not even by an operation that was in flight. With another status
	 * rbx_region_release() ends the access. -EINVAL: the region is not exported, or
	 * the peer has ended its key already. */
	RBX_OPERATION_END_EXPORT,
};

enum rbx_operation_flags {
	RBX_OPERATION_SILENT = 1, /* no completion, unless it fails */
	RBX_OPERATION_FENCE = 4, /* begins when all READs and atomics before it have
				    ended */
	RBX_OPERATION_IMMEDIATE = 8, /* SEND, WRITE: `immediate` comes along, and takes
					a receive */
	/* SEND: ends the key invalidate_key of the other side before its receive
	 * completes. */
	RBX_OPERATION_INVALIDATE = 16,
	/* Paced endpoints: goes before operations that were not yet posted to the device. */
	RBX_OPERATION_URGENT = 32,
};

/* The post copies it and its list of segments. The memory of the segments is borrowed
 * until it has completed. */
struct rbx_operation {
	enum rbx_operation_kind kind;
	u32 flags; /* of enum rbx_operation_flags */
	const struct rbx_segment *segments;
	u32 segments_count;
	u32 key; /* WRITE, READ, atomics: of the memory there */
	u64 address; /* the same */
	u32 immediate;
	u32 invalidate_key;
	u64 compare_add;
	u64 swap;
	struct rbx_region *region; /* EXPORT, END_EXPORT */
	void *user;
};

/*
 * Posts operations in order: all of them or none. There is one doorbell, if the endpoint
 * is not paced. Any context; never sleeps. 0; -EINVAL: one is wrong; -EOPNOTSUPP: the
 * device cannot do one; -EAGAIN: no room for so many, wait for completions; -ENOTCONN:
 * the endpoint is being closed; -EIO: the device has failed and the connection is over;
 * the operations that the device had taken complete.
 */
int rbx_endpoint_post(struct rbx_endpoint *endpoint,
		      const struct rbx_operation *operations, u32 count);

/* The call copies it and its list of segments. */
struct rbx_receive {
	const struct rbx_segment *segments;
	u32 segments_count; /* 0: for messages of no bytes */
	void *user;
};

/* Posts receives, as rbx_endpoint_post() does. */
int rbx_endpoint_receive(struct rbx_endpoint *endpoint,
			 const struct rbx_receive *receives, u32 count);

/* ---- Memory for others ------------------------------------------------------------*/

/* What the other side of an endpoint of the domain may do, if it knows the key. */
enum rbx_region_rights {
	RBX_REGION_READ = 1,
	RBX_REGION_WRITE = 2,
	RBX_REGION_ATOMIC = 4, /* neither of the two above implies it */
	/* It may end the key, by a SEND with RBX_OPERATION_INVALIDATE. The device lets it
	 * do so in any case; without this right the connection ends as well. */
	RBX_REGION_INVALIDATE = 8,
};

/*
 * Takes one of the regions of an endpoint for memory that is mapped for the device:
 * `count` entries of sg, as ib_dma_map_sg() returned. All but the first begin at a page,
 * and all but the last end at one. The memory stays mapped until rbx_region_release().
 * The operation EXPORT opens it to others. Any context; never sleeps. 0; -EAGAIN: all
 * regions are in use; -EINVAL: too many pages, gaps, or unknown rights.
 */
int rbx_region_take(struct rbx_endpoint *endpoint, struct scatterlist *sg,
		    u32 count, u32 rights, struct rbx_region **region);

/* What the other side has to know. How it is told is up to the module. */
struct rbx_region_key {
	u64 address; /* of the first byte */
	u64 length_bytes;
	u32 key;
};

/* The key of a region; it is a new one each time the region is taken. Any context. */
void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key);

/*
 * Gives a region back. When it returns, nobody can access the memory. It never sleeps, in
 * any context, if the region was never exported, or END_EXPORT has completed with status
 * 0, or the peer has ended the key. Otherwise the region is deregistered, which sleeps.
 * If there is no memory for a new one then, the endpoint has one region less. 0; -EBUSY:
 * END_EXPORT has not completed.
 */
int rbx_region_release(struct rbx_region *region);

#endif
