/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* proof_fails_test.c - proofs of a system that has no memory to make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/hmac.h>

#include "core/port.h"
#include "wire/proof.h"

static bool has_memory;

/* In place of libcrypto's. */
unsigned char *HMAC(const EVP_MD *kind, const void *key, int key_bytes,
		    const unsigned char *text, size_t text_bytes,
		    unsigned char *mac, unsigned int *mac_bytes)
{
	(void)kind, (void)key, (void)key_bytes, (void)text, (void)text_bytes;
	if (!has_memory)
		return NULL;
	memset(mac, 1, RBX_HMAC_BYTES);
	*mac_bytes = RBX_HMAC_BYTES;
	return mac;
}

static void mac_make(uint8_t mac[RBX_HMAC_BYTES])
{
	const uint8_t text[] = "text";

	memset(mac, 0, RBX_HMAC_BYTES);
	rbx_port_hmac_sha256(text, sizeof(text), text, sizeof(text), mac);
}

/* Neither what was there before, nor twice the same. */
static void failed_proof_equals_no_other(void **state)
{
	const uint8_t zeros[RBX_HMAC_BYTES] = { 0 };
	uint8_t first[RBX_HMAC_BYTES], second[RBX_HMAC_BYTES];

	(void)state;
	mac_make(first);
	mac_make(second);
	assert_false(rbx_proof_equal(first, second, RBX_HMAC_BYTES));
	assert_false(rbx_proof_equal(first, zeros, RBX_HMAC_BYTES));
	has_memory = true;
	mac_make(first);
	mac_make(second);
	assert_true(rbx_proof_equal(first, second, RBX_HMAC_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_proof_equals_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
