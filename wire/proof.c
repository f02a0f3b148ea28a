/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * proof.c - the formulas of proof.h.
 *
 * All proofs are HMAC-SHA256(root, label || transcript || more). Each use has a label of its
 * own, ended by a zero byte, so no proof can be taken for another one.
 */
#include "wire/proof.h"

RBX_STATIC_ASSERT(RBX_WIRE_PROOF_BYTES == RBX_HMAC_BYTES,
		  "a proof is a whole HMAC");

void rbx_transcript_make(struct rbx_transcript *transcript,
			 const struct rbx_wire_message *hello,
			 const struct rbx_wire_message *challenge)
{
	size_t hello_bytes;

	RBX_ASSERT(hello->type == RBX_WIRE_HELLO);
	RBX_ASSERT(challenge->type == RBX_WIRE_CHALLENGE);
	hello_bytes = rbx_wire_encode(hello, transcript->bytes);
	transcript->length_bytes =
		hello_bytes +
		rbx_wire_encode(challenge, transcript->bytes + hello_bytes);
}

struct rbx_root rbx_root_of_key(const struct rbx_key *key)
{
	return (struct rbx_root){ key->bytes, sizeof(key->bytes) };
}

#define LABEL_BYTES_MAX 32

/* The zero byte at the end is part of a label. */
static size_t label_bytes(const char *label)
{
	size_t n = 0;

	while (label[n])
		n++;
	RBX_ASSERT(n < LABEL_BYTES_MAX);
	return n + 1;
}

static void prove(struct rbx_root root, const char *label,
		  const struct rbx_transcript *transcript, const uint8_t *more,
		  size_t more_bytes, uint8_t proof[RBX_WIRE_PROOF_BYTES])
{
	uint8_t text[LABEL_BYTES_MAX + sizeof(transcript->bytes) +
		     RBX_WIRE_HANDSHAKE_BYTES_MAX];
	size_t length_bytes = label_bytes(label);

	RBX_ASSERT(more_bytes <= RBX_WIRE_HANDSHAKE_BYTES_MAX);
	rbx_port_copy(text, label, length_bytes);
	if (transcript) {
		rbx_port_copy(text + length_bytes, transcript->bytes,
			      transcript->length_bytes);
		length_bytes += transcript->length_bytes;
	}
	if (more_bytes)
		rbx_port_copy(text + length_bytes, more, more_bytes);
	length_bytes += more_bytes;
	rbx_port_hmac_sha256(root.bytes, root.length_bytes, text, length_bytes,
			     proof);
}

void rbx_proof_of_client(struct rbx_root root,
			 const struct rbx_transcript *transcript,
			 uint8_t proof[RBX_WIRE_PROOF_BYTES])
{
	prove(root, "rdmabox client proof", transcript, NULL, 0, proof);
}

void rbx_proof_of_server(struct rbx_root root,
			 const struct rbx_transcript *transcript,
			 const struct rbx_wire_message *welcome,
			 uint8_t proof[RBX_WIRE_PROOF_BYTES])
{
	struct rbx_wire_message unproved = *welcome;
	uint8_t bytes[RBX_WIRE_HANDSHAKE_BYTES_MAX];
	size_t length_bytes;

	RBX_ASSERT(welcome->type == RBX_WIRE_WELCOME);
	rbx_port_fill(unproved.welcome.proof, 0,
		      sizeof(unproved.welcome.proof));
	length_bytes = rbx_wire_encode(&unproved, bytes);
	prove(root, "rdmabox server proof", transcript, bytes, length_bytes,
	      proof);
}

void rbx_key_of_session(struct rbx_root root,
			const struct rbx_transcript *transcript,
			struct rbx_key *key)
{
	prove(root, "rdmabox session key", transcript, NULL, 0, key->bytes);
}

void rbx_key_of_connection(struct rbx_root root,
			   const struct rbx_transcript *transcript,
			   struct rbx_key *key)
{
	prove(root, "rdmabox connection key", transcript, NULL, 0, key->bytes);
}

void rbx_key_of_messages(struct rbx_root root, const struct rbx_transcript *transcript,
			 bool from_client, struct rbx_key *key)
{
	prove(root, from_client ? "rdmabox client messages" : "rdmabox server messages",
	      transcript, NULL, 0, key->bytes);
}

void rbx_proof_of_attach(const struct rbx_key *connection_key,
			 const struct rbx_wire_attach *attach,
			 uint8_t mac[RBX_WIRE_MAC_BYTES])
{
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	uint8_t proof[RBX_WIRE_PROOF_BYTES];

	rbx_wire_attach_encode(attach, bytes);
	prove(rbx_root_of_key(connection_key), "rdmabox queue pair", NULL,
	      bytes, RBX_WIRE_ATTACH_SIGNED_BYTES, proof);
	rbx_port_copy(mac, proof, RBX_WIRE_MAC_BYTES);
}

bool rbx_proof_equal(const uint8_t *a, const uint8_t *b, size_t length_bytes)
{
	volatile uint8_t differ = 0; /* so that no compiler ends the loop early */
	size_t i;

	for (i = 0; i < length_bytes; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}
