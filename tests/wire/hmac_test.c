/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hmac_test.c - the HMAC of the port is that of libcrypto, for keys and texts of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/port.h"

/* RFC 4231, 4.3 and 4.7: a short key, and one that is longer than a block. */
static void known_macs_are_made(void **state)
{
	static const uint8_t jefe[] = {
		0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
		0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
		0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43,
	};
	static const uint8_t longer[] = {
		0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f, 0x0d, 0x8a, 0x26,
		0xaa, 0xcb, 0xf5, 0xb7, 0x7f, 0x8e, 0x0b, 0xc6, 0x21, 0x37, 0x28,
		0xc5, 0x14, 0x05, 0x46, 0x04, 0x0f, 0x0e, 0xe3, 0x7f, 0x54,
	};
	static const char text[] = "what do ya want for nothing?";
	static const char hashed[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	uint8_t mac[RBX_HMAC_BYTES], key[131];

	(void)state;
	rbx_port_hmac_sha256((const uint8_t *)"Jefe", 4, (const uint8_t *)text,
			     sizeof(text) - 1, mac);
	assert_memory_equal(mac, jefe, sizeof(mac));
	memset(key, 0xaa, sizeof(key));
	rbx_port_hmac_sha256(key, sizeof(key), (const uint8_t *)hashed, sizeof(hashed) - 1, mac);
	assert_memory_equal(mac, longer, sizeof(mac));
}

static void each_length_is_as_in_libcrypto(void **state)
{
	uint8_t bytes[300], mac[RBX_HMAC_BYTES], expected[RBX_HMAC_BYTES];
	unsigned int length = 0;
	size_t i, key_bytes, text_bytes;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	for (key_bytes = 0; key_bytes <= 140; key_bytes++)
		for (text_bytes = 0; text_bytes <= 140; text_bytes += 5) {
			rbx_port_hmac_sha256(bytes, key_bytes, bytes + 150, text_bytes, mac);
			assert_non_null(HMAC(EVP_sha256(), bytes, (int)key_bytes, bytes + 150,
					     text_bytes, expected, &length));
			assert_memory_equal(mac, expected, sizeof(mac));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_macs_are_made),
		cmocka_unit_test(each_length_is_as_in_libcrypto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
