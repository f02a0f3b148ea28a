/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drive.h - the loops that every host needs around channels and harvests: to combine, to give
 * fragments back, and to let parked channels go on.
 *
 *	submit    if (rbx_channel_submit(...)) rbx_drive_combine()
 *	poll      rbx_drive_completed() for each completion
 *	          rbx_harvest_settle()
 *	          rbx_drive_done() of what is done, and of what ended without
 *	          rbx_drive_unpark()
 *
 * The host posts, keeps what is to be sent again, wakes pollers, and supplies the time. All
 * of it is inline: the table of a host is constant, so the compiler calls its functions
 * directly.
 */
#ifndef RBX_DRIVE_H
#define RBX_DRIVE_H

#include "core/harvest.h"
#include "core/turns.h"

/* A host. Each function is told the channel, from which it finds its own data. */
struct rbx_drive {
	uint64_t (*now_ns)(void);
	/* Posts a chain with one call. Returns how many of its work requests the device has
	 * not taken, counted from the end. */
	uint32_t (*post)(struct rbx_channel *channel,
			 const struct rbx_chain *chain);
	/* A work request has failed: its connection is broken. Any thread. */
	void (*broken)(struct rbx_channel *channel);
	/* Takes what is to be sent again out of a harvest, under the peer's lock. */
	void (*keep)(struct rbx_channel *channel, struct rbx_harvest *harvest);
	/* Has the poller give back fragments that ended without a completion. Any thread. */
	void (*end)(struct rbx_channel *channel, struct rbx_fragment *list);
	/* Has the poller visit parked channels. Any thread. */
	void (*wake)(struct rbx_channel *channel);
};

/* ---- What has ended -----------------------------------------------------------*/

/* Adds a list to what ended without a completion; *ended points to the newest. Any thread. */
static inline void rbx_drive_push_ended(struct rbx_node **ended,
					struct rbx_fragment *list)
{
	struct rbx_node *last = &list->node;
	struct rbx_node *newest = RBX_LOAD_RELAXED(ended);

	while (last->next)
		last = last->next;
	do {
		last->next = newest;
	} while (!RBX_COMPARE_EXCHANGE(ended, &newest, &list->node));
}

/* Takes all of it, for the poller; NULL: nothing. */
static inline struct rbx_fragment *
rbx_drive_take_ended(struct rbx_node **ended)
{
	struct rbx_node *first = NULL;

	if (RBX_LOAD_RELAXED(ended))
		first = RBX_EXCHANGE(ended, NULL);
	return first ? rbx_fragment_of(first) : NULL;
}

/* Gives fragments back to their submitters. */
static inline void rbx_drive_done(struct rbx_fragment *list)
{
	while (list)
		list = list->done(list);
}

/* ---- Submitting and posting --------------------------------------------------- */

static inline void rbx_drive_refuse(const struct rbx_drive *drive,
				    struct rbx_channel *channel,
				    struct rbx_fragment *list)
{
	struct rbx_fragment *fragment;

	for (fragment = list; fragment; fragment = rbx_fragment_next(fragment))
		fragment->status = -EHOSTUNREACH;
	drive->end(channel, list);
}

/* Handles a harvest that no completion brought. Combiners that wait for its credit look again
 * when the poller has been woken, or when the broken queue pair is flushed. */
static inline void rbx_drive_give_back(const struct rbx_drive *drive,
				       struct rbx_channel *channel,
				       struct rbx_harvest *harvest)
{
	if (harvest->again_first)
		drive->keep(channel, harvest);
	if (harvest->done_first)
		drive->end(channel, harvest->done_first);
}

/* The last `count` of a chain were not posted. */
static inline void rbx_drive_not_posted(const struct rbx_drive *drive,
					struct rbx_channel *channel,
					const struct rbx_chain *chain,
					uint32_t count)
{
	struct rbx_harvest harvest = { 0 };

	rbx_channel_not_posted(channel, chain, count, &harvest);
	rbx_window_give(channel->window, harvest.work_requests, harvest.bytes);
	rbx_drive_give_back(drive, channel, &harvest);
	drive->broken(channel);
}

/* The caller is the combiner; when this returns it is not any more. */
static inline void rbx_drive_combine(const struct rbx_drive *drive,
				     struct rbx_channel *channel)
{
	struct rbx_chain chain;
	uint32_t i, missed_count;

	for (i = 0; i < RBX_COMBINE_MAX; i++) {
		if (!rbx_channel_combine(channel, drive->now_ns(), &chain))
			return;
		if (chain.work_count != 0) {
			missed_count = drive->post(channel, &chain);
			if (missed_count != 0)
				rbx_drive_not_posted(drive, channel, &chain,
						     missed_count);
		}
		if (chain.refused)
			rbx_drive_refuse(drive, channel, chain.refused);
	}
	if (rbx_channel_yield(channel))
		drive->wake(channel);
}

/* ---- Completions -------------------------------------------------------------- */

/* A completion of a work request, see rbx_channel_complete(). By the poller. */
static inline void rbx_drive_completed(const struct rbx_drive *drive,
				       struct rbx_channel *channel,
				       uint32_t ring_index, uint32_t number,
				       int32_t status, uint64_t now_ns,
				       struct rbx_harvest *harvest)
{
	/* Before the ring may look idle to a fence: what has failed is to be sent
	 * again before the fence may pass. */
	if (status != 0)
		drive->broken(channel);
	rbx_channel_complete(channel, ring_index, number, status, now_ns,
			     harvest);
	if (harvest->again_first)
		drive->keep(channel, harvest);
}

/* After all that a destroyed queue pair still held was gathered in the harvest. */
static inline void rbx_drive_settle_rest(const struct rbx_drive *drive,
					 struct rbx_channel *channel,
					 struct rbx_harvest *harvest)
{
	if (harvest->work_requests == 0)
		return;
	rbx_harvest_settle(harvest, channel->window, drive->now_ns());
	rbx_drive_give_back(drive, channel, harvest);
	drive->wake(channel);
}

/* ---- Channels that wait for the window ----------------------------------------------- */

/* The channels of a window, by slots. */
struct rbx_drive_channels {
	uint32_t (*slots_used)(void *host);
	struct rbx_channel *(*at)(void *host, uint32_t slot); /* NULL: none */
	void (*combine)(struct rbx_channel *channel);
};

/* After completions: lets parked combiners look again, in turn. True: other threads completed
 * so much meanwhile that the rest was left; the poller calls it again after its next poll. */
static inline bool rbx_drive_unpark(const struct rbx_drive_channels *channels,
				    void *host, struct rbx_turns *turns)
{
	struct rbx_round round;
	uint32_t i;

	if (!rbx_round_begin(turns, &round))
		return false;
	for (i = 0; i < RBX_ROUNDS_MAX; i++) {
		uint32_t used = channels->slots_used(host), slot;

		while (rbx_round_slot(turns, &round, used, &slot)) {
			struct rbx_channel *channel = channels->at(host, slot);

			if (!channel ||
			    (round.is_held &&
			     rbx_parked_waits(rbx_channel_parked(channel))) ||
			    !rbx_channel_unpark(channel))
				continue;
			channels->combine(channel);
			rbx_round_visited(turns, &round, slot,
					  rbx_channel_parked(channel));
		}
		if (rbx_round_end(turns, &round))
			return false;
	}
	rbx_round_leave(turns);
	return true;
}

#endif
