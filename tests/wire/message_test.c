/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message_test.c - messages travel whole, and nothing but a message is taken
 * for one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/message.h"
#include "wire/reason.h"

static struct rbx_wire_record sample_record(void)
{
	struct rbx_wire_record record = {
		.name = "db-1",
		.owner = "alice",
		.volume_id = 50, .size_bytes = 51, .slab_bytes = 52, .keep_s = 53,
		.epoch = 54, .version = 55, .replicas = 56, .flags = RBX_WIRE_CHECKSUMS,
		.members_count = 3,
		.incarnations = { 57, 58, 59 },
		.member_flags = { 0, RBX_WIRE_MEMBER_OUT,
				  RBX_WIRE_MEMBER_OUT | RBX_WIRE_MEMBER_WAS_IN },
	};

	return record;
}

/* A message of each type with a different number in each field. */
static struct rbx_wire_message sample(uint16_t type)
{
	struct rbx_wire_message m = { .type = type, .request_id = 0x1122334455 };
	uint32_t i;

	switch (type) {
	case RBX_WIRE_HELLO:
		m.hello.flags = RBX_WIRE_HAS_SECRET | RBX_WIRE_RESUME;
		memset(m.hello.nonce, 0x41, sizeof(m.hello.nonce));
		m.hello.session_id = 0x0102030405060708;
		m.hello.incarnation = 0x1112131415161718;
		m.hello.last_epoch = 0x3132333435363738;
		memcpy(m.hello.credential, "A.name_of-31-characters.0123456", 31);
		break;
	case RBX_WIRE_CHALLENGE:
		memset(m.challenge.nonce, 0x42, sizeof(m.challenge.nonce));
		m.challenge.incarnation = 0x2122232425262728;
		break;
	case RBX_WIRE_AUTH:
		memset(m.auth.proof, 0x43, sizeof(m.auth.proof));
		break;
	case RBX_WIRE_WELCOME:
		m.welcome = (struct rbx_wire_welcome){
			.session_id = 1, .incarnation = 2, .slab_bytes = 3,
			.memory_bytes = 4, .free_bytes = 5, .quota_bytes = 6,
			.lease_ms = 7, .requests_max = 8, .queue_pairs_max = 9,
			.draining = 1,
			.labels = "rack=7,zone=b",
		};
		memset(m.welcome.proof, 0x44, sizeof(m.welcome.proof));
		break;
	case RBX_WIRE_ERROR:
		m.status = RBX_REASON_QUOTA;
		break;
	case RBX_WIRE_SLAB_LOAN:
		m.epoch = 10;
		m.loan = (struct rbx_wire_loan){ 11, 12, 13, 14, 15 };
		break;
	case RBX_WIRE_SLAB_QUERY:
	case RBX_WIRE_SLAB_UNMAP:
	case RBX_WIRE_SLAB_UNMAPPED:
		m.epoch = 16;
		m.slab_id = 17;
		break;
	case RBX_WIRE_SLAB_EVICT:
		m.epoch = 18;
		m.evict = (struct rbx_wire_evict){ 19, 20 };
		break;
	case RBX_WIRE_HEARTBEAT_REPLY:
		m.heartbeat_reply =
			(struct rbx_wire_heartbeat_reply){ 21, 22, 1 };
		break;
	case RBX_WIRE_STATS_REPLY:
		m.counters.count = RBX_WIRE_COUNTERS_MAX - 1;
		for (i = 0; i < m.counters.count; i++)
			m.counters.values[i] = 100 + i;
		break;
	case RBX_WIRE_USER_MESSAGE:
		m.user_message.sequence = 23;
		m.user_message.length_bytes = 9;
		memcpy(m.user_message.bytes, "a message", 9);
		break;
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		m.user_message_taken =
			(struct rbx_wire_user_message_taken){ 24, 1 };
		break;
	case RBX_WIRE_SLAB_MAP:
		m.map = (struct rbx_wire_map){ 25, 1, 1 };
		break;
	case RBX_WIRE_SLAB_COMPLETE:
	case RBX_WIRE_SLAB_INCOMPLETE:
		m.epoch = 26;
		m.slab_id = 27;
		break;
	case RBX_WIRE_VOLUME_OPEN:
		m.volume_open = (struct rbx_wire_volume_open){
			.name = "db-1", .holder = "host:42", .writer_epoch = 28,
			.volume_id = 29, .mode = RBX_WIRE_OPEN_CREATE,
		};
		break;
	case RBX_WIRE_VOLUME_LIST:
	case RBX_WIRE_LABELS:
		m.cursor = 30;
		break;
	case RBX_WIRE_VOLUME:
		m.volume = (struct rbx_wire_volume){
			.record = sample_record(), .holder = "host:42",
			.promised_epoch = 31, .last_epoch = 32, .next = 33, .is_open = 1,
		};
		break;
	case RBX_WIRE_VOLUME_ACCEPT:
		m.record = sample_record();
		break;
	case RBX_WIRE_VOLUME_RESERVE:
		strcpy(m.name, "db-2");
		break;
	case RBX_WIRE_VOLUME_DONE:
		m.writer_epoch = 34;
		break;
	case RBX_WIRE_LABELS_REPLY:
		m.labels.next = 35;
		m.labels.count = RBX_WIRE_LABELS_MAX - 1;
		for (i = 0; i < m.labels.count; i++)
			m.labels.labels[i] = (struct rbx_wire_label){
				.label = 36 + i, .slab_id = 37, .epoch = 38,
				.remote_addr = 39, .rkey = 40, .is_complete = i % 2,
				.intent = 41, .behind = 45,
			};
		break;
	case RBX_WIRE_INTENTS:
		m.intents.count = RBX_WIRE_INTENTS_MAX - 1;
		for (i = 0; i < m.intents.count; i++)
			m.intents.intents[i] = (struct rbx_wire_intent){ 42 + i, 43, i, 44 };
		break;
	}
	return m;
}

static void each_type_comes_back_as_it_went(void **state)
{
	struct rbx_wire_message went, came;
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	uint16_t type;
	size_t length;

	(void)state;
	for (type = 1; type < RBX_WIRE_TYPES_END; type++) {
		went = sample(type);
		length = rbx_wire_encode(&went, bytes);
		assert_in_range(length, RBX_WIRE_HEADER_BYTES, sizeof(bytes));
		memset(&came, 0xff, sizeof(came));
		assert_int_equal(rbx_wire_decode(bytes, length, &came), 0);
		assert_int_equal(came.type, went.type);
		assert_int_equal(came.request_id, went.request_id);
		assert_int_equal(came.epoch, went.epoch);
		assert_int_equal(came.status, went.status);
		/* Padding aside, which encode() would show: */
		uint8_t again[RBX_WIRE_MESSAGE_BYTES_MAX];

		assert_int_equal(rbx_wire_encode(&came, again), length);
		assert_memory_equal(again, bytes, length);
	}
}

/* The layout is a promise to other versions: byte for byte, once. */
static void evict_has_the_layout_of_the_specification(void **state)
{
	const struct rbx_wire_message m = {
		.type = RBX_WIRE_SLAB_EVICT,
		.epoch = 0x0807060504030201,
		.evict = { .slab_id = 0x1817161514131211,
			   .grace_ms = 0x24232221 },
	};
	static const uint8_t expected[80] = {
		'R', 'B', 'X', 'C', 2, 0, 11, 0, 80, 0, 0, 0, 0, 0, 0, 0,
		[24] = 1, 2, 3, 4, 5, 6, 7, 8,
		[64] = 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		[72] = 0x21, 0x22, 0x23, 0x24,
	};
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];

	(void)state;
	assert_int_equal(rbx_wire_encode(&m, bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

static void each_wrong_length_is_refused(void **state)
{
	uint8_t bytes[2 * RBX_WIRE_MESSAGE_BYTES_MAX] = { 0 };
	struct rbx_wire_message m;
	uint16_t type;
	size_t right, length;

	(void)state;
	for (type = 1; type < RBX_WIRE_TYPES_END; type++) {
		m = sample(type);
		right = rbx_wire_encode(&m, bytes);
		for (length = 0; length <= sizeof(bytes); length++)
			assert_int_equal(rbx_wire_decode(bytes, length, &m),
					 length == right ? 0 : -EBADMSG);
		memset(bytes, 0, sizeof(bytes));
	}
}

/* Of each type, each byte is flipped: what still decodes is another message
 * with exactly these bytes, so no byte is ignored. */
static void no_byte_is_ignored(void **state)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	uint8_t again[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct rbx_wire_message m;
	size_t length, at;
	uint16_t type;

	(void)state;
	for (type = 1; type < RBX_WIRE_TYPES_END; type++) {
		m = sample(type);
		length = rbx_wire_encode(&m, bytes);
		for (at = 0; at < length; at++) {
			bytes[at] ^= 0x81;
			if (!rbx_wire_decode(bytes, length, &m)) {
				assert_int_equal(rbx_wire_encode(&m, again),
						 length);
				assert_memory_equal(again, bytes, length);
			}
			bytes[at] ^= 0x81;
		}
		/* Magic, length and reserved bytes of the header in any case. */
		for (at = 0; at < RBX_WIRE_HEADER_BYTES; at++) {
			if (at == 4)
				at = 8; /* version and type */
			if (at == 12)
				at = 32; /* status, request id, epoch */
			bytes[at] ^= 0x40;
			assert_int_equal(rbx_wire_decode(bytes, length, &m),
					 -EBADMSG);
			bytes[at] ^= 0x40;
		}
	}
}

static int decode_sample(struct rbx_wire_message m, size_t at, uint8_t byte)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length = rbx_wire_encode(&m, bytes);

	bytes[at] = byte;
	return rbx_wire_decode(bytes, length, &m);
}

static void fields_that_contradict_are_refused(void **state)
{
	struct rbx_wire_message hello = { .type = RBX_WIRE_HELLO };

	(void)state;
	/* A flag that nobody knows. */
	assert_int_equal(decode_sample(hello, 64, 4), -EBADMSG);
	/* A session without the flag that says so, and the flag without one. */
	assert_int_equal(decode_sample(hello, 104, 1), -EBADMSG);
	assert_int_equal(decode_sample(hello, 64, RBX_WIRE_RESUME), -EBADMSG);
	/* Nor what goes with one: its server's incarnation, its last epoch. */
	assert_int_equal(decode_sample(hello, 112, 1), -EBADMSG);
	assert_int_equal(decode_sample(hello, 120, 1), -EBADMSG);
	/* A status where all is well, an error without one, an unknown one. */
	assert_int_equal(decode_sample(hello, 12, 1), -EBADMSG);
	assert_int_equal(decode_sample(sample(RBX_WIRE_ERROR), 12, 0),
			 -EBADMSG);
	assert_int_equal(decode_sample(sample(RBX_WIRE_ERROR), 12,
				       RBX_REASONS_COUNT),
			 -EBADMSG);
	/* A slab without epoch, an epoch without slab. */
	assert_int_equal(decode_sample(sample(RBX_WIRE_SLAB_LOAN), 24, 0),
			 -EBADMSG);
	assert_int_equal(decode_sample(hello, 24, 1), -EBADMSG);
	/* More counters than there is room for, or than were announced. */
	assert_int_equal(decode_sample(sample(RBX_WIRE_STATS_REPLY), 64,
				       RBX_WIRE_COUNTERS_MAX + 1),
			 -EBADMSG);
	assert_int_equal(decode_sample(sample(RBX_WIRE_STATS_REPLY), 64, 3),
			 -EBADMSG);
	assert_int_equal(decode_sample(sample(RBX_WIRE_HEARTBEAT_REPLY), 80, 2),
			 -EBADMSG);
}

/* HELLO with these bytes for the name of the credential. */
static int decode_named(const char *name, size_t name_bytes)
{
	struct rbx_wire_message m = sample(RBX_WIRE_HELLO);
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length = rbx_wire_encode(&m, bytes);

	memset(bytes + 128, 0, RBX_CREDENTIAL_BYTES);
	memcpy(bytes + 128, name, name_bytes);
	return rbx_wire_decode(bytes, length, &m);
}

static void hostile_names_are_refused(void **state)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	struct rbx_wire_message hello = { .type = RBX_WIRE_HELLO };
	char name[RBX_CREDENTIAL_BYTES];
	int c;

	(void)state;
	assert_int_equal(decode_named("", 0), 0);
	for (c = 1; c < 256; c++) {
		name[0] = (char)c;
		assert_int_equal(decode_named(name, 1), strchr(allowed, c) ? 0 : -EBADMSG);
	}
	memset(name, 'n', sizeof(name));
	assert_int_equal(decode_named(name, sizeof(name) - 1), 0);
	assert_int_equal(decode_named(name, sizeof(name)), -EBADMSG);
	/* Something behind its end, near and far; and an empty one with an end. */
	assert_int_equal(decode_named("a\0b", 3), -EBADMSG);
	memset(name + 1, 0, sizeof(name) - 2);
	assert_int_equal(decode_named(name, sizeof(name)), -EBADMSG);
	assert_int_equal(decode_named("\0a", 2), -EBADMSG);
	/* A name without a secret. */
	assert_int_equal(decode_sample(hello, 128, 'a'), -EBADMSG);
}

static void messages_that_contradict_are_refused(void **state)
{
	struct rbx_wire_message full = sample(RBX_WIRE_USER_MESSAGE);
	struct rbx_wire_message empty = sample(RBX_WIRE_USER_MESSAGE);

	(void)state;
	full.user_message.length_bytes = RBX_WIRE_USER_MESSAGE_BYTES_MAX;
	memset(full.user_message.bytes, 'x', RBX_WIRE_USER_MESSAGE_BYTES_MAX);
	assert_int_equal(decode_sample(full, 255, 'x'), 0);
	empty.user_message.length_bytes = 0;
	memset(empty.user_message.bytes, 0, RBX_WIRE_USER_MESSAGE_BYTES_MAX);
	assert_int_equal(decode_sample(empty, 255, 0), 0);
	/* Longer than there is room for, by one and by nearly 2^32. */
	assert_int_equal(decode_sample(full, 72,
				       RBX_WIRE_USER_MESSAGE_BYTES_MAX + 1),
			 -EBADMSG);
	assert_int_equal(decode_sample(full, 75, 0xff), -EBADMSG);
	/* Shorter than it is: something stands behind its end. */
	assert_int_equal(decode_sample(full, 72,
				       RBX_WIRE_USER_MESSAGE_BYTES_MAX - 1),
			 -EBADMSG);
	assert_int_equal(decode_sample(empty, 255, 1), -EBADMSG);
	/* Without a number; something reserved; refused how? */
	assert_int_equal(decode_sample(full, 64, 0), -EBADMSG);
	assert_int_equal(decode_sample(full, 76, 1), -EBADMSG);
	assert_int_equal(decode_sample(sample(RBX_WIRE_USER_MESSAGE_TAKEN), 72,
				       2),
			 -EBADMSG);
}

static int decode_volume(struct rbx_wire_message m, size_t at, uint8_t byte)
{
	return decode_sample(m, RBX_WIRE_HEADER_BYTES + at, byte);
}

static void volume_that_makes_no_sense_is_refused(void **state)
{
	struct rbx_wire_message open = sample(RBX_WIRE_VOLUME_OPEN);
	struct rbx_wire_message look = { .type = RBX_WIRE_VOLUME_OPEN,
					 .volume_open = { .name = "db",
							  .mode = RBX_WIRE_OPEN_LOOK } };
	struct rbx_wire_message accept = sample(RBX_WIRE_VOLUME_ACCEPT);
	struct rbx_wire_message reserve = sample(RBX_WIRE_VOLUME_RESERVE);
	struct rbx_wire_message none = { .type = RBX_WIRE_VOLUME_RESERVE };
	struct rbx_wire_message labels = sample(RBX_WIRE_LABELS_REPLY);
	struct rbx_wire_message intents = sample(RBX_WIRE_INTENTS);
	struct rbx_wire_message map = sample(RBX_WIRE_SLAB_MAP);

	(void)state;
	assert_int_equal(decode_volume(open, 0, 'd'), 0);
	assert_int_equal(decode_volume(open, 0, '-'), -EBADMSG); /* it looks like an option */
	assert_int_equal(decode_volume(open, 1, '/'), -EBADMSG);
	assert_int_equal(decode_volume(open, 63, 'x'), -EBADMSG); /* behind the end */
	assert_int_equal(decode_volume(open, 0, 0), -EBADMSG); /* empty, with rests */
	assert_int_equal(decode_volume(open, 64, 7), -EBADMSG); /* no text */
	assert_int_equal(decode_volume(open, 128, 0), -EBADMSG); /* no epoch */
	assert_int_equal(decode_volume(open, 136, 0), -EBADMSG); /* no id */
	assert_int_equal(decode_volume(look, 136, 0), 0);
	assert_int_equal(decode_volume(look, 136, 5), 0);
	assert_int_equal(decode_volume(look, 64, 'x'), -EBADMSG); /* a holder, to look */
	assert_int_equal(decode_volume(look, 128, 1), -EBADMSG); /* an epoch */
	assert_int_equal(decode_volume(reserve, 0, 'x'), 0);
	assert_int_equal(decode_volume(reserve, 0, '.'), -EBADMSG);
	assert_int_equal(decode_volume(reserve, 0, 0), -EBADMSG); /* empty, with rests */
	assert_int_equal(decode_volume(none, 0, 0), 0);
	assert_int_equal(decode_volume(none, 0, 'x'), 0);
	assert_int_equal(decode_volume(none, 1, 'x'), -EBADMSG);
	assert_int_equal(decode_volume(open, 144, RBX_WIRE_OPEN_WRITE), 0);
	assert_int_equal(decode_volume(open, 144, RBX_WIRE_OPEN_LOOK), -EBADMSG);
	assert_int_equal(decode_volume(open, 144, RBX_WIRE_OPEN_REMOVE), 0);
	assert_int_equal(decode_volume(open, 144, RBX_WIRE_OPEN_RETURN), 0);
	assert_int_equal(decode_volume(open, 144, RBX_WIRE_OPEN_AGAIN), 0);
	assert_int_equal(decode_volume(open, 144, RBX_WIRE_OPEN_AGAIN + 1), -EBADMSG);
	assert_int_equal(decode_volume(accept, 96, 0), -EBADMSG); /* id 0 */
	assert_int_equal(decode_volume(accept, 128, 0), -EBADMSG); /* of no epoch */
	assert_int_equal(decode_volume(accept, 148, RBX_WIRE_CHECKSUMS | RBX_WIRE_EVEN), 0);
	assert_int_equal(decode_volume(accept, 148, RBX_WIRE_RESERVED | RBX_WIRE_EVEN), 0);
	assert_int_equal(decode_volume(accept, 148, 8), -EBADMSG); /* flags */
	assert_int_equal(decode_volume(accept, 152, 2), -EBADMSG); /* one member too few */
	assert_int_equal(decode_volume(accept, 152, 4), -EBADMSG); /* and too many */
	assert_int_equal(decode_volume(accept, 160, 58), -EBADMSG); /* the same twice */
	assert_int_equal(decode_volume(accept, 672, 4), -EBADMSG); /* member flags */
	assert_int_equal(decode_volume(labels, 8, RBX_WIRE_LABELS_MAX), -EBADMSG);
	assert_int_equal(decode_volume(labels, 8, RBX_WIRE_LABELS_MAX + 1), -EBADMSG);
	assert_int_equal(decode_volume(labels, 16, 0), -EBADMSG); /* label 0 */
	assert_int_equal(decode_volume(labels, 52, 2), -EBADMSG);
	assert_int_equal(decode_volume(intents, 0, RBX_WIRE_INTENTS_MAX), -EBADMSG);
	assert_int_equal(decode_volume(intents, 0, RBX_WIRE_INTENTS_MAX + 1), -EBADMSG);
	assert_int_equal(decode_volume(intents, 8, 0), -EBADMSG); /* slab 0 */
	assert_int_equal(decode_volume(intents, 16, 0), -EBADMSG); /* epoch 0 */
	assert_int_equal(decode_volume(intents, 8 + 32 * (RBX_WIRE_INTENTS_MAX - 1) + 16, 1),
			 -EBADMSG); /* words behind the last ones */
	assert_int_equal(decode_volume(intents, 8 + 32 * (RBX_WIRE_INTENTS_MAX - 1) + 24, 1),
			 -EBADMSG);
	assert_int_equal(decode_volume(map, 0, 0), -EBADMSG); /* complete, and no label */
	assert_int_equal(decode_volume(map, 8, 2), -EBADMSG);
}

static void labels_of_a_server_that_are_none_are_refused(void **state)
{
	struct rbx_wire_message welcome = sample(RBX_WIRE_WELCOME); /* rack=7,zone=b */

	(void)state;
	assert_int_equal(decode_volume(welcome, 64, 'R'), 0);
	assert_int_equal(decode_volume(welcome, 60, 2), -EBADMSG); /* draining, or not */
	assert_int_equal(decode_volume(welcome, 64, '='), -EBADMSG); /* no name */
	assert_int_equal(decode_volume(welcome, 64, ' '), -EBADMSG);
	assert_int_equal(decode_volume(welcome, 64, 0xe4), -EBADMSG);
	assert_int_equal(decode_volume(welcome, 71, ','), -EBADMSG); /* two commas */
	assert_int_equal(decode_volume(welcome, 64, 0), -EBADMSG); /* empty, with rests */
	assert_int_equal(decode_volume(welcome, 64 + 255, 'x'), -EBADMSG); /* behind the end */
	memset(welcome.welcome.labels, 0, sizeof(welcome.welcome.labels));
	assert_int_equal(decode_volume(welcome, 64, 0), 0);
}

static void another_version_is_told_from_garbage(void **state)
{
	struct rbx_wire_message m = sample(RBX_WIRE_HELLO);
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length = rbx_wire_encode(&m, bytes);

	(void)state;
	bytes[4] = RBX_WIRE_VERSION + 1;
	assert_int_equal(rbx_wire_decode(bytes, length, &m), -EPROTONOSUPPORT);
	assert_int_equal(m.request_id, 0x1122334455);
	/* It may be longer than anything we know. */
	assert_int_equal(rbx_wire_decode(bytes, length - 8, &m),
			 -EPROTONOSUPPORT);
	bytes[0] = 'x';
	assert_int_equal(rbx_wire_decode(bytes, length, &m), -EBADMSG);
	assert_int_equal(m.request_id, 0);
}

static void each_reason_has_an_errno_and_a_sentence(void **state)
{
	uint32_t reason;

	(void)state;
	assert_int_equal(rbx_reason_errno(RBX_REASON_NONE), 0);
	for (reason = 1; reason < RBX_REASONS_COUNT; reason++) {
		assert_true(rbx_reason_errno(reason) < 0);
		assert_true(strlen(rbx_reason_sentence(reason)) > 10);
	}
	assert_int_equal(rbx_reason_errno(RBX_REASON_FULL), -ENOSPC);
	assert_int_equal(rbx_reason_errno(RBX_REASON_QUOTA), -EDQUOT);
	assert_int_equal(rbx_reason_errno(RBX_REASON_STALE_SESSION), -ESTALE);
	assert_int_equal(rbx_reason_errno(RBX_REASONS_COUNT), -EPROTO);
	assert_non_null(rbx_reason_sentence(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_comes_back_as_it_went),
		cmocka_unit_test(evict_has_the_layout_of_the_specification),
		cmocka_unit_test(each_wrong_length_is_refused),
		cmocka_unit_test(no_byte_is_ignored),
		cmocka_unit_test(fields_that_contradict_are_refused),
		cmocka_unit_test(hostile_names_are_refused),
		cmocka_unit_test(messages_that_contradict_are_refused),
		cmocka_unit_test(volume_that_makes_no_sense_is_refused),
		cmocka_unit_test(labels_of_a_server_that_are_none_are_refused),
		cmocka_unit_test(another_version_is_told_from_garbage),
		cmocka_unit_test(each_reason_has_an_errno_and_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
