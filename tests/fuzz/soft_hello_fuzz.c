/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_hello_fuzz.c - the soft device's handshake and map answers: what decodes
 * survives encoding and decoding once more.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/soft/frame.h"

static void check_hello(const uint8_t *bytes)
{
	struct soft_hello hello, again;
	struct soft_wire_hello wire;

	if (soft_hello_decode(bytes, &hello) || hello.version != SOFT_VERSION)
		return;
	if (soft_hello_encode(&hello, &wire) != soft_hello_length(bytes) ||
	    soft_hello_decode((const uint8_t *)&wire, &again) ||
	    memcmp(&hello, &again, sizeof(hello)))
		abort();
}

static void check_map(const uint8_t *bytes)
{
	struct soft_map map, again;
	struct soft_wire_map wire;

	if (soft_map_decode(bytes, &map))
		return;
	soft_map_encode(&map, &wire);
	if (soft_map_decode((const uint8_t *)&wire, &again) ||
	    map.addr != again.addr || map.length_bytes != again.length_bytes ||
	    map.file_offset != again.file_offset || map.rights != again.rights)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	if (length_bytes >= SOFT_HELLO_MIN_BYTES &&
	    length_bytes >= soft_hello_length(bytes))
		check_hello(bytes);
	if (length_bytes >= SOFT_MAP_BYTES)
		check_map(bytes);
	return 0;
}
