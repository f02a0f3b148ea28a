/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message.c - operations that take a receive of the other end: SEND, and WRITE with
 * immediate.
 *
 * When the receive completes, all writes before it are visible there, and its own data. A key
 * that it invalidates has ended then.
 */
#include <errno.h>
#include <string.h>

#include "sim/plain/plain.h"
#include "sim/sites.h"

static uint64_t messages_count;

uint64_t rbx_sim_plain_messages(void)
{
	return messages_count;
}

bool plain_is_message(const struct plain_work *work)
{
	return work->opcode == RBX_OP_SEND || work->flags & RBX_WR_IMMEDIATE;
}

static void copy(void *to, const void *from, uint32_t bytes)
{
	if (bytes != 0)
		memcpy(to, from, bytes);
}

/* Fills the entries of the oldest receive, one after another. */
static void fill(const struct plain_qp *qp, uint32_t number)
{
	const struct plain_work *work = plain_work(qp, number);
	const struct rbx_sge *from = plain_sges(qp, number);
	const struct rbx_sge *to =
		plain_recv_sges(qp->peer, qp->peer->recv_first);
	uint32_t at = 0; /* in *to */

	for (uint32_t i = 0; i < work->sge_count; i++) {
		uint32_t done = 0, part;

		for (; done < from[i].length_bytes; done += part, at += part) {
			while (at == to->length_bytes) {
				to++;
				at = 0;
			}
			part = RBX_MIN(from[i].length_bytes - done,
				       to->length_bytes - at);
			copy((char *)(uintptr_t)to->addr + at,
			     (char *)(uintptr_t)from[i].addr + done, part);
		}
	}
}

static int32_t carry_send(struct plain_qp *qp, uint32_t number,
			  const struct plain_recv *recv)
{
	const struct plain_work *work = plain_work(qp, number);

	if (!plain_local_is_good(qp, number, 0))
		return -EFAULT;
	if (work->length_bytes > recv->length_bytes)
		return -EMSGSIZE;
	plain_earlier_halves(qp, number);
	if (work->flags & RBX_WR_INVALIDATE &&
	    !plain_key_end(qp->peer, work->immediate))
		return -EACCES;
	fill(qp, number);
	return 0;
}

static int32_t carry_write(struct plain_qp *qp, uint32_t number)
{
	int32_t status = plain_access(qp, number);

	if (status == 0)
		plain_earlier_halves(qp, number + 1); /* its own as well */
	return status;
}

int32_t plain_deliver(struct plain_qp *qp, uint32_t number)
{
	const struct plain_work *work = plain_work(qp, number);
	bool is_send = work->opcode == RBX_OP_SEND;
	struct plain_qp *peer = qp->peer;
	const struct plain_recv *recv = &peer->recvs[peer->recv_first];
	struct rbx_wc wc = {
		.qp = &peer->base,
		.opcode = is_send ? RBX_OP_RECV : RBX_OP_RECV_WRITE,
		.flags = (work->flags & RBX_WR_IMMEDIATE ? RBX_WC_IMMEDIATE :
							   0) |
			 (work->flags & RBX_WR_INVALIDATE ?
				  RBX_WC_INVALIDATED :
				  0),
		.length_bytes = work->length_bytes,
		.immediate = work->immediate,
	};
	int32_t status;

	if (peer->recv_count == 0)
		return -EAGAIN;
	if (rbx_sim_site(RBX_SIM_SITE_receiver_not_ready))
		return -ENOBUFS;
	status = is_send ? carry_send(qp, number, recv) :
			   carry_write(qp, number);
	if (status != 0)
		return status;
	wc.wr_id = recv->wr_id;
	peer->recv_first = (peer->recv_first + 1) % peer->recv_depth_count;
	peer->recv_count--;
	messages_count++;
	plain_cq_add(peer->base.recv_cq, &wc);
	return 0;
}
