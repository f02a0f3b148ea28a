/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan_index.c - two chained hash tables, see loan_index.h.
 *
 * The second table is by place: the server, the key, and the block of memory in which the
 * loan begins. Blocks are several slabs long, so memory that overlaps a loan begins in the
 * same block or, for a loan near its end, in a neighbouring one.
 */
#include "core/loan_index.h"

#include "core/slab_spare.h"

#define BLOCK_SHIFT 3u /* log2 of a block in slabs */

static uint32_t buckets_of(uint32_t numbers)
{
	return (numbers - 1) / RBX_LOAN_CHAIN_LENGTH + 1;
}

static size_t links_of(uint32_t numbers)
{
	return 2 * ((size_t)buckets_of(numbers) + numbers);
}

size_t rbx_loan_index_size(uint32_t numbers)
{
	return rbx_packed_size(links_of(numbers), rbx_packed_bits(numbers));
}

void rbx_loan_index_init(struct rbx_loan_index *index, void *links,
			 uint32_t numbers, const struct rbx_slab_shape *shape)
{
	RBX_ASSERT(numbers);
	rbx_lock_init(&index->lock);
	index->shape = shape;
	index->buckets = buckets_of(numbers);
	index->links = (struct rbx_packed){ links, rbx_packed_bits(numbers) };
	index->by_place = index->buckets;
	index->next_by_id = index->by_place + index->buckets;
	index->next_by_place = index->next_by_id + numbers;
}

/* ---- Chains ---------------------------------------------------------------------*/

static uint32_t link_get(const struct rbx_loan_index *index, size_t link)
{
	return rbx_packed_get(&index->links, link);
}

static void link_set(const struct rbx_loan_index *index, size_t link, uint32_t to)
{
	rbx_packed_set(&index->links, link, to);
}

/* What follows a replica in its chain. */
static uint32_t link_next(const struct rbx_loan_index *index, size_t next,
			  uint32_t to)
{
	return link_get(index, next + to - 1);
}

/* Fibonacci hashing: the upper bits of a product with 2^64 / 1.618, scaled to the number of
 * buckets, which may be any. */
static uint32_t bucket_of(const struct rbx_loan_index *index, uint64_t text)
{
	uint64_t hash = (text * 0x9e3779b97f4a7c15ull) >> 32;

	return (uint32_t)(hash * index->buckets >> 32);
}

static size_t chain_by_id(struct rbx_loan_index *index, uint32_t server,
			  uint64_t slab_id)
{
	return bucket_of(index, slab_id << 10 ^ server);
}

static size_t chain_by_place(struct rbx_loan_index *index, uint32_t server,
			     uint32_t rkey, uint64_t block)
{
	uint64_t text = (uint64_t)rkey << 32 ^ rkey ^ block << 10 ^ server;

	return index->by_place + bucket_of(index, text);
}

static uint64_t block_of(const struct rbx_loan_index *index, uint64_t addr)
{
	return addr >> (index->shape->slab_shift + BLOCK_SHIFT);
}

static void chain_add(const struct rbx_loan_index *index, size_t chain,
		      size_t next, uint32_t number)
{
	link_set(index, next + number, link_get(index, chain));
	link_set(index, chain, number + 1);
}

/* Bounded: each replica is in a chain once. */
static void chain_remove(const struct rbx_loan_index *index, size_t chain,
			 size_t next, uint32_t number)
{
	uint32_t to;

	while ((to = link_get(index, chain)) != number + 1) {
		RBX_ASSERT(to);
		chain = next + to - 1;
	}
	link_set(index, chain, link_next(index, next, number + 1));
}

void rbx_loan_index_add(struct rbx_loan_index *index, uint32_t number)
{
	const struct rbx_replica *replica = rbx_replica_numbered(index->shape, number);

	rbx_lock(&index->lock);
	chain_add(index, chain_by_id(index, rbx_replica_server(replica), replica->slab_id),
		  index->next_by_id, number);
	chain_add(index,
		  chain_by_place(index, rbx_replica_server(replica), replica->rkey,
				 block_of(index, rbx_replica_addr(replica))),
		  index->next_by_place, number);
	rbx_unlock(&index->lock);
}

void rbx_loan_index_remove(struct rbx_loan_index *index, uint32_t number)
{
	const struct rbx_replica *replica = rbx_replica_numbered(index->shape, number);

	rbx_lock(&index->lock);
	chain_remove(index,
		     chain_by_id(index, rbx_replica_server(replica), replica->slab_id),
		     index->next_by_id, number);
	chain_remove(index,
		     chain_by_place(index, rbx_replica_server(replica), replica->rkey,
				    block_of(index, rbx_replica_addr(replica))),
		     index->next_by_place, number);
	rbx_unlock(&index->lock);
}

uint32_t rbx_loan_index_find(struct rbx_loan_index *index, uint32_t server,
			     uint64_t slab_id, uint64_t epoch)
{
	uint32_t found = RBX_SLAB_NONE, link;

	rbx_lock(&index->lock);
	link = link_get(index, chain_by_id(index, server, slab_id));
	for (; link && found == RBX_SLAB_NONE;
	     link = link_next(index, index->next_by_id, link)) {
		const struct rbx_replica *replica =
			rbx_replica_numbered(index->shape, link - 1);

		if (rbx_replica_is(replica, server, slab_id, epoch))
			found = rbx_replica_slab(index->shape, link - 1);
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

/* The replicas with its id; the others are found by their place. */
static void twins_by_id(struct rbx_loan_index *index, uint32_t server,
			const struct rbx_loan *loan, struct twins *twins)
{
	uint32_t link = link_get(index,
				 chain_by_id(index, server, loan->slab_id));

	for (; link; link = link_next(index, index->next_by_id, link)) {
		const struct rbx_replica *replica =
			rbx_replica_numbered(index->shape, link - 1);

		if (rbx_replica_server(replica) == server &&
		    replica->slab_id == loan->slab_id)
			twins_add(twins, link - 1);
	}
}

static void twins_by_place(struct rbx_loan_index *index, uint32_t server,
			   const struct rbx_loan *loan, uint64_t block,
			   struct twins *twins)
{
	uint64_t slab_bytes = (uint64_t)1 << index->shape->slab_shift;
	uint32_t link = link_get(
		index, chain_by_place(index, server, loan->rkey, block));

	for (; link; link = link_next(index, index->next_by_place, link)) {
		const struct rbx_replica *replica =
			rbx_replica_numbered(index->shape, link - 1);
		const struct rbx_loan other = rbx_replica_loan(replica);

		if (rbx_replica_server(replica) == server &&
		    other.slab_id != loan->slab_id &&
		    block_of(index, other.remote_addr) == block &&
		    rbx_loan_is_twin(&other, loan, slab_bytes))
			twins_add(twins, link - 1);
	}
}

uint32_t rbx_loan_index_twins(struct rbx_loan_index *index, uint32_t server,
			      const struct rbx_loan *loan, uint32_t *numbers,
			      uint32_t max)
{
	struct twins twins = { .numbers = numbers, .max = max };
	uint64_t reach = ((uint64_t)1 << index->shape->slab_shift) - 1;
	uint64_t addr = loan->remote_addr;
	uint64_t block = block_of(index, addr - RBX_MIN(addr, reach));
	uint64_t last = block_of(index, addr + RBX_MIN(~addr, reach));

	rbx_lock(&index->lock);
	twins_by_id(index, server, loan, &twins);
	/* Two blocks at most. */
	for (; block <= last; block++)
		twins_by_place(index, server, loan, block, &twins);
	rbx_unlock(&index->lock);
	return twins.count;
}
