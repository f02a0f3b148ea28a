/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel.c - combining and parking. channel_again.c handles fragments whose connection
 * broke.
 *
 * Parking. The combiner keeps what it waits for in local variables, sets `parked`, and then
 * checks the cause once more. A thread that removes a cause (gives credit, frees a slot or
 * staging memory, changes the state) does so first and checks `parked` afterwards. Both sides
 * use operations of one total order, so at least one of them sees the other: either the
 * combiner finds that it can go on, or the other thread finds it parked. If both do, the
 * exchange of `parked` gives the role to one of them. After setting `parked` the combiner
 * must not touch its own fields until it has won that exchange, hence the local variables.
 *
 * No channel waits for a turn for ever. A combiner that parks for a turn or for credit checks
 * again afterwards, and goes on by itself if nothing is in flight. Otherwise something is in
 * flight. Either it completes, and the thread that gives its credit back makes a round
 * afterwards. That round visits this channel, or ends at one that waits for credit and so in
 * turn has something in flight before it. Or it was credit that another channel asks for and
 * is refused, and that channel will check again after this one has parked.
 */
#include "core/channel.h"

/* Why the combiner cannot go on. */
enum cause {
	CAUSE_NONE,
	CAUSE_WINDOW,
	CAUSE_TURN,
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
	rbx_merge_queue_init(&channel->merge_queue, planner->merge);
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

void rbx_channel_set_depth(struct rbx_channel *channel, uint32_t ring_index,
			   uint32_t depth_count)
{
	struct rbx_send_ring *ring = &channel->rings[ring_index];
	uint32_t depth = 1;

	RBX_ASSERT(ring_index < channel->ring_count && depth_count != 0);
	RBX_ASSERT(rbx_send_ring_used(ring) == 0);
	while (depth <= depth_count / 2)
		depth *= 2;
	/* Numbers go on from their present values: a slot is a number modulo the depth. */
	RBX_STORE_RELAXED(&ring->depth_count, depth);
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
		    RBX_LOAD_RELAXED(&channel->rings[i].depth_count))
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

/* Whether the obstacle is gone. Uses only what any thread may read. */
static bool removed(const struct rbx_channel *channel,
		    const struct obstacle *obstacle)
{
	switch (obstacle->cause) {
	case CAUSE_WINDOW:
		return rbx_window_has_room(channel->window, obstacle->bytes);
	case CAUSE_TURN:
		/* This channel is itself one of those that wait. */
		return RBX_LOAD_ORDERED(
			       &channel->window->turns.waiting_count) == 1 ||
		       rbx_window_idle(channel->window);
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

static enum rbx_parked parked_for(enum cause cause)
{
	switch (cause) {
	case CAUSE_WINDOW:
		return RBX_PARKED_CREDIT;
	case CAUSE_TURN:
		return RBX_PARKED_TURN;
	default:
		return RBX_PARKED_OTHER;
	}
}

/* Gives up the role. It is counted before it is parked, so no count is ever too low. */
static void leave_role(struct rbx_channel *channel, enum rbx_parked parked)
{
	struct rbx_turns *turns = &channel->window->turns;

	rbx_turns_park(turns, channel->slot);
	if (rbx_parked_waits(parked))
		RBX_FETCH_ADD(&turns->waiting_count, 1);
	RBX_EXCHANGE(&channel->parked, (uint32_t)parked);
}

/* True: the caller is still, or again, the combiner. See the file head. */
RBX_RARE static bool park(struct rbx_channel *channel, const struct obstacle *obstacle)
{
	enum rbx_parked parked = parked_for(obstacle->cause);

	/* A channel that waits for something of its own does not keep a turn. */
	if (!rbx_parked_waits(parked))
		channel->turn_bytes = 0;
	leave_role(channel, parked);
	return removed(channel, obstacle) && rbx_channel_unpark(channel);
}

bool rbx_channel_unpark(struct rbx_channel *channel)
{
	struct rbx_turns *turns = &channel->window->turns;
	enum rbx_parked parked;

	if (RBX_LOAD_ORDERED(&channel->parked) == RBX_PARKED_NOT)
		return false;
	parked = (enum rbx_parked)RBX_EXCHANGE(&channel->parked,
					       RBX_PARKED_NOT);
	if (parked == RBX_PARKED_NOT)
		return false;
	rbx_turns_unpark(turns, channel->slot);
	if (rbx_parked_waits(parked))
		RBX_FETCH_ADD(&turns->waiting_count, (uint32_t)-1);
	/* A channel that waited for credit goes on with the turn that it had. One that waited
	 * for something of its own, such as a full ring, has none: otherwise it would
	 * overtake those that wait each time that something of it completes. */
	if (parked == RBX_PARKED_TURN ||
	    (parked == RBX_PARKED_CREDIT && channel->turn_bytes == 0))
		channel->turn_bytes = RBX_MIN(channel->turn_bytes,
					      RBX_TURN_BYTES) +
				      RBX_TURN_BYTES;
	return true;
}

static inline uint32_t ring_room(const struct rbx_send_ring *ring)
{
	return ring->depth_count - rbx_send_ring_used(ring);
}

/* The ring with the fewest work requests; of equal ones, the next in turn. Plain round robin
 * could alternate long and short chains, so that some queue pairs would get all the work. */
RBX_APART static uint32_t pick_ring(struct rbx_channel *channel)
{
	uint32_t at = channel->next_ring, index = 0, most = 0;

	for (uint32_t left = channel->ring_count; left != 0; left--, at++) {
		uint32_t room;

		at = at < channel->ring_count ? at : 0;
		room = ring_room(&channel->rings[at]);
		if (room > most) {
			most = room;
			index = at;
		}
	}
	channel->next_ring = index + 1;
	return index;
}

/* The ring that a chain goes to. *bytes_max: how much one chain may put there, a queue pair's
 * share of the window. More would leave the others without work, and a device serves its queue
 * pairs in turn. */
static inline uint32_t find_ring(struct rbx_channel *channel, uint64_t *bytes_max)
{
	uint32_t index = 0;

	*bytes_max = RBX_LOAD_RELAXED(&channel->window->bytes_max);
	if (channel->ring_count != 1) { /* unlike most peers */
		index = pick_ring(channel);
		*bytes_max /= channel->ring_count;
	}
	return index;
}

/* A counter that only the combiner writes, and any thread reads. */
static inline void count(uint64_t *counter, uint64_t value)
{
	RBX_STORE_RELAXED(counter, *counter + value);
}

/* Whether it may ask for credit, or has to let others go first. bytes: of the work request
 * and of those planned before it. */
static inline bool has_turn(const struct rbx_channel *channel, uint64_t bytes)
{
	const struct rbx_window *window = channel->window;

	return RBX_LOAD_RELAXED(&window->turns.waiting_count) == 0 ||
	       channel->turn_bytes >= bytes || rbx_window_idle(window);
}

/* Pays for a work request that was planned, after others of the chain. */
static inline enum cause pay(struct rbx_channel *channel,
			     const struct rbx_work *work, uint64_t chain_bytes)
{
	if (!has_turn(channel, chain_bytes + work->length_bytes)) {
		count(&channel->counters.window_waits, 1);
		return CAUSE_TURN;
	}
	if (!rbx_window_take(channel->window, work->length_bytes)) {
		count(&channel->counters.window_waits, 1);
		return CAUSE_WINDOW;
	}
	return CAUSE_NONE;
}

/* Copies a work request that was paid for, or gives the credit back. */
static enum cause stage(struct rbx_channel *channel, struct rbx_work *work)
{
	if (rbx_planner_stage(channel->planner, work)) {
		rbx_window_give(channel->window, 1, work->length_bytes);
		return CAUSE_STAGING;
	}
	count(&channel->counters.staged_bytes, work->length_bytes);
	return CAUSE_NONE;
}

/* Plans a chain; at least one fragment may be planned. `obstacle` tells what ended it before
 * none was left. */
static void plan_chain(struct rbx_channel *channel, uint64_t now_ns,
		       struct rbx_chain *chain, struct obstacle *obstacle)
{
	const struct rbx_planner *planner = channel->planner;
	struct rbx_merge_queue *queue = &channel->merge_queue;
	uint64_t bytes = 0, bytes_max;
	uint32_t ring_index = find_ring(channel, &bytes_max);
	struct rbx_send_ring *ring = &channel->rings[ring_index];
	struct rbx_send_slots slots = rbx_send_ring_slots(ring);
	uint32_t first = ring->posted_count, number = first, end;
	uint32_t room = ring_room(ring), members = 0;
	struct rbx_work *work;
	enum cause cause;

	if (room == 0) {
		obstacle->cause = CAUSE_RING;
		return;
	}
	end = first + RBX_MIN(room, planner->chain_max);
	do {
		bool is_planned;

		work = rbx_send_slot(&slots, number);
		is_planned = rbx_planner_next(planner, queue, work);
		RBX_DEBUG_ASSERT(is_planned);
		(void)is_planned;
		cause = pay(channel, work, bytes);
		if (cause == CAUSE_NONE && work->staged)
			cause = stage(channel, work);
		if (cause != CAUSE_NONE) {
			obstacle->cause = cause;
			obstacle->bytes = work->length_bytes;
			break;
		}
		work->posted_ns = now_ns;
		number++;
		members += work->member_count;
		bytes += work->length_bytes;
	} while (rbx_merge_queue_take(queue, work->last) &&
		 number != end && bytes < bytes_max);
	if (number == first)
		return;
	chain->ring_index = ring_index;
	chain->first_number = first;
	chain->work_count = number - first;
	if (channel->turn_bytes != 0)
		channel->turn_bytes -= RBX_MIN(channel->turn_bytes, bytes);
	rbx_window_on_post(channel->window, now_ns, bytes);
	count(&channel->counters.work_requests, number - first);
	count(&channel->counters.merged_requests, members - (number - first));
	count(&channel->counters.doorbells, 1);
	RBX_STORE_RELEASE(&ring->posted_count, number);
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
	if (rbx_merge_queue_fenced(queue)) {
		if (!rbx_channel_idle(channel)) {
			obstacle->cause = CAUSE_FENCE;
			return false;
		}
		/* A failure since the state was checked has halted the channel before its
		 * ring looked idle, and its fragments are sent again before the fence. */
		if (RBX_LOAD_ACQUIRE(&channel->state) == RBX_CHANNEL_HALTED) {
			obstacle->cause = CAUSE_HALTED;
			return false;
		}
		rbx_merge_queue_pass_fence(queue);
	}
	plan_chain(channel, now_ns, chain, obstacle);
	return chain->work_count != 0;
}

enum rbx_combined rbx_channel_combine_some(struct rbx_channel *channel,
					   uint64_t now_ns,
					   struct rbx_chain *chain)
{
	struct obstacle obstacle;
	bool is_combiner;

	chain->work_count = 0;
	chain->refused = NULL;
	obstacle.cause = CAUSE_NONE;
	if (rbx_submit_queue_pushed(&channel->submit_queue))
		rbx_merge_queue_add(
			&channel->merge_queue,
			rbx_submit_queue_take(&channel->submit_queue));
	if (plan(channel, now_ns, chain, &obstacle))
		return RBX_COMBINED_CHAIN;
	if (obstacle.cause == CAUSE_NONE) {
		channel->turn_bytes = 0;
		is_combiner = !rbx_submit_queue_leave(&channel->submit_queue);
	} else {
		is_combiner = park(channel, &obstacle);
	}
	return is_combiner ? RBX_COMBINED_AGAIN : RBX_COMBINED_LEFT;
}

void rbx_channel_leave(struct rbx_channel *channel)
{
	/* The last combiner may have given up the role with nobody to take it. */
	(void)rbx_channel_unpark(channel);
}

bool rbx_channel_yield(struct rbx_channel *channel)
{
	/* If something is found outstanding after this, its completion unparks. */
	leave_role(channel, RBX_PARKED_OTHER);
	return rbx_channel_idle(channel);
}

void rbx_channel_set_state(struct rbx_channel *channel,
			   enum rbx_channel_state state)
{
	RBX_ASSERT(channel->state != RBX_CHANNEL_DEAD);
	RBX_ASSERT(channel->state != state);
	if (state == RBX_CHANNEL_OPEN)
		RBX_STORE_RELAXED(&channel->failed, 0);
	RBX_EXCHANGE(&channel->state, (uint32_t)state);
}

bool rbx_channel_seize(struct rbx_channel *channel)
{
	return rbx_channel_unpark(channel) ||
	       rbx_submit_queue_claim(&channel->submit_queue);
}
