/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hostile_test.c - a server and peers that keep no rule: each is refused with
 * a reason, and the server serves on.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/server/raw_client.h"
#include "tests/server/world.h"

static size_t hello_bytes(uint8_t *bytes)
{
	const struct rbx_wire_message hello = {
		.type = RBX_WIRE_HELLO, .request_id = 1
	};

	return rbx_wire_encode(&hello, bytes);
}

static void message_of_garbage_is_refused(void **state)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct raw_client raw;
	struct world world;

	(void)state;
	world_begin(&world);
	memset(bytes, 0xa5, sizeof(bytes));
	raw_client_arrive(&raw, &world);
	raw_client_send_bytes(&raw, bytes, sizeof(bytes));
	raw_client_is_refused(&raw, RBX_REASON_MALFORMED);
	raw_client_leave(&raw);
	assert_int_equal(world_stats(&world).refused_malformed, 1);
	world_serves_on(&world);
	world_stop(&world);
}

static void message_of_each_wrong_length_is_refused(void **state)
{
	uint8_t bytes[RBX_CONTROL_BUFFER_BYTES] = { 0 };
	struct raw_client raw;
	struct world world;
	size_t right, length;

	(void)state;
	world_begin(&world);
	right = hello_bytes(bytes);
	for (length = 0; length <= sizeof(bytes); length += 13) {
		if (length == right)
			continue;
		raw_client_arrive(&raw, &world);
		raw_client_send_bytes(&raw, bytes, length);
		raw_client_is_refused(&raw, RBX_REASON_MALFORMED);
		raw_client_leave(&raw);
	}
	world_serves_on(&world);
	world_stop(&world);
}

static void message_far_too_long_ends_the_connection(void **state)
{
	uint8_t bytes[RAW_CLIENT_BUFFER_BYTES] = { 0 };
	struct rbx_wire_message answer;
	struct raw_client raw;
	struct world world;

	(void)state;
	world_begin(&world);
	hello_bytes(bytes);
	raw_client_arrive(&raw, &world);
	raw_client_send_bytes(&raw, bytes, sizeof(bytes));
	assert_false(raw_client_hear(&raw, &answer));
	raw_client_leave(&raw);
	world_serves_on(&world);
	world_stop(&world);
}

static void message_of_another_version_is_refused(void **state)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct raw_client raw;
	struct world world;
	size_t length;

	(void)state;
	world_begin(&world);
	length = hello_bytes(bytes);
	bytes[4]++;
	raw_client_arrive(&raw, &world);
	raw_client_send_bytes(&raw, bytes, length);
	raw_client_is_refused(&raw, RBX_REASON_VERSION);
	raw_client_leave(&raw);
	world_serves_on(&world);
	world_stop(&world);
}

static void message_out_of_turn_is_refused(void **state)
{
	static const uint16_t types[] = {
		RBX_WIRE_CHALLENGE, RBX_WIRE_AUTH, RBX_WIRE_WELCOME,
		RBX_WIRE_SLAB_MAP, RBX_WIRE_HEARTBEAT, RBX_WIRE_STATS,
		RBX_WIRE_BYE,
	};
	struct raw_client raw;
	struct world world;
	size_t i;

	(void)state;
	world_begin(&world);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct rbx_wire_message message = { .type = types[i] };

		if (types[i] == RBX_WIRE_CHALLENGE)
			message.challenge.incarnation = 1;
		else if (types[i] == RBX_WIRE_WELCOME)
			message.welcome.incarnation = 1;
		raw_client_arrive(&raw, &world);
		raw_client_send(&raw, &message);
		raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
		raw_client_leave(&raw);
	}
	/* A client may not begin again, nor speak as a server does. */
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	raw.hello.request_id = 0;
	raw_client_send(&raw, &raw.hello);
	raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
	raw_client_leave(&raw);
	assert_int_equal(world_stats(&world).slabs_mapped, 0);
	world_serves_on(&world);
	world_stop(&world);
}

static void proof_that_was_heard_before_is_refused(void **state)
{
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };
	struct raw_client heard, replayer;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	raw_client_arrive(&heard, &world);
	raw_client_enter(&heard);
	rbx_proof_of_client(rbx_root_of_secret(world.secret),
			    &heard.transcript, auth.auth.proof);
	/* The same HELLO, the same AUTH: the challenge is another one. */
	raw_client_arrive(&replayer, &world);
	replayer.hello = heard.hello;
	raw_client_greet(&replayer);
	replayer.next_id = 1;
	raw_client_send(&replayer, &auth);
	raw_client_is_refused(&replayer, RBX_REASON_WRONG_SECRET);
	raw_client_leave(&replayer);
	/* The server's own proof is no client's. */
	raw_client_arrive(&replayer, &world);
	raw_client_greet(&replayer);
	memcpy(auth.auth.proof, heard.welcome.welcome.proof,
	       sizeof(auth.auth.proof));
	auth.request_id = 0;
	raw_client_send(&replayer, &auth);
	raw_client_is_refused(&replayer, RBX_REASON_WRONG_SECRET);
	raw_client_leave(&replayer);
	raw_client_leave(&heard);
	assert_int_equal(world_stats(&world).refused_auth, 2);
	world_serves_on(&world);
	world_stop(&world);
}

/* What the two have said must be what the other has heard. */
static void handshake_changed_on_the_way_is_refused(void **state)
{
	struct raw_client raw;
	struct world world;
	size_t at, length = 1;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	for (at = 0; at < length; at += 7) {
		raw_client_arrive(&raw, &world);
		raw_client_greet(&raw);
		length = raw.transcript.length_bytes;
		raw.transcript.bytes[at] ^= 1;
		raw_client_prove(&raw, world.secret);
		raw_client_is_refused(&raw, RBX_REASON_WRONG_SECRET);
		raw_client_leave(&raw);
	}
	assert_true(length > 200);
	world_serves_on(&world);
	world_stop(&world);
}

static void request_sent_twice_is_refused(void **state)
{
	struct rbx_wire_message map = { .type = RBX_WIRE_SLAB_MAP };
	struct rbx_wire_message answer;
	struct raw_client raw;
	struct world world;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	raw_client_send(&raw, &map);
	assert_true(raw_client_hear(&raw, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_LOAN);
	raw_client_send(&raw, &map); /* with the same id */
	raw_client_is_refused(&raw, RBX_REASON_REPLAYED);
	raw_client_leave(&raw);
	assert_int_equal(world_stats(&world).slabs_mapped, 1);
	world_serves_on(&world);
	world_stop(&world);
}

/* More at once than a client may have outstanding. */
static void flood_is_answered_in_turn(void **state)
{
	struct rbx_wire_message answer;
	struct raw_client raw;
	struct world world;
	int sent, heard;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	for (sent = 0; sent < 12; sent++) {
		struct rbx_wire_message message = { .type = RBX_WIRE_STATS };

		raw_client_send(&raw, &message);
		usleep(1000); /* its one send buffer is used again */
	}
	for (heard = 0; heard < sent; heard++) {
		assert_true(raw_client_hear(&raw, &answer));
		assert_int_equal(answer.type, RBX_WIRE_STATS_REPLY);
	}
	raw_client_leave(&raw);
	world_serves_on(&world);
	world_stop(&world);
}

/* It has receives for 14 answers, posts no more, and goes on asking. */
static void flood_without_listening_ends_the_connection(void **state)
{
	struct rbx_wire_message answer;
	struct raw_client raw;
	struct world world;
	int sent;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	for (sent = 0; sent < 30; sent++) {
		struct rbx_wire_message message = { .type = RBX_WIRE_STATS };

		raw_client_send(&raw, &message);
		usleep(1000);
	}
	world_serves_on(&world); /* meanwhile */
	while (raw_client_hear(&raw, &answer))
		assert_int_equal(answer.type, RBX_WIRE_STATS_REPLY);
	raw_client_leave(&raw);
	world_serves_on(&world);
	world_stop(&world);
}

static void resume_of_anothers_session_is_refused(void **state)
{
	struct raw_client victim, thief;
	struct rbx_wire_message heartbeat = { .type = RBX_WIRE_HEARTBEAT };
	struct rbx_wire_message answer;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	raw_client_arrive(&victim, &world);
	raw_client_enter(&victim);
	/* It has the secret, and not the session's key. */
	raw_client_arrive(&thief, &world);
	thief.hello.hello.flags = RBX_WIRE_RESUME;
	thief.hello.hello.session_id = victim.welcome.welcome.session_id;
	thief.hello.hello.incarnation = victim.welcome.welcome.incarnation;
	raw_client_greet(&thief);
	raw_client_prove(&thief, world.secret);
	raw_client_is_refused(&thief, RBX_REASON_WRONG_SECRET);
	raw_client_leave(&thief);
	/* The victim has noticed nothing. */
	raw_client_send(&victim, &heartbeat);
	assert_true(raw_client_hear(&victim, &answer));
	assert_int_equal(answer.type, RBX_WIRE_HEARTBEAT_REPLY);
	raw_client_leave(&victim);
	world_serves_on(&world);
	world_stop(&world);
}

static void half_open_connections_run_out_of_time(void **state)
{
	struct raw_client raws[16];
	struct world world;
	uint32_t i;

	(void)state;
	world_begin(&world);
	for (i = 0; i < 16; i++)
		raw_client_arrive(&raws[i], &world);
	for (i = 0; i < 16; i++)
		raw_client_is_refused(&raws[i], RBX_REASON_TOO_SLOW);
	world_serves_on(&world);
	for (i = 0; i < 16; i++)
		raw_client_leave(&raws[i]);
	world_stop(&world);
}

static struct rbx_wire_message slab_map(struct raw_client *raw)
{
	struct rbx_wire_message map = { .type = RBX_WIRE_SLAB_MAP }, loan;

	raw_client_send(raw, &map);
	assert_true(raw_client_hear(raw, &loan));
	assert_int_equal(loan.type, RBX_WIRE_SLAB_LOAN);
	return loan;
}

/* An attacker on the network knows all of the protocol, but no key: its BYE would give back
 * all that the client has borrowed. */
static void message_without_seal_ends_no_session(void **state)
{
	struct rbx_wire_message bye = { .type = RBX_WIRE_BYE };
	struct rbx_wire_message query = { .type = RBX_WIRE_SLAB_QUERY }, loan, answer;
	const struct rbx_seal none = { .is_on = false };
	struct raw_client raw, again = { 0 };
	struct rbx_seals seals;
	struct world world;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	loan = slab_map(&raw);
	seals = raw.seals;
	raw.seals.out = none;
	raw_client_send(&raw, &bye);
	raw.seals = seals;
	raw_client_is_refused(&raw, RBX_REASON_ALTERED);
	raw_client_resume(&again, &raw, loan.epoch);
	query.epoch = loan.epoch;
	query.slab_id = loan.loan.slab_id;
	raw_client_send(&again, &query);
	assert_true(raw_client_hear(&again, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_LOAN);
	assert_int_equal(answer.loan.rkey, loan.loan.rkey);
	assert_int_equal(world_stats(&world).refused_malformed, 1);
	raw_client_leave(&again);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* Sealed, so it is the client that breaks the rules. */
static void sealed_garbage_is_malformed(void **state)
{
	uint8_t bytes[RBX_WIRE_HEADER_BYTES] = { 0 };
	struct raw_client raw;
	struct world world;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	rbx_seal_put(&raw.seals.out, bytes, sizeof(bytes));
	raw_client_send_bytes(&raw, bytes, sizeof(bytes));
	raw_client_is_refused(&raw, RBX_REASON_MALFORMED);
	raw_client_leave(&raw);
	world_serves_on(&world);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_of_garbage_is_refused),
		cmocka_unit_test(message_of_each_wrong_length_is_refused),
		cmocka_unit_test(message_far_too_long_ends_the_connection),
		cmocka_unit_test(message_of_another_version_is_refused),
		cmocka_unit_test(message_out_of_turn_is_refused),
		cmocka_unit_test(proof_that_was_heard_before_is_refused),
		cmocka_unit_test(handshake_changed_on_the_way_is_refused),
		cmocka_unit_test(request_sent_twice_is_refused),
		cmocka_unit_test(flood_is_answered_in_turn),
		cmocka_unit_test(flood_without_listening_ends_the_connection),
		cmocka_unit_test(resume_of_anothers_session_is_refused),
		cmocka_unit_test(half_open_connections_run_out_of_time),
		cmocka_unit_test(message_without_seal_ends_no_session),
		cmocka_unit_test(sealed_garbage_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
