/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan_index.h - finds a loan of a volume by what its server says of it.
 *
 * A server names a slab by its id and the epoch of the loan, not by where we use it.
 * So that an eviction looks at one slab and not at all of them, each replica that has
 * a loan is in two tables: by server and slab id, and by server, key and address.
 *
 * The second one finds twins. A server may revoke a loan of which we do not know yet
 * that it is over, and then lend the same memory to us again, under the same id or
 * under the same key and address, as devices hand out again what was given back.
 * Until the older one is over here, too, one of them would write into the other.
 *
 * A replica is a number, its place among all slots of the volume. The tables are
 * chains of such numbers, of three bytes each, or four where three do not reach: 6
 * bytes a slot and 1.5 to 3 bytes a slab, no allocation.
 *
 * Who borrows and gives back adds and removes, one thread at a time; any thread may
 * look. What stands in a replica does not change while it is in the index.
 */
#ifndef RBX_LOAN_INDEX_H
#define RBX_LOAN_INDEX_H

#include "core/slab.h"

#define RBX_REPLICA_NONE UINT32_MAX

struct rbx_loan_index {
	const struct rbx_slab_shape *shape;
	uint32_t bucket_shift; /* 64 - log2 of the buckets */
	uint32_t link_bytes; /* of a link, as below */

	struct rbx_lock lock; /* guards all below */
	/* Links: numbers of replicas, each plus 1; 0: the end of a chain. */
	uint8_t *by_id;
	uint8_t *by_place;
	uint8_t *next_by_id; /* of each replica */
	uint8_t *next_by_place;
};

/* Bytes of its tables, for so many slabs. */
size_t rbx_loan_index_size(uint32_t slab_count, uint32_t slots);

/* tables: zeroed, lent for the life of the index. */
void rbx_loan_index_init(struct rbx_loan_index *index, void *tables,
			 uint32_t slab_count,
			 const struct rbx_slab_shape *shape);

/* A replica has its loan; it is given back. */
void rbx_loan_index_add(struct rbx_loan_index *index, uint32_t number);
void rbx_loan_index_remove(struct rbx_loan_index *index, uint32_t number);

/* The replica that has this loan of a server, or RBX_REPLICA_NONE. */
uint32_t rbx_loan_index_find(struct rbx_loan_index *index, uint32_t server,
			     uint64_t slab_id, uint64_t epoch);

/* Replicas whose loan of this server has the same id as a new one, or shares memory
 * under the same key with it. Returns how many; at most max are told. */
uint32_t rbx_loan_index_twins(struct rbx_loan_index *index, uint32_t server,
			      const struct rbx_loan *loan, uint32_t *numbers,
			      uint32_t max);

#endif
