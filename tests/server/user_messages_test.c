/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * user_messages_test.c - a server whose program talks, and peers that keep no rule in
 * that: each is refused with a reason or comes to a stop, and the server serves
 * on. (tests/lib/peer/message_test.c has two sides that keep them.)
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/limits.h"
#include "core/port.h"
#include "tests/server/raw_client.h"
#include "tests/server/world.h"

struct program {
	uint32_t heard_count; /* atomic */
	uint32_t ended_count; /* atomic */
};

static struct program program;

static void hear(struct rbx_server *server, uint64_t client, const void *data,
		 size_t length, void *user)
{
	(void)server;
	(void)client;
	(void)data;
	(void)length;
	(void)user;
	RBX_FETCH_ADD(&program.heard_count, 1);
}

static void ended(int status, void *user)
{
	(void)user;
	assert_int_equal(status, 0);
	RBX_FETCH_ADD(&program.ended_count, 1);
}

static void talking_world(struct world *world)
{
	program = (struct program){ 0 };
	world_options(world);
	world->options.message = hear;
	world_start(world);
}

static void enter(struct raw_client *raw, struct world *world)
{
	raw_client_arrive(raw, world);
	raw_client_enter(raw);
}

static struct rbx_wire_message user_message_of(uint64_t sequence)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_USER_MESSAGE,
		.user_message = {
			.sequence = sequence,
			.length_bytes = 2,
			.bytes = "hi",
		},
	};
}

static void send_user_message(struct raw_client *raw, uint64_t sequence)
{
	struct rbx_wire_message user_message = user_message_of(sequence);

	raw_client_send(raw, &user_message);
}

static void send_taken(struct raw_client *raw, uint64_t sequence)
{
	struct rbx_wire_message taken = {
		.type = RBX_WIRE_USER_MESSAGE_TAKEN,
		.user_message_taken.sequence = sequence,
	};

	raw_client_send(raw, &taken);
}

static void expect_taken(struct raw_client *raw, uint64_t sequence)
{
	struct rbx_wire_message answer;

	assert_true(raw_client_hear(raw, &answer));
	assert_int_equal(answer.type, RBX_WIRE_USER_MESSAGE_TAKEN);
	assert_int_equal(answer.request_id, raw->next_id);
	assert_int_equal(answer.user_message_taken.sequence, sequence);
	assert_int_equal(answer.user_message_taken.refused, 0);
}

static void expect_user_message(struct raw_client *raw, uint64_t sequence)
{
	struct rbx_wire_message user_message;

	assert_true(raw_client_hear(raw, &user_message));
	assert_int_equal(user_message.type, RBX_WIRE_USER_MESSAGE);
	assert_int_equal(user_message.request_id, 0);
	assert_int_equal(user_message.user_message.sequence, sequence);
}

/* Whatever was to come unasked would have come before the answer. */
static void expect_nothing_unasked(struct raw_client *raw)
{
	struct rbx_wire_message heartbeat = { .type = RBX_WIRE_HEARTBEAT };
	struct rbx_wire_message answer;

	raw_client_send(raw, &heartbeat);
	assert_true(raw_client_hear(raw, &answer));
	assert_int_equal(answer.type, RBX_WIRE_HEARTBEAT_REPLY);
}

static void serves_on(struct world *world)
{
	struct raw_client guest;
	uint32_t before = RBX_LOAD_ACQUIRE(&program.heard_count);

	enter(&guest, world);
	send_user_message(&guest, 1);
	expect_taken(&guest, 1);
	/* Others may still be heard. */
	assert_true(RBX_LOAD_ACQUIRE(&program.heard_count) > before);
	raw_client_leave(&guest);
}

/* ---- What a client says ------------------------------------------------------*/

static void message_before_authentication_is_refused(void **state)
{
	struct raw_client raw;
	struct world world;

	(void)state;
	talking_world(&world);
	raw_client_arrive(&raw, &world);
	send_user_message(&raw, 1);
	raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
	raw_client_leave(&raw);
	/* Between HELLO and AUTH. */
	raw_client_arrive(&raw, &world);
	raw_client_greet(&raw);
	send_user_message(&raw, 1);
	raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
	raw_client_leave(&raw);
	raw_client_arrive(&raw, &world);
	send_taken(&raw, 0);
	raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
	raw_client_leave(&raw);
	assert_int_equal(program.heard_count, 0);
	serves_on(&world);
	world_stop(&world);
}

static void message_that_is_too_long_is_refused(void **state)
{
	struct rbx_wire_message user_message = user_message_of(1);
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	struct raw_client raw;
	size_t length_bytes;
	struct world world;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	user_message.request_id = ++raw.next_id;
	length_bytes = rbx_wire_encode(&user_message, bytes);
	bytes[72] = RBX_WIRE_USER_MESSAGE_BYTES_MAX + 1;
	rbx_seal_put(&raw.seals.out, bytes, length_bytes);
	raw_client_send_bytes(&raw, bytes, length_bytes);
	raw_client_is_refused(&raw, RBX_REASON_MALFORMED);
	raw_client_leave(&raw);
	assert_int_equal(program.heard_count, 0);
	serves_on(&world);
	world_stop(&world);
}

static void message_that_leaves_one_out_is_refused(void **state)
{
	struct raw_client raw;
	struct world world;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	send_user_message(&raw, 1);
	expect_taken(&raw, 1);
	send_user_message(&raw, 3);
	raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
	raw_client_leave(&raw);
	assert_int_equal(program.heard_count, 1);
	serves_on(&world);
	world_stop(&world);
}

static void message_sent_again_is_answered_and_heard_once(void **state)
{
	struct raw_client raw;
	struct world world;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	send_user_message(&raw, 1);
	expect_taken(&raw, 1);
	send_user_message(&raw, 2);
	expect_taken(&raw, 2);
	send_user_message(&raw, 1);
	expect_taken(&raw, 2);
	assert_int_equal(program.heard_count, 2);
	raw_client_leave(&raw);
	serves_on(&world);
	world_stop(&world);
}

/* More at once than a client may have outstanding. */
static void flood_of_messages_is_answered_in_turn(void **state)
{
	struct raw_client raw;
	struct rbx_wire_message answer;
	struct world world;
	uint64_t sequence;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	for (sequence = 1; sequence <= 12; sequence++) {
		send_user_message(&raw, sequence);
		usleep(1000); /* its one send buffer is used again */
	}
	for (sequence = 1; sequence <= 12; sequence++) {
		assert_true(raw_client_hear(&raw, &answer));
		assert_int_equal(answer.user_message_taken.sequence, sequence);
	}
	raw_client_leave(&raw);
	serves_on(&world);
	world_stop(&world);
}

/* It has receives for 14 answers, posts no more, and goes on writing. */
static void
flood_of_messages_without_listening_ends_the_connection(void **state)
{
	struct raw_client raw;
	struct rbx_wire_message answer;
	struct world world;
	uint64_t sequence;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	for (sequence = 1; sequence <= 40; sequence++) {
		send_user_message(&raw, sequence);
		usleep(1000);
	}
	serves_on(&world); /* meanwhile */
	while (raw_client_hear(&raw, &answer))
		assert_int_equal(answer.type, RBX_WIRE_USER_MESSAGE_TAKEN);
	assert_true(program.heard_count < 40);
	raw_client_leave(&raw);
	serves_on(&world);
	world_stop(&world);
}

static void flood_of_receipts_changes_nothing(void **state)
{
	struct raw_client raw;
	struct world world;
	int sent;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	for (sent = 0; sent < 60; sent++) {
		send_taken(&raw, 0);
		usleep(1000);
	}
	expect_nothing_unasked(&raw);
	raw_client_leave(&raw);
	serves_on(&world);
	world_stop(&world);
}

/* ---- What the server says ------------------------------------------------------*/

static void say(struct world *world, struct raw_client *to, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		assert_int_equal(rbx_server_message_submit(
					 world->server,
					 to->welcome.welcome.session_id, "hi",
					 2, ended, NULL),
				 0);
}

static void messages_wait_for_a_client_to_speak_and_to_take(void **state)
{
	struct raw_client raw;
	struct world world;
	uint64_t sequence;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	say(&world, &raw, 10);
	expect_nothing_unasked(&raw);
	send_taken(&raw, 0);
	for (sequence = 1; sequence <= RBX_WIRE_USER_MESSAGES_MAX; sequence++)
		expect_user_message(&raw, sequence);
	expect_nothing_unasked(&raw);
	assert_int_equal(RBX_LOAD_ACQUIRE(&program.ended_count), 0);
	send_taken(&raw, 2);
	expect_user_message(&raw, 5);
	expect_user_message(&raw, 6);
	expect_nothing_unasked(&raw);
	assert_int_equal(RBX_LOAD_ACQUIRE(&program.ended_count), 2);
	raw.next_id++; /* may skip */
	send_taken(&raw, 6);
	for (sequence = 7; sequence <= 10; sequence++)
		expect_user_message(&raw, sequence);
	send_taken(&raw, 10);
	expect_nothing_unasked(&raw);
	assert_int_equal(RBX_LOAD_ACQUIRE(&program.ended_count), 10);
	assert_int_equal(world_stats(&world).messages_sent, 10);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* It may still be checking the server's proof, and expects an answer only. */
static void evict_waits_for_a_client_that_is_back_to_speak(void **state)
{
	struct rbx_wire_message map = { .type = RBX_WIRE_SLAB_MAP };
	struct raw_client raw, again;
	struct rbx_wire_message answer;
	struct world world;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	raw_client_send(&raw, &map);
	assert_true(raw_client_hear(&raw, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_LOAN);
	raw_client_resume(&again, &raw, answer.epoch);
	assert_int_equal(rbx_server_drain(world.server, 1), -ETIMEDOUT);
	usleep(1500000); /* it asks once, and reminds after a second */
	expect_nothing_unasked(&again);
	assert_true(raw_client_hear(&again, &answer));
	assert_int_equal(answer.type, RBX_WIRE_SLAB_EVICT);
	raw_client_leave(&again);
	raw_client_leave(&raw);
	world_stop(&world);
}

static void taken_of_a_message_that_was_never_sent_is_refused(void **state)
{
	struct raw_client raw;
	struct world world;

	(void)state;
	talking_world(&world);
	enter(&raw, &world);
	send_taken(&raw, 1);
	raw_client_is_refused(&raw, RBX_REASON_OUT_OF_TURN);
	raw_client_leave(&raw);
	assert_int_equal(program.ended_count, 0);
	serves_on(&world);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_before_authentication_is_refused),
		cmocka_unit_test(message_that_is_too_long_is_refused),
		cmocka_unit_test(message_that_leaves_one_out_is_refused),
		cmocka_unit_test(message_sent_again_is_answered_and_heard_once),
		cmocka_unit_test(flood_of_messages_is_answered_in_turn),
		cmocka_unit_test(
			flood_of_messages_without_listening_ends_the_connection),
		cmocka_unit_test(flood_of_receipts_changes_nothing),
		cmocka_unit_test(messages_wait_for_a_client_to_speak_and_to_take),
		cmocka_unit_test(evict_waits_for_a_client_that_is_back_to_speak),
		cmocka_unit_test(
			taken_of_a_message_that_was_never_sent_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
