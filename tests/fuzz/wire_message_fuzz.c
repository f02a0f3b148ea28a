/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire_message_fuzz.c - what decodes is a message, and encodes to the very
 * bytes it came from; nothing is taken for a sealed one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	uint8_t again[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct rbx_seal seal = { .is_on = true };
	struct rbx_wire_message message;

	if (length_bytes <= sizeof(again)) {
		memcpy(again, bytes, length_bytes);
		if (rbx_seal_decode(&seal, again, length_bytes, &message) != -EACCES)
			abort(); /* nobody guesses a mac */
	}

	if (rbx_wire_decode(bytes, length_bytes, &message))
		return 0;
	if (rbx_wire_encode(&message, again) != length_bytes ||
	    memcmp(again, bytes, length_bytes))
		abort();
	return 0;
}

/* Hardly any input has zeros from its length on: half of the user messages get them,
 * the other half a length that may be right. */
static void user_message_cut(uint8_t *bytes, unsigned int seed)
{
	uint32_t length_bytes =
		(seed >> 1) % (RBX_WIRE_USER_MESSAGE_BYTES_MAX + 2);
	uint8_t *payload = bytes + RBX_WIRE_HEADER_BYTES;

	memset(payload + 8, 0, 8);
	payload[8] = (uint8_t)length_bytes;
	if (seed % 2 && length_bytes <= RBX_WIRE_USER_MESSAGE_BYTES_MAX)
		memset(payload + 16 + length_bytes, 0,
		       RBX_WIRE_USER_MESSAGE_BYTES_MAX - length_bytes);
}

/* The same for the name in HELLO: letters up to some length, then zeros. */
static void credential_cut(uint8_t *bytes, unsigned int seed)
{
	uint8_t *name = bytes + RBX_WIRE_HEADER_BYTES + 64;
	uint32_t length_bytes = seed % (RBX_CREDENTIAL_BYTES + 1);

	memset(name, 0, RBX_CREDENTIAL_BYTES);
	memset(name, 'a' + (int)(seed >> 6) % 26, length_bytes);
	bytes[RBX_WIRE_HEADER_BYTES] |= RBX_WIRE_HAS_SECRET;
}

/* Most inputs fail at the magic: half of them get one, with the version and
 * their true length, and with zeros where the header has nothing else. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length_bytes, size_t max_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length_bytes,
			       size_t max_bytes, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length_bytes,
			       size_t max_bytes, unsigned int seed)
{
	length_bytes = LLVMFuzzerMutate(bytes, length_bytes, max_bytes);
	if (seed % 2 || length_bytes < RBX_WIRE_HEADER_BYTES)
		return length_bytes;
	memcpy(bytes, "RBXC\2\0", 6);
	bytes[6] = (uint8_t)(bytes[6] % (RBX_WIRE_TYPES_END + 1));
	bytes[7] = 0;
	memset(bytes + 8, 0, 8);
	bytes[8] = (uint8_t)length_bytes;
	bytes[9] = (uint8_t)(length_bytes >> 8);
	if (bytes[6] == RBX_WIRE_ERROR)
		bytes[12] = (uint8_t)(seed >> 1 & 31);
	memset(bytes + 32, 0, 32);
	if (bytes[6] == RBX_WIRE_USER_MESSAGE &&
	    length_bytes == RBX_WIRE_MESSAGE_BYTES_MAX)
		user_message_cut(bytes, seed >> 1);
	if (bytes[6] == RBX_WIRE_HELLO && seed & 2 &&
	    length_bytes == RBX_WIRE_HEADER_BYTES + 64 + RBX_CREDENTIAL_BYTES)
		credential_cut(bytes, seed >> 2);
	return length_bytes;
}
