/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planner.h - fragments in, work requests out.
 *
 * The paper's algorithm 2 (section IV-A). Merging on MR: fragments that are
 * neighbours in remote memory become one work request with a scatter list, or
 * one staging run. Chaining: work requests that could not be merged are linked
 * and posted with one doorbell. The four modes of the paper are two limits:
 *
 *            merge   chain_max
 *   single   no      1
 *   doorbell no      RBX_CHAIN_MAX
 *   merge    yes     1
 *   hybrid   yes     RBX_CHAIN_MAX
 *
 * Nothing is ever waited for: the planner takes what is there. A fragment that
 * is alone leaves alone (load-aware).
 */
#ifndef RBX_PLANNER_H
#define RBX_PLANNER_H

#include "core/merge_queue.h"
#include "core/staging.h"
#include "core/work.h"

struct rbx_planner {
	bool merge;
	bool stage_always; /* preMR for all that no region covers */
	uint32_t chain_max; /* 1 to RBX_CHAIN_MAX */
	uint32_t sge_max; /* 1 to RBX_SGE_MAX */
	uint32_t message_bytes_max; /* of a merged work request */
	uint32_t any_lkey; /* where has_any_lkey: covers all memory */
	bool has_any_lkey;
	struct rbx_staging *staging;
};

/*
 * Makes the next work request of the fragments whose turn it is, without taking
 * them: fills all of `work` but what staging changes. Returns false where there
 * are none. The host then takes credit for work->length_bytes.
 */
bool rbx_planner_next(const struct rbx_planner *planner,
		      struct rbx_merge_queue *queue, struct rbx_work *work);

/* Puts a staging run in the place of the members' memory, and copies what is to
 * be written into it. Returns 0, or -EAGAIN: no staging memory is free. */
int rbx_planner_stage(const struct rbx_planner *planner, struct rbx_work *work);

/* Takes the fragments of `work`, staged where it is to be, out of the queue.
 * Returns 0, or -EAGAIN: then nothing was taken. */
static inline int rbx_planner_commit(const struct rbx_planner *planner,
				     struct rbx_merge_queue *queue,
				     struct rbx_work *work)
{
	if (work->staged && rbx_planner_stage(planner, work) != 0)
		return -EAGAIN;
	rbx_merge_queue_take(queue, work->last);
	return 0;
}

/*
 * After the completion of `work`, where it is staged: copies reads to where they
 * belong (only if `done`), gives the staging memory back.
 */
void rbx_planner_finish(const struct rbx_planner *planner,
			struct rbx_work *work, bool done);

#endif
