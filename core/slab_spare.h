/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_spare.h - where the replica of each slot is kept, and the numbers of these places.
 *
 * A slab has one slot more than replicas, but places for its replicas only: frames. The slot
 * without a frame is the spare one. If it is in use, its replica is in the slab's record
 * (slab_record.h). Requests know a replica by its slot, which never changes; its place does.
 * When a rebuild or move has ended and a slot is empty again, the upkeep thread moves the
 * replica from the record into that slot's frame, whatever is under way to it. From then on
 * the empty slot is the spare one, and the record is free.
 *
 *	swapped     spare slot        frame n is of    frame n - 1 of
 *	0           replicas          slot n           slot n - 1
 *	n + 1       n                 slot `replicas`  slot n - 1
 *
 * The index of loans (loan_index.h) knows a replica by the number of its place: first the
 * records, then the frames of all slabs.
 */
#ifndef RBX_SLAB_SPARE_H
#define RBX_SLAB_SPARE_H

#include "core/slab.h"

struct rbx_loan_index;

/* ---- With the slab's lock -------------------------------------------------------*/

/* Gives the slab a record for a rebuild, if it has none; false: the pool is empty. */
bool rbx_slab_record_give(struct rbx_slab *slab);

/* ---- By the upkeep thread, with no lock held ---------------------------------*/

/* Does RBX_TASK_RETURN_RECORD: the replica in the record moves into a frame, and the record goes
 * back. Does nothing while a rebuild is under way, or for pages in doubt. */
void rbx_slab_return_record(struct rbx_slab *slab, struct rbx_loan_index *loans);

/* ---- Numbers of places ------------------------------------------------------------*/

/* How many there are. */
static inline size_t rbx_replica_numbers(uint32_t slab_count, uint32_t replicas)
{
	return RBX_SLAB_RECORDS + (size_t)slab_count * replicas;
}

/* The place of a slot that is not empty. By the upkeep thread. */
uint32_t rbx_replica_number(const struct rbx_slab *slab, uint32_t slot);
/* The slot at a place of this slab. By the upkeep thread. */
uint32_t rbx_replica_slot(const struct rbx_slab *slab, uint32_t number);

struct rbx_replica *rbx_replica_numbered(const struct rbx_slab_shape *shape,
					 uint32_t number);
/* The index of the slab at a place, while it is in the index of loans. */
uint32_t rbx_replica_slab(const struct rbx_slab_shape *shape, uint32_t number);

#endif
