/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_test.c - who is put out of a named volume, when, and what follows if nobody accepts that.
 */
#include "tests/client/keeper_world.h"
#include "core/upkeep_servers.h"

/* ---- Tests --------------------------------------------------------------------------------*/

static void server_is_out_when_a_quorum_says_so(void **state)
{
	struct world *w = make(3);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 0);
	assert_int_equal(servers[1].asks_count, 1);
	assert_int_equal(servers[2].asks_count, 1);
	assert_false(rbx_record_is_in(&servers[1].asked.record, 1));
	/* Nothing is read there from the moment on that somebody may accept it. */
	assert_true(w->control.servers[0].is_shunned && servers[0].is_renounced);
	assert_false(servers[1].is_renounced);
	answers(1, 0);
	(void)turn(w);
	assert_false(is_down(w, 0)); /* two of three are needed */
	answers(2, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	/* And one more record that needs no vote of it. */
	assert_int_equal(servers[1].asks_count, 2);
	assert_int_equal(servers[1].asked.record.member_flags[0], RBX_WIRE_MEMBER_OUT);
	answers(1, 0);
	answers(2, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[0].asks_count + servers[1].asks_count + servers[2].asks_count, 4);
	end(w);
}

/* The answer to the first record comes when the second one is asked for. */
static void answer_counts_for_the_record_that_was_asked_for(void **state)
{
	struct world *w = make(4);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	answers(3, 0); /* late */
	answers(1, 0);
	(void)turn(w);
	assert_false(rbx_named_is_chosen(&w->named));
	assert_int_equal(servers[3].asks_count, 2);
	answers(3, 0);
	(void)turn(w);
	assert_true(rbx_named_is_chosen(&w->named));
	end(w);
}

static void server_that_is_away_is_asked_again(void **state)
{
	struct world *w = make(2);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, -ENOTCONN);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[1].asks_count, 1);
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 2);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	end(w);
}

/* Nobody is left who could accept it. */
static void too_few_servers_are_left_all_fails(void **state)
{
	struct world *w = make(3);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, 0);
	suspect(w, 2);
	answers(2, -ENOTCONN);
	(void)turn(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1) && has_failed(w, 2));
	assert_false(is_down(w, 0));
	assert_int_equal(turn(w), UINT64_MAX);
	end(w);
}

/* Two of four could never accept a record without the third one, and that one would not come again
 * after the record had put it out. */
static void servers_that_are_too_many_to_be_put_out_may_come_again(void **state)
{
	struct world *w = make(4);
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		suspect(w, i);
	(void)turn(w);
	assert_int_equal(servers[3].asks_count, 0);
	for (i = 0; i < 3; i++)
		assert_true(has_failed(w, i) && w->control.servers[i].has_failed);
	end(w);
}

static void another_client_has_the_volume_all_fails(void **state)
{
	struct world *w = make(3);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, -ESTALE);
	(void)turn(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1) && has_failed(w, 2));
	assert_false(is_down(w, 0));
	end(w);
}

static void last_copy_is_not_put_out(void **state)
{
	struct world *w = make(3);

	(void)state;
	has_slab(w, 0, 1);
	suspect(w, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_true(has_failed(w, 0));
	assert_false(has_failed(w, 1));
	assert_int_equal(servers[1].asks_count + servers[2].asks_count, 0);
	end(w);
}

/* The other one that has it is silent: perhaps it is lost as well. */
static void copy_that_may_be_the_last_is_not_put_out_yet(void **state)
{
	struct world *w = make(4);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	servers[1].is_silent = true;
	suspect(w, 0);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[2].asks_count, 0);
	assert_false(has_failed(w, 0));
	suspect(w, 1);
	(void)turn(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1));
	end(w);

	w = make(4);
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	servers[1].is_silent = true;
	suspect(w, 0);
	(void)turn(w);
	servers[1].is_silent = false; /* it is back */
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 1);
	assert_false(has_failed(w, 0));
	end(w);
}

/* Each slab that was written has two. One server is lost. */
static void record_says_how_many_copies_are_left(void **state)
{
	struct world *w = make(3);
	uint32_t i;

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[1].asked.record.copies, 1);
	assert_int_equal(w->control.upkeep.copies_least, 2); /* nobody has accepted it */
	for (i = 0; i < 2; i++) { /* the second one needs no vote of the server that is out */
		answers(1, 0);
		answers(2, 0);
		(void)turn(w);
		assert_int_equal(w->control.upkeep.copies_least, 1);
	}
	/* What the server had is not known yet, and then it lacks. */
	assert_int_equal(servers[1].asks_count, 2);
	(void)rbx_upkeep_servers_tend(&w->control.upkeep);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[1].asks_count, 2);
	end(w);
}

static void volume_that_is_whole_again_has_all_copies(void **state)
{
	struct world *w = make(2);

	(void)state;
	w->named.record.copies = w->control.upkeep.copies_least = 1;
	has_slab(w, 0, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[0].asks_count, 0);
	has_slab(w, 1, 0);
	(void)turn(w);
	assert_int_equal(servers[0].asked.record.copies, 2);
	assert_int_equal(w->control.upkeep.copies_least, 2); /* somebody may have accepted it */
	answers(0, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	end(w);
}

/* Too few servers have lent for a first write. */
static void record_allows_fewer_copies(void **state)
{
	struct world *w = make(3);
	struct rbx_borrowing *borrowing = &w->control.upkeep.borrowings[0];

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	has_slab(w, 0, 1); /* stands for what was lent */
	borrowing->slab = rbx_slab_at(&w->control.flow.map->shape, 1);
	borrowing->is_short = true;
	w->control.upkeep.borrowings_count = 1;
	servers[2].is_silent = true; /* without it nobody could open the volume then */
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[1].asks_count, 0);
	servers[2].is_silent = false;
	(void)turn(w);
	assert_int_equal(servers[1].asked.record.copies, 1);
	assert_int_equal(w->control.upkeep.copies_least, 2);
	answers(0, 0);
	answers(1, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(w->control.upkeep.copies_least, 1);
	end(w);
}

/* Those that are left cannot keep another client out. */
static void writer_that_is_cut_off_sends_nothing_any_more(void **state)
{
	struct world *w = make(3);
	uint32_t i;

	(void)state;
	w->control.servers[0].is_given_up = true;
	assert_int_equal(turn(w), UINT64_MAX);
	assert_false(w->control.servers[2].is_shunned);
	w->control.servers[1].is_given_up = true;
	assert_int_equal(turn(w), UINT64_MAX);
	for (i = 0; i < 3; i++)
		assert_true(w->control.servers[i].is_shunned && has_failed(w, i) &&
			    servers[i].is_renounced);
	assert_true(w->control.flow.map->shape.groups[0].extents->is_over);
	assert_int_equal(w->control.upkeep.copies_least, 2); /* the record still says so */
	end(w);

	w = make(2); /* the other one alone lets nobody in */
	w->control.servers[0].is_given_up = true;
	(void)turn(w);
	assert_false(w->control.servers[1].is_shunned);
	end(w);
}

/* Their peers are not given up: that may take longer than another client waits. */
static void writer_that_hears_from_too_few_ends_in_time(void **state)
{
	struct world *w = make(3);
	uint32_t i;

	(void)state;
	w->now_ns = 1000;
	for (i = 0; i < 3; i++) {
		servers[i].lease_ns = 400;
		servers[i].answered_ns = 900 + i;
	}
	assert_int_equal(turn(w), 1200); /* three quarters of a lease */
	w->now_ns = 1200;
	assert_int_equal(turn(w), 1201);
	assert_false(w->control.servers[2].is_shunned);
	w->now_ns = 1201;
	assert_int_equal(turn(w), UINT64_MAX);
	for (i = 0; i < 3; i++)
		assert_true(w->control.servers[i].is_shunned && has_failed(w, i));
	end(w);
}

static void last_voter_is_not_put_out(void **state)
{
	struct world *w = make(1);

	(void)state;
	suspect(w, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_true(has_failed(w, 0));
	end(w);
}

/* The next client need not copy anything. But not if a record was not accepted, or replicas are
 * being made equal, or a write has failed whose checksums may have arrived, or some server's
 * writes. */
static void volume_that_is_closed_well_is_even(void **state)
{
	struct world *w = make(2);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_true(closed_with.flags & RBX_WIRE_EVEN);
	end(w);

	w = make(3);
	suspect(w, 0);
	(void)turn(w);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);

	w = make(2);
	w->control.flow.map->shape.groups[0].extents->have_strayed = true;
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);

	w = make(2);
	rbx_keeper_failed(&w->keeper, 0);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);

	w = make(2);
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	rbx_upkeep_found_intent(&w->control.upkeep, 1, 1, 0);
	rbx_upkeep_even_out(&w->control.upkeep);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_is_out_when_a_quorum_says_so),
		cmocka_unit_test(answer_counts_for_the_record_that_was_asked_for),
		cmocka_unit_test(server_that_is_away_is_asked_again),
		cmocka_unit_test(too_few_servers_are_left_all_fails),
		cmocka_unit_test(servers_that_are_too_many_to_be_put_out_may_come_again),
		cmocka_unit_test(another_client_has_the_volume_all_fails),
		cmocka_unit_test(last_copy_is_not_put_out),
		cmocka_unit_test(copy_that_may_be_the_last_is_not_put_out_yet),
		cmocka_unit_test(record_says_how_many_copies_are_left),
		cmocka_unit_test(volume_that_is_whole_again_has_all_copies),
		cmocka_unit_test(record_allows_fewer_copies),
		cmocka_unit_test(writer_that_is_cut_off_sends_nothing_any_more),
		cmocka_unit_test(writer_that_hears_from_too_few_ends_in_time),
		cmocka_unit_test(last_voter_is_not_put_out),
		cmocka_unit_test(volume_that_is_closed_well_is_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
