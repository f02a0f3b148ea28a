/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_servers_test.c - servers that go down at chosen moments, and whose place is
 * taken by others; upkeep_test.c has the rounds.
 */
#include "core/asks.h"
#include "tests/core/scripted_host.h"

static struct host *open_host(uint32_t slabs, uint32_t replicas,
			      uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	return host;
}

static void server_under_two_names_is_known(void **state)
{
	struct host *host = host_make(1, 1, 2);
	uint32_t other = 9;

	(void)state;
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, 0, 5, &other),
			 0);
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, 1, 5, &other),
			 -EEXIST);
	assert_int_equal(other, 0);
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, 1, 6, &other),
			 0);
	/* One that is gone for good is nobody's other name. */
	host_server_dies(host, 0);
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, 2, 5, &other),
			 0);
	host_free(host);
}

/* It comes back elsewhere, while another one is about to take its place. */
static void server_that_was_lost_is_not_who_gets_its_place(void **state)
{
	struct host *host = host_make(1, 1, 2);
	uint32_t other = 9;

	(void)state;
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, 0, 5, &other),
			 0);
	host_server_dies(host, 0);
	rbx_upkeep_server_begins(&host->upkeep, 0);
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, 1, 5, &other),
			 0);
	assert_int_equal(other, 9);
	host_free(host);
}

/* ---- Servers that go down -----------------------------------------------------*/

static void server_dies_replicas_are_made_anew_and_it_is_told(void **state)
{
	struct host *host = open_host(2, 2, 2);

	(void)state;
	host_write_cell(host, 1);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_false(host_settle(host));
	rbx_upkeep_server_begins(&host->upkeep, 2);
	rbx_upkeep_server_added(&host->upkeep, 2);
	host_server_dies(host, 0);
	assert_false(host_settle(host));
	assert_string_equal(host->news, "DSF");
	assert_int_equal(host->news_counts[0], 2);
	assert_int_equal(host->news_counts[1], 2);
	assert_int_equal(host->news_counts[2], 2);
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(host_census(host).servers_up, 2);
	assert_int_equal(host->counters.rebuilt_bytes, 2 * HOST_SLAB_BYTES);
	/* The new replica stands alone. */
	host_server_dies(host, 1);
	host_assert_cell(host, 1);
	host_free(host);
}

static void server_dies_with_a_write_under_way_the_write_is_kept(void **state)
{
	struct host *host = open_host(1, 2, 3);
	uint32_t gone = host_server_of(host, 0, 0);

	(void)state;
	host_write_cell(host, 2);
	host_server_dies(host, gone);
	/* Before any round has seen to it. */
	assert_int_equal(host_census(host).servers_up, 2);
	/* Before its part has failed: a replica leaves, a part is under way. */
	assert_false(host_round(host));
	assert_int_equal(host_census(host).rebuilding, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	host_server_dies(host, host_server_of(host, 0, 1));
	host_assert_cell(host, 2);
	host_free(host);
}

static void target_dies_when_it_has_just_been_borrowed(struct host *host,
						       enum rbx_news news)
{
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t target;

	if (news != RBX_NEWS_REBUILD_STARTED)
		return;
	target = (uint32_t)__builtin_ctz(rbx_slab_targets(slab));
	host->harm = NULL;
	host_server_dies(host, rbx_replica_server(rbx_slab_replica(slab, target)));
	rbx_slab_server_down(slab, rbx_replica_server(rbx_slab_replica(slab, target)));
}

static void target_dies_before_the_first_copy_another_is_taken(void **state)
{
	struct host *host = open_host(1, 2, 4);

	(void)state;
	host->harm = target_dies_when_it_has_just_been_borrowed;
	host_server_dies(host, host_server_of(host, 0, 0));
	assert_false(host_settle(host));
	assert_string_equal(host->news, "DSDF");
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_census(host).servers_up, 2);
	host_free(host);
}

static void rebuild_whose_target_is_gone_ends_at_once(void **state)
{
	struct host *host = open_host(1, 2, 2);

	(void)state;
	host->wakes_count = 0;
	rbx_rebuild_start(&host->flow, host_slab(host, 0), host->now_ns);
	assert_false(rbx_rebuild_is_under_way(&host->flow));
	assert_int_equal(host->wakes_count, 1);
	assert_null(host->sent_first);
	host_free(host);
}

static uint32_t looks_count;

static void wake_looks(struct rbx_flow *flow)
{
	assert_false(rbx_rebuild_is_under_way(flow));
	looks_count++;
}

/* Else its round finds nothing to do, and nobody makes another one. */
static void upkeep_thread_is_woken_when_a_rebuild_is_over(void **state)
{
	struct host *host = open_host(1, 2, 2);
	const struct rbx_flow_ops *ops = host->flow.ops;
	struct rbx_flow_ops looking = *ops;

	(void)state;
	looking.wake = wake_looks;
	looks_count = 0;
	host->flow.ops = &looking;
	rbx_rebuild_start(&host->flow, host_slab(host, 0), host->now_ns);
	host->flow.ops = ops;
	assert_int_equal(looks_count, 1);
	host_free(host);
}

static void target_dies_in_mid_rebuild_another_is_taken(void **state)
{
	struct host *host = open_host(1, 2, 4);
	struct rbx_slab *slab = host_slab(host, 0);

	(void)state;
	host_server_dies(host, rbx_replica_server(rbx_slab_replica(slab, 0)));
	assert_false(host_round(host));
	assert_true(rbx_rebuild_is_under_way(&host->flow));
	host_poll(host); /* the copies were read, and are to be written */
	host_server_dies(host,
			 host_server_of(host, 0, (uint32_t)__builtin_ctz(
							 rbx_slab_targets(slab))));
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	/* Copies that failed do not count. */
	assert_int_equal(host->counters.rebuilt_bytes, HOST_SLAB_BYTES);
	host_free(host);
}

static void last_replica_dies_it_is_told_once(void **state)
{
	struct host *host = open_host(2, 1, 1);

	(void)state;
	host_server_dies(host, 0);
	assert_false(host_settle(host));
	assert_false(host_settle(host));
	assert_string_equal(host->news, "DL");
	assert_int_equal(host->news_counts[1], 2);
	assert_int_equal(host_census(host).dead, 2);
	host_free(host);
}

/* More slabs than are looked at in a round, and nobody says again that they are down. */
static void two_servers_of_many_slabs_die_together_both_are_seen(void **state)
{
	struct host *host =
		host_make_on_demand(RBX_UPKEEP_LOOKS_MAX + 1, 1, 3);

	(void)state;
	host_server_dies(host, 0);
	host_server_dies(host, 1);
	assert_false(host_settle(host));
	assert_string_equal(host->news, "DD");
	assert_int_equal(host_census(host).servers_up, 1);
	host_free(host);
}

/* ---- Places in the table -----------------------------------------------------*/

static uint32_t place_of(struct host *host)
{
	uint32_t place = RBX_SERVERS_MAX;

	assert_int_equal(rbx_upkeep_server_place(&host->upkeep, &place), 0);
	return place;
}

static void server_is_gone_its_place_is_used_again(void **state)
{
	struct host *host = open_host(1, 2, 3);
	uint32_t gone = host_server_of(host, 0, 0);

	(void)state;
	assert_int_equal(place_of(host), 3);
	host_server_dies(host, gone);
	assert_false(host_settle(host));
	assert_int_equal(place_of(host), gone);
	rbx_upkeep_server_begins(&host->upkeep, gone);
	assert_int_equal(place_of(host), 3); /* it is somebody's */
	host->servers[gone].down = false;
	memset(host->servers[gone].keys, 0, sizeof(host->servers[gone].keys));
	rbx_upkeep_server_added(&host->upkeep, gone);
	assert_int_equal(host_census(host).servers_up, 3);
	/* And it takes the replica of another one that goes. */
	host_server_dies(host, host_server_of(host, 0, 1));
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_lent_count(host, gone), 1);
	host_free(host);
}

static bool has_refused(struct host *host, uint32_t server)
{
	struct rbx_server_set refused = { 0 };

	rbx_asks_join_refused(&host->upkeep, &refused);
	return rbx_server_set_has(&refused, server);
}

static void server_is_gone_what_it_refused_is_forgotten(void **state)
{
	struct host *host = open_host(1, 2, 3);
	uint32_t dead = host_server_of(host, 0, 0);
	uint32_t spare = 3 - dead - host_server_of(host, 0, 1);

	(void)state;
	host->servers[spare].refuse = -ENOSPC;
	host_server_dies(host, dead);
	assert_true(host_settle(host));
	assert_true(has_refused(host, spare));
	host_server_dies(host, spare);
	(void)host_settle(host);
	assert_false(has_refused(host, spare));
	host_free(host);
}

static void server_is_gone_how_long_it_was_avoided_is_forgotten(void **state)
{
	struct host *host = open_host(1, 2, 3);
	uint32_t gone = host_server_of(host, 0, 0);

	(void)state;
	rbx_asks_avoid(&host->upkeep, gone, UINT64_MAX);
	host_server_dies(host, gone);
	assert_false(host_settle(host));
	assert_int_equal(place_of(host), gone);
	rbx_upkeep_server_begins(&host->upkeep, gone);
	rbx_upkeep_server_added(&host->upkeep, gone);
	rbx_asks_avoid(&host->upkeep, gone, host->now_ns + 1);
	assert_false(host_settle(host));
	assert_false(rbx_server_set_has(
		&host->upkeep.marked[RBX_SERVER_AVOIDED], gone));
	host_free(host);
}

static void server_is_gone_with_a_write_under_way_its_place_waits(void **state)
{
	struct host *host = open_host(1, 2, 3);
	uint32_t gone = host_server_of(host, 0, 0);

	(void)state;
	host_write_cell(host, 3);
	host_server_dies(host, gone);
	(void)host_round(host);
	assert_int_equal(place_of(host), 3);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(place_of(host), gone);
	host_free(host);
}

static void server_goes_before_it_is_added_it_is_down_after(void **state)
{
	struct host *host = open_host(1, 1, 1);

	(void)state;
	rbx_upkeep_server_begins(&host->upkeep, 1);
	rbx_upkeep_server_down(&host->upkeep, 1);
	assert_false(host_settle(host)); /* nobody knows of it yet */
	assert_string_equal(host->news, "");
	rbx_upkeep_server_added(&host->upkeep, 1);
	assert_false(host_settle(host));
	assert_string_equal(host->news, "D");
	assert_int_equal(host_census(host).servers_up, 1);
	assert_int_equal(place_of(host), 1);
	host_free(host);
}

static void table_of_servers_is_full_the_next_is_refused(void **state)
{
	struct host *host = open_host(1, 1, 1);
	uint32_t i, place;

	(void)state;
	for (i = 1; i < RBX_SERVERS_MAX; i++) {
		assert_int_equal(place_of(host), i);
		rbx_upkeep_server_begins(&host->upkeep, i);
		rbx_upkeep_server_added(&host->upkeep, i);
	}
	assert_int_equal(host_census(host).servers_up, RBX_SERVERS_MAX);
	assert_int_equal(rbx_upkeep_server_place(&host->upkeep, &place),
			 -ENOSPC);
	rbx_upkeep_server_down(&host->upkeep, 700);
	assert_false(host_settle(host));
	assert_int_equal(place_of(host), 700);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_under_two_names_is_known),
		cmocka_unit_test(server_that_was_lost_is_not_who_gets_its_place),
		cmocka_unit_test(server_is_gone_its_place_is_used_again),
		cmocka_unit_test(
			server_is_gone_what_it_refused_is_forgotten),
		cmocka_unit_test(
			server_is_gone_how_long_it_was_avoided_is_forgotten),
		cmocka_unit_test(
			server_is_gone_with_a_write_under_way_its_place_waits),
		cmocka_unit_test(server_goes_before_it_is_added_it_is_down_after),
		cmocka_unit_test(table_of_servers_is_full_the_next_is_refused),
		cmocka_unit_test(
			server_dies_replicas_are_made_anew_and_it_is_told),
		cmocka_unit_test(
			server_dies_with_a_write_under_way_the_write_is_kept),
		cmocka_unit_test(
			target_dies_before_the_first_copy_another_is_taken),
		cmocka_unit_test(rebuild_whose_target_is_gone_ends_at_once),
		cmocka_unit_test(upkeep_thread_is_woken_when_a_rebuild_is_over),
		cmocka_unit_test(target_dies_in_mid_rebuild_another_is_taken),
		cmocka_unit_test(last_replica_dies_it_is_told_once),
		cmocka_unit_test(
			two_servers_of_many_slabs_die_together_both_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
