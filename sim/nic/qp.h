/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp.h - a queue pair, its work requests and its receives.
 *
 * Numbers of work requests run freely; the ring holds those from tail to posted:
 *
 *	tail    oldest whose slot the host has not got back by a completion
 *	done    completed so far, in order
 *	sent    handed to the wire so far
 *	ready   in the NIC: came with a doorbell, or fetched
 *	posted  by the host
 *
 * tail <= done <= sent <= ready <= posted, but for an error, which completes what
 * was never sent. The error state is final: rbx_nic_qp_fail() takes all work
 * requests out of the stages and flushes them, and what is posted later is flushed
 * too. A write that was on the wire then may still arrive (stray.c).
 *
 * The responder's half counts as well: `expected` is the number of the peer's work
 * request that it will carry out next. What comes out of order has lost something
 * before it and is dropped; what comes again is acknowledged again.
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
	struct rbx_nic_qp *qp; /* set once */
	uint32_t number;
	uint8_t state; /* enum rbx_nic_op_state */
	uint8_t opcode;
	uint8_t flags;
	uint32_t chain_count; /* of those fetched with it: the first of them */
	uint32_t wqe_bytes;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t wr_id;
	uint32_t length_bytes;
	uint32_t sge_count;
	int32_t status; /* once it is done */
	uint32_t rnr_count; /* times that the receiver was not ready */

	/* Where it is. */
	struct rbx_sim_event event;
	struct rbx_nic_job job; /* of a receive unit, at either end */
	struct rbx_nic_span span; /* at the point that it has reached */
	struct rbx_nic_payload *payload; /* what is on the wire; NULL: nothing */
	int32_t answer; /* the responder's: 0, -errno or -EAGAIN: not ready */
	uint32_t pieces_left; /* to be placed; of PIECES, a bit each */
	bool is_doomed; /* never answered: a fault */
	struct rbx_nic_recv *recv; /* that a send has taken */

	struct rbx_sge *sges; /* of the queue pair's array */
	uint8_t *inline_data; /* the same; where RBX_WR_INLINE */
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

	struct rbx_nic_op *ops; /* a ring, as long as the next power of two */
	uint32_t ops_mask; /* the same less one */
	uint32_t tail, done, sent, ready, posted;
	uint32_t reads_under_way;
	uint64_t left_ps; /* when the last one left: they keep order */
	bool is_stuck; /* one cannot be sent; it fails once those before it end */
	uint32_t expected; /* of the peer's */
	uint64_t placed_ps; /* when its last write or send was placed, in order */
	bool pauses; /* until the timer: the receiver was not ready */
	struct rbx_sim_event prepare; /* the caches have what it needs to send */
	struct rbx_nic_job send_job;
	uint64_t received_ps; /* when the last that came had what it needs */
	struct rbx_sim_event timer; /* no answer for so long; or a pause */
	uint32_t timer_number; /* oldest when it was set */
	uint32_t retries;
	uint64_t written_ps; /* when its last CQE was written: they keep order */
	struct rbx_sim_event peer_gone; /* word of the peer's end arrives */

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
/* Its node has lost its power: it is gone, and nobody is told. */
void rbx_nic_qp_vanish(struct rbx_nic_qp *qp);
/* Before a run: numbers begin anew. */
void rbx_nic_qp_numbers_begin(void);
/* Both ends are there: they know each other. */
void rbx_nic_qp_join(struct rbx_nic_qp *one, struct rbx_nic_qp *other);
/* The error state: everything is flushed. */
void rbx_nic_qp_fail(struct rbx_nic_qp *qp);
/* The same at the peer, when word of it has passed the link. */
void rbx_nic_qp_tell_peer(struct rbx_nic_qp *qp);
/* Takes a work request out of whatever stage it is in. */
void rbx_nic_op_stop(struct rbx_nic_op *op);
/* The next stage comes at this moment. */
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

/* fetch.c: whether it comes with its doorbell, and is not read by DMA. */
bool rbx_nic_rings_whole(const struct rbx_nic_op *first);
/* The doorbell of the chain that begins with `first` arrives. */
void rbx_nic_fetch(struct rbx_nic_op *first, uint64_t at_ps);
/* When a work request is in the NIC; what was evicted is read again. */
uint64_t rbx_nic_find_work(struct rbx_nic_op *op, uint64_t at_ps);
/* It needs no room there any more. */
void rbx_nic_forget_work(struct rbx_nic_op *op);

/* send.c: gives the queue pair to its unit, if it has something to send. */
void rbx_nic_send(struct rbx_nic_qp *qp);
void rbx_nic_send_init(struct rbx_nic_qp *qp);
/* Puts its span on a link; at the other end `stage` comes, or it is lost. bytes:
 * of payload; 0 is an acknowledgement or a read request. */
void rbx_nic_transmit(struct rbx_nic_op *op, struct rbx_nic_device *from,
		      struct rbx_nic_device *to, uint32_t bytes,
		      void (*stage)(struct rbx_sim_event *event));
uint32_t rbx_nic_packets(const struct rbx_nic_device *device, uint32_t bytes);
/* Whether its local keys allow what it is to do, and when the translations of its
 * buffers, which they do allow, are in the NIC. */
bool rbx_nic_keys_good(const struct rbx_nic_op *op);
uint64_t rbx_nic_find_buffers(const struct rbx_nic_op *op, uint64_t at_ps);

/* respond.c: the first packet has arrived at the peer. */
void rbx_nic_arrive(struct rbx_sim_event *event);

/* complete.c: an answer has arrived; and what is to be told to the host. */
void rbx_nic_answered(struct rbx_sim_event *event);
/* It has its status: all that can complete now does. */
void rbx_nic_op_done(struct rbx_nic_op *op, int32_t status);
/* Completes it whatever came before, while all of its queue pair is flushed. */
void rbx_nic_op_flush(struct rbx_nic_op *op);
void rbx_nic_recv_done(struct rbx_nic_recv *recv, int32_t status,
		       uint32_t length_bytes);

/* retry.c: timers of a requester. */
void rbx_nic_timer_init(struct rbx_nic_qp *qp);
void rbx_nic_timer_set(struct rbx_nic_qp *qp);
/* The receiver was not ready for this one. */
void rbx_nic_not_ready(struct rbx_nic_op *op);

/* stray.c: the sender has given up, its packet is on the wire. Takes the
 * payload. */
void rbx_nic_stray(struct rbx_nic_op *op);

#endif
