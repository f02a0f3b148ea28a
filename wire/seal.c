/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seal.c - writes and checks the two fields of seal.h, in the reserved bytes of the header.
 *
 * The mac covers the whole message with a mac of zeros: the number too.
 */
#include "wire/seal.h"

#define SEQUENCE_AT RBX_WIRE_SEAL_AT
#define MAC_AT (SEQUENCE_AT + 8)

RBX_STATIC_ASSERT(MAC_AT + RBX_WIRE_MAC_BYTES <= RBX_WIRE_HEADER_BYTES,
		  "both fields are in the header");

void rbx_seals_begin(struct rbx_seals *seals, enum rbx_side side, struct rbx_root root,
		     const struct rbx_transcript *transcript)
{
	bool is_client = side == RBX_SIDE_CLIENT;

	*seals = (struct rbx_seals){ .out.is_on = true, .in.is_on = true };
	rbx_key_of_messages(root, transcript, is_client, &seals->out.key);
	rbx_key_of_messages(root, transcript, !is_client, &seals->in.key);
}

static void sequence_put(uint64_t sequence, uint8_t *bytes)
{
	uint32_t i;

	for (i = 0; i < 8; i++)
		bytes[SEQUENCE_AT + i] = (uint8_t)(sequence >> (8 * i));
}

/* Of a message whose own mac is zeros. */
static void mac_make(const struct rbx_seal *seal, const uint8_t *bytes, size_t length_bytes,
		     uint8_t mac[RBX_HMAC_BYTES])
{
	rbx_port_hmac_sha256(seal->key.bytes, sizeof(seal->key.bytes), bytes, length_bytes, mac);
}

void rbx_seal_put(struct rbx_seal *seal, uint8_t *bytes, size_t length_bytes)
{
	uint8_t mac[RBX_HMAC_BYTES];

	if (!seal->is_on)
		return;
	sequence_put(++seal->sequence, bytes);
	mac_make(seal, bytes, length_bytes, mac);
	rbx_port_copy(bytes + MAC_AT, mac, RBX_WIRE_MAC_BYTES);
}

size_t rbx_seal_encode(struct rbx_seal *seal, const struct rbx_wire_message *message,
		       uint8_t *buf)
{
	size_t length_bytes = rbx_wire_encode(message, buf);

	rbx_seal_put(seal, buf, length_bytes);
	return length_bytes;
}

static bool is_next(struct rbx_seal *seal, uint8_t *bytes, size_t length_bytes)
{
	uint8_t claimed[RBX_WIRE_MAC_BYTES], mac[RBX_HMAC_BYTES], sequence[8];

	if (length_bytes < RBX_WIRE_HEADER_BYTES)
		return false;
	rbx_port_copy(claimed, bytes + MAC_AT, sizeof(claimed));
	rbx_port_copy(sequence, bytes + SEQUENCE_AT, sizeof(sequence));
	rbx_port_fill(bytes + MAC_AT, 0, RBX_WIRE_MAC_BYTES);
	/* As if it were the next one: any other has another mac. */
	sequence_put(seal->sequence + 1, bytes);
	mac_make(seal, bytes, length_bytes, mac);
	if (!rbx_proof_equal(mac, claimed, sizeof(claimed)) ||
	    !rbx_port_equal(sequence, bytes + SEQUENCE_AT, sizeof(sequence)))
		return false;
	rbx_port_fill(bytes + SEQUENCE_AT, 0, sizeof(sequence));
	seal->sequence++;
	return true;
}

int rbx_seal_decode(struct rbx_seal *seal, uint8_t *bytes, size_t length_bytes,
		    struct rbx_wire_message *message)
{
	if (seal->is_on && !is_next(seal, bytes, length_bytes)) {
		rbx_port_fill(message, 0, sizeof(*message));
		return -EACCES;
	}
	return rbx_wire_decode(bytes, length_bytes, message);
}
