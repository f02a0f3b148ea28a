/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.h - plain verbs beside RDMAbox, to the same server and its memory.
 *
 * A program may want one thing of its NIC that RDMAbox does not do: a work request
 * with flags of its own, a completion queue that it polls in its own way. It borrows
 * memory by RDMAbox, and makes a queue pair of its own to the server, in the
 * protection domain of RDMAbox.
 *
 *	struct rbx_verbs verbs = { .size_bytes = sizeof(verbs) };
 *	struct rbx_remote_key key;
 *	struct rbx_verbs_link *link;
 *
 *	rbx_peer_verbs(peer, &verbs);
 *	rbx_remote_key(remote, &key);
 *	cq = ibv_create_cq(verbs.context, 16, NULL, NULL, 0);
 *	mr = ibv_reg_mr(verbs.pd, memory, size, IBV_ACCESS_LOCAL_WRITE);
 *	rbx_verbs_link_open(peer, &(struct ibv_qp_init_attr){
 *		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
 *		.cap = { .max_send_wr = 16, .max_send_sge = 1 } }, &link);
 *	ibv_post_send(rbx_verbs_link_qp(link), ...);  key.address, key.rkey
 *
 * RDMAbox does not see what goes over it: that is in no window and no statistics,
 * has no order with requests, and is not sent again. RDMA READ and WRITE to
 * borrowed memory are allowed; a message or an atomic ends the queue pair.
 *
 * The header needs nothing of libibverbs; the program includes what it uses.
 * The soft fabric has no verbs beneath it: there the calls that need them return
 * -ENOTSUP.
 * examples/verbs_beside.c is a whole program. Paper, section IV-C.
 */
#ifndef RDMABOX_VERBS_H
#define RDMABOX_VERBS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_peer;
struct rbx_remote;
struct ibv_context;
struct ibv_pd;
struct ibv_qp;
struct ibv_qp_init_attr;

struct rbx_verbs_link; /* a queue pair of the program's own to a server */

struct rbx_verbs {
	size_t size_bytes; /* of this struct, set by the caller */
	struct ibv_context *context; /* the device that the context has open */
	struct ibv_pd *pd; /* the protection domain of RDMAbox */
	uint32_t port; /* of the device, from 1 */
};

/**
 * rbx_peer_verbs() - gives the device and the protection domain under a peer.
 * @verbs: its size_bytes is set before
 *
 * Both stay RDMAbox's. The program destroys what it made with them before rbx_close().
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the size is 0
 *	-ENOTSUP: the fabric has no verbs beneath it
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_close().
 * Paper: section IV-C.
 */
int rbx_peer_verbs(struct rbx_peer *peer, struct rbx_verbs *verbs);

/* Borrowed memory as the NIC of the server knows it. */
struct rbx_remote_key {
	uint64_t address; /* of the first byte */
	uint64_t length_bytes; /* as borrowed */
	uint32_t rkey; /* of the slab */
};

/**
 * rbx_remote_key() - tells where borrowed memory lies, and its key.
 * @key: receives both
 *
 * It works on the soft fabric too, where only RDMAbox can use them.
 *
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_return(), or until the server takes the memory back.
 */
void rbx_remote_key(const struct rbx_remote *remote,
		    struct rbx_remote_key *key);

/**
 * rbx_verbs_link_open() - makes a queue pair and connects it to the server.
 * @init: as for ibv_create_qp(), of type IBV_QPT_RC, with completion queues of the program.
 *	Receives in `cap` what the device made of it
 * @link: receives the link
 *
 * It counts as one of the 16 that the server gives a client, as do those of `queue_pairs`
 * of the options. It is ready to post when the call returns.
 *
 * If the connection to the server breaks, the queue pair ends as any other: what is posted
 * completes with a flush error. The server ends it at the latest before it lets the session
 * go on. So a link is closed then, and opened anew.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or @init is of another type or device
 *	-ENOTSUP: the fabric has no verbs beneath it
 *	-EBUSY: the server gives no more queue pairs
 *	-ENOTCONN: the session is lost now, or for good
 *	-EHOSTUNREACH, -ECONNREFUSED: the server cannot be reached
 *	-ETIMEDOUT: the server does not answer in time
 *	-ENOMEM: the device has no room, or memory cannot be pinned
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the server has answered.
 * Lifetime: until rbx_verbs_link_close(), which comes before rbx_close().
 */
int rbx_verbs_link_open(struct rbx_peer *peer, struct ibv_qp_init_attr *init,
			struct rbx_verbs_link **link);

/**
 * rbx_verbs_link_qp() - gives the queue pair, to post on and to look at.
 *
 * Returns the queue pair; the program does not destroy it.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_verbs_link_close().
 */
struct ibv_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link);

/**
 * rbx_verbs_link_close() - ends the connection and destroys the queue pair.
 * @link: NULL: nothing is done
 *
 * What was posted may be flushed first; completions that were not polled are lost. Until
 * then rbx_close() returns -EBUSY.
 *
 * Context: any thread, callbacks too; blocks for the device.
 */
void rbx_verbs_link_close(struct rbx_verbs_link *link);

#ifdef __cplusplus
}
#endif

#endif
