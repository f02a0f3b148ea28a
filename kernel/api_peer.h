/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * api_peer.h - one memory server without a volume, for modules: user messages, borrowed
 * memory, and plain verbs.
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
 * It is the counterpart of rdmabox/message.h and rdmabox/verbs.h, which tell more. It
 * gives a module more control than a volume does (kernel/api.h), and keeps the session,
 * its proofs and its lease.
 */
#ifndef RBX_KERNEL_API_PEER_H
#define RBX_KERNEL_API_PEER_H

#include <rdma/ib_verbs.h>

struct rbx_peer;

struct rbx_peer_options {
	const char *server; /* "10.0.0.1:7471" */
	u32 peer_timeout_ms; /* requests to a server that is silent for so long end */
	const void *secret; /* the secret of the server; NULL: none */
	size_t secret_bytes;
	const char *credential; /* its name there, as of a volume; NULL: it has none */
	bool insecure; /* allow no secret beyond loopback */
};

/* Connects. Options are borrowed during the call. Blocks. Errors as
 * rbx_volume_open(). */
int rbx_peer_connect(const struct rbx_peer_options *options,
		     struct rbx_peer **peer);

/* Disconnects. Its links must be closed. Memory that is still borrowed goes back.
 * Messages that have not ended end with -ECANCELED before it returns. Blocks. */
void rbx_peer_disconnect(struct rbx_peer *peer);

/* ---- Messages ------------------------------------------------------------------
 *
 * The messages of one side arrive in the order sent, each once, even if the connection
 * breaks in between. Each ends once, with
 *	0		the handler of the other program has returned
 *	-EOPNOTSUPP	it has no handler (`rdmabox serve` has none)
 *	-EHOSTUNREACH	the peer is dead; the message may have been handled or not
 *	-ECANCELED	the peer was disconnected; the same
 * Handlers and done() are called one at a time, in process context. They may submit
 * messages. They must not block, as heartbeats wait for them. Calls of this header that
 * wait for the same peer return -EDEADLK there. rbx_peer_disconnect() cannot return an
 * error, so it must not be called there.
 */
#define RBX_MESSAGE_BYTES_MAX 176u

/* Any context, never waits. The data are copied; done may be NULL. -EINVAL: too long;
 * -EAGAIN: 32 wait already; -EHOSTUNREACH: the peer is dead. */
int rbx_message_submit(struct rbx_peer *peer, const void *data, size_t length,
		       void (*done)(int status, void *user), void *user);

/* The same, but waits for its end and returns its status. -EDEADLK: in a handler. */
int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length);

/* Sets the handler for messages of the server's program. data is valid during the call.
 * Call it once, before the first message comes. -EBUSY: there is a handler, or a message
 * has come that nobody handled. */
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

/* Borrows a slab. Blocks. -ENOSPC, -EDQUOT, -ENOTCONN, -ETIMEDOUT, -ENOMEM; -EDEADLK: in
 * a handler. -ESTALE: the server has taken back a loan of this peer and lent its memory
 * anew. Then *remote is that loan. When none of your operations to it is in flight any
 * more, call rbx_return() for it, and borrow again. */
int rbx_borrow(struct rbx_peer *peer, struct rbx_remote *remote);
/* After it returned 0 the rkey does not work any more. -ESTALE: the server has taken it
 * back already. */
int rbx_return(struct rbx_peer *peer, const struct rbx_remote *remote);

/* ---- Plain verbs -----------------------------------------------------------------
 *
 * RDMAbox does not see the operations on a link: they are in no window and no statistics,
 * and are not sent again. RDMA READ and WRITE to borrowed memory are allowed. A message or
 * an atomic ends the queue pair.
 */
struct rbx_verbs_link; /* a queue pair of the module's own to the server */

/* The protection domain of RDMAbox. NULL: there is none just now. If the RDMA device is
 * removed, all links on it end, and the removal waits until they are closed. The next
 * link may be on another device. The removal does not wait for a module that has not
 * opened a link yet, or has closed it. So a module whose device may be removed at any
 * time makes its completion queues as an ib_client of its own. */
struct ib_pd *rbx_peer_pd(const struct rbx_peer *peer);

/*
 * Makes a queue pair and connects it. init: type IB_QPT_RC, completion queues of
 * ib_alloc_cq(), with room for one more work request on either side for the drain. When
 * the call returns, the module may post. If the connection to the server breaks, or the
 * device is removed, the queue pair ends as any other: what is posted is flushed, and
 * ended(), if not NULL, is called once, perhaps before this call returns. ended() must
 * not block and must leave it to another thread to close the link; then a new one is
 * opened. Blocks. -EBUSY: the server allows a client 16 queue pairs, with that of the
 * peer; -ENOTCONN: the session is lost; -ENODEV: there is no RDMA device; -EHOSTUNREACH,
 * -ETIMEDOUT, -ENOMEM.
 */
int rbx_verbs_link_open(struct rbx_peer *peer, struct ib_qp_init_attr *init,
			void (*ended)(void *user), void *user,
			struct rbx_verbs_link **link);
struct ib_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link);
/* Closes a link. When it returns, all that was posted was flushed. If the device flushes
 * nothing it waits for a second and no longer. Then no completions come any more, and the
 * device does not use the memory any more. Blocks. */
void rbx_verbs_link_close(struct rbx_verbs_link *link);

#endif
