/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.h - the messages by which two endpoints exchange buffers (core/exchange.h).
 *
 * The paper's STCRW, "send tag for a conditional RDMA write", is OFFER: it tells the other
 * side where a buffer is, and under which tag it is known. END is the answer: the data are
 * there, or why not. WITHDRAW asks for that answer, as the deadline of the offer has passed.
 *
 * Both sides are programs of the same rank. A decoder copies and checks; what it has let
 * through is well-formed, but may still be a lie: core/exchange.c decides that.
 */
#ifndef RBX_WIRE_EXCHANGE_H
#define RBX_WIRE_EXCHANGE_H

#include "core/port.h"

#define RBX_WIRE_EXCHANGE_BYTES 48u

/* The offers that a side may have sent, and for which it has not heard END. The other side
 * has receives for them, for as many ENDs of its own offers, and for twice as many WITHDRAWs:
 * one that has crossed its END may still be under way when the next offer is withdrawn. */
#define RBX_WIRE_OFFERS_MAX 64u
#define RBX_WIRE_EXCHANGE_RECEIVES (4 * RBX_WIRE_OFFERS_MAX)

enum rbx_wire_exchange_type {
	RBX_WIRE_OFFER = 1,
	RBX_WIRE_OFFER_END,
	RBX_WIRE_OFFER_WITHDRAW,
	RBX_WIRE_EXCHANGE_TYPES_END,
};

/* What the other side may do with the buffer. */
enum rbx_wire_offer_access {
	RBX_WIRE_OFFER_TO_WRITE = 1,
	RBX_WIRE_OFFER_TO_READ,
	RBX_WIRE_OFFER_ACCESS_END,
};

/* How an offer has ended. */
enum rbx_wire_offer_end {
	RBX_WIRE_OFFER_DONE, /* length_bytes of it were written or read */
	RBX_WIRE_OFFER_TOO_SHORT, /* the operation is longer */
	RBX_WIRE_OFFER_WRONG_ACCESS, /* one side writes, the other has it read */
	RBX_WIRE_OFFER_TWICE, /* an offer with this tag is here already */
	RBX_WIRE_OFFER_NO_ROOM, /* too many offers are kept for which nobody has asked */
	RBX_WIRE_OFFER_WITHDRAWN, /* the answer to WITHDRAW: it was not used */
	RBX_WIRE_OFFER_ENDS_END,
};

struct rbx_wire_exchange {
	uint16_t type; /* enum rbx_wire_exchange_type */
	uint64_t id; /* of the offer; chosen by who offers, never 0 */
	/* OFFER only. */
	uint16_t access; /* enum rbx_wire_offer_access */
	uint64_t tag;
	uint64_t address;
	uint32_t key;
	/* END only. */
	uint16_t end; /* enum rbx_wire_offer_end */
	/* OFFER: of the buffer, at least 1. END: how many of them, if it is done. */
	uint32_t length_bytes;
};

/* buf has room for RBX_WIRE_EXCHANGE_BYTES. */
void rbx_wire_exchange_encode(const struct rbx_wire_exchange *message, uint8_t *buf);

/* Returns 0, -EBADMSG or -EPROTONOSUPPORT; *message is zeroed then. */
int rbx_wire_exchange_decode(const uint8_t *bytes, size_t length_bytes,
			     struct rbx_wire_exchange *message);

#endif
