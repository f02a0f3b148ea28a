/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secret.h - the shared secret of clients and servers, and proofs of it.
 *
 * A secret is the contents of a file that both sides have. It never travels:
 * each side proves that it has it by HMAC-SHA256 over what both have said in
 * this handshake. wire/PROTOCOL.md ("Authentication") has the whole argument;
 * here stand its formulas, once for client and server.
 */
#ifndef RBX_LIB_SECRET_H
#define RBX_LIB_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/attach.h"
#include "wire/message.h"

#define RBX_SECRET_BYTES_MIN 16u /* 128 bits, if they are random */
#define RBX_SECRET_BYTES_MAX 4096u

struct rbx_secret {
	size_t length_bytes;
	uint8_t bytes[RBX_SECRET_BYTES_MAX];
};

/*
 * Reads a secret; one newline at the end is not part of it. Returns it to the
 * caller. 0; -ENOENT; -EACCES not readable, or by others too; -EINVAL not a
 * file, too short, too long; -ENOMEM. Sets rbx_last_error().
 */
int rbx_secret_load(const char *path, struct rbx_secret **secret);

/* Wipes and frees. NULL is allowed. */
void rbx_secret_free(struct rbx_secret *secret);

/* A key that a handshake made. */
struct rbx_key {
	uint8_t bytes[RBX_WIRE_PROOF_BYTES];
};

/* What was said before anybody was sure of anybody: HELLO and CHALLENGE, byte
 * for byte as they travel. Both have a fixed length, so the two cannot be
 * shifted against each other. */
struct rbx_transcript {
	uint8_t bytes[2 * RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;
};

/* A message that was decoded encodes to the bytes that came. */
void rbx_transcript_make(struct rbx_transcript *transcript,
			 const struct rbx_wire_message *hello,
			 const struct rbx_wire_message *challenge);

/*
 * The root of a handshake's proofs: the secret for a new session (NULL: none),
 * the session's key for a resume. Borrows.
 */
struct rbx_root {
	const uint8_t *bytes;
	size_t length_bytes;
};

struct rbx_root rbx_root_of_secret(const struct rbx_secret *secret);
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

/* For as long as the session lives: what a resume is proved with. */
void rbx_key_of_session(struct rbx_root root,
			const struct rbx_transcript *transcript,
			struct rbx_key *key);

/* For as long as the control connection lives: what data queue pairs are
 * attached with. */
void rbx_key_of_connection(struct rbx_root root,
			   const struct rbx_transcript *transcript,
			   struct rbx_key *key);

/* The mac over the other fields of attach. */
void rbx_proof_of_attach(const struct rbx_key *connection_key,
			 const struct rbx_wire_attach *attach,
			 uint8_t mac[RBX_WIRE_MAC_BYTES]);

/* In a time that does not depend on the bytes. */
bool rbx_proof_equal(const uint8_t *a, const uint8_t *b, size_t length_bytes);

/* Unpredictable bytes; nothing goes on without them. */
int rbx_random(void *buf, size_t length_bytes);

#endif
