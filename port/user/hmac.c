/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hmac.c - HMAC-SHA256 (RFC 2104) for every port that has a libc, over the SHA-256 of
 * libcrypto.
 *
 * Each control message has a MAC, and threads that also move data make them. So nothing is
 * allocated: the state of the hash is on the stack. The interface for that is old, and
 * deprecated for others that allocate. It cannot fail either.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "core/port.h"

RBX_STATIC_ASSERT(RBX_HMAC_BYTES == SHA256_DIGEST_LENGTH, "the whole of it");

/* One of the two hashes that make an HMAC: of the key with each byte turned, and a text. */
static void hash(const uint8_t key[SHA256_CBLOCK], uint8_t turn, const uint8_t *text,
		 size_t text_bytes, uint8_t digest[RBX_HMAC_BYTES])
{
	uint8_t turned[SHA256_CBLOCK];
	SHA256_CTX state;

	for (size_t i = 0; i < sizeof(turned); i++)
		turned[i] = key[i] ^ turn;
	SHA256_Init(&state);
	SHA256_Update(&state, turned, sizeof(turned));
	SHA256_Update(&state, text, text_bytes);
	SHA256_Final(digest, &state);
	OPENSSL_cleanse(turned, sizeof(turned));
	OPENSSL_cleanse(&state, sizeof(state));
}

void rbx_port_hmac_sha256(const uint8_t *key, size_t key_bytes,
			  const uint8_t *text, size_t text_bytes,
			  uint8_t mac[RBX_HMAC_BYTES])
{
	uint8_t block[SHA256_CBLOCK] = { 0 }, inner[RBX_HMAC_BYTES];

	if (key_bytes > sizeof(block))
		SHA256(key, key_bytes, block);
	else if (key_bytes)
		memcpy(block, key, key_bytes);
	hash(block, 0x36, text, text_bytes, inner);
	hash(block, 0x5c, inner, sizeof(inner), mac);
	OPENSSL_cleanse(block, sizeof(block));
}
