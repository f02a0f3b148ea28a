/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric.h - the interface to an RDMA device, of any kind.
 *
 * A fabric is a kind of device: `verbs` is an RDMA NIC through libibverbs, `soft` is a
 * software device for hosts that have none. Both behave as a reliable connection does, so
 * code that is written against this page runs on either:
 *
 *   device     opened once; registers memory, listens, connects
 *   domain     a group of memory and qps: a key works only for the qps of its domain
 *   mr         a range of registered memory: an lkey for our own work requests,
 *              an rkey for the peer's
 *   qp         one end of a connection: work requests go in as chains
 *   cq         where completions come out: polled, or armed and waited for
 *
 * memory.h describes domains and memory, work.h work requests and completions, and this page
 * everything else.
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
 *   is reported only in this way: a program that wants to know of it at once
 *   keeps a receive posted.
 * - In a completion with an error only wr_id, qp and status mean anything.
 *
 * Errors are 0 or -errno here; the fabric turns its own conventions into that.
 * Completion status: 0 done; -ECANCELED flushed; -EACCES remote key, bounds or
 * rights; -EFAULT local key or bounds; -EHOSTUNREACH peer gone; -ETIMEDOUT no
 * answer; -ENOBUFS receiver not ready for too long; -EMSGSIZE message longer
 * than the receive; -EREMOTEIO any other failure of the remote side; -EIO a
 * failure of our own device (classes: core/status.h).
 *
 * Threads: one thread at a time posts on a qp, and one thread at a time polls a cq. Posting
 * and polling may run in parallel, and so may everything else. No call on the data path
 * (post, poll, arm) allocates or blocks.
 */
#ifndef RBX_FABRIC_H
#define RBX_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/memory.h"
#include "fabric/tls_key.h"
#include "fabric/work.h"

/*
 * Private data: bytes that programs send each other while they connect, as many as
 * InfiniBand's connection manager has room for. It may deliver more bytes than were given
 * (see rbx_device_caps): programs that need the exact length must include it.
 */
#define RBX_CONNECT_DATA_MAX 56
#define RBX_ACCEPT_DATA_MAX 196
#define RBX_REJECT_DATA_MAX 148
#define RBX_ERROR_TEXT_MAX 256 /* "what failed: why; how to fix it" */
#define RBX_NAME_MAX 128 /* of a device, an address or a gid as text */

struct rbx_fabric_ops;

/* Of libibverbs, if the fabric uses it; only fabric/verbs looks inside. */
struct ibv_context;
struct ibv_pd;
struct ibv_qp;
struct ibv_qp_init_attr;

/* What a device can do, filled in by open(). */
struct rbx_device_caps {
	char description[RBX_NAME_MAX]; /* "rxe0 port 1 gid 1 (10.9.0.1)" */
	char name[RBX_NAME_MAX]; /* the device alone: "rxe0:1", "tcp" */
	uint32_t max_qp; /* at a time, of all users of the device */
	uint32_t max_sge; /* entries of a scatter list */
	uint32_t max_message_bytes; /* of one work request */
	uint32_t max_send_wr; /* of one qp */
	uint32_t max_recv_wr;
	uint32_t max_cqe; /* completions of one cq */
	uint32_t max_recv_sge; /* entries of a receive's list */
	uint32_t max_inline_bytes; /* 0: no inline sends */
	/* Beyond WRITE, READ and SEND. What the device does not have it refuses: -EOPNOTSUPP. */
	bool has_immediate; /* RBX_WR_IMMEDIATE */
	bool has_invalidate; /* RBX_WR_INVALIDATE, to a peer that allows it */
	bool has_remote_invalidate; /* RBX_REMOTE_INVALIDATE, of a whole region */
	bool has_window_invalidate; /* the same of a window */
	bool has_dmabuf; /* regions of memory that the CPU does not access */
	bool has_service_level; /* of rbx_qp_init */
	uint32_t completion_vectors; /* for create_cq_on(); 0: there is no such choice */
	/* Of a shared receive queue; 0: there are none. */
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	bool has_atomics; /* RBX_OP_COMPARE_SWAP, RBX_OP_FETCH_ADD */
	/*
	 * An lkey that covers all memory of the process without registration (soft fabric;
	 * on-demand paging of a NIC), if has_any_lkey.
	 */
	bool has_any_lkey;
	uint32_t any_lkey;
	/*
	 * Bytes of private data that arrive with each message, however many were given: zeros
	 * follow those. 0: exactly the given bytes arrive.
	 */
	uint32_t connect_data_bytes;
	uint32_t accept_data_bytes;
	uint32_t reject_data_bytes;
};

struct rbx_device {
	const struct rbx_fabric_ops *ops;
	struct rbx_device_caps caps;
	int event_fd; /* readable: get_event() has something; if the device has events */
};

/*
 * Unsolicited events of a device. Each object has at most one event of a kind until it is
 * taken, and the latest is last: "down" followed by "up" means up.
 */
enum rbx_device_event_kind {
	RBX_DEVICE_FAILED, /* for good: all its connections have ended */
	RBX_DEVICE_PORT_DOWN, /* what is under way goes on, or times out */
	RBX_DEVICE_PORT_UP,
	RBX_DEVICE_QP_ENDED, /* a qp that was made with tells_end */
	RBX_DEVICE_SRQ_LOW, /* below the limit that was set */
};

struct rbx_device_event {
	enum rbx_device_event_kind kind;
	/* The object, by address: it may have been destroyed since the event was raised. */
	struct rbx_qp *qp; /* or NULL */
	struct rbx_srq *srq; /* or NULL */
	void *user; /* the user pointer of that object */
};

struct rbx_device_options {
	const char *device_name; /* verbs: "mlx5_0" or "mlx5_0:1"; NULL: choose */
	int gid_index; /* verbs: -1: choose */
	/* verbs: one key for all memory; -ENOTSUP if the device has no implicit on-demand paging */
	bool on_demand_paging;
	uint8_t traffic_class; /* verbs: of connections that we make; 0: as the route says */
	bool same_host_mapping; /* soft: memcpy if both ends are on one host */
	bool needs_registration; /* soft: no key covers all memory, as on most NICs */
	/* soft: how long the service thread spins before it blocks; 0 for the default */
	uint32_t service_spin_us;
	/* soft: collapses under overload. A work request posted while more than
	 * overload_work_requests are queued costs overload_cost_ns for each one above that; a
	 * cost of 0: off. */
	uint32_t overload_work_requests;
	uint32_t overload_cost_ns;
	/* soft: which connections are under TLS, and with what key: copied; NULL if never. */
	enum rbx_tls_use tls;
	const struct rbx_tls_key *tls_key;
};

/*
 * What peers have read and written in our memory, in work requests and bytes. Accesses
 * through a peer's mapping of it are not seen, and atomics are not counted.
 */
struct rbx_traffic {
	uint64_t reads;
	uint64_t read_bytes;
	uint64_t writes;
	uint64_t written_bytes;
};

/*
 * A shared receive queue: each message of any of its qps takes the oldest receive. A receive
 * completes on the qp whose message it took, with the receive's wr_id; its place is in use
 * until that completion is polled. A qp that ends leaves receives that it has not taken, so
 * its end is reported by tells_end, and not by a receive. If a qp is destroyed before the
 * completion of a receive was polled, that receive is posted once more.
 */
struct rbx_srq {
	struct rbx_device *device;
	void *user; /* for the owner */
	uint32_t depth_count;
};

struct rbx_srq_init {
	struct rbx_domain *domain; /* its qps have the same */
	struct rbx_cq *cq; /* also the recv_cq of its qps; has room for depth_count */
	uint32_t depth_count;
	uint32_t max_sge; /* of a receive; 0: one */
	void *user;
};

/*
 * A completion queue. To sleep: arm(), then poll() once more (a completion between the last
 * poll and the arm causes no event), wait until event_fd is readable, consume_events(), poll
 * again.
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
	void *user; /* for the owner; the fabric never looks at it */
	uint32_t send_depth_count;
	uint32_t max_inline_bytes;
	char peer_name[RBX_NAME_MAX]; /* address of the other end, as text */
	bool mapped; /* soft: same-host mapping was chosen at connect */
	/*
	 * soft: how the peer broke the protocol, if it was cut off for that; else NULL. A
	 * constant string, set before the first flushed completion. The fabric itself logs
	 * nothing: a peer that can connect can break rules all day, and the owner decides how
	 * much of it to report.
	 */
	const char *cut_off;
};

struct rbx_qp_init {
	struct rbx_domain *domain; /* NULL: the device's */
	uint8_t traffic_class; /* of its packets; 0: that of the device, or of the route */
	uint8_t service_level; /* the same; only if caps has it */
	struct rbx_srq *srq; /* or NULL; recv_depth_count, recv_max_sge are ignored */
	bool tells_end; /* by an event, besides the completions */
	struct rbx_cq *send_cq;
	struct rbx_cq *recv_cq;
	uint32_t send_depth_count;
	uint32_t recv_depth_count;
	uint32_t max_sge;
	uint32_t recv_max_sge; /* of a receive; 0: one */
	uint32_t max_inline_bytes;
	/*
	 * soft: READs and atomics of the peer that wait for their answers at a time, at most.
	 * A peer that sends more is cut off. 0: as many as it says that it keeps outstanding,
	 * for a peer that is trusted: each takes 64 bytes here. A NIC ignores it.
	 */
	uint32_t peer_reads_max_count;
	/*
	 * soft: true lets the device's service thread do this end's work, so the peer reaches
	 * our memory while no thread polls our cq. false leaves it to the thread that polls
	 * send_cq, which is faster. A NIC does its own work and ignores it.
	 */
	bool served;
	/*
	 * soft, not served: its owner polls without pauses, and often answers a message at
	 * once. So an acknowledgement waits for its next post or poll, and is sent together
	 * with the answer.
	 */
	bool answers;
	void *user;
	/*
	 * NULL, or called by connect() and accept() when the qp is complete, and before
	 * anything can name it: with a shared receive queue a message may be polled, and
	 * answered, before they return. It must not block or post. If they fail after all, no
	 * completion or event has named the qp.
	 */
	void (*made)(struct rbx_qp *qp);
	/*
	 * verbs: not NULL makes a queue pair that its owner posts on and polls with
	 * libibverbs, on completion queues of its own. All fields above are ignored then, and
	 * the result takes no posts here. The actual values are written back.
	 */
	struct ibv_qp_init_attr *native;
};

/* Used by fabrics. */
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
	/* Receives the acceptor's private data, of accept() or reject(): up to the last byte
	 * that arrives or that there is room for. */
	void *reply_data;
	size_t reply_data_max_bytes;
	size_t reply_data_bytes; /* out */
	/* NULL, or RBX_NAME_MAX bytes for what the address was resolved to: a later
	 * connection can use it without another name lookup. "" if there is no such text. */
	char *resolved;
};

struct rbx_listener {
	struct rbx_device *device;
	int event_fd; /* readable: get_request() has something */
	char address[RBX_NAME_MAX]; /* as bound, with the actual port */
	/* soft: connections that were closed because too many had not said a word; only grows.
	 * Its owner reads it when it likes, and nothing else goes by it: relaxed. */
	atomic_uint crowded_out_count;
};

/* A peer that asks to connect. accept() or reject() ends it. */
struct rbx_conn_request {
	struct rbx_listener *listener;
	char peer_name[RBX_NAME_MAX];
	bool same_host; /* it came over loopback or a local socket */
	uint8_t private_data[RBX_CONNECT_DATA_MAX];
	size_t private_data_bytes; /* that arrived, including padding */
	/*
	 * soft: why the peer was refused already, as text; else NULL. Only what the owner can
	 * mend comes here: one side uses TLS and the other does not, or their keys differ.
	 * accept() fails with -EPROTO.
	 */
	const char *unfit;
};

/* A device of libibverbs; the rbx_device owns it. */
struct rbx_native_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t port;
};

/*
 * The table of a fabric. `error` is a buffer of RBX_ERROR_TEXT_MAX bytes for one line with
 * cause and fix if a call fails; it may be NULL.
 */
struct rbx_fabric_ops {
	const char *name; /* "verbs", "soft" */

	/* 0: a device can be opened here; else -errno and the reason. */
	int (*probe)(char *error);
	int (*open)(const struct rbx_device_options *options,
		    struct rbx_device **device, char *error);
	/* Everything else of the device has been destroyed before. */
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
	 * When it returns, no peer can reach the memory through these keys any more, not even
	 * with an operation that was under way. If a peer has mapped the memory file, a copy
	 * that the peer itself has under way may still touch the pages: such a file must be
	 * abandoned, never reused.
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

	/* Blocks until the peer accepts. -ECONNREFUSED: nothing listens there; -EBUSY:
	 * rejected, by its reject(), or because a queue is full. */
	int (*connect)(struct rbx_device *device, const struct rbx_qp_init *init,
		       struct rbx_connect_init *connect, struct rbx_qp **qp,
		       char *error);
	int (*listen)(struct rbx_device *device, const char *address,
		      struct rbx_listener **listener, char *error);
	void (*close_listener)(struct rbx_listener *listener);
	/* Never blocks; -EAGAIN: no peer asks. The caller owns the request. */
	int (*get_request)(struct rbx_listener *listener,
			   struct rbx_conn_request **request);
	/* Both take the request. At most RBX_ACCEPT_DATA_MAX bytes go with accept(); of those
	 * with reject() the first RBX_REJECT_DATA_MAX. */
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
	 * Posts a chain with one doorbell, all or a part of it: on error *bad is the first
	 * that was not posted. -ENOMEM: the send queue is full. A qp in error takes the chain
	 * and flushes it.
	 */
	int (*post_send)(struct rbx_qp *qp, struct rbx_wr *first,
			 struct rbx_wr **bad);
	int (*post_recv)(struct rbx_qp *qp, struct rbx_recv_wr *first,
			 struct rbx_recv_wr **bad);

	/* The following are NULL if the device does not have the feature (see its caps). */

	/* Its events use this vector, which is below completion_vectors. */
	int (*create_cq_on)(struct rbx_device *device, uint32_t depth_count,
			    uint32_t vector, struct rbx_cq **cq, char *error);

	/*
	 * Makes a window. Its key is known at once. Unless the window is_open, the key is
	 * valid from RBX_OP_OPEN_WINDOW on, which is posted once: a later work request may
	 * tell the key to the peer. Any thread. -EINVAL; -EOPNOTSUPP a right that the device
	 * cannot grant; -ENOMEM.
	 */
	int (*create_window)(struct rbx_qp *qp,
			     const struct rbx_device_window_init *init,
			     struct rbx_device_window **window, char *error);
	/* When it returns, no peer reaches the memory by this key any more. Called before its
	 * qp is destroyed, and not while its opening is posted. */
	void (*destroy_window)(struct rbx_device_window *window);

	int (*create_srq)(struct rbx_device *device,
			  const struct rbx_srq_init *init, struct rbx_srq **srq,
			  char *error);
	void (*destroy_srq)(struct rbx_srq *srq); /* its qps were destroyed before */
	/* As post_recv(). Any thread. */
	int (*post_srq_recv)(struct rbx_srq *srq, struct rbx_recv_wr *first,
			     struct rbx_recv_wr **bad);
	/* Raises RBX_DEVICE_SRQ_LOW, once, if fewer than this are posted. */
	void (*set_srq_limit)(struct rbx_srq *srq, uint32_t limit_count);

	/* The oldest event, or -EAGAIN. Never blocks. None is of an object that was destroyed
	 * before. */
	int (*get_event)(struct rbx_device *device,
			 struct rbx_device_event *event);

	/* Since open(). A NIC does not provide it. Any thread, never blocks. */
	void (*get_traffic)(struct rbx_device *device,
			    struct rbx_traffic *traffic);

	/*
	 * Connections that are made from now on use this key, which is copied. Earlier ones
	 * are still accepted, the last SOFT_TLS_KEYS_MAX in all. Any thread. -EINVAL: the
	 * device was opened without TLS; -ENOMEM.
	 */
	int (*add_tls_key)(struct rbx_device *device,
			   const struct rbx_tls_key *key);

	/* What libibverbs calls the device; NULL if libibverbs does not know it, and then
	 * there is no native queue pair either. */
	struct rbx_native_device (*native_device)(struct rbx_device *device);
	struct ibv_qp *(*native_qp)(struct rbx_qp *qp);
};

extern const struct rbx_fabric_ops rbx_fabric_soft;
extern const struct rbx_fabric_ops rbx_fabric_verbs;

#endif
