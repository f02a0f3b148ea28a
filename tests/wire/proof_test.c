/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * proof_test.c - the proofs are those of PROTOCOL.md, and cover every byte that
 * was said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/proof.h"

static const uint8_t secret[] = "correct horse battery staple";

static struct rbx_root root(void)
{
	return (struct rbx_root){ secret, sizeof(secret) - 1 };
}

static void said(struct rbx_wire_message *hello,
		 struct rbx_wire_message *challenge,
		 struct rbx_wire_message *welcome)
{
	*hello = (struct rbx_wire_message){
		.type = RBX_WIRE_HELLO,
		.request_id = 1,
		.hello = {
			.flags = RBX_WIRE_HAS_SECRET | RBX_WIRE_RESUME,
			.session_id = 0x1122,
			.incarnation = 0x3344,
			.last_epoch = 0x5566,
		},
	};
	*challenge = (struct rbx_wire_message){
		.type = RBX_WIRE_CHALLENGE,
		.request_id = 1,
		.challenge.incarnation = 0x3344,
	};
	*welcome = (struct rbx_wire_message){
		.type = RBX_WIRE_WELCOME,
		.request_id = 2,
		.welcome = {
			.session_id = 0x1122,
			.incarnation = 0x3344,
			.slab_bytes = 65536,
			.memory_bytes = 1 << 20,
			.free_bytes = 1 << 19,
			.quota_bytes = 1 << 18,
			.lease_ms = 30000,
			.requests_max = 7,
			.queue_pairs_max = 16,
		},
	};
	memset(hello->hello.nonce, 0xc1, sizeof(hello->hello.nonce));
	memset(challenge->challenge.nonce, 0x5e,
	       sizeof(challenge->challenge.nonce));
}

/* All that is made of one handshake. */
struct proofs {
	uint8_t client[RBX_WIRE_PROOF_BYTES];
	uint8_t server[RBX_WIRE_PROOF_BYTES];
	struct rbx_key session, connection;
};

static struct proofs prove_all(struct rbx_root by,
			       const struct rbx_transcript *transcript,
			       const struct rbx_wire_message *welcome)
{
	struct proofs proofs;

	rbx_proof_of_client(by, transcript, proofs.client);
	rbx_proof_of_server(by, transcript, welcome, proofs.server);
	rbx_key_of_session(by, transcript, &proofs.session);
	rbx_key_of_connection(by, transcript, &proofs.connection);
	return proofs;
}

static void all_differ(const struct proofs *a, const struct proofs *b)
{
	assert_memory_not_equal(a->client, b->client, sizeof(a->client));
	assert_memory_not_equal(a->server, b->server, sizeof(a->server));
	assert_memory_not_equal(&a->session, &b->session, sizeof(a->session));
	assert_memory_not_equal(&a->connection, &b->connection,
				sizeof(a->connection));
}

/* HMAC(root, label 0 text), put together by hand. */
static void expect_formula(const uint8_t *proof, const char *label,
			   const uint8_t *text, size_t text_bytes)
{
	uint8_t bytes[1024], expected[RBX_HMAC_BYTES];
	size_t label_bytes = strlen(label) + 1;

	memcpy(bytes, label, label_bytes);
	memcpy(bytes + label_bytes, text, text_bytes);
	rbx_port_hmac_sha256(secret, sizeof(secret) - 1, bytes,
			     label_bytes + text_bytes, expected);
	assert_memory_equal(proof, expected, sizeof(expected));
}

static void proofs_are_those_of_the_protocol(void **state)
{
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_transcript transcript;
	struct proofs proofs;
	uint8_t text[1024];
	size_t t, w;

	(void)state;
	said(&hello, &challenge, &welcome);
	rbx_transcript_make(&transcript, &hello, &challenge);
	proofs = prove_all(root(), &transcript, &welcome);
	t = rbx_wire_encode(&hello, text);
	t += rbx_wire_encode(&challenge, text + t);
	w = rbx_wire_encode(&welcome, text + t);
	expect_formula(proofs.client, "rdmabox client proof", text, t);
	expect_formula(proofs.server, "rdmabox server proof", text, t + w);
	expect_formula(proofs.session.bytes, "rdmabox session key", text, t);
	expect_formula(proofs.connection.bytes, "rdmabox connection key", text,
		       t);
}

/* WELCOME carries its own proof, which is not part of what it proves. */
static void server_proof_does_not_depend_on_the_proof_field(void **state)
{
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_transcript transcript;
	struct proofs before, after;

	(void)state;
	said(&hello, &challenge, &welcome);
	rbx_transcript_make(&transcript, &hello, &challenge);
	before = prove_all(root(), &transcript, &welcome);
	memset(welcome.welcome.proof, 0x77, sizeof(welcome.welcome.proof));
	after = prove_all(root(), &transcript, &welcome);
	assert_memory_equal(before.server, after.server, sizeof(after.server));
}

static void each_byte_of_the_transcript_counts(void **state)
{
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_transcript transcript, changed;
	struct proofs before, after;
	size_t i;

	(void)state;
	said(&hello, &challenge, &welcome);
	rbx_transcript_make(&transcript, &hello, &challenge);
	before = prove_all(root(), &transcript, &welcome);
	for (i = 0; i < transcript.length_bytes; i++) {
		changed = transcript;
		changed.bytes[i] ^= 0x10;
		after = prove_all(root(), &changed, &welcome);
		all_differ(&before, &after);
	}
}

static void each_field_of_the_handshake_is_in_it(void **state)
{
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_transcript transcript;
	struct proofs before, after;
	int field;

	(void)state;
	said(&hello, &challenge, &welcome);
	rbx_transcript_make(&transcript, &hello, &challenge);
	before = prove_all(root(), &transcript, &welcome);
	for (field = 0; field < 8; field++) {
		said(&hello, &challenge, &welcome);
		switch (field) {
		case 0: hello.hello.flags ^= RBX_WIRE_HAS_SECRET; break;
		case 1: hello.hello.nonce[31] ^= 1; break;
		case 2: hello.hello.session_id++; break;
		case 3: hello.hello.incarnation++; break;
		case 4: hello.hello.last_epoch++; break;
		case 5: challenge.challenge.nonce[31] ^= 1; break;
		case 6: challenge.challenge.incarnation++; break;
		case 7: hello.hello.credential[0] = 'n'; break;
		}
		rbx_transcript_make(&transcript, &hello, &challenge);
		after = prove_all(root(), &transcript, &welcome);
		all_differ(&before, &after);
	}
}

static void each_field_of_welcome_is_proved(void **state)
{
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_transcript transcript;
	struct proofs before, after;
	int field;

	(void)state;
	said(&hello, &challenge, &welcome);
	rbx_transcript_make(&transcript, &hello, &challenge);
	before = prove_all(root(), &transcript, &welcome);
	for (field = 0; field < 12; field++) {
		said(&hello, &challenge, &welcome);
		switch (field) {
		case 0: welcome.welcome.session_id++; break;
		case 1: welcome.welcome.incarnation++; break;
		case 2: welcome.welcome.slab_bytes *= 2; break;
		case 3: welcome.welcome.memory_bytes++; break;
		case 4: welcome.welcome.free_bytes++; break;
		case 5: welcome.welcome.quota_bytes++; break;
		case 6: welcome.welcome.lease_ms++; break;
		case 7: welcome.welcome.requests_max++; break;
		case 8: welcome.welcome.queue_pairs_max++; break;
		case 9: welcome.request_id++; break;
		case 10: strcpy(welcome.welcome.labels, "rack=8"); break;
		case 11: welcome.welcome.draining = 1; break;
		}
		after = prove_all(root(), &transcript, &welcome);
		assert_memory_not_equal(before.server, after.server,
					sizeof(after.server));
	}
}

static void another_secret_proves_nothing(void **state)
{
	struct rbx_wire_message hello, challenge, welcome;
	struct rbx_transcript transcript;
	struct proofs before, after;
	uint8_t other[sizeof(secret) - 1];
	size_t i;

	(void)state;
	said(&hello, &challenge, &welcome);
	rbx_transcript_make(&transcript, &hello, &challenge);
	before = prove_all(root(), &transcript, &welcome);
	for (i = 0; i < sizeof(other); i++) {
		memcpy(other, secret, sizeof(other));
		other[i] ^= 1;
		after = prove_all((struct rbx_root){ other, sizeof(other) },
				  &transcript, &welcome);
		all_differ(&before, &after);
		after = prove_all((struct rbx_root){ secret, i }, &transcript,
				  &welcome);
		all_differ(&before, &after);
	}
}

static void attach_is_proved_field_by_field(void **state)
{
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_DATA, .session_id = 5, .serial = 9,
	};
	struct rbx_wire_attach changed = attach;
	uint8_t before[RBX_WIRE_MAC_BYTES], after[RBX_WIRE_MAC_BYTES];
	struct rbx_key key = { { 1, 2, 3 } }, other;
	size_t i;

	(void)state;
	rbx_proof_of_attach(&key, &attach, before);
	memset(changed.mac, 0x55, sizeof(changed.mac));
	rbx_proof_of_attach(&key, &changed, after);
	assert_memory_equal(before, after, sizeof(after));
	changed.serial++;
	rbx_proof_of_attach(&key, &changed, after);
	assert_memory_not_equal(before, after, sizeof(after));
	changed = attach;
	changed.session_id++;
	rbx_proof_of_attach(&key, &changed, after);
	assert_memory_not_equal(before, after, sizeof(after));
	for (i = 0; i < sizeof(key.bytes); i++) {
		other = key;
		other.bytes[i] ^= 1;
		rbx_proof_of_attach(&other, &attach, after);
		assert_memory_not_equal(before, after, sizeof(after));
	}
}

static void equal_looks_at_every_bit(void **state)
{
	uint8_t a[RBX_WIRE_PROOF_BYTES], b[RBX_WIRE_PROOF_BYTES];
	size_t i;

	(void)state;
	memset(a, 0x3c, sizeof(a));
	memcpy(b, a, sizeof(b));
	assert_true(rbx_proof_equal(a, b, sizeof(a)));
	for (i = 0; i < sizeof(a) * 8; i++) {
		b[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_false(rbx_proof_equal(a, b, sizeof(a)));
		b[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	/* Two differences do not make up for each other. */
	b[0] ^= 1;
	b[1] ^= 1;
	assert_false(rbx_proof_equal(a, b, sizeof(a)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proofs_are_those_of_the_protocol),
		cmocka_unit_test(
			server_proof_does_not_depend_on_the_proof_field),
		cmocka_unit_test(each_byte_of_the_transcript_counts),
		cmocka_unit_test(each_field_of_the_handshake_is_in_it),
		cmocka_unit_test(each_field_of_welcome_is_proved),
		cmocka_unit_test(another_secret_proves_nothing),
		cmocka_unit_test(attach_is_proved_field_by_field),
		cmocka_unit_test(equal_looks_at_every_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
