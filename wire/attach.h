/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.h - the private data of a connection.
 *
 * A client that connects a queue pair sends 40 bytes. They say whether it is for control or
 * for data, and for data to which session it belongs, with a proof that only the
 * authenticated session can make. A server that refuses a queue pair says why in 8 bytes. The
 * layout is the same in all versions of the protocol, so that even an untrusted client gets a
 * reason.
 *
 * A connection manager may deliver more bytes than were given, with zeros behind. These zeros
 * are ignored; anything else behind is an error.
 */
#ifndef RBX_WIRE_ATTACH_H
#define RBX_WIRE_ATTACH_H

#include "core/port.h"

#define RBX_WIRE_ATTACH_BYTES 40u
#define RBX_WIRE_ATTACH_SIGNED_BYTES 24u /* what the mac covers */
#define RBX_WIRE_MAC_BYTES 16u /* HMAC-SHA256, truncated */
#define RBX_WIRE_REFUSAL_BYTES 8u

enum rbx_wire_attach_kind {
	RBX_WIRE_ATTACH_CONTROL = 1, /* all fields but session_id are zero */
	RBX_WIRE_ATTACH_DATA,
};

struct rbx_wire_attach {
	uint16_t kind; /* enum rbx_wire_attach_kind */
	uint64_t session_id; /* for control: the session to resume, or 0 */
	/* grows with each queue pair of a control connection, from 1: none is accepted twice */
	uint64_t serial;
	uint8_t mac[RBX_WIRE_MAC_BYTES];
};

/* buf has room for RBX_WIRE_ATTACH_BYTES. */
void rbx_wire_attach_encode(const struct rbx_wire_attach *attach, uint8_t *buf);

/* Returns 0, -EBADMSG or -EPROTONOSUPPORT. */
int rbx_wire_attach_decode(const uint8_t *bytes, size_t length_bytes,
			   struct rbx_wire_attach *attach);

/* buf has room for RBX_WIRE_REFUSAL_BYTES; reason is of enum rbx_reason. */
void rbx_wire_refusal_encode(uint32_t reason, uint8_t *buf);

/* The reason, or RBX_REASON_NONE if the bytes hold none. */
uint32_t rbx_wire_refusal_decode(const uint8_t *bytes, size_t length_bytes);

#endif
