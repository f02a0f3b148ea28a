/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire_attach_fuzz.c - private data of connections: what decodes encodes to
 * the very bytes it came from, and only zeros are behind these.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/attach.h"

/* The bytes are `expected` and padding. */
static void check(const uint8_t *bytes, size_t length_bytes,
		  const uint8_t *expected, size_t expected_bytes)
{
	size_t i;

	if (length_bytes < expected_bytes ||
	    memcmp(bytes, expected, expected_bytes))
		abort();
	for (i = expected_bytes; i < length_bytes; i++)
		if (bytes[i])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	uint8_t again[RBX_WIRE_ATTACH_BYTES];
	struct rbx_wire_attach attach;
	uint32_t reason;

	if (!rbx_wire_attach_decode(bytes, length_bytes, &attach)) {
		rbx_wire_attach_encode(&attach, again);
		check(bytes, length_bytes, again, sizeof(again));
	}
	reason = rbx_wire_refusal_decode(bytes, length_bytes);
	if (reason) {
		rbx_wire_refusal_encode(reason, again);
		check(bytes, length_bytes, again, RBX_WIRE_REFUSAL_BYTES);
	}
	return 0;
}
