/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.c - encodes and decodes the messages of an exchange, see exchange.h.
 */
#include "wire/exchange.h"

#include "wire/cursor.h"

#define EXCHANGE_MAGIC 0x45584252u /* "RBXE" in the order of bytes */
#define EXCHANGE_VERSION 1u

RBX_STATIC_ASSERT(RBX_WIRE_EXCHANGE_BYTES == 4 + 2 + 2 + 8 + 8 + 8 + 4 + 4 + 2 + 2 + 4,
		  "magic, version, type, id, tag, address, length, key, access, end, zeros");

static void walk(struct rbx_cursor *c, uint16_t *version, struct rbx_wire_exchange *message)
{
	rbx_cursor_constant(c, EXCHANGE_MAGIC, 4);
	rbx_cursor_u16(c, version);
	rbx_cursor_u16(c, &message->type);
	rbx_cursor_u64(c, &message->id);
	rbx_cursor_u64(c, &message->tag);
	rbx_cursor_u64(c, &message->address);
	rbx_cursor_u32(c, &message->length_bytes);
	rbx_cursor_u32(c, &message->key);
	rbx_cursor_u16(c, &message->access);
	rbx_cursor_u16(c, &message->end);
	rbx_cursor_zeros(c, 4);
}

/* The buffer lies in the address space of who offers it. */
static bool offer_makes_sense(const struct rbx_wire_exchange *message)
{
	return message->access && message->access < RBX_WIRE_OFFER_ACCESS_END &&
	       !message->end && message->length_bytes &&
	       message->address <= UINT64_MAX - message->length_bytes;
}

static bool makes_sense(const struct rbx_wire_exchange *message)
{
	if (!message->id)
		return false;
	if (message->type == RBX_WIRE_OFFER)
		return offer_makes_sense(message);
	if (message->access || message->tag || message->address || message->key)
		return false;
	if (message->type == RBX_WIRE_OFFER_WITHDRAW)
		return !message->end && !message->length_bytes;
	return message->type == RBX_WIRE_OFFER_END &&
	       message->end < RBX_WIRE_OFFER_ENDS_END &&
	       (message->end == RBX_WIRE_OFFER_DONE) == (message->length_bytes != 0);
}

void rbx_wire_exchange_encode(const struct rbx_wire_exchange *message, uint8_t *buf)
{
	struct rbx_cursor c = { .to = buf, .end_bytes = RBX_WIRE_EXCHANGE_BYTES };
	struct rbx_wire_exchange copy = *message; /* the walk is not const */
	uint16_t version = EXCHANGE_VERSION;

	RBX_ASSERT(makes_sense(message));
	walk(&c, &version, &copy);
	RBX_ASSERT(!c.bad && c.at_bytes == RBX_WIRE_EXCHANGE_BYTES);
}

int rbx_wire_exchange_decode(const uint8_t *bytes, size_t length_bytes,
			     struct rbx_wire_exchange *message)
{
	struct rbx_cursor c = { .from = bytes, .end_bytes = length_bytes };
	uint16_t version = 0;
	int err = -EBADMSG;

	rbx_port_fill(message, 0, sizeof(*message));
	walk(&c, &version, message);
	if (!c.bad && c.at_bytes == length_bytes && version != EXCHANGE_VERSION)
		err = -EPROTONOSUPPORT;
	else if (!c.bad && c.at_bytes == length_bytes && makes_sense(message))
		return 0;
	rbx_port_fill(message, 0, sizeof(*message));
	return err;
}
