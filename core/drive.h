/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drive.h - the loops that a host makes around channels and harvests: to combine, to
 * give fragments back, and to let parked channels go on.
 *
 *	submit    if (rbx_channel_submit(...)) rbx_drive_combine()
 *	poll      rbx_drive_completed() for each completion
 *	          rbx_harvest_settle()
 *	          rbx_drive_done() of what is done, and of what ended without
 *	          rbx_drive_unpark()
 *
 * The host posts, keeps what is to be sent again, wakes who polls, and says what time
 * it is. All of it is inline: a host's table is constant, so its functions are called
 * as if they stood here.
 */
#ifndef RBX_DRIVE_H
#define RBX_DRIVE_H

#include "core/harvest.h"
#include "core/turns.h"

/* A host. Each is told the channel, by which it finds what it has made of it. */
struct rbx_drive {
	uint64_t (*now_ns)(void);
	/* Posts a chain with one call. Returns how many of its work requests, the last
	 * ones, the device has not taken. */
	uint32_t (*post)(struct rbx_channel *channel,
			 const struct rbx_chain *chain);
	/* A work request has failed: its connection is broken. Any thread. */
	void (*broken)(struct rbx_channel *channel);
	/* Takes what is to be sent again out of a harvest, under the peer's lock. */
	void (*keep)(struct rbx_channel *channel, struct rbx_harvest *harvest);
	/* Has who polls give back what has ended without a completion. Any thread. */
	void (*end)(struct rbx_channel *channel, struct rbx_fragment *list);
	/* Has who polls look after parked channels. Any thread. */
	void (*wake)(struct rbx_channel *channel);
};

/* ---- What has ended -----------------------------------------------------------*/

/* Adds a list to what ended without a completion: *ended is its newest. Any thread. */
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

/* All of it, for who polls; NULL: nothing. */
static inline struct rbx_fragment *
rbx_drive_take_ended(struct rbx_node **ended)
{
	struct rbx_node *first = NULL;

	if (RBX_LOAD_RELAXED(ended))
		first = RBX_EXCHANGE(ended, NULL);
	return first ? rbx_fragment_of(first) : NULL;
}

/* Gives fragments back to who submitted them. */
static inline void rbx_drive_done(struct rbx_fragment *list)
{
	while (list)
		list = list->done(list);
}

/* ---- There ------------------------------------------------------------------*/

static inline void rbx_drive_refuse(const struct rbx_drive *drive,
				    struct rbx_channel *channel,
				    struct rbx_fragment *list)
{
	struct rbx_fragment *fragment;

	for (fragment = list; fragment; fragment = rbx_fragment_next(fragment))
		fragment->status = -EHOSTUNREACH;
	drive->end(channel, list);
}

/* Sees to a harvest that no completion brought. Combiners that wait for its credit
 * look again when who polls has been woken, or the broken queue pair is flushed. */
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

/* The caller is the combiner; it has ceased to be when this returns. */
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

/* ---- And back ------------------------------------------------------------*/

/* A completion of a work request, see rbx_channel_complete(). By who polls. */
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

/* What a queue pair had left when it was destroyed has been gathered. */
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

/* ---- Who waits for the window -----------------------------------------------------*/

/* The channels of a window, by slots. */
struct rbx_drive_channels {
	uint32_t (*slots_used)(void *host);
	struct rbx_channel *(*at)(void *host, uint32_t slot); /* NULL: none */
	void (*combine)(struct rbx_channel *channel);
};

/* Something has completed: lets parked combiners look again, in turn. True: others have
 * completed so much meanwhile that it was left; it is to be called again by who polls,
 * when it has polled. */
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
