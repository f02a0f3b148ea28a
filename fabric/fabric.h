/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric.h - what RDMAbox asks of an RDMA device, whichever it is.
 *
 * A fabric is a kind of device: `verbs` is an RDMA NIC under libibverbs, `soft`
 * is a software device for hosts that have none. Both behave as a reliable
 * connection does, so that what is written against this page runs on either:
 *
 *   device     opened once; registers memory, listens, connects
 *   domain     who belongs together: a key works for the qps of its domain only
 *   mr         a range of registered memory: an lkey for our own work requests,
 *              an rkey for the peer's
 *   qp         one end of a connection: work requests go in as chains
 *   cq         where completions come out: polled, or armed and waited for
 *
 * Domains and memory are described in memory.h, work requests and completions in
 * work.h, and all else here.
 *
 * The promises of a reliable connection, which both fabrics keep:
 * - Work requests of one qp are carried out and complete in the order posted.
 *   A completion without error says that all earlier ones of the qp are done,
 *   signaled or not. A completed write has been placed in the target's memory.
 * - A message (SEND, or WRITE with immediate) takes the oldest receive of the peer
 *   and completes it. If there is none it waits for one to be posted.
 * - Key, domain, bounds and rights are checked at the target. A violation fails
 *   the work request with -EACCES and ends the connection.
 * - After the first failure the qp is in error: everything posted, signaled or
 *   not, receives too, completes with -ECANCELED (it was flushed), and so does
 *   all that is posted later. The end of a connection, for whatever reason,
 *   is told in this way and in no other: who wants to hear of it at once keeps
 *   a receive posted.
 * - In a completion with an error only wr_id, qp and status mean anything.
 *
 * Errors are 0 or -errno here; the fabric turns its own conventions into that.
 * Completion status: 0 done; -ECANCELED flushed; -EACCES remote key, bounds or
 * rights; -EFAULT local key or bounds; -EHOSTUNREACH peer gone; -ETIMEDOUT no
 * answer; -ENOBUFS receiver not ready for too long; -EMSGSIZE message longer
 * than the receive; -EREMOTEIO any other failure of the remote side; -EIO a
 * failure of our own device (classes: core/status.h).
 *
 * Threads: one thread at a time posts on a qp, one thread at a time polls a cq;
 * posting and polling may run beside each other, and so may everything else.
 * No call on the data path (post, poll, arm) allocates or blocks.
 */
#ifndef RBX_FABRIC_H
#define RBX_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/memory.h"
#include "fabric/work.h"

/*
 * Private data: bytes that programs hand each other while they connect, as many
 * as the connection manager of InfiniBand has room for. It may deliver more than
 * were given (see rbx_device_caps): who needs their exact end says it in them.
 */
#define RBX_CONNECT_DATA_MAX 56
#define RBX_ACCEPT_DATA_MAX 196
#define RBX_REJECT_DATA_MAX 148
#define RBX_ERROR_TEXT_MAX 256 /* "what failed: why; how to mend it" */
#define RBX_NAME_MAX 128 /* a device, an address, a gid in words */

struct rbx_fabric_ops;

/* Of libibverbs, where a fabric stands on it; only fabric/verbs looks inside. */
struct ibv_context;
struct ibv_pd;
struct ibv_qp;
struct ibv_qp_init_attr;

/* What a device can do, told by open(). */
struct rbx_device_caps {
	char description[RBX_NAME_MAX]; /* "rxe0 port 1 gid 1 (10.9.0.1)" */
	char name[RBX_NAME_MAX]; /* the device alone: "rxe0:1", "tcp" */
	uint32_t max_qp; /* at once, of all users of the device */
	uint32_t max_sge; /* entries of a scatter list */
	uint32_t max_message_bytes; /* of one work request */
	uint32_t max_send_wr; /* of one qp */
	uint32_t max_recv_wr;
	uint32_t max_cqe; /* completions of one cq */
	uint32_t max_recv_sge; /* of a receive's */
	uint32_t max_inline_bytes; /* 0: no inline sends */
	/* Beyond WRITE, READ and SEND; what it has not it refuses: -EOPNOTSUPP. */
	bool has_immediate; /* RBX_WR_IMMEDIATE */
	bool has_invalidate; /* RBX_WR_INVALIDATE, to a peer that allows it */
	bool has_remote_invalidate; /* RBX_REMOTE_INVALIDATE, of a whole region */
	bool has_window_invalidate; /* of a window */
	bool has_dmabuf; /* regions of memory that no CPU touches */
	bool has_service_level; /* of rbx_qp_init */
	uint32_t completion_vectors; /* of create_cq_on(); 0: it has no such choice */
	/* Of a shared receive queue; 0: there are none. */
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	bool has_atomics; /* RBX_OP_COMPARE_SWAP, RBX_OP_FETCH_ADD */
	/*
	 * An lkey that covers all memory of the process without registration
	 * (soft fabric; on-demand paging of a NIC), or has_any_lkey false.
	 */
	bool has_any_lkey;
	uint32_t any_lkey;
	/*
	 * Bytes of private data that arrive with each message, however many were
	 * given: zeros follow those. 0: they arrive as they were given.
	 */
	uint32_t connect_data_bytes;
	uint32_t accept_data_bytes;
	uint32_t reject_data_bytes;
};

struct rbx_device {
	const struct rbx_fabric_ops *ops;
	struct rbx_device_caps caps;
	int event_fd; /* readable: get_event() has something. Only if there is one */
};

/*
 * What a device tells unasked. Each thing tells of one kind at most once until it is
 * taken, and the latest is last: "down" that is followed by "up" is up.
 */
enum rbx_device_event_kind {
	RBX_DEVICE_FAILED, /* for good: all its connections have ended */
	RBX_DEVICE_PORT_DOWN, /* what is under way goes on, or times out */
	RBX_DEVICE_PORT_UP,
	RBX_DEVICE_QP_ENDED, /* one that was made with tells_end */
	RBX_DEVICE_SRQ_LOW, /* below the limit that was asked for */
};

struct rbx_device_event {
	enum rbx_device_event_kind kind;
	/* Which it is of, by address: it may have been destroyed since it was told of. */
	struct rbx_qp *qp; /* or NULL */
	struct rbx_srq *srq; /* or NULL */
	void *user; /* of whichever it is */
};

struct rbx_device_options {
	const char *device_name; /* verbs: "mlx5_0" or "mlx5_0:1"; NULL: choose */
	int gid_index; /* verbs: -1 chooses */
	bool on_demand_paging; /* verbs: one key for all memory; -ENOTSUP where
				  the device has no implicit form of it */
	uint8_t traffic_class; /* verbs: of connections that we make; 0: as the
				  route has it */
	bool same_host_mapping; /* soft: memcpy where both ends share a host */
	bool needs_registration; /* soft: no key covers all memory, as on most
				    NICs */
	uint32_t service_spin_us; /* soft: spin of the service thread before it
				     blocks; 0 for the default */
	/* soft: collapses under overload. A work request posted while more than
	 * overload_work_requests are queued costs overload_cost_ns for each one
	 * too many; a cost of 0: off. */
	uint32_t overload_work_requests;
	uint32_t overload_cost_ns;
};

/*
 * What peers have had done to our memory, in work requests and bytes. What they do
 * through a mapping of it nobody sees, and atomics are not counted.
 */
struct rbx_traffic {
	uint64_t reads;
	uint64_t read_bytes;
	uint64_t writes;
	uint64_t written_bytes;
};

/*
 * A shared receive queue: each message of any of its qps takes the oldest receive. A
 * receive completes on the qp whose message it took, with the receive's wr_id; it has
 * its place until that is polled. A qp that ends leaves what it has not taken, so it
 * is told of by tells_end, and not by a receive. A receive whose completion was not
 * polled before its qp was destroyed is posted once more.
 */
struct rbx_srq {
	struct rbx_device *device;
	void *user; /* the owner's */
	uint32_t depth_count;
};

struct rbx_srq_init {
	struct rbx_domain *domain; /* that of its qps, too */
	struct rbx_cq *cq; /* the recv_cq of its qps; has room for depth_count */
	uint32_t depth_count;
	uint32_t max_sge; /* of a receive; 0: one */
	void *user;
};

/*
 * A completion queue. To sleep: arm(), poll() once more (what came between the
 * last poll and the arm is announced to nobody), wait until event_fd is
 * readable, consume_events(), poll again.
 */
struct rbx_cq {
	struct rbx_device *device;
	int event_fd; /* readable: something completed since arm() */
	uint32_t depth_count;
};

/* One end of a connection, made by connect() or accept(). */
struct rbx_qp {
	struct rbx_device *device;
	struct rbx_cq *send_cq;
	struct rbx_cq *recv_cq;
	void *user; /* the owner's; the fabric never looks at it */
	uint32_t send_depth_count;
	uint32_t max_inline_bytes;
	char peer_name[RBX_NAME_MAX]; /* address of the other end, in words */
	bool mapped; /* soft: same-host mapping was chosen at connect */
	/*
	 * soft: how the peer broke the protocol, if it was cut off for that;
	 * else NULL. Constant text, there before the first flushed completion.
	 * The fabric itself logs nothing: a peer that can connect can break
	 * rules all day, and how much of it is worth telling the owner knows.
	 */
	const char *cut_off;
};

struct rbx_qp_init {
	struct rbx_domain *domain; /* NULL: the device's */
	uint8_t traffic_class; /* of its packets; 0: the device's, or the route's */
	uint8_t service_level; /* the same; needs caps */
	struct rbx_srq *srq; /* or NULL; recv_depth_count, recv_max_sge are ignored */
	bool tells_end; /* by an event, beside the completions */
	struct rbx_cq *send_cq;
	struct rbx_cq *recv_cq;
	uint32_t send_depth_count;
	uint32_t recv_depth_count;
	uint32_t max_sge;
	uint32_t recv_max_sge; /* of a receive; 0: one */
	uint32_t max_inline_bytes;
	/*
	 * soft: true lets the device's service thread do this end's work, so
	 * that the peer reaches our memory while nobody polls our cq; false
	 * leaves it to whoever polls send_cq, which is quicker. A NIC does its
	 * own work and ignores it.
	 */
	bool served;
	/*
	 * soft, not served: its owner polls without a pause, and often answers what
	 * comes at once. So an acknowledgement waits for its next post or poll, and
	 * goes along with the answer.
	 */
	bool answers;
	void *user;
	/*
	 * NULL, or called by connect() and accept() when the qp is whole, and before
	 * anything can name it: with a shared receive queue a message may be polled, and
	 * answered, before they return. Neither blocks nor posts. If they fail after all,
	 * neither a completion nor an event has named the qp.
	 */
	void (*made)(struct rbx_qp *qp);
	/*
	 * verbs: not NULL makes a queue pair that its owner posts on and polls
	 * with libibverbs, on completion queues of its own; all above is then
	 * ignored, and the result takes no post here. Receives what it became.
	 */
	struct ibv_qp_init_attr *native;
};

/* For fabrics. */
static inline void rbx_qp_made(const struct rbx_qp_init *init, struct rbx_qp *qp)
{
	if (init->made)
		init->made(qp);
}

struct rbx_connect_init {
	const char *address; /* "host:port", "[v6]:port" */
	uint32_t timeout_ms;
	/* Connects to loopback addresses only, and otherwise nowhere: -EREMOTE if the
	 * name has another address. It is asked of the addresses that are connected to,
	 * as the same name may be resolved to others the next time. */
	bool loopback_only;
	const void *private_data; /* to the acceptor */
	size_t private_data_bytes; /* at most RBX_CONNECT_DATA_MAX */
	/* Where the acceptor's private data goes: accept() or reject() data, to
	 * the last byte that arrives or that there is room for. */
	void *reply_data;
	size_t reply_data_max_bytes;
	size_t reply_data_bytes; /* out */
	/* NULL, or RBX_NAME_MAX bytes for what the address was resolved to: the same
	 * connection can be made once more with it, and no name is looked up. "" if
	 * there is no such text. */
	char *resolved;
};

struct rbx_listener {
	struct rbx_device *device;
	int event_fd; /* readable: get_request() has something */
	char address[RBX_NAME_MAX]; /* as bound: the port is real */
};

/* A peer that asks to connect; ends with accept() or reject(). */
struct rbx_conn_request {
	struct rbx_listener *listener;
	char peer_name[RBX_NAME_MAX];
	bool same_host; /* it came over loopback or a local socket */
	uint8_t private_data[RBX_CONNECT_DATA_MAX];
	size_t private_data_bytes; /* that arrived, padding and all */
};

/* A device of libibverbs; its owner is the rbx_device. */
struct rbx_native_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t port;
};

/*
 * The table of a fabric. `error` is a buffer of RBX_ERROR_TEXT_MAX bytes that
 * takes one line with cause and fix wherever a call fails; it may be NULL.
 */
struct rbx_fabric_ops {
	const char *name; /* "verbs", "soft" */

	/* 0: a device can be opened here; else -errno and why not. */
	int (*probe)(char *error);
	int (*open)(const struct rbx_device_options *options,
		    struct rbx_device **device, char *error);
	/* All else of the device has been destroyed before. */
	void (*close)(struct rbx_device *device);

	int (*create_domain)(struct rbx_device *device,
			     struct rbx_domain **domain, char *error);
	/* Its memory and queue pairs have been destroyed before. */
	void (*destroy_domain)(struct rbx_domain *domain);

	/* All or nothing. */
	int (*register_memory)(struct rbx_device *device,
			       const struct rbx_mr_init *inits, size_t count,
			       struct rbx_mr **mrs, char *error);
	/*
	 * When it returns no peer can reach the memory through these keys any
	 * more, not even with an operation that was under way. Where the peer
	 * has mapped the memory file, a copy of its own that was under way may
	 * still touch the pages: such a file must be abandoned, never reused.
	 */
	void (*deregister_memory)(struct rbx_device *device,
				  struct rbx_mr **mrs, size_t count);

	int (*create_cq)(struct rbx_device *device, uint32_t depth_count,
			 struct rbx_cq **cq, char *error);
	void (*destroy_cq)(struct rbx_cq *cq);
	/* Returns how many completions were written to wcs, 0 to max. */
	int (*poll)(struct rbx_cq *cq, struct rbx_wc *wcs, int max);
	int (*arm)(struct rbx_cq *cq);
	void (*consume_events)(struct rbx_cq *cq);

	/* Blocks until the peer accepted. -ECONNREFUSED: nobody listens there;
	 * -EBUSY: rejected, by its reject(), or because a queue is full. */
	int (*connect)(struct rbx_device *device, const struct rbx_qp_init *init,
		       struct rbx_connect_init *connect, struct rbx_qp **qp,
		       char *error);
	int (*listen)(struct rbx_device *device, const char *address,
		      struct rbx_listener **listener, char *error);
	void (*close_listener)(struct rbx_listener *listener);
	/* Never blocks; -EAGAIN: nobody asks. Returns a request to the caller. */
	int (*get_request)(struct rbx_listener *listener,
			   struct rbx_conn_request **request);
	/* Both take the request. At most RBX_ACCEPT_DATA_MAX bytes go with the
	 * one; of those with the other the first RBX_REJECT_DATA_MAX. */
	int (*accept)(struct rbx_conn_request *request,
		      const struct rbx_qp_init *init, const void *private_data,
		      size_t private_data_bytes, struct rbx_qp **qp,
		      char *error);
	void (*reject)(struct rbx_conn_request *request,
		       const void *private_data, size_t private_data_bytes);

	/* Ends the connection; whatever is posted is flushed. Any thread. */
	void (*disconnect)(struct rbx_qp *qp);
	/* No completion refers to the qp once this has returned. */
	void (*destroy_qp)(struct rbx_qp *qp);

	/*
	 * Posts a chain with one doorbell. All or a part of it: on error *bad
	 * is the first that was not posted. -ENOMEM: the send queue is full.
	 * A qp in error takes the chain and flushes it.
	 */
	int (*post_send)(struct rbx_qp *qp, struct rbx_wr *first,
			 struct rbx_wr **bad);
	int (*post_recv)(struct rbx_qp *qp, struct rbx_recv_wr *first,
			 struct rbx_recv_wr **bad);

	/*
	 * What follows is NULL if the device has no such thing (see its caps).
	 */

	/* With completions told of on this vector: below completion_vectors. */
	int (*create_cq_on)(struct rbx_device *device, uint32_t depth_count,
			    uint32_t vector, struct rbx_cq **cq, char *error);

	/*
	 * Makes a window. Its key is known at once; unless the window is_open, it is good
	 * from RBX_OP_OPEN_WINDOW on, of which there is one: what is posted later may tell
	 * the peer. Any thread. -EINVAL, -EOPNOTSUPP a right, -ENOMEM.
	 */
	int (*create_window)(struct rbx_qp *qp,
			     const struct rbx_device_window_init *init,
			     struct rbx_device_window **window, char *error);
	/* When it returns no peer reaches the memory by this key any more. Before its
	 * qp is destroyed, and not while its opening is posted. */
	void (*destroy_window)(struct rbx_device_window *window);

	int (*create_srq)(struct rbx_device *device,
			  const struct rbx_srq_init *init, struct rbx_srq **srq,
			  char *error);
	void (*destroy_srq)(struct rbx_srq *srq); /* its qps were before */
	/* As post_recv(). Any thread. */
	int (*post_srq_recv)(struct rbx_srq *srq, struct rbx_recv_wr *first,
			     struct rbx_recv_wr **bad);
	/* Raises RBX_DEVICE_SRQ_LOW, once, if fewer than this are posted. */
	void (*set_srq_limit)(struct rbx_srq *srq, uint32_t limit_count);

	/* The oldest event, or -EAGAIN. Never blocks. None is of what was destroyed before. */
	int (*get_event)(struct rbx_device *device,
			 struct rbx_device_event *event);

	/* Since open(). A NIC does not tell. Any thread, never blocks. */
	void (*get_traffic)(struct rbx_device *device,
			    struct rbx_traffic *traffic);

	/* What libibverbs calls the device; NULL where it knows nothing of it,
	 * and then there is no native queue pair either. */
	struct rbx_native_device (*native_device)(struct rbx_device *device);
	struct ibv_qp *(*native_qp)(struct rbx_qp *qp);
};

extern const struct rbx_fabric_ops rbx_fabric_soft;
extern const struct rbx_fabric_ops rbx_fabric_verbs;

#endif
