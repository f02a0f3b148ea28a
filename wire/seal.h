/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seal.h - the number and the mac that each control message carries after the handshake.
 *
 * Each direction of a connection has a key of its own and counts its messages. The receiver
 * takes exactly the next number under the right key. So a message that was changed on its way,
 * made up, repeated, or that follows a missing one, is refused, and the connection ends. The
 * session goes on over the next connection (PROTOCOL.md, "Resume").
 *
 * During the handshake both fields are zero: its messages prove themselves.
 */
#ifndef RBX_WIRE_SEAL_H
#define RBX_WIRE_SEAL_H

#include "wire/message.h"
#include "wire/proof.h"

/* One direction. Zeroed: of a connection whose handshake is not over. */
struct rbx_seal {
	struct rbx_key key;
	uint64_t sequence; /* of the last message */
	bool is_on;
};

/* Both directions, as one side sees them. */
struct rbx_seals {
	struct rbx_seal out;
	struct rbx_seal in;
};

enum rbx_side { RBX_SIDE_CLIENT, RBX_SIDE_SERVER };

/* The handshake is over: all messages after WELCOME are sealed. */
void rbx_seals_begin(struct rbx_seals *seals, enum rbx_side side, struct rbx_root root,
		     const struct rbx_transcript *transcript);

/* Like rbx_wire_encode(). Sealed messages leave in the order in which they were encoded. */
size_t rbx_seal_encode(struct rbx_seal *seal, const struct rbx_wire_message *message,
		       uint8_t *buf);

/* Seals a message that is encoded. */
void rbx_seal_put(struct rbx_seal *seal, uint8_t *bytes, size_t length_bytes);

/* Like rbx_wire_decode(), and -EACCES: the message is not the next one that the other side
 * sent. The two fields are cleared in the bytes. */
int rbx_seal_decode(struct rbx_seal *seal, uint8_t *bytes, size_t length_bytes,
		    struct rbx_wire_message *message);

#endif
