/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_channel.c - the host of the channel of an endpoint that is paced.
 *
 * The end. With the first failure the channel is dead: what is posted comes back flushed,
 * and what waits to be posted, or comes later, is refused. Nothing of the device tells of
 * that, and who polls may sleep: so a marker is posted on the queue pair, behind all else.
 * It also tells of what was before it without a signal, if the device took a part of a
 * chain and not its end.
 */
#include "lib/clock.h"
#include "lib/endpoint/paced_state.h"
#include "lib/post_chain.h"

#define MARK_TRIES 8u

static void translate(const struct rbx_qp *qp, const struct rbx_work *work,
		      struct rbx_wr *wr)
{
	(void)qp;
	if (work->direction == RBX_DIRECTION_ORDERED) {
		*wr = rbx_paced_op_of(work->first)->wr;
		return;
	}
	/* Not inline: the CPU may not touch what it is of. */
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
	return rbx_post_chain(channel, chain, rbx_paced_of(channel)->endpoint->qp,
			      translate);
}

/* Its receives end too. */
void rbx_paced_broken(struct rbx_channel *channel)
{
	struct rbx_paced *paced = rbx_paced_of(channel);
	struct rbx_qp *qp = paced->endpoint->qp;

	if (RBX_EXCHANGE(&paced->is_dead, true))
		return;
	qp->device->ops->disconnect(qp);
	rbx_channel_set_state(channel, RBX_CHANNEL_HALTED);
	rbx_channel_set_state(channel, RBX_CHANNEL_DEAD);
}

static void mark(struct rbx_paced *paced)
{
	struct rbx_qp *qp = paced->endpoint->qp;
	struct rbx_wr marker = {
		.wr_id = RBX_PACED_MARKER_ID,
		.opcode = RBX_OP_WRITE,
		.flags = RBX_WR_SIGNALED,
	};
	struct rbx_wr *bad;
	uint32_t try;

	if (RBX_EXCHANGE(&paced->is_marked, true))
		return;
	/* There is room. A device that fails in this, too, is left to close(). */
	for (try = 0; try < MARK_TRIES; try++)
		if (!qp->device->ops->post_send(qp, &marker, &bad))
			return;
}

/* One by one, so that who takes them all finds their order by turning it round. */
void rbx_paced_push(struct rbx_queue *queue, struct rbx_fragment *list)
{
	struct rbx_fragment *next;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = NULL;
		rbx_drive_push_ended(&queue->ended, list);
	}
}

/* By the combiner: so nobody posts at the same time. */
static void end(struct rbx_channel *channel, struct rbx_fragment *list)
{
	struct rbx_paced *paced = rbx_paced_of(channel);

	rbx_paced_push(paced->endpoint->queue, list);
	mark(paced);
}

/* What the device has not taken. The connection is over, so it is not tried again. */
static void keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	struct rbx_fragment *list = harvest->again_first, *each;

	for (each = list; each; each = rbx_fragment_next(each))
		each->status = -EHOSTUNREACH;
	harvest->again_first = harvest->again_last = NULL;
	end(channel, list);
}

static void wake(struct rbx_channel *channel)
{
	RBX_STORE_RELEASE(&rbx_paced_of(channel)->is_wanted, true);
}

const struct rbx_drive rbx_paced_drive = {
	.now_ns = rbx_now_ns,
	.post = post,
	.broken = rbx_paced_broken,
	.keep = keep,
	.end = end,
	.wake = wake,
};

/* With nothing outstanding nobody else goes on with it. */
void rbx_paced_combine(struct rbx_channel *channel)
{
	struct rbx_paced *paced = rbx_paced_of(channel);

	do {
		rbx_drive_combine(&rbx_paced_drive, channel);
	} while (RBX_EXCHANGE(&paced->is_wanted, false) &&
		 rbx_channel_unpark(channel));
}
