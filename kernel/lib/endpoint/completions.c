/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * completions.c - completions of an endpoint: translated and reported.
 *
 * They are reported under poller.lock. Queues complete in order, so a completion means
 * that those before it have completed too; it frees all slots up to its own. Work
 * requests that the device never completed are reported when it cannot do so any more
 * (drain.h).
 *
 * If a completion failed, only its work request and status are valid.
 */
#include "kernel/lib/endpoint/paced.h"

/* What the slot holds must have been read: a thread that posts may use it again. */
static void slot_free(struct rbx_endpoint_ring *ring, uint32_t number)
{
	RBX_STORE_RELEASE(&ring->completed_count, number + 1);
}

/* ---- Operations -----------------------------------------------------------------*/

void rbx_endpoint_operation_end(struct rbx_endpoint_slot *slot, int status)
{
	struct rbx_endpoint *endpoint = slot->endpoint;
	const struct rbx_completion completion = {
		.endpoint = endpoint,
		.user = slot->user,
		.status = status,
		.kind = RBX_COMPLETION_POSTED,
	};
	bool is_told = status || !slot->is_silent;

	if (slot->ends)
		rbx_region_end_done(slot->ends, !status);
	if (endpoint->paced)
		rbx_paced_slot_give(slot);
	else
		slot_free(&endpoint->sends, slot->number);
	if (is_told)
		endpoint->completed(&completion);
}

void rbx_endpoint_operation_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rbx_endpoint_slot *slot =
		container_of(wc->wr_cqe, struct rbx_endpoint_slot, cqe);

	if (!slot->endpoint->is_over)
		rbx_endpoint_operation_end(slot, rbx_ib_status(wc->status));
}

/* ---- Receives -------------------------------------------------------------------*/

static void receive_end(struct rbx_endpoint_slot *slot, int status,
			const struct ib_wc *wc)
{
	struct rbx_endpoint *endpoint = slot->endpoint;
	struct rbx_completion completion = {
		.endpoint = endpoint,
		.user = slot->user,
		.status = status,
		.kind = RBX_COMPLETION_RECEIVED,
	};

	slot_free(&endpoint->receives, slot->number);
	if (!status) {
		if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
			completion.kind = RBX_COMPLETION_WRITTEN;
		completion.length_bytes = wc->byte_len;
		completion.has_immediate = wc->wc_flags & IB_WC_WITH_IMM;
		completion.has_invalidated = wc->wc_flags & IB_WC_WITH_INVALIDATE;
		if (completion.has_immediate)
			completion.immediate = be32_to_cpu(wc->ex.imm_data);
		if (completion.has_invalidated)
			completion.invalidated_key = wc->ex.invalidate_rkey;
	}
	if (completion.has_invalidated &&
	    !rbx_region_invalidated(endpoint, completion.invalidated_key)) {
		pr_warn_ratelimited("rdmabox: %s has ended a key that it has no right to end\n",
				    endpoint->name);
		rbx_endpoint_disconnect(endpoint);
	}
	endpoint->completed(&completion);
}

void rbx_endpoint_receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rbx_endpoint_slot *slot =
		container_of(wc->wr_cqe, struct rbx_endpoint_slot, cqe);

	if (!slot->endpoint->is_over)
		receive_end(slot, rbx_ib_status(wc->status), wc);
}

/* ---- The rest ------------------------------------------------------------------*/

static struct rbx_endpoint_slot *oldest(struct rbx_endpoint_ring *ring)
{
	return ring->completed_count == ring->posted_count ?
		       NULL :
		       &ring->slots[ring->completed_count & ring->mask];
}

void rbx_endpoint_complete_rest(struct rbx_endpoint *endpoint)
{
	struct rbx_endpoint_slot *slot;

	rbx_poller_lock(endpoint->poller);
	/* Bounded, as nothing is posted any more. (Paced operations are not in this
	 * ring.) */
	while ((slot = oldest(&endpoint->sends)))
		rbx_endpoint_operation_end(slot, -ECANCELED);
	while ((slot = oldest(&endpoint->receives)))
		receive_end(slot, -ECANCELED, NULL);
	rbx_poller_unlock(endpoint->poller);
}
