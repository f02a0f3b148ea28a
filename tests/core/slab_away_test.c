/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_away_test.c - a server that was silent is used again with what it has: what was written
 * meanwhile is copied to it, and nothing is read there before (core/slab_away.h).
 */
#include "away.h"

static void server_that_is_back_gets_what_was_written_since(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);
	uint8_t *had = memory_of(host, 0);

	(void)state;
	write_at(host, 0, 'a');
	assert_true(falls_silent(host, server));
	assert_int_equal(state_of(host, 0), RBX_REPLICA_AWAY);
	(void)host_settle(host);
	write_at(host, 63 * EXTENT_BYTES, 'b');
	had[0] = 'k'; /* what is not copied stays */
	assert_int_not_equal(had[63 * EXTENT_BYTES], 'b');
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_ptr_equal(memory_of(host, 0), had);
	assert_int_equal(had[63 * EXTENT_BYTES], 'b');
	assert_int_equal(had[0], 'k');
	assert_int_equal(host->counters.rebuilt_bytes, HOST_CELL_BYTES);
	host_free(host);
}

static void server_that_has_missed_nothing_gets_nothing(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);

	(void)state;
	write_at(host, 0, 'a');
	assert_true(falls_silent(host, server));
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host->counters.rebuilt_bytes, 0);
	host_free(host);
}

/* A server that was away for a moment was not done without, and no slab is looked at. */
static void server_that_was_not_silent_is_not_looked_for(void **state)
{
	struct host *host = make(2, 2);

	(void)state;
	host->wakes_count = 0;
	rbx_upkeep_server_back(&host->upkeep, 0);
	assert_int_equal(host->wakes_count, 0);
	host_free(host);
}

static void replica_is_not_read_before_its_copies(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);
	uint8_t *had = memory_of(host, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	is_back(host, server);
	(void)host_round(host); /* its copies begin */
	assert_int_equal(host_slab(host, 0)->read_mask, 2);
	write_at(host, 9 * EXTENT_BYTES, 'c');
	assert_int_equal(had[9 * EXTENT_BYTES], 'c');
	(void)host_settle(host);
	assert_int_equal(host_slab(host, 0)->read_mask, 3);
	assert_int_equal(had[0], 'b');
	host_free(host);
}

/* Its part was sent before, and waits at the silent server. */
static void write_that_was_under_way_is_copied(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);
	uint8_t *had = memory_of(host, 0);

	(void)state;
	memset(out, 'w', sizeof(out));
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	host_poll_slot(host, 1, 0, true);
	assert_true(falls_silent(host, server));
	host_poll_slot(host, 0, -EHOSTUNREACH, false);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_AWAY);
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(had[0], 'w');
	host_free(host);
}

/* The part that fails is done while another one is under way, and the server is back then. */
static void write_that_ends_after_the_return_is_copied(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);
	uint8_t *had = memory_of(host, 0);

	(void)state;
	memset(out, 'w', sizeof(out));
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	assert_true(falls_silent(host, server));
	host_poll_slot(host, 0, -EHOSTUNREACH, false);
	is_back(host, server);
	(void)host_round(host);
	assert_int_equal(host_slab(host, 0)->read_mask, 2);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(had[0], 'w');
	host_free(host);
}

static void replica_stays_away_until_all_parts_have_landed(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);

	(void)state;
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	host_poll_slot(host, 1, 0, true);
	assert_true(falls_silent(host, server));
	is_back(host, server);
	assert_true(host_round(host)); /* it is looked for again */
	assert_int_equal(state_of(host, 0), RBX_REPLICA_AWAY);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* Nor do others wait for those parts. */
static void server_that_is_waited_for_delays_no_other(void **state)
{
	struct host *host = make(3, 3);
	uint32_t waits = 0, slot;

	(void)state;
	while (host_server_of(host, 0, waits)) /* the one that is looked for first */
		waits++;
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	for (slot = 0; slot < 3; slot++)
		if (slot != waits)
			host_poll_slot(host, slot, 0, true);
	slot = waits ? 0 : 1;
	assert_true(falls_silent(host, 0));
	assert_true(falls_silent(host, host_server_of(host, 0, slot)));
	is_back(host, host_server_of(host, 0, slot));
	is_back(host, 0);
	(void)host_round(host);
	(void)host_round(host);
	assert_int_equal(state_of(host, waits), RBX_REPLICA_AWAY);
	assert_int_not_equal(state_of(host, slot), RBX_REPLICA_AWAY);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* Nobody knows which replica has it. */
static void write_that_failed_here_is_copied(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);
	uint8_t *had = memory_of(host, 0), *other = memory_of(host, 1);

	(void)state;
	write_at(host, 0, 'o');
	memset(out, 'n', sizeof(out));
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	host_poll_slot(host, 0, 0, true);
	assert_true(falls_silent(host, server));
	host_poll_slot(host, 1, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(other[0], 'o');
	assert_int_equal(had[0], 'o');
	host_free(host);
}

/* What it has may be old. */
static void slab_whose_last_replica_is_lost_is_dead(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0), other = host_server_of(host, 0, 1);

	(void)state;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	host_server_dies(host, other);
	(void)host_settle(host);
	assert_int_equal(host_census(host).dead, 1);
	assert_int_equal(rbx_slab_find(host_slab(host, 0), RBX_REPLICA_AWAY), -1);
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_census(host).dead, 1);
	host_free(host);
}

/* It has all that was acknowledged, and its server may be back. */
static void slab_whose_last_replica_is_lost_waits_if_nothing_was_missed(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0), other = host_server_of(host, 0, 1);

	(void)state;
	host_write_cell(host, 5);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_true(falls_silent(host, server));
	host_server_dies(host, other);
	(void)host_settle(host);
	assert_int_equal(host_census(host).dead, 0);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_LIVE);
	assert_true(falls_silent(host, server)); /* for some time more */
	assert_int_equal(state_of(host, 0), RBX_REPLICA_LIVE);
	is_back(host, server);
	host_assert_cell(host, 5);
	host_free(host);
}

/* It has all that was acknowledged. */
static void replica_that_is_back_and_has_missed_nothing_is_live_at_once(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0), other = host_server_of(host, 0, 1);

	(void)state;
	write_at(host, 0, 'b');
	assert_true(falls_silent(host, server));
	is_back(host, server);
	(void)host_round(host);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_LIVE);
	host_server_dies(host, other);
	(void)host_round(host);
	assert_int_equal(host_census(host).dead, 0);
	assert_int_equal(memory_of(host, 0)[0], 'b');
	host_free(host);
}

static void server_that_is_silent_again_waits_for_its_next_return(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	is_back(host, server);
	assert_true(falls_silent(host, server)); /* before a round */
	write_at(host, 0, 'c');
	(void)host_settle(host);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_AWAY);
	is_back(host, server);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(*memory_of(host, 0), 'c');
	host_free(host);
}

/* What it lacked is known no more. */
static void replica_that_is_lost_before_its_copies_is_made_anew(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	write_at(host, 0, 'b');
	is_back(host, server);
	(void)host_round(host);
	assert_false(falls_silent(host, server));
	assert_int_equal(rbx_slab_find(host_slab(host, 0), RBX_REPLICA_AWAY), -1);
	while (host_poll(host))
		;
	(void)host_settle(host);
	is_back(host, server);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_true(host->counters.rebuilt_bytes >= HOST_SLAB_BYTES);
	host_free(host);
}

static void server_that_is_given_up_has_lost_all(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);

	(void)state;
	assert_true(falls_silent(host, server));
	host_server_dies(host, server);
	(void)host_settle(host);
	assert_false(rbx_slab_has_server(host_slab(host, 0), server));
	host_free(host);
}

static void slab_that_is_discarded_keeps_nothing_that_is_away(void **state)
{
	struct host *host = host_make_on_demand(1, 2, 2);
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t server;

	(void)state;
	host_start(host, RBX_PIECE_WRITE, 0, out, 512);
	(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	server = host_server_of(host, 0, 0);
	assert_true(falls_silent(host, server));
	rbx_slab_lock(slab);
	rbx_slab_discard(slab);
	(void)rbx_attention_note(&host->flow.map->attention, slab);
	rbx_slab_unlock(slab);
	is_back(host, server);
	(void)host_settle(host);
	(void)host_settle(host);
	assert_false(rbx_slab_has_memory(slab));
	assert_int_equal(host_lent_count(host, server), 0);
	host_free(host);
}

static void replica_that_its_server_wants_back_is_lost(void **state)
{
	struct host *host = make(2, 2);
	uint32_t server = host_server_of(host, 0, 0);
	const struct rbx_loan loan = rbx_replica_loan(rbx_slab_replica(host_slab(host, 0), 0));

	(void)state;
	assert_true(falls_silent(host, server));
	host_evict(host, server, &loan);
	assert_int_equal(state_of(host, 0), RBX_REPLICA_LOST);
	host_free(host);
}

static void without_memory_for_words_replicas_are_lost(void **state)
{
	struct host *host = make(2, 2);

	(void)state;
	host->is_short_of_memory = true;
	assert_false(falls_silent(host, host_server_of(host, 0, 0)));
	assert_int_equal(state_of(host, 0), RBX_REPLICA_LOST);
	host_free(host);
}

/* A replica in a slab that is being rebuilt may differ from the others. */
static void replica_of_a_slab_with_a_record_is_lost(void **state)
{
	struct host *host = make(2, 2);
	struct rbx_slab *slab = host_slab(host, 0);

	(void)state;
	rbx_slab_lock(slab);
	assert_true(rbx_slab_record_give(slab));
	rbx_slab_unlock(slab);
	assert_false(falls_silent(host, host_server_of(host, 0, 0)));
	assert_int_equal(state_of(host, 0), RBX_REPLICA_LOST);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_is_back_gets_what_was_written_since),
		cmocka_unit_test(server_that_has_missed_nothing_gets_nothing),
		cmocka_unit_test(server_that_was_not_silent_is_not_looked_for),
		cmocka_unit_test(replica_is_not_read_before_its_copies),
		cmocka_unit_test(write_that_was_under_way_is_copied),
		cmocka_unit_test(write_that_ends_after_the_return_is_copied),
		cmocka_unit_test(replica_stays_away_until_all_parts_have_landed),
		cmocka_unit_test(server_that_is_waited_for_delays_no_other),
		cmocka_unit_test(write_that_failed_here_is_copied),
		cmocka_unit_test(slab_whose_last_replica_is_lost_is_dead),
		cmocka_unit_test(slab_whose_last_replica_is_lost_waits_if_nothing_was_missed),
		cmocka_unit_test(replica_that_is_back_and_has_missed_nothing_is_live_at_once),
		cmocka_unit_test(server_that_is_silent_again_waits_for_its_next_return),
		cmocka_unit_test(replica_that_is_lost_before_its_copies_is_made_anew),
		cmocka_unit_test(server_that_is_given_up_has_lost_all),
		cmocka_unit_test(slab_that_is_discarded_keeps_nothing_that_is_away),
		cmocka_unit_test(replica_that_its_server_wants_back_is_lost),
		cmocka_unit_test(without_memory_for_words_replicas_are_lost),
		cmocka_unit_test(replica_of_a_slab_with_a_record_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
