/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel.h - the way of all fragments to one peer.
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
 * Who combines is elected by the submit queue. A combiner that cannot go on,
 * because the window is closed, a ring is full, staging memory is used up, a
 * fence waits or the connection is broken, parks: it leaves the role lying,
 * and whoever changes the cause picks it up (rbx_channel_unpark). Work that
 * waits in this way collects neighbours.
 *
 * What others submit could keep a combiner busy for ever, and its own thread
 * would not get on. So the host ends its stint after RBX_COMBINE_MAX chains
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
	RBX_CHANNEL_DEAD, /* the peer is gone: fragments are refused */
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
	uint32_t parked; /* atomic: enum rbx_parked; where it is not NOT the
			    combiner's role lies there */
	uint32_t state; /* atomic: enum rbx_channel_state */
	uint32_t failed; /* atomic: 1 once a work request has failed for a
			    reason of its own, until the channel is reopened */

	/* The keys that the peer has taken back since it was opened: slots are
	 * taken by those who poll. Atomic, until the channel is reopened. */
	uint32_t ended_keys_count;
	uint64_t ended_keys[RBX_ENDED_KEYS_MAX]; /* 0: not filled in yet */

	/* The combiner's. */
	struct rbx_merge_queue merge_queue;
	const struct rbx_planner *planner;
	struct rbx_window *window;
	bool keys_are_not_loans; /* that one is denied says nothing of others with its key;
				    the host's, before the first submit */
	uint32_t slot; /* among the channels of the window: the host's, before the
			  first submit */
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
 * A queue pair has come out less deep than asked for, or as deep again: so many work
 * requests at most are posted on it, to the next power of two below. Not more than the
 * slots that were lent; nothing is posted on the ring, and the caller is the combiner.
 */
void rbx_channel_set_depth(struct rbx_channel *channel, uint32_t ring_index,
			   uint32_t depth_count);

/* Any thread. True: the caller has to combine. Who finds nobody combining has no use for
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

/* The step below where there is something to do. */
bool rbx_channel_combine_some(struct rbx_channel *channel, uint64_t now_ns,
			      struct rbx_chain *chain);

/*
 * One step of the combiner. True: do what `chain` says and call again. False:
 * the caller has ceased to be the combiner. Here, in the open, is what ends most
 * stints: nothing is left and nothing came.
 */
static inline bool rbx_channel_combine(struct rbx_channel *channel,
				       uint64_t now_ns, struct rbx_chain *chain)
{
	if (rbx_merge_queue_empty(&channel->merge_queue) &&
	    !rbx_submit_queue_pushed(&channel->submit_queue)) {
		channel->turn_bytes = 0; /* nothing to take it for */
		if (rbx_submit_queue_leave(&channel->submit_queue))
			return false;
	}
	return rbx_channel_combine_some(channel, now_ns, chain);
}

/*
 * Combiner only, when its stint is over: leaves the role lying for who unparks
 * next. True: nothing is outstanding, so no completion will see to that, and
 * the host has to have somebody unpark.
 */
bool rbx_channel_yield(struct rbx_channel *channel);

/*
 * After anything that a parked combiner may wait for. True: combine. A host with
 * several channels on one window visits them in the order of a round (turns.h).
 */
bool rbx_channel_unpark(struct rbx_channel *channel);

/* Nothing is submitted any more, nothing is outstanding, and nobody visits it: what is
 * left of it in the window's turns goes, so that its slot can be another one's. */
void rbx_channel_leave(struct rbx_channel *channel);

/* What it is parked for just now. */
static inline enum rbx_parked
rbx_channel_parked(const struct rbx_channel *channel)
{
	return (enum rbx_parked)RBX_LOAD_ORDERED(&channel->parked);
}

/*
 * Makes the caller the combiner where nobody combines just now; while the
 * channel is halted that is so after a moment. Who repairs a connection seizes
 * the role, so that nothing is posted on the queue pairs that it replaces, and
 * gives it up by combining. Any thread.
 */
bool rbx_channel_seize(struct rbx_channel *channel);

/*
 * Combiner only, while the channel is halted and idle, before it is reopened: what is
 * to be sent again, a list ended by NULL. Returns what is not, with its status, to be
 * ended by who polls: of it and of all that waits, what is for keys that the peer
 * has taken back. So that a slab that was revoked breaks the connection once, and not
 * once for each fragment that was on its way.
 */
struct rbx_fragment *rbx_channel_send_again(struct rbx_channel *channel,
					    struct rbx_fragment *list);

/* Notes that the peer has taken a key back. By who polls. */
void rbx_channel_key_ended(struct rbx_channel *channel, uint32_t rkey);
bool rbx_channel_key_has_ended(const struct rbx_channel *channel, uint32_t rkey);

/*
 * Combiner only, of a halted channel: takes the fragments out that need not wait for
 * the peer any longer, as those of `list` that was to be sent again. Returns them, to
 * be ended with -EHOSTUNREACH; *list: those that wait on.
 */
struct rbx_fragment *
rbx_channel_withdraw(struct rbx_channel *channel, struct rbx_fragment **list,
		     bool (*waits)(const struct rbx_fragment *fragment));

/* Then the caller has to unpark. Legal: open <-> halted -> dead. */
void rbx_channel_set_state(struct rbx_channel *channel,
			   enum rbx_channel_state state);

/* Whether nothing is posted on any ring. */
bool rbx_channel_idle(const struct rbx_channel *channel);

#endif
