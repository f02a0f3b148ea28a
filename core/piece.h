/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * piece.h - a part of a volume request that lies within one cell.
 *
 * A volume is cut into aligned cells of fragment_bytes; a slab holds whole cells. A request is
 * split at each cell boundary. Each piece is handled on its own: a read goes to one replica,
 * a write to all of them. What goes to one replica is a part: a fragment (request.h) and
 * where it belongs.
 *
 * Ownership: a piece is the host's while it is idle. From its first step on it belongs to its
 * slab. It comes back to the host in a list of things to do: either to have its parts
 * sent, or idle again with its final status.
 */
#ifndef RBX_PIECE_H
#define RBX_PIECE_H

#include "core/request.h"

struct rbx_slab;
struct rbx_slab_group;

/* A cell in use, identified by slab and cell. Only the functions of cell.h use its fields. */
struct rbx_cell {
	uint64_t busy; /* a bit for each granule */
	uint64_t place;
	struct rbx_node *last; /* of the queue, a ring: last->next is the first */
	struct rbx_cell *next; /* in its bucket, or in the list of spare ones */
	struct rbx_cell **link; /* in its bucket: the pointer that points to it */
	struct rbx_cell *spare; /* the cells of other pieces that are here too */
};

/* Slots of a slab: its replicas, and one more while a replica is made anew or moved. */
#define RBX_SLOTS_MAX (RBX_REPLICAS_MAX + 1)

/* The bit of a part for the tail of slot 0. */
#define RBX_PART_OF_TAIL 16u

enum rbx_piece_kind {
	RBX_PIECE_READ, /* from one live replica */
	RBX_PIECE_WRITE, /* to every replica, including those being rebuilt */
	RBX_PIECE_COPY, /* a whole cell, from a live replica to a rebuilt one */
};

enum rbx_piece_state {
	RBX_PIECE_IDLE, /* the host's: free, being filled in, or ended */
	RBX_PIECE_WAITING, /* in the queue of its cell, or of its slab */
	RBX_PIECE_READING, /* one part is to be sent or is under way */
	RBX_PIECE_WRITING, /* parts are to be sent or are under way */
};

struct rbx_part {
	struct rbx_fragment fragment;
	struct rbx_piece *piece; /* never changes */
	uint16_t server; /* where to send it */
	uint8_t slot; /* its slot in the piece; never changes */
	uint8_t bit; /* in flight_mask of the piece; never changes */
};

struct rbx_piece {
	struct rbx_node node; /* in the one list that it is on */
	/* Set by the host before its first step (rbx_volume_map_aim()): the slab, and the group
	 * whose lock it has, to save a search. */
	struct rbx_slab *slab;
	struct rbx_slab_group *group;
	void *owner; /* the host's; never changes */
	void *user; /* the host's: the request that it belongs to */

	/* The pool's (piece_pool.h); atomic. */
	uint64_t sequence; /* when it was taken; 0: it is free */
	struct rbx_piece *pool_next; /* the next free piece, or NULL */
	uint32_t pool_index; /* its own; never changes */

	uint32_t slab_index; /* of the slab, to save a search */

	/* Filled in by the host before the first step. */
	uint64_t local_addr; /* as the device sees its memory */
	const void *memory; /* for the host's look() (flow.h), if it has one */
	uint32_t offset_bytes; /* in the slab */
	uint32_t length_bytes;
	uint32_t lkey;
	uint8_t kind; /* enum rbx_piece_kind */
	uint8_t fragment_flags; /* enum rbx_fragment_flags */

	/* The slab's. Masks have a bit for each slot. */
	uint8_t send_mask; /* parts the host is to send now */
	uint8_t flight_mask; /* parts not done; those for tails in the upper four bits */
	/* These eight bytes are zeroed together by the first step. */
	int32_t status; /* final once it is idle again */
	/* Of a read: replicas whose data did not match. Of a write: replicas that missed it
	 * through a fault of this machine. */
	uint8_t tried_mask;
	/* Writes that failed. Of a read: replicas at servers that have FAILED (held.h). */
	uint8_t failed_mask;
	bool reads_zeros; /* it has succeeded, and its memory is to be filled with zeros */
	uint8_t state; /* enum rbx_piece_state */
	struct rbx_cell *cell; /* in which it holds granules, or NULL */
	struct rbx_cell *spare_cell; /* of its own, while it uses none */
	uint64_t granules; /* of its cell, as a mask */
	/* of a read with checksums, as masks: the pages in its memory that match; those that it
	 * reads now, once a replica was tried in vain */
	uint64_t good_pages, asked_pages;
	struct rbx_cell cell_room; /* the cell that it owned at first */

	uint16_t rebuild; /* of a copy: the number of the slab's rebuild */
	/* Of a copy: which slot was read. Of a read with checksums: which one is to be read, if it
	 * can be; set by the host before the first step, and zero again at the end. */
	uint8_t source_mask;
	uint16_t slots, pages_max; /* the sizes of what follows; never change */
	struct rbx_part parts[]; /* one for each slot of a slab. If the volume has checksums,
				    behind them one for the tail of each slot (tails.h), and
				    the checksum of each page of a write (checksum.h) */
};

static inline struct rbx_piece *rbx_piece_of(struct rbx_node *node)
{
	return RBX_CONTAINER_OF(node, struct rbx_piece, node);
}

/* Of a write that has ended: where it has succeeded. */
static inline uint8_t rbx_piece_written(const struct rbx_piece *piece)
{
	return piece->send_mask & ~piece->failed_mask;
}

static inline struct rbx_part *rbx_part_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct rbx_part, fragment);
}

static inline uint32_t rbx_piece_parts_count(uint32_t slots, uint32_t pages)
{
	return pages ? 2 * slots : slots;
}

/* pages: of the longest write, if the volume has checksums; else 0. */
static inline size_t rbx_piece_size(uint32_t slots, uint32_t pages)
{
	return sizeof(struct rbx_piece) +
	       rbx_piece_parts_count(slots, pages) * sizeof(struct rbx_part) +
	       (pages + 1) / 2 * sizeof(uint64_t);
}

/* Only of a piece that has pages. */
static inline uint32_t *rbx_piece_checksums(struct rbx_piece *piece)
{
	return (uint32_t *)&piece->parts[2 * piece->slots];
}

/* For a volume with checksums: the first page of a piece, counted from that of the slab, and
 * how many pages it has. */
static inline uint32_t rbx_piece_page(const struct rbx_piece *piece)
{
	return piece->offset_bytes / RBX_PAGE_BYTES;
}

static inline uint32_t rbx_piece_pages_count(const struct rbx_piece *piece)
{
	RBX_ASSERT(piece->offset_bytes % RBX_PAGE_BYTES == 0);
	RBX_ASSERT(piece->length_bytes % RBX_PAGE_BYTES == 0);
	return piece->length_bytes / RBX_PAGE_BYTES;
}

/* A bit for each page of a piece. */
static inline uint64_t rbx_piece_pages_mask(const struct rbx_piece *piece)
{
	return UINT64_MAX >> (64 - rbx_piece_pages_count(piece));
}

/* Makes an idle piece of zeroed memory of rbx_piece_size(). done: for each part's fragment. */
static inline void rbx_piece_init(struct rbx_piece *piece, uint32_t slots,
				  uint32_t pages, void *owner,
				  struct rbx_fragment *(*done)(
					  struct rbx_fragment *list))
{
	uint32_t i;

	RBX_ASSERT(slots <= RBX_SLOTS_MAX);
	piece->owner = owner;
	piece->spare_cell = &piece->cell_room;
	piece->slots = (uint16_t)slots;
	piece->pages_max = (uint16_t)pages;
	for (i = 0; i < rbx_piece_parts_count(slots, pages); i++) {
		bool is_tail = i >= slots;
		uint32_t slot = is_tail ? i - slots : i;

		piece->parts[i].piece = piece;
		piece->parts[i].slot = (uint8_t)slot;
		piece->parts[i].bit = (uint8_t)((is_tail ? RBX_PART_OF_TAIL : 1u) << slot);
		piece->parts[i].fragment.done = done;
		if (is_tail)
			piece->parts[i].fragment.local_addr =
				(uintptr_t)rbx_piece_checksums(piece);
	}
}

/* From now on the device sees the memory of this piece at another address. Under the lock of
 * its slab, while none of its parts is posted. */
static inline void rbx_piece_relocate(struct rbx_piece *piece,
				      uint64_t local_addr)
{
	uint64_t moved_bytes = local_addr - piece->local_addr;
	uint32_t slot;

	/* A part may be of some pages of it only. */
	piece->local_addr = local_addr;
	for (slot = 0; slot < piece->slots; slot++)
		piece->parts[slot].fragment.local_addr += moved_bytes;
}

/* A queue of pieces, first in first out. */
struct rbx_piece_list {
	struct rbx_node *first;
	struct rbx_node *last; /* valid only if first is set */
};

static inline void rbx_piece_list_add(struct rbx_piece_list *list,
				      struct rbx_piece *piece)
{
	piece->node.next = NULL;
	if (list->first)
		list->last->next = &piece->node;
	else
		list->first = &piece->node;
	list->last = &piece->node;
}

/* Moves all of `more` to the end of the list. */
static inline void rbx_piece_list_append(struct rbx_piece_list *list,
					 struct rbx_piece_list *more)
{
	if (!more->first)
		return;
	if (list->first)
		list->last->next = more->first;
	else
		list->first = more->first;
	list->last = more->last;
	more->first = NULL;
}

/* Takes the pieces up to one of them off the front of the list. */
static inline struct rbx_piece_list
rbx_piece_list_cut(struct rbx_piece_list *list, struct rbx_piece *last)
{
	struct rbx_piece_list front = { list->first, &last->node };

	list->first = last->node.next;
	last->node.next = NULL;
	return front;
}

/* NULL if the list is empty. */
static inline struct rbx_piece *rbx_piece_list_take(struct rbx_piece_list *list)
{
	struct rbx_node *first = list->first;

	if (!first)
		return NULL;
	list->first = first->next;
	return rbx_piece_of(first);
}

#endif
