/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * planner.c - which neighbours share a work request.
 *
 * Planning has two steps, so that nothing has to be put back: next() measures
 * the work request at the head of a queue, the host sees whether the window
 * has credit for it, commit() takes it. A fragment joins a work request when
 * it is the next in its queue, continues its remote range exactly (touching,
 * not overlapping: promise 3 of the design), has the same key, and the limits
 * on bytes and scatter entries allow it. Two members that are neighbours in
 * local memory too share a scatter entry.
 *
 * A staged work request has one scatter entry whatever its members are; its
 * limit is the staging run.
 *
 * Reads and writes take turns, so that neither starves the other.
 */
#include "core/planner.h"

static bool has_lkey(const struct rbx_planner *planner,
		     const struct rbx_fragment *fragment)
{
	if (fragment->flags & RBX_FRAGMENT_HAS_LKEY)
		return true;
	return planner->has_any_lkey && !planner->stage_always;
}

static uint32_t lkey_of(const struct rbx_planner *planner,
			const struct rbx_fragment *fragment)
{
	return fragment->flags & RBX_FRAGMENT_HAS_LKEY ? fragment->lkey :
							 planner->any_lkey;
}

/* Whether `next` goes on in local memory where `fragment` ends. */
static bool shares_entry(const struct rbx_planner *planner,
			 const struct rbx_fragment *fragment,
			 const struct rbx_fragment *next)
{
	return fragment->local_addr + fragment->length_bytes ==
		       next->local_addr &&
	       lkey_of(planner, fragment) == lkey_of(planner, next);
}

static struct rbx_fragment *next_of(const struct rbx_fragment *fragment)
{
	return fragment->node.next ? rbx_fragment_of(fragment->node.next) :
				     NULL;
}

/* Whether `next` may become a member of `work`, whose last member is known. */
static bool joins(const struct rbx_planner *planner,
		  const struct rbx_work *work, const struct rbx_fragment *next)
{
	bool staged = !has_lkey(planner, work->last);
	uint32_t bytes_max = planner->message_bytes_max;

	if (next->rkey != work->rkey ||
	    next->remote_addr != work->remote_addr + work->length_bytes)
		return false;
	if (next->flags & RBX_FRAGMENT_ALONE ||
	    staged != !has_lkey(planner, next))
		return false;
	if (staged)
		bytes_max = RBX_MIN(bytes_max, RBX_STAGING_RUN_BYTES);
	else if (work->sge_count == planner->sge_max &&
		 !shares_entry(planner, work->last, next))
		return false;
	return next->length_bytes <= bytes_max &&
	       work->length_bytes <= bytes_max - next->length_bytes;
}

static void start(struct rbx_work *work, struct rbx_fragment *fragment)
{
	work->first = fragment;
	work->last = fragment;
	work->member_count = 1;
	work->length_bytes = fragment->length_bytes;
	work->remote_addr = fragment->remote_addr;
	work->rkey = fragment->rkey;
	work->direction = fragment->direction;
	work->staging_block = RBX_NOT_STAGED;
	work->sge_count = 1;
}

bool rbx_planner_next(const struct rbx_planner *planner,
		      const struct rbx_merge_queue *queue,
		      struct rbx_work *work)
{
	struct rbx_fragment *fragment = queue->first[queue->next_direction];

	if (fragment == NULL)
		fragment = queue->first[!queue->next_direction];
	if (fragment == NULL)
		return false;
	start(work, fragment);
	if (!planner->merge || fragment->flags & RBX_FRAGMENT_ALONE)
		return true;
	while ((fragment = next_of(fragment)) != NULL &&
	       joins(planner, work, fragment)) {
		work->sge_count += !shares_entry(planner, work->last, fragment);
		work->last = fragment;
		work->length_bytes += fragment->length_bytes;
		work->member_count++;
	}
	return true;
}

static void gather(const struct rbx_planner *planner, struct rbx_work *work)
{
	struct rbx_fragment *fragment = work->first, *before = NULL;
	struct rbx_sge *sge = work->sges - 1;

	for (; fragment != NULL; before = fragment, fragment = next_of(fragment)) {
		if (before && shares_entry(planner, before, fragment)) {
			sge->length_bytes += fragment->length_bytes;
			continue;
		}
		sge++;
		sge->addr = fragment->local_addr;
		sge->length_bytes = fragment->length_bytes;
		sge->lkey = lkey_of(planner, fragment);
	}
	RBX_ASSERT((uint32_t)(sge - work->sges) + 1 == work->sge_count);
}

/* Copies between the members' memory and the staging run. */
static void copy_staged(const struct rbx_planner *planner,
			const struct rbx_work *work)
{
	uint8_t *staged =
		rbx_staging_memory(planner->staging, work->staging_block);

	for (struct rbx_fragment *fragment = work->first; fragment != NULL;
	     fragment = next_of(fragment)) {
		void *local = (void *)(uintptr_t)fragment->local_addr;

		if (work->direction == RBX_DIRECTION_WRITE)
			rbx_port_copy(staged, local, fragment->length_bytes);
		else
			rbx_port_copy(local, staged, fragment->length_bytes);
		staged += fragment->length_bytes;
	}
}

static void cut_from_queue(struct rbx_merge_queue *queue,
			   struct rbx_work *work)
{
	RBX_ASSERT(queue->first[work->direction] == work->first);
	queue->first[work->direction] = next_of(work->last);
	work->last->node.next = NULL;
	queue->next_direction = !work->direction;
}

int rbx_planner_commit(const struct rbx_planner *planner,
		       struct rbx_merge_queue *queue, struct rbx_work *work)
{
	int32_t block;

	if (has_lkey(planner, work->first)) {
		cut_from_queue(queue, work);
		gather(planner, work);
		return 0;
	}
	block = rbx_staging_take(planner->staging, work->length_bytes);
	if (block < 0)
		return block;
	cut_from_queue(queue, work);
	work->staging_block = (uint32_t)block;
	work->sge_count = 1;
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
	if (work->staging_block == RBX_NOT_STAGED)
		return;
	if (done && work->direction == RBX_DIRECTION_READ)
		copy_staged(planner, work);
	rbx_staging_give(planner->staging, work->staging_block,
			 work->length_bytes);
	work->staging_block = RBX_NOT_STAGED;
}
