/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* balance_test.c - replicas move to servers with more memory free, until all are about even. */
#include "core/balance.h"
#include "core/labels.h"
#include "core/last_copies.h"
#include "tests/core/domains.h"

#define ROUNDS_MAX 200u

/* So many slabs with all their memory, on the first servers. */
static struct host *open_host(uint32_t slabs, uint32_t replicas, uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host->now_ns = 1000000000ull;
	rbx_upkeep_opened(&host->upkeep, UINT64_MAX);
	return host;
}

static void add_server(struct host *host, uint32_t server)
{
	rbx_upkeep_server_begins(&host->upkeep, server);
	rbx_upkeep_server_added(&host->upkeep, server);
}

/* Long enough for all that is to move. */
static void live(struct host *host)
{
	uint32_t i;

	for (i = 0; i < 10; i++) {
		host->now_ns += 2 * RBX_BALANCE_MS * 1000000ull;
		(void)host_settle(host);
	}
}

static uint64_t moved(struct host *host)
{
	return host_census(host).moved;
}

static void assert_even(struct host *host, uint32_t servers)
{
	uint32_t i, least = UINT32_MAX, most = 0;

	for (i = 0; i < servers; i++) {
		least = RBX_MIN(least, host_lent_count(host, i));
		most = RBX_MAX(most, host_lent_count(host, i));
	}
	assert_true(most - least < 2);
}

static void server_is_added_to_a_full_pool_and_gets_its_share(void **state)
{
	struct host *host = open_host(4, 2, 2);
	uint64_t count;

	(void)state;
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	add_server(host, 2);
	live(host);
	assert_even(host, 3);
	assert_int_equal(host_census(host).whole, 4);
	count = moved(host);
	assert_int_equal(count, host_lent_count(host, 2));
	host_assert_cell(host, 7);
	/* It is over. */
	live(host);
	assert_int_equal(moved(host), count);
	host_free(host);
}

static void servers_that_differ_by_one_slab_keep_what_they_have(void **state)
{
	struct host *host = open_host(1, 2, 3);
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		host->servers[i].asked_count = 0;
	live(host);
	assert_int_equal(moved(host), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(host->servers[i].asked_count, 0);
	host_free(host);
}

/* Before the volume is open; with one replica; while a slab lacks one; while a server is to have
 * none. */
static void nothing_moves_at_other_times(void **state)
{
	struct host *host = host_make(4, 2, 2);

	(void)state;
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	add_server(host, 2);
	live(host);
	assert_int_equal(moved(host), 0);
	host_free(host);

	host = open_host(4, 1, 1);
	add_server(host, 1);
	live(host);
	assert_int_equal(moved(host), 0);
	host_free(host);

	host = open_host(2, 3, 3);
	host_server_dies(host, 0);
	add_server(host, 3);
	host->servers[3].refuse = -ENOSPC;
	add_server(host, 4);
	host->servers[4].refuse = -ENOSPC;
	live(host);
	assert_int_equal(host_census(host).whole, 0);
	assert_int_equal(moved(host), 0);
	host_free(host);

	host = open_host(4, 2, 2);
	add_server(host, 2);
	rbx_lock(&host->upkeep.servers_lock);
	rbx_server_set_add(&host->upkeep.leaving, 2);
	rbx_unlock(&host->upkeep.servers_lock);
	live(host);
	assert_int_equal(moved(host), 0);
	host_free(host);
}

static void server_refuses_and_nothing_has_changed(void **state)
{
	struct host *host = open_host(4, 2, 2);

	(void)state;
	add_server(host, 2);
	host->servers[2].refuse = -EDQUOT;
	live(host);
	assert_true(host->servers[2].asked_count > 0);
	assert_int_equal(host_census(host).whole, 4);
	assert_int_equal(moved(host), 0);
	host->servers[2].refuse = 0;
	live(host);
	assert_even(host, 3);
	host_free(host);
}

/* Two racks; a server that is added to one of them takes nothing whose other replica is there. */
static void domains_are_kept(void **state)
{
	static const uint64_t domains[] = { 1, 2, 2 };
	struct host *host = host_make(4, 2, 2);
	uint32_t slab;

	(void)state;
	set_domains(host, domains, 2);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	rbx_upkeep_opened(&host->upkeep, UINT64_MAX);
	rbx_upkeep_server_begins(&host->upkeep, 2);
	rbx_upkeep_server_domain(&host->upkeep, 2, domains[2]);
	rbx_upkeep_server_added(&host->upkeep, 2);
	live(host);
	assert_int_equal(host_lent_count(host, 0), 4);
	assert_int_equal(host_lent_count(host, 1), 2);
	assert_int_equal(host_lent_count(host, 2), 2);
	for (slab = 0; slab < 4; slab++)
		assert_false(is_together(host, slab));
	host_free(host);
}

/* Begins to move a replica of one of two slabs, to a server that does not answer. */
static struct host *begin_asking(struct host *host, uint32_t *slab)
{
	host->servers[2].is_slow = true;
	(void)host_round(host);
	host->now_ns += 2 * RBX_BALANCE_MS * 1000000ull;
	(void)host_round(host);
	for (*slab = 0; rbx_slab_find(host_slab(host, *slab), RBX_REPLICA_BORROWING) < 0; ++*slab)
		assert_true(*slab < 1);
	return host;
}

static struct host *open_asking(uint32_t *slab)
{
	struct host *host = open_host(2, 2, 2);

	add_server(host, 2);
	return begin_asking(host, slab);
}

/* Others have borrowed there at the same moment. */
static void server_is_fuller_by_then_and_gets_its_memory_back(void **state)
{
	struct host *host;
	uint32_t slab;

	(void)state;
	host = open_asking(&slab);
	host->servers[2].keys[1] = host->servers[2].keys[2] = 0xabcdef;
	host->servers[2].is_slow = false;
	live(host);
	assert_int_equal(moved(host), 0);
	assert_int_equal(host_lent_count(host, 2), 2);
	assert_int_equal(host_census(host).whole, 2);
	host->servers[2].keys[1] = host->servers[2].keys[2] = 0;
	host_free(host);
}

/* What was to move on is not needed: it takes the place of the one that was lost. */
static void replica_is_lost_before_the_server_lends(void **state)
{
	struct host *host;
	uint32_t slab;

	(void)state;
	host = open_asking(&slab);
	host_server_dies(host, 0);
	(void)host_round(host);
	host->servers[2].is_slow = false;
	live(host);
	assert_int_equal(moved(host), 0);
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(host_lent_count(host, 2), 2);
	host_free(host);
}

/* Server 2 has lent, and nothing is copied yet. Returns the slot of what leaves. */
static struct host *open_moving(uint32_t *slab, uint32_t *leaver)
{
	struct host *host = open_asking(slab);
	int slot;

	host->servers[2].is_slow = false;
	(void)host_round(host);
	slot = rbx_slab_find(host_slab(host, *slab), RBX_REPLICA_LEAVING);
	assert_true(slot >= 0);
	*leaver = host_server_of(host, *slab, (uint32_t)slot);
	return host;
}

static void assert_at_rest(struct host *host)
{
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(rbx_slab_records_free(&host->flow.map->records), RBX_SLAB_RECORDS);
}

/* No other server could take it. */
static void replica_stays_if_the_server_that_it_moves_to_dies(void **state)
{
	uint32_t slab, leaver;
	struct host *host = open_moving(&slab, &leaver);

	(void)state;
	host_write_cell(host, 7);
	host_server_dies(host, 2);
	live(host);
	assert_at_rest(host);
	assert_int_equal(host_lent_count(host, leaver), 2);
	assert_int_equal(host_ended(host, 0), 1);
	host_assert_cell(host, 7);
	host_free(host);
}

/* The one that is lost is replaced by what is copied already. */
static void replica_stays_if_another_one_is_lost(void **state)
{
	uint32_t slab, leaver;
	struct host *host = open_moving(&slab, &leaver);

	(void)state;
	host_server_dies(host, 1 - leaver);
	live(host);
	assert_at_rest(host);
	assert_int_equal(host_lent_count(host, leaver), 2);
	assert_int_equal(host_lent_count(host, 2), 2);
	host_free(host);
}

/* It has moved within its domain. So the other one is not to be replaced there, if it is lost. */
static void replica_that_stays_is_not_with_its_copy(void **state)
{
	static const uint64_t domains[] = { 1, 2, 2, 1 };
	struct host *host = host_make(2, 2, 2);
	uint32_t slab;

	(void)state;
	set_domains(host, domains, 2);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	rbx_upkeep_opened(&host->upkeep, UINT64_MAX);
	rbx_upkeep_server_begins(&host->upkeep, 2);
	rbx_upkeep_server_domain(&host->upkeep, 2, domains[2]);
	rbx_upkeep_server_added(&host->upkeep, 2);
	begin_asking(host, &slab);
	host->servers[2].is_slow = false;
	(void)host_round(host);
	assert_true(rbx_slab_find(host_slab(host, slab), RBX_REPLICA_LEAVING) >= 0);
	rbx_upkeep_server_begins(&host->upkeep, 3);
	rbx_upkeep_server_domain(&host->upkeep, 3, domains[3]);
	rbx_upkeep_server_added(&host->upkeep, 3);
	host_server_dies(host, 0);
	rounds(host);
	assert_false(is_together(host, slab));
	live(host);
	assert_at_rest(host);
	assert_false(is_together(host, slab));
	host_free(host);
}

static void other_server_wants_its_replica_back_and_the_one_that_moves_stays(void **state)
{
	uint32_t slab, leaver, slot;
	struct host *host = open_moving(&slab, &leaver);
	struct rbx_loan loan;

	(void)state;
	for (slot = 0; rbx_slab_state(host_slab(host, slab), slot) != RBX_REPLICA_LIVE; slot++)
		;
	loan = rbx_replica_loan(rbx_slab_replica(host_slab(host, slab), slot));
	host_evict(host, 1 - leaver, &loan);
	(void)host_settle(host);
	assert_at_rest(host);
	assert_int_equal(host_lent_count(host, leaver), 2);
	assert_int_equal(host_lent_count(host, 1 - leaver), 1);
	assert_int_equal(host_lent_count(host, 2), 1);
	host_free(host);
}

/* It leaves for its server then. */
static void replica_that_is_wanted_back_meanwhile_does_not_stay(void **state)
{
	uint32_t slab, leaver;
	struct host *host = open_moving(&slab, &leaver);
	struct rbx_loan loan;

	(void)state;
	assert_true(rbx_slab_leaving(host_slab(host, slab), &leaver, &loan));
	host_evict(host, leaver, &loan);
	host_server_dies(host, 2);
	live(host);
	assert_int_equal(host_census(host).whole, 1);
	add_server(host, 3);
	live(host);
	assert_at_rest(host);
	assert_false(rbx_slab_has_server(host_slab(host, slab), leaver));
	host_free(host);
}

/* ---- With a name: labels ------------------------------------------------------------*/

/* Two slabs; a replica of one has moved to server 2, but its label is being asked back. */
static struct host *open_unlabelling(uint32_t *slab, uint32_t *leaver)
{
	struct host *host = host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
									 .on_demand = true,
									 .is_named = true },
					     2, 2);
	uint32_t i;

	host->upkeep.copies_least = 2;
	first_write(host, 0);
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 2);
	host->servers[0].is_slow_to_unlabel = host->servers[1].is_slow_to_unlabel = true;
	rbx_upkeep_opened(&host->upkeep, UINT64_MAX);
	add_server(host, 2);
	for (i = 0; i < 4; i++) {
		host->now_ns += RBX_BALANCE_MS * 1000000ull;
		(void)host_settle(host);
	}
	for (*slab = 0; rbx_slab_find(host_slab(host, *slab), RBX_REPLICA_LEAVING) < 0; ++*slab)
		assert_true(*slab < 1);
	*leaver = host->servers[0].kind == RBX_CALL_UNLABEL ? 0 : 1;
	assert_int_equal(host->servers[*leaver].kind, RBX_CALL_UNLABEL);
	return host;
}

static enum rbx_replica_state state_at(struct host *host, uint32_t slab, uint32_t server)
{
	uint32_t slot;

	for (slot = 0; slot < RBX_SLOTS_MAX - 1; slot++)
		if (rbx_slab_state(host_slab(host, slab), slot) != RBX_REPLICA_EMPTY &&
		    host_server_of(host, slab, slot) == server)
			return rbx_slab_state(host_slab(host, slab), slot);
	return RBX_REPLICA_EMPTY;
}

/* Nobody knows whether the next client finds it there. */
static void replica_whose_label_may_be_gone_does_not_stay(void **state)
{
	uint32_t slab, leaver;
	struct host *host = open_unlabelling(&slab, &leaver);

	(void)state;
	host_is_out(host, 2);
	(void)host_settle(host);
	assert_int_equal(state_at(host, slab, leaver), RBX_REPLICA_LEAVING);
	add_server(host, 3);
	host->servers[leaver].is_slow_to_unlabel = false;
	live(host);
	assert_false(rbx_slab_has_server(host_slab(host, slab), leaver));
	assert_at_rest(host);
	host_free(host);
}

/* It counts again. So it stays, whichever is known first. */
static void replica_whose_label_was_not_taken_back_stays(void **state)
{
	uint32_t slab, leaver, first;
	struct host *host;

	(void)state;
	for (first = 0; first < 2; first++) {
		host = open_unlabelling(&slab, &leaver);
		if (first)
			host_is_out(host, 2);
		(void)host_settle(host);
		host->servers[leaver].label_err = -EPROTO;
		host->servers[leaver].is_slow_to_unlabel = false;
		(void)host_settle(host);
		if (!first)
			host_is_out(host, 2);
		(void)host_settle(host);
		assert_int_equal(state_at(host, slab, leaver), RBX_REPLICA_LIVE);
		assert_at_rest(host);
		host_free(host);
	}
}

/* It took the label back, but nobody heard that: it has the last copy of another slab, and has
 * FAILED. Then the server is lost that the replica was to move to. */
static void replica_is_no_copy_while_nobody_knows_of_its_label(void **state)
{
	uint32_t slab, leaver, slot = 0;
	struct host *host = open_unlabelling(&slab, &leaver);
	struct rbx_server_set servers = { .words = { 0 } }, needed = { .words = { 0 } };
	struct rbx_labels_told told;

	(void)state;
	(void)host_settle(host);
	while (host_server_of(host, slab, slot) != leaver)
		slot++;
	told = (struct rbx_labels_told){
		.loan = rbx_replica_loan(rbx_slab_replica(host_slab(host, slab), slot)),
		.label = slab + 1,
		.is_complete = false,
	};
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, leaver));
	host->servers[leaver].label_err = -ENOTCONN;
	host->servers[leaver].is_slow_to_unlabel = false;
	(void)host_settle(host);
	host_is_out(host, 2);
	(void)host_settle(host);
	assert_int_equal(state_at(host, slab, leaver), RBX_REPLICA_LEAVING);
	rbx_server_set_add(&servers, !leaver);
	rbx_server_set_add(&servers, 2);
	rbx_last_copies_needed(&host->flow, &servers, &needed);
	assert_true(rbx_server_set_has(&needed, !leaver));
	/* It comes again, and tells. */
	assert_int_equal(rbx_labels_again(&host->upkeep, leaver, 3, &told), 0);
	(void)host_settle(host);
	assert_int_not_equal(state_at(host, slab, 3), RBX_REPLICA_LIVE);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_is_added_to_a_full_pool_and_gets_its_share),
		cmocka_unit_test(servers_that_differ_by_one_slab_keep_what_they_have),
		cmocka_unit_test(nothing_moves_at_other_times),
		cmocka_unit_test(server_refuses_and_nothing_has_changed),
		cmocka_unit_test(domains_are_kept),
		cmocka_unit_test(server_is_fuller_by_then_and_gets_its_memory_back),
		cmocka_unit_test(replica_is_lost_before_the_server_lends),
		cmocka_unit_test(replica_stays_if_the_server_that_it_moves_to_dies),
		cmocka_unit_test(replica_stays_if_another_one_is_lost),
		cmocka_unit_test(replica_that_stays_is_not_with_its_copy),
		cmocka_unit_test(other_server_wants_its_replica_back_and_the_one_that_moves_stays),
		cmocka_unit_test(replica_that_is_wanted_back_meanwhile_does_not_stay),
		cmocka_unit_test(replica_whose_label_may_be_gone_does_not_stay),
		cmocka_unit_test(replica_whose_label_was_not_taken_back_stays),
		cmocka_unit_test(replica_is_no_copy_while_nobody_knows_of_its_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
