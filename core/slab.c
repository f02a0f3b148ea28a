/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab.c - the way of a piece through its slab, see slab.h.
 *
 * A write waits for its granules, goes to all replicas at once, and ends when
 * the last has answered. A read goes to one replica and ends with it, or goes
 * on to the next; one that found bad data on its way is then written to where it
 * was. A copy is a read and then a write of its targets.
 *
 * Who ends gives its granules back, and those that waited for them begin in the
 * same step, one after another and not by recursion: a thousand waiters of a
 * dead slab all end here. Each piece leaves a step on the host's list at most
 * once.
 *
 * The life of the replicas, and their rebuild, are in slab_replica.c.
 */
#include "core/slab.h"

#include "core/checksum.h"
#include "core/status.h"

void rbx_slab_init(struct rbx_slab *slab, const struct rbx_slab_shape *shape,
		   uint32_t index)
{
	RBX_ASSERT(shape->replicas >= 1 && shape->replicas <= RBX_REPLICAS_MAX);
	RBX_ASSERT(shape->slots == shape->replicas + 1);
	RBX_ASSERT(shape->cell_shift <= shape->slab_shift);
	rbx_port_fill(slab, 0, rbx_slab_size(shape->slots));
	slab->shape = shape;
	slab->index = index;
	slab->blank = shape->on_demand;
}

#define FROM(state) (1u << RBX_PIECE_##state)

/* The one function that changes the state of a piece. */
static inline void piece_move(struct rbx_piece *piece,
			      enum rbx_piece_state state)
{
	/* From where each state is entered. */
	static const uint8_t legal[] = {
		[RBX_PIECE_IDLE] = FROM(IDLE) | FROM(WAITING) | FROM(READING) |
				   FROM(WRITING),
		[RBX_PIECE_WAITING] = FROM(IDLE) | FROM(WAITING) |
				      FROM(READING),
		[RBX_PIECE_READING] = FROM(IDLE) | FROM(WAITING) | FROM(READING),
		[RBX_PIECE_WRITING] = FROM(IDLE) | FROM(WAITING) | FROM(READING),
	};

	RBX_DEBUG_ASSERT(legal[state] >> piece->state & 1);
	RBX_DEBUG_ASSERT(!piece->flight_mask);
	(void)legal;
	piece->state = (uint8_t)state;
}

/* Where it held granules somebody may wait for them: see serve_queue(). */
static inline void piece_end(struct rbx_piece *piece, int32_t status,
			     struct rbx_piece_list *todo)
{
	piece_move(piece, RBX_PIECE_IDLE);
	piece->status = status;
	if (piece->cell)
		rbx_cell_give(piece);
	rbx_piece_list_add(todo, piece);
}

static inline void part_prepare(struct rbx_slab *slab, struct rbx_piece *piece,
				uint32_t slot, enum rbx_direction direction)
{
	struct rbx_replica *replica = &slab->replicas[slot];
	struct rbx_part *part = &piece->parts[slot];
	struct rbx_fragment *fragment = &part->fragment;

	RBX_DEBUG_ASSERT(slab->write_mask >> slot & 1);
	replica->flight_count++;
	part->server = (uint16_t)replica->server;
	fragment->direction = (uint8_t)direction;
	fragment->flags = piece->fragment_flags;
	fragment->retries_count = 0;
	fragment->flushes_count = 0;
	fragment->status = 0;
	fragment->rkey = replica->rkey;
	fragment->remote_addr = rbx_replica_addr(replica) + piece->offset_bytes;
	fragment->local_addr = piece->local_addr;
	fragment->length_bytes = piece->length_bytes;
	fragment->lkey = piece->lkey;
}

/* The host is to send one part for each slot of the mask. */
static inline void piece_hand_over(struct rbx_piece *piece,
				   enum rbx_piece_state state, uint8_t mask,
				   struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(mask);
	piece_move(piece, state);
	piece->send_mask = mask;
	piece->flight_mask = mask;
	rbx_piece_list_add(todo, piece);
}

static inline void piece_send_read(struct rbx_slab *slab,
				   struct rbx_piece *piece, uint32_t slot,
				   struct rbx_piece_list *todo)
{
	piece_hand_over(piece, RBX_PIECE_READING, (uint8_t)(1u << slot), todo);
	part_prepare(slab, piece, slot, RBX_DIRECTION_READ);
}

static inline void piece_send_write(struct rbx_slab *slab,
				    struct rbx_piece *piece, uint8_t mask,
				    struct rbx_piece_list *todo)
{
	uint32_t left = mask;

	piece_hand_over(piece, RBX_PIECE_WRITING, mask, todo);
	do {
		part_prepare(slab, piece, (uint32_t)__builtin_ctz(left),
			     RBX_DIRECTION_WRITE);
		left &= left - 1;
	} while (left);
}

/* The member of read_mask of this number. */
static inline uint32_t read_slot(const struct rbx_slab *slab, uint32_t number)
{
	uint32_t mask = slab->read_mask;

	while (number--)
		mask &= mask - 1;
	return (uint32_t)__builtin_ctz(mask);
}

/* A live replica that has not been tried in vain, or -1. Neighbours within a
 * stripe go to the same one, so that they merge. */
static inline int choose_source(const struct rbx_slab *slab,
				const struct rbx_piece *piece)
{
	uint8_t candidates = slab->read_mask & ~piece->tried_mask;
	uint32_t stripe, slot;

	if (!candidates)
		return -1;
	if (slab->read_count == 1)
		return __builtin_ctz(candidates);
	stripe = piece->offset_bytes / RBX_READ_STRIPE_BYTES + slab->index;
	slot = read_slot(slab, stripe % slab->read_count);
	if (candidates >> slot & 1)
		return (int)slot;
	return __builtin_ctz(candidates);
}

/* No replica can be read: of a blank slab there is none, and need not be. */
RBX_RARE static void read_without_source(const struct rbx_slab *slab,
					 struct rbx_piece *piece,
					 struct rbx_piece_list *todo)
{
	piece->reads_zeros = slab->blank && piece->kind == RBX_PIECE_READ;
	piece_end(piece, piece->reads_zeros ? 0 : -EIO, todo);
}

/* A copy takes zeros where nothing is good, too: they are never read. */
RBX_RARE static bool may_read(const struct rbx_slab *slab,
			      const struct rbx_piece *piece)
{
	return piece->kind == RBX_PIECE_COPY ||
	       rbx_lost_pages_may_read(rbx_slab_pages(slab), piece->offset_bytes,
				       piece->length_bytes);
}

static inline void piece_read(struct rbx_slab *slab, struct rbx_piece *piece,
			      struct rbx_piece_list *todo)
{
	int source = choose_source(slab, piece);

	if (source < 0)
		read_without_source(slab, piece, todo);
	else if (slab->has_holes && !may_read(slab, piece))
		piece_end(piece, -EIO, todo);
	else
		piece_send_read(slab, piece, (uint32_t)source, todo);
}

/* They wait in the queue of a cell that no slab has. */
static inline uint64_t waiting_place(const struct rbx_slab *slab)
{
	return (uint64_t)slab->index << 32 | UINT32_MAX;
}

/* The first writes of a slab that is blank or dead wait until there is memory for
 * them, without granules, so that they wait for nothing else. */
RBX_RARE static void write_without_replica(struct rbx_slab *slab,
					   struct rbx_piece *piece)
{
	rbx_cell_give(piece);
	piece_move(piece, RBX_PIECE_WAITING);
	rbx_cell_wait(&rbx_slab_group(slab)->cells, piece, waiting_place(slab));
	slab->waits = true;
	slab->attention = true;
}

/* It has its granules: who writes the whole page is through, or comes later. */
RBX_RARE static bool may_write(const struct rbx_slab *slab,
			       const struct rbx_piece *piece)
{
	return rbx_lost_pages_may_write(rbx_slab_pages(slab), piece->offset_bytes,
					piece->length_bytes);
}

static inline void piece_write(struct rbx_slab *slab, struct rbx_piece *piece,
			       struct rbx_piece_list *todo)
{
	if (!slab->read_mask)
		write_without_replica(slab, piece);
	else if (slab->has_holes && !may_write(slab, piece))
		piece_end(piece, -EIO, todo);
	else
		piece_send_write(slab, piece, slab->write_mask, todo);
}

/* The second half of a copy; its targets may be gone meanwhile. */
RBX_RARE static void copy_write(struct rbx_slab *slab, struct rbx_piece *piece,
				struct rbx_piece_list *todo)
{
	uint8_t targets = rbx_slab_targets(slab);

	if (!targets)
		piece_end(piece, -EIO, todo);
	else
		piece_send_write(slab, piece, targets, todo);
}

/* What a copy has read is the truth if its source still is one. */
RBX_RARE static void copy_read(struct rbx_slab *slab, struct rbx_piece *piece,
			       uint32_t slot, struct rbx_piece_list *todo)
{
	if (slab->read_mask >> slot & 1)
		copy_write(slab, piece, todo);
	else
		piece_read(slab, piece, todo);
}

/* The second half of a read that was good at last: those that are live, and were
 * not, get what they ought to have. The granules are held since the first of them
 * was found out, so nothing was written meanwhile. */
RBX_RARE static void read_repair(struct rbx_slab *slab, struct rbx_piece *piece,
				 struct rbx_piece_list *todo)
{
	uint8_t bad = piece->tried_mask & slab->read_mask;

	if (!bad)
		piece_end(piece, 0, todo);
	else
		piece_send_write(slab, piece, bad, todo);
}

/* The piece has its granules. */
static inline void piece_begin(struct rbx_slab *slab, struct rbx_piece *piece,
			       struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(piece->cell);
	if (piece->kind == RBX_PIECE_WRITE)
		piece_write(slab, piece, todo);
	else
		piece_read(slab, piece, todo);
}

/* Which cell a piece is of, among those of all slabs that share a lock. */
static inline uint64_t place_of(const struct rbx_slab *slab,
				const struct rbx_piece *piece)
{
	return (uint64_t)slab->index << 32 |
	       piece->offset_bytes >> slab->shape->cell_shift;
}

static inline void piece_take(struct rbx_slab *slab, struct rbx_piece *piece,
			      struct rbx_piece_list *todo)
{
	uint32_t shift = slab->shape->cell_shift;

	piece->granules =
		rbx_cell_granules(piece->offset_bytes, piece->length_bytes, shift);
	if (rbx_cell_take(&rbx_slab_group(slab)->cells, piece,
			  place_of(slab, piece)))
		piece_begin(slab, piece, todo);
	else
		piece_move(piece, RBX_PIECE_WAITING);
}

/* Granules of the cell may have been given back. Bounded: nobody joins the queue
 * meanwhile. But the last one there takes the cell along, and may wait in it for
 * something else already. */
RBX_RARE static void serve_queue(struct rbx_slab *slab, struct rbx_cell *cell,
				 uint64_t place, struct rbx_piece_list *todo)
{
	struct rbx_piece *piece;

	while (cell->place == place && (piece = rbx_cell_grant(cell)))
		piece_begin(slab, piece, todo);
}

void rbx_slab_start(struct rbx_slab *slab, struct rbx_piece *piece,
		    struct rbx_piece_list *todo)
{
	RBX_DEBUG_ASSERT(piece->slab == slab);
	RBX_DEBUG_ASSERT(piece->state == RBX_PIECE_IDLE && !piece->cell);
	RBX_DEBUG_ASSERT(piece->length_bytes > 0);
	piece->status = 0;
	piece->reads_zeros = false;
	piece->written_mask = 0;
	piece->tried_mask = 0;
	if (piece->kind == RBX_PIECE_READ)
		piece_read(slab, piece, todo);
	else
		piece_take(slab, piece, todo);
}

/* What was read does not match its checksum. */
static void read_mismatched(struct rbx_slab *slab, struct rbx_piece *piece,
			    uint32_t slot, struct rbx_piece_list *todo)
{
	if (!piece->cell) {
		piece_take(slab, piece, todo);
		return;
	}
	piece->tried_mask |= (uint8_t)(1u << slot);
	if (piece->kind == RBX_PIECE_COPY && choose_source(slab, piece) < 0)
		copy_write(slab, piece, todo); /* bad everywhere, and stays so */
	else
		piece_read(slab, piece, todo);
}

RBX_RARE static void read_failed(struct rbx_slab *slab, struct rbx_piece *piece,
				 uint32_t slot, int32_t status,
				 struct rbx_piece_list *todo)
{
	if (status == -EBADMSG) {
		read_mismatched(slab, piece, slot, todo);
	} else if (rbx_status_class(status) == RBX_STATUS_LOCAL) {
		piece_end(piece, status, todo);
	} else {
		rbx_slab_lose(slab, slot);
		piece_read(slab, piece, todo);
	}
}

static inline void read_done(struct rbx_slab *slab, struct rbx_piece *piece,
			     uint32_t slot, int32_t status,
			     struct rbx_piece_list *todo)
{
	if (status != 0)
		read_failed(slab, piece, slot, status, todo);
	else if (piece->kind == RBX_PIECE_COPY)
		copy_read(slab, piece, slot, todo);
	else if (piece->tried_mask)
		read_repair(slab, piece, todo);
	else
		piece_end(piece, 0, todo);
}

static inline uint32_t piece_cell(const struct rbx_slab *slab,
				  const struct rbx_piece *piece)
{
	return piece->offset_bytes >> slab->shape->cell_shift;
}

/* The slab was lost: these pages are good again. */
RBX_RARE static void hole_fill(struct rbx_slab *slab,
			       const struct rbx_piece *piece)
{
	if (!rbx_lost_pages_written(rbx_slab_pages(slab), piece->offset_bytes,
				    piece->length_bytes))
		return;
	slab->has_holes = false;
	slab->attention = true;
}

/* A page's checksum changes when the write that changes the page has succeeded: one
 * that fails leaves the old page, and what says that it is good. */
static inline void write_succeed(struct rbx_slab *slab, struct rbx_piece *piece,
				 int32_t status, struct rbx_piece_list *todo)
{
	if (slab->shape->checksums && piece->kind == RBX_PIECE_WRITE)
		rbx_checksum_store(rbx_slab_checksums(slab), piece);
	if (slab->has_holes && piece->kind == RBX_PIECE_WRITE)
		hole_fill(slab, piece);
	piece_end(piece, status, todo);
}

/*
 * No readable replica has the write, and those which are there have failed it for a
 * fault of this machine: bad memory, or a device. Usually nothing of it was sent. But
 * a device may find out in the middle of it, and an attempt before the last may have
 * been carried out when the connection broke. So each replica has, byte by byte, what
 * was there before or what was written, and not the same as the others.
 *
 * Without checksums any of these is a good end of a write that failed, as long as
 * readers do not find now this and now that. So one readable replica is the truth, and
 * the others are not read until they have its cell. Nothing was acknowledged, so each
 * of them is still as good as it, should it be lost meanwhile.
 *
 * With checksums, that of the old page is still the one: who has it is read, and where
 * parts of the new one are they count as bad and are repaired by who reads. To choose
 * a truth now might be to choose the bad one.
 *
 * A replica that is being rebuilt must not keep what the source has not, and gets the
 * cell once more.
 */
RBX_RARE static void write_failed_here(struct rbx_slab *slab,
				       struct rbx_piece *piece)
{
	uint8_t differ = piece->send_mask & rbx_slab_targets(slab);
	uint32_t slot, truth = 0;

	if (!slab->read_mask)
		return;
	if (!slab->shape->checksums) {
		/* Of one that leaves nothing is to be lost by leaving it alone. */
		for (slot = 0; slot < slab->shape->slots; slot++)
			if (slab->replicas[slot].state == RBX_REPLICA_LEAVING)
				truth = 1u << slot;
		if (!truth)
			truth = slab->read_mask & -slab->read_mask;
		differ |= slab->read_mask & ~truth;
	}
	rbx_slab_differ(slab, differ, piece_cell(slab, piece));
}

/*
 * All replicas have answered, not all of them well. What another replica failed is
 * lost by now.
 *
 * If some have it, and others missed it for a fault of this machine, it is not
 * acknowledged: as long as those have to be made like the first, it is on fewer servers
 * than was promised. What is there is the truth all the same, and its checksum.
 */
RBX_RARE static void write_end(struct rbx_slab *slab, struct rbx_piece *piece,
			       struct rbx_piece_list *todo)
{
	uint8_t missed = piece->send_mask & ~piece->written_mask &
			 slab->write_mask;

	/* What was discarded meanwhile was written before that. */
	if (slab->blank ||
	    (!missed && piece->written_mask & slab->read_mask)) {
		write_succeed(slab, piece, 0, todo);
	} else if (piece->written_mask & slab->read_mask) {
		rbx_slab_differ(slab, missed, piece_cell(slab, piece));
		write_succeed(slab, piece, piece->status, todo);
	} else {
		write_failed_here(slab, piece);
		piece_end(piece, piece->status ? piece->status : -EIO, todo);
	}
}

/* The same of the second half of a copy, which is made again if this machine is at
 * fault; or of a repair, whose reader has what was read. */
RBX_RARE static void second_half_end(struct rbx_piece *piece,
				     struct rbx_piece_list *todo)
{
	int32_t status = 0;

	if (piece->kind == RBX_PIECE_COPY && piece->status)
		status = piece->status;
	else if (piece->kind == RBX_PIECE_COPY && !piece->written_mask)
		status = -EHOSTUNREACH;
	piece_end(piece, status, todo);
}

RBX_RARE static void write_failed(struct rbx_slab *slab,
				  struct rbx_piece *piece, uint32_t slot,
				  int32_t status)
{
	if (rbx_status_class(status) == RBX_STATUS_LOCAL)
		piece->status = status;
	else
		rbx_slab_lose(slab, slot);
}

static inline void write_done(struct rbx_slab *slab, struct rbx_piece *piece,
			      uint32_t slot, int32_t status,
			      struct rbx_piece_list *todo)
{
	uint32_t all = piece->send_mask;

	if (status == 0)
		piece->written_mask |= (uint8_t)(1u << slot);
	else
		write_failed(slab, piece, slot, status);
	if (piece->flight_mask)
		return;
	/* All of them have it, and one of them may be read. */
	if (piece->written_mask == all && all & slab->read_mask)
		write_succeed(slab, piece, 0, todo);
	else if (piece->kind == RBX_PIECE_WRITE)
		write_end(slab, piece, todo);
	else
		second_half_end(piece, todo);
}

void rbx_slab_done(struct rbx_slab *slab, struct rbx_part *part, int32_t status,
		   struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	struct rbx_cell *cell = piece->cell;
	uint32_t slot = part->slot;
	struct rbx_replica *replica = &slab->replicas[slot];

	RBX_ASSERT(piece->flight_mask & 1u << slot);
	RBX_DEBUG_ASSERT(replica->flight_count > 0);
	piece->flight_mask ^= (uint8_t)(1u << slot);
	/* It is lost if nothing new is sent to it. */
	if (--replica->flight_count == 0 && !(slab->write_mask >> slot & 1))
		slab->attention = true;
	if (piece->state == RBX_PIECE_READING)
		read_done(slab, piece, slot, status, todo);
	else
		write_done(slab, piece, slot, status, todo);
	if (cell && rbx_cell_has_queue(cell))
		serve_queue(slab, cell, place_of(slab, piece), todo);
}

/* ---- Lost pages -------------------------------------------------------------*/

static struct rbx_lost_pages **pages_bucket(const struct rbx_slab *slab)
{
	uint32_t number = slab->index / RBX_SLAB_LOCKS;

	return &rbx_slab_group(slab)->lost[number % RBX_LOST_BUCKETS];
}

/* Bounded by the slabs that were lost: it is in its bucket. */
static struct rbx_lost_pages **pages_find(const struct rbx_slab *slab)
{
	struct rbx_lost_pages **link = pages_bucket(slab);

	RBX_ASSERT(slab->has_pages);
	while ((*link)->slab_index != slab->index)
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
	pages->slab_index = slab->index;
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

/* A dead slab's pages are bad before its memory is in use. */
void rbx_slab_place(struct rbx_slab *slab)
{
	RBX_ASSERT(!slab->read_mask && !rbx_slab_has_memory(slab));
	if (slab->blank) /* perhaps discarded meanwhile */
		return;
	rbx_lost_pages_begin(rbx_slab_pages(slab), slab->shape->slab_shift);
	slab->has_holes = true;
	slab->placing = true;
}

/* What was there before says nothing of what is lent now. */
static void checksums_forget(struct rbx_slab *slab)
{
	const struct rbx_slab_shape *shape = slab->shape;

	if (shape->checksums)
		rbx_port_fill(rbx_slab_checksums(slab), 0,
			      ((size_t)1 << shape->slab_shift) /
				      RBX_PAGE_BYTES *
				      sizeof(*shape->checksums));
}

void rbx_slab_begin(struct rbx_slab *slab, int err, struct rbx_piece_list *todo)
{
	struct rbx_cells *cells = &rbx_slab_group(slab)->cells;
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
	/* Bounded: nobody comes to wait meanwhile. */
	while (more) {
		piece = rbx_cell_dismiss(cells, waiting_place(slab), &more);
		if (slab->read_mask)
			piece_take(slab, piece, todo);
		else
			piece_end(piece,
				  was_blank && err != -ENODEV ? -ENOSPC : -EIO,
				  todo);
	}
	slab->attention = true;
}
