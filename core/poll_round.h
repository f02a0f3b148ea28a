/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_round.h - one round of whoever polls the completion queues of a window's peers.
 *
 *	take     what is in the queues goes to the harvest, by rbx_drive_completed()
 *	settle   its credit goes back to the window
 *	give     fragments go back to who submitted them, also those that have ended
 *	         without a completion, so that callbacks have one context whatever happens
 *	unpark   combiners that waited look again
 *
 * Then the policy says whether to poll again, to arm, or to sleep. The host knows the
 * queues, how to wake who polls, and what time it is. All of it is inline, as in drive.h.
 */
#ifndef RBX_POLL_ROUND_H
#define RBX_POLL_ROUND_H

#include "core/drive.h"
#include "core/poll_policy.h"

/* Written by who polls, read for statistics. */
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

	/* Of who polls. */
	struct rbx_poll_policy policy;
	struct rbx_harvest harvest; /* of the poll under way; else zero */
	uint64_t found_ns; /* when the last poll found something */
	struct rbx_poll_counters counters; /* atomic */
};

/* A host. Each is told the round, by which it finds what it is of. */
struct rbx_poll_host {
	uint64_t (*now_ns)(void);
	/* Polls each completion queue once; found_ns is when one had something. Returns how
	 * many completions there were. */
	uint32_t (*take)(struct rbx_poll_round *round);
	/* Calls rbx_drive_done() of both lists. */
	void (*give)(struct rbx_poll_round *round, struct rbx_fragment *done,
		     struct rbx_fragment *ended);
	/* rbx_drive_unpark() of the window's channels. */
	bool (*unpark)(struct rbx_poll_round *round);
	/* Has who polls make a round. Any thread. */
	void (*wake)(struct rbx_poll_round *round);
};

static inline void rbx_poll_count(uint64_t *counter, uint64_t value)
{
	RBX_STORE_RELAXED(counter, RBX_LOAD_RELAXED(counter) + value);
}

/* ---- Any thread -----------------------------------------------------------------*/

/* Fragments of a list, status set, have ended without a completion. */
static inline void rbx_poll_round_end(const struct rbx_poll_host *host,
				      struct rbx_poll_round *round,
				      struct rbx_fragment *list)
{
	rbx_drive_push_ended(&round->ended, list);
	host->wake(round);
}

/* Parked combiners are to look again, completions or none. */
static inline void rbx_poll_round_unpark(const struct rbx_poll_host *host,
					 struct rbx_poll_round *round)
{
	RBX_STORE_RELEASE(&round->unpark, true);
	host->wake(round);
}

/* ---- Who polls --------------------------------------------------------------------*/

/* Credit goes back, and then what is done. */
static inline void rbx_poll_round_give(const struct rbx_poll_host *host,
				       struct rbx_poll_round *round,
				       struct rbx_window *window, uint32_t count,
				       struct rbx_fragment *ended)
{
	struct rbx_fragment *done = round->harvest.done_first;

	if (count != 0) {
		rbx_poll_count(&round->counters.completions, count);
		rbx_harvest_settle(&round->harvest, window, round->found_ns);
		round->harvest = (struct rbx_harvest){ 0 };
	} else {
		round->found_ns = host->now_ns();
	}
	host->give(round, done, ended);
	if (host->unpark(round))
		rbx_poll_round_unpark(host, round);
}

/* Polls once. Returns how much there was; 0: nothing. */
static inline uint32_t rbx_poll_round_make(const struct rbx_poll_host *host,
					   struct rbx_poll_round *round,
					   struct rbx_window *window)
{
	uint32_t count = host->take(round);
	struct rbx_fragment *ended = rbx_drive_take_ended(&round->ended);
	bool unpark = false;

	rbx_poll_count(&round->counters.polls, 1);
	if (RBX_LOAD_RELAXED(&round->unpark))
		unpark = RBX_EXCHANGE(&round->unpark, false);
	if (count == 0 && ended == NULL && !unpark) {
		rbx_poll_count(&round->counters.empty_polls, 1);
		return 0;
	}
	rbx_poll_round_give(host, round, window, count, ended);
	return count + (ended != NULL || unpark);
}

/* The same, and what the policy says of it. */
static inline enum rbx_poll_step rbx_poll_round_step(const struct rbx_poll_host *host,
						     struct rbx_poll_round *round,
						     struct rbx_window *window)
{
	uint32_t count = rbx_poll_round_make(host, round, window);
	uint64_t now_ns = round->found_ns;

	if (count == 0 && rbx_poll_policy_wants_time(&round->policy))
		now_ns = host->now_ns();
	return rbx_poll_policy_next(&round->policy, count, now_ns);
}

#endif
