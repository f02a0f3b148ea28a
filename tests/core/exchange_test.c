/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_test.c - an operation and an offer find each other, and each way to end has its
 * own status at both ends.
 */
#include "tests/core/exchange_pair.h"

#define WRITE RBX_WIRE_OFFER_TO_WRITE
#define READ RBX_WIRE_OFFER_TO_READ

static void operation_gets_the_key_of_its_tag(void **state)
{
	struct pair *pair = pair_make(false);
	struct rbx_exchange_post post;

	(void)state;
	assert_int_equal(operate(&pair->a, 7, 50, WRITE, NEVER_NS), 0);
	assert_int_equal(operate(&pair->a, 8, 60, READ, NEVER_NS), 1);
	assert_int_equal(make_offer(&pair->b, 8, 100, READ, NEVER_NS), 0);
	assert_false(rbx_exchange_next_post(pair->a.exchange, &post));
	carry(&pair->b, &pair->a);
	post = post_one(&pair->a);
	assert_int_equal(post.index, 1);
	assert_int_equal(post.key, 108);
	assert_int_equal(post.address, 4096 * 8);
	assert_int_equal(post.length_bytes, 60);
	assert_int_equal(post.access, READ);
	assert_false(rbx_exchange_next_post(pair->a.exchange, &post));
	pair_free(pair);
}

/* The answer goes when the data are there, and then the offer ends; its key before it. */
static void offer_ends_when_the_operation_has(void **state)
{
	struct pair *pair = pair_make(false);
	struct rbx_wire_exchange message;
	struct rbx_exchange_end end;

	(void)state;
	make_offer(&pair->b, 7, 100, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	operate(&pair->a, 7, 50, WRITE, NEVER_NS);
	post_one(&pair->a);
	assert_false(rbx_exchange_next_message(pair->a.exchange, &message));
	expect_nothing(&pair->a);
	rbx_exchange_completed(pair->a.exchange, 0, 0);
	expect_end(&pair->a, false, 0, 0, 50);
	carry(&pair->a, &pair->b);
	assert_false(rbx_exchange_next_end(pair->b.exchange, &end)); /* its key is open */
	expect_end(&pair->b, true, 0, 0, 50);
	assert_false(pair->b.is_open[0]);
	pair_free(pair);
}

/* Behind a write, but never behind a read, whose data come back later than a message goes. */
static void ordered_answer_goes_right_behind_a_write(void **state)
{
	struct pair *pair = pair_make(true);
	struct rbx_wire_exchange message;

	(void)state;
	make_offer(&pair->b, 7, 100, WRITE, NEVER_NS);
	make_offer(&pair->b, 8, 100, READ, NEVER_NS);
	carry(&pair->b, &pair->a);
	operate(&pair->a, 7, 50, WRITE, NEVER_NS);
	post_one(&pair->a);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, 0, 50);
	rbx_exchange_completed(pair->a.exchange, 0, 0);
	expect_end(&pair->a, false, 0, 0, 50);
	operate(&pair->a, 8, 50, READ, NEVER_NS);
	post_one(&pair->a);
	assert_false(rbx_exchange_next_message(pair->a.exchange, &message));
	rbx_exchange_completed(pair->a.exchange, 0, 0);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 1, 0, 50);
	pair_free(pair);
}

/* ---- What does not go together --------------------------------------------------------*/

static void length_that_does_not_fit_ends_both(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	assert_int_equal(operate(&pair->a, 7, 101, WRITE, NEVER_NS), 0);
	make_offer(&pair->b, 7, 100, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	expect_end(&pair->a, false, 0, -EMSGSIZE, 0);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, -EMSGSIZE, 0);
	/* The other way round the call says it. */
	make_offer(&pair->b, 7, 100, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	assert_int_equal(operate(&pair->a, 7, 101, WRITE, NEVER_NS), -EMSGSIZE);
	expect_nothing(&pair->a);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, -EMSGSIZE, 0);
	assert_int_equal(operate(&pair->a, 7, 100, WRITE, NEVER_NS), 0);
	make_offer(&pair->b, 7, 100, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	assert_int_equal(post_one(&pair->a).length_bytes, 100);
	pair_free(pair);
}

static void two_that_write_end_both(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	operate(&pair->a, 7, 10, WRITE, NEVER_NS);
	make_offer(&pair->b, 7, 10, READ, NEVER_NS);
	carry(&pair->b, &pair->a);
	expect_end(&pair->a, false, 0, -EPROTOTYPE, 0);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, -EPROTOTYPE, 0);
	pair_free(pair);
}

static void tag_in_use_is_refused_here(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	assert_int_equal(operate(&pair->a, 7, 10, WRITE, NEVER_NS), 0);
	assert_int_equal(operate(&pair->a, 7, 10, WRITE, NEVER_NS), -EEXIST);
	assert_int_equal(make_offer(&pair->a, 7, 10, WRITE, NEVER_NS), 0); /* another table */
	assert_int_equal(make_offer(&pair->a, 7, 10, WRITE, NEVER_NS), -EEXIST);
	carry(&pair->a, &pair->b);
	assert_int_equal(make_offer(&pair->a, 7, 10, WRITE, NEVER_NS), -EEXIST);
	pair_free(pair);
}

static void full_table_is_eagain(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	for (uint32_t tag = 0; tag < PAIR_COUNT; tag++) {
		assert_int_equal(operate(&pair->a, tag, 10, WRITE, NEVER_NS), tag);
		assert_int_equal(make_offer(&pair->a, tag, 10, WRITE, NEVER_NS), tag);
	}
	assert_int_equal(operate(&pair->a, 50, 10, WRITE, NEVER_NS), -EAGAIN);
	assert_int_equal(make_offer(&pair->a, 50, 10, WRITE, NEVER_NS), -EAGAIN);
	pair_free(pair);
}

/* ---- Deadlines --------------------------------------------------------------------------*/

static void operation_without_an_offer_times_out(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	operate(&pair->a, 7, 10, WRITE, 100);
	operate(&pair->a, 8, 10, WRITE, 200);
	assert_int_equal(rbx_exchange_due_ns(pair->a.exchange), 100);
	rbx_exchange_tick(pair->a.exchange, 99);
	expect_nothing(&pair->a);
	rbx_exchange_tick(pair->a.exchange, 100);
	expect_end(&pair->a, false, 0, -ETIMEDOUT, 0);
	expect_nothing(&pair->a);
	assert_int_equal(rbx_exchange_due_ns(pair->a.exchange), 200);
	pair_free(pair);
}

/* It has its key, but the host had no room to post it. The offer is there for another one. */
static void operation_that_is_late_leaves_its_offer(void **state)
{
	struct pair *pair = pair_make(false);
	struct rbx_exchange_post post;

	(void)state;
	make_offer(&pair->b, 7, 10, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	operate(&pair->a, 7, 10, WRITE, 100);
	rbx_exchange_tick(pair->a.exchange, 100);
	expect_end(&pair->a, false, 0, -ETIMEDOUT, 0);
	assert_false(rbx_exchange_next_post(pair->a.exchange, &post));
	assert_int_equal(operate(&pair->a, 7, 10, WRITE, 300), 0);
	post_one(&pair->a);
	/* The device has it, whatever the deadline was. */
	rbx_exchange_tick(pair->a.exchange, 1000);
	expect_nothing(&pair->a);
	assert_int_equal(rbx_exchange_due_ns(pair->a.exchange), NEVER_NS);
	pair_free(pair);
}

static void offer_that_is_late_is_withdrawn_first(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	make_offer(&pair->b, 7, 10, WRITE, 100);
	carry(&pair->b, &pair->a);
	rbx_exchange_tick(pair->b.exchange, 100);
	expect_nothing(&pair->b);
	assert_true(pair->b.is_open[0]);
	carry(&pair->b, &pair->a);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, -ETIMEDOUT, 0);
	/* The peer does not use it any more. */
	operate(&pair->a, 7, 10, WRITE, NEVER_NS);
	make_offer(&pair->b, 7, 10, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	post_one(&pair->a);
	pair_free(pair);
}

static void unsent_offer_that_is_late_needs_no_answer(void **state)
{
	struct pair *pair = pair_make(false);
	struct rbx_wire_exchange message;

	(void)state;
	make_offer(&pair->b, 7, 10, WRITE, 100);
	rbx_exchange_tick(pair->b.exchange, 100);
	expect_end(&pair->b, true, 0, -ETIMEDOUT, 0);
	assert_false(rbx_exchange_next_message(pair->b.exchange, &message));
	pair_free(pair);
}

/* WITHDRAW and the data cross each other. */
static void offer_that_is_used_while_withdrawn_is_done(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	make_offer(&pair->b, 7, 10, WRITE, 100);
	operate(&pair->a, 7, 10, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	post_one(&pair->a);
	rbx_exchange_tick(pair->b.exchange, 100);
	carry(&pair->b, &pair->a);
	carry(&pair->a, &pair->b);
	expect_nothing(&pair->b);
	rbx_exchange_completed(pair->a.exchange, 0, 0);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, 0, 10);
	/* A WITHDRAW that comes after the answer has nothing to say. */
	make_offer(&pair->b, 9, 10, WRITE, 100);
	operate(&pair->a, 9, 20, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	say(&pair->a);
	rbx_exchange_tick(pair->b.exchange, 100);
	carry(&pair->b, &pair->a);
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, -EMSGSIZE, 0);
	pair_free(pair);
}

/* An operation that had taken it, and was not posted, waits for another one. */
static void withdrawn_offer_leaves_its_operation(void **state)
{
	struct pair *pair = pair_make(false);
	struct rbx_exchange_post post;

	(void)state;
	make_offer(&pair->b, 7, 10, WRITE, 100);
	operate(&pair->a, 7, 10, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	rbx_exchange_tick(pair->b.exchange, 100);
	carry(&pair->b, &pair->a);
	assert_false(rbx_exchange_next_post(pair->a.exchange, &post));
	carry(&pair->a, &pair->b);
	expect_end(&pair->b, true, 0, -ETIMEDOUT, 0);
	make_offer(&pair->b, 7, 10, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	post_one(&pair->a);
	pair_free(pair);
}

/* The program has its buffer after the grace, and the entry stays until the peer has answered:
 * else what it answers would be taken for another offer's. */
static void silent_peer_does_not_keep_a_buffer(void **state)
{
	const uint64_t over_ns =
		100 + RBX_EXCHANGE_GRACE_NS + 10 * RBX_EXCHANGE_GRACE_BYTE_NS;
	struct pair *pair = pair_make(false);

	(void)state;
	for (uint64_t tag = 0; tag < PAIR_COUNT; tag++)
		make_offer(&pair->b, tag, 10, WRITE, 100);
	say(&pair->b);
	rbx_exchange_tick(pair->b.exchange, 100);
	say(&pair->b);
	assert_int_equal(rbx_exchange_due_ns(pair->b.exchange), over_ns);
	rbx_exchange_tick(pair->b.exchange, over_ns - 1);
	expect_nothing(&pair->b);
	rbx_exchange_tick(pair->b.exchange, over_ns);
	for (int tag = 0; tag < (int)PAIR_COUNT; tag++)
		expect_end(&pair->b, true, tag, -ETIMEDOUT, 0);
	assert_int_equal(make_offer(&pair->b, 9, 10, WRITE, NEVER_NS), -EAGAIN);
	carry(&pair->b, &pair->a);
	carry(&pair->a, &pair->b);
	expect_nothing(&pair->b);
	assert_int_equal(make_offer(&pair->b, 9, 10, WRITE, NEVER_NS), 0);
	pair_free(pair);
}

/* The connection takes no message, so that WITHDRAW cannot go out: the buffer comes back all the
 * same. The peer is still asked when it can be, and its answer frees the entry. */
static void peer_that_takes_nothing_does_not_keep_a_buffer(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	for (uint64_t tag = 0; tag < PAIR_COUNT; tag++)
		make_offer(&pair->b, tag, 10, WRITE, 100);
	carry(&pair->b, &pair->a);
	rbx_exchange_tick(pair->b.exchange, 100);
	rbx_exchange_tick(pair->b.exchange, 100 + 2 * RBX_EXCHANGE_GRACE_NS);
	for (int tag = 0; tag < (int)PAIR_COUNT; tag++)
		expect_end(&pair->b, true, tag, -ETIMEDOUT, 0);
	assert_int_equal(make_offer(&pair->b, 9, 10, WRITE, NEVER_NS), -EAGAIN);
	say(&pair->b);
	assert_int_equal(pair->b.wire_count, PAIR_COUNT);
	carry(&pair->b, &pair->a);
	carry(&pair->a, &pair->b);
	assert_int_equal(make_offer(&pair->b, 9, 10, WRITE, NEVER_NS), 0);
	/* Nothing of the old offer is left in the new one. */
	say(&pair->b);
	assert_int_equal(pair->b.wire_count, 1);
	assert_int_equal(pair->b.wire[0].type, RBX_WIRE_OFFER);
	pair_free(pair);
}

/* ---- A peer that does what it must not ----------------------------------------------------*/

static int hear(struct end *end, struct rbx_wire_exchange message)
{
	return rbx_exchange_hear(end->exchange, &message);
}

static struct rbx_wire_exchange offer_message(uint64_t id, uint64_t tag)
{
	return (struct rbx_wire_exchange){
		.type = RBX_WIRE_OFFER,
		.id = id,
		.tag = tag,
		.access = WRITE,
		.length_bytes = 10,
	};
}

static struct rbx_wire_exchange end_message(uint64_t id, uint16_t how, uint32_t length_bytes)
{
	return (struct rbx_wire_exchange){
		.type = RBX_WIRE_OFFER_END,
		.id = id,
		.end = how,
		.length_bytes = length_bytes,
	};
}

/* The first of them counts, whether it waits or is in use. */
static void tag_that_is_offered_twice_is_refused(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	for (uint64_t round = 0; round < 2; round++) {
		assert_int_equal(hear(&pair->a, offer_message(10 + round, 7)), 0);
		say(&pair->a);
		assert_int_equal(pair->a.wire_count, round);
		if (round == 0)
			operate(&pair->a, 7, 10, WRITE, NEVER_NS);
	}
	assert_int_equal(pair->a.wire[0].id, 11);
	assert_int_equal(pair->a.wire[0].end, RBX_WIRE_OFFER_TWICE);
	post_one(&pair->a);
	assert_int_equal(hear(&pair->a, offer_message(12, 7)), 0);
	say(&pair->a);
	assert_int_equal(pair->a.wire[1].end, RBX_WIRE_OFFER_TWICE);
	rbx_exchange_completed(pair->a.exchange, 0, 0);
	expect_end(&pair->a, false, 0, 0, 10);
	pair_free(pair);
}

static void refused_offer_tells_its_owner_why(void **state)
{
	static const struct {
		uint16_t end;
		int status;
	} ends[] = {
		{ RBX_WIRE_OFFER_TOO_SHORT, -EMSGSIZE },
		{ RBX_WIRE_OFFER_WRONG_ACCESS, -EPROTOTYPE },
		{ RBX_WIRE_OFFER_TWICE, -EEXIST },
		{ RBX_WIRE_OFFER_NO_ROOM, -ENOBUFS },
	};
	struct pair *pair = pair_make(false);
	uint64_t id;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		make_offer(&pair->b, 7, 10, WRITE, NEVER_NS);
		say(&pair->b);
		id = wire_take(&pair->b).id;
		assert_int_equal(hear(&pair->b, end_message(id, ends[i].end, 0)), 0);
		expect_end(&pair->b, true, 0, ends[i].status, 0);
	}
	pair_free(pair);
}

/* As many as there are operations are kept. One that somebody waits for is always taken. */
static void offers_that_nobody_wants_are_bounded(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	operate(&pair->a, 99, 10, WRITE, NEVER_NS);
	for (uint64_t i = 0; i < PAIR_COUNT; i++)
		assert_int_equal(hear(&pair->a, offer_message(10 + i, i)), 0);
	say(&pair->a);
	assert_int_equal(pair->a.wire_count, 0);
	assert_int_equal(hear(&pair->a, offer_message(50, 50)), 0);
	say(&pair->a);
	assert_int_equal(wire_take(&pair->a).end, RBX_WIRE_OFFER_NO_ROOM);
	assert_int_equal(hear(&pair->a, offer_message(51, 99)), 0);
	post_one(&pair->a);
	/* There is room again. */
	assert_int_equal(operate(&pair->a, 0, 10, WRITE, NEVER_NS), 1);
	assert_int_equal(hear(&pair->a, offer_message(52, 52)), 0);
	say(&pair->a);
	assert_int_equal(pair->a.wire_count, 0);
	pair_free(pair);
}

static void offers_beyond_the_protocol_are_eproto(void **state)
{
	struct pair *pair = pair_make(false);

	(void)state;
	for (uint64_t i = 0; i < RBX_WIRE_OFFERS_MAX; i++) {
		assert_int_equal(hear(&pair->a, offer_message(10 + i, i)), 0);
		if (i == 0) /* an id that is in use */
			assert_int_equal(hear(&pair->a, offer_message(10, 99)), -EPROTO);
	}
	assert_int_equal(hear(&pair->a, offer_message(5, 1000)), -EPROTO);
	pair_free(pair);
}

static void answer_to_nothing_is_eproto(void **state)
{
	struct pair *pair = pair_make(false);
	uint64_t id;

	(void)state;
	assert_int_equal(hear(&pair->b, end_message(256, RBX_WIRE_OFFER_DONE, 1)), -EPROTO);
	assert_int_equal(hear(&pair->b, end_message(256 + PAIR_COUNT, RBX_WIRE_OFFER_DONE, 1)),
			 -EPROTO);
	/* It is not sent yet. */
	make_offer(&pair->b, 7, 10, WRITE, NEVER_NS);
	assert_int_equal(hear(&pair->b, end_message(256, RBX_WIRE_OFFER_DONE, 1)), -EPROTO);
	say(&pair->b);
	id = wire_take(&pair->b).id;
	assert_int_equal(hear(&pair->b, end_message(id + 256, RBX_WIRE_OFFER_DONE, 1)), -EPROTO);
	/* More than was offered; an answer to WITHDRAW, which was not sent. */
	assert_int_equal(hear(&pair->b, end_message(id, RBX_WIRE_OFFER_DONE, 11)), -EPROTO);
	assert_int_equal(hear(&pair->b, end_message(id, RBX_WIRE_OFFER_WITHDRAWN, 0)), -EPROTO);
	assert_int_equal(hear(&pair->b, end_message(id, RBX_WIRE_OFFER_DONE, 10)), 0);
	assert_int_equal(hear(&pair->b, end_message(id, RBX_WIRE_OFFER_DONE, 10)), -EPROTO);
	expect_end(&pair->b, true, 0, 0, 10);
	pair_free(pair);
}

/* ---- The end of the connection ------------------------------------------------------------*/

static void broken_connection_ends_all(void **state)
{
	struct pair *pair = pair_make(false);
	struct rbx_wire_exchange message;
	struct rbx_exchange_post post;

	(void)state;
	make_offer(&pair->b, 1, 10, WRITE, NEVER_NS);
	make_offer(&pair->b, 2, 10, WRITE, NEVER_NS);
	carry(&pair->b, &pair->a);
	operate(&pair->a, 1, 10, WRITE, NEVER_NS);
	post_one(&pair->a);
	operate(&pair->a, 2, 10, WRITE, NEVER_NS);
	operate(&pair->a, 3, 10, WRITE, NEVER_NS);
	make_offer(&pair->a, 4, 10, WRITE, NEVER_NS);
	rbx_exchange_break(pair->a.exchange, -EHOSTUNREACH);
	rbx_exchange_break(pair->a.exchange, -ECANCELED); /* too late */
	assert_false(rbx_exchange_next_post(pair->a.exchange, &post));
	assert_false(rbx_exchange_next_message(pair->a.exchange, &message));
	expect_end(&pair->a, true, 0, -EHOSTUNREACH, 0);
	expect_end(&pair->a, false, 1, -EHOSTUNREACH, 0);
	expect_end(&pair->a, false, 2, -EHOSTUNREACH, 0);
	expect_nothing(&pair->a); /* the device has one yet */
	rbx_exchange_completed(pair->a.exchange, 0, -EACCES);
	expect_end(&pair->a, false, 0, -EACCES, 0);
	assert_int_equal(operate(&pair->a, 9, 10, WRITE, NEVER_NS), -EHOSTUNREACH);
	assert_int_equal(make_offer(&pair->a, 9, 10, WRITE, NEVER_NS), -EHOSTUNREACH);
	rbx_exchange_break(pair->b.exchange, -ECANCELED);
	expect_end(&pair->b, true, 0, -ECANCELED, 0);
	expect_end(&pair->b, true, 1, -ECANCELED, 0);
	pair_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operation_gets_the_key_of_its_tag),
		cmocka_unit_test(offer_ends_when_the_operation_has),
		cmocka_unit_test(ordered_answer_goes_right_behind_a_write),
		cmocka_unit_test(length_that_does_not_fit_ends_both),
		cmocka_unit_test(two_that_write_end_both),
		cmocka_unit_test(tag_in_use_is_refused_here),
		cmocka_unit_test(full_table_is_eagain),
		cmocka_unit_test(operation_without_an_offer_times_out),
		cmocka_unit_test(operation_that_is_late_leaves_its_offer),
		cmocka_unit_test(offer_that_is_late_is_withdrawn_first),
		cmocka_unit_test(unsent_offer_that_is_late_needs_no_answer),
		cmocka_unit_test(offer_that_is_used_while_withdrawn_is_done),
		cmocka_unit_test(withdrawn_offer_leaves_its_operation),
		cmocka_unit_test(silent_peer_does_not_keep_a_buffer),
		cmocka_unit_test(peer_that_takes_nothing_does_not_keep_a_buffer),
		cmocka_unit_test(tag_that_is_offered_twice_is_refused),
		cmocka_unit_test(refused_offer_tells_its_owner_why),
		cmocka_unit_test(offers_that_nobody_wants_are_bounded),
		cmocka_unit_test(offers_beyond_the_protocol_are_eproto),
		cmocka_unit_test(answer_to_nothing_is_eproto),
		cmocka_unit_test(broken_connection_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
