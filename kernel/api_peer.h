/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * api_peer.h - one memory server without a volume: messages to the program that
 * serves, memory borrowed by hand, and plain verbs to it.
 *
 *	rbx_peer_connect(&options, &peer);
 *	rbx_peer_on_message(peer, heard, user);
 *	rbx_message_send(peer, "hello", 5);
 *
 *	rbx_borrow(peer, &remote);
 *	cq = ib_alloc_cq(rbx_peer_pd(peer)->device, ...);
 *	rbx_verbs_link_open(peer, &(struct ib_qp_init_attr){ .send_cq = cq, ... },
 *			    ended, user, &link);
 *	ib_post_send(rbx_verbs_link_qp(link), ...);	remote.address, remote.rkey
 *
 * As in rdmabox/message.h and rdmabox/verbs.h, which tell more of it. A module that
 * wants more than the volume does (kernel/api.h) has it here, without leaving the
 * session, its proofs and its lease.
 */
#ifndef RBX_KERNEL_API_PEER_H
#define RBX_KERNEL_API_PEER_H

#include <rdma/ib_verbs.h>

struct rbx_peer;

struct rbx_peer_options {
	const char *server; /* "10.0.0.1:7471" */
	u32 peer_timeout_ms; /* what waits for a server that fell silent ends */
	const void *secret; /* what is shared with it; NULL: nothing */
	size_t secret_bytes;
	bool insecure; /* no secret even beyond loopback */
};

/* Connects. Options are borrowed during the call. Blocks. Errors as
 * rbx_volume_open(). */
int rbx_peer_connect(const struct rbx_peer_options *options,
		     struct rbx_peer **peer);

/* Its links are closed; what is still borrowed goes back. Messages that have not
 * ended end with -ECANCELED before it returns. Blocks. */
void rbx_peer_disconnect(struct rbx_peer *peer);

/* ---- Messages ------------------------------------------------------------------
 *
 * Those of one side arrive in the order sent, each once, over broken connections,
 * too. Each ends once, with
 *	0		the other program's handler has had it
 *	-EOPNOTSUPP	it has no handler (`rdmabox serve` has none)
 *	-EHOSTUNREACH	the peer was given up: it may have been had or not
 *	-ECANCELED	the peer was disconnected: the same
 * Handlers and ends are called one at a time, in process context. They may submit
 * messages; they must not block, for heartbeats wait for them. Of the calls of this page
 * those that wait for the same peer are refused there with -EDEADLK;
 * rbx_peer_disconnect(), which cannot refuse, must not be called there.
 */
#define RBX_MESSAGE_BYTES_MAX 176u

/* Any context, never waits. Data are copied; done may be NULL. -EINVAL: too long;
 * -EAGAIN: 32 wait already; -EHOSTUNREACH: the peer was given up. */
int rbx_message_submit(struct rbx_peer *peer, const void *data, size_t length,
		       void (*done)(int status, void *user), void *user);

/* The same, and waits for its end, which it returns. -EDEADLK: in a handler. */
int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length);

/* Says who hears the messages of the server's program; data is valid during the
 * call. Once, before the first message to it. -EBUSY: there is a handler, or a
 * message has come that nobody heard. */
int rbx_peer_on_message(struct rbx_peer *peer,
			void (*message)(struct rbx_peer *peer, const void *data,
					size_t length, void *user),
			void *user);

/* ---- Borrowed memory -------------------------------------------------------------*/

/* One slab of the server, zeroed, as its NIC knows it. */
struct rbx_remote {
	u64 address;
	u64 length_bytes;
	u32 rkey;
	/* To give it back. */
	u64 slab_id;
	u64 epoch;
};

/* Blocks. -ENOSPC, -EDQUOT, -ENOTCONN, -ETIMEDOUT, -ENOMEM; -EDEADLK: in a handler.
 * -ESTALE: the server has taken back something that was borrowed here, and lent its memory
 * anew; that is what remote says then. When nothing goes to it any more, rbx_return() it,
 * and borrow again. */
int rbx_borrow(struct rbx_peer *peer, struct rbx_remote *remote);
/* After 0 its rkey is dead. -ESTALE: the server has taken it back already. */
int rbx_return(struct rbx_peer *peer, const struct rbx_remote *remote);

/* ---- Plain verbs -----------------------------------------------------------------
 *
 * What goes over a link RDMAbox does not see: it is in no window and no statistics,
 * and is not sent again. RDMA READ and WRITE to borrowed memory are allowed; a
 * message or an atomic ends the queue pair.
 */
struct rbx_verbs_link; /* a queue pair of the module's own to the server */

/* RDMAbox's. When the RDMA device goes, all links on it end, and it is waited until they
 * are closed; the next link may be on another device. NULL: there is none just now.
 * Nothing is waited for before a link is opened and after it is closed: a module whose
 * device may go at any time makes a completion queue as an ib_client of its own. */
struct ib_pd *rbx_peer_pd(const struct rbx_peer *peer);

/*
 * Makes a queue pair and connects it. init: type IB_QPT_RC, completion queues made by
 * ib_alloc_cq(), with room for one more on either side, for what is posted last. It is
 * ready to post when the call returns. When the connection to the server breaks, or the
 * device goes, it ends as any other: what is posted is flushed, and ended(), if there is
 * one, is called once, perhaps before this returns. It must not block, and has somebody
 * else close the link; then another is opened. Blocks. -EBUSY: the server
 * grants a client 16, with the one of the peer; -ENOTCONN while the session is lost,
 * -ENODEV while there is no RDMA device;
 * -EHOSTUNREACH, -ETIMEDOUT, -ENOMEM.
 */
int rbx_verbs_link_open(struct rbx_peer *peer, struct ib_qp_init_attr *init,
			void (*ended)(void *user), void *user,
			struct rbx_verbs_link **link);
struct ib_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link);
/* What was posted has come back, flushed, when it returns; but a device that flushes
 * nothing is waited for a second and no longer. Then nothing more is told of what is
 * left, and the device has done with its memory. Blocks. */
void rbx_verbs_link_close(struct rbx_verbs_link *link);

#endif
