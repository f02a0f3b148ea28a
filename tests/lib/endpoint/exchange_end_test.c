/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_end_test.c - how exchanges end that do not go well: what does not fit, what comes
 * too late, twice or never, a peer that lies, dies or says nothing. Each end has its status,
 * no registration is left, and nobody reaches a buffer whose offer has completed.
 */
#include <unistd.h>

#include "tests/lib/exchanges.h"
#include "wire/exchange.h"

static struct rbx_completion completion_of(const struct side *side, enum rbx_completion_kind kind,
					   uintptr_t user, int status)
{
	struct rbx_completion completion = next_of(side);

	completion_is(&completion, side, kind, user, status, 0);
	return completion;
}

/* ---- What does not go together --------------------------------------------------------*/

static void mismatch_ends_both(void **state)
{
	struct rbx_completion of_a, of_b;
	struct endpoints e;
	uint64_t alive;

	(void)state;
	open_exchanging(&e, 4);
	alive = alive_of(&e.b);
	assert_int_equal(conditional_write(&e.a, 7, 0, 101, LONG_MS, 1), 0);
	assert_int_equal(offer(&e.b, 7, 0, 100, RBX_OFFER_TO_WRITE, LONG_MS, 2), 0);
	poll_both(&e, &of_a, &of_b);
	completion_is(&of_a, &e.a, RBX_COMPLETION_POSTED, 1, -EMSGSIZE, 0);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, -EMSGSIZE, 0);
	assert_int_equal(conditional_read(&e.a, 7, 0, 100, LONG_MS, 1), 0);
	assert_int_equal(offer(&e.b, 7, 0, 100, RBX_OFFER_TO_WRITE, LONG_MS, 2), 0);
	poll_both(&e, &of_a, &of_b);
	completion_is(&of_a, &e.a, RBX_COMPLETION_POSTED, 1, -EPROTOTYPE, 0);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, -EPROTOTYPE, 0);
	assert_int_equal(alive_of(&e.b), alive);
	endpoints_close(&e);
}

static void offers_that_nobody_wants_are_refused(void **state)
{
	struct endpoints e;
	struct meeting meeting = { .endpoints = &e, .b_options = &endpoint_options };
	struct rbx_completion of_b;

	(void)state;
	sides_open(&e);
	endpoint_options.exchanges = 4;
	meeting.a_options = endpoint_options;
	meeting.a_options.exchanges = 2;
	assert_int_equal(meet(&meeting), 0);
	for (uint64_t tag = 0; tag < 3; tag++)
		assert_int_equal(offer(&e.b, tag, 0, 100, RBX_OFFER_TO_WRITE, LONG_MS, tag), 0);
	poll_both(&e, NULL, &of_b);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, -ENOBUFS, 0);
	endpoints_close(&e);
}

static void what_is_refused_at_once_leaves_nothing(void **state)
{
	const struct rbx_operation send = { .kind = RBX_OPERATION_SEND };
	const struct rbx_receive receive = { NULL, 0, NULL };
	struct endpoints e;
	uint64_t alive_a, alive_b;

	(void)state;
	open_exchanging(&e, 2);
	assert_int_equal(conditional_write(&e.a, 1, 0, 100, 0, 1), 0);
	assert_int_equal(offer(&e.b, 2, 0, 100, RBX_OFFER_TO_WRITE, 0, 1), 0);
	alive_a = alive_of(&e.a);
	alive_b = alive_of(&e.b);
	assert_int_equal(conditional_write(&e.a, 1, 0, 100, 0, 1), -EEXIST);
	assert_int_equal(offer(&e.b, 2, 0, 100, RBX_OFFER_TO_WRITE, 0, 1), -EEXIST);
	assert_int_equal(conditional_write(&e.a, 3, 0, 0, 0, 1), -EINVAL);
	assert_int_equal(offer(&e.b, 3, 0, 0, RBX_OFFER_TO_WRITE, 0, 1), -EINVAL);
	assert_int_equal(offer(&e.b, 3, 0, 1, (enum rbx_offer_access)7, 0, 1), -EINVAL);
	assert_int_equal(rbx_conditional_write(e.a.endpoint, 3, NULL, 0, NULL), -EINVAL);
	assert_int_equal(rbx_conditional_read(NULL, 3, NULL, 0, NULL), -EINVAL);
	assert_int_equal(alive_of(&e.a), alive_a);
	assert_int_equal(alive_of(&e.b), alive_b);
	assert_int_equal(conditional_read(&e.a, 3, 0, 1, 0, 1), 0);
	assert_int_equal(conditional_read(&e.a, 4, 0, 1, 0, 1), -EAGAIN);
	assert_int_equal(offer(&e.b, 3, 0, 1, RBX_OFFER_TO_READ, 0, 1), 0);
	assert_int_equal(offer(&e.b, 4, 0, 1, RBX_OFFER_TO_READ, 0, 1), -EAGAIN);
	/* The messages are not the program's. */
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, &send, 1), -EINVAL);
	assert_int_equal(rbx_endpoint_receive(e.a.endpoint, &receive, 1), -EINVAL);
	endpoints_close(&e);
}

static void endpoint_without_exchanges_is_refused(void **state)
{
	struct endpoints e;

	(void)state;
	open_exchanging(&e, 0);
	assert_int_equal(conditional_write(&e.a, 1, 0, 100, 0, 1), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "exchanges=0"));
	assert_int_equal(offer(&e.b, 1, 0, 100, RBX_OFFER_TO_WRITE, 0, 1), -EINVAL);
	endpoints_close(&e);
}

/* ---- Deadlines ------------------------------------------------------------------------*/

/* The thread that sleeps wakes for them. The other side says nothing: nobody polls there. */
static void operation_without_an_offer_times_out(void **state)
{
	struct endpoints e;
	uint64_t alive;

	(void)state;
	open_exchanging(&e, 4);
	alive = alive_of(&e.a);
	assert_int_equal(conditional_write(&e.a, 7, 0, 100, 20, 1), 0);
	completion_of(&e.a, RBX_COMPLETION_POSTED, 1, -ETIMEDOUT);
	assert_int_equal(alive_of(&e.a), alive);
	endpoints_close(&e);
}

static void offer_that_nobody_uses_times_out(void **state)
{
	struct rbx_completion of_a, of_b;
	struct endpoints e;
	uint64_t alive;

	(void)state;
	open_exchanging(&e, 4);
	alive = alive_of(&e.b);
	assert_int_equal(offer(&e.b, 7, 0, 100, RBX_OFFER_TO_WRITE, 20, 2), 0);
	poll_both(&e, NULL, &of_b);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, -ETIMEDOUT, 0);
	assert_int_equal(alive_of(&e.b), alive);
	/* The tag and the endpoint are as good as new. */
	fill(&e.a, 0, 100, 9);
	assert_int_equal(offer(&e.b, 7, 0, 100, RBX_OFFER_TO_WRITE, LONG_MS, 2), 0);
	assert_int_equal(conditional_write(&e.a, 7, 0, 100, LONG_MS, 1), 0);
	poll_both(&e, &of_a, &of_b);
	completion_is(&of_b, &e.b, RBX_COMPLETION_OFFERED, 2, 0, 100);
	assert_memory_equal(e.b.memory, e.a.memory, 100);
	endpoints_close(&e);
}

/* ---- The end of the connection ----------------------------------------------------------*/

static void outstanding_of_each_kind(struct endpoints *e)
{
	assert_int_equal(conditional_write(&e->a, 1, 0, 100, 0, 1), 0);
	assert_int_equal(conditional_read(&e->a, 2, 0, 100, 0, 2), 0);
	assert_int_equal(offer(&e->a, 3, 0, 100, RBX_OFFER_TO_WRITE, 0, 3), 0);
	assert_int_equal(offer(&e->a, 4, 0, 100, RBX_OFFER_TO_READ, 0, 4), 0);
}

static void all_four_end_with(struct endpoints *e, int status)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < 4; i++) {
		struct rbx_completion completion = next_of(&e->a);

		assert_int_equal(completion.status, status);
		seen |= 1u << (uintptr_t)completion.user;
	}
	assert_int_equal(seen, 0x1e);
	assert_int_equal(conditional_write(&e->a, 1, 0, 100, 0, 1), status);
	assert_int_equal(offer(&e->a, 3, 0, 100, RBX_OFFER_TO_WRITE, 0, 3), status);
}

static void peer_that_dies_ends_all(void **state)
{
	struct endpoints e;
	uint64_t alive;

	(void)state;
	open_exchanging(&e, 4);
	alive = alive_of(&e.a);
	outstanding_of_each_kind(&e);
	assert_int_equal(rbx_endpoint_close(e.b.endpoint), 0);
	e.b.endpoint = NULL;
	all_four_end_with(&e, -EHOSTUNREACH);
	assert_int_equal(alive_of(&e.a), alive);
	endpoints_close(&e);
}

static void disconnecting_cancels_all(void **state)
{
	struct endpoints e;
	uint64_t alive;

	(void)state;
	for (uint32_t paced = 0; paced < 2; paced++) {
		endpoint_options.paced = (uint8_t)paced;
		open_exchanging(&e, 4);
		alive = alive_of(&e.a);
		outstanding_of_each_kind(&e);
		rbx_endpoint_disconnect(e.a.endpoint);
		all_four_end_with(&e, -ECANCELED);
		assert_int_equal(alive_of(&e.a), alive);
		endpoints_close(&e);
	}
	endpoint_options.paced = 0;
}

/* rbx_close() of the test would fail if a region was left. */
static void closing_takes_all_back(void **state)
{
	struct meeting meeting = { .endpoints = NULL };
	struct rbx_completion none;
	struct endpoints e;
	uint64_t alive;

	(void)state;
	for (uint32_t round = 0; round < 3; round++) {
		endpoint_options.paced = round == 2;
		endpoint_options.exchanges = 4;
		sides_open(&e);
		alive = alive_of(&e.a);
		meeting = (struct meeting){
			.endpoints = &e,
			.a_options = endpoint_options,
			.b_options = &endpoint_options,
		};
		assert_int_equal(meet(&meeting), 0);
		outstanding_of_each_kind(&e);
		assert_int_equal(offer(&e.b, 1, 0, 100, RBX_OFFER_TO_WRITE, 0, 5), 0);
		assert_int_equal(conditional_read(&e.b, 4, 0, 100, 0, 5), 0);
		if (round) /* it is posted, or done and not polled */
			assert_int_equal(rbx_queue_poll(e.b.queue, &none, 1, 0), 0);
		assert_int_equal(rbx_endpoint_close(e.a.endpoint), 0);
		e.a.endpoint = NULL;
		assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 0), 0);
		assert_int_equal(alive_of(&e.a), alive);
		endpoints_close(&e);
	}
	endpoint_options.paced = 0;
}

/* ---- A peer that does what it must not ----------------------------------------------------*/

/* b has no exchanges: the test says what it likes. Room for what a says. */
static void open_hostile(struct endpoints *e)
{
	struct rbx_endpoint_options plain = endpoint_options;
	struct meeting meeting = { .endpoints = e, .b_options = &plain };

	plain.exchanges = 0;
	endpoint_options.exchanges = 4;
	meeting.a_options = endpoint_options;
	sides_open(e);
	assert_int_equal(meet(&meeting), 0);
	for (uint32_t i = 0; i < 8; i++)
		receive_at(&e->b, i * KIB, KIB, 50 + i);
}

/* Bytes of b, behind its receives. */
#define SAID_AT (64 * KIB)
#define DATA_AT (65 * KIB)

static void say_bytes(struct endpoints *e, uint32_t length_bytes)
{
	const struct rbx_operation send = { .kind = RBX_OPERATION_SEND };

	assert_int_equal(post_one(&e->b, send, SAID_AT, length_bytes), 0);
}

static void say(struct endpoints *e, const struct rbx_wire_exchange *message)
{
	rbx_wire_exchange_encode(message, e->b.memory + SAID_AT);
	say_bytes(e, RBX_WIRE_EXCHANGE_BYTES);
	expect(&e->b, RBX_COMPLETION_POSTED, 0, 0);
}

static void say_offer(struct endpoints *e, uint64_t id, uint64_t tag, uint32_t key)
{
	say(e, &(struct rbx_wire_exchange){
		       .type = RBX_WIRE_OFFER,
		       .id = id,
		       .tag = tag,
		       .access = RBX_WIRE_OFFER_TO_WRITE,
		       .address = e->b.key.address + DATA_AT,
		       .key = key,
		       .length_bytes = KIB,
	       });
}

/* What a says, as it polls. */
static struct rbx_wire_exchange heard(struct endpoints *e)
{
	struct rbx_completion completion, of_a;
	struct rbx_wire_exchange message;

	for (uint32_t i = 0; i < LONG_MS; i++) {
		assert_int_equal(rbx_queue_poll(e->a.queue, &of_a, 1, 0), 0);
		if (rbx_queue_poll(e->b.queue, &completion, 1, 1) == 1)
			break;
	}
	assert_int_equal(completion.status, 0);
	assert_int_equal(completion.kind, RBX_COMPLETION_RECEIVED);
	assert_int_equal(rbx_wire_exchange_decode(
				 e->b.memory + ((uintptr_t)completion.user - 50) * KIB,
				 completion.length_bytes, &message),
			 0);
	return message;
}

/* The next write of b by a key of a fails. */
static void write_is_refused(struct endpoints *e, const struct rbx_wire_exchange *of_a)
{
	const struct rbx_operation write = {
		.kind = RBX_OPERATION_WRITE,
		.key = of_a->key,
		.address = of_a->address,
		.user = (void *)9,
	};
	struct rbx_completion completion;

	assert_int_equal(post_one(&e->b, write, DATA_AT, KIB), 0);
	do
		completion = next_of(&e->b);
	while (completion.user != (void *)9);
	assert_int_equal(completion.status, -EACCES);
}

static void late_write_is_refused(void **state)
{
	struct rbx_wire_exchange message;
	struct endpoints e;

	(void)state;
	open_hostile(&e);
	assert_int_equal(offer(&e.a, 7, 0, KIB, RBX_OFFER_TO_WRITE, 0, 1), 0);
	message = heard(&e);
	assert_int_equal(message.type, RBX_WIRE_OFFER);
	assert_int_equal(message.tag, 7);
	memset(e.b.memory + DATA_AT, 0xee, KIB);
	say(&e, &(struct rbx_wire_exchange){
			.type = RBX_WIRE_OFFER_END, .id = message.id, .length_bytes = 1 });
	assert_int_equal(next_of(&e.a).status, 0);
	write_is_refused(&e, &message);
	for (uint32_t i = 0; i < KIB; i++)
		assert_int_equal(e.a.memory[i], 0);
	endpoints_close(&e);
}

/* It holds the offer, and answers nothing. After the grace the buffer is the program's. */
static void silent_peer_is_shut_out(void **state)
{
	struct rbx_wire_exchange message;
	struct endpoints e;
	uint64_t alive;

	(void)state;
	open_hostile(&e);
	alive = alive_of(&e.a);
	assert_int_equal(offer(&e.a, 7, 0, KIB, RBX_OFFER_TO_WRITE, 10, 1), 0);
	message = heard(&e);
	assert_int_equal(heard(&e).type, RBX_WIRE_OFFER_WITHDRAW);
	completion_of(&e.a, RBX_COMPLETION_OFFERED, 1, -ETIMEDOUT);
	assert_int_equal(alive_of(&e.a), alive);
	write_is_refused(&e, &message);
	endpoints_close(&e);
}

static void key_that_opens_nothing_is_eacces(void **state)
{
	struct endpoints e;
	struct rbx_completion first;
	uint64_t alive;

	(void)state;
	for (uint32_t paced = 0; paced < 2; paced++) {
		endpoint_options.paced = (uint8_t)paced;
		open_hostile(&e);
		alive = alive_of(&e.a);
		assert_int_equal(conditional_write(&e.a, 7, 0, KIB, 0, 1), 0);
		assert_int_equal(conditional_write(&e.a, 8, 0, KIB, 0, 2), 0);
		say_offer(&e, 1, 7, e.b.key.key ^ 0x5555);
		first = next_of(&e.a);
		if (first.user == (void *)1) {
			assert_int_equal(first.status, -EACCES);
			completion_of(&e.a, RBX_COMPLETION_POSTED, 2, -ECANCELED);
		} else {
			assert_int_equal(first.status, -ECANCELED);
			completion_of(&e.a, RBX_COMPLETION_POSTED, 1, -EACCES);
		}
		assert_int_equal(alive_of(&e.a), alive);
		endpoints_close(&e);
	}
	endpoint_options.paced = 0;
}

/* The first counts; the second is answered, and the connection goes on. */
static void tag_that_is_offered_twice_is_refused(void **state)
{
	struct rbx_wire_exchange message;
	struct endpoints e;

	(void)state;
	open_hostile(&e);
	say_offer(&e, 1, 7, e.b.key.key);
	say_offer(&e, 2, 7, e.b.key.key ^ 0x5555);
	message = heard(&e);
	assert_int_equal(message.type, RBX_WIRE_OFFER_END);
	assert_int_equal(message.id, 2);
	assert_int_equal(message.end, RBX_WIRE_OFFER_TWICE);
	fill(&e.a, 0, KIB, 11);
	assert_int_equal(conditional_write(&e.a, 7, 0, KIB, 0, 1), 0);
	assert_int_equal(next_of(&e.a).status, 0);
	message = heard(&e);
	assert_int_equal(message.id, 1);
	assert_int_equal(message.end, RBX_WIRE_OFFER_DONE);
	assert_int_equal(message.length_bytes, KIB);
	assert_memory_equal(e.b.memory + DATA_AT, e.a.memory, KIB);
	endpoints_close(&e);
}

static void garbage_is_said(struct endpoints *e)
{
	memset(e->b.memory + SAID_AT, 0x77, RBX_WIRE_EXCHANGE_BYTES);
	say_bytes(e, RBX_WIRE_EXCHANGE_BYTES);
}

static void little_is_said(struct endpoints *e)
{
	say_bytes(e, 5);
}

static void much_is_said(struct endpoints *e)
{
	say_bytes(e, RBX_WIRE_EXCHANGE_BYTES + 1);
}

static void answer_to_nothing_is_said(struct endpoints *e)
{
	rbx_wire_exchange_encode(&(struct rbx_wire_exchange){ .type = RBX_WIRE_OFFER_END,
							      .id = 4242,
							      .length_bytes = 1 },
				 e->b.memory + SAID_AT);
	say_bytes(e, RBX_WIRE_EXCHANGE_BYTES);
}

static void immediate_is_said(struct endpoints *e)
{
	struct rbx_operation write = operation_at(&e->a, RBX_OPERATION_WRITE, 0);

	write.flags = RBX_OPERATION_IMMEDIATE;
	assert_int_equal(post_one(&e->b, write, SAID_AT, 8), 0);
}

static void peer_that_breaks_the_protocol_is_cut_off(void **state)
{
	void (*const ways[])(struct endpoints *e) = {
		garbage_is_said,
		little_is_said,
		much_is_said,
		answer_to_nothing_is_said,
		immediate_is_said,
	};
	struct rbx_completion completion;
	struct endpoints e;
	uint64_t alive;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		open_hostile(&e);
		alive = alive_of(&e.a);
		outstanding_of_each_kind(&e);
		ways[i](&e);
		all_four_end_with(&e, -EPROTO);
		assert_int_equal(alive_of(&e.a), alive);
		do /* b sees the end */
			completion = next_of(&e.b);
		while (completion.status == 0);
		endpoints_close(&e);
	}
}

/* By a message that is right, and a key that it may end. But such messages are not the program's,
 * which would never hear of it. */
static void peer_that_ends_a_key_is_cut_off(void **state)
{
	struct rbx_operation send = {
		.kind = RBX_OPERATION_SEND,
		.flags = RBX_OPERATION_INVALIDATE,
	};
	struct rbx_region_key key;
	struct rbx_region *region;
	struct endpoints e;

	(void)state;
	open_hostile(&e);
	if (!e.a.limits.has_invalidate || is_soft_roce()) {
		endpoints_close(&e);
		return;
	}
	assert_int_equal(rbx_region_export(e.a.ctx, NULL, e.a.of_device, KIB,
					   RBX_REGION_WRITE | RBX_REGION_INVALIDATE, &region),
			 0);
	rbx_region_key(region, &key);
	outstanding_of_each_kind(&e);
	send.invalidate_key = key.key;
	rbx_wire_exchange_encode(&(struct rbx_wire_exchange){ .type = RBX_WIRE_OFFER,
							      .id = 1,
							      .tag = 99,
							      .access = RBX_WIRE_OFFER_TO_WRITE,
							      .length_bytes = 10 },
				 e.b.memory + SAID_AT);
	assert_int_equal(post_one(&e.b, send, SAID_AT, RBX_WIRE_EXCHANGE_BYTES), 0);
	all_four_end_with(&e, -EPROTO);
	rbx_region_release(region);
	endpoints_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mismatch_ends_both),
		cmocka_unit_test(offers_that_nobody_wants_are_refused),
		cmocka_unit_test(what_is_refused_at_once_leaves_nothing),
		cmocka_unit_test(endpoint_without_exchanges_is_refused),
		cmocka_unit_test(operation_without_an_offer_times_out),
		cmocka_unit_test(offer_that_nobody_uses_times_out),
		cmocka_unit_test(peer_that_dies_ends_all),
		cmocka_unit_test(disconnecting_cancels_all),
		cmocka_unit_test(closing_takes_all_back),
		cmocka_unit_test(late_write_is_refused),
		cmocka_unit_test(silent_peer_is_shut_out),
		cmocka_unit_test(key_that_opens_nothing_is_eacces),
		cmocka_unit_test(tag_that_is_offered_twice_is_refused),
		cmocka_unit_test(peer_that_breaks_the_protocol_is_cut_off),
		cmocka_unit_test(peer_that_ends_a_key_is_cut_off),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
