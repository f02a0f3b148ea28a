/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.h - plain verbs beside RDMAbox, to the same server and its memory.
 *
 * A program that wants one thing of its NIC that RDMAbox does not do (a work
 * request with flags of its own, a completion queue that it polls in its own
 * way) need not leave: it borrows memory by RDMAbox, and makes a queue pair of
 * its own to the server in RDMAbox's protection domain.
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
 * What goes over it RDMAbox does not see: it is in no window and no statistics,
 * has no order with requests, and is not sent again. RDMA READ and WRITE to
 * borrowed memory are allowed; a message or an atomic ends the queue pair.
 *
 * The header needs nothing of libibverbs; the program includes what it uses.
 * The soft fabric has no verbs beneath it: there the calls return -ENOTSUP.
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
	struct ibv_pd *pd;
	uint32_t port; /* of the device, from 1 */
};

/**
 * rbx_peer_verbs() - the device and protection domain under a peer.
 *
 * Both stay RDMAbox's, and are there until rbx_close(); what the program made
 * with them it destroys before. Returns 0, -EINVAL, -ENOTSUP.
 */
int rbx_peer_verbs(struct rbx_peer *peer, struct rbx_verbs *verbs);

/* Borrowed memory as the NIC of the server knows it. */
struct rbx_remote_key {
	uint64_t address;
	uint64_t length_bytes;
	uint32_t rkey;
};

/**
 * rbx_remote_key() - where borrowed memory lies, and its key.
 *
 * They hold until rbx_return(), or until the server takes the memory back; also
 * on the soft fabric, where nobody but RDMAbox can use them. Never blocks.
 */
void rbx_remote_key(const struct rbx_remote *remote,
		    struct rbx_remote_key *key);

/**
 * rbx_verbs_link_open() - makes a queue pair and connects it to the server.
 * @init: as for ibv_create_qp(): type IBV_QPT_RC, completion queues of the
 *	program's own. Receives in `cap` what the device made of it.
 *
 * It counts as one of the 16 that the server grants a client, as `queue_pairs`
 * of the options do. It is ready to post when the call returns. Returns 0,
 * -EINVAL, -ENOTSUP, -EBUSY where the server grants no more, -ENOTCONN while
 * the session is lost, -EHOSTUNREACH, -ETIMEDOUT, -ENOMEM. Blocks.
 *
 * When the connection to the server breaks, the queue pair ends as any other:
 * what is posted completes with a flush error. The server ends it at the latest
 * before it lets the session go on, so a link is closed and opened anew then.
 */
int rbx_verbs_link_open(struct rbx_peer *peer, struct ibv_qp_init_attr *init,
			struct rbx_verbs_link **link);

/** rbx_verbs_link_qp() - the queue pair, to post on and to look at. */
struct ibv_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link);

/**
 * rbx_verbs_link_close() - ends the connection and destroys the queue pair.
 *
 * Before rbx_close(), which returns -EBUSY otherwise. What was posted may be flushed
 * first; completions that were not polled are lost. Blocks for the device.
 */
void rbx_verbs_link_close(struct rbx_verbs_link *link);

#ifdef __cplusplus
}
#endif

#endif
