/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan_index.c - two chained hash tables, see loan_index.h.
 *
 * A place is the server, the key, and the number of the slab-sized page in which the
 * loan begins. Memory that overlaps begins in the same page or in a neighbour.
 */
#include "core/loan_index.h"

/* One bucket for two to four slabs: the chains are short, and the buckets cost less than
 * the links. */
static uint32_t bits_of(uint32_t slab_count)
{
	uint32_t bits = 1;

	while ((uint32_t)4 << bits <= slab_count)
		bits++;
	return bits;
}

/* Bytes that hold the number of each replica plus 1. */
static uint32_t link_bytes_of(uint32_t slab_count, uint32_t slots)
{
	return slab_count < (1u << 24) / slots ? 3 : 4;
}

size_t rbx_loan_index_size(uint32_t slab_count, uint32_t slots)
{
	size_t buckets = (size_t)1 << bits_of(slab_count);
	size_t links = 2 * (buckets + (size_t)slab_count * slots);

	/* What stands behind it is words. */
	return (links * link_bytes_of(slab_count, slots) + 7) / 8 * 8;
}

void rbx_loan_index_init(struct rbx_loan_index *index, void *tables,
			 uint32_t slab_count,
			 const struct rbx_slab_shape *shape)
{
	uint32_t bits = bits_of(slab_count);
	uint32_t link_bytes = link_bytes_of(slab_count, shape->slots);
	size_t buckets_size = ((size_t)1 << bits) * link_bytes;

	rbx_lock_init(&index->lock);
	index->shape = shape;
	index->bucket_shift = 64 - bits;
	index->link_bytes = link_bytes;
	index->by_id = tables;
	index->by_place = index->by_id + buckets_size;
	index->next_by_id = index->by_place + buckets_size;
	index->next_by_place = index->next_by_id +
			       (size_t)slab_count * shape->slots * link_bytes;
}

/* ---- Links, the lowest byte first ---------------------------------------------*/

static uint8_t *link_at(const struct rbx_loan_index *index, uint8_t *table,
			uint32_t at)
{
	return table + (size_t)at * index->link_bytes;
}

static uint32_t link_get(const struct rbx_loan_index *index,
			 const uint8_t *link)
{
	uint32_t to = link[0] | (uint32_t)link[1] << 8 | (uint32_t)link[2] << 16;

	return index->link_bytes == 3 ? to : to | (uint32_t)link[3] << 24;
}

static void link_set(const struct rbx_loan_index *index, uint8_t *link,
		     uint32_t to)
{
	uint32_t i;

	for (i = 0; i < index->link_bytes; i++)
		link[i] = (uint8_t)(to >> 8 * i);
}

/* What follows a replica that something links to. */
static uint32_t link_next(const struct rbx_loan_index *index, uint8_t *next,
			  uint32_t to)
{
	return link_get(index, link_at(index, next, to - 1));
}

/* ---- Chains ---------------------------------------------------------------------*/

static const struct rbx_replica *replica_of(const struct rbx_loan_index *index,
					    uint32_t number)
{
	uint32_t slots = index->shape->slots;

	return &rbx_slab_at(index->shape, number / slots)
			->replicas[number % slots];
}

/* Fibonacci hashing: the upper bits of a product with 2^64 / 1.618. */
static uint32_t bucket_of(const struct rbx_loan_index *index, uint64_t text)
{
	return (uint32_t)((text * 0x9e3779b97f4a7c15ull) >>
			  index->bucket_shift);
}

static uint8_t *chain_by_id(struct rbx_loan_index *index, uint32_t server,
			    uint64_t slab_id)
{
	return link_at(index, index->by_id,
		       bucket_of(index, slab_id << 10 ^ server));
}

static uint8_t *chain_by_place(struct rbx_loan_index *index, uint32_t server,
			       uint32_t rkey, uint64_t page)
{
	uint64_t text = (uint64_t)rkey << 32 ^ rkey ^ page << 10 ^ server;

	return link_at(index, index->by_place, bucket_of(index, text));
}

static uint64_t page_of(const struct rbx_loan_index *index, uint64_t remote_addr)
{
	return remote_addr >> index->shape->slab_shift;
}

static void chain_add(const struct rbx_loan_index *index, uint8_t *chain,
		      uint8_t *next, uint32_t number)
{
	link_set(index, link_at(index, next, number), link_get(index, chain));
	link_set(index, chain, number + 1);
}

/* Bounded: each replica is in it once. */
static void chain_remove(const struct rbx_loan_index *index, uint8_t *chain,
			 uint8_t *next, uint32_t number)
{
	uint32_t to;

	while ((to = link_get(index, chain)) != number + 1) {
		RBX_ASSERT(to);
		chain = link_at(index, next, to - 1);
	}
	link_set(index, chain, link_next(index, next, number + 1));
}

void rbx_loan_index_add(struct rbx_loan_index *index, uint32_t number)
{
	const struct rbx_replica *replica = replica_of(index, number);

	rbx_lock(&index->lock);
	chain_add(index, chain_by_id(index, replica->server, replica->slab_id),
		  index->next_by_id, number);
	chain_add(index,
		  chain_by_place(index, replica->server, replica->rkey,
				 page_of(index, rbx_replica_addr(replica))),
		  index->next_by_place, number);
	rbx_unlock(&index->lock);
}

void rbx_loan_index_remove(struct rbx_loan_index *index, uint32_t number)
{
	const struct rbx_replica *replica = replica_of(index, number);

	rbx_lock(&index->lock);
	chain_remove(index,
		     chain_by_id(index, replica->server, replica->slab_id),
		     index->next_by_id, number);
	chain_remove(index,
		     chain_by_place(index, replica->server, replica->rkey,
				    page_of(index, rbx_replica_addr(replica))),
		     index->next_by_place, number);
	rbx_unlock(&index->lock);
}

uint32_t rbx_loan_index_find(struct rbx_loan_index *index, uint32_t server,
			     uint64_t slab_id, uint64_t epoch)
{
	uint32_t found = RBX_REPLICA_NONE, link;

	rbx_lock(&index->lock);
	link = link_get(index, chain_by_id(index, server, slab_id));
	for (; link && found == RBX_REPLICA_NONE;
	     link = link_next(index, index->next_by_id, link)) {
		const struct rbx_replica *replica = replica_of(index, link - 1);

		if (rbx_replica_is(replica, server, slab_id, epoch))
			found = link - 1;
	}
	rbx_unlock(&index->lock);
	return found;
}

/* ---- Twins ----------------------------------------------------------------*/

struct twins {
	uint32_t *numbers;
	uint32_t max;
	uint32_t count;
};

static void twins_add(struct twins *twins, uint32_t number)
{
	if (twins->count < twins->max)
		twins->numbers[twins->count] = number;
	twins->count++;
}

/* Those with its id; the others are found by their place. */
static void twins_by_id(struct rbx_loan_index *index, uint32_t server,
			const struct rbx_loan *loan, struct twins *twins)
{
	uint32_t link = link_get(index,
				 chain_by_id(index, server, loan->slab_id));

	for (; link; link = link_next(index, index->next_by_id, link)) {
		const struct rbx_replica *replica = replica_of(index, link - 1);

		if (replica->server == server &&
		    replica->slab_id == loan->slab_id)
			twins_add(twins, link - 1);
	}
}

static void twins_by_place(struct rbx_loan_index *index, uint32_t server,
			   const struct rbx_loan *loan, uint64_t page,
			   struct twins *twins)
{
	uint32_t link = link_get(
		index, chain_by_place(index, server, loan->rkey, page));

	for (; link; link = link_next(index, index->next_by_place, link)) {
		const struct rbx_replica *replica = replica_of(index, link - 1);
		const struct rbx_loan other = rbx_replica_loan(replica);

		if (replica->server == server &&
		    other.slab_id != loan->slab_id &&
		    page_of(index, other.remote_addr) == page &&
		    rbx_loan_is_twin(&other, loan,
				     (uint64_t)1 << index->shape->slab_shift))
			twins_add(twins, link - 1);
	}
}

uint32_t rbx_loan_index_twins(struct rbx_loan_index *index, uint32_t server,
			      const struct rbx_loan *loan, uint32_t *numbers,
			      uint32_t max)
{
	struct twins twins = { .numbers = numbers, .max = max };
	uint64_t page = page_of(index, loan->remote_addr);

	rbx_lock(&index->lock);
	twins_by_id(index, server, loan, &twins);
	twins_by_place(index, server, loan, page - 1, &twins);
	twins_by_place(index, server, loan, page, &twins);
	twins_by_place(index, server, loan, page + 1, &twins);
	rbx_unlock(&index->lock);
	return twins.count;
}
