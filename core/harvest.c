/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * harvest.c - what completions mean.
 *
 * Queue pairs complete in order. So a failed completion means that all before it is done, and
 * all after it will be flushed. Flushed members are sent again once the connection is
 * restored. Members of a merged work request that failed are sent again alone, because the
 * failure may be another member's (promise 1 of the design). A fragment that failed alone for
 * a reason of its own reports it: status.h says which reasons may pass. No fragment is sent
 * again more than RBX_RETRIES_MAX times. Flushes caused by another work request are counted
 * separately, up to RBX_FLUSHES_MAX. A fragment that must not be sent twice ends instead,
 * unless the device never had it.
 *
 * A key that the peer has taken back ends all that is sent with it: the members of the work
 * request that was refused, and what was flushed with it. What waits, or was flushed earlier,
 * ends when the channel is reopened (rbx_channel_send_again()).
 */
#include "core/harvest.h"

#include "core/status.h"

/* The status of a work request that the device did not take: flushed, and never tried. No
 * completion has this status. */
#define NOT_POSTED (-EAGAIN)

/* Whether a fragment that failed is sent once more; counts that. */
static bool go_again(struct rbx_fragment *fragment, int32_t status,
		     bool merged, bool by_another, bool was_posted)
{
	if (was_posted && fragment->flags & RBX_FRAGMENT_NO_RESEND)
		return false;
	if (by_another) {
		if (fragment->flushes_count == RBX_FLUSHES_MAX)
			return false;
		fragment->flushes_count++;
	} else {
		if (fragment->retries_count == RBX_RETRIES_MAX ||
		    !(merged || rbx_status_may_pass(status)))
			return false;
		fragment->retries_count++;
	}
	fragment->flags |= RBX_FRAGMENT_AGAIN;
	if (merged)
		fragment->flags |= RBX_FRAGMENT_ALONE;
	return true;
}

/* For the submitter: instead of a flush it sees that the peer cannot be reached. */
static int32_t final_status(int32_t status)
{
	return rbx_status_class(status) == RBX_STATUS_PATH &&
			       status != -ETIMEDOUT ?
		       -EHOSTUNREACH :
		       status;
}

/* Decides for each member of a failed work request: send it again, or end it. */
RBX_RARE static void reap_failed(struct rbx_channel *channel, struct rbx_work *work,
				 int32_t status, struct rbx_harvest *harvest)
{
	struct rbx_fragment *fragment = work->first, *next;
	bool was_posted = status != NOT_POSTED;
	bool flushed = status == -ECANCELED || !was_posted;
	/* Each ordered operation stands for itself, and a message has no key. */
	bool is_alone = work->direction == RBX_DIRECTION_ORDERED ||
			channel->keys_are_not_loans;
	bool key_ended = rbx_status_class(status) == RBX_STATUS_KEY && !is_alone;
	bool merged = work->member_count > 1 && !flushed && !key_ended;
	bool by_another = flushed && RBX_LOAD_RELAXED(&channel->failed);

	if (key_ended)
		rbx_channel_key_ended(channel, work->rkey);
	else if (flushed && !is_alone)
		key_ended = rbx_channel_key_has_ended(channel, work->rkey);
	if (key_ended)
		status = -EACCES;
	else if (flushed)
		status = -ECANCELED;
	for (; fragment; fragment = next) {
		next = rbx_fragment_next(fragment);
		if (!key_ended &&
		    go_again(fragment, status, merged, by_another,
			     was_posted)) {
			rbx_fragment_append(&harvest->again_first,
					    &harvest->again_last, fragment,
					    fragment);
		} else {
			fragment->status = final_status(status);
			rbx_fragment_append(&harvest->done_first,
					    &harvest->done_last, fragment,
					    fragment);
		}
	}
}

static inline void reap(struct rbx_channel *channel, struct rbx_work *work,
			int32_t status, struct rbx_harvest *harvest)
{
	if (work->staged)
		rbx_planner_finish(channel->planner, work, status == 0);
	harvest->work_requests++;
	harvest->bytes += work->length_bytes;
	if (status == 0) {
		harvest->good_bytes += work->length_bytes;
		rbx_fragment_append(&harvest->done_first, &harvest->done_last,
				    work->first, work->last);
	} else {
		reap_failed(channel, work, status, harvest);
	}
}

/*
 * The work requests from one on and before another are done. The sums and the end of the list
 * are local meanwhile, as most of a batch goes this way.
 */
static inline void reap_done(struct rbx_channel *channel,
			     const struct rbx_send_ring *ring, uint32_t at,
			     uint32_t before, struct rbx_harvest *harvest)
{
	const struct rbx_send_slots slots = rbx_send_ring_slots(ring);
	const uint32_t count = before - at;
	struct rbx_node head, *last = &head;
	uint64_t bytes = 0;

	do {
		struct rbx_work *work = rbx_send_slot(&slots, at);

		if (work->staged)
			rbx_planner_finish(channel->planner, work, true);
		bytes += work->length_bytes;
		last->next = &work->first->node;
		last = &work->last->node;
	} while (++at != before);
	harvest->work_requests += count;
	harvest->bytes += bytes;
	harvest->good_bytes += bytes;
	rbx_fragment_append(&harvest->done_first, &harvest->done_last,
			    rbx_fragment_of(head.next), rbx_fragment_of(last));
}

void rbx_channel_not_posted(struct rbx_channel *channel,
			    const struct rbx_chain *chain, uint32_t count,
			    struct rbx_harvest *harvest)
{
	struct rbx_send_ring *ring = &channel->rings[chain->ring_index];
	uint32_t end = chain->first_number + chain->work_count;

	RBX_ASSERT(count <= chain->work_count);
	RBX_ASSERT(ring->posted_count == end);
	for (uint32_t number = end - count; number != end; number++)
		reap(channel, rbx_send_ring_slot(ring, number), NOT_POSTED,
		     harvest);
	RBX_STORE_RELEASE(&ring->posted_count, end - count);
}

static inline void note_answer(struct rbx_send_ring *ring,
			       const struct rbx_work *work, uint64_t now_ns,
			       struct rbx_harvest *harvest)
{
	harvest->rtt_ns = RBX_MAX(harvest->rtt_ns, now_ns - work->posted_ns);
	RBX_STORE_RELAXED(&ring->answered_count, ring->answered_count + 1);
}

/* Pairs with the load in rbx_send_ring_used(): the slots are free. */
static inline void ring_free(struct rbx_send_ring *ring, uint32_t number)
{
	RBX_EXCHANGE(&ring->completed_count, number + 1);
}

/* All before a work request are done, and it is done or has failed. */
RBX_APART static void complete(struct rbx_channel *channel,
			       struct rbx_send_ring *ring, uint32_t number,
			       int32_t status, uint64_t now_ns,
			       struct rbx_harvest *harvest)
{
	struct rbx_work *last = rbx_send_ring_slot(ring, number);
	uint32_t at = ring->completed_count;

	if (status == 0)
		note_answer(ring, last, now_ns, harvest);
	else if (status != -ECANCELED)
		harvest->failed = true;
	if (status != 0 && rbx_status_class(status) != RBX_STATUS_PATH)
		RBX_STORE_RELAXED(&channel->failed, 1);
	if (at != number)
		reap_done(channel, ring, at, number, harvest);
	reap(channel, last, status, harvest);
	ring_free(ring, number);
}

void rbx_channel_complete(struct rbx_channel *channel, uint32_t ring_index,
			  uint32_t number, int32_t status, uint64_t now_ns,
			  struct rbx_harvest *harvest)
{
	struct rbx_send_ring *ring = &channel->rings[ring_index];
	struct rbx_work *work = rbx_send_ring_slot(ring, number);
	uint32_t at = ring->completed_count;

	RBX_ASSERT(ring_index < channel->ring_count);
	RBX_ASSERT(number - at < ring->depth_count);
	if (status != 0 || at != number || work->staged) {
		complete(channel, ring, number, status, now_ns, harvest);
		return;
	}
	/* A single one that is done, the usual case if requests come one at a time. */
	reap(channel, work, 0, harvest);
	note_answer(ring, work, now_ns, harvest);
	ring_free(ring, number);
}

void rbx_channel_complete_rest(struct rbx_channel *channel, uint32_t ring_index,
			       uint64_t now_ns, struct rbx_harvest *harvest)
{
	const struct rbx_send_ring *ring = &channel->rings[ring_index];

	if (rbx_send_ring_used(ring) != 0)
		rbx_channel_complete(channel, ring_index,
				     RBX_LOAD_RELAXED(&ring->posted_count) - 1,
				     0, now_ns, harvest);
}

void rbx_channel_abandon(struct rbx_channel *channel, uint32_t ring_index,
			 struct rbx_harvest *harvest)
{
	struct rbx_send_ring *ring = &channel->rings[ring_index];
	uint32_t end = RBX_LOAD_RELAXED(&ring->posted_count);
	uint32_t at = ring->completed_count;

	RBX_ASSERT(ring_index < channel->ring_count);
	RBX_ASSERT(end - at <= ring->depth_count);
	if (at == end)
		return;
	for (; at != end; at++)
		reap(channel, rbx_send_ring_slot(ring, at), -ECANCELED,
		     harvest);
	/* Pairs with the load in rbx_send_ring_used(): the slots are free. */
	RBX_EXCHANGE(&ring->completed_count, end);
}
