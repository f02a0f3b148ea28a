/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.h - the wire format of the soft device, all of it.
 *
 * A connection is a stream: one handshake message each way, then frames. A
 * frame is a header of 32 bytes and, for some opcodes, a payload. All fields
 * are little-endian, reserved ones are zero. PROTOCOL.md tells the flows.
 *
 * Bytes from a peer are copied out and checked here before anybody looks at
 * them; what depends on the state of the connection (sequence, keys, lengths)
 * is checked where that state lives.
 */
#ifndef SOFT_FRAME_H
#define SOFT_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "../fabric.h"

#define SOFT_MAGIC 0x53584252u /* "RBXS" */
#define SOFT_VERSION 1

enum soft_opcode {
	SOFT_WRITE = 1, /* request; payload goes to remote_addr under rkey */
	SOFT_READ = 2, /* request; length_bytes are wanted from there */
	SOFT_SEND = 3, /* request; payload goes to the oldest receive */
	SOFT_RESPONSE = 4, /* payload of the READ with this sequence */
	SOFT_ACK = 5, /* all requests up to this sequence are done */
	SOFT_ERROR = 6, /* this request failed, status says why; the end */
	SOFT_MAP_ASK = 7, /* same host: may I map the memory of rkey? */
	SOFT_MAP_ANSWER = 8, /* its memory file, or status; body follows */
};

/*
 * Of a request: say so when it is done. Others are done too when a later one
 * is, and need no acknowledgement of their own.
 */
#define SOFT_ACK_WANTED 1

/* How a request failed at the target. */
enum soft_status {
	SOFT_OK = 0,
	SOFT_REFUSED_ACCESS = 1, /* key, bounds or rights: -EACCES */
	SOFT_REFUSED_LENGTH = 2, /* SEND longer than its receive: -EREMOTEIO */
	SOFT_REFUSED_OTHER = 3, /* -EREMOTEIO; map answer: use frames */
};

/* Both ends count requests from here, so that every test wraps around. */
#define SOFT_FIRST_SEQUENCE 0xffffffc0u

struct soft_wire_frame {
	uint8_t opcode;
	uint8_t status; /* ERROR and MAP_ANSWER, else 0 */
	uint8_t flags; /* requests: SOFT_ACK_WANTED, else 0 */
	uint8_t reserved;
	uint32_t sequence; /* requests, RESPONSE, ACK, ERROR, else 0 */
	uint32_t length_bytes; /* WRITE READ SEND RESPONSE, else 0 */
	uint32_t rkey; /* WRITE READ MAP_*, else 0 */
	uint64_t remote_addr; /* WRITE READ, else 0 */
	uint32_t credit; /* ACK: receives posted since the beginning, mod 2^32 */
	uint32_t reserved2;
};
_Static_assert(sizeof(struct soft_wire_frame) == 32, "frame header");
#define SOFT_FRAME_BYTES sizeof(struct soft_wire_frame)

/* Follows the header of MAP_ANSWER; a descriptor comes with it if status is 0. */
struct soft_wire_map {
	uint64_t addr; /* of the first byte, in the target's address space */
	uint64_t length_bytes;
	uint64_t file_offset; /* of that byte in the memory file */
	uint32_t rights; /* RBX_REMOTE_READ, RBX_REMOTE_WRITE */
	uint32_t reserved;
};
_Static_assert(sizeof(struct soft_wire_map) == 32, "map body");
#define SOFT_MAP_BYTES sizeof(struct soft_wire_map)

enum soft_hello_type {
	SOFT_HELLO = 1, /* who connects says this first */
	SOFT_ACCEPT = 2, /* the answer; frames follow */
	SOFT_REJECT = 3, /* the answer; the end */
};

struct soft_wire_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t type;
	uint8_t private_bytes;
	uint32_t send_depth_count; /* requests the sender keeps outstanding */
	uint32_t reserved;
	uint8_t private_data[RBX_PRIVATE_DATA_MAX];
};
_Static_assert(sizeof(struct soft_wire_hello) == 64, "handshake message");
#define SOFT_HELLO_BYTES sizeof(struct soft_wire_hello)

/* The same in host byte order. */
struct soft_frame {
	uint8_t opcode;
	uint8_t status;
	uint8_t flags;
	uint32_t sequence;
	uint32_t length_bytes;
	uint32_t rkey;
	uint64_t remote_addr;
	uint32_t credit;
};

struct soft_map {
	uint64_t addr;
	uint64_t length_bytes;
	uint64_t file_offset;
	uint32_t rights;
};

struct soft_hello {
	uint16_t version;
	uint8_t type;
	uint8_t private_bytes;
	uint32_t send_depth_count;
	uint8_t private_data[RBX_PRIVATE_DATA_MAX];
};

void soft_frame_encode(const struct soft_frame *frame,
		       struct soft_wire_frame *wire);
/* What is known of a request only when it is sent. */
void soft_frame_set_sequence(struct soft_wire_frame *wire, uint32_t sequence);
void soft_frame_want_ack(struct soft_wire_frame *wire);
/* Copies SOFT_FRAME_BYTES out; NULL, or what is wrong with them. */
const char *soft_frame_decode(const uint8_t *bytes, struct soft_frame *frame);
/* Bytes of payload that follow the header in the stream. */
uint32_t soft_frame_payload_bytes(const struct soft_frame *frame);

void soft_map_encode(const struct soft_map *map, struct soft_wire_map *wire);
const char *soft_map_decode(const uint8_t *bytes, struct soft_map *map);

void soft_hello_encode(const struct soft_hello *hello,
		       struct soft_wire_hello *wire);
/* A hello of another version decodes, so that it can be told so. */
const char *soft_hello_decode(const uint8_t *bytes, struct soft_hello *hello);

#endif
