/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan_index.h - finds a loan of a volume by what its server says about it.
 *
 * A server names a slab by its id and the epoch of the loan, not by its place in the volume.
 * So that an eviction looks at one slab and not at all of them, each replica with a loan is
 * in two tables: by server and slab id, and by server, key and address.
 *
 * The second table finds twins. A server may revoke a loan while we do not know yet that it
 * is over. Then it may lend the same memory to us again, under the same id, or under the same
 * key and address, as devices reuse keys that were given back. Until the older loan is over
 * here, too, a write to one of them would change the other.
 *
 * A replica is identified by a number (slab_spare.h). The tables are chains of such numbers
 * (packed.h): two links for each replica of the volume, and two buckets for every
 * RBX_LOAN_CHAIN_LENGTH replicas. Nothing is allocated.
 *
 * The chains are long, because buckets cost memory for each slab. A walk is needed only when
 * a loan begins, ends or is wanted back, and then a message to a server costs more: a link
 * takes about 35 instructions (bench/cost).
 *
 * The thread that borrows and gives back adds and removes, one thread at a time; any thread
 * may look up. The words of a replica do not change while it is in the index. A replica that
 * moves may be in it with both of its places.
 */
#ifndef RBX_LOAN_INDEX_H
#define RBX_LOAN_INDEX_H

#include "core/packed.h"
#include "core/slab.h"

#define RBX_SLAB_NONE UINT32_MAX

/* Replicas for each bucket: the length of a chain if all of them have a loan. */
#define RBX_LOAN_CHAIN_LENGTH 24u

struct rbx_loan_index {
	const struct rbx_slab_shape *shape;
	uint32_t buckets; /* of each table */
	/* Where the links of the second table begin, and the links behind each replica in
	 * both tables. The buckets of the first table come first. */
	size_t by_place, next_by_id, next_by_place;

	struct rbx_lock lock; /* guards: */
	/* Numbers of replicas, each plus 1; 0: the end of a chain. */
	struct rbx_packed links;
};

/* Bytes of its links, in whole words, for replicas whose numbers are below this one. */
size_t rbx_loan_index_size(uint32_t numbers);

/* links: zeroed words, borrowed for the life of the index. */
void rbx_loan_index_init(struct rbx_loan_index *index, void *links,
			 uint32_t numbers, const struct rbx_slab_shape *shape);

/* A replica got its loan; its loan is given back. */
void rbx_loan_index_add(struct rbx_loan_index *index, uint32_t number);
void rbx_loan_index_remove(struct rbx_loan_index *index, uint32_t number);

/* The index of the slab that has this loan of a server, or RBX_SLAB_NONE. */
uint32_t rbx_loan_index_find(struct rbx_loan_index *index, uint32_t server,
			     uint64_t slab_id, uint64_t epoch);

/* Finds replicas whose loan of this server has the same id as a new one, or shares memory
 * under the same key with it. Returns how many; at most max are written. */
uint32_t rbx_loan_index_twins(struct rbx_loan_index *index, uint32_t server,
			      const struct rbx_loan *loan, uint32_t *numbers,
			      uint32_t max);

#endif
