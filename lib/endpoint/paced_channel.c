/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* paced_channel.c - the host of the channel of a paced endpoint. */
#include "lib/clock.h"
#include "lib/endpoint/paced_state.h"
#include "lib/post_chain.h"

static void translate(const struct rbx_qp *qp, const struct rbx_work *work,
		      struct rbx_wr *wr)
{
	(void)qp;
	if (work->direction == RBX_DIRECTION_ORDERED) {
		*wr = rbx_paced_op_of(work->first)->wr;
		return;
	}
	/* Not inline: the memory may be one that the CPU must not touch. */
	*wr = (struct rbx_wr){
		.sges = work->sges,
		.sge_count = work->sge_count,
		.opcode = work->direction == RBX_DIRECTION_READ ? RBX_OP_READ :
								  RBX_OP_WRITE,
		.rkey = work->rkey,
		.remote_addr = work->remote_addr,
	};
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	return rbx_post_chain(channel, chain,
			      rbx_paced_of_channel(channel)->endpoint->qp,
			      translate);
}

static void wake(struct rbx_channel *channel)
{
	RBX_STORE_RELEASE(&rbx_paced_of_channel(channel)->is_wanted, true);
}

const struct rbx_drive rbx_paced_drive = {
	.now_ns = rbx_now_ns,
	.post = post,
	.broken = rbx_paced_broken,
	.keep = rbx_paced_keep,
	.end = rbx_paced_refuse,
	.wake = wake,
};

static void disconnect(struct rbx_paced *paced)
{
	struct rbx_qp *qp = rbx_paced_endpoint_of(paced)->endpoint->qp;

	qp->device->ops->disconnect(qp);
}

static int post_marker(struct rbx_paced *paced)
{
	struct rbx_qp *qp = rbx_paced_endpoint_of(paced)->endpoint->qp;
	struct rbx_wr *bad, marker = {
		.wr_id = RBX_PACED_MARKER_ID,
		.opcode = RBX_OP_WRITE,
		.flags = RBX_WR_SIGNALED,
	};

	return qp->device->ops->post_send(qp, &marker, &bad);
}

const struct rbx_paced_host rbx_paced_host = {
	.disconnect = disconnect,
	.post_marker = post_marker,
};

/* If nothing is outstanding, no completion would let the channel go on. So this does. */
void rbx_paced_combine(struct rbx_channel *channel)
{
	struct rbx_paced_endpoint *paced = rbx_paced_of_channel(channel);

	do {
		rbx_drive_combine(&rbx_paced_drive, channel);
	} while (RBX_EXCHANGE(&paced->is_wanted, false) &&
		 rbx_channel_unpark(channel));
}
