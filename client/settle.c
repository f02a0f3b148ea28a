/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * settle.c - see settle.h.
 *
 * Several threads take one slab each. Of a slab, its tails are read, and then one cell after
 * another that has something to decide; from all replicas at the same time.
 */
#include "client/settle.h"

#include "client/named.h"
#include "client/opening.h"
#include "client/side_by_side.h"
#include "core/checksum.h"
#include "core/extents.h"
#include "core/tails.h"

#define PAUSE_NS 1000000u
#define CELL_PAGES_MAX (RBX_FRAGMENT_BYTES_MAX / RBX_PAGE_BYTES)

struct settling {
	struct rbx_volume_control *control;
	bool is_even;
	struct rbx_side_by_side threads;
	bool has_failed; /* atomic */
};

struct desk;

/* A read of a replica, or a write. It looks like a part of a piece to those who ask which slab
 * needs its server (rbx_last_copies_wait()). */
struct io {
	struct rbx_part part;
	struct desk *desk;
	uint32_t replica;
};

/* One of the replicas. */
struct source {
	uint32_t slot, server;
	struct rbx_loan loan;
	bool is_bad; /* atomic: something has failed there */
	uint32_t *tail;
	uint8_t *data; /* of a cell */
};

/* What a thread knows of the slab that it has. */
struct desk {
	struct rbx_volume_control *control;
	struct rbx_slab *slab;
	struct rbx_piece *piece; /* with the slab alone */
	uint64_t noted; /* extents in which a client was writing */
	uint32_t *checksums; /* of the map */
	uint32_t sources_count;
	struct source sources[RBX_SLOTS_MAX];
	uint32_t left_count; /* atomic: of the ios that are under way */
	uint32_t ios_count;
	struct io *ios;
};

/* ---- Reading and writing ------------------------------------------------------------*/

static struct rbx_fragment *ios_done(struct rbx_fragment *list)
{
	while (list && list->done == ios_done) {
		struct io *io = RBX_CONTAINER_OF(list, struct io, part.fragment);
		struct rbx_fragment *next = rbx_fragment_next(list);

		if (list->status)
			RBX_STORE_RELAXED(&io->desk->sources[io->replica].is_bad, true);
		/* The thread that waits for it may free all that is here. */
		RBX_FETCH_ADD(&io->desk->left_count, (uint32_t)-1);
		list = next;
	}
	return list;
}

static void io_begin(struct desk *desk, uint32_t replica, enum rbx_direction direction,
		     uint64_t offset_bytes, const void *memory, uint32_t length_bytes)
{
	struct source *source = &desk->sources[replica];
	struct rbx_flow *flow = &desk->control->flow;
	struct io *io = &desk->ios[desk->ios_count++];

	*io = (struct io){
		.part = {
			.fragment = {
				.direction = (uint8_t)direction,
				.rkey = source->loan.rkey,
				.remote_addr = source->loan.remote_addr + offset_bytes,
				.local_addr = (uintptr_t)memory,
				.length_bytes = length_bytes,
				.done = ios_done,
			},
			.piece = desk->piece,
			.server = (uint16_t)source->server,
			.slot = (uint8_t)source->slot,
		},
		.desk = desk,
		.replica = replica,
	};
	RBX_FETCH_ADD(&desk->left_count, 1);
	flow->ops->submit(flow, source->server, &io->part.fragment, &io->part.fragment);
}

static void ios_end(struct desk *desk)
{
	while (RBX_LOAD_ACQUIRE(&desk->left_count))
		if (rbx_volume_turn_wait(desk->control))
			rbx_pause_ns(PAUSE_NS); /* it ends in time, and its memory is ours */
	desk->ios_count = 0;
}

static bool is_bad(const struct desk *desk, uint32_t replica)
{
	return RBX_LOAD_RELAXED(&desk->sources[replica].is_bad);
}

/* The next replica that answers, from this one on; sources_count: none. */
static uint32_t next_good(const struct desk *desk, uint32_t replica)
{
	while (replica < desk->sources_count && is_bad(desk, replica))
		replica++;
	return replica;
}

/* ---- The tails ----------------------------------------------------------------------*/

static void tail_read(struct desk *desk, uint32_t replica)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(desk->slab);
	uint32_t pages = (1u << shape->slab_shift) / RBX_PAGE_BYTES;
	uint32_t bytes = pages * RBX_WIRE_CHECKSUM_BYTES, step = 1u << shape->cell_shift, at;

	for (at = 0; at < bytes; at += step)
		io_begin(desk, replica, RBX_DIRECTION_READ, rbx_tail_offset(shape, 0) + at,
			 (char *)desk->sources[replica].tail + at, RBX_MIN(step, bytes - at));
}

/* Those of the first replica that answers are those of the slab, until it is decided. */
static int tails_take(struct desk *desk)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(desk->slab);
	uint32_t pages = (1u << shape->slab_shift) / RBX_PAGE_BYTES, page, i;

	for (i = 0; i < desk->sources_count; i++)
		tail_read(desk, i);
	ios_end(desk);
	i = next_good(desk, 0);
	if (i == desk->sources_count)
		return -EIO;
	for (page = 0; page < pages; page++)
		RBX_STORE_RELAXED(&desk->checksums[page], desk->sources[i].tail[page]);
	return 0;
}

/* ---- Deciding -----------------------------------------------------------------------*/

/* Whether all replicas have the checksum that the slab has. */
static bool is_agreed(const struct desk *desk, uint32_t page)
{
	uint32_t i;

	for (i = next_good(desk, 0); i < desk->sources_count; i = next_good(desk, i + 1))
		if (desk->sources[i].tail[page] != desk->checksums[page])
			return false;
	return true;
}

/* One that has the same as another one, or else the first one. */
static uint32_t choose_any(const struct desk *desk, const uint32_t *sums)
{
	uint32_t count = desk->sources_count, first = next_good(desk, 0), i, j;

	for (i = first; i < count; i = next_good(desk, i + 1))
		for (j = next_good(desk, i + 1); j < count; j = next_good(desk, j + 1))
			if (sums[i] == sums[j])
				return i;
	return first;
}

/* The replica whose data is taken, or sources_count: none. sums: of what each one has. */
static uint32_t choose(const struct desk *desk, uint32_t page, const uint32_t *sums,
		       bool is_noted)
{
	uint32_t count = desk->sources_count, first = next_good(desk, 0), i, j;

	for (i = first; i < count; i = next_good(desk, i + 1))
		if (sums[i] == desk->sources[i].tail[page])
			return i;
	for (i = first; i < count; i = next_good(desk, i + 1))
		for (j = first; j < count; j = next_good(desk, j + 1))
			if (sums[i] == desk->sources[j].tail[page])
				return i;
	return is_noted ? choose_any(desk, sums) : count;
}

/* in_cell: the number of the page in its cell, whose data was read. */
static void page_decide(struct desk *desk, uint32_t page, uint32_t in_cell, bool is_noted)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(desk->slab);
	uint32_t sums[RBX_SLOTS_MAX] = { 0 }, i, from;
	size_t at = (size_t)in_cell * RBX_PAGE_BYTES;

	for (i = next_good(desk, 0); i < desk->sources_count; i = next_good(desk, i + 1))
		sums[i] = rbx_checksum_of(desk->sources[i].data + at);
	from = choose(desk, page, sums, is_noted);
	if (from >= desk->sources_count)
		return;
	RBX_STORE_RELAXED(&desk->checksums[page], sums[from]);
	for (i = next_good(desk, 0); i < desk->sources_count; i = next_good(desk, i + 1)) {
		if (sums[i] != sums[from])
			io_begin(desk, i, RBX_DIRECTION_WRITE, (uint64_t)page * RBX_PAGE_BYTES,
				 desk->sources[from].data + at, RBX_PAGE_BYTES);
		if (desk->sources[i].tail[page] != sums[from])
			io_begin(desk, i, RBX_DIRECTION_WRITE, rbx_tail_offset(shape, page),
				 &desk->checksums[page], RBX_WIRE_CHECKSUM_BYTES);
	}
}

static void cell_settle(struct desk *desk, uint32_t cell, bool is_noted)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(desk->slab);
	uint32_t cell_bytes = 1u << shape->cell_shift, pages = cell_bytes / RBX_PAGE_BYTES;
	uint32_t first = cell * pages, agreed_count = 0, i;

	for (i = 0; i < pages; i++)
		agreed_count += is_agreed(desk, first + i);
	if (!is_noted && agreed_count == pages)
		return;
	for (i = next_good(desk, 0); i < desk->sources_count; i = next_good(desk, i + 1))
		io_begin(desk, i, RBX_DIRECTION_READ, (uint64_t)cell * cell_bytes,
			 desk->sources[i].data, cell_bytes);
	ios_end(desk);
	for (i = 0; i < pages; i++)
		if (is_noted || !is_agreed(desk, first + i))
			page_decide(desk, first + i, i, is_noted);
	ios_end(desk);
}

/* ---- A slab -------------------------------------------------------------------------*/

static int desk_room(struct desk *desk)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(desk->slab);
	uint32_t tail_bytes = (1u << shape->slab_shift) / RBX_PAGE_BYTES * RBX_WIRE_CHECKSUM_BYTES;
	uint32_t reads = (tail_bytes >> shape->cell_shift) + 1, i;

	/* Of each replica: the parts of its tail, or each page of a cell and its checksum. */
	desk->ios = rbx_memory_make(RBX_SLOTS_MAX * (size_t)RBX_MAX(reads, 2 * CELL_PAGES_MAX) *
				    sizeof(*desk->ios));
	desk->piece = rbx_memory_make(sizeof(*desk->piece));
	for (i = 0; i < desk->sources_count; i++) {
		desk->sources[i].tail = rbx_memory_make(tail_bytes);
		desk->sources[i].data = rbx_memory_make((size_t)1 << shape->cell_shift);
		if (!desk->sources[i].tail || !desk->sources[i].data)
			return -ENOMEM;
	}
	if (!desk->ios || !desk->piece)
		return -ENOMEM;
	desk->piece->slab = desk->slab;
	return 0;
}

static void desk_clear(struct desk *desk)
{
	uint32_t i;

	for (i = 0; i < desk->sources_count; i++) {
		rbx_memory_free(desk->sources[i].tail);
		rbx_memory_free(desk->sources[i].data);
	}
	rbx_memory_free(desk->piece);
	rbx_memory_free(desk->ios);
}

static void sources_find(struct desk *desk)
{
	uint32_t left;

	rbx_slab_lock(desk->slab);
	for (left = desk->slab->read_mask; left; left &= left - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(left);
		const struct rbx_replica *replica = rbx_slab_replica(desk->slab, slot);

		desk->sources[desk->sources_count++] = (struct source){
			.slot = slot,
			.server = rbx_replica_server(replica),
			.loan = rbx_replica_loan(replica),
		};
	}
	rbx_slab_unlock(desk->slab);
}

static int slab_decide(struct desk *desk)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(desk->slab);
	uint32_t cell, i, cells = rbx_slab_cells(shape);
	bool any_is_bad = false;
	int err = tails_take(desk);

	for (cell = 0; cell < cells && !err; cell++)
		cell_settle(desk, cell, desk->noted & rbx_extents_of_cell(shape, cell));
	for (i = 0; i < desk->sources_count; i++)
		any_is_bad |= is_bad(desk, i);
	if (err || next_good(desk, 0) == desk->sources_count)
		return -EIO;
	if (desk->noted && !any_is_bad) {
		rbx_slab_lock(desk->slab);
		rbx_extents_settled(desk->slab);
		rbx_slab_unlock(desk->slab);
	}
	return 0;
}

static void slab_settle(void *user, uint32_t index)
{
	struct settling *settling = user;
	const struct rbx_slab_shape *shape = &settling->control->flow.map->shape;
	struct rbx_slab *slab = rbx_slab_at(shape, index);
	struct desk desk = {
		.control = settling->control,
		.slab = slab,
		.checksums = rbx_slab_checksums(slab),
		.noted = settling->is_even ? 0 : rbx_extents_unequal(slab),
	};
	int err;

	sources_find(&desk);
	if (!desk.sources_count) /* it was never written */
		return;
	err = desk_room(&desk);
	if (!err)
		err = slab_decide(&desk);
	desk_clear(&desk);
	if (!err)
		return;
	RBX_STORE_RELAXED(&settling->has_failed, true);
	rbx_side_by_side_stop(&settling->threads);
}

int rbx_settle(struct rbx_volume_control *control, bool is_even)
{
	struct settling settling = { .control = control, .is_even = is_even };

	rbx_side_by_side_begin(&settling.threads, control->flow.map->slab_count, slab_settle,
			       &settling);
	rbx_side_by_side_end(&settling.threads);
	if (!RBX_LOAD_RELAXED(&settling.has_failed))
		return 0;
	return rbx_error(-EIO, "volume %s: no server tells its checksums of some slab, or this machine is out of memory: open it again",
			 control->named->record.name);
}
