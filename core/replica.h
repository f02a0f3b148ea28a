/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replica.h - a replica of a slab: its loan, and how many parts are under way to it.
 *
 * A volume has millions of replicas, so each takes 22 bytes, at any even address. The words
 * of the loan do not change while it is in the index of loans (loan_index.h), which is read
 * without the slab's lock. The count of parts changes meanwhile, so it shares no memory
 * location, in the sense of the C language, with any of these words.
 */
#ifndef RBX_REPLICA_H
#define RBX_REPLICA_H

#include "core/loan.h"

struct rbx_replica {
	uint64_t place; /* its loan's remote_addr, which is page-aligned, and its server */
	uint64_t epoch : RBX_LOAN_EPOCH_BITS; /* of its loan */
	uint64_t slab_id : RBX_LOAN_ID_BITS; /* of its loan */
	uint32_t rkey; /* of its loan */
	/* Parts that are not done, in two halves: rbx_replica_flights(). */
	uint16_t flights_low;
	uint8_t flights_high;
} __attribute__((packed));

RBX_STATIC_ASSERT(sizeof(struct rbx_replica) == 22, "packed");
RBX_STATIC_ASSERT(RBX_PIECES_MAX + RBX_COPIES_MAX < 1u << 24,
		  "each piece has at most one part under way to a replica");

static inline uint64_t rbx_replica_addr(const struct rbx_replica *replica)
{
	return replica->place & ~(uint64_t)RBX_LOAN_SERVER_MASK;
}

static inline uint32_t rbx_replica_server(const struct rbx_replica *replica)
{
	return (uint32_t)(replica->place & RBX_LOAN_SERVER_MASK);
}

static inline void rbx_replica_set_server(struct rbx_replica *replica,
					  uint32_t server)
{
	RBX_ASSERT(server < RBX_SERVERS_MAX);
	replica->place = server;
}

static inline struct rbx_loan
rbx_replica_loan(const struct rbx_replica *replica)
{
	return (struct rbx_loan){
		.slab_id = replica->slab_id,
		.epoch = replica->epoch,
		.remote_addr = rbx_replica_addr(replica),
		.rkey = replica->rkey,
	};
}

/* Sets the loan, which is of the server that was set before. */
static inline void rbx_replica_set_loan(struct rbx_replica *replica,
					const struct rbx_loan *loan)
{
	RBX_ASSERT(rbx_loan_fits(loan));
	replica->place = loan->remote_addr | rbx_replica_server(replica);
	replica->epoch = loan->epoch;
	replica->slab_id = loan->slab_id;
	replica->rkey = loan->rkey;
}

/* Whether it has this loan of this server. */
static inline bool rbx_replica_is(const struct rbx_replica *replica,
				  uint32_t server, uint64_t slab_id,
				  uint64_t epoch)
{
	return rbx_replica_server(replica) == server &&
	       replica->slab_id == slab_id && replica->epoch == epoch;
}

/* ---- Parts under way to it ---------------------------------------------------- */

static inline uint32_t rbx_replica_flights(const struct rbx_replica *replica)
{
	return replica->flights_low | (uint32_t)replica->flights_high << 16;
}

/* Copies the count; the words of the loan were copied before. */
static inline void rbx_replica_take_flights(struct rbx_replica *to,
					    const struct rbx_replica *from)
{
	to->flights_low = from->flights_low;
	to->flights_high = from->flights_high;
}

static inline void rbx_replica_take_off(struct rbx_replica *replica)
{
	if (++replica->flights_low == 0)
		replica->flights_high++;
}

static inline void rbx_replica_land(struct rbx_replica *replica)
{
	if (replica->flights_low-- == 0)
		replica->flights_high--;
}

#endif
