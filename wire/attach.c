/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.c - encodes and decodes the private data of connections.
 */
#include "wire/attach.h"

#include "wire/cursor.h"
#include "wire/message.h"
#include "wire/reason.h"

#define ATTACH_MAGIC 0x41584252u /* "RBXA" in the order of bytes */
#define REFUSAL_MAGIC 0x52584252u /* "RBXR" */

RBX_STATIC_ASSERT(RBX_WIRE_ATTACH_SIGNED_BYTES == 4 + 2 + 2 + 8 + 8 &&
			  RBX_WIRE_ATTACH_BYTES ==
				  RBX_WIRE_ATTACH_SIGNED_BYTES +
					  RBX_WIRE_MAC_BYTES,
		  "magic, version, kind, session, serial, mac");

static void walk_attach(struct rbx_cursor *c, uint16_t *version,
			struct rbx_wire_attach *attach)
{
	rbx_cursor_constant(c, ATTACH_MAGIC, 4);
	rbx_cursor_u16(c, version);
	rbx_cursor_u16(c, &attach->kind);
	rbx_cursor_u64(c, &attach->session_id);
	rbx_cursor_u64(c, &attach->serial);
	rbx_cursor_bytes(c, attach->mac, RBX_WIRE_MAC_BYTES);
}

/* The padding that the connection manager adds: the rest of the bytes. */
static void walk_padding(struct rbx_cursor *c)
{
	rbx_cursor_zeros(c, c->end_bytes - c->at_bytes);
}

static bool attach_makes_sense(const struct rbx_wire_attach *attach)
{
	static const uint8_t no_mac[RBX_WIRE_MAC_BYTES];

	if (attach->kind == RBX_WIRE_ATTACH_DATA)
		return attach->session_id && attach->serial;
	return attach->kind == RBX_WIRE_ATTACH_CONTROL && !attach->serial &&
	       rbx_port_equal(attach->mac, no_mac, sizeof(no_mac));
}

void rbx_wire_attach_encode(const struct rbx_wire_attach *attach, uint8_t *buf)
{
	struct rbx_cursor c = { .to = buf, .end_bytes = RBX_WIRE_ATTACH_BYTES };
	struct rbx_wire_attach copy = *attach; /* the walk is not const */
	uint16_t version = RBX_WIRE_VERSION;

	RBX_ASSERT(attach_makes_sense(attach));
	walk_attach(&c, &version, &copy);
	RBX_ASSERT(!c.bad && c.at_bytes == RBX_WIRE_ATTACH_BYTES);
}

int rbx_wire_attach_decode(const uint8_t *bytes, size_t length_bytes,
			   struct rbx_wire_attach *attach)
{
	struct rbx_cursor c = { .from = bytes, .end_bytes = length_bytes };
	uint16_t version = 0;
	int err = -EBADMSG;

	rbx_port_fill(attach, 0, sizeof(*attach));
	walk_attach(&c, &version, attach);
	walk_padding(&c);
	if (!c.bad && version != RBX_WIRE_VERSION)
		err = -EPROTONOSUPPORT;
	else if (!c.bad && attach_makes_sense(attach))
		return 0;
	rbx_port_fill(attach, 0, sizeof(*attach));
	return err;
}

static void walk_refusal(struct rbx_cursor *c, uint32_t *reason)
{
	rbx_cursor_constant(c, REFUSAL_MAGIC, 4);
	rbx_cursor_u32(c, reason);
}

void rbx_wire_refusal_encode(uint32_t reason, uint8_t *buf)
{
	struct rbx_cursor c = { .to = buf, .end_bytes = RBX_WIRE_REFUSAL_BYTES };

	RBX_ASSERT(reason && reason < RBX_REASONS_COUNT);
	walk_refusal(&c, &reason);
	RBX_ASSERT(!c.bad && c.at_bytes == RBX_WIRE_REFUSAL_BYTES);
}

uint32_t rbx_wire_refusal_decode(const uint8_t *bytes, size_t length_bytes)
{
	struct rbx_cursor c = { .from = bytes, .end_bytes = length_bytes };
	uint32_t reason = RBX_REASON_NONE;

	walk_refusal(&c, &reason);
	walk_padding(&c);
	if (c.bad || reason >= RBX_REASONS_COUNT)
		return RBX_REASON_NONE;
	return reason;
}
