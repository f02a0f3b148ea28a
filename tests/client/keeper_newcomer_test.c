/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_newcomer_test.c - a server that comes to a named volume which is open: who is asked when,
 * what counts when, and what is taken back.
 */
#include <pthread.h>

#include "tests/client/keeper_world.h"

#define NEWCOMER 3u

/* ---- The thread that has connected it, and waits ------------------------------------------- */

struct waiter {
	struct world *w;
	uint32_t server;
	uint64_t former;
	int err;
	pthread_t thread;
};

static void *waiter_run(void *argument)
{
	struct waiter *waiter = argument;

	waiter->err = rbx_keeper_take(&waiter->w->keeper, waiter->server, waiter->former);
	return NULL;
}

/* Returns when the keeper can see it. */
static void comes_to(struct waiter *waiter, struct world *w, uint32_t place)
{
	waiter->w = w;
	waiter->server = place;
	w->control.servers[place].peer = (struct rbx_peer *)&servers[place];
	w->control.upkeep.servers[place].incarnation = place + 1;
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_run, waiter), 0);
	newcomer_wait(w);
}

static void comes(struct waiter *waiter, struct world *w)
{
	comes_to(waiter, w, NEWCOMER);
}

static int waited(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	return waiter->err;
}

static bool is_used(const struct world *w)
{
	return rbx_server_set_has(&w->control.flow.map->servers_up, NEWCOMER);
}

static uint32_t asks_of_others(void)
{
	return servers[0].asks_count + servers[1].asks_count + servers[2].asks_count;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void newcomer_accepts_first_and_counts_when_a_quorum_has_accepted(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };
	uint32_t i;

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	assert_int_equal(servers[NEWCOMER].asks_count, 1);
	assert_true(rbx_record_is_in(&servers[NEWCOMER].asked.record, NEWCOMER + 1));
	assert_int_equal(asks_of_others(), 0);
	answers(NEWCOMER, 0);
	(void)turn(w);
	assert_int_equal(asks_of_others(), 3);
	answers(0, 0);
	(void)turn(w);
	assert_false(is_used(w)); /* of the three of before two are needed */
	answers(1, 0);
	(void)turn(w);
	assert_true(is_used(w));
	assert_int_equal(waited(&waiter), 0);
	/* And one more record that needs no vote of before. */
	answers(2, 0);
	for (i = 0; i < 2; i++) {
		(void)turn(w);
		answers(0, 0);
		answers(1, 0);
		answers(2, 0);
		answers(NEWCOMER, 0);
	}
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[NEWCOMER].asks_count, 2);
	assert_int_equal(servers[NEWCOMER].asked.record.member_flags[NEWCOMER],
			 RBX_WIRE_MEMBER_WAS_IN);
	/* From here on it is one like the others. */
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[NEWCOMER].asks_count, 3);
	answers(NEWCOMER, 0);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	end(w);
}

static void newcomer_that_refuses_is_told_of_to_nobody(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };
	uint64_t version = w->named.record.version;

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	answers(NEWCOMER, -ESTALE);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(waited(&waiter), -ESTALE);
	assert_false(is_used(w));
	assert_int_equal(asks_of_others(), 0);
	assert_false(rbx_named_is_shut_out(&w->named));
	/* What is proposed next has another version, for the newcomer may know of that one. */
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[1].asked.record.version, version + 2);
	assert_int_equal(servers[1].asked.record.members_count, 3);
	assert_int_equal(servers[NEWCOMER].asks_count, 1);
	end(w);
}

/* Writes wait for that, so it does not wait for a newcomer that is slow. */
static void server_is_put_out_before_one_comes(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };
	uint32_t i;

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 1);
	assert_false(rbx_record_has_member(&servers[1].asked.record, NEWCOMER + 1));
	answers(NEWCOMER, 0); /* late: it has accepted what nobody else will */
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	assert_false(is_used(w));
	for (i = 0; i < 4; i++) {
		answers(1, 0);
		answers(2, 0);
		(void)turn(w);
		answers(NEWCOMER, 0);
		(void)turn(w);
	}
	assert_true(is_used(w));
	assert_int_equal(waited(&waiter), 0);
	end(w);
}

/* It is another one than the one that died, and takes its place in the record, too. */
static void former_one_is_forgotten(void **state)
{
	struct rbx_session *session = (struct rbx_session *)&servers[0];
	struct world *w = make(3);
	struct waiter waiter = { .former = 1 };
	uint32_t i;

	(void)state;
	suspect(w, 0);
	for (i = 0; i < 2; i++) {
		(void)turn(w);
		answers(1, 0);
		answers(2, 0);
	}
	(void)turn(w);
	assert_true(is_down(w, 0));
	comes(&waiter, w);
	(void)turn(w);
	answers(NEWCOMER, 0);
	(void)turn(w);
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_false(rbx_record_has_member(&servers[1].asked.record, 1));
	assert_int_equal(servers[1].asked.record.members_count, 3);
	/* It would be another new one, and does not return. */
	talk_err = -ENODATA;
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -ENOENT);
	assert_int_equal(rbx_keeper_welcome(&w->named, session, false, NULL), -ENODATA);
	end(w);
}

/* The first one was put out, and can be reached again, with what it had. */
static void server_that_was_out_returns(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 1 };
	uint32_t i;

	(void)state;
	assert_false(rbx_keeper_any_is_out(&w->named));
	suspect(w, 0);
	for (i = 0; i < 3; i++) {
		(void)turn(w);
		answers(1, 0);
		answers(2, 0);
	}
	(void)turn(w);
	assert_true(is_down(w, 0));
	assert_true(rbx_keeper_any_is_out(&w->named));
	assert_int_equal(servers[0].asks_count, 0);
	rbx_upkeep_server_begins(&w->control.upkeep, 0);
	comes_to(&waiter, w, 0);
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 1);
	assert_true(rbx_record_is_in(&servers[0].asked.record, 1));
	answers(0, 0);
	(void)turn(w);
	answers(1, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_int_equal(servers[1].asked.record.members_count, 3);
	assert_false(rbx_keeper_any_is_out(&w->named));
	assert_true(rbx_server_set_has(&w->control.flow.map->servers_up, 0));
	end(w);
}

/* What it has may be the last that there is, until a record was chosen that can do without. */
static void server_that_is_about_to_be_out_gives_nothing_up(void **state)
{
	struct rbx_session *session = (struct rbx_session *)&servers[0];
	struct world *w = make(3);

	(void)state;
	talk_err = -ENODATA;
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -EEXIST);
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -EAGAIN);
	answers(1, 0);
	(void)turn(w); /* it is chosen, and the first one's vote is needed until the next one is */
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -EAGAIN);
	answers(2, 0);
	(void)turn(w); /* the next one is proposed */
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -EAGAIN);
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_int_equal(rbx_keeper_welcome(&w->named, session, true, NULL), -ENODATA);
	end(w);
}

/* The place is free when nothing is asked any more of the one that had it. */
static void place_of_one_that_is_waited_for_is_not_given_away(void **state)
{
	struct world *w = make(3);

	(void)state;
	assert_true(rbx_keeper_is_done_with(&w->keeper, NEWCOMER));
	w->keeper.asks[NEWCOMER].is_asked = true;
	assert_false(rbx_keeper_is_done_with(&w->keeper, NEWCOMER));
	w->keeper.asks[NEWCOMER].is_asked = false;
	w->keeper.intents.asks[NEWCOMER].is_asked = true;
	assert_false(rbx_keeper_is_done_with(&w->keeper, NEWCOMER));
	end(w);
}

static void newcomer_that_is_given_up_meanwhile_is_put_out(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };
	uint32_t i;

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	answers(NEWCOMER, 0);
	(void)turn(w);
	w->control.servers[NEWCOMER].is_given_up = true;
	suspect(w, NEWCOMER);
	for (i = 0; i < 3; i++) {
		answers(0, 0);
		answers(1, 0);
		answers(2, 0);
		answers(NEWCOMER, -EHOSTUNREACH);
		(void)turn(w);
	}
	assert_int_equal(waited(&waiter), 0);
	assert_true(is_down(w, NEWCOMER));
	end(w);
}

/* The other one of two alone lets nobody in, as long as it has not heard of the newcomer. */
static void newcomer_that_is_lost_alone_costs_nothing(void **state)
{
	struct world *w = make(2);
	struct waiter waiter = { .former = 0 };

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	w->control.servers[NEWCOMER].is_given_up = true;
	w->control.servers[1].is_given_up = true;
	(void)turn(w);
	assert_false(w->control.servers[0].is_shunned);
	answers(NEWCOMER, -EHOSTUNREACH);
	suspect(w, NEWCOMER);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -EHOSTUNREACH);
	assert_false(w->control.servers[0].is_shunned);
	/* Its place may be free by now, and has no server that has failed. */
	assert_false(w->control.servers[NEWCOMER].has_failed);
	assert_false(servers[NEWCOMER].is_renounced);
	assert_false(has_failed(w, NEWCOMER));
	end(w);
}

/* It is taken back for another one that is a suspect, and is not waited for once more. */
static void newcomer_that_is_given_up_is_asked_no_more(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	suspect(w, NEWCOMER);
	(void)turn(w);
	w->control.servers[NEWCOMER].is_given_up = true;
	answers(NEWCOMER, -ENOTCONN);
	(void)turn(w);
	answers(NEWCOMER, -ENOTCONN);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -ENOTCONN);
	end(w);
}

/* One that is slow to accept the record before would else be asked for that of the newcomer, and a
 * client that opens the volume then would need the newcomer, which may not know it. */
static void nobody_else_hears_of_a_newcomer_before_it_has_accepted(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };

	(void)state;
	rbx_named_change(&w->named);
	rbx_keeper_propose(&w->keeper);
	(void)turn(w);
	answers(0, 0);
	answers(1, 0);
	comes(&waiter, w);
	(void)turn(w); /* it is chosen, by two of three */
	assert_int_equal(servers[NEWCOMER].asks_count, 1);
	w->keeper.asks[0].is_to_be_told = true; /* nor does one that has drained */
	w->keeper.asks[0].is_wanted = true;
	w->keeper.asks[0].tell_version = UINT64_MAX;
	answers(2, 0);
	(void)turn(w);
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 1);
	assert_int_equal(servers[2].asks_count, 1);
	answers(NEWCOMER, 0);
	(void)turn(w);
	assert_int_equal(servers[2].asks_count, 2);
	assert_true(rbx_record_is_in(&servers[2].asked.record, NEWCOMER + 1));
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	end(w);
}

/* The newcomer may have accepted what was taken back. Nobody is told anything else of that version:
 * who opens the volume next would not know which of the two is true. */
static void version_that_was_taken_back_is_told_to_nobody_else(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };
	uint64_t version = w->named.record.version;

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	assert_int_equal(servers[NEWCOMER].asked.record.version, version + 1);
	w->keeper.asks[2].is_to_be_told = true; /* it has drained */
	w->keeper.asks[2].is_wanted = true;
	w->keeper.asks[2].tell_version = UINT64_MAX;
	w->now_ns += AGAIN_NS;
	answers(NEWCOMER, -ESTALE);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -ESTALE);
	assert_int_equal(asks_of_others(), 3);
	assert_int_equal(servers[0].asked.record.version, version + 2);
	assert_int_equal(servers[2].asked.record.version, version + 2);
	assert_int_equal(servers[2].asked.record.members_count, 3);
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	answers(2, 0);
	(void)turn(w);
	assert_true(rbx_keeper_is_done_with(&w->keeper, 2));
	end(w);
}

static void nobody_waits_for_a_volume_that_is_closed(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	rbx_keeper_take_no_more(&w->keeper);
	(void)turn(w);
	answers(NEWCOMER, -ENOTCONN);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -ECANCELED);
	assert_int_equal(asks_of_others(), 0);
	/* Nothing is asked any more that could be chosen later. */
	rbx_keeper_close(&w->keeper);
	assert_true(closed_with.flags & RBX_WIRE_EVEN);
	end(w);
}

static void nobody_comes_when_no_record_is_accepted_any_more(void **state)
{
	struct world *w = make(3);
	struct waiter waiter = { .former = 0 };

	(void)state;
	comes(&waiter, w);
	(void)turn(w);
	answers(NEWCOMER, 0);
	(void)turn(w);
	answers(0, -ESTALE);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -ECANCELED);
	assert_false(is_used(w));
	comes(&waiter, w);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -ECANCELED);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newcomer_accepts_first_and_counts_when_a_quorum_has_accepted),
		cmocka_unit_test(newcomer_that_refuses_is_told_of_to_nobody),
		cmocka_unit_test(server_is_put_out_before_one_comes),
		cmocka_unit_test(former_one_is_forgotten),
		cmocka_unit_test(server_that_was_out_returns),
		cmocka_unit_test(server_that_is_about_to_be_out_gives_nothing_up),
		cmocka_unit_test(place_of_one_that_is_waited_for_is_not_given_away),
		cmocka_unit_test(newcomer_that_is_given_up_meanwhile_is_put_out),
		cmocka_unit_test(newcomer_that_is_lost_alone_costs_nothing),
		cmocka_unit_test(newcomer_that_is_given_up_is_asked_no_more),
		cmocka_unit_test(nobody_else_hears_of_a_newcomer_before_it_has_accepted),
		cmocka_unit_test(version_that_was_taken_back_is_told_to_nobody_else),
		cmocka_unit_test(nobody_waits_for_a_volume_that_is_closed),
		cmocka_unit_test(nobody_comes_when_no_record_is_accepted_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
