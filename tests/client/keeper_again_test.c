/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_again_test.c - a server that has FAILED is there again while the volume is open: what it
 * has is found at its new place, and a volume that had to stop goes on when enough of them are.
 */
#include "core/membership_change.h"
#include "tests/client/keeper_world.h"

#define PLACE 2u /* where one comes again */

/* It was started anew: the loan of this slab is at another address. */
static void tells(uint32_t slab)
{
	told_labels.labels[told_labels.count++] = (struct rbx_wire_label){
		.label = slab + 1,
		.slab_id = slab + 1,
		.epoch = slab + 1,
		.remote_addr = (slab + 9ull) * RBX_SLAB_BYTES_MIN,
		.rkey = slab + 9,
		.is_complete = 1,
	};
}

static void gives_up(struct world *w, uint32_t server)
{
	w->control.servers[server].is_given_up = true;
	suspect(w, server);
}

static struct rbx_slab *slab_at(struct world *w, uint32_t slab)
{
	return rbx_slab_at(&w->control.flow.map->shape, slab);
}

static bool reads_nothing_as_zeros(struct world *w)
{
	return w->control.flow.map->shape.groups[0].extents->is_over;
}

/* The one with the last copy of a slab, while a request to its former place has not ended. */
static struct rbx_replica *fails_and_comes_again(struct comer *comer, struct world *w)
{
	struct rbx_replica *replica;

	has_slab(w, 0, 1);
	gives_up(w, 0);
	(void)turn(w);
	assert_true(has_failed(w, 0) && w->control.servers[0].has_failed);
	tells(1);
	comes_again(comer, w, PLACE, 0);
	replica = rbx_slab_replica(slab_at(w, 1), 0);
	rbx_replica_take_off(replica);
	return replica;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void server_with_the_last_copy_comes_again_with_it(void **state)
{
	struct world *w = make(2);
	struct rbx_replica *replica;
	struct comer comer;

	(void)state;
	replica = fails_and_comes_again(&comer, w);
	(void)turn(w);
	assert_int_equal(rbx_replica_server(replica), 0);
	assert_false(w->control.servers[PLACE].is_shunned);
	/* It lends nothing yet: that slab would have two replicas there. */
	assert_false(rbx_server_set_has(&w->control.flow.map->servers_up, PLACE));
	rbx_replica_land(replica);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_true(rbx_server_set_has(&w->control.flow.map->servers_up, PLACE));
	assert_int_equal(rbx_replica_server(replica), PLACE);
	assert_int_equal(rbx_replica_addr(replica), 10ull * RBX_SLAB_BYTES_MIN);
	assert_int_equal(replica->rkey, 10);
	assert_int_equal(rbx_slab_state(slab_at(w, 1), 0), RBX_REPLICA_LIVE);
	assert_int_equal(rbx_loan_index_find(&w->control.flow.map->loans, PLACE, 2, 2), 1);
	assert_int_equal(rbx_loan_index_find(&w->control.flow.map->loans, 0, 2, 2), RBX_SLAB_NONE);
	assert_int_equal(w->control.upkeep.servers[PLACE].replicas_count, 1);
	assert_int_equal(w->control.upkeep.servers[0].replicas_count, 0);
	assert_true(is_down(w, 0) && !has_failed(w, PLACE));
	/* Before that it noted that all of it may have been written. */
	assert_int_equal(noted_intents.count, 1);
	assert_int_equal(noted_intents.intents[0].slab_id, 2);
	assert_true(noted_intents.intents[0].word == UINT64_MAX);
	/* Nor does it say when it is closed that replicas are equal. */
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);
}

/* Whether it has labelled a slab is owed when that has ended (core/loans.c), and is found only
 * then. */
static void labels_count_when_nothing_is_asked_at_the_former_place(void **state)
{
	struct world *w = make(2);
	struct comer comer;

	(void)state;
	has_slab(w, 0, 1);
	gives_up(w, 0);
	(void)turn(w);
	tells(1);
	comes_again(&comer, w, PLACE, 0);
	rbx_server_set_add(&w->control.upkeep.busy, 0);
	(void)turn(w);
	assert_int_equal(rbx_replica_server(rbx_slab_replica(slab_at(w, 1), 0)), 0);
	assert_false(is_down(w, 0));
	rbx_server_set_remove(&w->control.upkeep.busy, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_int_equal(rbx_replica_server(rbx_slab_replica(slab_at(w, 1), 0)), PLACE);
	end(w);
}

/* Nobody is judged until all of it was found: it is the same server as at the former place. */
static void nobody_is_judged_while_a_server_comes_again(void **state)
{
	struct world *w = make(2);
	struct rbx_replica *replica;
	struct comer comer;

	(void)state;
	replica = fails_and_comes_again(&comer, w);
	suspect(w, PLACE);
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 0);
	rbx_replica_land(replica);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	suspect(w, PLACE);
	(void)turn(w);
	assert_true(has_failed(w, PLACE)); /* it has the last copy there */
	end(w);
}

static void volume_goes_on_when_enough_servers_are_there_again(void **state)
{
	struct world *w = make(2);
	struct comer comer;

	(void)state;
	has_slab(w, 0, 1);
	has_slab(w, 1, 0);
	two_are_lost(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1));
	assert_true(w->control.servers[0].has_failed && w->control.servers[1].has_failed);
	assert_true(servers[0].is_renounced && servers[1].is_renounced);
	assert_true(reads_nothing_as_zeros(w));
	/* One of two keeps others out. */
	tells(1);
	comes_again(&comer, w, PLACE, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_false(w->keeper.is_over || reads_nothing_as_zeros(w));
	assert_false(w->control.servers[PLACE].is_shunned || has_failed(w, PLACE));
	assert_int_equal(w->control.upkeep.copies_least, 2);
	assert_true(has_failed(w, 0)); /* its former place is never a suspect */
	assert_true(!has_failed(w, 1) && w->control.servers[1].has_failed); /* it is waited for */
	told_labels.count = 0;
	tells(0);
	comes_again(&comer, w, PLACE + 1, 1);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_true(has_failed(w, 1));
	assert_false(w->control.servers[PLACE + 1].is_shunned || has_failed(w, PLACE + 1));
	assert_int_equal(rbx_replica_server(rbx_slab_replica(slab_at(w, 0), 0)), PLACE + 1);
	end(w);
}

static bool is_in(uint64_t incarnation)
{
	return rbx_record_is_in(&servers[0].asked.record, incarnation);
}

/* Two of three come again. Whether the third one is needed is looked at a little later. */
static struct world *third_is_lost(uint32_t its_slab)
{
	struct world *w = make(3);
	struct comer comer;

	has_slab(w, 0, 0);
	has_slab(w, 2, its_slab);
	w->control.servers[2].is_given_up = true;
	two_are_lost(w);
	tells(0);
	comes_again(&comer, w, 3, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	told_labels.count = 0;
	w->control.servers[0].is_given_up = false; /* its place is free again */
	comes_again(&comer, w, 0, 1);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_false(has_failed(w, 0));
	assert_false(w->keeper.is_over || w->keeper.is_proposing);
	assert_true(turn(w) < UINT64_MAX);
	w->now_ns += w->control.upkeep.timeout_ns;
	(void)turn(w);
	return w;
}

static void server_that_does_not_come_again_is_put_out(void **state)
{
	struct world *w = third_is_lost(0);
	struct comer comer;

	(void)state;
	assert_true(w->keeper.is_proposing && is_in(1) && is_in(2) && !is_in(3));
	/* It was asked for the volume just before, and comes too late: it may return. */
	comes_again(&comer, w, 2 + PLACE, 2);
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 2) && !has_failed(w, 2));
	answers(0, 0);
	answers(1, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), -EAGAIN);
	assert_false(w->control.servers[2].has_failed);
	end(w);
}

static void server_that_does_not_come_again_and_is_needed_has_failed(void **state)
{
	struct world *w = third_is_lost(1);

	(void)state;
	assert_false(w->keeper.is_proposing);
	assert_true(has_failed(w, 2) && w->control.servers[2].has_failed && !is_down(w, 2));
	end(w);
}

static void server_that_has_failed_and_is_up_is_given_up(void **state)
{
	struct world *w = make(2);

	(void)state;
	has_slab(w, 0, 1);
	suspect(w, 0); /* it has refused something */
	(void)turn(w);
	assert_true(has_failed(w, 0) && w->control.servers[0].has_failed);
	assert_true(servers[0].is_renounced);
	end(w);
}

/* Else it would be judged there, which waits for the server to have come; and that waits for what
 * waits there. */
static void former_place_fails_until_the_server_has_come(void **state)
{
	struct world *w = make(2);
	struct rbx_replica *replica;
	struct comer comer;

	(void)state;
	has_slab(w, 0, 1);
	has_slab(w, 1, 0);
	two_are_lost(w);
	tells(1);
	comes_again(&comer, w, PLACE, 0);
	replica = rbx_slab_replica(slab_at(w, 1), 0);
	rbx_replica_take_off(replica);
	(void)turn(w);
	assert_false(w->keeper.is_over);
	assert_int_equal(rbx_replica_server(replica), 0);
	assert_true(has_failed(w, 0) && !has_failed(w, PLACE));
	rbx_replica_land(replica);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_int_equal(rbx_replica_server(replica), PLACE);
	end(w);
}

static void newcomer_named_when_the_volume_was_lost_is_put_out(void **state)
{
	struct world *w = make(2);
	struct rbx_membership next;
	struct comer comer;
	uint64_t newcomer = 77;

	(void)state;
	rbx_membership_next(&next, &w->named.proposer.membership);
	assert_true(rbx_membership_add(&next, newcomer));
	rbx_named_change_to(&w->named, &next);
	rbx_keeper_propose(&w->keeper);
	w->keeper.newcomer.state = RBX_NEWCOMER_NAMED;
	w->keeper.newcomer.incarnation = newcomer;
	w->keeper.newcomer.server = PLACE + 3;
	w->control.servers[PLACE + 3].peer = w->control.servers[0].peer;
	w->control.servers[PLACE + 3].is_given_up = true;
	two_are_lost(w);
	for (uint32_t i = 0; i < 2; i++) { /* two of three, as it is named */
		comes_again(&comer, w, PLACE + i, i);
		(void)turn(w);
		assert_int_equal(came(&comer), 0);
	}
	assert_false(w->keeper.is_over);
	/* The record, the next one, which needs no vote of before, and the one that puts it OUT. */
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(w->keeper.is_proposing);
		answers(0, 0);
		answers(1, 0);
		(void)turn(w);
	}
	assert_int_equal(rbx_membership_find(&w->named.proposer.membership, newcomer)->state,
			 RBX_MEMBER_OUT);
	assert_int_equal(w->named.record.copies, 2);
	end(w);
}

static void server_that_is_lost_meanwhile_comes_once_more(void **state)
{
	struct world *w = make(3);
	struct comer comer;

	(void)state;
	two_are_lost(w);
	comes_again(&comer, w, 3, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_false(w->control.servers[3].has_failed);
	w->control.servers[3].is_given_up = true;
	(void)turn(w);
	assert_true(w->control.servers[3].has_failed);
	comes_again(&comer, w, 0, 1);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_true(w->keeper.is_over); /* it is one of three */
	end(w);
}

/* Those that are still connected do not count: another client may have had the volume. */
static void volume_does_not_go_on_with_too_few(void **state)
{
	struct world *w = make(3);
	struct comer comer;

	(void)state;
	has_slab(w, 0, 1);
	two_are_lost(w);
	tells(1);
	comes_again(&comer, w, 3, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_true(w->keeper.is_over && w->control.servers[3].is_shunned);
	assert_int_equal(rbx_replica_server(rbx_slab_replica(slab_at(w, 1), 0)), 3);
	end(w);
}

static void volume_that_another_client_has_does_not_go_on(void **state)
{
	struct world *w = make(2);
	struct comer comer;

	(void)state;
	two_are_lost(w);
	rbx_proposer_refused(&w->named.proposer);
	comes_again(&comer, w, PLACE, 0);
	(void)turn(w);
	(void)came(&comer);
	assert_true(w->keeper.is_over && w->control.servers[PLACE].is_shunned);
	end(w);
}

/* A record in which one is OUT may have been accepted by the one that comes again. */
static void record_that_was_proposed_is_proposed_again(void **state)
{
	struct world *w = make(3);
	struct comer comer;
	uint64_t version;

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	version = w->named.record.version;
	answers(1, -ENOTCONN);
	answers(2, -ENOTCONN);
	suspect(w, 1);
	suspect(w, 2);
	w->control.servers[1].is_given_up = true;
	w->control.servers[2].is_given_up = true;
	(void)turn(w);
	assert_true(w->keeper.is_over);
	assert_false(w->control.servers[0].has_failed); /* it is to be OUT, and comes later */
	comes_again(&comer, w, 3, 1);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_true(w->keeper.is_over);
	w->control.servers[1].is_given_up = false; /* its place is free again */
	comes_again(&comer, w, 1, 2);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_false(w->keeper.is_over);
	assert_true(w->keeper.is_proposing);
	assert_int_equal(w->named.record.version, version);
	assert_int_equal(servers[1].asked.record.version, version);
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	end(w);
}

static void volume_is_closed_nobody_comes_again(void **state)
{
	struct world *w = make(2);
	struct comer comer;

	(void)state;
	gives_up(w, 0);
	has_slab(w, 0, 1);
	(void)turn(w);
	rbx_keeper_take_no_more(&w->keeper);
	comes_again(&comer, w, PLACE, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), -ECANCELED);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_with_the_last_copy_comes_again_with_it),
		cmocka_unit_test(labels_count_when_nothing_is_asked_at_the_former_place),
		cmocka_unit_test(nobody_is_judged_while_a_server_comes_again),
		cmocka_unit_test(volume_goes_on_when_enough_servers_are_there_again),
		cmocka_unit_test(server_that_does_not_come_again_is_put_out),
		cmocka_unit_test(server_that_does_not_come_again_and_is_needed_has_failed),
		cmocka_unit_test(server_that_has_failed_and_is_up_is_given_up),
		cmocka_unit_test(former_place_fails_until_the_server_has_come),
		cmocka_unit_test(newcomer_named_when_the_volume_was_lost_is_put_out),
		cmocka_unit_test(server_that_is_lost_meanwhile_comes_once_more),
		cmocka_unit_test(volume_does_not_go_on_with_too_few),
		cmocka_unit_test(volume_that_another_client_has_does_not_go_on),
		cmocka_unit_test(record_that_was_proposed_is_proposed_again),
		cmocka_unit_test(volume_is_closed_nobody_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
