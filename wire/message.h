/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message.h - the control messages between client and memory server.
 *
 * PROTOCOL.md says when each is sent and what it means. A message is a header
 * of 64 bytes and a payload whose length the type decides. Here it is a plain
 * struct in host order; encode() and decode() are the only way to and from
 * bytes, and they copy field by field: no struct is ever laid over bytes that
 * a peer sent.
 */
#ifndef RBX_WIRE_MESSAGE_H
#define RBX_WIRE_MESSAGE_H

#include "core/server_labels.h"
#include "wire/credential.h"
#include "wire/record.h"

#define RBX_WIRE_MAGIC 0x43584252u /* "RBXC" in the order of bytes */
#define RBX_WIRE_VERSION 2u
#define RBX_WIRE_HEADER_BYTES 64u
#define RBX_WIRE_SEAL_AT 32u /* of the fields of seal.h; the rest of the header is reserved */
#define RBX_WIRE_MESSAGE_BYTES_MAX 1024u
#define RBX_WIRE_HANDSHAKE_BYTES_MAX 416u /* of a message of the handshake: WELCOME */
#define RBX_WIRE_GREETINGS_BYTES 264u /* of HELLO and CHALLENGE together */

#define RBX_WIRE_NONCE_BYTES 32u
#define RBX_WIRE_PROOF_BYTES 32u /* HMAC-SHA256 */
#define RBX_WIRE_COUNTERS_MAX 23u

/* User messages: how many bytes one has room for, and how many a side may have under way
 * before USER_MESSAGE_TAKEN comes. */
#define RBX_WIRE_USER_MESSAGE_BYTES_MAX 176u
#define RBX_WIRE_USER_MESSAGES_MAX 4u

enum rbx_wire_type {
	RBX_WIRE_HELLO = 1, /* client: who I am, whether I have a secret */
	RBX_WIRE_CHALLENGE, /* server: prove it */
	RBX_WIRE_AUTH, /* client: the proof */
	RBX_WIRE_WELCOME, /* server: its own proof, the session, the limits */
	RBX_WIRE_ERROR, /* server: refused, status says why */
	RBX_WIRE_SLAB_MAP, /* client: lend me a slab */
	RBX_WIRE_SLAB_QUERY, /* client: is this loan still mine? */
	RBX_WIRE_SLAB_LOAN, /* server: answer to both */
	RBX_WIRE_SLAB_UNMAP, /* client: take it back */
	RBX_WIRE_SLAB_UNMAPPED, /* server: its keys are dead */
	RBX_WIRE_SLAB_EVICT, /* server, unsolicited: I want it back soon */
	RBX_WIRE_HEARTBEAT, /* client: I live */
	RBX_WIRE_HEARTBEAT_REPLY, /* server: so do I */
	RBX_WIRE_STATS, /* client: your numbers? */
	RBX_WIRE_STATS_REPLY, /* server: in the order of PROTOCOL.md */
	RBX_WIRE_BYE, /* client: I close, take back all that is mine */
	RBX_WIRE_USER_MESSAGE, /* both: what my program says to yours */
	RBX_WIRE_USER_MESSAGE_TAKEN, /* both: my program has had yours up to here */
	RBX_WIRE_VOLUME_OPEN, /* client: this session is for a named volume */
	RBX_WIRE_VOLUME_LIST, /* client: which volumes do you have? */
	RBX_WIRE_VOLUME, /* server: answer to both: what I know of the volume */
	RBX_WIRE_VOLUME_ACCEPT, /* client: from now on this is its record */
	RBX_WIRE_VOLUME_REMOVE, /* client: forget it */
	RBX_WIRE_VOLUME_DONE, /* server: answer to these, and to those below but LABELS */
	RBX_WIRE_LABELS, /* client: which slabs do you have of it? */
	RBX_WIRE_LABELS_REPLY, /* server: these */
	RBX_WIRE_SLAB_COMPLETE, /* client: the contents of this slab are all there */
	RBX_WIRE_VOLUME_RESERVE, /* client: this name, too, is for the volume and no other */
	RBX_WIRE_INTENTS, /* client: what may be written just now, of these slabs */
	RBX_WIRE_SLAB_INCOMPLETE, /* client: the contents of this slab do not count any more */
	RBX_WIRE_VOLUME_BEHIND, /* client: the same of all slabs of the volume */
	RBX_WIRE_VOLUME_READ, /* client: this session only reads this volume; how is it? */
	RBX_WIRE_VOLUME_READING, /* server: so; and whether its labels have changed */
	RBX_WIRE_TYPES_END,
};

enum rbx_wire_hello_flags {
	RBX_WIRE_HAS_SECRET = 1,
	RBX_WIRE_RESUME = 2, /* session_id and incarnation are of a session */
};

struct rbx_wire_hello {
	uint32_t flags; /* enum rbx_wire_hello_flags */
	uint8_t nonce[RBX_WIRE_NONCE_BYTES];
	uint64_t session_id; /* 0 without RBX_WIRE_RESUME */
	uint64_t incarnation; /* the same */
	uint64_t last_epoch; /* of the last loan that came; 0: none did */
	char credential[RBX_CREDENTIAL_BYTES]; /* whose secret it is; empty: it has no name */
};

struct rbx_wire_challenge {
	uint8_t nonce[RBX_WIRE_NONCE_BYTES];
	uint64_t incarnation; /* identifies one start of a server; not 0 */
};

struct rbx_wire_auth {
	uint8_t proof[RBX_WIRE_PROOF_BYTES];
};

struct rbx_wire_welcome {
	uint64_t session_id;
	uint64_t incarnation;
	uint64_t slab_bytes;
	uint64_t memory_bytes;
	uint64_t free_bytes;
	uint64_t quota_bytes; /* for this client */
	uint32_t lease_ms;
	uint32_t requests_max; /* control requests that may be outstanding */
	uint32_t queue_pairs_max; /* for this client */
	uint32_t draining; /* 1: nothing more is lent */
	char labels[RBX_SERVER_LABELS_BYTES]; /* of the server: "rack=7,zone=b", or "" */
	uint8_t proof[RBX_WIRE_PROOF_BYTES];
};

struct rbx_wire_map {
	uint64_t label; /* 1 + the index of the slab in the named volume; 0: there is none */
	uint32_t is_complete; /* 1: zeros are its contents */
	uint32_t has_tail; /* 1: lent with room for the checksums of its pages (terms.h) */
};

enum rbx_wire_open_mode {
	RBX_WIRE_OPEN_LOOK = 1, /* only tell what is known; the session stays without a volume */
	RBX_WIRE_OPEN_CREATE, /* it must not exist; and write */
	RBX_WIRE_OPEN_WRITE, /* no other client writes from now on */
	RBX_WIRE_OPEN_REMOVE, /* the same, and all that this one may do is remove it */
	/* By its writer, whose record says that the server is OUT, or not that it is a member: it
	 * gives up all that it has of the volume, and makes it anew; and write. The session must
	 * have looked at it, and it was not made anew since: or else the request comes late. */
	RBX_WIRE_OPEN_ANEW,
	/* The same, but its record says that the server is OUT: it keeps what it has, and the
	 * session is the writer. Nor did another session have it return since that look. */
	RBX_WIRE_OPEN_RETURN,
	/* By its writer, whose session there has ended: it has what it had. Only if no later epoch
	 * was promised. */
	RBX_WIRE_OPEN_AGAIN,
};

struct rbx_wire_volume_open {
	char name[RBX_WIRE_VOLUME_NAME_BYTES];
	char holder[RBX_WIRE_HOLDER_BYTES]; /* who the client is, for people; empty to LOOK */
	uint64_t writer_epoch; /* not 0, except to LOOK */
	/* That it will have, or must have; not 0, except to LOOK. If it is not 0, a volume that is
	 * there is found by it and not by its name. */
	uint64_t volume_id;
	uint32_t mode; /* enum rbx_wire_open_mode */
};

struct rbx_wire_volume {
	struct rbx_wire_record record; /* epoch 0: none was accepted yet */
	char holder[RBX_WIRE_HOLDER_BYTES]; /* the last one that was granted to write */
	uint64_t promised_epoch; /* no writer of an older one is served; 0: none was granted */
	uint64_t last_epoch; /* of all loans of the server until now */
	uint64_t next; /* answer to LIST: where to go on */
	uint32_t is_open; /* 1: that writer's session is there */
};

struct rbx_wire_volume_reading {
	struct rbx_wire_record record;
	/* Two numbers that differ from those of an earlier answer of the session if meanwhile any
	 * label has changed; and if any slab has ceased to be complete here. */
	uint64_t changes_count;
	uint64_t losses_count;
};

struct rbx_wire_loan {
	uint64_t slab_id;
	uint64_t remote_addr;
	uint64_t length_bytes;
	uint64_t free_bytes;
	uint32_t rkey;
};

struct rbx_wire_evict {
	uint64_t slab_id;
	uint32_t grace_ms; /* UINT32_MAX: no time is set */
};

struct rbx_wire_heartbeat_reply {
	uint64_t free_bytes;
	uint64_t lent_bytes; /* to this client */
	uint32_t draining; /* 1: nothing more is lent */
};

struct rbx_wire_counters {
	uint32_t count;
	uint64_t values[RBX_WIRE_COUNTERS_MAX]; /* zero from count on */
};

struct rbx_wire_user_message {
	uint64_t sequence; /* of the sender's messages in the session, from 1 */
	uint32_t length_bytes;
	/* Zero from length on. */
	uint8_t bytes[RBX_WIRE_USER_MESSAGE_BYTES_MAX];
};

struct rbx_wire_user_message_taken {
	uint64_t sequence; /* the last one taken; 0: none was */
	uint32_t refused; /* 1: the program takes none, they were discarded */
};

struct rbx_wire_message {
	uint16_t type; /* enum rbx_wire_type */
	uint32_t status; /* enum rbx_reason, for RBX_WIRE_ERROR; else 0 */
	uint64_t request_id; /* an answer repeats that of its request; else 0 */
	uint64_t epoch; /* of the slab it is about; else 0 */
	union {
		struct rbx_wire_hello hello;
		struct rbx_wire_challenge challenge;
		struct rbx_wire_auth auth;
		struct rbx_wire_welcome welcome;
		struct rbx_wire_loan loan;
		struct rbx_wire_map map;
		struct rbx_wire_volume_open volume_open;
		uint64_t cursor; /* VOLUME_LIST, LABELS: 0, then what the answer said */
		struct rbx_wire_volume volume;
		uint64_t volume_id; /* VOLUME_READ */
		struct rbx_wire_volume_reading reading; /* VOLUME_READING */
		struct rbx_wire_record record; /* VOLUME_ACCEPT */
		struct rbx_wire_labels labels;
		struct rbx_wire_intents intents;
		char name[RBX_WIRE_VOLUME_NAME_BYTES]; /* VOLUME_RESERVE; empty: none */
		uint64_t writer_epoch; /* VOLUME_DONE: that was promised */
		uint64_t slab_id; /* SLAB_QUERY, SLAB_UNMAP, SLAB_COMPLETE, SLAB_INCOMPLETE */
		uint64_t free_bytes; /* SLAB_UNMAPPED */
		struct rbx_wire_evict evict;
		struct rbx_wire_heartbeat_reply heartbeat_reply;
		struct rbx_wire_counters counters;
		struct rbx_wire_user_message user_message;
		struct rbx_wire_user_message_taken user_message_taken;
	};
};

/* buf has room for RBX_WIRE_MESSAGE_BYTES_MAX. Returns the length in bytes. */
size_t rbx_wire_encode(const struct rbx_wire_message *message, uint8_t *buf);

/*
 * Returns 0; -EBADMSG: a byte is not as PROTOCOL.md says; -EPROTONOSUPPORT: it is a message
 * of another version. After a failure the message is zeroed, except request_id after
 * -EPROTONOSUPPORT.
 */
int rbx_wire_decode(const uint8_t *bytes, size_t length_bytes,
		    struct rbx_wire_message *message);

#endif
