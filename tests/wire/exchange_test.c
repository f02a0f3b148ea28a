/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_test.c - the messages of an exchange: their bytes, and what is no message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "wire/exchange.h"

static const struct rbx_wire_exchange samples[] = {
	{
		.type = RBX_WIRE_OFFER,
		.id = 0x0102030405060708,
		.access = RBX_WIRE_OFFER_TO_READ,
		.tag = 0x1112131415161718,
		.address = 0x2122232425262728,
		.key = 0x31323334,
		.length_bytes = 0x41424344,
	},
	{ .type = RBX_WIRE_OFFER_END, .id = 1, .length_bytes = 5 },
	{ .type = RBX_WIRE_OFFER_END, .id = 1, .end = RBX_WIRE_OFFER_TWICE },
	{ .type = RBX_WIRE_OFFER_WITHDRAW, .id = UINT64_MAX },
};

static void message_comes_back_as_it_was(void **state)
{
	uint8_t bytes[RBX_WIRE_EXCHANGE_BYTES];
	struct rbx_wire_exchange again;

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		rbx_wire_exchange_encode(&samples[i], bytes);
		assert_int_equal(rbx_wire_exchange_decode(bytes, sizeof(bytes), &again), 0);
		assert_int_equal(again.type, samples[i].type);
		assert_int_equal(again.id, samples[i].id);
		assert_int_equal(again.access, samples[i].access);
		assert_int_equal(again.tag, samples[i].tag);
		assert_int_equal(again.address, samples[i].address);
		assert_int_equal(again.key, samples[i].key);
		assert_int_equal(again.end, samples[i].end);
		assert_int_equal(again.length_bytes, samples[i].length_bytes);
	}
}

/* As wire/PROTOCOL.md has them. */
static void bytes_are_those_of_the_protocol(void **state)
{
	static const uint8_t expected[RBX_WIRE_EXCHANGE_BYTES] = {
		'R',  'B',  'X',  'E',	1,    0,    1,	  0, /* magic, version, type */
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* id */
		0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* tag */
		0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, /* address */
		0x44, 0x43, 0x42, 0x41, 0x34, 0x33, 0x32, 0x31, /* length, key */
		2,    0,    0,	  0,	0,    0,    0,	  0, /* access, end, zeros */
	};
	uint8_t bytes[RBX_WIRE_EXCHANGE_BYTES];

	(void)state;
	rbx_wire_exchange_encode(&samples[0], bytes);
	assert_memory_equal(bytes, expected, sizeof(expected));
}

static int decode(const uint8_t *bytes, size_t length_bytes)
{
	static const struct rbx_wire_exchange none;
	struct rbx_wire_exchange message;
	int err;

	memset(&message, 0xff, sizeof(message));
	err = rbx_wire_exchange_decode(bytes, length_bytes, &message);
	if (err)
		assert_memory_equal(&message, &none, sizeof(none));
	return err;
}

static void other_lengths_and_versions_are_refused(void **state)
{
	uint8_t bytes[RBX_WIRE_EXCHANGE_BYTES + 1] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		rbx_wire_exchange_encode(&samples[i], bytes);
		for (size_t length_bytes = 0; length_bytes <= sizeof(bytes); length_bytes++)
			assert_int_equal(decode(bytes, length_bytes),
					 length_bytes == RBX_WIRE_EXCHANGE_BYTES ? 0 : -EBADMSG);
		bytes[4] = 2;
		assert_int_equal(decode(bytes, RBX_WIRE_EXCHANGE_BYTES), -EPROTONOSUPPORT);
	}
}

/* One byte of a sample is another one. */
static void refuse_with(size_t sample, size_t at, uint8_t byte)
{
	uint8_t bytes[RBX_WIRE_EXCHANGE_BYTES];

	rbx_wire_exchange_encode(&samples[sample], bytes);
	bytes[at] = byte;
	assert_int_equal(decode(bytes, sizeof(bytes)), -EBADMSG);
}

static void fields_without_sense_are_refused(void **state)
{
	static const size_t of_offers_alone[] = { 16, 24, 36, 40 };

	(void)state;
	refuse_with(0, 0, 'X'); /* magic */
	for (size_t i = 0; i < 4; i++) {
		refuse_with(i, 6, 0); /* type */
		refuse_with(i, 6, RBX_WIRE_EXCHANGE_TYPES_END);
		refuse_with(i, 47, 1); /* reserved */
	}
	for (size_t i = 1; i < 4; i++)
		for (size_t k = 0; k < 4; k++)
			refuse_with(i, of_offers_alone[k], 1);
	refuse_with(0, 40, 0); /* access */
	refuse_with(0, 40, RBX_WIRE_OFFER_ACCESS_END);
	refuse_with(0, 42, 1); /* an offer has no end */
	refuse_with(1, 8, 0); /* id */
	refuse_with(1, 32, 0); /* done, and no bytes */
	refuse_with(2, 32, 1); /* refused, and bytes */
	refuse_with(2, 42, RBX_WIRE_OFFER_ENDS_END);
	refuse_with(3, 42, 1);
	refuse_with(3, 32, 1);
}

static void buffer_wraps_around_nowhere(void **state)
{
	struct rbx_wire_exchange message = samples[0];
	uint8_t bytes[RBX_WIRE_EXCHANGE_BYTES];

	(void)state;
	message.address = UINT64_MAX - message.length_bytes;
	rbx_wire_exchange_encode(&message, bytes);
	assert_int_equal(decode(bytes, sizeof(bytes)), 0);
	bytes[24]++;
	assert_int_equal(decode(bytes, sizeof(bytes)), -EBADMSG);
	rbx_wire_exchange_encode(&samples[0], bytes);
	memset(&bytes[32], 0, 4); /* an empty one */
	assert_int_equal(decode(bytes, sizeof(bytes)), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_comes_back_as_it_was),
		cmocka_unit_test(bytes_are_those_of_the_protocol),
		cmocka_unit_test(other_lengths_and_versions_are_refused),
		cmocka_unit_test(fields_without_sense_are_refused),
		cmocka_unit_test(buffer_wraps_around_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
