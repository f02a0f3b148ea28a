/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_test.c - rounds of the upkeep, one by one: servers that refuse, go down
 * or want their memory back, at chosen moments. upkeep_on_demand_test.c has those of
 * slabs on demand, volume_test.c the histories at random.
 */
#include "tests/core/scripted_host.h"

static uint8_t out[HOST_CELL_BYTES];

static struct host *open_host(uint32_t slabs, uint32_t replicas,
			      uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	return host;
}

/* ---- Borrowing --------------------------------------------------------------*/

static void borrow_all_spreads_replicas(void **state)
{
	struct host *host = open_host(4, 2, 4);
	struct rbx_census census = host_census(host);

	(void)state;
	assert_int_equal(census.slabs, 4);
	assert_int_equal(census.whole, 4);
	assert_int_equal(census.servers, 4);
	assert_int_equal(census.servers_up, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(host_lent_count(host, i) > 0);
	host_free(host);
}

static void borrow_all_server_refuses_another_is_asked(void **state)
{
	struct host *host = host_make(2, 1, 2);

	(void)state;
	host->servers[0].refuse = -EDQUOT;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_lent_count(host, 1), 2);
	host_free(host);
}

static void borrow_all_servers_are_full_the_reason_is_theirs(void **state)
{
	struct host *host = host_make(HOST_AREAS + 1, 1, 1);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), -ENOSPC);
	assert_int_equal(host_lent_count(host, 0), HOST_AREAS);
	host_free(host); /* nothing stays borrowed */
}

static void borrow_replica_twice_on_a_server_is_never_tried(void **state)
{
	struct host *host = host_make(1, 2, 1);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), -ENODEV);
	assert_int_equal(host->servers[0].asked_count, 1);
	host_free(host);
}

/* Servers that take their time. */
static struct host *make_slow_host(uint32_t slabs, uint32_t replicas, uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	for (uint32_t i = 0; i < servers; i++)
		host->servers[i].is_slow = true;
	host->answers_at_wait = true;
	return host;
}

static void borrow_all_asks_servers_side_by_side(void **state)
{
	struct host *host = make_slow_host(4, 2, 4);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host->asks_max_count, 4);
	host_free(host);
}

/* Chance draws some servers several times in a row. No server waits for that: each one is asked
 * whenever the others are. */
static void borrow_all_a_drawn_server_is_busy_the_others_are_asked(void **state)
{
	struct host *host = make_slow_host(3 * HOST_SERVERS, 1, HOST_SERVERS);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_census(host).whole, 3 * HOST_SERVERS);
	assert_in_range(host->waits_count, 3, 4);
	host_free(host);
}

static void borrow_all_refused_in_the_middle_nothing_is_asked_twice(void **state)
{
	struct host *host = host_make(6, 2, 4);
	uint32_t i, lent_count = 0;

	(void)state;
	host->servers[1].refuse = -EDQUOT;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	assert_int_equal(host_census(host).whole, 6);
	for (i = 0; i < 4; i++)
		lent_count += host_lent_count(host, i);
	assert_int_equal(lent_count, 12);
	host_free(host);
}

/* ---- Servers that want their memory back --------------------------------------*/

static void evict_moves_the_slab(void **state)
{
	struct host *host = open_host(1, 1, 2);
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t from = rbx_replica_server(rbx_slab_replica(slab, 0));

	(void)state;
	host_write_cell(host, 3);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->wakes_count = 0;
	host_evict_live(host, 0);
	assert_int_equal(host->wakes_count, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_lent_count(host, from), 0);
	assert_int_equal(host_census(host).whole, 1);
	host_assert_cell(host, 3);
	host_free(host);
}

static void evict_of_a_slab_that_is_not_ours_wakes_nobody(void **state)
{
	struct host *host = open_host(1, 1, 1);

	(void)state;
	host->wakes_count = 0;
	host_evict(host, 0, &(struct rbx_loan){ .slab_id = 99, .epoch = 1 });
	assert_int_equal(host->wakes_count, 0);
	host_free(host);
}

static void evict_with_no_room_is_told_once_and_tried_again(void **state)
{
	struct host *host = open_host(1, 1, 2);
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t from = rbx_replica_server(rbx_slab_replica(slab, 0));

	(void)state;
	host->servers[1 - from].refuse = -EDQUOT;
	host_evict_live(host, 0);
	assert_true(host_settle(host));
	assert_true(host_settle(host));
	assert_string_equal(host->news, "T");
	assert_int_equal(host->stuck_err, -EDQUOT);
	/* It serves as long as it is there. */
	host_write_cell(host, 4);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[1 - from].refuse = 0;
	assert_false(host_settle(host));
	assert_string_equal(host->news, "TSF");
	host_assert_cell(host, 4);
	/* And the next time it is told again. */
	host->servers[from].refuse = -EDQUOT;
	host_evict_live(host, 0);
	assert_true(host_settle(host));
	assert_string_equal(host->news, "TSFT");
	host_free(host);
}

static void evict_with_no_server_left_says_so(void **state)
{
	struct host *host = open_host(1, 2, 2);

	(void)state;
	host_evict_live(host, 0);
	assert_true(host_settle(host));
	assert_int_equal(host->stuck_err, -ENODEV);
	host_free(host);
}

/* Before that it only seems that no server is left: the one that revoked a replica, to
 * which parts are under way, is asked next. */
static void stuck_is_told_when_the_lost_one_is_gone(void **state)
{
	struct host *host = open_host(1, 2, 2);
	struct rbx_slab *slab = host_slab(host, 0);
	const struct rbx_loan loan = rbx_replica_loan(rbx_slab_replica(slab, 0));
	uint32_t server = rbx_replica_server(rbx_slab_replica(slab, 0));

	(void)state;
	host_write_cell(host, 4);
	host->servers[server].keys[loan.slab_id] = 0;
	host->servers[server].refuse = -EDQUOT;
	rbx_slab_revoked(slab, server, &loan);
	assert_true(rbx_attention_note(&host->flow.map->attention, slab));
	assert_true(host_round(host));
	assert_true(host_round(host));
	assert_string_equal(host->news, "");
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_true(host_settle(host));
	assert_string_equal(host->news, "T");
	assert_int_equal(host->news_counts[0], 1);
	assert_int_equal(host->stuck_err, -EDQUOT);
	host->servers[server].refuse = 0;
	assert_false(host_settle(host));
	assert_string_equal(host->news, "TSF");
	host_assert_cell(host, 4);
	host_free(host);
}

/* Not with what another server said of something else in the same round. */
static void stuck_is_told_with_the_words_of_the_refusal(void **state)
{
	struct host *host = host_make_on_demand(2, 1, 2);

	(void)state;
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES, out, sizeof(out));
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 2);
	for (uint32_t i = 0; i < 2; i++) {
		host->servers[i].refuse = -EDQUOT;
		host->servers[i].deaf = -ENOTCONN;
	}
	host_evict_live(host, 0);
	rbx_flow_discard(&host->flow, HOST_SLAB_BYTES, HOST_SLAB_BYTES);
	assert_true(host_round(host));
	assert_string_equal(host->news, "T");
	assert_int_equal(host->said_err, -ENOTCONN);
	assert_int_equal(host->stuck_err, -EDQUOT);
	assert_int_equal(host->refused_err, -EDQUOT);
	host_free(host);
}

static void evicted_slab_is_revoked_its_server_is_asked_anew(void **state)
{
	struct host *host = open_host(1, 2, 2);
	struct rbx_slab *slab = host_slab(host, 0);
	struct host_server *server = &host->servers[rbx_replica_server(rbx_slab_replica(slab, 0))];
	uint64_t slab_id = rbx_slab_replica(slab, 0)->slab_id;

	(void)state;
	host_evict_live(host, 0);
	assert_true(host_settle(host));
	server->keys[slab_id] = 0;
	/* One round finds it out, the next ones do something about it. */
	assert_true(host_round(host));
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_string_equal(host->news, "TSF");
	host_free(host);
}

static void evict_of_a_loan_of_before_leaves_the_one_of_now(void **state)
{
	struct host *host = open_host(1, 1, 2);
	const struct rbx_replica *replica = rbx_slab_replica(host_slab(host, 0), 0);
	struct rbx_loan before = rbx_replica_loan(replica);

	(void)state;
	before.epoch--;
	host->wakes_count = 0;
	host_evict(host, rbx_replica_server(replica), &before);
	assert_int_equal(host->wakes_count, 0);
	assert_int_equal(rbx_slab_state(host_slab(host, 0), 0), RBX_REPLICA_LIVE);
	host_free(host);
}

/* ---- What a server lends twice --------------------------------------------------*/

/* The server has revoked what slab 0 stands on and lends it again, to slab 1, under
 * this key. Returns the state of the replica that was. */
static uint8_t lend_again(struct host *host, uint32_t key)
{
	const struct rbx_replica *first = rbx_slab_replica(host_slab(host, 0), 0);

	host->servers[0].keys[first->slab_id] = 0;
	host->next_key = key - 1;
	host_start(host, RBX_PIECE_WRITE, HOST_SLAB_BYTES, host->servers[1].memory,
		   HOST_CELL_BYTES);
	(void)host_round(host);
	return rbx_slab_state(host_slab(host, 0), 0);
}

static struct host *open_with_slab_0_written(void)
{
	struct host *host = host_make_on_demand(2, 1, 1);

	host_write_cell(host, 5);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	return host;
}

static void loan_with_the_id_of_another_ends_the_older(void **state)
{
	struct host *host = open_with_slab_0_written();

	(void)state;
	assert_int_not_equal(lend_again(host, 77), RBX_REPLICA_LIVE);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).dead, 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

static void loan_with_the_key_and_place_of_another_ends_the_older(void **state)
{
	struct host *host = open_with_slab_0_written();
	struct rbx_replica *first = rbx_slab_replica(host_slab(host, 0), 0);
	uint32_t number = rbx_replica_number(host_slab(host, 0), 0);

	(void)state;
	/* Another id then, and the same memory. */
	rbx_loan_index_remove(&host->flow.map->loans, number);
	first->slab_id = 3;
	rbx_loan_index_add(&host->flow.map->loans, number);
	host->servers[0].keys[0] = 0;
	assert_int_not_equal(lend_again(host, first->rkey),
			     RBX_REPLICA_LIVE);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static void loan_whose_twin_is_in_use_goes_back(void **state)
{
	struct host *host = open_with_slab_0_written();
	struct rbx_replica *first = rbx_slab_replica(host_slab(host, 0), 0);

	(void)state;
	host_write_cell(host, 6); /* under way to the older one */
	assert_int_equal(rbx_replica_flights(first), 1);
	assert_int_equal(lend_again(host, first->rkey), RBX_REPLICA_LOST);
	assert_int_equal(host_lent_count(host, 0), 0);
	assert_int_equal(host_slab(host, 1)->read_mask, 0);
	/* Once that has ended there is nothing in the way. */
	host_poll(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* ---- What is owed -------------------------------------------------------------*/

/* Moves the slab away from its server, which does not hear that it is over. */
static uint32_t owe(struct host *host, int deaf)
{
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t from = rbx_replica_server(rbx_slab_replica(slab, 0));

	host->servers[from].deaf = deaf;
	host_evict_live(host, 0);
	return from;
}

static void loan_not_heard_of_is_given_back_later(void **state)
{
	struct host *host = open_host(1, 1, 2);
	uint32_t from = owe(host, -ENOTCONN);

	(void)state;
	assert_true(host_settle(host));
	assert_int_equal(host_lent_count(host, from), 1);
	host->servers[from].deaf = 0;
	assert_false(host_settle(host));
	assert_int_equal(host_lent_count(host, from), 0);
	host_free(host);
}

static void loan_refused_by_its_server_is_not_owed(void **state)
{
	struct host *host = open_host(1, 1, 2);
	uint32_t from = owe(host, -EPERM);

	(void)state;
	assert_false(host_settle(host));
	assert_int_equal(host->upkeep.owed_count, 0);
	host->servers[from].keys[0] = 0; /* as it said */
	host_free(host);
}

static void loan_of_a_server_that_died_is_not_owed(void **state)
{
	struct host *host = open_host(1, 1, 2);
	uint32_t from = owe(host, -ETIMEDOUT);

	(void)state;
	assert_true(host_settle(host));
	assert_int_equal(host->upkeep.owed_count, 1);
	host_server_dies(host, from);
	assert_false(host_settle(host));
	assert_int_equal(host->upkeep.owed_count, 0);
	host_free(host);
}

/* ---- The end ------------------------------------------------------------------*/

static void close_in_mid_rebuild_gives_all_back(void **state)
{
	struct host *host = open_host(1, 2, 3);

	(void)state;
	host_server_dies(host, host_server_of(host, 0, 0));
	assert_false(host_round(host));
	assert_true(rbx_rebuild_is_under_way(&host->flow));
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borrow_all_spreads_replicas),
		cmocka_unit_test(borrow_all_server_refuses_another_is_asked),
		cmocka_unit_test(
			borrow_all_servers_are_full_the_reason_is_theirs),
		cmocka_unit_test(
			borrow_replica_twice_on_a_server_is_never_tried),
		cmocka_unit_test(borrow_all_asks_servers_side_by_side),
		cmocka_unit_test(
			borrow_all_a_drawn_server_is_busy_the_others_are_asked),
		cmocka_unit_test(
			borrow_all_refused_in_the_middle_nothing_is_asked_twice),
		cmocka_unit_test(evict_moves_the_slab),
		cmocka_unit_test(evict_of_a_slab_that_is_not_ours_wakes_nobody),
		cmocka_unit_test(
			evict_with_no_room_is_told_once_and_tried_again),
		cmocka_unit_test(evict_with_no_server_left_says_so),
		cmocka_unit_test(stuck_is_told_when_the_lost_one_is_gone),
		cmocka_unit_test(stuck_is_told_with_the_words_of_the_refusal),
		cmocka_unit_test(
			evicted_slab_is_revoked_its_server_is_asked_anew),
		cmocka_unit_test(
			evict_of_a_loan_of_before_leaves_the_one_of_now),
		cmocka_unit_test(loan_with_the_id_of_another_ends_the_older),
		cmocka_unit_test(
			loan_with_the_key_and_place_of_another_ends_the_older),
		cmocka_unit_test(loan_whose_twin_is_in_use_goes_back),
		cmocka_unit_test(loan_not_heard_of_is_given_back_later),
		cmocka_unit_test(loan_refused_by_its_server_is_not_owed),
		cmocka_unit_test(loan_of_a_server_that_died_is_not_owed),
		cmocka_unit_test(close_in_mid_rebuild_gives_all_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
