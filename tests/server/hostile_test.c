/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hostile_test.c - a server and peers that keep no rule: each is refused with
 * a reason, and the server serves on.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/server/stranger.h"
#include "tests/server/world.h"

static void serves_on(struct world *world)
{
	struct rbx_session *session = world_session(world);
	struct rbx_loan loan;

	assert_int_equal(rbx_session_map(session, &loan), 0);
	rbx_session_close(session);
}

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
	struct stranger stranger;
	struct world world;

	(void)state;
	world_options(&world);
	world_start(&world);
	memset(bytes, 0xa5, sizeof(bytes));
	stranger_arrive(&stranger, &world);
	stranger_send_bytes(&stranger, bytes, sizeof(bytes));
	stranger_is_refused(&stranger, RBX_REASON_MALFORMED);
	stranger_leave(&stranger);
	assert_int_equal(world_stats(&world).refused_malformed, 1);
	serves_on(&world);
	world_stop(&world);
}

static void message_of_each_wrong_length_is_refused(void **state)
{
	uint8_t bytes[RBX_CONTROL_BUFFER_BYTES] = { 0 };
	struct stranger stranger;
	struct world world;
	size_t right, length;

	(void)state;
	world_options(&world);
	world_start(&world);
	right = hello_bytes(bytes);
	for (length = 0; length <= sizeof(bytes); length += 13) {
		if (length == right)
			continue;
		stranger_arrive(&stranger, &world);
		stranger_send_bytes(&stranger, bytes, length);
		stranger_is_refused(&stranger, RBX_REASON_MALFORMED);
		stranger_leave(&stranger);
	}
	serves_on(&world);
	world_stop(&world);
}

static void message_far_too_long_ends_the_connection(void **state)
{
	uint8_t bytes[STRANGER_BUFFER_BYTES] = { 0 };
	struct rbx_wire_message answer;
	struct stranger stranger;
	struct world world;

	(void)state;
	world_options(&world);
	world_start(&world);
	hello_bytes(bytes);
	stranger_arrive(&stranger, &world);
	stranger_send_bytes(&stranger, bytes, sizeof(bytes));
	assert_false(stranger_hear(&stranger, &answer));
	stranger_leave(&stranger);
	serves_on(&world);
	world_stop(&world);
}

static void message_of_another_version_is_refused(void **state)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct stranger stranger;
	struct world world;
	size_t length;

	(void)state;
	world_options(&world);
	world_start(&world);
	length = hello_bytes(bytes);
	bytes[4]++;
	stranger_arrive(&stranger, &world);
	stranger_send_bytes(&stranger, bytes, length);
	stranger_is_refused(&stranger, RBX_REASON_VERSION);
	stranger_leave(&stranger);
	serves_on(&world);
	world_stop(&world);
}

static void message_out_of_turn_is_refused(void **state)
{
	static const uint16_t types[] = {
		RBX_WIRE_CHALLENGE, RBX_WIRE_AUTH, RBX_WIRE_WELCOME,
		RBX_WIRE_SLAB_MAP, RBX_WIRE_HEARTBEAT, RBX_WIRE_STATS,
		RBX_WIRE_BYE,
	};
	struct stranger stranger;
	struct world world;
	size_t i;

	(void)state;
	world_options(&world);
	world_start(&world);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct rbx_wire_message message = { .type = types[i] };

		stranger_arrive(&stranger, &world);
		stranger_send(&stranger, &message);
		stranger_is_refused(&stranger, RBX_REASON_OUT_OF_TURN);
		stranger_leave(&stranger);
	}
	/* A client may not begin again, nor speak as a server does. */
	stranger_arrive(&stranger, &world);
	stranger_enter(&stranger);
	stranger.hello.request_id = 0;
	stranger_send(&stranger, &stranger.hello);
	stranger_is_refused(&stranger, RBX_REASON_OUT_OF_TURN);
	stranger_leave(&stranger);
	assert_int_equal(world_stats(&world).slabs_mapped, 0);
	serves_on(&world);
	world_stop(&world);
}

static void proof_that_was_heard_before_is_refused(void **state)
{
	struct rbx_wire_message auth = { .type = RBX_WIRE_AUTH };
	struct stranger heard, replayer;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	stranger_arrive(&heard, &world);
	stranger_enter(&heard);
	rbx_proof_of_client(rbx_root_of_secret(world.secret),
			    &heard.transcript, auth.auth.proof);
	/* The same HELLO, the same AUTH: the challenge is another one. */
	stranger_arrive(&replayer, &world);
	replayer.hello = heard.hello;
	stranger_greet(&replayer);
	replayer.next_id = 1;
	stranger_send(&replayer, &auth);
	stranger_is_refused(&replayer, RBX_REASON_WRONG_SECRET);
	stranger_leave(&replayer);
	/* The server's own proof is no client's. */
	stranger_arrive(&replayer, &world);
	stranger_greet(&replayer);
	memcpy(auth.auth.proof, heard.welcome.welcome.proof,
	       sizeof(auth.auth.proof));
	auth.request_id = 0;
	stranger_send(&replayer, &auth);
	stranger_is_refused(&replayer, RBX_REASON_WRONG_SECRET);
	stranger_leave(&replayer);
	stranger_leave(&heard);
	assert_int_equal(world_stats(&world).refused_auth, 2);
	serves_on(&world);
	world_stop(&world);
}

/* What the two have said must be what the other has heard. */
static void handshake_changed_on_the_way_is_refused(void **state)
{
	struct stranger stranger;
	struct world world;
	size_t at, length = 1;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	for (at = 0; at < length; at += 7) {
		stranger_arrive(&stranger, &world);
		stranger_greet(&stranger);
		length = stranger.transcript.length_bytes;
		stranger.transcript.bytes[at] ^= 1;
		stranger_prove(&stranger, world.secret);
		stranger_is_refused(&stranger, RBX_REASON_WRONG_SECRET);
		stranger_leave(&stranger);
	}
	assert_true(length > 200);
	serves_on(&world);
	world_stop(&world);
}

static void request_sent_twice_is_refused(void **state)
{
	struct rbx_wire_message map = { .type = RBX_WIRE_SLAB_MAP };
	struct rbx_wire_message answer;
	struct stranger stranger;
	struct world world;

	(void)state;
	world_options(&world);
	world_start(&world);
	stranger_arrive(&stranger, &world);
	stranger_enter(&stranger);
	stranger_send(&stranger, &map);
	assert_true(stranger_hear(&stranger, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_LOAN);
	stranger_send(&stranger, &map); /* with the same id */
	stranger_is_refused(&stranger, RBX_REASON_REPLAYED);
	stranger_leave(&stranger);
	assert_int_equal(world_stats(&world).slabs_mapped, 1);
	serves_on(&world);
	world_stop(&world);
}

/* More at once than a client may have outstanding. */
static void flood_is_answered_in_turn(void **state)
{
	struct rbx_wire_message answer;
	struct stranger stranger;
	struct world world;
	int sent, heard;

	(void)state;
	world_options(&world);
	world_start(&world);
	stranger_arrive(&stranger, &world);
	stranger_enter(&stranger);
	for (sent = 0; sent < 12; sent++) {
		struct rbx_wire_message message = { .type = RBX_WIRE_STATS };

		stranger_send(&stranger, &message);
		usleep(1000); /* its one send buffer is used again */
	}
	for (heard = 0; heard < sent; heard++) {
		assert_true(stranger_hear(&stranger, &answer));
		assert_int_equal(answer.type, RBX_WIRE_STATS_REPLY);
	}
	stranger_leave(&stranger);
	serves_on(&world);
	world_stop(&world);
}

/* It has receives for 14 answers, posts no more, and goes on asking. */
static void flood_without_listening_ends_the_connection(void **state)
{
	struct rbx_wire_message answer;
	struct stranger stranger;
	struct world world;
	int sent;

	(void)state;
	world_options(&world);
	world_start(&world);
	stranger_arrive(&stranger, &world);
	stranger_enter(&stranger);
	for (sent = 0; sent < 30; sent++) {
		struct rbx_wire_message message = { .type = RBX_WIRE_STATS };

		stranger_send(&stranger, &message);
		usleep(1000);
	}
	serves_on(&world); /* meanwhile */
	while (stranger_hear(&stranger, &answer))
		assert_int_equal(answer.type, RBX_WIRE_STATS_REPLY);
	stranger_leave(&stranger);
	serves_on(&world);
	world_stop(&world);
}

static void resume_of_anothers_session_is_refused(void **state)
{
	struct stranger victim, thief;
	struct rbx_wire_message heartbeat = { .type = RBX_WIRE_HEARTBEAT };
	struct rbx_wire_message answer;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	stranger_arrive(&victim, &world);
	stranger_enter(&victim);
	/* It has the secret, and not the session's key. */
	stranger_arrive(&thief, &world);
	thief.hello.hello.flags = RBX_WIRE_RESUME;
	thief.hello.hello.session_id = victim.welcome.welcome.session_id;
	thief.hello.hello.incarnation = victim.welcome.welcome.incarnation;
	stranger_greet(&thief);
	stranger_prove(&thief, world.secret);
	stranger_is_refused(&thief, RBX_REASON_WRONG_SECRET);
	stranger_leave(&thief);
	/* The victim has noticed nothing. */
	stranger_send(&victim, &heartbeat);
	assert_true(stranger_hear(&victim, &answer));
	assert_int_equal(answer.type, RBX_WIRE_HEARTBEAT_REPLY);
	stranger_leave(&victim);
	serves_on(&world);
	world_stop(&world);
}

static void half_open_connections_run_out_of_time(void **state)
{
	struct stranger strangers[16];
	struct world world;
	uint32_t i;

	(void)state;
	world_options(&world);
	world_start(&world);
	for (i = 0; i < 16; i++)
		stranger_arrive(&strangers[i], &world);
	for (i = 0; i < 16; i++)
		stranger_is_refused(&strangers[i], RBX_REASON_TOO_SLOW);
	serves_on(&world);
	for (i = 0; i < 16; i++)
		stranger_leave(&strangers[i]);
	world_stop(&world);
}

/* ---- Queue pairs -----------------------------------------------------------*/

static void attach_refused_for(struct world *world, const void *bytes,
			       size_t length, uint32_t expected)
{
	struct stranger stranger;
	uint32_t reason = 0;

	assert_int_equal(stranger_connect(&stranger, world, bytes, length,
					  &reason),
			 -EBUSY);
	assert_int_equal(reason, expected);
	stranger_leave(&stranger);
}

static void queue_pair_without_right_is_refused(void **state)
{
	struct rbx_wire_attach attach = { .kind = RBX_WIRE_ATTACH_DATA };
	/* With zeros behind, as InfiniBand's connection manager delivers it. */
	uint8_t padded[RBX_CONNECT_DATA_MAX] = { 0 };
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	struct stranger owner, attached;
	struct world world;
	uint32_t reason = 0;

	(void)state;
	world_options(&world);
	world_start(&world);
	stranger_arrive(&owner, &world);
	stranger_enter(&owner);

	attach_refused_for(&world, "hello", 5, RBX_REASON_MALFORMED);
	attach_refused_for(&world, NULL, 0, RBX_REASON_MALFORMED);
	attach.session_id = owner.welcome.welcome.session_id ^ 1;
	attach.serial = 1;
	rbx_wire_attach_encode(&attach, bytes);
	attach_refused_for(&world, bytes, sizeof(bytes),
			   RBX_REASON_STALE_SESSION);
	attach.session_id ^= 1;
	rbx_wire_attach_encode(&attach, bytes); /* without mac */
	attach_refused_for(&world, bytes, sizeof(bytes),
			   RBX_REASON_WRONG_SECRET);
	rbx_proof_of_attach(&owner.connection_key, &attach, attach.mac);
	rbx_wire_attach_encode(&attach, bytes);
	bytes[16]++; /* another serial than the mac is of */
	attach_refused_for(&world, bytes, sizeof(bytes),
			   RBX_REASON_WRONG_SECRET);
	bytes[16]--;
	memcpy(padded, bytes, sizeof(bytes));
	padded[sizeof(padded) - 1] = 1;
	attach_refused_for(&world, padded, sizeof(padded),
			   RBX_REASON_MALFORMED);
	padded[sizeof(padded) - 1] = 0;
	assert_int_equal(stranger_connect(&attached, &world, padded,
					  sizeof(padded), &reason),
			 0);
	attach_refused_for(&world, bytes, sizeof(bytes), RBX_REASON_REPLAYED);
	bytes[4]++;
	attach_refused_for(&world, bytes, sizeof(bytes), RBX_REASON_VERSION);
	stranger_leave(&attached);
	stranger_leave(&owner);
	serves_on(&world);
	world_stop(&world);
}

static void queue_pairs_of_a_client_are_bounded(void **state)
{
	struct rbx_qp *qps[RBX_QUEUE_PAIRS_MAX];
	struct rbx_session *session;
	const struct rbx_qp_init *init;
	struct rbx_qp_init one_more;
	struct rbx_qp *qp;
	struct world world;
	uint32_t i;
	int err;

	(void)state;
	world_options(&world);
	world_start(&world);
	session = world_session(&world);
	for (i = 0; i < RBX_QUEUE_PAIRS_MAX; i++)
		qps[i] = world_qp(&world, session);
	one_more = (struct rbx_qp_init){
		.send_cq = world.cq,
		.recv_cq = world.cq,
		.send_depth_count = 1,
		.recv_depth_count = 1,
		.max_sge = 1,
	};
	init = &one_more;
	assert_int_equal(rbx_session_connect_qp(session, init, &qp), -EBUSY);
	/* The end of one is noticed, and makes room. */
	world.choice.ops->destroy_qp(qps[0]);
	do {
		err = rbx_session_connect_qp(session, init, &qps[0]);
	} while (err == -EBUSY);
	assert_int_equal(err, 0);
	for (i = 0; i < RBX_QUEUE_PAIRS_MAX; i++)
		world.choice.ops->destroy_qp(qps[i]);
	rbx_session_close(session);
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
		cmocka_unit_test(queue_pair_without_right_is_refused),
		cmocka_unit_test(queue_pairs_of_a_client_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
