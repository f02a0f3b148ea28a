/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planner.c - which neighbours share a work request.
 *
 * Planning has two steps, so that nothing has to be put back: next() makes the work request
 * at the head of the queue, the channel checks whether the window has credit for it, and then
 * takes its members out. A fragment joins a work request if it is the next in its
 * line, continues its remote range exactly (touching, not overlapping: promise 3 of the
 * design), has the same key, and the limits on bytes and scatter entries allow it. Two
 * members that are neighbours in local memory too share a scatter entry.
 *
 * A staged work request has one scatter entry whatever its members are. Its limit is the
 * staging run.
 */
#include "core/planner.h"

/* Adds the memory of a fragment to the scatter list; false: no entry is free. */
static inline bool add_entry(const struct rbx_planner *planner,
			     struct rbx_work *work,
			     const struct rbx_fragment *fragment)
{
	struct rbx_sge *sge = &work->sges[work->sge_count - 1];
	uint32_t lkey = rbx_planner_lkey(planner, fragment);

	if (sge->lkey == lkey &&
	    sge->addr + sge->length_bytes == fragment->local_addr) {
		sge->length_bytes += fragment->length_bytes;
		return true;
	}
	if (work->sge_count == planner->sge_max)
		return false;
	sge[1].addr = fragment->local_addr;
	sge[1].length_bytes = fragment->length_bytes;
	sge[1].lkey = lkey;
	work->sge_count++;
	return true;
}

void rbx_planner_grow(const struct rbx_planner *planner,
		      struct rbx_merge_queue *queue, struct rbx_work *work,
		      struct rbx_fragment *next)
{
	uint32_t bytes_max = planner->message_bytes_max;

	if (work->staged)
		bytes_max = RBX_MIN(bytes_max, RBX_STAGING_RUN_BYTES);
	do {
		uint64_t length_bytes =
			(uint64_t)work->length_bytes + next->length_bytes;

		if (length_bytes > bytes_max ||
		    work->staged != rbx_planner_stages(planner, next) ||
		    (!work->staged && !add_entry(planner, work, next)))
			return;
		work->last = next;
		work->length_bytes = (uint32_t)length_bytes;
		work->member_count++;
		next = rbx_merge_queue_after(queue, next);
	} while (next && rbx_work_continues(work, next));
}

/* Copies between the members' memory and the staging run. */
static void copy_staged(const struct rbx_planner *planner,
			const struct rbx_work *work)
{
	uint8_t *staged =
		rbx_staging_memory(planner->staging, work->staging_block);
	struct rbx_fragment *fragment = work->first;

	for (uint32_t left = work->member_count; left != 0; left--) {
		void *local = (void *)(uintptr_t)fragment->local_addr;

		if (work->direction == RBX_DIRECTION_WRITE)
			rbx_port_copy(staged, local, fragment->length_bytes);
		else
			rbx_port_copy(local, staged, fragment->length_bytes);
		staged += fragment->length_bytes;
		fragment = rbx_fragment_next(fragment);
	}
}

int rbx_planner_stage(const struct rbx_planner *planner, struct rbx_work *work)
{
	int32_t block =
		rbx_staging_take(planner->staging, work->length_bytes);

	if (block < 0)
		return block;
	work->staging_block = (uint32_t)block;
	work->sges[0].addr = (uintptr_t)rbx_staging_memory(planner->staging,
							   (uint32_t)block);
	work->sges[0].length_bytes = work->length_bytes;
	work->sges[0].lkey = planner->staging->lkey;
	if (work->direction == RBX_DIRECTION_WRITE)
		copy_staged(planner, work);
	return 0;
}

void rbx_planner_finish(const struct rbx_planner *planner,
			struct rbx_work *work, bool done)
{
	RBX_ASSERT(work->staged);
	if (done && work->direction == RBX_DIRECTION_READ)
		copy_staged(planner, work);
	rbx_staging_give(planner->staging, work->staging_block,
			 work->length_bytes);
}
