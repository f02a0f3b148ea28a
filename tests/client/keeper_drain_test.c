/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_drain_test.c - a server that drains is put out of a named volume when it has nothing, and
 * hears of it when its vote is not needed any more.
 */
#include "tests/client/keeper_world.h"

static void empty_server_is_put_out_and_told_at_the_end(void **state)
{
	struct world *w = make(3);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	servers[2].drains = true;
	(void)turn(w); /* nothing is borrowed there any more */
	assert_true(rbx_upkeep_server_leaves(&w->control.upkeep, 2));
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 1);
	assert_int_equal(servers[1].asks_count, 1);
	assert_int_equal(servers[2].asks_count, 0);
	assert_false(rbx_record_is_in(&servers[0].asked.record, 3));
	assert_int_equal(servers[0].asked.record.copies, 2); /* it had none */
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 2));
	/* The next record needs no vote of it. Until it was chosen, the server may not go. */
	assert_int_equal(servers[0].asks_count, 2);
	assert_int_equal(servers[2].asks_count, 0);
	assert_false(rbx_keeper_is_done_with(&w->keeper, 2));
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	assert_int_equal(servers[2].asks_count, 1);
	assert_true(rbx_record_is_gone(&servers[2].asked.record, 3));
	answers(2, 0);
	(void)turn(w);
	assert_true(rbx_keeper_is_done_with(&w->keeper, 2));
	assert_int_equal(servers[2].asks_count, 1);
	end(w);
}

static void server_that_has_something_stays_in(void **state)
{
	struct world *w = make(3);
	struct rbx_slab *slab;

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 2, 0);
	servers[2].drains = true;
	(void)turn(w);
	slab = rbx_slab_at(&w->control.flow.map->shape, 0);
	assert_int_equal(rbx_slab_count(slab, RBX_REPLICA_LEAVING), 1);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[0].asks_count, 0);
	end(w);
}

/* Nobody is left who could keep the record. */
static void last_server_stays_in(void **state)
{
	struct world *w = make(2);

	(void)state;
	servers[0].drains = servers[1].drains = true;
	(void)turn(w);
	(void)turn(w);
	assert_int_equal(servers[0].asks_count + servers[1].asks_count, 1);
	answers(1, 0);
	(void)turn(w);
	answers(1, 0);
	(void)turn(w);
	answers(0, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[1].asks_count, 2);
	assert_true(is_down(w, 0) && !is_down(w, 1) && !has_failed(w, 1));
	end(w);
}

/* Two of three have nothing. One server could not have a record accepted that puts both out, as two
 * votes are needed. */
static void so_many_are_put_out_as_others_can_accept(void **state)
{
	struct world *w = make(3);

	(void)state;
	servers[0].drains = servers[1].drains = true;
	(void)turn(w);
	(void)turn(w);
	assert_int_equal(servers[2].asks_count, 1);
	assert_false(rbx_record_is_in(&servers[2].asked.record, 1));
	assert_true(rbx_record_is_in(&servers[2].asked.record, 2));
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	answers(1, 0);
	answers(2, 0);
	(void)turn(w); /* the first one is told */
	answers(0, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	assert_int_equal(servers[2].asks_count, 3);
	assert_false(rbx_record_is_in(&servers[2].asked.record, 2));
	assert_false(w->keeper.is_over);
	end(w);
}

/* The first of two servers was empty and is OUT, and is asked to accept that. */
static struct world *is_being_told(void)
{
	struct world *w = make(2);

	servers[0].drains = true;
	(void)turn(w);
	(void)turn(w);
	answers(1, 0);
	(void)turn(w);
	answers(1, 0);
	(void)turn(w);
	return w;
}

/* It says that another client has the volume. It has no vote on that. */
static void refusal_of_a_server_that_is_out_ends_nothing(void **state)
{
	struct world *w = is_being_told();

	(void)state;
	assert_int_equal(servers[0].asks_count, 1);
	answers(0, -ESTALE);
	(void)turn(w);
	assert_false(rbx_named_is_shut_out(&w->named));
	assert_true(rbx_keeper_is_done_with(&w->keeper, 0));
	end(w);
}

static void server_that_could_not_be_told_is_told_again(void **state)
{
	struct world *w = is_being_told();

	(void)state;
	answers(0, -ENOTCONN);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 2);
	w->control.servers[0].is_given_up = true; /* it has ended */
	answers(0, -ENOTCONN);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_true(rbx_keeper_is_done_with(&w->keeper, 0));
	end(w);
}

/* Its answer is late: another record was chosen since it was asked. */
static void server_that_was_told_late_is_not_asked_again(void **state)
{
	struct world *w = is_being_told();

	(void)state;
	assert_int_equal(servers[0].asks_count, 1);
	w->named.record.version++;
	answers(0, 0);
	(void)turn(w);
	assert_false(w->keeper.asks[0].is_wanted);
	end(w);
}

/* It was asked for a record in which it is IN, and answers when it is OUT: it has not heard it. */
static void server_that_answers_an_older_record_is_told(void **state)
{
	struct world *w = make(3);
	int i;

	(void)state;
	w->named.record.copies = 1; /* all are asked for one that says more */
	(void)turn(w);
	assert_int_equal(servers[2].asks_count, 1);
	servers[2].drains = true;
	for (i = 0; i < 3; i++) { /* that one, the one that puts it OUT, and the next one */
		assert_int_equal(servers[0].asks_count, i + 1);
		answers(0, 0);
		answers(1, 0);
		(void)turn(w);
		(void)turn(w);
	}
	assert_true(is_down(w, 2));
	answers(2, 0);
	(void)turn(w);
	assert_false(rbx_keeper_is_done_with(&w->keeper, 2));
	assert_int_equal(servers[2].asks_count, 2);
	assert_true(rbx_record_is_gone(&servers[2].asked.record, 3));
	answers(2, 0);
	(void)turn(w);
	assert_true(rbx_keeper_is_done_with(&w->keeper, 2));
	end(w);
}

/* Its place may be given away from then on. */
static void server_that_is_out_is_not_to_note_anything(void **state)
{
	struct world *w = make(3);

	(void)state;
	w->keeper.intents.asks[2].is_wanted = true;
	servers[2].drains = true;
	(void)turn(w);
	(void)turn(w);
	assert_true(w->keeper.intents.asks[2].is_wanted);
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 2));
	assert_false(w->keeper.intents.asks[2].is_wanted);
	end(w);
}

/* It is OUT when the others are there again, and is told at its former place. */
static void server_that_drained_is_put_out_when_the_volume_goes_on(void **state)
{
	struct world *w = make(3);
	struct comer comer;

	(void)state;
	servers[2].drains = true;
	(void)turn(w);
	(void)turn(w);
	assert_false(rbx_record_is_in(&servers[0].asked.record, 3));
	answers(0, -ENOTCONN);
	answers(1, -ENOTCONN);
	two_are_lost(w);
	assert_false(w->control.servers[2].has_failed);
	comes_again(&comer, w, 3, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	w->control.servers[0].is_given_up = false; /* its place is free again */
	comes_again(&comer, w, 0, 1);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_false(w->keeper.is_over);
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 2));
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	w->control.servers[2].is_given_up = true; /* it was renounced */
	answers(2, -ENOTCONN);
	(void)turn(w);
	assert_true(rbx_keeper_is_done_with(&w->keeper, 2));
	end(w);
}

/* It could not be told before, as it was cut off, and does not know how it is with the volume. */
static void server_that_drains_and_was_put_out_is_told_when_it_is_back(void **state)
{
	struct rbx_session *session = (struct rbx_session *)&servers[0];
	struct world *w = make(3);
	uint32_t i;

	(void)state;
	looked_record = w->named.record;
	opened_mode = RBX_WIRE_OPEN_LOOK;
	servers[0].drains = true;
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -EAGAIN);
	for (i = 0; i < 2; i++) {
		answers(1, 0);
		answers(2, 0);
		(void)turn(w);
	}
	assert_int_equal(opened_mode, RBX_WIRE_OPEN_LOOK);
	assert_true(rbx_keeper_is_out(&w->named, 1));
	assert_false(rbx_keeper_is_out(&w->named, 2));
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -ENOSPC);
	assert_int_equal(opened_mode, RBX_WIRE_OPEN_RETURN);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_server_is_put_out_and_told_at_the_end),
		cmocka_unit_test(server_that_has_something_stays_in),
		cmocka_unit_test(last_server_stays_in),
		cmocka_unit_test(so_many_are_put_out_as_others_can_accept),
		cmocka_unit_test(refusal_of_a_server_that_is_out_ends_nothing),
		cmocka_unit_test(server_that_could_not_be_told_is_told_again),
		cmocka_unit_test(server_that_was_told_late_is_not_asked_again),
		cmocka_unit_test(server_that_answers_an_older_record_is_told),
		cmocka_unit_test(server_that_is_out_is_not_to_note_anything),
		cmocka_unit_test(server_that_drained_is_put_out_when_the_volume_goes_on),
		cmocka_unit_test(server_that_drains_and_was_put_out_is_told_when_it_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
