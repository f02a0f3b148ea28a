/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hmac.c - HMAC-SHA256 by libcrypto, for every port that has a libc.
 */
#include <stdlib.h>
#include <sys/random.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/port.h"

void rbx_port_hmac_sha256(const uint8_t *key, size_t key_bytes,
			  const uint8_t *text, size_t text_bytes,
			  uint8_t mac[RBX_HMAC_BYTES])
{
	unsigned int mac_bytes = 0;

	if (HMAC(EVP_sha256(), key, (int)key_bytes, text, text_bytes, mac,
		 &mac_bytes) &&
	    mac_bytes == RBX_HMAC_BYTES)
		return;
	/* If memory for it is lacking, the result is random: nobody can guess it, so it
	 * proves nothing. A system without random numbers could not have made a nonce either. */
	if (getrandom(mac, RBX_HMAC_BYTES, 0) != RBX_HMAC_BYTES)
		abort(); /* an unproved peer must never pass for a proved one */
}
