/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_round.h - one round of a thread that polls the completion queues of a window's peers.
 *
 *	take      what is in the queues goes to the harvest, by rbx_drive_completed()
 *	settle    its credit goes back to the window; rbx_poll_round_settle()
 *	done      fragments go back to their submitters: also those that have ended without
 *	          a completion, so that callbacks have one context whatever happens
 *	unpark    combiners that waited look again; rbx_drive_unpark()
 *	next      poll again, arm, or sleep; rbx_poll_round_next()
 *
 * The host knows the queues, how to wake the poller, and the time. All of it is inline, as in
 * drive.h.
 */
#ifndef RBX_POLL_ROUND_H
#define RBX_POLL_ROUND_H

#include "core/drive.h"
#include "core/poll_policy.h"

/* Written by the poller, read for statistics. */
struct rbx_poll_counters {
	uint64_t completions;
	uint64_t polls;
	uint64_t empty_polls;
	uint64_t arms;
	uint64_t wakeups;
};

struct rbx_poll_round {
	struct rbx_node *ended; /* atomic: without a completion, newest first */
	bool unpark; /* atomic: a combiner is parked that no completion frees */

	/* Of the poller. */
	struct rbx_poll_policy policy;
	struct rbx_harvest harvest; /* of the poll under way; else zero */
	uint64_t found_ns; /* when the last poll found something */
	struct rbx_poll_counters counters; /* atomic */
};

/* The fragments of a round for rbx_drive_done(). */
struct rbx_poll_found {
	struct rbx_fragment *done;
	struct rbx_fragment *ended; /* without a completion */
};

static inline void rbx_poll_count(uint64_t *counter, uint64_t value)
{
	RBX_STORE_RELAXED(counter, RBX_LOAD_RELAXED(counter) + value);
}

/* ---- Any thread; the host wakes the poller afterwards ------------------------------ */

/* The fragments of a list, status set, have ended without a completion. */
static inline void rbx_poll_round_end(struct rbx_poll_round *round,
				      struct rbx_fragment *list)
{
	rbx_drive_push_ended(&round->ended, list);
}

/* Parked combiners have to look again, even without a completion. */
static inline void rbx_poll_round_unpark(struct rbx_poll_round *round)
{
	RBX_STORE_RELEASE(&round->unpark, true);
}

/* ---- The poller ------------------------------------------------------------------ */

/* count completions were taken; found_ns says when. Returns how much the round has to handle;
 * 0: nothing. */
static inline uint32_t rbx_poll_round_settle(struct rbx_poll_round *round,
					     struct rbx_window *window, uint32_t count,
					     uint64_t (*now_ns)(void),
					     struct rbx_poll_found *found)
{
	bool unpark = false;

	rbx_poll_count(&round->counters.polls, 1);
	found->done = round->harvest.done_first;
	found->ended = rbx_drive_take_ended(&round->ended);
	if (RBX_LOAD_RELAXED(&round->unpark))
		unpark = RBX_EXCHANGE(&round->unpark, false);
	if (count == 0 && !found->ended && !unpark) {
		rbx_poll_count(&round->counters.empty_polls, 1);
		return 0;
	}
	if (count != 0) {
		rbx_poll_count(&round->counters.completions, count);
		rbx_harvest_settle(&round->harvest, window, round->found_ns);
		round->harvest = (struct rbx_harvest){ 0 };
	} else {
		round->found_ns = now_ns();
	}
	return count + (found->ended || unpark);
}

/* What the policy says after a round that had so much to handle. */
static inline enum rbx_poll_step rbx_poll_round_next(struct rbx_poll_round *round,
						     uint32_t count,
						     uint64_t (*now_ns)(void))
{
	uint64_t at_ns = round->found_ns;

	if (count == 0 && rbx_poll_policy_wants_time(&round->policy))
		at_ns = now_ns();
	return rbx_poll_policy_next(&round->policy, count, at_ns);
}

#endif
