/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel.c - combining, parking, and what completions mean.
 *
 * Parking. The combiner writes down what it waits for in local variables, sets
 * `parked`, and then looks at the cause once more. Whoever removes a cause
 * (gives credit, frees a slot or staging memory, changes the state) does so
 * first and looks at `parked` afterwards. Both sides use operations of one
 * total order, so at least one of them sees the other: either the combiner
 * finds that it can go on, or the other side finds it parked. Where both do,
 * the exchange of `parked` gives the role to one of them. After setting
 * `parked` the combiner must not touch its own fields until it has won that
 * exchange, hence the local variables.
 *
 * Failure. Queue pairs complete in order, so a failed completion says that all
 * before it is done, and everything after it will be flushed. Flushed members
 * are sent again once the connection is restored; members of a merged work
 * request that failed are sent again alone, because the failure may be another
 * member's (promise 1 of the design). What failed alone for a reason of its own
 * reports it. Nothing is sent more often than RBX_RETRIES_MAX times.
 */
#include "core/channel.h"

/* Why the combiner cannot go on. */
enum cause {
	CAUSE_NONE,
	CAUSE_WINDOW,
	CAUSE_RING,
	CAUSE_STAGING,
	CAUSE_FENCE,
	CAUSE_HALTED,
};

struct obstacle {
	enum cause cause;
	uint32_t bytes; /* of the work request that waits */
};

void rbx_channel_init(struct rbx_channel *channel,
		      const struct rbx_planner *planner,
		      struct rbx_window *window)
{
	rbx_port_fill(channel, 0, sizeof(*channel));
	rbx_submit_queue_init(&channel->submit_queue);
	rbx_merge_queue_init(&channel->merge_queue);
	channel->planner = planner;
	channel->window = window;
	channel->state = RBX_CHANNEL_OPEN;
}

void rbx_channel_add_ring(struct rbx_channel *channel, struct rbx_work *works,
			  uint32_t depth_count)
{
	RBX_ASSERT(channel->ring_count < RBX_QUEUE_PAIRS_MAX);
	rbx_send_ring_init(&channel->rings[channel->ring_count++], works,
			   depth_count);
}

bool rbx_channel_idle(const struct rbx_channel *channel)
{
	for (uint32_t i = 0; i < channel->ring_count; i++) {
		if (rbx_send_ring_used(&channel->rings[i]) != 0)
			return false;
	}
	return true;
}

static bool some_ring_has_room(const struct rbx_channel *channel)
{
	for (uint32_t i = 0; i < channel->ring_count; i++) {
		if (rbx_send_ring_used(&channel->rings[i]) <
		    channel->rings[i].depth_count)
			return true;
	}
	return false;
}

static bool staging_has_room(const struct rbx_channel *channel, uint32_t bytes)
{
	struct rbx_staging *staging = channel->planner->staging;
	int32_t block = rbx_staging_take(staging, bytes);

	if (block < 0)
		return false;
	rbx_staging_give(staging, (uint32_t)block, bytes);
	return true;
}

/* Whether the obstacle is gone. Looks only at what any thread may look at. */
static bool removed(const struct rbx_channel *channel,
		    const struct obstacle *obstacle)
{
	switch (obstacle->cause) {
	case CAUSE_WINDOW:
		return rbx_window_has_room(channel->window, obstacle->bytes);
	case CAUSE_RING:
		return some_ring_has_room(channel);
	case CAUSE_STAGING:
		return staging_has_room(channel, obstacle->bytes);
	case CAUSE_FENCE:
		return rbx_channel_idle(channel);
	case CAUSE_HALTED:
		return RBX_LOAD_ORDERED(&channel->state) != RBX_CHANNEL_HALTED;
	case CAUSE_NONE:
		break;
	}
	return true;
}

/* True: the caller is still, or again, the combiner. See the file head. */
static bool park(struct rbx_channel *channel, const struct obstacle *obstacle)
{
	RBX_EXCHANGE(&channel->parked, 1);
	return removed(channel, obstacle) &&
	       RBX_EXCHANGE(&channel->parked, 0) != 0;
}

/* The next ring in turn that has room, or NULL. */
static struct rbx_send_ring *pick_ring(struct rbx_channel *channel,
				       uint32_t *index)
{
	for (uint32_t i = 0; i < channel->ring_count; i++) {
		uint32_t at = (channel->next_ring + i) % channel->ring_count;

		if (rbx_send_ring_used(&channel->rings[at]) <
		    channel->rings[at].depth_count) {
			channel->next_ring = at + 1;
			*index = at;
			return &channel->rings[at];
		}
	}
	return NULL;
}

/* A counter that the combiner alone writes, and anybody reads. */
static void count(uint64_t *counter, uint64_t value)
{
	RBX_STORE_RELAXED(counter, *counter + value);
}

/* Plans one work request into `work` and pays for it. */
static enum cause plan_work(struct rbx_channel *channel, struct rbx_work *work,
			    uint64_t now_ns)
{
	if (!rbx_window_take(channel->window, work->length_bytes)) {
		count(&channel->counters.window_waits, 1);
		return CAUSE_WINDOW;
	}
	if (rbx_planner_commit(channel->planner, &channel->merge_queue, work)) {
		rbx_window_give(channel->window, 1, work->length_bytes);
		return CAUSE_STAGING;
	}
	work->posted_ns = now_ns;
	count(&channel->counters.work_requests, 1);
	count(&channel->counters.merged_requests, work->member_count - 1);
	if (work->staging_block != RBX_NOT_STAGED)
		count(&channel->counters.staged_bytes, work->length_bytes);
	return CAUSE_NONE;
}

/* Plans a chain; says in `obstacle` what ended it before the queue did. */
static void plan_chain(struct rbx_channel *channel, uint64_t now_ns,
		       struct rbx_chain *chain, struct obstacle *obstacle)
{
	struct rbx_send_ring *ring = pick_ring(channel, &chain->ring_index);
	uint32_t room;

	if (ring == NULL) {
		obstacle->cause = CAUSE_RING;
		return;
	}
	room = RBX_MIN(ring->depth_count - rbx_send_ring_used(ring),
		       channel->planner->chain_max);
	chain->first_number = ring->posted_count;
	while (chain->work_count < room) {
		struct rbx_work *work = rbx_send_ring_slot(
			ring, chain->first_number + chain->work_count);

		if (!rbx_planner_next(channel->planner, &channel->merge_queue,
				      work))
			break;
		obstacle->bytes = work->length_bytes;
		obstacle->cause = plan_work(channel, work, now_ns);
		if (obstacle->cause != CAUSE_NONE)
			break;
		chain->work_count++;
	}
	count(&channel->counters.doorbells, chain->work_count != 0);
	RBX_STORE_RELEASE(&ring->posted_count,
			  chain->first_number + chain->work_count);
}

static bool unfenced_empty(const struct rbx_merge_queue *queue)
{
	return queue->first[RBX_DIRECTION_READ] == NULL &&
	       queue->first[RBX_DIRECTION_WRITE] == NULL;
}

/* True: `chain` has something for the host. */
static bool plan(struct rbx_channel *channel, uint64_t now_ns,
		 struct rbx_chain *chain, struct obstacle *obstacle)
{
	struct rbx_merge_queue *queue = &channel->merge_queue;
	uint32_t state = RBX_LOAD_ACQUIRE(&channel->state);

	if (state == RBX_CHANNEL_DEAD) {
		chain->refused = rbx_merge_queue_clear(queue);
		return chain->refused != NULL;
	}
	if (rbx_merge_queue_empty(queue))
		return false;
	if (state == RBX_CHANNEL_HALTED) {
		obstacle->cause = CAUSE_HALTED;
		return false;
	}
	if (unfenced_empty(queue)) {
		if (!rbx_channel_idle(channel)) {
			obstacle->cause = CAUSE_FENCE;
			return false;
		}
		rbx_merge_queue_pass_fence(queue);
	}
	plan_chain(channel, now_ns, chain, obstacle);
	return chain->work_count != 0;
}

bool rbx_channel_combine(struct rbx_channel *channel, uint64_t now_ns,
			 struct rbx_chain *chain)
{
	for (;;) {
		struct obstacle obstacle = { .cause = CAUSE_NONE };

		chain->work_count = 0;
		chain->refused = NULL;
		rbx_merge_queue_add(
			&channel->merge_queue,
			rbx_submit_queue_take(&channel->submit_queue));
		if (plan(channel, now_ns, chain, &obstacle))
			return true;
		if (obstacle.cause == CAUSE_NONE) {
			if (rbx_submit_queue_leave(&channel->submit_queue))
				return false;
		} else if (!park(channel, &obstacle)) {
			return false;
		}
	}
}

static void append(struct rbx_fragment **first, struct rbx_fragment **last,
		   struct rbx_fragment *fragment)
{
	fragment->node.next = NULL;
	if (*first == NULL)
		*first = fragment;
	else
		(*last)->node.next = &fragment->node;
	*last = fragment;
}

/* A failure of the way to the peer, not of the request. */
static bool is_of_connection(int32_t status)
{
	return status == -ECANCELED || status == -EHOSTUNREACH ||
	       status == -EREMOTEIO || status == -ETIMEDOUT;
}

/* Whether a fragment that ended with this status may be sent once more. */
static bool may_go_again(const struct rbx_fragment *fragment, int32_t status,
			 bool was_merged)
{
	if (fragment->retries_count == RBX_RETRIES_MAX)
		return false;
	return was_merged || is_of_connection(status);
}

/* For who asked: a flush is not of interest, the peer out of reach is. */
static int32_t final_status(int32_t status)
{
	return is_of_connection(status) && status != -ETIMEDOUT ?
		       -EHOSTUNREACH :
		       status;
}

/* Sorts the members of a work request that has ended. */
static void reap_members(struct rbx_work *work, int32_t status,
			 struct rbx_harvest *harvest)
{
	struct rbx_fragment *fragment = work->first;
	bool merged_failure = work->member_count > 1 && status != 0 &&
			      status != -ECANCELED;

	while (fragment != NULL) {
		struct rbx_node *next = fragment->node.next;

		fragment->status = final_status(status);
		if (status != 0 &&
		    may_go_again(fragment, status, merged_failure)) {
			fragment->retries_count++;
			fragment->flags |= RBX_FRAGMENT_AGAIN;
			if (merged_failure)
				fragment->flags |= RBX_FRAGMENT_ALONE;
			append(&harvest->again_first, &harvest->again_last,
			       fragment);
		} else {
			append(&harvest->done_first, &harvest->done_last,
			       fragment);
		}
		fragment = next ? rbx_fragment_of(next) : NULL;
	}
}

static void reap_work(struct rbx_channel *channel, struct rbx_work *work,
		      int32_t status, struct rbx_harvest *harvest)
{
	rbx_planner_finish(channel->planner, work, status == 0);
	harvest->work_requests++;
	harvest->bytes += work->length_bytes;
	if (status != 0)
		harvest->broken = true;
	reap_members(work, status, harvest);
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
		reap_work(channel, rbx_send_ring_slot(ring, number), -ECANCELED,
			  harvest);
	RBX_STORE_RELEASE(&ring->posted_count, end - count);
}

void rbx_channel_complete(struct rbx_channel *channel, uint32_t ring_index,
			  uint32_t number, int32_t status, uint64_t now_ns,
			  struct rbx_harvest *harvest)
{
	struct rbx_send_ring *ring = &channel->rings[ring_index];
	struct rbx_work *last = rbx_send_ring_slot(ring, number);
	uint32_t at = ring->completed_count;

	RBX_ASSERT(ring_index < channel->ring_count);
	RBX_ASSERT(number - at < ring->depth_count);
	if (status == 0)
		rbx_window_on_complete(channel->window,
				       now_ns - last->posted_ns,
				       last->length_bytes);
	else
		rbx_window_on_error(channel->window);
	for (; at != number; at++)
		reap_work(channel, rbx_send_ring_slot(ring, at), 0, harvest);
	reap_work(channel, last, status, harvest);
	/* Pairs with the load in rbx_send_ring_used(): the slots are free. */
	RBX_EXCHANGE(&ring->completed_count, number + 1);
}

void rbx_channel_set_state(struct rbx_channel *channel,
			   enum rbx_channel_state state)
{
	RBX_ASSERT(channel->state != RBX_CHANNEL_DEAD);
	RBX_ASSERT(channel->state != state);
	RBX_EXCHANGE(&channel->state, (uint32_t)state);
}

bool rbx_channel_seize(struct rbx_channel *channel)
{
	return rbx_channel_unpark(channel) ||
	       rbx_submit_queue_claim(&channel->submit_queue);
}

void rbx_channel_send_again(struct rbx_channel *channel,
			    struct rbx_fragment *list)
{
	if (list != NULL)
		rbx_merge_queue_add(&channel->merge_queue, &list->node);
}
