/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp.h - a queue pair, its work requests and its receives.
 *
 * Numbers of work requests only grow; the ring holds those from tail to posted:
 *
 *	tail    oldest whose slot the host has not got back by a completion
 *	done    completed so far, in order
 *	sent    handed to the wire so far
 *	ready   in the NIC: came with a doorbell, or fetched
 *	posted  by the host
 *
 * tail <= done <= sent <= ready <= posted, except after an error, which completes work
 * requests that were never sent. The error state is final: rbx_nic_qp_fail() takes all work
 * requests out of the stages and flushes them, and what is posted later is flushed too. A
 * write that was on the wire then may still arrive (stray.c).
 *
 * The responder counts as well: `expected` is the number of the peer's work request that it
 * will carry out next. If one comes out of order, something before it was lost, and it is
 * dropped; one that comes again is acknowledged again.
 */
#ifndef RBX_SIM_NIC_QP_H
#define RBX_SIM_NIC_QP_H

#include "sim/nic/device.h"
#include "sim/nic/payload.h"

enum rbx_nic_op_state {
	RBX_NIC_OP_POSTED, /* in the host's queue, or on its way in */
	RBX_NIC_OP_READY, /* in the NIC, waits for its unit */
	RBX_NIC_OP_SENT, /* on the wire, at the responder, or on its way back */
	RBX_NIC_OP_DONE, /* has its status; completes in its order */
};

struct rbx_nic_op {
	struct rbx_nic_qp *qp; /* never changes */
	uint32_t number;
	uint8_t state; /* enum rbx_nic_op_state */
	uint8_t opcode;
	uint8_t flags;
	uint32_t chain_count; /* in the first of a chain: how many are fetched together */
	uint32_t wqe_bytes;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t wr_id;
	uint32_t length_bytes;
	uint32_t sge_count;
	int32_t status; /* once it is done */
	uint32_t rnr_count; /* times that the receiver was not ready */

	/* Its stage. */
	struct rbx_sim_event event;
	struct rbx_nic_job job; /* of a receive unit, at either end */
	struct rbx_nic_span span; /* at the point that the op has reached */
	struct rbx_nic_payload *payload; /* its data on the wire; NULL: none */
	int32_t answer; /* the responder's: 0, -errno or -EAGAIN: not ready */
	uint32_t pieces_left; /* to be placed, a bit for each of PIECES */
	bool is_doomed; /* never answered: a fault */
	struct rbx_nic_recv *recv; /* that a send has used */

	struct rbx_sge *sges; /* in the queue pair's array */
	uint8_t *inline_data; /* the same; if RBX_WR_INLINE */
};

struct rbx_nic_recv {
	struct rbx_nic_qp *qp;
	uint32_t number;
	bool is_done;
	uint64_t wr_id;
	struct rbx_sge sge;
	int32_t status;
	uint32_t length_bytes;
	struct rbx_sim_event event; /* its completion is written */
};

struct rbx_nic_qp {
	struct rbx_qp base;
	struct rbx_nic_device *device;
	struct rbx_domain *domain;
	struct rbx_nic_qp *next; /* of the device */
	struct rbx_nic_qp *peer; /* NULL: gone */
	uint32_t number; /* of the simulation */
	uint32_t unit; /* of the device's, to send and to receive */
	bool is_broken; /* in error */

	struct rbx_nic_op *ops; /* a ring; the size is a power of two */
	uint32_t ops_mask; /* its size minus 1 */
	uint32_t tail, done, sent, ready, posted;
	uint32_t reads_under_way;
	uint64_t left_ps; /* when the last one left: they stay in order */
	bool is_stuck; /* one cannot be sent; it fails once those before it have ended */
	uint32_t expected; /* number of the peer's next one */
	uint64_t placed_ps; /* when its last write or send was placed, in order */
	bool pauses; /* until the timer: the receiver was not ready */
	struct rbx_sim_event prepare; /* the caches have what is needed to send */
	struct rbx_nic_job send_job;
	uint64_t received_ps; /* when the last one that came had what it needs */
	struct rbx_sim_event timer; /* no answer for too long; or a pause */
	uint32_t timer_number; /* oldest when it was set */
	uint32_t retries;
	uint64_t written_ps; /* when its last CQE was written: they stay in order */
	struct rbx_sim_event peer_gone; /* the message about the peer's end arrives */

	struct rbx_nic_recv *recvs; /* a ring */
	uint32_t recv_depth_count;
	uint32_t recv_tail, recv_taken, recv_posted;
	uint64_t recv_written_ps;

	struct rbx_sge *sges; /* memory of the ops */
	uint8_t *inline_data;
	uint32_t max_sge;
};

static inline struct rbx_nic_qp *rbx_nic_qp_of(struct rbx_qp *base)
{
	return RBX_CONTAINER_OF(base, struct rbx_nic_qp, base);
}

static inline struct rbx_nic_op *rbx_nic_qp_op(struct rbx_nic_qp *qp,
					       uint32_t number)
{
	return &qp->ops[number & qp->ops_mask];
}

/* qp.c */
int rbx_nic_qp_create(struct rbx_nic_device *device,
		      const struct rbx_qp_init *init, struct rbx_nic_qp **qp,
		      char *error);
void rbx_nic_qp_disconnect(struct rbx_qp *base);
void rbx_nic_qp_destroy(struct rbx_qp *base);
/* Its node has lost its power: it is gone, and no peer is told. */
void rbx_nic_qp_vanish(struct rbx_nic_qp *qp);
/* Before a run: numbers begin anew. */
void rbx_nic_qp_numbers_begin(void);
/* Both ends are there: they know each other. */
void rbx_nic_qp_join(struct rbx_nic_qp *one, struct rbx_nic_qp *other);
/* The error state: everything is flushed. */
void rbx_nic_qp_fail(struct rbx_nic_qp *qp);
/* The same at the peer, when the message about it has passed the link. */
void rbx_nic_qp_tell_peer(struct rbx_nic_qp *qp);
/* Takes a work request out of any stage. */
void rbx_nic_op_stop(struct rbx_nic_op *op);
/* The next stage runs at this moment. */
void rbx_nic_op_at(struct rbx_nic_op *op, uint64_t at_ps,
		   void (*stage)(struct rbx_sim_event *event));
/* The work request of an event. */
static inline struct rbx_nic_op *rbx_nic_op_of(struct rbx_sim_event *event)
{
	return RBX_CONTAINER_OF(event, struct rbx_nic_op, event);
}

/* post.c */
int rbx_nic_post_send(struct rbx_qp *base, struct rbx_wr *first,
		      struct rbx_wr **bad);
int rbx_nic_post_recv(struct rbx_qp *base, struct rbx_recv_wr *first,
		      struct rbx_recv_wr **bad);

/* fetch.c: whether it is sent with its doorbell and not read by DMA. */
bool rbx_nic_rings_whole(const struct rbx_nic_op *first);
/* The doorbell of the chain that begins with `first` arrives. */
void rbx_nic_fetch(struct rbx_nic_op *first, uint64_t at_ps);
/* When a work request is in the NIC; if it was evicted it is read again. */
uint64_t rbx_nic_find_work(struct rbx_nic_op *op, uint64_t at_ps);
/* It needs no cache lines any more. */
void rbx_nic_forget_work(struct rbx_nic_op *op);

/* send.c: gives the queue pair to its unit, if it has something to send. */
void rbx_nic_send(struct rbx_nic_qp *qp);
void rbx_nic_send_init(struct rbx_nic_qp *qp);
/* Puts its span on a link; at the other end `stage` runs, or the message is lost. bytes: of
 * payload; 0 is an acknowledgement or a read request. */
void rbx_nic_transmit(struct rbx_nic_op *op, struct rbx_nic_device *from,
		      struct rbx_nic_device *to, uint32_t bytes,
		      void (*stage)(struct rbx_sim_event *event));
uint32_t rbx_nic_packets(const struct rbx_nic_device *device, uint32_t bytes);
/* Whether its local keys are valid for it; and when the translations of its buffers, if they
 * are, are in the NIC. */
bool rbx_nic_keys_good(const struct rbx_nic_op *op);
uint64_t rbx_nic_find_buffers(const struct rbx_nic_op *op, uint64_t at_ps);

/* respond.c: the first packet has arrived at the peer. */
void rbx_nic_arrive(struct rbx_sim_event *event);

/* complete.c: an answer has arrived; and completions for the host. */
void rbx_nic_answered(struct rbx_sim_event *event);
/* It has its status: completes all that can complete now. */
void rbx_nic_op_done(struct rbx_nic_op *op, int32_t status);
/* Completes it whatever came before, while its whole queue pair is flushed. */
void rbx_nic_op_flush(struct rbx_nic_op *op);
void rbx_nic_recv_done(struct rbx_nic_recv *recv, int32_t status,
		       uint32_t length_bytes);

/* retry.c: timers of a requester. */
void rbx_nic_timer_init(struct rbx_nic_qp *qp);
void rbx_nic_timer_set(struct rbx_nic_qp *qp);
/* The receiver was not ready for this one. */
void rbx_nic_not_ready(struct rbx_nic_op *op);

/* stray.c: the sender has given up while its packet is on the wire. Takes the payload. */
void rbx_nic_stray(struct rbx_nic_op *op);

#endif
