/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reconcile.c - see reconcile.h.
 *
 * Several threads take one slab each, and a workspace with memory for what is read. Of a slab, its
 * tails are read, and then one cell after another that has something to decide; from all replicas
 * at the same time.
 */
#include "client/reconcile.h"

#include "client/named.h"
#include "client/side_by_side.h"
#include "client/workspace.h"
#include "core/checksum.h"
#include "core/extents.h"
#include "core/status.h"
#include "core/tails.h"

struct reconciling {
	struct rbx_volume_control *control;
	bool is_even;
	struct rbx_side_by_side threads;
	int err; /* atomic: why some slab could not be reconciled */
	struct rbx_lock lock; /* guards the list */
	struct rbx_workspace *free; /* those that no thread has */
};

/* The next replica that answers, from this one on; sources_count: none. */
static uint32_t next_good(const struct rbx_workspace *space, uint32_t replica)
{
	while (replica < space->sources_count && rbx_workspace_is_bad(space, replica))
		replica++;
	return replica;
}

/* ---- The tails ----------------------------------------------------------------------*/

static void tail_read(struct rbx_workspace *space, uint32_t replica)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(space->slab);
	uint32_t pages = (1u << shape->slab_shift) / RBX_PAGE_BYTES;
	uint32_t bytes = pages * RBX_WIRE_CHECKSUM_BYTES, step = 1u << shape->cell_shift, at;

	for (at = 0; at < bytes; at += step)
		rbx_workspace_begin(space, replica, RBX_DIRECTION_READ,
				    rbx_tail_offset(shape, 0) + at,
				    (char *)space->sources[replica].tail + at,
				    RBX_MIN(step, bytes - at));
}

/* Those of the first replica that answers are those of the slab, until it is decided. */
static int tails_take(struct rbx_workspace *space)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(space->slab);
	uint32_t pages = (1u << shape->slab_shift) / RBX_PAGE_BYTES, page, i;
	int err;

	for (i = 0; i < space->sources_count; i++)
		tail_read(space, i);
	err = rbx_workspace_wait(space);
	if (err)
		return err;
	i = next_good(space, 0);
	if (i == space->sources_count)
		return -EHOSTUNREACH;
	for (page = 0; page < pages; page++)
		RBX_STORE_RELAXED(&space->checksums[page], space->sources[i].tail[page]);
	return 0;
}

/* ---- Deciding -----------------------------------------------------------------------*/

/* Whether all replicas have the checksum that the slab has. */
static bool is_agreed(const struct rbx_workspace *space, uint32_t page)
{
	uint32_t i;

	for (i = next_good(space, 0); i < space->sources_count; i = next_good(space, i + 1))
		if (space->sources[i].tail[page] != space->checksums[page])
			return false;
	return true;
}

/* One that has the same as another one, or else the first one. */
static uint32_t choose_any(const struct rbx_workspace *space, const uint32_t *sums)
{
	uint32_t count = space->sources_count, first = next_good(space, 0), i, j;

	for (i = first; i < count; i = next_good(space, i + 1))
		for (j = next_good(space, i + 1); j < count; j = next_good(space, j + 1))
			if (sums[i] == sums[j])
				return i;
	return first;
}

/* The replica whose data is taken, or sources_count: none. sums: of what each one has. */
static uint32_t choose(const struct rbx_workspace *space, uint32_t page, const uint32_t *sums,
		       bool is_noted)
{
	uint32_t count = space->sources_count, first = next_good(space, 0), i, j;

	for (i = first; i < count; i = next_good(space, i + 1))
		if (sums[i] == space->sources[i].tail[page])
			return i;
	for (i = first; i < count; i = next_good(space, i + 1))
		for (j = first; j < count; j = next_good(space, j + 1))
			if (sums[i] == space->sources[j].tail[page])
				return i;
	return is_noted ? choose_any(space, sums) : count;
}

static void tail_write(struct rbx_workspace *space, uint32_t replica, uint32_t page, uint32_t sum)
{
	uint32_t *tail = space->sources[replica].tail;

	tail[page] = sum;
	rbx_workspace_begin(space, replica, RBX_DIRECTION_WRITE,
			    rbx_tail_offset(rbx_slab_shape(space->slab), page), &tail[page],
			    RBX_WIRE_CHECKSUM_BYTES);
}

/* in_cell: the number of the page in its cell, whose data was read. */
static void page_decide(struct rbx_workspace *space, uint32_t page, uint32_t in_cell, bool is_noted)
{
	uint32_t sums[RBX_SLOTS_MAX] = { 0 }, i, from;
	size_t at = (size_t)in_cell * RBX_PAGE_BYTES;

	for (i = next_good(space, 0); i < space->sources_count; i = next_good(space, i + 1))
		sums[i] = rbx_checksum_of(space->sources[i].data + at);
	from = choose(space, page, sums, is_noted);
	if (from >= space->sources_count)
		return;
	RBX_STORE_RELAXED(&space->checksums[page], sums[from]);
	for (i = next_good(space, 0); i < space->sources_count; i = next_good(space, i + 1)) {
		if (sums[i] != sums[from])
			rbx_workspace_begin(space, i, RBX_DIRECTION_WRITE,
					    (uint64_t)page * RBX_PAGE_BYTES,
					    space->sources[from].data + at, RBX_PAGE_BYTES);
		if (space->sources[i].tail[page] != sums[from])
			tail_write(space, i, page, sums[from]);
	}
}

static int cell_reconcile(struct rbx_workspace *space, uint32_t cell, bool is_noted)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(space->slab);
	uint32_t cell_bytes = 1u << shape->cell_shift, pages = cell_bytes / RBX_PAGE_BYTES;
	uint32_t first = cell * pages, agreed_count = 0, i;
	int err;

	for (i = 0; i < pages; i++)
		agreed_count += is_agreed(space, first + i);
	if (!is_noted && agreed_count == pages)
		return 0;
	for (i = next_good(space, 0); i < space->sources_count; i = next_good(space, i + 1))
		rbx_workspace_begin(space, i, RBX_DIRECTION_READ, (uint64_t)cell * cell_bytes,
				    space->sources[i].data, cell_bytes);
	err = rbx_workspace_wait(space);
	if (err) /* what is in memory is not what they have */
		return err;
	for (i = 0; i < pages; i++)
		if (is_noted || !is_agreed(space, first + i))
			page_decide(space, first + i, i, is_noted);
	return rbx_workspace_wait(space);
}

/* ---- Workspaces ---------------------------------------------------------------------*/

/* There are no more of them than threads. NULL: this machine is out of memory. */
static struct rbx_workspace *space_take(struct reconciling *all)
{
	struct rbx_workspace *space;

	rbx_lock(&all->lock);
	space = all->free;
	if (space)
		all->free = space->next;
	rbx_unlock(&all->lock);
	return space ? space : rbx_workspace_make(all->control);
}

static void space_give(struct reconciling *all, struct rbx_workspace *space)
{
	rbx_lock(&all->lock);
	space->next = all->free;
	all->free = space;
	rbx_unlock(&all->lock);
}

static void spaces_free(struct reconciling *all)
{
	struct rbx_workspace *space, *next;

	for (space = all->free; space; space = next) {
		next = space->next;
		rbx_workspace_free(space);
	}
}

/* ---- A slab -------------------------------------------------------------------------*/

static void sources_find(struct rbx_workspace *space)
{
	uint32_t left;

	space->sources_count = 0;
	rbx_slab_lock(space->slab);
	for (left = space->slab->read_mask; left; left &= left - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(left);
		const struct rbx_replica *replica = rbx_slab_replica(space->slab, slot);

		space->sources[space->sources_count] = (struct rbx_workspace_source){
			.slot = slot,
			.server = rbx_replica_server(replica),
			.loan = rbx_replica_loan(replica),
			.tail = space->chunks[2 * space->sources_count].memory,
			.data = space->chunks[2 * space->sources_count + 1].memory,
		};
		space->sources_count++;
	}
	rbx_slab_unlock(space->slab);
}

static int slab_decide(struct rbx_workspace *space)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(space->slab);
	uint32_t cell, i, cells = rbx_slab_cells(shape);
	bool any_is_bad = false;
	int err = tails_take(space);

	for (cell = 0; cell < cells && !err; cell++)
		err = cell_reconcile(space, cell, space->noted & rbx_extents_of_cell(shape, cell));
	if (err)
		return err;
	for (i = 0; i < space->sources_count; i++)
		any_is_bad |= rbx_workspace_is_bad(space, i);
	if (next_good(space, 0) == space->sources_count)
		return -EHOSTUNREACH;
	if (space->noted && !any_is_bad) {
		rbx_slab_lock(space->slab);
		rbx_extents_made_equal(space->slab);
		rbx_slab_unlock(space->slab);
	}
	return 0;
}

/* The sources are those of the slab before. */
static void slab_set(struct rbx_workspace *space, struct rbx_slab *slab, bool is_even)
{
	space->slab = slab;
	space->piece->slab = slab;
	space->checksums = rbx_slab_checksums(slab);
	space->noted = is_even ? 0 : rbx_extents_unequal(slab);
	sources_find(space);
}

static void slab_reconcile(void *user, uint32_t index)
{
	struct reconciling *all = user;
	struct rbx_workspace *space = space_take(all);
	int err = -ENOMEM;

	if (space) {
		slab_set(space, rbx_slab_at(&all->control->flow.map->shape, index),
			 all->is_even);
		/* Without a source it was never written. */
		err = space->sources_count ? slab_decide(space) : 0;
		space_give(all, space);
	}
	if (!err)
		return;
	RBX_STORE_RELAXED(&all->err, err);
	rbx_side_by_side_stop(&all->threads);
}

int rbx_reconcile(struct rbx_volume_control *control, bool is_even)
{
	struct reconciling all = { .control = control, .is_even = is_even };
	int err;

	rbx_lock_init(&all.lock);
	rbx_side_by_side_begin(&all.threads, control->flow.map->slab_count, slab_reconcile, &all);
	rbx_side_by_side_end(&all.threads);
	spaces_free(&all);
	err = RBX_LOAD_RELAXED(&all.err);
	if (!err)
		return 0;
	if (err == -ENOMEM)
		return rbx_error(err, "out of memory to read the checksums of volume %s",
				 control->named->record.name);
	if (rbx_status_class(err) == RBX_STATUS_LOCAL)
		return rbx_error(err, "volume %s: the device of this machine has failed while checksums were read: open it again",
				 control->named->record.name);
	return rbx_error(-EIO, "volume %s: no server tells its checksums of some slab: open it again",
			 control->named->record.name);
}
