/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rpc_end.c - see rpc_end.h. */
#include "sim/scenarios/rpc_end.h"

#include "sim/scenarios/wires.h"

void rbx_rpc_end_open(struct rbx_rpc_end *end, struct rbx_device *device,
		      uint32_t out_bytes, uint32_t in_bytes, bool in_by_write)
{
	end->out = rbx_sim_wires_memory(device, out_bytes);
	end->in = rbx_sim_wires_memory(device, in_bytes);
	end->out_bytes = out_bytes;
	end->in_bytes = in_bytes;
	end->in_by_write = in_by_write;
}

static uint8_t *last_byte(const struct rbx_mr *mr, uint32_t bytes)
{
	return (uint8_t *)mr->addr + bytes - 1;
}

void rbx_rpc_send(struct rbx_rpc_end *end)
{
	struct rbx_rpc_line *line = end->line;
	struct rbx_sge sge = {
		.addr = (uintptr_t)end->out->addr,
		.length_bytes = end->out_bytes,
		.lkey = end->out->lkey,
	};
	struct rbx_wr wr = {
		.sges = &sge,
		.sge_count = 1,
		.opcode = end->mailbox ? RBX_OP_WRITE : RBX_OP_SEND,
	}, *bad;
	int err;

	*last_byte(end->out, end->out_bytes) = (uint8_t)++end->sent_count;
	if (end->mailbox) {
		wr.rkey = end->mailbox->rkey;
		wr.remote_addr = (uintptr_t)end->mailbox->addr;
	} else {
		line->under_way[line->sent_count++ % RBX_RPC_MACHINE_THREADS] =
			end->number;
	}
	if (end->out_bytes <= line->qp->max_inline_bytes)
		wr.flags |= RBX_WR_INLINE;
	if (end->sent_count % RBX_RPC_SIGNAL_EVERY == 0)
		wr.flags |= RBX_WR_SIGNALED;
	err = line->qp->device->ops->post_send(line->qp, &wr, &bad);
	RBX_ASSERT(!err);
}

bool rbx_rpc_take_mail(struct rbx_rpc_end *end)
{
	if (*last_byte(end->in, end->in_bytes) !=
	    (uint8_t)(end->received_count + 1))
		return false;
	end->received_count++;
	return true;
}

void rbx_rpc_post_recv(struct rbx_rpc_end *end)
{
	struct rbx_qp *qp = end->line->qp;
	const struct rbx_sge buffer = { (uintptr_t)end->in->addr, end->in_bytes,
					end->in->lkey };
	struct rbx_recv_wr wr = { .sges = &buffer, .sge_count = 1 }, *bad;
	int err = qp->device->ops->post_recv(qp, &wr, &bad);

	RBX_ASSERT(!err);
}

uint32_t rbx_rpc_take_recv(struct rbx_rpc_line *line)
{
	struct rbx_rpc_line *from = line->other;

	RBX_ASSERT(from->taken_count != from->sent_count);
	return from->under_way[from->taken_count++ % RBX_RPC_MACHINE_THREADS];
}
