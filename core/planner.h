/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planner.h - makes work requests from fragments.
 *
 * The paper's algorithm 2 (section IV-A). Merging on MR: fragments that are neighbours in
 * remote memory become one work request with a scatter list, or one staging run. Chaining:
 * work requests that could not be merged are linked and posted with one doorbell. The four
 * modes of the paper are two limits:
 *
 *            merge   chain_max
 *   single   no      1
 *   doorbell no      RBX_CHAIN_MAX
 *   merge    yes     1
 *   hybrid   yes     RBX_CHAIN_MAX
 *
 * The planner never waits: it takes what is there. A fragment that is alone is sent alone
 * (load-aware).
 */
#ifndef RBX_PLANNER_H
#define RBX_PLANNER_H

#include "core/merge_queue.h"
#include "core/staging.h"
#include "core/work.h"

struct rbx_planner {
	bool merge;
	bool stage_always; /* preMR for all memory without a region */
	uint32_t chain_max; /* 1 to RBX_CHAIN_MAX */
	uint32_t sge_max; /* 1 to RBX_SGE_MAX */
	uint32_t message_bytes_max; /* of a merged work request */
	uint32_t any_lkey; /* if has_any_lkey: covers all memory */
	bool has_any_lkey;
	struct rbx_staging *staging;
};

/* Whether the memory of a fragment is not registered and has to be staged. */
static inline bool rbx_planner_stages(const struct rbx_planner *planner,
				      const struct rbx_fragment *fragment)
{
	return !(fragment->flags & RBX_FRAGMENT_HAS_LKEY) &&
	       (!planner->has_any_lkey || planner->stage_always);
}

static inline uint32_t rbx_planner_lkey(const struct rbx_planner *planner,
					const struct rbx_fragment *fragment)
{
	return fragment->flags & RBX_FRAGMENT_HAS_LKEY ? fragment->lkey :
							 planner->any_lkey;
}

/* Makes a work request of one member. */
static inline void rbx_planner_start(const struct rbx_planner *planner,
				     struct rbx_work *work,
				     struct rbx_fragment *fragment)
{
	work->first = fragment;
	work->last = fragment;
	work->member_count = 1;
	work->length_bytes = fragment->length_bytes;
	work->remote_addr = fragment->remote_addr;
	work->rkey = fragment->rkey;
	work->direction = fragment->direction;
	work->staged = rbx_planner_stages(planner, fragment);
	work->sge_count = 1;
	work->sges[0].addr = fragment->local_addr;
	work->sges[0].length_bytes = fragment->length_bytes;
	work->sges[0].lkey = rbx_planner_lkey(planner, fragment);
}

/* Adds `next`, which continues the work request, and its followers, as far as the limits allow. */
void rbx_planner_grow(const struct rbx_planner *planner,
		      struct rbx_merge_queue *queue, struct rbx_work *work,
		      struct rbx_fragment *next);

/*
 * Makes the next work request from the fragments whose turn it is, without taking them: fills
 * all of `work` except what staging changes. False: there are none. Then the channel takes
 * credit for work->length_bytes, stages what is staged, and takes the fragments out of the
 * queue (rbx_merge_queue_take()).
 */
static inline bool rbx_planner_next(const struct rbx_planner *planner,
				    struct rbx_merge_queue *queue,
				    struct rbx_work *work)
{
	struct rbx_fragment *fragment = rbx_merge_queue_head(queue), *next;

	if (!fragment)
		return false;
	rbx_planner_start(planner, work, fragment);
	if (!planner->merge || fragment->flags & RBX_FRAGMENT_ALONE)
		return true;
	next = rbx_merge_queue_after(queue, fragment);
	if (next && rbx_work_continues(work, next))
		rbx_planner_grow(planner, queue, work, next);
	return true;
}

/* Replaces the members' memory by a staging run, and copies write data into it. Returns 0, or
 * -EAGAIN: no staging memory is free. */
int rbx_planner_stage(const struct rbx_planner *planner, struct rbx_work *work);

/*
 * After the completion of `work`, if it is staged: copies reads to their destination (only if
 * `done`), and gives the staging memory back.
 */
void rbx_planner_finish(const struct rbx_planner *planner,
			struct rbx_work *work, bool done);

#endif
