/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_test.c - the private data of connections. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/attach.h"
#include "wire/message.h"
#include "wire/reason.h"

static const struct rbx_wire_attach data = {
	.kind = RBX_WIRE_ATTACH_DATA,
	.session_id = 0x1817161514131211,
	.serial = 0x28,
	.mac = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
};

static void attach_has_the_layout_of_the_specification(void **state)
{
	static const uint8_t expected[RBX_WIRE_ATTACH_BYTES] = {
		'R', 'B', 'X', 'A', 2, 0, 2, 0,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0x28, 0, 0, 0, 0, 0, 0, 0,
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct rbx_wire_attach came;

	(void)state;
	rbx_wire_attach_encode(&data, bytes);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_int_equal(rbx_wire_attach_decode(bytes, sizeof(bytes), &came),
			 0);
	assert_int_equal(came.kind, data.kind);
	assert_int_equal(came.session_id, data.session_id);
	assert_int_equal(came.serial, data.serial);
	assert_memory_equal(came.mac, data.mac, sizeof(came.mac));
}

static int decode_with(size_t at, uint8_t byte)
{
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct rbx_wire_attach came;

	rbx_wire_attach_encode(&data, bytes);
	bytes[at] = byte;
	return rbx_wire_attach_decode(bytes, sizeof(bytes), &came);
}

static void attach_that_makes_no_sense_is_refused(void **state)
{
	(void)state;
	assert_int_equal(decode_with(0, 'x'), -EBADMSG); /* magic */
	assert_int_equal(decode_with(4, RBX_WIRE_VERSION + 1), -EPROTONOSUPPORT);
	assert_int_equal(decode_with(6, 0), -EBADMSG); /* kind */
	assert_int_equal(decode_with(6, 3), -EBADMSG);
	assert_int_equal(decode_with(16, 0), -EBADMSG); /* serial 0 */
	assert_int_equal(decode_with(6, RBX_WIRE_ATTACH_CONTROL), -EBADMSG);
}

static void attach_that_was_cut_off_is_refused(void **state)
{
	static const struct rbx_wire_attach control = {
		.kind = RBX_WIRE_ATTACH_CONTROL, /* ends in zeros */
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct rbx_wire_attach came;
	size_t length;

	(void)state;
	rbx_wire_attach_encode(&control, bytes);
	for (length = 0; length < sizeof(bytes); length++)
		assert_int_equal(rbx_wire_attach_decode(bytes, length, &came),
				 -EBADMSG);
	assert_int_equal(rbx_wire_attach_decode(NULL, 0, &came), -EBADMSG);
}

static void attach_with_zeros_behind_is_the_same(void **state)
{
	uint8_t bytes[56] = { 0 }; /* as InfiniBand delivers it */
	struct rbx_wire_attach came;
	size_t length;

	(void)state;
	rbx_wire_attach_encode(&data, bytes);
	for (length = RBX_WIRE_ATTACH_BYTES; length <= sizeof(bytes); length++) {
		assert_int_equal(rbx_wire_attach_decode(bytes, length, &came),
				 0);
		assert_int_equal(came.serial, data.serial);
		assert_memory_equal(came.mac, data.mac, sizeof(came.mac));
	}
	for (length = RBX_WIRE_ATTACH_BYTES; length < sizeof(bytes); length++) {
		bytes[length] = 1;
		assert_int_equal(rbx_wire_attach_decode(bytes, sizeof(bytes),
							&came), -EBADMSG);
		assert_int_equal(came.kind, 0);
		bytes[length] = 0;
	}
}

static void refusal_comes_back_as_it_went(void **state)
{
	uint8_t bytes[RBX_WIRE_REFUSAL_BYTES + 8] = { 0 };
	uint32_t reason;

	(void)state;
	for (reason = 1; reason < RBX_REASONS_COUNT; reason++) {
		rbx_wire_refusal_encode(reason, bytes);
		assert_int_equal(rbx_wire_refusal_decode(
					 bytes, RBX_WIRE_REFUSAL_BYTES),
				 reason);
		/* A fabric may pad what it carries. */
		assert_int_equal(rbx_wire_refusal_decode(bytes, sizeof(bytes)),
				 reason);
	}
	assert_int_equal(rbx_wire_refusal_decode(bytes, 7), 0);
	assert_int_equal(rbx_wire_refusal_decode(NULL, 0), 0);
	bytes[5] = 1;
	assert_int_equal(rbx_wire_refusal_decode(bytes, 8), 0);
	bytes[5] = 0;
	bytes[4] = RBX_REASONS_COUNT; /* the first that nobody knows */
	assert_int_equal(rbx_wire_refusal_decode(bytes, 8), 0);
	bytes[0] = 'x';
	assert_int_equal(rbx_wire_refusal_decode(bytes, 8), 0);
	rbx_wire_refusal_encode(1, bytes);
	bytes[sizeof(bytes) - 1] = 1; /* somebody else's, that begins as ours */
	assert_int_equal(rbx_wire_refusal_decode(bytes, sizeof(bytes)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach_has_the_layout_of_the_specification),
		cmocka_unit_test(attach_that_makes_no_sense_is_refused),
		cmocka_unit_test(attach_that_was_cut_off_is_refused),
		cmocka_unit_test(attach_with_zeros_behind_is_the_same),
		cmocka_unit_test(refusal_comes_back_as_it_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
