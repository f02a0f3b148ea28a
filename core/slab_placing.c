/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_placing.c - gives memory to a slab without replicas: to a blank one for its first
 * write, to a dead one together with its lost pages, see slab.h.
 *
 * Writes wait meanwhile, in the queue of a cell number that no slab has. All pages of a dead
 * slab are bad before its memory is in use (lost_pages.h). The table of its pages is found in
 * the slab's group, since few slabs have one. The host provides and takes back the memory for
 * that, and calls in the order that rbx_slab_task() says.
 */
#include "core/slab_way.h"

static struct rbx_lost_pages **pages_bucket(const struct rbx_slab *slab)
{
	uint32_t number = rbx_slab_index(slab) / RBX_SLAB_LOCKS;

	return &rbx_slab_group(slab)->lost[number % RBX_LOST_BUCKETS];
}

/* Bounded by the slabs that were lost: the entry is in its bucket. */
static struct rbx_lost_pages **pages_find(const struct rbx_slab *slab)
{
	struct rbx_lost_pages **link = pages_bucket(slab);

	RBX_ASSERT(slab->has_pages);
	while ((*link)->slab_index != rbx_slab_index(slab))
		link = &(*link)->next;
	return link;
}

struct rbx_lost_pages *rbx_slab_pages(const struct rbx_slab *slab)
{
	return *pages_find(slab);
}

bool rbx_slab_wants_pages(const struct rbx_slab *slab)
{
	return !slab->blank && !slab->has_pages;
}

void rbx_slab_lend_pages(struct rbx_slab *slab, struct rbx_lost_pages *pages)
{
	struct rbx_lost_pages **bucket = pages_bucket(slab);

	RBX_ASSERT(!slab->has_pages);
	slab->has_pages = true;
	pages->slab_index = rbx_slab_index(slab);
	pages->next = *bucket;
	*bucket = pages;
}

struct rbx_lost_pages *rbx_slab_take_pages(struct rbx_slab *slab)
{
	struct rbx_lost_pages **link, *pages;

	RBX_ASSERT(!slab->read_mask || !slab->has_holes);
	if (!slab->has_pages)
		return NULL;
	link = pages_find(slab);
	pages = *link;
	*link = pages->next;
	slab->has_pages = false;
	return pages;
}

/* ---- Placing ----------------------------------------------------------------*/

/* The pages of a dead slab are bad before its memory is in use. */
void rbx_slab_place(struct rbx_slab *slab)
{
	RBX_ASSERT(!slab->read_mask && !rbx_slab_has_memory(slab));
	if (slab->blank) /* it may have been discarded meanwhile */
		return;
	rbx_lost_pages_begin(rbx_slab_pages(slab), rbx_slab_shape(slab)->slab_shift);
	slab->has_holes = true;
	slab->placing = true;
}

/* The old checksums say nothing about the new memory. */
static void checksums_forget(struct rbx_slab *slab)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);

	if (shape->checksums)
		rbx_port_fill(rbx_slab_checksums(slab), 0,
			      ((size_t)1 << shape->slab_shift) /
				      RBX_PAGE_BYTES *
				      sizeof(*shape->checksums));
}

/* The status of writes that waited in vain. The data of a dead slab is lost, whatever the
 * reason why it is not placed anew. */
static int32_t end_status(int err, bool was_blank)
{
	if (!was_blank || err == -ENODEV)
		return -EIO;
	return err == -ETIMEDOUT || err == -ECANCELED ? err : -ENOSPC;
}

void rbx_slab_begin(struct rbx_slab *slab, int err, struct rbx_piece_list *todo)
{
	struct rbx_slab_group *group = rbx_slab_group(slab);
	bool was_blank = slab->blank, more = slab->waits;
	struct rbx_piece *piece;

	slab->waits = false;
	slab->blank = false;
	slab->placing = false;
	rbx_slab_masks(slab);
	RBX_ASSERT(slab->read_mask || err);
	slab->blank = was_blank && !slab->read_mask;
	if (slab->read_mask)
		checksums_forget(slab);
	/* Bounded: no write joins the queue meanwhile. */
	while (more) {
		piece = rbx_cell_dismiss(&group->cells,
					 rbx_slab_waiting_place(slab), &more);
		if (slab->read_mask)
			rbx_way_take(slab, group, piece, todo);
		else
			rbx_way_end(piece, end_status(err, was_blank), todo);
	}
	slab->attention = true;
}
