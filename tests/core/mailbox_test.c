/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mailbox_test.c - two mailboxes and a connection that is lost again and again:
 * each user message arrives once and in order, and ends once, with what is true.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mailbox.h"
#include "core/random.h"

#define WIRE_MAX 64 /* messages under way in one direction */
#define STEPS 200000

/* One side: a mailbox, what is under way to the other, and what it knows. */
struct side {
	struct rbx_mailbox box;
	struct rbx_wire_message wire[WIRE_MAX];
	uint32_t wire_first, wire_count;
	uint64_t put_count; /* user messages accepted */
	uint64_t heard_count; /* of the other side's user messages */
	uint64_t ended_count;
	bool receipt_owed;
	int expected_status; /* of what ends */
};

static void user_message_done(int status, void *user)
{
	struct side *side = user;

	assert_int_equal(status, side->expected_status);
	side->ended_count++;
}

static int put_text(struct side *side, const char *text)
{
	return rbx_mailbox_put(&side->box, text, (uint32_t)strlen(text),
			       user_message_done, side);
}

static void wire_put(struct side *side, const struct rbx_wire_message *message)
{
	assert_true(side->wire_count < WIRE_MAX);
	side->wire[(side->wire_first + side->wire_count++) % WIRE_MAX] =
		*message;
}

static struct rbx_wire_message wire_take(struct side *side)
{
	struct rbx_wire_message message = side->wire[side->wire_first];

	side->wire_first = (side->wire_first + 1) % WIRE_MAX;
	side->wire_count--;
	return message;
}

/* ---- The numbers, one rule at a time ----------------------------------------*/

static void put_into_a_full_mailbox_is_eagain(void **state)
{
	struct rbx_mailbox *box = calloc(1, sizeof(*box));
	struct rbx_user_message_ends ends;
	uint32_t i;

	(void)state;
	for (i = 0; i < RBX_USER_MESSAGES_MAX; i++)
		assert_int_equal(rbx_mailbox_put(box, "x", 1, NULL, NULL), 0);
	assert_int_equal(rbx_mailbox_put(box, "x", 1, NULL, NULL), -EAGAIN);
	assert_int_equal(rbx_mailbox_outstanding(box), RBX_USER_MESSAGES_MAX);
	rbx_mailbox_end(box, -EHOSTUNREACH, &ends);
	assert_int_equal(ends.count, RBX_USER_MESSAGES_MAX);
	rbx_user_message_ends_tell(&ends); /* nobody wants to know */
	assert_int_equal(rbx_mailbox_outstanding(box), 0);
	assert_int_equal(rbx_mailbox_put(box, "x", 1, NULL, NULL), 0);
	free(box);
}

static void next_stops_at_the_window(void **state)
{
	struct side *side = calloc(1, sizeof(*side));
	struct rbx_wire_user_message_taken taken = { .sequence = 1 };
	struct rbx_wire_message message;
	struct rbx_user_message_ends ends;
	uint64_t i;

	(void)state;
	for (i = 0; i <= RBX_WIRE_USER_MESSAGES_MAX; i++)
		assert_int_equal(put_text(side, "hello!"), 0);
	for (i = 1; i <= RBX_WIRE_USER_MESSAGES_MAX; i++) {
		assert_true(rbx_mailbox_next(&side->box, &message));
		assert_int_equal(message.user_message.sequence, i);
		assert_int_equal(message.user_message.length_bytes, 6);
		assert_memory_equal(message.user_message.bytes, "hello!\0", 7);
		rbx_mailbox_sent(&side->box);
	}
	assert_false(rbx_mailbox_next(&side->box, &message));
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), 0);
	assert_int_equal(ends.count, 1);
	assert_true(rbx_mailbox_next(&side->box, &message));
	free(side);
}

static void taken_of_what_was_never_sent_is_refused(void **state)
{
	struct side *side = calloc(1, sizeof(*side));
	struct rbx_wire_user_message_taken taken = { .sequence = 1 };
	struct rbx_user_message_ends ends;

	(void)state;
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), -EPROTO);
	assert_int_equal(put_text(side, "unsent"), 0);
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), -EPROTO);
	rbx_mailbox_sent(&side->box);
	taken.sequence = UINT64_MAX;
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), -EPROTO);
	taken.sequence = 1;
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), 0);
	assert_int_equal(ends.count, 1);
	/* Said again, or said late: nothing ends twice. */
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), 0);
	taken.sequence = 0;
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), 0);
	assert_int_equal(ends.count, 0);
	free(side);
}

static void taken_by_nobody_ends_with_eopnotsupp(void **state)
{
	struct side *side = calloc(1, sizeof(*side));
	struct rbx_wire_user_message_taken taken = { .sequence = 1,
						     .refused = 1 };
	struct rbx_user_message_ends ends;

	(void)state;
	side->expected_status = -EOPNOTSUPP;
	assert_int_equal(put_text(side, "anybody?"), 0);
	rbx_mailbox_sent(&side->box);
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), 0);
	rbx_user_message_ends_tell(&ends);
	assert_int_equal(side->ended_count, 1);
	free(side);
}

/* It was heard, and USER_MESSAGE_TAKEN was lost with the connection. */
static void taken_after_a_loss_may_be_ahead_of_what_was_sent_again(void **state)
{
	struct side *side = calloc(1, sizeof(*side));
	struct rbx_wire_user_message_taken taken = { .sequence = 2 };
	struct rbx_wire_message message;
	struct rbx_user_message_ends ends;

	(void)state;
	assert_int_equal(put_text(side, "one"), 0);
	assert_int_equal(put_text(side, "two"), 0);
	assert_int_equal(put_text(side, "three"), 0);
	rbx_mailbox_sent(&side->box);
	rbx_mailbox_sent(&side->box);
	rbx_mailbox_rewind(&side->box);
	assert_int_equal(rbx_mailbox_taken(&side->box, &taken, &ends), 0);
	assert_int_equal(ends.count, 2);
	assert_true(rbx_mailbox_next(&side->box, &message));
	assert_int_equal(message.user_message.sequence, 3);
	free(side);
}

static void judge_knows_new_again_and_ahead(void **state)
{
	struct side *side = calloc(1, sizeof(*side));

	(void)state;
	assert_int_equal(rbx_mailbox_judge(&side->box, 2),
			 RBX_USER_MESSAGE_AHEAD);
	assert_int_equal(rbx_mailbox_judge(&side->box, 1),
			 RBX_USER_MESSAGE_NEW);
	rbx_mailbox_heard(&side->box);
	assert_int_equal(rbx_mailbox_judge(&side->box, 1),
			 RBX_USER_MESSAGE_AGAIN);
	assert_int_equal(rbx_mailbox_judge(&side->box, 2),
			 RBX_USER_MESSAGE_NEW);
	assert_int_equal(rbx_mailbox_judge(&side->box, UINT64_MAX),
			 RBX_USER_MESSAGE_AHEAD);
	assert_int_equal(rbx_mailbox_receipt(&side->box, true)
				 .user_message_taken.sequence, 1);
	free(side);
}

/* ---- All of them together, with losses ---------------------------------------*/

/* The text of a user message tells which one it is. */
static void step_put(struct side *side)
{
	uint64_t number = side->put_count + 1;
	bool full =
		side->put_count - side->ended_count == RBX_USER_MESSAGES_MAX;
	int err = rbx_mailbox_put(&side->box, &number, sizeof(number),
				  user_message_done, side);

	assert_int_equal(err, full ? -EAGAIN : 0);
	side->put_count += !err;
}

static void step_send(struct side *side)
{
	struct rbx_wire_message message;

	if (side->receipt_owed) {
		message = rbx_mailbox_receipt(&side->box, false);
		side->receipt_owed = false;
		wire_put(side, &message);
	} else if (rbx_mailbox_next(&side->box, &message)) {
		rbx_mailbox_sent(&side->box);
		wire_put(side, &message);
	}
}

static void
user_message_arrives(struct side *side,
		     const struct rbx_wire_user_message *user_message)
{
	uint64_t number;

	side->receipt_owed = true;
	switch (rbx_mailbox_judge(&side->box, user_message->sequence)) {
	case RBX_USER_MESSAGE_NEW:
		memcpy(&number, user_message->bytes, sizeof(number));
		assert_int_equal(number, ++side->heard_count);
		rbx_mailbox_heard(&side->box);
		break;
	case RBX_USER_MESSAGE_AGAIN:
		assert_true(user_message->sequence <= side->heard_count);
		break;
	case RBX_USER_MESSAGE_AHEAD:
		fail_msg("a message is missing");
	}
}

/* What `from` has under way comes to `to`. */
static void step_deliver(struct side *from, struct side *to)
{
	struct rbx_wire_message message;
	struct rbx_user_message_ends ends;

	if (!from->wire_count)
		return;
	message = wire_take(from);
	if (message.type == RBX_WIRE_USER_MESSAGE) {
		user_message_arrives(to, &message.user_message);
		return;
	}
	assert_int_equal(rbx_mailbox_taken(&to->box,
					   &message.user_message_taken, &ends),
			 0);
	rbx_user_message_ends_tell(&ends);
	/* What has ended has been heard. */
	assert_true(to->ended_count <= from->heard_count);
}

static void step_lose(struct side *sides)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		sides[i].wire_count = 0;
		rbx_mailbox_rewind(&sides[i].box);
		sides[i].receipt_owed = true; /* as a resume begins */
	}
}

static void messages_arrive_once_and_in_order_whatever_is_lost(void **state)
{
	struct side *sides = calloc(2, sizeof(*sides));
	struct rbx_random random;
	uint32_t step, i;

	(void)state;
	rbx_random_seed(&random, 20);
	for (step = 0; step < STEPS; step++) {
		uint32_t at = rbx_random_below(&random, 2);

		switch (rbx_random_below(&random, 7)) {
		case 0:
			step_put(&sides[at]);
			break;
		case 1:
		case 2:
			step_send(&sides[at]);
			break;
		default:
			step_deliver(&sides[at], &sides[!at]);
			break;
		case 6:
			if (!rbx_random_below(&random, 12))
				step_lose(sides);
		}
	}
	for (step = 0; step < 1000; step++)
		for (i = 0; i < 2; i++) {
			step_send(&sides[i]);
			step_deliver(&sides[i], &sides[!i]);
		}
	for (i = 0; i < 2; i++) {
		assert_true(sides[i].put_count > STEPS / 30);
		assert_int_equal(sides[!i].heard_count, sides[i].put_count);
		assert_int_equal(sides[i].ended_count, sides[i].put_count);
		assert_int_equal(rbx_mailbox_outstanding(&sides[i].box), 0);
	}
	free(sides);
}

static void messages_end_once_when_the_other_side_is_gone(void **state)
{
	struct side *sides = calloc(2, sizeof(*sides));
	struct rbx_user_message_ends ends;
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		step_put(&sides[0]);
	for (i = 0; i < 3; i++) {
		step_send(&sides[0]);
		step_deliver(&sides[0], &sides[1]);
	}
	step_send(&sides[1]);
	step_deliver(&sides[1], &sides[0]);
	assert_int_equal(sides[0].ended_count, 3);
	sides[0].expected_status = -EHOSTUNREACH;
	rbx_mailbox_end(&sides[0].box, -EHOSTUNREACH, &ends);
	rbx_user_message_ends_tell(&ends);
	assert_int_equal(sides[0].ended_count, 10);
	rbx_mailbox_end(&sides[0].box, -EHOSTUNREACH, &ends);
	assert_int_equal(ends.count, 0);
	free(sides);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_into_a_full_mailbox_is_eagain),
		cmocka_unit_test(next_stops_at_the_window),
		cmocka_unit_test(taken_of_what_was_never_sent_is_refused),
		cmocka_unit_test(taken_by_nobody_ends_with_eopnotsupp),
		cmocka_unit_test(
			taken_after_a_loss_may_be_ahead_of_what_was_sent_again),
		cmocka_unit_test(judge_knows_new_again_and_ahead),
		cmocka_unit_test(
			messages_arrive_once_and_in_order_whatever_is_lost),
		cmocka_unit_test(messages_end_once_when_the_other_side_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
