/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fetch.c - how work requests come into the NIC, and whether they stay there.
 *
 * A work request that came with the doorbell is there at once. A chain is read by DMA,
 * several work requests at a time, one read after the other. Then they are in a cache of
 * lines until their completion. If a unit comes to one whose lines were evicted meanwhile, it
 * has to read it again, and so does the completion: this is the cost of posting more than the
 * NIC can hold.
 */
#include "sim/nic/qp.h"

#define LINE_BYTES 64u

static uint32_t line_count(const struct rbx_nic_op *op)
{
	return (op->wqe_bytes + LINE_BYTES - 1) / LINE_BYTES;
}

/* A slot of the ring always has the same lines. */
static uint64_t line_key(const struct rbx_nic_op *op, uint32_t line)
{
	uint32_t slot = op->number & op->qp->ops_mask;

	return (uint64_t)op->qp->number << 32 | slot << 8 | line;
}

bool rbx_nic_rings_whole(const struct rbx_nic_op *first)
{
	return first->chain_count == 1 &&
	       first->wqe_bytes <=
		       first->qp->device->params->write_combine_bytes_max;
}

/* The chain_count work requests from `first` on are in the NIC. */
static void arrived(struct rbx_sim_event *event)
{
	struct rbx_nic_op *first = rbx_nic_op_of(event);
	struct rbx_nic_qp *qp = first->qp;

	for (uint32_t i = 0; i < first->chain_count; i++) {
		struct rbx_nic_op *op = rbx_nic_qp_op(qp, first->number + i);

		op->state = RBX_NIC_OP_READY;
		for (uint32_t line = 0; line < line_count(op); line++)
			rbx_nic_cache_put(&qp->device->work_cache,
					  line_key(op, line));
	}
	/* They may have overtaken others that are still being read. */
	while (qp->ready != qp->posted &&
	       rbx_nic_qp_op(qp, qp->ready)->state == RBX_NIC_OP_READY)
		qp->ready++;
	rbx_nic_send(qp);
}

/* Reads the chain of a doorbell, as many at a time as fit. */
static void read_chain(struct rbx_sim_event *event)
{
	struct rbx_nic_op *chain = rbx_nic_op_of(event);
	struct rbx_nic_qp *qp = chain->qp;
	struct rbx_nic_span now = rbx_nic_span_at(rbx_nic_ps(rbx_sim_now()));
	uint32_t number = chain->number;
	uint32_t end = number + chain->chain_count;

	while (number != end) {
		struct rbx_nic_op *first = rbx_nic_qp_op(qp, number);
		uint32_t bytes = 0;

		for (; number != end; number++) {
			uint32_t more =
				line_count(rbx_nic_qp_op(qp, number)) *
				LINE_BYTES;

			if (bytes != 0 &&
			    bytes + more > qp->device->params->wqe_fetch_bytes)
				break;
			bytes += more;
		}
		first->chain_count = number - first->number;
		rbx_nic_op_at(
			first,
			rbx_nic_pcie_read(&qp->device->pcie, now, bytes).tail_ps,
			arrived);
	}
}

void rbx_nic_fetch(struct rbx_nic_op *first, uint64_t at_ps)
{
	rbx_nic_op_at(first, at_ps,
		      rbx_nic_rings_whole(first) ? arrived : read_chain);
}

uint64_t rbx_nic_find_work(struct rbx_nic_op *op, uint64_t at_ps)
{
	struct rbx_nic_device *device = op->qp->device;
	uint32_t missing = 0;

	for (uint32_t line = 0; line < line_count(op); line++) {
		if (!rbx_nic_cache_use(&device->work_cache,
				       line_key(op, line)))
			missing++;
	}
	if (missing == 0)
		return at_ps;
	return rbx_nic_pcie_fill(&device->pcie, at_ps, missing * LINE_BYTES);
}

void rbx_nic_forget_work(struct rbx_nic_op *op)
{
	for (uint32_t line = 0; line < line_count(op); line++)
		rbx_nic_cache_drop(&op->qp->device->work_cache,
				   line_key(op, line));
}
