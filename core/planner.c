/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planner.c - which neighbours share a work request.
 *
 * Planning has two steps, so that nothing has to be put back: next() makes the
 * work request at the head of the queue, the host sees whether the window has
 * credit for it, commit() takes its members out. A fragment joins a work request
 * when it is the next in its line, continues its remote range exactly (touching,
 * not overlapping: promise 3 of the design), has the same key, and the limits on
 * bytes and scatter entries allow it. Two members that are neighbours in local
 * memory too share a scatter entry.
 *
 * A staged work request has one scatter entry whatever its members are; its
 * limit is the staging run.
 */
#include "core/planner.h"

static inline bool has_lkey(const struct rbx_planner *planner,
			    const struct rbx_fragment *fragment)
{
	if (fragment->flags & RBX_FRAGMENT_HAS_LKEY)
		return true;
	return planner->has_any_lkey && !planner->stage_always;
}

static inline uint32_t lkey_of(const struct rbx_planner *planner,
			       const struct rbx_fragment *fragment)
{
	return fragment->flags & RBX_FRAGMENT_HAS_LKEY ? fragment->lkey :
							 planner->any_lkey;
}

/* Adds the memory of a fragment to the scatter list; false: it needs an entry
 * more than there are. */
static inline bool add_entry(const struct rbx_planner *planner,
			     struct rbx_work *work,
			     const struct rbx_fragment *fragment)
{
	struct rbx_sge *sge = &work->sges[work->sge_count - 1];
	uint32_t lkey = lkey_of(planner, fragment);

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

/* Whether a fragment goes on in remote memory where `work` ends. */
static inline bool continues(const struct rbx_work *work,
			     const struct rbx_fragment *fragment)
{
	return fragment->remote_addr ==
		       work->remote_addr + work->length_bytes &&
	       fragment->rkey == work->rkey &&
	       !(fragment->flags & RBX_FRAGMENT_ALONE);
}

static inline void start(const struct rbx_planner *planner,
			 struct rbx_work *work, struct rbx_fragment *fragment)
{
	work->first = fragment;
	work->last = fragment;
	work->member_count = 1;
	work->length_bytes = fragment->length_bytes;
	work->remote_addr = fragment->remote_addr;
	work->rkey = fragment->rkey;
	work->direction = fragment->direction;
	work->staged = !has_lkey(planner, fragment);
	work->sge_count = 1;
	work->sges[0].addr = fragment->local_addr;
	work->sges[0].length_bytes = fragment->length_bytes;
	work->sges[0].lkey = lkey_of(planner, fragment);
}

/* Lets what follows the first member join it, as far as it may. */
static void grow(const struct rbx_planner *planner,
		 struct rbx_merge_queue *queue, struct rbx_work *work)
{
	uint32_t bytes_max = planner->message_bytes_max;
	struct rbx_fragment *next;

	if (work->staged)
		bytes_max = RBX_MIN(bytes_max, RBX_STAGING_RUN_BYTES);
	while ((next = rbx_merge_queue_after(queue, work->last)) != NULL &&
	       continues(work, next)) {
		uint64_t length_bytes =
			(uint64_t)work->length_bytes + next->length_bytes;

		if (length_bytes > bytes_max ||
		    work->staged != !has_lkey(planner, next) ||
		    (!work->staged && !add_entry(planner, work, next)))
			return;
		work->last = next;
		work->length_bytes = (uint32_t)length_bytes;
		work->member_count++;
	}
}

bool rbx_planner_next(const struct rbx_planner *planner,
		      struct rbx_merge_queue *queue, struct rbx_work *work)
{
	struct rbx_fragment *fragment = rbx_merge_queue_head(queue);

	if (fragment == NULL)
		return false;
	start(planner, work, fragment);
	if (planner->merge && !(fragment->flags & RBX_FRAGMENT_ALONE))
		grow(planner, queue, work);
	return true;
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
