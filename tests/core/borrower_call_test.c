/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_call_test.c - what a borrower asks its server, and which answers count.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/core/borrower_pair.h"
#include "wire/terms.h"

static void epoch_is_of_the_last_slab_lent(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan old, loan;

	(void)state;
	assert_int_equal(pair_map(p, 3, 10, &old), 0);
	assert_int_equal(pair_map(p, 4, 11, &loan), 0);
	/* The answer about the older one is of an older epoch. */
	pair_call(p, RBX_CALL_CHECK, &old);
	pair_lend(p, 3, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	rbx_borrower_drop(&p->b);
	pair_connect(p);
	assert_int_equal(p->sent.hello.last_epoch, 11);
	free(p);
}

static void loan_that_cannot_be_moves_no_epoch(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan loan = { 0 };

	(void)state;
	assert_int_equal(pair_map(p, 3, 10, &loan), 0);
	pair_call(p, RBX_CALL_MAP, NULL);
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_SLAB_LOAN,
			    .request_id = p->sent.request_id,
			    .epoch = 12,
			    .loan = { .slab_id = 9, .length_bytes = 4096 } });
	assert_int_equal(rbx_borrower_call_end(&p->b, &loan), -EPROTO);
	assert_int_equal(loan.slab_id, 3);
	assert_int_equal(pair_map(p, 5, 10, &loan), -EPROTO); /* it went back */
	assert_int_equal(pair_map(p, 5, 9, &loan), -EPROTO);
	rbx_borrower_drop(&p->b);
	pair_connect(p);
	assert_int_equal(p->sent.hello.last_epoch, 10);
	free(p);
}

static void check_of_another_slab_is_estale(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(pair_map(p, 3, 10, &loan), 0);
	pair_call(p, RBX_CALL_CHECK, &loan);
	pair_lend(p, 3, 11);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ESTALE);
	pair_call(p, RBX_CALL_CHECK, &loan);
	pair_lend(p, 4, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ESTALE);
	free(p);
}

static void call_without_answer_loses_the_connection(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	pair_call(p, RBX_CALL_STATS, NULL);
	assert_true(rbx_borrower_tick(&p->b, p->now_ns) <=
		    p->now_ns + DEADLINE_NS);
	p->now_ns += DEADLINE_NS - 1;
	rbx_borrower_tick(&p->b, p->now_ns);
	assert_false(rbx_borrower_call_is_over(&p->b));
	p->now_ns += 1;
	rbx_borrower_tick(&p->b, p->now_ns);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ETIMEDOUT);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_STATS, NULL, 0, 0),
			 -ENOTCONN);
	free(p);
}

/* Heartbeats are answered, and a slab is not made in time. */
static void map_wait_until_nobody_does(struct pair *p)
{
	pair_call(p, RBX_CALL_MAP, NULL);
	p->now_ns += RBX_WIRE_SLAB_ANSWER_TIMES * DEADLINE_NS;
	rbx_lease_heard(&p->b.lease, p->now_ns);
	rbx_lease_answered(&p->b.lease, p->now_ns);
	rbx_borrower_tick(&p->b, p->now_ns);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ETIMEDOUT);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
}

static void map_that_is_late_keeps_the_connection(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan loan;

	(void)state;
	map_wait_until_nobody_does(p);
	pair_lend(p, 3, 7);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	pair_call(p, RBX_CALL_MAP, NULL);
	assert_int_equal(rbx_borrower_call_end(&p->b, &loan), 0);
	assert_int_equal(loan.slab_id, 3);
	pair_call(p, RBX_CALL_MAP, NULL);
	assert_false(rbx_borrower_call_is_over(&p->b));
	free(p);
}

static void call_is_not_sent_before_the_late_answer(void **state)
{
	struct pair *p = pair_up();
	struct rbx_wire_message late;
	struct rbx_loan loan;

	(void)state;
	map_wait_until_nobody_does(p);
	late = p->sent;
	pair_call(p, RBX_CALL_MAP, NULL);
	assert_int_equal(p->sent.type, RBX_WIRE_HEARTBEAT);
	p->sent = late;
	pair_lend(p, 3, 7);
	assert_int_equal(rbx_borrower_call_end(&p->b, &loan), 0);
	assert_int_equal(loan.epoch, 7);
	free(p);
}

static void want_back(struct pair *p)
{
	pair_say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_SLAB_EVICT,
						.slab_id = 3,
						.epoch = 7 });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_EVICT);
}

static void late_loan_that_is_wanted_back_is_not_used(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	map_wait_until_nobody_does(p);
	pair_lend(p, 3, 7);
	want_back(p);
	pair_call(p, RBX_CALL_MAP, NULL);
	assert_false(rbx_borrower_call_is_over(&p->b));
	free(p);
}

/* Sends the next message alone. */
static uint16_t next_type(struct pair *p)
{
	int slot = rbx_borrower_next(&p->b, p->now_ns, &p->sent);

	if (slot < 0)
		return 0;
	rbx_borrower_sent(&p->b, (uint32_t)slot);
	return p->sent.type;
}

static void late_loan_that_is_wanted_back_is_returned_once(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	map_wait_until_nobody_does(p);
	pair_lend(p, 3, 7);
	pair_pump(p);
	want_back(p);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL, ANSWER_MS,
					   p->now_ns),
			 0);
	assert_int_equal(next_type(p), RBX_WIRE_SLAB_UNMAP);
	assert_int_equal(p->sent.slab_id, 3);
	assert_int_equal(p->sent.epoch, 7);
	pair_say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_SLAB_UNMAPPED,
						.request_id = p->sent.request_id,
						.epoch = 7 });
	want_back(p); /* it was said before the server heard of that */
	assert_int_equal(next_type(p), RBX_WIRE_SLAB_MAP);
	pair_lend(p, 4, 8);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

/* A connection that breaks leaves open whether the server has heard. */
static void late_loan_is_returned_again_after_a_break(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	map_wait_until_nobody_does(p);
	pair_lend(p, 3, 7);
	pair_pump(p);
	want_back(p);
	assert_int_equal(next_type(p), RBX_WIRE_SLAB_UNMAP);
	rbx_borrower_drop(&p->b);
	pair_resume(p);
	assert_int_equal(p->sent.type, RBX_WIRE_SLAB_UNMAP);
	assert_int_equal(p->sent.epoch, 7);
	free(p);
}

static void call_waits_for_its_buffer(void **state)
{
	struct pair *p = pair_up();
	struct rbx_wire_message m;

	(void)state;
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL,
					   ANSWER_MS, p->now_ns),
			 0);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m),
			 RBX_BORROWER_CALL);
	p->sent = m;
	pair_lend(p, 3, 10); /* before the completion of the send is seen */
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL,
					   ANSWER_MS, p->now_ns),
			 0);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m), -1);
	rbx_borrower_sent(&p->b, RBX_BORROWER_CALL);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m),
			 RBX_BORROWER_CALL);
	assert_true(m.request_id > p->sent.request_id);
	free(p);
}

static void ask_is_over_with_its_answer_and_frees_the_session(void **state)
{
	struct pair *p = pair_up();
	struct rbx_ask ask = { .kind = RBX_CALL_MAP };

	(void)state;
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	assert_int_equal(ask.state, RBX_ASK_IS_OUT);
	assert_false(rbx_borrower_ask_end(&p->b));
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &p->sent),
			 RBX_BORROWER_CALL);
	pair_lend(p, 3, 10);
	assert_true(rbx_borrower_ask_end(&p->b));
	assert_int_equal(ask.state, RBX_ASK_OVER);
	assert_int_equal(ask.status, 0);
	assert_int_equal(ask.loan.slab_id, 3);
	assert_int_equal(ask.loan.epoch, 10);
	assert_false(rbx_borrower_ask_end(&p->b)); /* once */
	free(p);
}

static void ask_whose_connection_is_lost_is_over(void **state)
{
	struct pair *p = pair_up();
	struct rbx_ask ask = { .kind = RBX_CALL_MAP };

	(void)state;
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	rbx_borrower_lost(&p->b, "cut", 0);
	assert_true(rbx_borrower_ask_end(&p->b));
	assert_int_equal(ask.status, -ENOTCONN);
	/* And while it is away, or is being connected by somebody, nothing is asked. */
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	assert_int_equal(ask.state, RBX_ASK_OVER);
	assert_int_equal(ask.status, -ENOTCONN);
	pair_connect(p);
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	assert_int_equal(ask.state, RBX_ASK_OVER);
	assert_int_equal(ask.status, -ENOTCONN);
	assert_false(rbx_borrower_ask_end(&p->b));
	free(p);
}

static void new_connection_has_free_buffers(void **state)
{
	struct pair *p = pair_up();
	struct rbx_wire_message m;

	(void)state;
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL,
					   ANSWER_MS, p->now_ns),
			 0);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m),
			 RBX_BORROWER_CALL);
	rbx_borrower_lost(&p->b, "cut", 0); /* its completion never comes */
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ENOTCONN);
	pair_resume(p);
	free(p);
}

static void answer_of_the_wrong_kind_is_eproto(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	pair_call(p, RBX_CALL_STATS, NULL);
	pair_lend(p, 3, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -EPROTO);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void unasked_answer_ends_the_connection(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	p->sent.request_id = 4711;
	pair_lend(p, 3, 10);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epoch_is_of_the_last_slab_lent),
		cmocka_unit_test(loan_that_cannot_be_moves_no_epoch),
		cmocka_unit_test(check_of_another_slab_is_estale),
		cmocka_unit_test(call_without_answer_loses_the_connection),
		cmocka_unit_test(map_that_is_late_keeps_the_connection),
		cmocka_unit_test(call_is_not_sent_before_the_late_answer),
		cmocka_unit_test(late_loan_that_is_wanted_back_is_not_used),
		cmocka_unit_test(late_loan_that_is_wanted_back_is_returned_once),
		cmocka_unit_test(late_loan_is_returned_again_after_a_break),
		cmocka_unit_test(call_waits_for_its_buffer),
		cmocka_unit_test(
			ask_is_over_with_its_answer_and_frees_the_session),
		cmocka_unit_test(ask_whose_connection_is_lost_is_over),
		cmocka_unit_test(new_connection_has_free_buffers),
		cmocka_unit_test(answer_of_the_wrong_kind_is_eproto),
		cmocka_unit_test(unasked_answer_ends_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
