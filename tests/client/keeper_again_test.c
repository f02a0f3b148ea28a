/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_again_test.c - a server that has FAILED is there again while the volume is open: what it
 * has is found at its new place, and a volume that had to stop goes on when enough of them are.
 */
#include <pthread.h>

#include "core/membership_change.h"
#include "tests/client/keeper_world.h"

#define PLACE 2u /* where one comes again */

/* ---- The thread that has connected it, and waits ------------------------------------------- */

struct waiter {
	struct world *w;
	uint32_t place, failed_place;
	int err;
	pthread_t thread;
};

static void *waiter_run(void *argument)
{
	struct waiter *waiter = argument;

	waiter->err = rbx_keeper_again(&waiter->w->keeper, waiter->place, waiter->failed_place);
	return NULL;
}

static bool is_seen(struct world *w)
{
	bool is;

	rbx_monitor_enter(&w->keeper.newcomer.monitor);
	is = w->keeper.newcomer.is_new;
	rbx_monitor_leave(&w->keeper.newcomer.monitor);
	return is;
}

/* Returns when the keeper can see it. Answers have woken that, too. */
static void comes_again(struct waiter *waiter, struct world *w, uint32_t place,
			uint32_t failed_place)
{
	*waiter = (struct waiter){ .w = w, .place = place, .failed_place = failed_place };
	w->control.servers[place].peer = w->control.servers[failed_place].peer;
	w->control.servers[place].is_shunned = true;
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_run, waiter), 0);
	do
		woken_wait();
	while (!is_seen(w));
}

static int waited(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	return waiter->err;
}

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

static void two_are_lost(struct world *w)
{
	w->control.servers[0].is_given_up = true;
	w->control.servers[1].is_given_up = true;
	(void)turn(w);
	assert_true(w->keeper.is_over);
}

static bool reads_nothing_as_zeros(struct world *w)
{
	return w->control.flow.map->shape.groups[0].extents->is_over;
}

/* The one with the last copy of a slab, while a request to its former place has not ended. */
static struct rbx_replica *fails_and_comes_again(struct waiter *waiter, struct world *w)
{
	struct rbx_replica *replica;

	has_slab(w, 0, 1);
	gives_up(w, 0);
	(void)turn(w);
	assert_true(has_failed(w, 0) && w->control.servers[0].has_failed);
	tells(1);
	comes_again(waiter, w, PLACE, 0);
	replica = rbx_slab_replica(slab_at(w, 1), 0);
	rbx_replica_take_off(replica);
	return replica;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void server_with_the_last_copy_comes_again_with_it(void **state)
{
	struct world *w = make(2);
	struct rbx_replica *replica;
	struct waiter waiter;

	(void)state;
	replica = fails_and_comes_again(&waiter, w);
	(void)turn(w);
	assert_int_equal(rbx_replica_server(replica), 0);
	assert_false(w->control.servers[PLACE].is_shunned);
	rbx_replica_land(replica);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
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

/* Nobody is judged until all of it was found: it is the same server as at the former place. */
static void nobody_is_judged_while_a_server_comes_again(void **state)
{
	struct world *w = make(2);
	struct rbx_replica *replica;
	struct waiter waiter;

	(void)state;
	replica = fails_and_comes_again(&waiter, w);
	suspect(w, PLACE);
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 0);
	rbx_replica_land(replica);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	suspect(w, PLACE);
	(void)turn(w);
	assert_true(has_failed(w, PLACE)); /* it has the last copy there */
	end(w);
}

static void volume_goes_on_when_enough_servers_are_there_again(void **state)
{
	struct world *w = make(2);
	struct waiter waiter;

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
	comes_again(&waiter, w, PLACE, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_false(w->keeper.is_over || reads_nothing_as_zeros(w));
	assert_false(w->control.servers[PLACE].is_shunned || has_failed(w, PLACE));
	assert_int_equal(w->control.upkeep.copies_least, 2);
	assert_true(has_failed(w, 0)); /* its former place is never a suspect */
	assert_true(has_failed(w, 1) && w->control.servers[1].has_failed);
	told_labels.count = 0;
	tells(0);
	comes_again(&waiter, w, PLACE + 1, 1);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_false(w->control.servers[PLACE + 1].is_shunned || has_failed(w, PLACE + 1));
	assert_int_equal(rbx_replica_server(rbx_slab_replica(slab_at(w, 0), 0)), PLACE + 1);
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
	struct waiter waiter;

	(void)state;
	has_slab(w, 0, 1);
	has_slab(w, 1, 0);
	two_are_lost(w);
	tells(1);
	comes_again(&waiter, w, PLACE, 0);
	replica = rbx_slab_replica(slab_at(w, 1), 0);
	rbx_replica_take_off(replica);
	(void)turn(w);
	assert_false(w->keeper.is_over);
	assert_int_equal(rbx_replica_server(replica), 0);
	assert_true(has_failed(w, 0) && !has_failed(w, PLACE));
	rbx_replica_land(replica);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_int_equal(rbx_replica_server(replica), PLACE);
	end(w);
}

static void newcomer_named_when_the_volume_was_lost_is_put_out(void **state)
{
	struct world *w = make(2);
	struct rbx_membership next;
	struct waiter waiter;
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
		comes_again(&waiter, w, PLACE + i, i);
		(void)turn(w);
		assert_int_equal(waited(&waiter), 0);
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
	struct waiter waiter;

	(void)state;
	two_are_lost(w);
	comes_again(&waiter, w, 3, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_false(w->control.servers[3].has_failed);
	w->control.servers[3].is_given_up = true;
	(void)turn(w);
	assert_true(w->control.servers[3].has_failed);
	comes_again(&waiter, w, 0, 1);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_true(w->keeper.is_over); /* it is one of three */
	end(w);
}

/* Those that are still connected do not count: another client may have had the volume. */
static void volume_does_not_go_on_with_too_few(void **state)
{
	struct world *w = make(3);
	struct waiter waiter;

	(void)state;
	has_slab(w, 0, 1);
	two_are_lost(w);
	tells(1);
	comes_again(&waiter, w, 3, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_true(w->keeper.is_over && w->control.servers[3].is_shunned);
	assert_int_equal(rbx_replica_server(rbx_slab_replica(slab_at(w, 1), 0)), 3);
	end(w);
}

static void volume_that_another_client_has_does_not_go_on(void **state)
{
	struct world *w = make(2);
	struct waiter waiter;

	(void)state;
	two_are_lost(w);
	rbx_proposer_refused(&w->named.proposer);
	comes_again(&waiter, w, PLACE, 0);
	(void)turn(w);
	(void)waited(&waiter);
	assert_true(w->keeper.is_over && w->control.servers[PLACE].is_shunned);
	end(w);
}

/* A record in which one is OUT may have been accepted by the one that comes again. */
static void record_that_was_proposed_is_proposed_again(void **state)
{
	struct world *w = make(3);
	struct waiter waiter;
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
	comes_again(&waiter, w, 3, 1);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_true(w->keeper.is_over);
	w->control.servers[1].is_given_up = false; /* its place is free again */
	comes_again(&waiter, w, 1, 2);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
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

/* ---- A volume that grows, and servers that drain ------------------------------------------- */

#define SIZE (5ull * RBX_SLAB_BYTES_MIN)

struct grower {
	struct world *w;
	uint64_t size_bytes;
	int err;
	pthread_t thread;
};

static void *grower_run(void *argument)
{
	struct grower *grower = argument;

	grower->err = rbx_keeper_grow(&grower->w->keeper, grower->size_bytes);
	return NULL;
}

static void grows(struct grower *grower, struct world *w, uint64_t size_bytes)
{
	bool is_seen;

	*grower = (struct grower){ .w = w, .size_bytes = size_bytes };
	assert_int_equal(pthread_create(&grower->thread, NULL, grower_run, grower), 0);
	do {
		woken_wait();
		rbx_monitor_enter(&w->keeper.growth.monitor);
		is_seen = w->keeper.growth.is_new;
		rbx_monitor_leave(&w->keeper.growth.monitor);
	} while (!is_seen);
	(void)turn(w);
}

static int grown(struct grower *grower)
{
	assert_int_equal(pthread_join(grower->thread, NULL), 0);
	return grower->err;
}

/* Some may have accepted the size that was not chosen. */
static void volume_that_was_about_to_grow_can_grow_later(void **state)
{
	struct world *w = make(2);
	const struct rbx_volume_map *map = w->control.flow.map;
	struct grower grower;
	struct waiter waiter;

	(void)state;
	grows(&grower, w, SIZE);
	answers(0, -ENOTCONN);
	answers(1, -ENOTCONN);
	two_are_lost(w);
	assert_int_equal(grown(&grower), -ESTALE);
	grows(&grower, w, SIZE); /* while nothing is accepted */
	assert_int_equal(grown(&grower), -ESTALE);
	comes_again(&waiter, w, PLACE, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	assert_false(w->keeper.is_over);
	assert_int_equal(servers[0].asked.record.size_bytes, SIZE);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(rbx_volume_map_slabs(map), 2);
	/* It is never said to be smaller. */
	grows(&grower, w, SIZE - RBX_SLAB_BYTES_MIN);
	assert_int_equal(servers[0].asked.record.size_bytes, SIZE);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(grown(&grower), 0);
	assert_int_equal(rbx_volume_map_bytes(map), SIZE);
	end(w);
}

/* It is OUT when the others are there again, and is told at its former place. */
static void server_that_drained_is_put_out_when_the_volume_goes_on(void **state)
{
	struct world *w = make(3);
	struct waiter waiter;

	(void)state;
	servers[2].drains = true;
	(void)turn(w);
	(void)turn(w);
	assert_false(rbx_record_is_in(&servers[0].asked.record, 3));
	answers(0, -ENOTCONN);
	answers(1, -ENOTCONN);
	two_are_lost(w);
	assert_false(w->control.servers[2].has_failed);
	comes_again(&waiter, w, 3, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
	w->control.servers[0].is_given_up = false; /* its place is free again */
	comes_again(&waiter, w, 0, 1);
	(void)turn(w);
	assert_int_equal(waited(&waiter), 0);
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

static void volume_is_closed_nobody_comes_again(void **state)
{
	struct world *w = make(2);
	struct waiter waiter;

	(void)state;
	gives_up(w, 0);
	has_slab(w, 0, 1);
	(void)turn(w);
	rbx_keeper_take_no_more(&w->keeper);
	comes_again(&waiter, w, PLACE, 0);
	(void)turn(w);
	assert_int_equal(waited(&waiter), -ECANCELED);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_with_the_last_copy_comes_again_with_it),
		cmocka_unit_test(nobody_is_judged_while_a_server_comes_again),
		cmocka_unit_test(volume_goes_on_when_enough_servers_are_there_again),
		cmocka_unit_test(server_that_has_failed_and_is_up_is_given_up),
		cmocka_unit_test(former_place_fails_until_the_server_has_come),
		cmocka_unit_test(newcomer_named_when_the_volume_was_lost_is_put_out),
		cmocka_unit_test(server_that_is_lost_meanwhile_comes_once_more),
		cmocka_unit_test(volume_does_not_go_on_with_too_few),
		cmocka_unit_test(volume_that_another_client_has_does_not_go_on),
		cmocka_unit_test(record_that_was_proposed_is_proposed_again),
		cmocka_unit_test(volume_that_was_about_to_grow_can_grow_later),
		cmocka_unit_test(server_that_drained_is_put_out_when_the_volume_goes_on),
		cmocka_unit_test(volume_is_closed_nobody_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
