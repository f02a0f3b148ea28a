/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message.c - encodes and decodes the messages of message.h.
 *
 * Each payload is one list of fields that both directions walk (cursor.h). After the walk
 * decode() checks which values a field may have at all. Whether a message is allowed now, and
 * whether its numbers are true, is for its receiver to check.
 */
#include "wire/message.h"

#include "wire/cursor.h"
#include "wire/reason.h"

static void walk_hello(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u32(c, &m->hello.flags);
	rbx_cursor_zeros(c, 4);
	rbx_cursor_bytes(c, m->hello.nonce, RBX_WIRE_NONCE_BYTES);
	rbx_cursor_u64(c, &m->hello.session_id);
	rbx_cursor_u64(c, &m->hello.incarnation);
	rbx_cursor_u64(c, &m->hello.last_epoch);
	rbx_cursor_bytes(c, (uint8_t *)m->hello.credential, RBX_CREDENTIAL_BYTES);
}

static void walk_challenge(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_bytes(c, m->challenge.nonce, RBX_WIRE_NONCE_BYTES);
	rbx_cursor_u64(c, &m->challenge.incarnation);
}

static void walk_auth(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_bytes(c, m->auth.proof, RBX_WIRE_PROOF_BYTES);
}

static void walk_welcome(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->welcome.session_id);
	rbx_cursor_u64(c, &m->welcome.incarnation);
	rbx_cursor_u64(c, &m->welcome.slab_bytes);
	rbx_cursor_u64(c, &m->welcome.memory_bytes);
	rbx_cursor_u64(c, &m->welcome.free_bytes);
	rbx_cursor_u64(c, &m->welcome.quota_bytes);
	rbx_cursor_u32(c, &m->welcome.lease_ms);
	rbx_cursor_u32(c, &m->welcome.requests_max);
	rbx_cursor_u32(c, &m->welcome.queue_pairs_max);
	rbx_cursor_u32(c, &m->welcome.draining);
	rbx_wire_walk_text(c, m->welcome.labels, sizeof(m->welcome.labels));
	rbx_cursor_bytes(c, m->welcome.proof, RBX_WIRE_PROOF_BYTES);
}

static void walk_nothing(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	(void)c;
	(void)m;
}

static void walk_slab_id(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->slab_id);
}

static void walk_loan(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->loan.slab_id);
	rbx_cursor_u64(c, &m->loan.remote_addr);
	rbx_cursor_u64(c, &m->loan.length_bytes);
	rbx_cursor_u64(c, &m->loan.free_bytes);
	rbx_cursor_u32(c, &m->loan.rkey);
	rbx_cursor_zeros(c, 4);
}

static void walk_free_bytes(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->free_bytes);
}

static void walk_evict(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->evict.slab_id);
	rbx_cursor_u32(c, &m->evict.grace_ms);
	rbx_cursor_zeros(c, 4);
}

static void walk_heartbeat_reply(struct rbx_cursor *c,
				 struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->heartbeat_reply.free_bytes);
	rbx_cursor_u64(c, &m->heartbeat_reply.lent_bytes);
	rbx_cursor_u32(c, &m->heartbeat_reply.draining);
	rbx_cursor_zeros(c, 4);
}

static void walk_counters(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	size_t i;

	rbx_cursor_u32(c, &m->counters.count);
	rbx_cursor_zeros(c, 4);
	for (i = 0; i < RBX_WIRE_COUNTERS_MAX; i++)
		rbx_cursor_u64(c, &m->counters.values[i]);
}

static void walk_user_message(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->user_message.sequence);
	rbx_cursor_u32(c, &m->user_message.length_bytes);
	rbx_cursor_zeros(c, 4);
	rbx_cursor_bytes(c, m->user_message.bytes,
			 RBX_WIRE_USER_MESSAGE_BYTES_MAX);
}

static void walk_user_message_taken(struct rbx_cursor *c,
				    struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->user_message_taken.sequence);
	rbx_cursor_u32(c, &m->user_message_taken.refused);
	rbx_cursor_zeros(c, 4);
}

static void walk_map(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->map.label);
	rbx_cursor_u32(c, &m->map.is_complete);
	rbx_cursor_u32(c, &m->map.has_tail);
}

static void walk_volume_open(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	struct rbx_wire_volume_open *open = &m->volume_open;

	rbx_wire_walk_text(c, open->name, sizeof(open->name));
	rbx_wire_walk_text(c, open->holder, sizeof(open->holder));
	rbx_cursor_u64(c, &open->writer_epoch);
	rbx_cursor_u64(c, &open->volume_id);
	rbx_cursor_u32(c, &open->mode);
	rbx_cursor_zeros(c, 4);
}

static void walk_cursor(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->cursor);
}

static void walk_volume(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	struct rbx_wire_volume *volume = &m->volume;

	rbx_wire_walk_record(c, &volume->record);
	rbx_wire_walk_text(c, volume->holder, sizeof(volume->holder));
	rbx_cursor_u64(c, &volume->promised_epoch);
	rbx_cursor_u64(c, &volume->last_epoch);
	rbx_cursor_u64(c, &volume->next);
	rbx_cursor_u32(c, &volume->is_open);
	rbx_cursor_zeros(c, 4);
}

static void walk_volume_id(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->volume_id);
}

static void walk_reading(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_wire_walk_record(c, &m->reading.record);
	rbx_cursor_u64(c, &m->reading.changes_count);
	rbx_cursor_u64(c, &m->reading.losses_count);
}

static void walk_record(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_wire_walk_record(c, &m->record);
}

static void walk_writer_epoch(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_cursor_u64(c, &m->writer_epoch);
}

static void walk_labels(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_wire_walk_labels(c, &m->labels);
}

static void walk_intents(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_wire_walk_intents(c, &m->intents);
}

static void walk_name(struct rbx_cursor *c, struct rbx_wire_message *m)
{
	rbx_wire_walk_text(c, m->name, sizeof(m->name));
}

struct layout {
	uint32_t payload_bytes;
	bool has_epoch;
	void (*walk)(struct rbx_cursor *c, struct rbx_wire_message *m);
};

static const struct layout layouts[RBX_WIRE_TYPES_END] = {
	[RBX_WIRE_HELLO] = { 96, false, walk_hello },
	[RBX_WIRE_CHALLENGE] = { 40, false, walk_challenge },
	[RBX_WIRE_AUTH] = { 32, false, walk_auth },
	[RBX_WIRE_WELCOME] = { 352, false, walk_welcome },
	[RBX_WIRE_ERROR] = { 0, false, walk_nothing },
	[RBX_WIRE_SLAB_MAP] = { 16, false, walk_map },
	[RBX_WIRE_SLAB_QUERY] = { 8, true, walk_slab_id },
	[RBX_WIRE_SLAB_LOAN] = { 40, true, walk_loan },
	[RBX_WIRE_SLAB_UNMAP] = { 8, true, walk_slab_id },
	[RBX_WIRE_SLAB_UNMAPPED] = { 8, true, walk_free_bytes },
	[RBX_WIRE_SLAB_EVICT] = { 16, true, walk_evict },
	[RBX_WIRE_HEARTBEAT] = { 0, false, walk_nothing },
	[RBX_WIRE_HEARTBEAT_REPLY] = { 24, false, walk_heartbeat_reply },
	[RBX_WIRE_STATS] = { 0, false, walk_nothing },
	[RBX_WIRE_STATS_REPLY] = { 192, false, walk_counters },
	[RBX_WIRE_BYE] = { 0, false, walk_nothing },
	[RBX_WIRE_USER_MESSAGE] = { 192, false, walk_user_message },
	[RBX_WIRE_USER_MESSAGE_TAKEN] = { 16, false, walk_user_message_taken },
	[RBX_WIRE_VOLUME_OPEN] = { 152, false, walk_volume_open },
	[RBX_WIRE_VOLUME_LIST] = { 8, false, walk_cursor },
	[RBX_WIRE_VOLUME] = { 832, false, walk_volume },
	[RBX_WIRE_VOLUME_ACCEPT] = { 736, false, walk_record },
	[RBX_WIRE_VOLUME_REMOVE] = { 0, false, walk_nothing },
	[RBX_WIRE_VOLUME_DONE] = { 8, false, walk_writer_epoch },
	[RBX_WIRE_LABELS] = { 8, false, walk_cursor },
	[RBX_WIRE_LABELS_REPLY] = { 856, false, walk_labels },
	[RBX_WIRE_SLAB_COMPLETE] = { 8, true, walk_slab_id },
	[RBX_WIRE_VOLUME_RESERVE] = { 64, false, walk_name },
	[RBX_WIRE_INTENTS] = { 936, false, walk_intents },
	[RBX_WIRE_SLAB_INCOMPLETE] = { 8, true, walk_slab_id },
	[RBX_WIRE_VOLUME_BEHIND] = { 0, false, walk_nothing },
	[RBX_WIRE_VOLUME_READ] = { 8, false, walk_volume_id },
	[RBX_WIRE_VOLUME_READING] = { 752, false, walk_reading },
};

RBX_STATIC_ASSERT(352 == 6 * 8 + 4 * 4 + RBX_SERVER_LABELS_BYTES + RBX_WIRE_PROOF_BYTES &&
			  RBX_WIRE_HEADER_BYTES + 352 == RBX_WIRE_HANDSHAKE_BYTES_MAX,
		  "WELCOME, the longest message of the handshake");
RBX_STATIC_ASSERT(RBX_WIRE_GREETINGS_BYTES == 2 * RBX_WIRE_HEADER_BYTES + 96 + 40,
		  "HELLO and CHALLENGE");
RBX_STATIC_ASSERT(192 == 8 + 8 * RBX_WIRE_COUNTERS_MAX,
		  "all counters of STATS_REPLY");
RBX_STATIC_ASSERT(192 == 16 + RBX_WIRE_USER_MESSAGE_BYTES_MAX, "USER_MESSAGE fits");
RBX_STATIC_ASSERT(736 == RBX_WIRE_VOLUME_NAME_BYTES + RBX_CREDENTIAL_BYTES + 6 * 8 +
				 4 * 4 + 9 * RBX_WIRE_MEMBERS_MAX,
		  "a record");
RBX_STATIC_ASSERT(832 == 736 + RBX_WIRE_HOLDER_BYTES + 3 * 8 + 8, "VOLUME");
RBX_STATIC_ASSERT(752 == 736 + 2 * 8, "VOLUME_READING");
RBX_STATIC_ASSERT(856 == 16 + 56 * RBX_WIRE_LABELS_MAX, "LABELS_REPLY");
RBX_STATIC_ASSERT(936 == 8 + 32 * RBX_WIRE_INTENTS_MAX &&
			  RBX_WIRE_HEADER_BYTES + 936 <= RBX_WIRE_MESSAGE_BYTES_MAX,
		  "INTENTS, the longest message, fits");
RBX_STATIC_ASSERT(RBX_WIRE_HEADER_BYTES == 4 + 2 + 2 + 4 + 4 + 8 + 8 + 32,
		  "magic, version, type, length, status, id, epoch, reserved");

static void walk_header(struct rbx_cursor *c, struct rbx_wire_message *m,
			uint16_t *version, uint32_t *length_bytes)
{
	rbx_cursor_constant(c, RBX_WIRE_MAGIC, 4);
	rbx_cursor_u16(c, version);
	rbx_cursor_u16(c, &m->type);
	rbx_cursor_u32(c, length_bytes);
	rbx_cursor_u32(c, &m->status);
	rbx_cursor_u64(c, &m->request_id);
	rbx_cursor_u64(c, &m->epoch);
	rbx_cursor_zeros(c, 32);
}

static const struct layout *layout_of(uint16_t type)
{
	if (type == 0 || type >= RBX_WIRE_TYPES_END)
		return NULL;
	return &layouts[type];
}

/* Whether there are only zeros behind its end. */
static bool
user_message_makes_sense(const struct rbx_wire_user_message *user_message)
{
	size_t i;

	if (!user_message->sequence ||
	    user_message->length_bytes > RBX_WIRE_USER_MESSAGE_BYTES_MAX)
		return false;
	for (i = user_message->length_bytes;
	     i < RBX_WIRE_USER_MESSAGE_BYTES_MAX; i++)
		if (user_message->bytes[i])
			return false;
	return true;
}

static bool volume_open_makes_sense(const struct rbx_wire_volume_open *open)
{
	bool looks = open->mode == RBX_WIRE_OPEN_LOOK;

	return rbx_wire_volume_name_makes_sense(open->name) &&
	       rbx_wire_text_makes_sense(open->holder, sizeof(open->holder)) &&
	       open->mode >= RBX_WIRE_OPEN_LOOK && open->mode <= RBX_WIRE_OPEN_AGAIN &&
	       looks == !open->holder[0] && looks == !open->writer_epoch &&
	       (looks || open->volume_id);
}

static bool is_empty(const char *text, size_t size)
{
	return !text[0] && rbx_wire_text_makes_sense(text, size);
}

static bool volume_makes_sense(const struct rbx_wire_volume *volume)
{
	return rbx_wire_record_makes_sense(&volume->record) &&
	       rbx_wire_text_makes_sense(volume->holder, sizeof(volume->holder)) &&
	       volume->is_open <= 1;
}

/* Whether the fields have values that are allowed. */
static bool message_makes_sense(const struct rbx_wire_message *m)
{
	const struct rbx_wire_counters *counters = &m->counters;
	size_t i;

	if ((m->type == RBX_WIRE_ERROR) != (m->status != RBX_REASON_NONE) ||
	    m->status >= RBX_REASONS_COUNT)
		return false;
	if (layouts[m->type].has_epoch != (m->epoch != 0))
		return false;
	switch (m->type) {
	case RBX_WIRE_HELLO:
		if (m->hello.flags & ~(RBX_WIRE_HAS_SECRET | RBX_WIRE_RESUME))
			return false;
		if (!rbx_credential_makes_sense(m->hello.credential) ||
		    (m->hello.credential[0] && !(m->hello.flags & RBX_WIRE_HAS_SECRET)))
			return false;
		if (m->hello.flags & RBX_WIRE_RESUME)
			return m->hello.session_id && m->hello.incarnation;
		return !m->hello.session_id && !m->hello.incarnation &&
		       !m->hello.last_epoch;
	case RBX_WIRE_CHALLENGE:
		return m->challenge.incarnation != 0;
	case RBX_WIRE_WELCOME:
		return m->welcome.incarnation && m->welcome.draining <= 1 &&
		       rbx_wire_text_makes_sense(m->welcome.labels, sizeof(m->welcome.labels)) &&
		       rbx_server_labels_are_good(m->welcome.labels);
	case RBX_WIRE_HEARTBEAT_REPLY:
		return m->heartbeat_reply.draining <= 1;
	case RBX_WIRE_STATS_REPLY:
		for (i = counters->count; i < RBX_WIRE_COUNTERS_MAX; i++)
			if (counters->values[i])
				return false;
		return counters->count <= RBX_WIRE_COUNTERS_MAX;
	case RBX_WIRE_USER_MESSAGE:
		return user_message_makes_sense(&m->user_message);
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		return m->user_message_taken.refused <= 1;
	case RBX_WIRE_SLAB_MAP:
		return m->map.is_complete <= 1 && m->map.has_tail <= 1 &&
		       (m->map.label || !(m->map.is_complete || m->map.has_tail));
	case RBX_WIRE_VOLUME_OPEN:
		return volume_open_makes_sense(&m->volume_open);
	case RBX_WIRE_VOLUME:
		return volume_makes_sense(&m->volume);
	case RBX_WIRE_VOLUME_READ:
		return m->volume_id != 0;
	case RBX_WIRE_VOLUME_READING:
		return rbx_wire_record_makes_sense(&m->reading.record) && m->reading.record.epoch;
	case RBX_WIRE_VOLUME_ACCEPT:
		return rbx_wire_record_makes_sense(&m->record) && m->record.epoch;
	case RBX_WIRE_VOLUME_RESERVE:
		return is_empty(m->name, sizeof(m->name)) ||
		       rbx_wire_volume_name_makes_sense(m->name);
	case RBX_WIRE_LABELS_REPLY:
		return rbx_wire_labels_make_sense(&m->labels);
	case RBX_WIRE_INTENTS:
		return rbx_wire_intents_make_sense(&m->intents);
	default:
		return true;
	}
}

size_t rbx_wire_encode(const struct rbx_wire_message *message, uint8_t *buf)
{
	struct rbx_wire_message copy = *message; /* the walk is not const */
	const struct layout *layout = layout_of(message->type);
	uint16_t version = RBX_WIRE_VERSION;
	uint32_t length_bytes;
	struct rbx_cursor c = { .to = buf };

	RBX_ASSERT(layout && message_makes_sense(message));
	length_bytes = RBX_WIRE_HEADER_BYTES + layout->payload_bytes;
	c.end_bytes = length_bytes;
	walk_header(&c, &copy, &version, &length_bytes);
	layout->walk(&c, &copy);
	RBX_ASSERT(!c.bad && c.at_bytes == length_bytes);
	return length_bytes;
}

int rbx_wire_decode(const uint8_t *bytes, size_t length_bytes,
		    struct rbx_wire_message *message)
{
	struct rbx_cursor c = { .from = bytes, .end_bytes = length_bytes };
	const struct layout *layout;
	uint32_t stated_bytes = 0;
	uint16_t version = 0;
	uint64_t request_id;

	rbx_port_fill(message, 0, sizeof(*message));
	walk_header(&c, message, &version, &stated_bytes);
	if (c.bad)
		goto malformed;
	if (version != RBX_WIRE_VERSION)
		goto other_version;
	layout = layout_of(message->type);
	if (!layout || length_bytes != stated_bytes ||
	    length_bytes != RBX_WIRE_HEADER_BYTES + layout->payload_bytes)
		goto malformed;
	layout->walk(&c, message);
	if (c.bad || !message_makes_sense(message))
		goto malformed;
	return 0;

malformed:
	rbx_port_fill(message, 0, sizeof(*message));
	return -EBADMSG;

other_version:
	request_id = message->request_id;
	rbx_port_fill(message, 0, sizeof(*message));
	message->request_id = request_id;
	return -EPROTONOSUPPORT;
}
