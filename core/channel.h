/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel.h - the path of all fragments to one peer.
 *
 *   submit queue -> merge queue -> planner -> send rings -> (the host posts)
 *        ^              window, staging           |
 *        |                                        v
 *   any thread                  complete (harvest.h): members, credit
 *
 * The host drives it in steps and does the I/O:
 *
 *   submitting thread   if (rbx_channel_submit(...)) combine
 *   combine             while (rbx_channel_combine(..., &chain)) post(chain)
 *   poller              rbx_channel_complete() for each completion,
 *                       rbx_harvest_settle(), done() of each fragment, then
 *                       if (rbx_channel_unpark()) combine
 *
 * The submit queue elects the combiner. A combiner parks if it cannot go on: the window is
 * closed, a ring is full, no staging memory is free, a fence waits or the connection is
 * broken. It then gives up the role, and the thread that removes the cause takes it
 * (rbx_channel_unpark). Work that waits in the meantime collects neighbours.
 *
 * The submissions of other threads could keep a combiner busy for ever, and its own thread
 * would make no progress. So the host ends its stint after RBX_COMBINE_MAX chains
 * (rbx_channel_yield).
 */
#ifndef RBX_CHANNEL_H
#define RBX_CHANNEL_H

#include "core/planner.h"
#include "core/send_ring.h"
#include "core/submit_queue.h"
#include "core/window.h"

enum rbx_channel_state {
	RBX_CHANNEL_OPEN, /* fragments are posted */
	RBX_CHANNEL_HALTED, /* the connection is broken: fragments wait */
	RBX_CHANNEL_DEAD, /* the peer is dead: fragments are refused */
};

/* Written by the combiner; others read them for the statistics. */
struct rbx_channel_counters {
	uint64_t work_requests;
	uint64_t doorbells;
	uint64_t merged_requests;
	uint64_t window_waits;
	uint64_t staged_bytes;
	uint64_t retries; /* fragments sent again after a resume */
};

struct rbx_channel {
	struct rbx_submit_queue submit_queue;
	/* atomic: enum rbx_parked; unless NOT, the combiner's role is free to take */
	uint32_t parked;
	uint32_t state; /* atomic: enum rbx_channel_state */
	uint32_t failed; /* atomic: 1 once a work request has failed for a
			    reason of its own, until the channel is reopened */

	/* The keys that the peer has taken back since the channel was opened. Pollers take
	 * slots. Atomic, until the channel is reopened. */
	uint32_t ended_keys_count;
	uint64_t ended_keys[RBX_ENDED_KEYS_MAX]; /* 0: not filled in yet */

	/* Of the combiner. */
	struct rbx_merge_queue merge_queue;
	const struct rbx_planner *planner;
	struct rbx_window *window;
	/* a denied work request says nothing of others with its key; set by the host before
	 * the first submit */
	bool keys_are_not_loans;
	/* among the channels of the window; set by the host before the first submit */
	uint32_t slot;
	uint64_t turn_bytes; /* left of its turn, see turns.h */
	uint32_t next_ring;
	struct rbx_channel_counters counters;

	uint32_t ring_count;
	struct rbx_send_ring rings[RBX_QUEUE_PAIRS_MAX];
};

/* What one step of combining asks of the host. */
struct rbx_chain {
	uint32_t ring_index;
	uint32_t first_number; /* of the first work request, in the ring */
	uint32_t work_count; /* to be posted; 0: none */
	struct rbx_fragment *refused; /* to be ended with -EHOSTUNREACH */
};

void rbx_channel_init(struct rbx_channel *channel,
		      const struct rbx_planner *planner,
		      struct rbx_window *window);

/* Adds a queue pair; works: depth_count slots. Before the first submit. */
void rbx_channel_add_ring(struct rbx_channel *channel, struct rbx_work *works,
			  uint32_t depth_count);

/*
 * A queue pair turned out less deep than asked for, or as deep again: at most so many work
 * requests are posted on it, rounded down to a power of two, and never more than the slots
 * given. Nothing is posted on the ring, and the caller is the combiner.
 */
void rbx_channel_set_depth(struct rbx_channel *channel, uint32_t ring_index,
			   uint32_t depth_count);

/* Any thread. True: the caller has to combine. A thread that finds no combiner does not use
 * the submit queue: it adds to the merge queue itself. */
static inline bool rbx_channel_submit(struct rbx_channel *channel,
				      struct rbx_fragment *first,
				      struct rbx_fragment *last)
{
	if (rbx_submit_queue_claim(&channel->submit_queue)) {
		last->node.next = NULL;
		rbx_merge_queue_add(&channel->merge_queue, &first->node);
		return true;
	}
	return rbx_submit_queue_push(&channel->submit_queue, &first->node,
				     &last->node);
}

/* What a combiner does next. */
enum rbx_combined {
	RBX_COMBINED_CHAIN, /* what the chain says */
	RBX_COMBINED_AGAIN, /* it looks again: what it waited for has come */
	RBX_COMBINED_LEFT, /* it is not the combiner any more */
};

/* The step below, if there is something to do. */
enum rbx_combined rbx_channel_combine_some(struct rbx_channel *channel,
					   uint64_t now_ns,
					   struct rbx_chain *chain);

/*
 * One step of the combiner. True: do what `chain` says and call again. False: the caller is
 * not the combiner any more. The inline part is what ends most stints: nothing is left and
 * nothing came.
 */
static inline bool rbx_channel_combine(struct rbx_channel *channel,
				       uint64_t now_ns, struct rbx_chain *chain)
{
	enum rbx_combined combined;

	if (rbx_merge_queue_empty(&channel->merge_queue) &&
	    !rbx_submit_queue_pushed(&channel->submit_queue)) {
		channel->turn_bytes = 0; /* no use for the rest of its turn */
		if (rbx_submit_queue_leave(&channel->submit_queue))
			return false;
	}
	do
		combined = rbx_channel_combine_some(channel, now_ns, chain);
	while (combined == RBX_COMBINED_AGAIN);
	return combined == RBX_COMBINED_CHAIN;
}

/*
 * Combiner only, at the end of its stint: gives up the role, for the next thread that
 * unparks. True: nothing is outstanding, so no completion will unpark the channel, and the
 * host has to.
 */
bool rbx_channel_yield(struct rbx_channel *channel);

/*
 * Call it after anything that a parked combiner may wait for. True: combine. A host with
 * several channels on one window visits them in the order of a round (turns.h).
 */
bool rbx_channel_unpark(struct rbx_channel *channel);

/* Removes what is left of the channel in the window's turns, so that its slot can be used
 * again. Nothing is submitted any more, nothing is outstanding, and no round visits it. */
void rbx_channel_leave(struct rbx_channel *channel);

/* What it is parked for just now. */
static inline enum rbx_parked
rbx_channel_parked(const struct rbx_channel *channel)
{
	return (enum rbx_parked)RBX_LOAD_ORDERED(&channel->parked);
}

/*
 * Makes the caller the combiner if there is none. While the channel is halted that succeeds
 * after a moment. The thread that repairs a connection seizes the role, so that nothing is
 * posted on the queue pairs that it replaces. It gives the role up by combining. Any thread.
 */
bool rbx_channel_seize(struct rbx_channel *channel);

/*
 * Combiner only, while the channel is halted and idle, before it is reopened. list: what is
 * to be sent again, ended by NULL. Of this and of all that waits, returns the fragments whose
 * keys the peer has taken back, with their status, to be ended by the poller. So a revoked
 * slab breaks the connection once, and not once for each fragment that was under way.
 */
struct rbx_fragment *rbx_channel_send_again(struct rbx_channel *channel,
					    struct rbx_fragment *list);

/* Notes that the peer has taken a key back. By the poller. */
void rbx_channel_key_ended(struct rbx_channel *channel, uint32_t rkey);
bool rbx_channel_key_has_ended(const struct rbx_channel *channel, uint32_t rkey);

/*
 * Combiner only, of a halted channel: takes out the fragments that need not wait for the peer
 * any longer, from the channel and from `list`, which was to be sent again. Returns them, to
 * be ended with -EHOSTUNREACH; *list: those that go on waiting.
 */
struct rbx_fragment *
rbx_channel_withdraw(struct rbx_channel *channel, struct rbx_fragment **list,
		     bool (*waits)(const struct rbx_fragment *fragment));

/* The caller has to unpark afterwards. Legal: open <-> halted -> dead. */
void rbx_channel_set_state(struct rbx_channel *channel,
			   enum rbx_channel_state state);

/* Whether nothing is posted on any ring. */
bool rbx_channel_idle(const struct rbx_channel *channel);

#endif
