/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * post.c - operations and receives: checked, translated, posted.
 *
 * All of a call is checked before the first is posted, so a bad one has no effect. Then
 * they are posted in chains, each with one doorbell.
 */
#include "lib/endpoint/paced.h"

/* One chain, translated. */
struct chain {
	struct rbx_wr wrs[RBX_CHAIN_MAX];
	struct rbx_sge sges[RBX_CHAIN_MAX * RBX_SGE_MAX];
	uint32_t sges_count;
};

/* ---- Segments -------------------------------------------------------------------*/

static int segment_key(const struct rbx_device_caps *caps,
		       const struct rbx_segment *segment, uint32_t *lkey)
{
	*lkey = caps->any_lkey;
	if (segment->region) {
		if (rbx_region_covers(segment->region, segment->addr,
				      segment->length_bytes, lkey))
			return 0;
		return rbx_error(-EFAULT, "%u bytes at %p are not in their region",
				 segment->length_bytes, segment->addr);
	}
	if (caps->has_any_lkey)
		return 0;
	return rbx_error(-EINVAL, "a segment names no region: %s needs one, from rbx_region_register()",
			 caps->name);
}

/* The CPU copies inline data. */
static int inline_check(const struct rbx_segment *segment)
{
	if (segment->region && rbx_region_is_dmabuf(segment->region))
		return rbx_error(-EINVAL, "inline data of a dmabuf, which the CPU cannot access");
	return 0;
}

static int segments_check(const struct rbx_device_caps *caps,
			  const struct rbx_segment *segments, uint32_t count,
			  uint32_t most, bool is_inline, uint64_t *length_bytes)
{
	uint32_t lkey;

	*length_bytes = 0;
	if (count > most)
		return rbx_error(-EINVAL, "%u segments: the endpoint's options allow %u",
				 count, most);
	if (count && !segments)
		return rbx_error(-EINVAL, "segments_count is %u, and segments is NULL: the list is missing",
				 count);
	for (uint32_t i = 0; i < count; i++) {
		int err = is_inline ? inline_check(&segments[i]) :
				      segment_key(caps, &segments[i], &lkey);

		if (err)
			return err;
		*length_bytes += segments[i].length_bytes;
	}
	if (*length_bytes > caps->max_message_bytes)
		return rbx_error(-EINVAL, "%llu bytes: %s carries %u at once",
				 (unsigned long long)*length_bytes, caps->name,
				 caps->max_message_bytes);
	return 0;
}

/* Translates segments that were checked. Empty ones are left out, as some devices refuse
 * them. */
static uint32_t segments_translate(const struct rbx_device_caps *caps,
				   const struct rbx_segment *segments,
				   uint32_t count, bool is_inline,
				   struct rbx_sge *sges)
{
	uint32_t used_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t lkey = 0;

		if (segments[i].length_bytes == 0)
			continue;
		if (!is_inline)
			(void)segment_key(caps, &segments[i], &lkey);
		sges[used_count++] = (struct rbx_sge){
			.addr = (uintptr_t)segments[i].addr,
			.length_bytes = segments[i].length_bytes,
			.lkey = lkey,
		};
	}
	return used_count;
}

/* ---- Operations -----------------------------------------------------------------*/

static bool is_atomic(const struct rbx_operation *operation)
{
	return operation->kind == RBX_OPERATION_COMPARE_SWAP ||
	       operation->kind == RBX_OPERATION_FETCH_ADD;
}

/* The flags that a kind of operation may have. */
static uint32_t flags_of(const struct rbx_endpoint *endpoint,
			 enum rbx_operation_kind kind)
{
	const uint32_t all = RBX_OPERATION_SILENT | RBX_OPERATION_FENCE |
			     (endpoint->paced ? RBX_OPERATION_URGENT : 0);

	if (kind == RBX_OPERATION_SEND)
		return all | RBX_OPERATION_INLINE | RBX_OPERATION_IMMEDIATE |
		       RBX_OPERATION_INVALIDATE;
	if (kind == RBX_OPERATION_WRITE)
		return all | RBX_OPERATION_INLINE | RBX_OPERATION_IMMEDIATE;
	return all;
}

/* flags: at least one, all not allowed. */
static int flags_refuse(enum rbx_operation_kind kind, uint32_t flags)
{
	static const char *const kinds[] = {
		[RBX_OPERATION_SEND] = "SEND",
		[RBX_OPERATION_WRITE] = "WRITE",
		[RBX_OPERATION_READ] = "READ",
		[RBX_OPERATION_COMPARE_SWAP] = "COMPARE_SWAP",
		[RBX_OPERATION_FETCH_ADD] = "FETCH_ADD",
	};
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ RBX_OPERATION_INLINE, "INLINE" },
		{ RBX_OPERATION_IMMEDIATE, "IMMEDIATE" },
		{ RBX_OPERATION_INVALIDATE, "INVALIDATE" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & names[i].flag)
			return rbx_error(-EINVAL, "RBX_OPERATION_%s is not possible with a %s",
					 names[i].name, kinds[kind]);
	if (flags & RBX_OPERATION_URGENT)
		return rbx_error(-EINVAL, "RBX_OPERATION_URGENT is only for a paced endpoint");
	return rbx_error(-EINVAL, "operations have no flag 0x%x", flags);
}

static int caps_check(const struct rbx_device_caps *caps,
		      const struct rbx_operation *operation)
{
	if ((operation->flags & RBX_OPERATION_IMMEDIATE) && !caps->has_immediate)
		return rbx_error(-EOPNOTSUPP, "%s has no immediates", caps->name);
	if ((operation->flags & RBX_OPERATION_INVALIDATE) && !caps->has_invalidate)
		return rbx_error(-EOPNOTSUPP, "%s has no RBX_OPERATION_INVALIDATE",
				 caps->name);
	if (is_atomic(operation) && !caps->has_atomics)
		return rbx_error(-EOPNOTSUPP, "%s has no atomics", caps->name);
	return 0;
}

static int flags_check(const struct rbx_endpoint *endpoint,
		       const struct rbx_operation *operation)
{
	const uint32_t both = RBX_OPERATION_IMMEDIATE | RBX_OPERATION_INVALIDATE;
	uint32_t wrong;

	if ((uint32_t)operation->kind > RBX_OPERATION_FETCH_ADD)
		return rbx_error(-EINVAL, "there is no operation %d",
				 (int)operation->kind);
	wrong = operation->flags & ~flags_of(endpoint, operation->kind);
	if (wrong)
		return flags_refuse(operation->kind, wrong);
	if (endpoint->exchanger &&
	    (operation->kind == RBX_OPERATION_SEND ||
	     (operation->flags & RBX_OPERATION_IMMEDIATE)))
		return rbx_error(-EINVAL, "the endpoint has exchanges: messages go over another endpoint");
	if ((operation->flags & both) == both)
		return rbx_error(-EINVAL, "RBX_OPERATION_IMMEDIATE and RBX_OPERATION_INVALIDATE exclude each other");
	return caps_check(&endpoint->qp->device->caps, operation);
}

static int operation_check(const struct rbx_endpoint *endpoint,
			   const struct rbx_operation *operation)
{
	bool is_inline = operation->flags & RBX_OPERATION_INLINE;
	uint64_t length_bytes;
	int err = flags_check(endpoint, operation);

	if (!err)
		err = segments_check(&endpoint->qp->device->caps,
				     operation->segments,
				     operation->segments_count,
				     endpoint->segments_max, is_inline,
				     &length_bytes);
	if (err)
		return err;
	if (endpoint->paced && length_bytes > RBX_FRAGMENT_BYTES_MAX)
		return rbx_error(-EINVAL, "%llu bytes: a paced endpoint carries %u at once",
				 (unsigned long long)length_bytes,
				 RBX_FRAGMENT_BYTES_MAX);
	if (is_inline && length_bytes > endpoint->qp->max_inline_bytes)
		return rbx_error(-EINVAL, "%llu bytes inline: the endpoint's options allow %u",
				 (unsigned long long)length_bytes,
				 endpoint->qp->max_inline_bytes);
	if (is_atomic(operation) &&
	    (length_bytes != 8 || operation->segments_count != 1 ||
	     operation->address % 8))
		return rbx_error(-EINVAL, "an atomic needs one segment of 8 bytes, and an address that is a multiple of 8");
	return 0;
}

void rbx_operation_translate(const struct rbx_endpoint *endpoint,
			     const struct rbx_operation *operation,
			     struct rbx_sge *sges, struct rbx_wr *wr)
{
	static const uint8_t opcodes[] = {
		[RBX_OPERATION_SEND] = RBX_OP_SEND,
		[RBX_OPERATION_WRITE] = RBX_OP_WRITE,
		[RBX_OPERATION_READ] = RBX_OP_READ,
		[RBX_OPERATION_COMPARE_SWAP] = RBX_OP_COMPARE_SWAP,
		[RBX_OPERATION_FETCH_ADD] = RBX_OP_FETCH_ADD,
	};
	uint32_t flags = operation->flags;
	bool is_inline = flags & RBX_OPERATION_INLINE;

	*wr = (struct rbx_wr){
		.sges = sges,
		.sge_count = segments_translate(&endpoint->qp->device->caps,
						operation->segments,
						operation->segments_count,
						is_inline, sges),
		.opcode = opcodes[operation->kind],
		.flags = (uint8_t)((flags & RBX_OPERATION_SILENT ?
					    0 : RBX_WR_SIGNALED) |
				   (is_inline ? RBX_WR_INLINE : 0) |
				   (flags & RBX_OPERATION_FENCE ?
					    RBX_WR_FENCE : 0) |
				   (flags & RBX_OPERATION_IMMEDIATE ?
					    RBX_WR_IMMEDIATE : 0) |
				   (flags & RBX_OPERATION_INVALIDATE ?
					    RBX_WR_INVALIDATE : 0)),
		.rkey = operation->key,
		.remote_addr = operation->address,
		.compare_add = operation->compare_add,
		.swap = operation->swap,
	};
	if (flags & RBX_OPERATION_IMMEDIATE)
		wr->immediate = operation->immediate;
	else if (flags & RBX_OPERATION_INVALIDATE)
		wr->invalidate_rkey = operation->invalidate_key;
}

/* ---- Rings ----------------------------------------------------------------------*/

/* Checks the count before the first is read: if the count is wrong, something else lies
 * behind the last one. */
static int count_check(unsigned int count, uint32_t depth_count)
{
	if (count <= depth_count)
		return 0;
	return rbx_error(-EAGAIN, "%u at once: at most %u at a time are possible",
			 count, depth_count);
}

int rbx_endpoint_room(const struct rbx_endpoint_ring *ring, unsigned int count)
{
	uint32_t outstanding_count =
		ring->posted_count - RBX_LOAD_ACQUIRE(&ring->completed_count);

	if (count <= ring->depth_count - outstanding_count)
		return 0;
	return rbx_error(-EAGAIN, "%u are outstanding, of %u at most: poll first",
			 outstanding_count, ring->depth_count);
}

uint32_t rbx_endpoint_slot_take(struct rbx_endpoint_ring *ring, void *user,
				bool is_silent)
{
	uint32_t number = ring->posted_count++;

	ring->slots[number & ring->mask] =
		(struct rbx_endpoint_slot){ user, is_silent, false };
	return number;
}

/* The device refused something although it should have had room. What it refused gets no
 * completion, so the connection cannot go on. */
static int device_failed(struct rbx_endpoint *endpoint,
			 struct rbx_endpoint_ring *ring, uint32_t missed_count,
			 int err)
{
	ring->posted_count -= missed_count;
	endpoint->qp->device->ops->disconnect(endpoint->qp);
	return rbx_error(-EIO, "the device refuses what is posted (%d)",
			 err);
}

/* ---- Posting --------------------------------------------------------------------*/

int rbx_endpoint_chain_post(struct rbx_endpoint *endpoint, struct rbx_wr *first,
			    uint32_t count)
{
	struct rbx_wr *bad = first;
	int err = endpoint->qp->device->ops->post_send(endpoint->qp, first, &bad);

	return err ? device_failed(endpoint, &endpoint->sends,
				   count - (uint32_t)(bad - first), err) :
		     0;
}

static int chain_post_locked(struct rbx_endpoint *endpoint,
			     const struct rbx_operation *operations,
			     uint32_t count)
{
	struct chain chain;

	chain.sges_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct rbx_wr *wr = &chain.wrs[i];

		rbx_operation_translate(endpoint, &operations[i],
					&chain.sges[chain.sges_count], wr);
		chain.sges_count += wr->sge_count;
		wr->wr_id = rbx_endpoint_slot_take(&endpoint->sends, operations[i].user,
				      operations[i].flags &
					      RBX_OPERATION_SILENT);
		endpoint->sends.slots[wr->wr_id & endpoint->sends.mask].is_of_exchange =
			operations[i].flags & RBX_OPERATION_OF_EXCHANGE;
		wr->next = i + 1 < count ? wr + 1 : NULL;
	}
	/* Otherwise the slots of silent operations would never become free. */
	chain.wrs[count - 1].flags |= RBX_WR_SIGNALED;
	return rbx_endpoint_chain_post(endpoint, chain.wrs, count);
}

/* A paced endpoint takes more operations than the device has room for. */
static uint32_t places_count(const struct rbx_endpoint *endpoint)
{
	return endpoint->paced ? rbx_paced_depth(endpoint) :
				 endpoint->sends.depth_count;
}

int rbx_endpoint_post_checked(struct rbx_endpoint *endpoint,
			      const struct rbx_operation *operations,
			      uint32_t count, uint32_t *taken_count)
{
	uint32_t done = 0, before;
	int err;

	if (endpoint->paced) {
		err = rbx_paced_post(endpoint, operations, count);
		*taken_count = err ? 0 : count;
		return err;
	}
	pthread_mutex_lock(&endpoint->post_lock);
	before = endpoint->sends.posted_count;
	err = rbx_endpoint_room(&endpoint->sends, count);
	while (done < count && !err) {
		uint32_t part = RBX_MIN(count - done, RBX_CHAIN_MAX);

		err = chain_post_locked(endpoint, &operations[done], part);
		done += part;
	}
	*taken_count = endpoint->sends.posted_count - before;
	pthread_mutex_unlock(&endpoint->post_lock);
	return err;
}

int rbx_endpoint_post(struct rbx_endpoint *endpoint,
		      const struct rbx_operation *operations,
		      unsigned int count)
{
	uint32_t taken_count;
	int err;

	if (!endpoint || (!operations && count))
		return rbx_error(-EINVAL, "rbx_endpoint_post: an endpoint and operations must be given");
	err = rbx_guard_use(endpoint->queue->ctx, "rbx_endpoint_post");
	if (!err)
		err = count_check(count, places_count(endpoint));
	for (unsigned int i = 0; i < count && !err; i++)
		err = operation_check(endpoint, &operations[i]);
	if (err)
		return err;
	return rbx_endpoint_post_checked(endpoint, operations, count, &taken_count);
}

int rbx_receives_check(const struct rbx_device_caps *caps,
		       const struct rbx_receive *receives, unsigned int count,
		       uint32_t segments_max, uint32_t depth_count)
{
	int err = count_check(count, depth_count);
	uint64_t length_bytes;

	for (unsigned int i = 0; i < count && !err; i++)
		err = segments_check(caps, receives[i].segments,
				     receives[i].segments_count, segments_max,
				     false, &length_bytes);
	return err;
}

void rbx_receive_chain_add(struct rbx_receive_chain *chain,
			   const struct rbx_device_caps *caps,
			   const struct rbx_receive *receive, uint64_t wr_id)
{
	struct rbx_recv_wr *wr = &chain->wrs[chain->count];

	*wr = (struct rbx_recv_wr){
		.wr_id = wr_id,
		.sges = &chain->sges[chain->sges_count],
	};
	wr->sge_count = segments_translate(caps, receive->segments,
					   receive->segments_count, false,
					   &chain->sges[chain->sges_count]);
	chain->sges_count += wr->sge_count;
	if (chain->count++)
		wr[-1].next = wr;
}

static int receives_post_locked(struct rbx_endpoint *endpoint,
				const struct rbx_receive *receives,
				uint32_t count)
{
	struct rbx_recv_wr *bad = NULL;
	struct rbx_receive_chain chain;
	int err;

	chain.count = chain.sges_count = 0;
	for (uint32_t i = 0; i < count; i++)
		rbx_receive_chain_add(&chain, &endpoint->qp->device->caps,
				      &receives[i],
				      RBX_ENDPOINT_RECEIVE_ID |
					      rbx_endpoint_slot_take(
						      &endpoint->receives,
						      receives[i].user, false));
	err = endpoint->qp->device->ops->post_recv(endpoint->qp, chain.wrs, &bad);
	return err ? device_failed(endpoint, &endpoint->receives,
				   count - (uint32_t)(bad - chain.wrs), err) :
		     0;
}

int rbx_endpoint_receive_checked(struct rbx_endpoint *endpoint,
				 const struct rbx_receive *receives,
				 uint32_t count)
{
	uint32_t done = 0;
	int err;

	pthread_mutex_lock(&endpoint->post_lock);
	err = rbx_endpoint_room(&endpoint->receives, count);
	while (done < count && !err) {
		uint32_t part = RBX_MIN(count - done, RBX_CHAIN_MAX);

		err = receives_post_locked(endpoint, &receives[done], part);
		done += part;
	}
	pthread_mutex_unlock(&endpoint->post_lock);
	return err;
}

int rbx_endpoint_receive(struct rbx_endpoint *endpoint,
			 const struct rbx_receive *receives, unsigned int count)
{
	int err;

	if (!endpoint || (!receives && count))
		return rbx_error(-EINVAL, "rbx_endpoint_receive: an endpoint and receives must be given");
	if (endpoint->shared)
		return rbx_error(-EINVAL, "the endpoint has shared receives: rbx_shared_receives_post()");
	if (endpoint->exchanger)
		return rbx_error(-EINVAL, "the endpoint has exchanges: messages go over another endpoint");
	err = rbx_guard_use(endpoint->queue->ctx, "rbx_endpoint_receive");
	if (!err)
		err = rbx_receives_check(&endpoint->qp->device->caps, receives,
					 count, endpoint->receive_segments_max,
					 endpoint->receives.depth_count);
	return err ? err : rbx_endpoint_receive_checked(endpoint, receives, count);
}
