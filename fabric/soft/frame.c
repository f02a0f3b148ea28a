/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.c - encodes frames, and decodes and checks them.
 *
 * Encoding cannot fail. Decoding copies the bytes before it looks at them, and says in words
 * what is wrong with them; the caller then ends the connection. No pointer into the caller's
 * bytes is kept.
 */
#include "frame.h"

#include <endian.h>
#include <string.h>

#include "limits.h"

void soft_frame_encode(const struct soft_frame *frame,
		       struct soft_wire_frame *wire)
{
	*wire = (struct soft_wire_frame){
		.opcode = frame->opcode,
		.status = frame->status,
		.flags = frame->flags,
		.sequence = htole32(frame->sequence),
		.length_bytes = htole32(frame->length_bytes),
		.rkey = htole32(frame->rkey),
		.remote_addr = htole64(frame->remote_addr),
		.credit = htole32(frame->credit),
		.immediate = htole32(frame->immediate),
	};
}

void soft_frame_set_sequence(struct soft_wire_frame *wire, uint32_t sequence)
{
	wire->sequence = htole32(sequence);
}

void soft_frame_want_ack(struct soft_wire_frame *wire)
{
	wire->flags |= SOFT_ACK_WANTED;
}

bool soft_frame_wants_ack(const struct soft_wire_frame *wire)
{
	return wire->flags & SOFT_ACK_WANTED;
}

/* Which fields an opcode uses; the others are zero. */
enum field {
	HAS_STATUS = 1,
	HAS_FLAGS = 2,
	HAS_SEQUENCE = 4,
	HAS_LENGTH = 8,
	HAS_KEY = 16,
	HAS_ADDR = 32,
	HAS_CREDIT = 64,
	HAS_IMMEDIATE = 128,
};

static const uint8_t opcode_fields[SOFT_OPCODE_LAST + 1] = {
	[SOFT_WRITE] = HAS_FLAGS | HAS_SEQUENCE | HAS_LENGTH | HAS_KEY |
		       HAS_ADDR | HAS_IMMEDIATE,
	[SOFT_READ] = HAS_FLAGS | HAS_SEQUENCE | HAS_LENGTH | HAS_KEY |
		      HAS_ADDR,
	[SOFT_SEND] = HAS_FLAGS | HAS_SEQUENCE | HAS_LENGTH | HAS_KEY |
		      HAS_IMMEDIATE,
	[SOFT_RESPONSE] = HAS_SEQUENCE | HAS_LENGTH,
	[SOFT_ACK] = HAS_SEQUENCE | HAS_CREDIT,
	[SOFT_ERROR] = HAS_STATUS | HAS_SEQUENCE,
	[SOFT_MAP_ASK] = HAS_KEY,
	[SOFT_MAP_ANSWER] = HAS_STATUS | HAS_KEY,
	[SOFT_COMPARE_SWAP] = HAS_FLAGS | HAS_SEQUENCE | HAS_KEY | HAS_ADDR,
	[SOFT_FETCH_ADD] = HAS_FLAGS | HAS_SEQUENCE | HAS_KEY | HAS_ADDR,
	[SOFT_ASK_CREDIT] = HAS_CREDIT,
};

static const uint8_t opcode_flags[SOFT_OPCODE_LAST + 1] = {
	[SOFT_WRITE] = SOFT_ACK_WANTED | SOFT_IMMEDIATE,
	[SOFT_READ] = SOFT_ACK_WANTED,
	[SOFT_SEND] = SOFT_ACK_WANTED | SOFT_IMMEDIATE | SOFT_INVALIDATE,
	[SOFT_COMPARE_SWAP] = SOFT_ACK_WANTED,
	[SOFT_FETCH_ADD] = SOFT_ACK_WANTED,
};

static uint8_t fields_in_use(const struct soft_frame *frame)
{
	return (frame->status ? HAS_STATUS : 0) |
	       (frame->flags ? HAS_FLAGS : 0) |
	       (frame->sequence ? HAS_SEQUENCE : 0) |
	       (frame->length_bytes ? HAS_LENGTH : 0) |
	       (frame->rkey ? HAS_KEY : 0) |
	       (frame->remote_addr ? HAS_ADDR : 0) |
	       (frame->credit ? HAS_CREDIT : 0) |
	       (frame->immediate ? HAS_IMMEDIATE : 0);
}

/* Flags decide about two fields, and exclude each other. */
static bool flags_fit(const struct soft_frame *frame)
{
	const uint8_t both = SOFT_IMMEDIATE | SOFT_INVALIDATE;

	if (frame->flags & ~opcode_flags[frame->opcode] ||
	    (frame->flags & both) == both)
		return false;
	if (frame->immediate && !(frame->flags & SOFT_IMMEDIATE))
		return false;
	return frame->opcode != SOFT_SEND || !frame->rkey ||
	       frame->flags & SOFT_INVALIDATE;
}

static const char *frame_check(const struct soft_frame *frame)
{
	if (frame->opcode < SOFT_WRITE || frame->opcode > SOFT_OPCODE_LAST)
		return "unknown opcode";
	if (fields_in_use(frame) & ~opcode_fields[frame->opcode])
		return "a field that must be zero is not";
	if (frame->length_bytes > SOFT_MESSAGE_MAX_BYTES)
		return "length out of range";
	if (!flags_fit(frame))
		return "unknown flags, or fields that do not belong to them";
	if (frame->status > SOFT_REFUSED_OTHER)
		return "unknown status";
	if (frame->opcode == SOFT_ERROR && frame->status == SOFT_OK)
		return "error without a status";
	return NULL;
}

const char *soft_frame_decode(const uint8_t *bytes, struct soft_frame *frame)
{
	struct soft_wire_frame wire;

	memcpy(&wire, bytes, sizeof(wire));
	if (wire.reserved)
		return "reserved bytes are not zero";
	*frame = (struct soft_frame){
		.opcode = wire.opcode,
		.status = wire.status,
		.flags = wire.flags,
		.sequence = le32toh(wire.sequence),
		.length_bytes = le32toh(wire.length_bytes),
		.rkey = le32toh(wire.rkey),
		.remote_addr = le64toh(wire.remote_addr),
		.credit = le32toh(wire.credit),
		.immediate = le32toh(wire.immediate),
	};
	return frame_check(frame);
}

uint32_t soft_frame_payload_bytes(const struct soft_frame *frame)
{
	return frame->opcode == SOFT_READ ? 0 : frame->length_bytes;
}

uint32_t soft_frame_body_bytes(const struct soft_frame *frame)
{
	if (soft_frame_is_atomic(frame))
		return SOFT_ATOMIC_BYTES;
	return frame->opcode == SOFT_MAP_ANSWER ? SOFT_MAP_BYTES : 0;
}

void soft_atomic_encode(const struct soft_atomic *atomic,
			struct soft_wire_atomic *wire)
{
	*wire = (struct soft_wire_atomic){
		.compare_add = htole64(atomic->compare_add),
		.swap = htole64(atomic->swap),
	};
}

const char *soft_atomic_decode(const struct soft_frame *frame,
			       const uint8_t *bytes, struct soft_atomic *atomic)
{
	struct soft_wire_atomic wire;

	memcpy(&wire, bytes, sizeof(wire));
	*atomic = (struct soft_atomic){
		.compare_add = le64toh(wire.compare_add),
		.swap = le64toh(wire.swap),
	};
	if (frame->opcode == SOFT_FETCH_ADD && atomic->swap)
		return "a field that must be zero is not";
	return NULL;
}

void soft_map_encode(const struct soft_map *map, struct soft_wire_map *wire)
{
	*wire = (struct soft_wire_map){
		.addr = htole64(map->addr),
		.length_bytes = htole64(map->length_bytes),
		.file_offset = htole64(map->file_offset),
		.rights = htole32(map->rights),
	};
}

const char *soft_map_decode(const uint8_t *bytes, struct soft_map *map)
{
	struct soft_wire_map wire;

	memcpy(&wire, bytes, sizeof(wire));
	*map = (struct soft_map){
		.addr = le64toh(wire.addr),
		.length_bytes = le64toh(wire.length_bytes),
		.file_offset = le64toh(wire.file_offset),
		.rights = le32toh(wire.rights),
	};
	if (wire.reserved || map->rights & ~(uint32_t)(RBX_REMOTE_READ |
						       RBX_REMOTE_WRITE))
		return "unknown rights of a mapping";
	if (map->length_bytes > INT64_MAX || map->file_offset > INT64_MAX ||
	    map->addr > UINT64_MAX - map->length_bytes ||
	    map->file_offset + map->length_bytes > INT64_MAX)
		return "mapping out of range";
	return NULL;
}

static size_t hello_length(size_t private_bytes)
{
	size_t bytes = offsetof(struct soft_wire_hello, private_data) +
		       private_bytes;

	return bytes < SOFT_HELLO_MIN_BYTES ? SOFT_HELLO_MIN_BYTES : bytes;
}

static uint32_t hello_flags(const struct soft_hello *hello)
{
	return (hello->shares_receives ? SOFT_SHARES_RECEIVES : 0) |
	       (hello->wants_tls ? SOFT_WANTS_TLS : 0) |
	       (hello->wants_no_tls ? SOFT_WANTS_NO_TLS : 0);
}

size_t soft_hello_encode(const struct soft_hello *hello,
			 struct soft_wire_hello *wire)
{
	*wire = (struct soft_wire_hello){
		.magic = htole32(SOFT_MAGIC),
		.version = htole16(hello->version),
		.type = hello->type,
		.private_bytes = hello->private_bytes,
		.send_depth_count = htole32(hello->send_depth_count),
		.flags = htole32(hello_flags(hello)),
	};
	memcpy(wire->private_data, hello->private_data, hello->private_bytes);
	return hello_length(hello->private_bytes);
}

/* The most bytes that a message of this type carries. */
static size_t private_data_max(uint8_t type)
{
	switch (type) {
	case SOFT_HELLO:
		return RBX_CONNECT_DATA_MAX;
	case SOFT_ACCEPT:
		return RBX_ACCEPT_DATA_MAX;
	default:
		return RBX_REJECT_DATA_MAX;
	}
}

static uint32_t flags_allowed(uint8_t type)
{
	return type == SOFT_REJECT ? SOFT_WANTS_TLS | SOFT_WANTS_NO_TLS :
				     SOFT_SHARES_RECEIVES;
}

size_t soft_hello_length(const uint8_t *bytes)
{
	struct soft_wire_hello wire;

	memcpy(&wire, bytes, SOFT_HELLO_MIN_BYTES);
	/* Nothing more is needed of messages that decode() refuses, or of other versions. */
	if (le16toh(wire.version) != SOFT_VERSION ||
	    wire.private_bytes > private_data_max(wire.type))
		return SOFT_HELLO_MIN_BYTES;
	return hello_length(wire.private_bytes);
}

const char *soft_hello_decode(const uint8_t *bytes, struct soft_hello *hello)
{
	struct soft_wire_hello wire;

	memcpy(&wire, bytes, soft_hello_length(bytes));
	*hello = (struct soft_hello){
		.version = le16toh(wire.version),
		.type = wire.type,
		.private_bytes = wire.private_bytes,
		.send_depth_count = le32toh(wire.send_depth_count),
		.shares_receives = le32toh(wire.flags) & SOFT_SHARES_RECEIVES,
		.wants_tls = le32toh(wire.flags) & SOFT_WANTS_TLS,
		.wants_no_tls = le32toh(wire.flags) & SOFT_WANTS_NO_TLS,
	};
	if (le32toh(wire.magic) != SOFT_MAGIC)
		return "not the soft device's protocol";
	if (hello->version != SOFT_VERSION)
		return NULL;
	if (le32toh(wire.flags) & ~flags_allowed(hello->type) ||
	    hello->type < SOFT_HELLO ||
	    hello->type > SOFT_REJECT)
		return "unknown handshake message";
	if (hello->private_bytes > private_data_max(hello->type))
		return "too much private data";
	if (hello->type != SOFT_REJECT &&
	    (!hello->send_depth_count ||
	     hello->send_depth_count > SOFT_SEND_DEPTH_MAX))
		return "queue depth out of range";
	memcpy(hello->private_data, wire.private_data, hello->private_bytes);
	return NULL;
}
