/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * proof.h - how each side proves that it has the shared secret.
 *
 * The secret is never sent: each side sends an HMAC-SHA256 over what both have sent in this
 * handshake. PROTOCOL.md ("Authentication") has the whole argument. Its formulas are here,
 * once for client and server and for every host.
 */
#ifndef RBX_WIRE_PROOF_H
#define RBX_WIRE_PROOF_H

#include "wire/attach.h"
#include "wire/message.h"

/* A key that a handshake made. */
struct rbx_key {
	uint8_t bytes[RBX_WIRE_PROOF_BYTES];
};

/* What was sent before either side was authenticated: HELLO and CHALLENGE, byte for byte.
 * Both have a fixed length, so the two cannot be shifted against each other. */
struct rbx_transcript {
	uint8_t bytes[RBX_WIRE_GREETINGS_BYTES];
	size_t length_bytes;
};

/* A decoded message encodes to the same bytes that came. */
void rbx_transcript_make(struct rbx_transcript *transcript,
			 const struct rbx_wire_message *hello,
			 const struct rbx_wire_message *challenge);

/*
 * The root of a handshake's proofs: for a new session the secret (empty if there is none),
 * for a resume the session's key. Borrowed.
 */
struct rbx_root {
	const uint8_t *bytes;
	size_t length_bytes;
};

struct rbx_root rbx_root_of_key(const struct rbx_key *key);

/* The client's proof, in AUTH. */
void rbx_proof_of_client(struct rbx_root root,
			 const struct rbx_transcript *transcript,
			 uint8_t proof[RBX_WIRE_PROOF_BYTES]);

/* The server's proof, over its WELCOME with an all-zero proof. */
void rbx_proof_of_server(struct rbx_root root,
			 const struct rbx_transcript *transcript,
			 const struct rbx_wire_message *welcome,
			 uint8_t proof[RBX_WIRE_PROOF_BYTES]);

/* Valid as long as the session lives: it proves a resume. */
void rbx_key_of_session(struct rbx_root root,
			const struct rbx_transcript *transcript,
			struct rbx_key *key);

/* Valid as long as the control connection lives: data queue pairs are attached with it. */
void rbx_key_of_connection(struct rbx_root root,
			   const struct rbx_transcript *transcript,
			   struct rbx_key *key);

/* Valid as long as the control connection lives: seals its messages, in one direction. */
void rbx_key_of_messages(struct rbx_root root, const struct rbx_transcript *transcript,
			 bool from_client, struct rbx_key *key);

/* The mac over the other fields of attach. */
void rbx_proof_of_attach(const struct rbx_key *connection_key,
			 const struct rbx_wire_attach *attach,
			 uint8_t mac[RBX_WIRE_MAC_BYTES]);

/* Takes a time that does not depend on the bytes. */
bool rbx_proof_equal(const uint8_t *a, const uint8_t *b, size_t length_bytes);

#endif
