/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.h - the wire format of the soft device.
 *
 * A connection is a stream: one handshake message each way, then frames. A frame is a header
 * of 32 bytes and, for some opcodes, a payload. All fields are little-endian, reserved ones
 * are zero. PROTOCOL.md describes the flows.
 *
 * Bytes from a peer are copied and checked here before they are used. What depends on the
 * state of the connection (sequence, keys, lengths) is checked where that state is.
 */
#ifndef SOFT_FRAME_H
#define SOFT_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "../fabric.h"

#define SOFT_MAGIC 0x53584252u /* "RBXS" */
#define SOFT_VERSION 3

enum soft_opcode {
	SOFT_WRITE = 1, /* request; payload goes to remote_addr under rkey */
	SOFT_READ = 2, /* request; length_bytes are read from there */
	SOFT_SEND = 3, /* request; payload goes to the oldest receive */
	SOFT_RESPONSE = 4, /* payload of the READ with this sequence */
	SOFT_ACK = 5, /* all requests up to this sequence are done */
	SOFT_ERROR = 6, /* this request failed, status says why; the connection ends */
	SOFT_MAP_ASK = 7, /* same host: may I map the memory of rkey? */
	SOFT_MAP_ANSWER = 8, /* its memory file, or status; body follows */
	SOFT_COMPARE_SWAP = 9, /* requests, answered by a RESPONSE of 8 bytes; */
	SOFT_FETCH_ADD = 10, /*   body follows */
	SOFT_ASK_CREDIT = 11, /* I have messages up to this credit */
	SOFT_OPCODE_LAST = SOFT_ASK_CREDIT,
};

/*
 * Of a request: acknowledge when it is done. Other requests need no acknowledgement of their
 * own: they are done, too, when a later one is.
 */
#define SOFT_ACK_WANTED 1
/* WRITE, SEND: carries an immediate, which takes a receive. */
#define SOFT_IMMEDIATE 2
/* SEND, without immediate: rkey ends before its receive completes. */
#define SOFT_INVALIDATE 4

/* How a request failed at the target. */
enum soft_status {
	SOFT_OK = 0,
	SOFT_REFUSED_ACCESS = 1, /* key, bounds or rights: -EACCES */
	SOFT_REFUSED_LENGTH = 2, /* SEND longer than its receive: -EREMOTEIO */
	SOFT_REFUSED_OTHER = 3, /* -EREMOTEIO; map answer: use frames */
};

/* Both ends count requests from here, so that every test passes the wrap-around. */
#define SOFT_FIRST_SEQUENCE 0xffffffc0u

struct soft_wire_frame {
	uint8_t opcode;
	uint8_t status; /* ERROR and MAP_ANSWER, else 0 */
	uint8_t flags; /* requests, else 0 */
	uint8_t reserved;
	uint32_t sequence; /* requests, RESPONSE, ACK, ERROR, else 0 */
	uint32_t length_bytes; /* WRITE READ SEND RESPONSE, else 0 */
	uint32_t rkey; /* WRITE READ atomics MAP_* SOFT_INVALIDATE, else 0 */
	uint64_t remote_addr; /* WRITE READ atomics, else 0 */
	/* ACK: receives posted since the beginning, mod 2^32; ASK_CREDIT: wanted */
	uint32_t credit;
	uint32_t immediate; /* SOFT_IMMEDIATE, else 0 */
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

/* Follows the header of an atomic. */
struct soft_wire_atomic {
	uint64_t compare_add;
	uint64_t swap; /* FETCH_ADD: 0 */
};
_Static_assert(sizeof(struct soft_wire_atomic) == 16, "body of an atomic");
#define SOFT_ATOMIC_BYTES sizeof(struct soft_wire_atomic)
#define SOFT_VALUE_BYTES sizeof(uint64_t) /* the size of its operand, and of its answer */

enum soft_hello_type {
	SOFT_HELLO = 1, /* first message of the connecting side */
	SOFT_ACCEPT = 2, /* the answer; frames follow */
	SOFT_REJECT = 3, /* the answer; the connection ends */
};

/*
 * Sent as long as its private data needs, and at least 64 bytes: that was the length of all
 * messages of version 2, whose peers must understand that they are refused.
 */
struct soft_wire_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t type;
	uint8_t private_bytes;
	uint32_t send_depth_count; /* requests that the sender may have outstanding */
	uint32_t flags; /* SOFT_SHARES_RECEIVES, in HELLO and ACCEPT; SOFT_WANTS_*, in REJECT */
	uint8_t private_data[RBX_ACCEPT_DATA_MAX]; /* has room for all others */
};
#define SOFT_HELLO_MIN_BYTES 64
#define SOFT_SHARES_RECEIVES 1u /* its peer has to ask for credit */
/* A connection is refused since it is not under TLS, or since it is. Both are said in clear
 * text, so they only explain; nobody does without TLS for it. */
#define SOFT_WANTS_TLS 2u
#define SOFT_WANTS_NO_TLS 4u
#define SOFT_HELLO_MAX_BYTES sizeof(struct soft_wire_hello)
_Static_assert(SOFT_HELLO_MAX_BYTES == 16 + RBX_ACCEPT_DATA_MAX, "no padding");

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
	uint32_t immediate;
};

struct soft_atomic {
	uint64_t compare_add;
	uint64_t swap;
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
	bool shares_receives;
	bool wants_tls, wants_no_tls; /* a REJECT for that */
	uint8_t private_data[RBX_ACCEPT_DATA_MAX];
};

void soft_frame_encode(const struct soft_frame *frame,
		       struct soft_wire_frame *wire);
/* Fills in what is known only when a request is sent. */
void soft_frame_set_sequence(struct soft_wire_frame *wire, uint32_t sequence);
void soft_frame_want_ack(struct soft_wire_frame *wire);
bool soft_frame_wants_ack(const struct soft_wire_frame *wire);
/* Copies SOFT_FRAME_BYTES out; returns NULL, or what is wrong with them. */
const char *soft_frame_decode(const uint8_t *bytes, struct soft_frame *frame);
/* Bytes of payload that follow the header in the stream. */
uint32_t soft_frame_payload_bytes(const struct soft_frame *frame);
/* Bytes of a body, which has a layout of its own, before the payload. */
uint32_t soft_frame_body_bytes(const struct soft_frame *frame);

static inline bool soft_frame_is_atomic(const struct soft_frame *frame)
{
	return frame->opcode == SOFT_COMPARE_SWAP ||
	       frame->opcode == SOFT_FETCH_ADD;
}

void soft_atomic_encode(const struct soft_atomic *atomic,
			struct soft_wire_atomic *wire);
const char *soft_atomic_decode(const struct soft_frame *frame,
			       const uint8_t *bytes, struct soft_atomic *atomic);

void soft_map_encode(const struct soft_map *map, struct soft_wire_map *wire);
const char *soft_map_decode(const uint8_t *bytes, struct soft_map *map);

/* Returns the length of the message in bytes. */
size_t soft_hello_encode(const struct soft_hello *hello,
			 struct soft_wire_hello *wire);
/* The length of a message whose first SOFT_HELLO_MIN_BYTES are there. */
size_t soft_hello_length(const uint8_t *bytes);
/* A hello of another version decodes, so that its sender can be told. */
const char *soft_hello_decode(const uint8_t *bytes, struct soft_hello *hello);

#endif
