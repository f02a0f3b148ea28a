/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * harvest.h - the path of fragments back from a peer.
 *
 * A completion ends its work request and all earlier ones of its ring. A work request ends
 * the fragments that were merged into it. All that completes is gathered in a harvest: which
 * fragments are done and with which status, which are to be sent again, and the credit. The
 * poller settles the harvest once for each poll.
 */
#ifndef RBX_HARVEST_H
#define RBX_HARVEST_H

#include "core/channel.h"

/* What completions bring. Zeroed by the host before the first. */
struct rbx_harvest {
	struct rbx_fragment *done_first; /* to be given back, status set */
	struct rbx_fragment *done_last;
	struct rbx_fragment *again_first; /* to be sent again when the */
	struct rbx_fragment *again_last; /* connection is restored */
	uint32_t work_requests; /* credit to give back */
	uint64_t bytes;
	uint64_t rtt_ns; /* the longest, of what succeeded */
	uint64_t good_bytes; /* of what succeeded */
	bool failed; /* a work request failed, for a reason of its own */
};

/*
 * After a post that failed: the last `count` work requests of the chain never
 * reached the device. Combiner only. Their fragments go to `harvest`.
 */
void rbx_channel_not_posted(struct rbx_channel *channel,
			    const struct rbx_chain *chain, uint32_t count,
			    struct rbx_harvest *harvest);

/*
 * A completion: work request `number` of a ring and all before it are done, or
 * it failed with `status`. Poller only. The host settles the harvest of one poll
 * and then calls done() of what is done.
 */
void rbx_channel_complete(struct rbx_channel *channel, uint32_t ring_index,
			  uint32_t number, int32_t status, uint64_t now_ns,
			  struct rbx_harvest *harvest);

/*
 * All that is still posted on a ring is done: a work request posted behind it has completed,
 * and all failures were reported. Poller only, while no thread posts.
 */
void rbx_channel_complete_rest(struct rbx_channel *channel, uint32_t ring_index,
			       uint64_t now_ns, struct rbx_harvest *harvest);

/*
 * The queue pair of a ring has been destroyed: what has not completed never will. Its outcome
 * is unknown, so it counts as flushed, and is sent again or fails; it never counts as done.
 * Not before the queue pair is destroyed: until then the device may read and write the
 * memory. As the poller, while no thread posts.
 */
void rbx_channel_abandon(struct rbx_channel *channel, uint32_t ring_index,
			 struct rbx_harvest *harvest);

/* Tells the window's policy what has completed, and gives its credit back. */
static inline void rbx_harvest_settle(const struct rbx_harvest *harvest,
				      struct rbx_window *window, uint64_t now_ns)
{
	/* In this order: see window.c. */
	if (harvest->rtt_ns != 0)
		rbx_window_on_complete(window, now_ns, harvest->rtt_ns,
				       harvest->good_bytes);
	if (harvest->failed)
		rbx_window_on_error(window);
	rbx_window_give(window, harvest->work_requests, harvest->bytes);
}

#endif
