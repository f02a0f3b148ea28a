/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpc_end.h - the messages between a requester and the responder: each end has a message out
 * and a message in, each way either by WRITE into a mailbox of the other end or by SEND into
 * a receive.
 *
 * A message has its number in its last byte; only this byte is checked. A mailbox that was
 * read is not cleared, since the next message has another number.
 */
#ifndef RBX_SIM_RPC_END_H
#define RBX_SIM_RPC_END_H

#include "fabric/fabric.h"
#include "sim/scenarios/rpc.h"

#define RBX_RPC_DEPTH 64u /* of each end */
#define RBX_RPC_SIGNAL_EVERY 16u /* messages out */
#define RBX_RPC_RECVS 4u

/* One side of a connection. Several ends share it if there is a dispatcher. */
struct rbx_rpc_line {
	struct rbx_qp *qp;
	struct rbx_rpc_line *other; /* its other side */
	/* The requesters whose messages are under way by SEND, in order; a real message would
	 * contain this. */
	uint32_t under_way[RBX_RPC_MACHINE_THREADS];
	uint32_t sent_count, taken_count;
};

struct rbx_rpc_end {
	struct rbx_rpc_line *line;
	uint32_t number; /* of the requester */
	struct rbx_mr *out;
	struct rbx_mr *in; /* a mailbox, or receives */
	uint32_t out_bytes, in_bytes;
	bool in_by_write;
	const struct rbx_mr *mailbox; /* of the other end; NULL: by SEND */
	uint32_t sent_count, received_count;
};

/* Opens it, with memory of its own on the device. */
void rbx_rpc_end_open(struct rbx_rpc_end *end, struct rbx_device *device,
		      uint32_t out_bytes, uint32_t in_bytes, bool in_by_write);

/* The next message out. */
void rbx_rpc_send(struct rbx_rpc_end *end);
/* Whether the mailbox has a new message; takes it. */
bool rbx_rpc_take_mail(struct rbx_rpc_end *end);

void rbx_rpc_post_recv(struct rbx_rpc_end *end);
/* A receive of this side has completed: returns the number of the requester that the message
 * is from, or for. */
uint32_t rbx_rpc_take_recv(struct rbx_rpc_line *line);

#endif
