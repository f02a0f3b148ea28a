/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seal_test.c - after the handshake a message is taken once, unchanged and in its turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/seal.h"

static const uint8_t secret[] = "correct horse battery staple";

struct pair {
	struct rbx_seals client, server;
};

static struct rbx_transcript transcript_of(uint8_t nonce)
{
	const struct rbx_wire_message hello = {
		.type = RBX_WIRE_HELLO,
		.request_id = 1,
		.hello = { .flags = RBX_WIRE_HAS_SECRET, .nonce = { nonce } },
	};
	const struct rbx_wire_message challenge = {
		.type = RBX_WIRE_CHALLENGE,
		.challenge.incarnation = 1,
		.request_id = 1,
	};
	struct rbx_transcript transcript;

	rbx_transcript_make(&transcript, &hello, &challenge);
	return transcript;
}

static struct pair pair_of(const uint8_t *bytes, size_t length_bytes, uint8_t nonce)
{
	const struct rbx_root root = { bytes, length_bytes };
	struct rbx_transcript transcript = transcript_of(nonce);
	struct pair pair;

	rbx_seals_begin(&pair.client, RBX_SIDE_CLIENT, root, &transcript);
	rbx_seals_begin(&pair.server, RBX_SIDE_SERVER, root, &transcript);
	return pair;
}

static struct pair pair_make(void)
{
	return pair_of(secret, sizeof(secret) - 1, 1);
}

static struct rbx_wire_message unmap(uint64_t request_id)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_SLAB_UNMAP,
		.request_id = request_id,
		.epoch = 7,
		.slab_id = 9,
	};
}

struct sealed {
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;
};

static struct sealed seal(struct rbx_seal *out, uint64_t request_id)
{
	const struct rbx_wire_message m = unmap(request_id);
	struct sealed sealed = { { 0 }, 0 };

	sealed.length_bytes = rbx_seal_encode(out, &m, sealed.bytes);
	return sealed;
}

static int take(struct rbx_seal *in, struct sealed sealed)
{
	struct rbx_wire_message m;

	return rbx_seal_decode(in, sealed.bytes, sealed.length_bytes, &m);
}

static void messages_arrive_in_both_directions(void **state)
{
	struct pair pair = pair_make();
	struct rbx_wire_message came;
	uint64_t id;

	(void)state;
	for (id = 1; id < 300; id++) {
		struct sealed there = seal(&pair.client.out, id);
		struct sealed back = seal(&pair.server.out, id);

		assert_int_equal(rbx_seal_decode(&pair.server.in, there.bytes,
						 there.length_bytes, &came),
				 0);
		assert_int_equal(came.request_id, id);
		assert_int_equal(came.slab_id, 9);
		assert_int_equal(take(&pair.client.in, back), 0);
	}
}

/* "rdmabox client messages" over the transcript is the key, the mac its HMAC over the message
 * with a mac of zeros. */
static void seal_is_that_of_the_specification(void **state)
{
	static const char label[] = "rdmabox client messages";
	struct rbx_transcript transcript = transcript_of(1);
	uint8_t text[sizeof(label) + sizeof(transcript.bytes)];
	uint8_t key[RBX_HMAC_BYTES], mac[RBX_HMAC_BYTES], claimed[16];
	struct pair pair = pair_make();
	struct sealed sealed;

	(void)state;
	memcpy(text, label, sizeof(label));
	memcpy(text + sizeof(label), transcript.bytes, transcript.length_bytes);
	rbx_port_hmac_sha256(secret, sizeof(secret) - 1, text,
			     sizeof(label) + transcript.length_bytes, key);
	(void)seal(&pair.client.out, 1);
	sealed = seal(&pair.client.out, 2);
	memcpy(claimed, sealed.bytes + 40, 16);
	memset(sealed.bytes + 40, 0, 16);
	assert_int_equal(sealed.bytes[32], 2); /* the second message */
	rbx_port_hmac_sha256(key, sizeof(key), sealed.bytes, sealed.length_bytes, mac);
	assert_memory_equal(mac, claimed, 16);
}

static void each_flipped_bit_is_found(void **state)
{
	struct pair pair = pair_make();
	struct sealed sealed = seal(&pair.client.out, 1), changed;
	size_t bit;

	(void)state;
	for (bit = 0; bit < sealed.length_bytes * 8; bit++) {
		changed = sealed;
		changed.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(take(&pair.server.in, changed), -EACCES);
	}
	assert_int_equal(take(&pair.server.in, sealed), 0);
}

static void each_other_length_is_found(void **state)
{
	struct pair pair = pair_make();
	struct sealed sealed = seal(&pair.client.out, 1), changed;
	size_t length;

	(void)state;
	for (length = 0; length <= sizeof(sealed.bytes); length++) {
		changed = sealed;
		changed.length_bytes = length;
		if (length != sealed.length_bytes)
			assert_int_equal(take(&pair.server.in, changed), -EACCES);
	}
}

static void repeated_reordered_and_missing_messages_are_found(void **state)
{
	struct pair pair = pair_make();
	struct sealed first = seal(&pair.client.out, 1);
	struct sealed second = seal(&pair.client.out, 2);
	struct sealed third = seal(&pair.client.out, 3);

	(void)state;
	assert_int_equal(take(&pair.server.in, second), -EACCES);
	assert_int_equal(take(&pair.server.in, first), 0);
	assert_int_equal(take(&pair.server.in, first), -EACCES);
	assert_int_equal(take(&pair.server.in, third), -EACCES);
	assert_int_equal(take(&pair.server.in, second), 0);
	assert_int_equal(take(&pair.server.in, third), 0);
}

static void messages_of_others_are_found(void **state)
{
	struct pair pair = pair_make();
	struct pair reflected = pair_make();
	struct pair other_secret = pair_of(secret, sizeof(secret) - 2, 1);
	struct pair other_handshake = pair_of(secret, sizeof(secret) - 1, 2);
	struct rbx_seal none = { .is_on = false };

	(void)state;
	assert_int_equal(take(&pair.server.in, seal(&reflected.server.out, 1)), -EACCES);
	assert_int_equal(take(&pair.client.in, seal(&reflected.client.out, 1)), -EACCES);
	assert_int_equal(take(&pair.server.in, seal(&other_secret.client.out, 1)), -EACCES);
	assert_int_equal(take(&pair.server.in, seal(&other_handshake.client.out, 1)), -EACCES);
	assert_int_equal(take(&pair.server.in, seal(&none, 1)), -EACCES);
	assert_int_equal(take(&pair.server.in, seal(&reflected.client.out, 1)),
			 -EACCES); /* its second */
	assert_int_equal(take(&pair.server.in, seal(&pair.client.out, 1)), 0);
}

/* In the handshake the fields are reserved. */
static void seal_before_the_handshake_is_over_is_malformed(void **state)
{
	struct rbx_seal none = { .is_on = false };
	struct pair pair = pair_make();

	(void)state;
	assert_int_equal(take(&none, seal(&pair.client.out, 1)), -EBADMSG);
	assert_int_equal(take(&none, seal(&none, 1)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_arrive_in_both_directions),
		cmocka_unit_test(seal_is_that_of_the_specification),
		cmocka_unit_test(each_flipped_bit_is_found),
		cmocka_unit_test(each_other_length_is_found),
		cmocka_unit_test(repeated_reordered_and_missing_messages_are_found),
		cmocka_unit_test(messages_of_others_are_found),
		cmocka_unit_test(seal_before_the_handshake_is_over_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
