/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * late.c - maps memory for the device of a peer while it is posted there (late.h).
 *
 * The combiner maps the late entries of a chain before it posts the chain. Each is unmapped before
 * the fragments of its work request are done: by the poller when that has completed, or by the
 * thread that has destroyed the queue pair. So the CPU sees what was read as soon as a fragment is
 * done, and a device has nothing mapped once its queue pairs are destroyed. Memory that cannot be
 * mapped is not posted, which counts as a broken connection: it is tried again with the next one.
 *
 * What is mapped otherwise is mapped for the first device of its owner. So on another device all
 * entries are late.
 *
 * A mask for each slot of the ring says which entries of its work request are mapped. The combiner
 * sets it and counts it before the post; the poller clears it after the completion, of which the
 * device tells it later than that. Between them the slot is in nobody else's hands, as its work
 * request (core/send_ring.h).
 */
#include "kernel/lib/late.h"
#include "kernel/lib/peer/peer.h"

static enum dma_data_direction direction_of(const struct rbx_work *work)
{
	return work->direction == RBX_DIRECTION_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

static void entries_unmap(struct ib_device *device, const struct rbx_work *work, u32 mask)
{
	for (; mask; mask &= mask - 1) {
		const struct rbx_sge *sge = &work->sges[__ffs(mask)];

		ib_dma_unmap_single(device, sge->addr, sge->length_bytes, direction_of(work));
	}
}

/* Maps all that are late, or none. *mask: which are mapped now. 0, -ENOMEM. */
static int entries_map(struct ib_device *device, struct rbx_work *work, u32 *mask)
{
	u32 i;

	*mask = 0;
	for (i = 0; i < work->sge_count; i++) {
		struct rbx_sge *sge = &work->sges[i];
		u64 addr;

		if (likely(!rbx_addr_is_late(sge->addr)))
			continue;
		addr = ib_dma_map_single(device, rbx_late_memory(sge->addr), sge->length_bytes,
					 direction_of(work));
		if (ib_dma_mapping_error(device, addr)) {
			entries_unmap(device, work, *mask);
			return -ENOMEM;
		}
		sge->addr = addr;
		*mask |= 1u << i;
	}
	return 0;
}

uint32_t rbx_late_map(struct rbx_peer_qp *pair, const struct rbx_chain *chain)
{
	struct rbx_channel *channel = &pair->peer->channel;
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];
	const struct rbx_client *client = rbx_kernel_peer(pair->peer)->client;
	bool all_are_late = client != client->first;
	struct ib_device *device = client->ctx->device;
	struct rbx_late *late = &pair->late;
	u32 i;

	BUILD_BUG_ON(RBX_SGE_MAX > BITS_PER_TYPE(late->masks[0]));
	for (i = 0; i < chain->work_count; i++) {
		uint32_t number = chain->first_number + i;
		struct rbx_work *work = rbx_send_ring_slot(ring, number);
		u32 mask;

		if (entries_map(device, work, &mask))
			break;
		RBX_ASSERT(!all_are_late || hweight32(mask) == work->sge_count);
		if (likely(!mask))
			continue;
		RBX_ASSERT(!late->masks[number % RBX_SEND_DEPTH]);
		late->masks[number % RBX_SEND_DEPTH] = mask;
		WRITE_ONCE(late->posted_count, late->posted_count + 1);
	}
	return i;
}

/* Unmaps what is late of the work requests from one on and before another. Returns of how many
 * something was. */
static uint32_t unmap(struct rbx_peer_qp *pair, uint32_t at, uint32_t before)
{
	struct rbx_send_ring *ring = &pair->peer->channel.rings[pair->ring_index];
	uint32_t count = 0;

	for (; at != before; at++) {
		u32 *mask = &pair->late.masks[at % RBX_SEND_DEPTH];

		if (!*mask)
			continue;
		entries_unmap(pair->peer->ctx->device, rbx_send_ring_slot(ring, at), *mask);
		*mask = 0;
		count++;
	}
	return count;
}

void rbx_late_not_posted(struct rbx_peer_qp *pair, uint32_t at, uint32_t before)
{
	struct rbx_late *late = &pair->late;

	WRITE_ONCE(late->posted_count, late->posted_count - unmap(pair, at, before));
}

void rbx_late_unmap_until(struct rbx_peer_qp *pair, uint32_t before)
{
	struct rbx_send_ring *ring = &pair->peer->channel.rings[pair->ring_index];

	pair->late.ended_count += unmap(pair, ring->completed_count, before);
}

void rbx_late_unmap_rest(struct rbx_peer_qp *pair)
{
	struct rbx_send_ring *ring = &pair->peer->channel.rings[pair->ring_index];

	rbx_late_unmap_until(pair, RBX_LOAD_RELAXED(&ring->posted_count));
	RBX_ASSERT(pair->late.ended_count == pair->late.posted_count);
}
