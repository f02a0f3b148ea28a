/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post.c - operations and receives: checked, translated, posted.
 *
 * All of a call is checked before the first is posted, so a bad one has no effect. Each
 * is translated into the work request of its slot, where it stays. Then all are posted
 * with one doorbell.
 */
#include <linux/module.h>

#include "kernel/lib/endpoint/paced.h"

/* ---- Checking -----------------------------------------------------------------------*/

static bool is_atomic(const struct rbx_operation *operation)
{
	return operation->kind == RBX_OPERATION_COMPARE_SWAP ||
	       operation->kind == RBX_OPERATION_FETCH_ADD;
}

static bool is_of_region(const struct rbx_operation *operation)
{
	return operation->kind == RBX_OPERATION_EXPORT ||
	       operation->kind == RBX_OPERATION_END_EXPORT;
}

/* The flags that a kind of operation may have. */
static uint32_t flags_of(const struct rbx_endpoint *endpoint,
			 enum rbx_operation_kind kind)
{
	const uint32_t all = RBX_OPERATION_SILENT | RBX_OPERATION_FENCE |
			     (endpoint->paced ? RBX_OPERATION_URGENT : 0);

	if (kind == RBX_OPERATION_SEND)
		return all | RBX_OPERATION_IMMEDIATE | RBX_OPERATION_INVALIDATE;
	if (kind == RBX_OPERATION_WRITE)
		return all | RBX_OPERATION_IMMEDIATE;
	return all;
}

static int flags_check(const struct rbx_endpoint *endpoint,
		       const struct rbx_operation *operation)
{
	const struct rbx_endpoint_limits *limits = &endpoint->domain->limits;
	const uint32_t both = RBX_OPERATION_IMMEDIATE | RBX_OPERATION_INVALIDATE;
	uint32_t flags = operation->flags;

	if ((uint32_t)operation->kind > RBX_OPERATION_END_EXPORT ||
	    (flags & ~flags_of(endpoint, operation->kind)) || (flags & both) == both)
		return -EINVAL;
	if (((flags & RBX_OPERATION_INVALIDATE) && !limits->has_invalidate) ||
	    (is_atomic(operation) && !limits->has_atomics))
		return -EOPNOTSUPP;
	return 0;
}

static int segments_check(const struct rbx_endpoint *endpoint,
			  const struct rbx_segment *segments, uint32_t count,
			  uint32_t most, uint64_t *length_bytes)
{
	uint32_t i;

	*length_bytes = 0;
	if (count > most || (count && !segments))
		return -EINVAL;
	for (i = 0; i < count; i++)
		*length_bytes += segments[i].length_bytes;
	return *length_bytes > endpoint->domain->limits.message_bytes_max ?
		       -EINVAL :
		       0;
}

static int operation_check(const struct rbx_endpoint *endpoint,
			   const struct rbx_operation *operation)
{
	uint64_t length_bytes;
	int err = flags_check(endpoint, operation);

	if (!err)
		err = segments_check(endpoint, operation->segments,
				     operation->segments_count,
				     endpoint->sends.segments_max,
				     &length_bytes);
	if (err)
		return err;
	if (endpoint->paced && length_bytes > RBX_FRAGMENT_BYTES_MAX)
		return -EINVAL;
	if (is_atomic(operation) &&
	    (length_bytes != 8 || operation->segments_count != 1 ||
	     operation->address % 8))
		return -EINVAL;
	return is_of_region(operation) && operation->segments_count ? -EINVAL : 0;
}

/* ---- Rings ----------------------------------------------------------------------*/

/* Checks the count before the first is read: if the count is wrong, something else lies
 * behind the last one. */
static int count_check(const struct rbx_endpoint_ring *ring, uint32_t count)
{
	return count <= ring->depth_count ? 0 : -EAGAIN;
}

static int room_check_locked(struct rbx_endpoint *endpoint,
			     const struct rbx_endpoint_ring *ring, uint32_t count)
{
	uint32_t outstanding_count =
		ring->posted_count - RBX_LOAD_ACQUIRE(&ring->completed_count);

	lockdep_assert_held(&endpoint->post_lock);
	if (endpoint->is_closed)
		return -ENOTCONN;
	return count <= ring->depth_count - outstanding_count ? 0 : -EAGAIN;
}

/* It is counted when it is posted. */
static struct rbx_endpoint_slot *slot_of(struct rbx_endpoint_ring *ring,
					 uint32_t index)
{
	uint32_t number = ring->posted_count + index;
	struct rbx_endpoint_slot *slot = &ring->slots[number & ring->mask];

	slot->number = number;
	return slot;
}

/* Empty segments are left out, as some devices refuse them. */
static struct ib_sge *segments_translate(const struct rbx_endpoint_ring *ring,
					 const struct rbx_endpoint_slot *slot,
					 const struct rbx_segment *segments,
					 uint32_t count, int *used_count)
{
	struct ib_sge *sges =
		&ring->sges[(slot->number & ring->mask) * ring->segments_max];
	uint32_t lkey = slot->endpoint->domain->pd->local_dma_lkey;
	uint32_t i;

	*used_count = 0;
	for (i = 0; i < count; i++)
		if (segments[i].length_bytes)
			sges[(*used_count)++] = (struct ib_sge){
				.addr = segments[i].address,
				.length = segments[i].length_bytes,
				.lkey = lkey,
			};
	return sges;
}

/*
 * The device refused something although it should have had room. What it refused gets no
 * completion, so the connection cannot go on. A region of a refused operation counts as
 * exported, so it is deregistered.
 */
static int device_failed(struct rbx_endpoint *endpoint, int err)
{
	pr_warn_ratelimited("rdmabox: %s: the device refuses what is posted (%d)\n",
			    endpoint->name, err);
	rbx_endpoint_disconnect(endpoint);
	return -EIO;
}

/* ---- Operations -----------------------------------------------------------------*/

static enum ib_wr_opcode opcode_of(const struct rbx_operation *operation)
{
	uint32_t flags = operation->flags;

	switch (operation->kind) {
	case RBX_OPERATION_SEND:
		return flags & RBX_OPERATION_IMMEDIATE	? IB_WR_SEND_WITH_IMM :
		       flags & RBX_OPERATION_INVALIDATE ? IB_WR_SEND_WITH_INV :
							  IB_WR_SEND;
	case RBX_OPERATION_WRITE:
		return flags & RBX_OPERATION_IMMEDIATE ?
			       IB_WR_RDMA_WRITE_WITH_IMM :
			       IB_WR_RDMA_WRITE;
	case RBX_OPERATION_READ:
		return IB_WR_RDMA_READ;
	case RBX_OPERATION_COMPARE_SWAP:
		return IB_WR_ATOMIC_CMP_AND_SWP;
	case RBX_OPERATION_FETCH_ADD:
		return IB_WR_ATOMIC_FETCH_AND_ADD;
	case RBX_OPERATION_EXPORT:
		return IB_WR_REG_MR;
	default: /* END_EXPORT, the only other one */
		return IB_WR_LOCAL_INV;
	}
}

/* Sets what only this opcode needs. */
static void operation_specify(const struct rbx_operation *operation,
			      struct rbx_endpoint_slot *slot)
{
	struct ib_send_wr *wr = &slot->wr.send;

	switch (operation->kind) {
	case RBX_OPERATION_WRITE:
	case RBX_OPERATION_READ:
		slot->wr.rdma.remote_addr = operation->address;
		slot->wr.rdma.rkey = operation->key;
		break;
	case RBX_OPERATION_COMPARE_SWAP:
	case RBX_OPERATION_FETCH_ADD:
		slot->wr.atomic.remote_addr = operation->address;
		slot->wr.atomic.rkey = operation->key;
		slot->wr.atomic.compare_add = operation->compare_add;
		slot->wr.atomic.swap = operation->swap;
		break;
	case RBX_OPERATION_EXPORT:
		slot->wr.reg.mr = operation->region->mr;
		slot->wr.reg.key = operation->region->mr->rkey;
		slot->wr.reg.access =
			(int)rbx_region_access(operation->region->rights);
		break;
	case RBX_OPERATION_END_EXPORT:
		wr->ex.invalidate_rkey = operation->region->mr->rkey;
		slot->ends = operation->region;
		/* Its completion is needed even if it is not reported. */
		wr->send_flags |= IB_SEND_SIGNALED;
		break;
	default:
		break;
	}
	if (operation->flags & RBX_OPERATION_IMMEDIATE)
		wr->ex.imm_data = cpu_to_be32(operation->immediate);
	else if (operation->flags & RBX_OPERATION_INVALIDATE)
		wr->ex.invalidate_rkey = operation->invalidate_key;
}

void rbx_operation_translate(const struct rbx_operation *operation,
			     struct rbx_endpoint_slot *slot)
{
	const struct rbx_endpoint_ring *ring = &slot->endpoint->sends;
	struct ib_send_wr *wr = &slot->wr.send;

	memset(&slot->wr, 0, sizeof(slot->wr));
	slot->user = operation->user;
	slot->is_silent = operation->flags & RBX_OPERATION_SILENT;
	slot->ends = NULL;
	wr->wr_cqe = &slot->cqe;
	wr->sg_list = segments_translate(ring, slot, operation->segments,
					 operation->segments_count,
					 &wr->num_sge);
	wr->opcode = opcode_of(operation);
	wr->send_flags = (slot->is_silent ? 0 : IB_SEND_SIGNALED) |
			 (operation->flags & RBX_OPERATION_FENCE ?
				  IB_SEND_FENCE : 0);
	operation_specify(operation, slot);
}

/* The device did not take these, so the regions stay exported. */
static void ends_move_back_locked(const struct rbx_endpoint *endpoint,
				  const struct rbx_operation *operations,
				  uint32_t count)
{
	uint32_t i;

	lockdep_assert_held(&endpoint->post_lock);
	for (i = 0; i < count; i++)
		if (operations[i].kind == RBX_OPERATION_END_EXPORT)
			rbx_region_move_back_locked(&operations[i]);
}

/* Moves the regions of all operations, or none. */
static int regions_move_locked(const struct rbx_endpoint *endpoint,
			       const struct rbx_operation *operations,
			       uint32_t count)
{
	uint32_t i;
	int err = 0;

	lockdep_assert_held(&endpoint->post_lock);
	for (i = 0; i < count && !err; i++)
		if (is_of_region(&operations[i]))
			err = rbx_region_move_locked(endpoint, &operations[i]);
	if (!err)
		return 0;
	/* Moves back, in reverse order, all but the one that failed. */
	for (i--; i--;)
		if (is_of_region(&operations[i]))
			rbx_region_move_back_locked(&operations[i]);
	return err;
}

static int operations_post_locked(struct rbx_endpoint *endpoint,
				  const struct rbx_operation *operations,
				  uint32_t count)
{
	struct rbx_endpoint_ring *ring = &endpoint->sends;
	struct rbx_endpoint_slot *slot = NULL;
	struct ib_send_wr **link, *first;
	const struct ib_send_wr *bad;
	uint32_t i, taken_count = count;
	int err;

	lockdep_assert_held(&endpoint->post_lock);
	link = &first;
	for (i = 0; i < count; i++) {
		slot = slot_of(ring, i);
		rbx_operation_translate(&operations[i], slot);
		*link = &slot->wr.send;
		link = &slot->wr.send.next;
	}
	/* Otherwise the slots of silent operations would never become free. */
	slot->wr.send.send_flags |= IB_SEND_SIGNALED;
	bad = first;
	err = ib_post_send(endpoint->conn.id->qp, first, &bad);
	if (err)
		taken_count = container_of(bad, struct rbx_endpoint_slot, wr.send)->number -
			      ring->posted_count;
	ring->posted_count += taken_count;
	ends_move_back_locked(endpoint, &operations[taken_count],
			      count - taken_count);
	return err ? device_failed(endpoint, err) : 0;
}

int rbx_endpoint_post(struct rbx_endpoint *endpoint,
		      const struct rbx_operation *operations, u32 count)
{
	struct rbx_channel *channel = NULL;
	unsigned long flags;
	uint32_t i;
	int err = count_check(&endpoint->sends, count);

	for (i = 0; i < count && !err; i++)
		err = operation_check(endpoint, &operations[i]);
	if (err || !count)
		return err;
	spin_lock_irqsave(&endpoint->post_lock, flags);
	err = room_check_locked(endpoint, &endpoint->sends, count);
	if (!err && endpoint->paced && !rbx_paced_has_room_locked(endpoint, count))
		err = -EAGAIN;
	if (!err)
		err = regions_move_locked(endpoint, operations, count);
	if (!err && endpoint->paced)
		channel = rbx_paced_submit_locked(endpoint, operations, count);
	else if (!err)
		err = operations_post_locked(endpoint, operations, count);
	spin_unlock_irqrestore(&endpoint->post_lock, flags);
	if (channel)
		rbx_paced_combine(channel);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_post);

/* ---- Receives -------------------------------------------------------------------*/

static int receives_post_locked(struct rbx_endpoint *endpoint,
				const struct rbx_receive *receives, uint32_t count)
{
	struct rbx_endpoint_ring *ring = &endpoint->receives;
	struct ib_recv_wr **link, *first;
	const struct ib_recv_wr *bad;
	uint32_t i;
	int err;

	lockdep_assert_held(&endpoint->post_lock);
	link = &first;
	for (i = 0; i < count; i++) {
		struct rbx_endpoint_slot *slot = slot_of(ring, i);
		struct ib_recv_wr *wr = &slot->wr.receive;

		slot->user = receives[i].user;
		*wr = (struct ib_recv_wr){ .wr_cqe = &slot->cqe };
		wr->sg_list = segments_translate(ring, slot,
						 receives[i].segments,
						 receives[i].segments_count,
						 &wr->num_sge);
		*link = wr;
		link = &wr->next;
	}
	bad = first;
	err = ib_post_recv(endpoint->conn.id->qp, first, &bad);
	if (err)
		count = container_of(bad, struct rbx_endpoint_slot, wr.receive)->number -
			ring->posted_count;
	ring->posted_count += count;
	return err ? device_failed(endpoint, err) : 0;
}

int rbx_endpoint_receive(struct rbx_endpoint *endpoint,
			 const struct rbx_receive *receives, u32 count)
{
	uint64_t length_bytes;
	unsigned long flags;
	uint32_t i;
	int err = count_check(&endpoint->receives, count);

	for (i = 0; i < count && !err; i++)
		err = segments_check(endpoint, receives[i].segments,
				     receives[i].segments_count,
				     endpoint->receives.segments_max,
				     &length_bytes);
	if (err || !count)
		return err;
	spin_lock_irqsave(&endpoint->post_lock, flags);
	err = room_check_locked(endpoint, &endpoint->receives, count);
	if (!err)
		err = receives_post_locked(endpoint, receives, count);
	spin_unlock_irqrestore(&endpoint->post_lock, flags);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_receive);
