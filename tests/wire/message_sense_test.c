/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* message_sense_test.c - messages whose fields contradict each other are taken for none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/wire/samples.h"

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

/* A client takes 0 for a server that it does not know. */
static void server_without_incarnation_is_refused(void **state)
{
	struct rbx_wire_message challenge = sample(RBX_WIRE_CHALLENGE);
	struct rbx_wire_message welcome = sample(RBX_WIRE_WELCOME);

	(void)state;
	challenge.challenge.incarnation = welcome.welcome.incarnation = 1;
	assert_int_equal(decode_sample(challenge, 64 + 32, 2), 0);
	assert_int_equal(decode_sample(challenge, 64 + 32, 0), -EBADMSG);
	assert_int_equal(decode_sample(welcome, 64 + 8, 2), 0);
	assert_int_equal(decode_sample(welcome, 64 + 8, 0), -EBADMSG);
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
	struct rbx_wire_message read = sample(RBX_WIRE_VOLUME_READ);
	struct rbx_wire_message reading = sample(RBX_WIRE_VOLUME_READING);
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
	assert_int_equal(decode_volume(accept, 148, RBX_WIRE_LOST), 0);
	assert_int_equal(decode_volume(accept, 148, RBX_WIRE_LOST | RBX_WIRE_UNSURE), 0);
	assert_int_equal(decode_volume(accept, 148, 32), -EBADMSG); /* flags */
	assert_int_equal(decode_volume(accept, 152, 2), -EBADMSG); /* one member too few */
	assert_int_equal(decode_volume(accept, 152, 4), -EBADMSG); /* and too many */
	assert_int_equal(decode_volume(accept, 160, 58), -EBADMSG); /* the same twice */
	assert_int_equal(decode_volume(accept, 672, 4), -EBADMSG); /* member flags */
	assert_int_equal(decode_volume(read, 0, 0), -EBADMSG); /* id 0 */
	assert_int_equal(decode_volume(reading, 128, 0), -EBADMSG); /* of no epoch */
	assert_int_equal(decode_volume(reading, 152, 2), -EBADMSG); /* one member too few */
	assert_int_equal(decode_volume(labels, 8, RBX_WIRE_LABELS_MAX), -EBADMSG);
	assert_int_equal(decode_volume(labels, 8, RBX_WIRE_LABELS_MAX + 1), -EBADMSG);
	assert_int_equal(decode_volume(labels, 16, 0), -EBADMSG); /* label 0 */
	assert_int_equal(decode_volume(labels, 32, 0), -EBADMSG); /* of no epoch */
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

static void volume_that_cannot_be_so_is_refused(void **state)
{
	struct rbx_wire_message volume = sample(RBX_WIRE_VOLUME);

	(void)state;
	volume.volume.record.copies = volume.volume.record.replicas = 3;
	assert_int_equal(decode_volume(volume, 144, 3), 0);
	assert_int_equal(decode_volume(volume, 144, 2), -EBADMSG); /* more copies than replicas */
	assert_int_equal(decode_volume(volume, 824, 0), 0);
	assert_int_equal(decode_volume(volume, 824, 2), -EBADMSG); /* it is open twice */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_contradict_are_refused),
		cmocka_unit_test(server_without_incarnation_is_refused),
		cmocka_unit_test(hostile_names_are_refused),
		cmocka_unit_test(messages_that_contradict_are_refused),
		cmocka_unit_test(volume_that_makes_no_sense_is_refused),
		cmocka_unit_test(volume_that_cannot_be_so_is_refused),
		cmocka_unit_test(labels_of_a_server_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
