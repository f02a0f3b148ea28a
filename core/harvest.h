/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * harvest.h - the way of fragments back from a peer.
 *
 * A completion stands for its work request and all before it on its ring, and a
 * work request for the fragments that were merged into it. What completes is
 * gathered in a harvest: what is done and with which status, what is to be sent
 * again, and the credit. The poller settles it once for each poll.
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
	uint64_t rtt_ns; /* the longest, of what ended well */
	uint64_t good_bytes; /* of what ended well */
	bool failed; /* a work request, for a reason of its own */
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
 * All that is still posted on a ring is done: what was posted behind it has come
 * back, and so has everything that failed. Poller only, while nobody posts.
 */
void rbx_channel_complete_rest(struct rbx_channel *channel, uint32_t ring_index,
			       uint64_t now_ns, struct rbx_harvest *harvest);

/*
 * The queue pair of a ring has been destroyed: whatever has not completed never
 * will. Nobody knows what became of it, so it counts as flushed, and is sent again
 * or fails; it is never taken for done. Not before the queue pair is destroyed: until
 * then the device may read and write the memory. As the poller, while nobody posts.
 */
void rbx_channel_abandon(struct rbx_channel *channel, uint32_t ring_index,
			 struct rbx_harvest *harvest);

/* Tells the window's policy what has completed, and gives its credit back. */
void rbx_harvest_settle(const struct rbx_harvest *harvest,
			struct rbx_window *window, uint64_t now_ns);

#endif
