/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * terms.h - checks whether what a server says of itself and of its slabs can be true.
 *
 * decode() checks which values a field may have at all. The checks here are for a client,
 * before it computes with the numbers of a server: it trusts that the server has the secret,
 * but not that the server has no bugs.
 */
#ifndef RBX_WIRE_TERMS_H
#define RBX_WIRE_TERMS_H

#include "wire/message.h"

/* What a slab may be: whole pages, up to 1 TiB. */
#define RBX_WIRE_SLAB_UNIT_BYTES 4096u
#define RBX_WIRE_SLAB_BYTES_MAX (1ull << 40)

/* The longest lease, an hour: loans of a server that died count as lost after half of it. */
#define RBX_WIRE_LEASE_MS_MAX 3600000u

/* The terms of a session, of a server that said this incarnation earlier. */
static inline bool
rbx_wire_welcome_makes_sense(const struct rbx_wire_welcome *welcome,
			     uint64_t incarnation)
{
	return welcome->session_id && welcome->lease_ms &&
	       welcome->lease_ms <= RBX_WIRE_LEASE_MS_MAX &&
	       incarnation && welcome->incarnation == incarnation && welcome->slab_bytes &&
	       welcome->slab_bytes <= RBX_WIRE_SLAB_BYTES_MAX &&
	       welcome->slab_bytes % RBX_WIRE_SLAB_UNIT_BYTES == 0;
}

/* Whether a resume found the same session. */
static inline bool
rbx_wire_welcome_is_same(const struct rbx_wire_welcome *welcome,
			 const struct rbx_wire_welcome *before)
{
	return welcome->session_id == before->session_id &&
	       welcome->incarnation == before->incarnation &&
	       welcome->slab_bytes == before->slab_bytes;
}

/* Preparing and emptying slabs takes time, and other clients may come first: their answers
 * are waited for so many times as long as others. Heartbeats show meanwhile that the server
 * lives. */
#define RBX_WIRE_SLAB_ANSWER_TIMES 4u

/* How long the answer to a request of this type may take. */
static inline uint32_t rbx_wire_answer_ms(uint16_t type, uint32_t answer_ms)
{
	bool takes_time = type == RBX_WIRE_SLAB_MAP ||
			  type == RBX_WIRE_SLAB_UNMAP;

	if (!takes_time)
		return answer_ms;
	return answer_ms > UINT32_MAX / RBX_WIRE_SLAB_ANSWER_TIMES ?
		       UINT32_MAX :
		       answer_ms * RBX_WIRE_SLAB_ANSWER_TIMES;
}

/* The tail of a slab: behind its data, 4 bytes for each page of it, up to a whole page. */
#define RBX_WIRE_CHECKSUM_BYTES 4u

static inline uint64_t rbx_wire_tail_bytes(uint64_t slab_bytes)
{
	uint64_t pages_count = slab_bytes / RBX_WIRE_SLAB_UNIT_BYTES;
	uint64_t unit_bytes = RBX_WIRE_SLAB_UNIT_BYTES;

	return (pages_count * RBX_WIRE_CHECKSUM_BYTES + unit_bytes - 1) / unit_bytes * unit_bytes;
}

/* What is lent with a slab of so many bytes. */
static inline uint64_t rbx_wire_lent_bytes(uint64_t slab_bytes, bool has_tail)
{
	return slab_bytes + (has_tail ? rbx_wire_tail_bytes(slab_bytes) : 0);
}

/* lent_bytes: of rbx_wire_lent_bytes(). */
static inline bool rbx_wire_loan_makes_sense(const struct rbx_wire_loan *loan,
					     uint64_t lent_bytes)
{
	return loan->slab_id && loan->length_bytes == lent_bytes &&
	       loan->remote_addr <= UINT64_MAX - loan->length_bytes;
}

#endif
