/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire_attach_fuzz.c - private data of connections: what decodes encodes to
 * the very bytes it came from.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/attach.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	uint8_t again[RBX_WIRE_ATTACH_BYTES];
	struct rbx_wire_attach attach;
	uint32_t reason;

	if (!rbx_wire_attach_decode(bytes, length_bytes, &attach)) {
		rbx_wire_attach_encode(&attach, again);
		if (length_bytes != sizeof(again) ||
		    memcmp(again, bytes, sizeof(again)))
			abort();
	}
	reason = rbx_wire_refusal_decode(bytes, length_bytes);
	if (reason) {
		rbx_wire_refusal_encode(reason, again);
		if (memcmp(again, bytes, RBX_WIRE_REFUSAL_BYTES))
			abort();
	}
	return 0;
}
