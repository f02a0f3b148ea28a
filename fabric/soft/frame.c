/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.c - turns frames into bytes and bytes into checked frames.
 *
 * Encoding cannot fail. Decoding copies the bytes before it looks at them,
 * and names what is wrong with them in words; the caller ends the connection.
 * No pointer into the caller's bytes is kept.
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

/* Which fields an opcode uses; the others are zero. */
enum field {
	HAS_STATUS = 1,
	HAS_FLAGS = 2,
	HAS_SEQUENCE = 4,
	HAS_LENGTH = 8,
	HAS_KEY = 16,
	HAS_ADDR = 32,
	HAS_CREDIT = 64,
};

static const uint8_t opcode_fields[SOFT_MAP_ANSWER + 1] = {
	[SOFT_WRITE] = HAS_FLAGS | HAS_SEQUENCE | HAS_LENGTH | HAS_KEY |
		       HAS_ADDR,
	[SOFT_READ] = HAS_FLAGS | HAS_SEQUENCE | HAS_LENGTH | HAS_KEY |
		      HAS_ADDR,
	[SOFT_SEND] = HAS_FLAGS | HAS_SEQUENCE | HAS_LENGTH,
	[SOFT_RESPONSE] = HAS_SEQUENCE | HAS_LENGTH,
	[SOFT_ACK] = HAS_SEQUENCE | HAS_CREDIT,
	[SOFT_ERROR] = HAS_STATUS | HAS_SEQUENCE,
	[SOFT_MAP_ASK] = HAS_KEY,
	[SOFT_MAP_ANSWER] = HAS_STATUS | HAS_KEY,
};

static uint8_t fields_in_use(const struct soft_frame *frame)
{
	return (frame->status ? HAS_STATUS : 0) |
	       (frame->flags ? HAS_FLAGS : 0) |
	       (frame->sequence ? HAS_SEQUENCE : 0) |
	       (frame->length_bytes ? HAS_LENGTH : 0) |
	       (frame->rkey ? HAS_KEY : 0) |
	       (frame->remote_addr ? HAS_ADDR : 0) |
	       (frame->credit ? HAS_CREDIT : 0);
}

static const char *frame_check(const struct soft_frame *frame)
{
	if (frame->opcode < SOFT_WRITE || frame->opcode > SOFT_MAP_ANSWER)
		return "unknown opcode";
	if (fields_in_use(frame) & ~opcode_fields[frame->opcode])
		return "a field that must be zero is not";
	if (frame->length_bytes > SOFT_MESSAGE_MAX_BYTES)
		return "length out of range";
	if (frame->flags > SOFT_ACK_WANTED)
		return "unknown flags";
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
	if (wire.reserved || wire.reserved2)
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
	};
	return frame_check(frame);
}

uint32_t soft_frame_payload_bytes(const struct soft_frame *frame)
{
	return frame->opcode == SOFT_READ ? 0 : frame->length_bytes;
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

void soft_hello_encode(const struct soft_hello *hello,
		       struct soft_wire_hello *wire)
{
	*wire = (struct soft_wire_hello){
		.magic = htole32(SOFT_MAGIC),
		.version = htole16(hello->version),
		.type = hello->type,
		.private_bytes = hello->private_bytes,
		.send_depth_count = htole32(hello->send_depth_count),
	};
	memcpy(wire->private_data, hello->private_data, hello->private_bytes);
}

const char *soft_hello_decode(const uint8_t *bytes, struct soft_hello *hello)
{
	struct soft_wire_hello wire;

	memcpy(&wire, bytes, sizeof(wire));
	*hello = (struct soft_hello){
		.version = le16toh(wire.version),
		.type = wire.type,
		.private_bytes = wire.private_bytes,
		.send_depth_count = le32toh(wire.send_depth_count),
	};
	if (le32toh(wire.magic) != SOFT_MAGIC)
		return "not the soft device's protocol";
	if (hello->version != SOFT_VERSION)
		return NULL;
	if (wire.reserved || hello->type < SOFT_HELLO ||
	    hello->type > SOFT_REJECT)
		return "unknown handshake message";
	if (hello->private_bytes > RBX_PRIVATE_DATA_MAX)
		return "too much private data";
	if (hello->type != SOFT_REJECT &&
	    (!hello->send_depth_count ||
	     hello->send_depth_count > SOFT_SEND_DEPTH_MAX))
		return "queue depth out of range";
	memcpy(hello->private_data, wire.private_data, hello->private_bytes);
	return NULL;
}
