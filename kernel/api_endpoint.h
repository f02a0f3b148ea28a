/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * api_endpoint.h - a connection between two programs, for modules: the kernel's
 * counterpart of rdmabox/endpoint.h. The other program may be a module or not, and need
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
 * The names, the promises of a connection and what a status means are those of
 * rdmabox/endpoint.h, which tells more of them. What is different:
 * - A protection domain is what a context and a queue are there: it has the device, and
 *   the device's pollers tell of completions by a callback. Nobody polls.
 * - Memory is named by its address for the device (ib_dma_map_sg() and its like); of our
 *   own no region is needed. What others may reach is exported by the operations EXPORT
 *   and END_EXPORT, in a chain with others.
 * - Every operation and every receive that was posted completes once, or is silent, and
 *   all have when rbx_endpoint_close() returns. Then the device has done with their memory,
 *   whatever has become of it.
 * - Nothing is inline, as devices offer that to programs.
 * - Left out: shared receive queues, asynchronous events but `gone`, traffic class and
 *   service level (those of the route hold), and the choice of a completion vector (each
 *   poller of the device has one, and an endpoint goes to the poller with the fewest).
 *
 * Contexts. Each call says whether it may sleep. Nothing that does not allocates.
 *
 * kernel/example/ping.c and kernel/example/one_sided.c are whole modules.
 */
#ifndef RBX_KERNEL_API_ENDPOINT_H
#define RBX_KERNEL_API_ENDPOINT_H

#include <linux/scatterlist.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct rbx_protection_domain; /* a device, and whose keys work for which endpoints */
struct rbx_endpoint; /* one end of a connection */
struct rbx_endpoint_listener;
struct rbx_endpoint_request; /* somebody who wants to connect */
struct rbx_region; /* memory that others may reach */

/* ---- The device -----------------------------------------------------------------*/

struct rbx_protection_domain_options {
	const char *device; /* its name, such as "mlx5_0"; NULL: by the address */
	/*
	 * The RDMA device goes: every endpoint of the domain has ended, or is about to,
	 * and completes what is posted; no new one is made. It is waited until the
	 * domain is destroyed. Process context; must not block, and destroys nothing.
	 * NULL: rbx_endpoint_next_request() says it, and completions do.
	 */
	void (*gone)(struct rbx_protection_domain *domain, void *user);
	void *user;
};

/*
 * Makes a domain on the RDMA device that leads to an address, the module's own or one of
 * another machine, whatever its port; or on one that is named. A key works only over
 * endpoints of its own domain. options may be NULL. Sleeps. 0; -EINVAL; -EHOSTUNREACH,
 * -ENODEV no device leads there, or has the name; -EOPNOTSUPP it is of a kind that is not
 * supported; -ENOMEM.
 */
int rbx_protection_domain_create(
	const char *address, const struct rbx_protection_domain_options *options,
	struct rbx_protection_domain **domain);

/* 0; -EBUSY: it has endpoints, listeners or requests. Sleeps. */
int rbx_protection_domain_destroy(struct rbx_protection_domain *domain);

/* To map memory for, as long as the domain is there. */
struct ib_device *
rbx_protection_domain_device(const struct rbx_protection_domain *domain);

struct rbx_endpoint_limits {
	u32 send_depth_max; /* operations of one endpoint at a time */
	u32 receive_depth_max;
	u32 segments_max; /* of an operation */
	u32 receive_segments_max;
	u32 message_bytes_max; /* of an operation: all its segments */
	u32 region_pages_max; /* 0: nothing can be exported */
	/* Bytes of private data; what arrives may be longer by zeros: up to so many. */
	u32 connect_data_max; /* to who listens */
	u32 accept_data_max;
	u32 reject_data_max;
	bool has_invalidate;
	bool has_atomics;
};

/* What its device can do. Any context. */
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
	 * Called for each completion, one at a time for an endpoint, in process context
	 * by a thread of the device's pollers, or by the one that closes the endpoint.
	 * It may post and disconnect; it must not block, for all that uses the device
	 * waits meanwhile.
	 */
	void (*completed)(const struct rbx_completion *completion);
	u32 send_depth; /* operations at a time; 0: 64 */
	u32 receive_depth; /* receives at a time; 0: 64 */
	u32 segments; /* of an operation at most; 0: 1 */
	u32 receive_segments; /* of a receive at most; 0: 1 */
	u32 regions; /* that are exported at a time, 256 at most; 0: none */
	u32 region_pages; /* of one at most, of PAGE_SIZE; 0: 1 */
	u32 timeout_ms; /* of connect and accept; 0: 5000 */
	void *user; /* for rbx_endpoint_user() */
	/*
	 * Its operations share the device with the volumes, and with other endpoints that
	 * are paced: they take part in its window and its turns, and WRITEs and READs of
	 * one segment that are neighbours in the memory of the other side are merged. For
	 * bulk data. Then
	 * - READs and plain WRITEs are in no order with each other, nor with the rest; one
	 *   with RBX_OPERATION_FENCE begins when all before it have ended, and what comes
	 *   after it does not begin before. All else keeps its order among itself, EXPORT
	 *   and END_EXPORT too;
	 * - an operation has 256 KiB at most;
	 * - what was not tried ends with -EHOSTUNREACH.
	 */
	bool paced;
};

/* Private data: in both directions bytes that the caller chooses. */
struct rbx_endpoint_data {
	void *bytes;
	size_t length_bytes; /* in: room, or how many; out: how many have come */
};

/*
 * Connects to a program that listens at "10.0.0.1:7480": numbers, no names. data: goes to
 * it with the request; answer: what it accepts or refuses with; either may be NULL.
 * All that the endpoint ever needs is allocated here, regions too. Sleeps, for timeout_ms
 * at most, and for a second more to clear up. 0; -EINVAL; -ECONNREFUSED nobody listens
 * there; -EBUSY it has refused, and answer is set; -EHOSTUNREACH; -ETIMEDOUT; -EXDEV the
 * way there is over another device; -ENODEV the device goes; -ENOSPC its pollers have no
 * room, which is for 256 endpoints of at most 256 operations and receives, together
 * with the queue pairs of volumes; -ENOMEM.
 */
int rbx_endpoint_connect(struct rbx_protection_domain *domain,
			 const char *address,
			 const struct rbx_endpoint_options *options,
			 const struct rbx_endpoint_data *data,
			 struct rbx_endpoint_data *answer,
			 struct rbx_endpoint **endpoint);

/*
 * Lets others connect: "10.0.0.1:7480"; port 0 takes one that is free, and of the address
 * 0.0.0.0 it hears the requests that come over the domain's device. asked(), if it is not
 * NULL, is called when somebody asks, in process context, and must not block. Of those
 * that ask 128 wait, and nobody longer than 5 seconds: then they are refused. Sleeps.
 * 0, -EINVAL, -EADDRINUSE, -EADDRNOTAVAIL, -EXDEV an address of another device, -ENOMEM.
 */
int rbx_endpoint_listen(struct rbx_protection_domain *domain, const char *address,
			void (*asked)(struct rbx_endpoint_listener *listener,
				      void *user),
			void *user, struct rbx_endpoint_listener **listener);

/* As it is bound, with its real port. Any context. */
const char *
rbx_endpoint_listener_address(const struct rbx_endpoint_listener *listener);

/* Those that wait are refused; connections stay, and requests that were taken. Nobody
 * waits in rbx_endpoint_next_request(). Sleeps. */
void rbx_endpoint_listener_close(struct rbx_endpoint_listener *listener);

/*
 * Takes somebody who asks. Sleeps for timeout_ms at most, -1: for ever, and may be
 * interrupted by a signal. 0; -EAGAIN nobody does; -ENODEV the device goes;
 * -ERESTARTSYS; -ENOMEM. The request is answered by rbx_endpoint_accept() or
 * rbx_endpoint_reject(), soon: the other side waits.
 */
int rbx_endpoint_next_request(struct rbx_endpoint_listener *listener,
			      int timeout_ms,
			      struct rbx_endpoint_request **request);

/* The private data of the other side, and who it is; until it is answered. Any
 * context. */
const void *
rbx_endpoint_request_data(const struct rbx_endpoint_request *request,
			  size_t *length_bytes);
const char *
rbx_endpoint_request_name(const struct rbx_endpoint_request *request);

/* Makes a connection of a request, and ends that in any case. A message that comes
 * before a receive is posted waits for one, about a second. Sleeps. As
 * rbx_endpoint_connect(), or -ENOTCONN: the other side has left. */
int rbx_endpoint_accept(struct rbx_endpoint_request *request,
			const struct rbx_endpoint_options *options,
			const struct rbx_endpoint_data *data,
			struct rbx_endpoint **endpoint);

/* Refuses a request, and ends it; more data than there may be are left out. Sleeps. */
void rbx_endpoint_reject(struct rbx_endpoint_request *request,
			 const struct rbx_endpoint_data *data);

/* Ends a connection. All that is posted completes, and what is posted later does. Any
 * context; never sleeps. */
void rbx_endpoint_disconnect(struct rbx_endpoint *endpoint);

/*
 * Ends a connection, and frees the endpoint and its regions. All that is posted has
 * completed when it returns, exports have ended, and nothing more is told. A device that
 * gives nothing back is waited for a second and no longer. No other thread uses
 * the endpoint; what completed() posts meanwhile is refused (-ENOTCONN). Sleeps. 0;
 * -EDEADLK in completed().
 */
int rbx_endpoint_close(struct rbx_endpoint *endpoint);

/* Of its options; who the other side is; operations at a time. Any context. */
void *rbx_endpoint_user(const struct rbx_endpoint *endpoint);
const char *rbx_endpoint_name(const struct rbx_endpoint *endpoint);
u32 rbx_endpoint_send_depth(const struct rbx_endpoint *endpoint);

/* ---- Operations -----------------------------------------------------------------*/

/* A stretch of our memory, as the device knows it: mapped for it, and with its contents
 * in sync, DMA_TO_DEVICE or DMA_FROM_DEVICE. */
struct rbx_segment {
	u64 address;
	u32 length_bytes;
};

enum rbx_operation_kind {
	RBX_OPERATION_SEND, /* into a receive of the other side */
	RBX_OPERATION_WRITE, /* into its memory */
	RBX_OPERATION_READ, /* out of its memory */
	/* On 8 bytes of its memory, at a multiple of 8, in the byte order of its host;
	 * brings what they held before. Atomic to other atomics of that device. */
	RBX_OPERATION_COMPARE_SWAP, /* if they are compare_add they become swap */
	RBX_OPERATION_FETCH_ADD, /* compare_add is added */
	RBX_OPERATION_EXPORT, /* the key of a region works from here on */
	/* And from here on it does not. With status 0 nobody reaches the memory any
	 * more, nor does what was under way; with another rbx_region_release() ends it.
	 * -EINVAL: it has not been exported, or the peer has ended its key already. */
	RBX_OPERATION_END_EXPORT,
};

enum rbx_operation_flags {
	RBX_OPERATION_SILENT = 1, /* no completion, unless it fails */
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

/* Copied by the post, with its list; the memory that that points to is lent until it
 * has completed. */
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
 * Posts operations, in order, with one doorbell if the endpoint is not paced: all of them
 * or none. Any context; never sleeps. 0; -EINVAL what is wrong with one; -EOPNOTSUPP the
 * device cannot; -EAGAIN there is no room for so many: wait for completions; -ENOTCONN it
 * is being closed; -EIO the device has failed, and the connection is over: those that it
 * took complete.
 */
int rbx_endpoint_post(struct rbx_endpoint *endpoint,
		      const struct rbx_operation *operations, u32 count);

/* Copied by the call, with its list. */
struct rbx_receive {
	const struct rbx_segment *segments;
	u32 segments_count; /* 0: for messages of no bytes */
	void *user;
};

/* Posts receives, as rbx_endpoint_post() does. */
int rbx_endpoint_receive(struct rbx_endpoint *endpoint,
			 const struct rbx_receive *receives, u32 count);

/* ---- Memory that others reach ---------------------------------------------------*/

/* What the other side of an endpoint of the domain may do, if it knows the key. */
enum rbx_region_rights {
	RBX_REGION_READ = 1,
	RBX_REGION_WRITE = 2,
	RBX_REGION_ATOMIC = 4, /* neither of the two above implies it */
	/* It may end the key, by a SEND with RBX_OPERATION_INVALIDATE. The device lets
	 * it do so anyhow: without the right the connection ends as well. */
	RBX_REGION_INVALIDATE = 8,
};

/*
 * Takes one of the regions of an endpoint, for memory that is mapped for the device:
 * count entries of sg, as ib_dma_map_sg() returned. All but the first begin and all but
 * the last end at a page. From here on until rbx_region_release() the memory stays mapped;
 * the operation EXPORT opens it. Any context; never sleeps. 0; -EAGAIN all regions are in
 * use; -EINVAL too many pages, gaps, or rights that there are not.
 */
int rbx_region_take(struct rbx_endpoint *endpoint, struct scatterlist *sg,
		    u32 count, u32 rights, struct rbx_region **region);

/* What the other side has to be told, in whatever way. */
struct rbx_region_key {
	u64 address; /* of the first byte */
	u64 length_bytes;
	u32 key;
};

/* A region as others name it: another key each time it is taken. Any context. */
void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key);

/*
 * Gives a region back. When it returns nobody reaches the memory. If it was never
 * exported, or END_EXPORT has completed with status 0, or the peer has ended its key, it
 * never sleeps, in any context. Else the device is made to forget it, which sleeps; if
 * there is no memory for it then the endpoint has one region less. 0; -EBUSY: END_EXPORT
 * has not completed.
 */
int rbx_region_release(struct rbx_region *region);

#endif
