/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.h - two programs exchange buffers by tag: the fast RDMA read and write process
 * (FRRWP) and its conditional RDMA write (CRW).
 *
 * One side offers a buffer under a tag. The other side has an operation, a write or a read,
 * that names the tag and no key. Whichever comes first is held here, at the side of the
 * operation. When both are there they match, and the host posts the operation with the key
 * of the offer. No program takes part in that. Then the side of the operation answers, and
 * the offer ends.
 *
 *	operation: WAITING -> MATCHED -> POSTED -> OVER
 *	our offer: UNSENT -> OUT -> CLOSING -> OVER [-> UNHEARD]
 *	an offer of the peer: KEPT -> TAKEN -> ANSWER
 *
 * The host asks what there is to do, and does it:
 *
 *	rbx_exchange_next_post     an operation has its key: post it
 *	rbx_exchange_next_message  send this
 *	rbx_exchange_next_key      end this key, then rbx_exchange_key_ended()
 *	rbx_exchange_next_end      tell the program
 *
 * An offer ends for the program only after its key has: CLOSING comes before OVER. So whoever
 * knew the key cannot reach a buffer that the program has back.
 *
 * When the deadline of an offer passes, the peer may be about to use the key. To end the key
 * then would break the connection, as RDMA does with every access that is refused. So
 * WITHDRAW asks the peer first. Only if it has not answered after a grace, which is longer for
 * a longer buffer (limits.h), is the key ended all the same; its entry is UNHEARD until the
 * answer comes. A peer that never answers makes its own connection useless.
 *
 * What a peer may do is bounded. It has room for RBX_WIRE_OFFERS_MAX offers that we have not
 * answered; more break the protocol. Of those, as many as we have operations are kept though
 * nobody waits for them; the rest is refused at once. An id that is in use, an END of
 * nothing, an END that is longer than its offer: the host is told -EPROTO and breaks the
 * connection.
 *
 * The host holds the lock that guards it.
 */
#ifndef RBX_EXCHANGE_H
#define RBX_EXCHANGE_H

#include "core/limits.h"
#include "wire/exchange.h"

struct rbx_exchange;

/* What a program wants: an operation, or an offer. */
struct rbx_exchange_wish {
	uint64_t tag;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint32_t length_bytes;
	uint16_t access; /* enum rbx_wire_offer_access: what the operation does */
	/* Of an offer. */
	uint64_t address;
	uint32_t key;
};

/* The memory that an exchange of so many operations, and as many offers, takes. */
size_t rbx_exchange_size(uint32_t count);
/*
 * is_ordered: a message arrives after the data of a write that was posted before it. So it is
 * sent right behind the write, and not when that has completed.
 */
void rbx_exchange_init(struct rbx_exchange *exchange, uint32_t count, bool is_ordered);

/*
 * Holds an operation until its offer comes. Returns its index below count; -EAGAIN: there is
 * no room; -EEXIST: one with this tag waits; -EMSGSIZE, -EPROTOTYPE: its offer is here, and
 * does not fit (both sides end); or why the connection is over.
 */
int rbx_exchange_operate(struct rbx_exchange *exchange, const struct rbx_exchange_wish *wish);
/* Makes an offer. Returns its index; -EAGAIN, -EEXIST; or why the connection is over. */
int rbx_exchange_offer(struct rbx_exchange *exchange, const struct rbx_exchange_wish *wish);

/* A message of the peer, decoded. 0; -EPROTO: it cannot be, so the host breaks the
 * connection. */
int rbx_exchange_hear(struct rbx_exchange *exchange, const struct rbx_wire_exchange *message);
/* Time goes on. */
void rbx_exchange_tick(struct rbx_exchange *exchange, uint64_t now_ns);
/* When the next deadline passes; UINT64_MAX: none does. */
uint64_t rbx_exchange_due_ns(const struct rbx_exchange *exchange);
/* The connection is over. All that is not posted ends with the status. Only the first call
 * counts. */
void rbx_exchange_break(struct rbx_exchange *exchange, int status);
/* That status; 0: it is not over. */
int rbx_exchange_broken(const struct rbx_exchange *exchange);

struct rbx_exchange_post {
	uint32_t index; /* of the operation */
	uint32_t length_bytes;
	uint16_t access;
	uint32_t key;
	uint64_t address;
};

/* The operation that is to be posted, or false. posted: it was, in whole. */
bool rbx_exchange_next_post(const struct rbx_exchange *exchange, struct rbx_exchange_post *post);
void rbx_exchange_posted(struct rbx_exchange *exchange, uint32_t index);
/* An operation that was posted has ended: nothing of it is under way. */
void rbx_exchange_completed(struct rbx_exchange *exchange, uint32_t index, int status);

/* Takes the message that is to be sent, or false. The host has room for it. */
bool rbx_exchange_next_message(struct rbx_exchange *exchange, struct rbx_wire_exchange *message);
/* The offer whose key is to be ended, or false. */
bool rbx_exchange_next_key(const struct rbx_exchange *exchange, uint32_t *index);
void rbx_exchange_key_ended(struct rbx_exchange *exchange, uint32_t index);

struct rbx_exchange_end {
	bool is_offer;
	uint32_t index; /* of the operation or the offer; it is free now */
	int status;
	uint32_t length_bytes; /* that were written or read, with status 0 */
};

/* Takes what the program is to be told, or false. */
bool rbx_exchange_next_end(struct rbx_exchange *exchange, struct rbx_exchange_end *end);

#endif
