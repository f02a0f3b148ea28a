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

#include "tests/wire/samples.h"

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
		cmocka_unit_test(another_version_is_told_from_garbage),
		cmocka_unit_test(each_reason_has_an_errno_and_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
