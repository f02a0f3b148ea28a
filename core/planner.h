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

#include "core/request.h"
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
 * What waits in front of the planner: one queue for reads, one for writes, as
 * in the paper, and behind a fence whatever came after it. The combiner's own.
 */
struct rbx_merge_queue {
	struct rbx_fragment *first[RBX_DIRECTIONS];
	struct rbx_fragment *last[RBX_DIRECTIONS];
	struct rbx_fragment *fenced_first; /* a fence and all that follows it */
	struct rbx_fragment *fenced_last;
	uint8_t next_direction; /* whose turn it is */
};

void rbx_merge_queue_init(struct rbx_merge_queue *queue);

/* Appends the fragments of a list ended by NULL, in order. */
void rbx_merge_queue_add(struct rbx_merge_queue *queue, struct rbx_node *list);

bool rbx_merge_queue_empty(const struct rbx_merge_queue *queue);

/*
 * Lets a fence pass, with what follows it up to the next fence. Only when all
 * that came before has completed: the queues are empty, nothing is in flight.
 */
void rbx_merge_queue_pass_fence(struct rbx_merge_queue *queue);

/* Takes everything out, fenced or not; a list ended by NULL. */
struct rbx_fragment *rbx_merge_queue_clear(struct rbx_merge_queue *queue);

/*
 * Finds the fragments of the next work request, without taking them, and what
 * it will need: fills all of `work` but scatter list and staging. Returns false
 * where there are none. The host then takes credit for work->length_bytes.
 */
bool rbx_planner_next(const struct rbx_planner *planner,
		      const struct rbx_merge_queue *queue,
		      struct rbx_work *work);

/*
 * Takes the fragments of `work` out of the queue and fills the scatter list,
 * copying writes into staging memory where need be. Returns 0, or -EAGAIN
 * where no staging memory is free: then nothing was taken.
 */
int rbx_planner_commit(const struct rbx_planner *planner,
		       struct rbx_merge_queue *queue, struct rbx_work *work);

/*
 * After the completion of `work`: copies staged reads to where they belong
 * (only if `done`), gives the staging memory back.
 */
void rbx_planner_finish(const struct rbx_planner *planner,
			struct rbx_work *work, bool done);

#endif
