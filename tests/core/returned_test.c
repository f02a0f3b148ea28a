/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * returned_test.c - while a server is out, the extents are behind that are written; when it
 * returns, these are copied to what it has still, and nothing else is (core/extents.h,
 * core/labels.c).
 */
#include "tests/core/first_writes.h"

#define EXTENT_BYTES (HOST_SLAB_BYTES / 64)
#define EXTENTS_OF_CELL (HOST_CELL_BYTES / EXTENT_BYTES)
#define BIT(n) ((uint64_t)1 << (n))

static const struct rbx_volume_shape two = { .replicas = 2, .on_demand = true, .is_named = true };

static void write_extent(struct host *host, uint32_t slab, uint32_t extent)
{
	static uint8_t out[512];

	host_start(host, RBX_PIECE_WRITE, slab * HOST_SLAB_BYTES + extent * EXTENT_BYTES, out,
		   sizeof(out));
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
}

/* To slab 0, whose replica that has returned does not get its turn by that. */
static void write_without_a_round(struct host *host, uint32_t extent, uint8_t byte)
{
	static uint8_t out[512];

	memset(out, byte, sizeof(out));
	host_start(host, RBX_PIECE_WRITE, extent * EXTENT_BYTES, out, sizeof(out));
	host_note(host);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
}

static const struct rbx_extent_word *word_of(struct host *host, uint32_t slab)
{
	return &extents_of(host)->words[slab];
}

/* What a server has of slab 0, before it is lost. */
struct had {
	uint32_t server;
	uint32_t other;
	struct rbx_loan loan;
	uint8_t *memory;
};

/* The server of the first replica of slab 0 is out, as the record says. */
static struct had lose(struct host *host)
{
	const struct rbx_replica *replica = rbx_slab_replica(host_slab(host, 0), 0);
	struct had had = {
		.server = rbx_replica_server(replica),
		.other = host_server_of(host, 0, 1),
		.loan = rbx_replica_loan(replica),
		.memory = (uint8_t *)(uintptr_t)rbx_replica_addr(replica),
	};

	rbx_extents_track(&host->flow, true);
	rbx_upkeep_server_down(&host->upkeep, had.server);
	host->servers[had.server].down = true;
	rounds(host);
	return had;
}

static void connect(struct host *host, uint32_t server)
{
	uint32_t other;

	host->servers[server].down = false;
	rbx_upkeep_server_begins(&host->upkeep, server);
	assert_int_equal(rbx_upkeep_server_connected(&host->upkeep, server, server + 1, &other), 0);
}

static int come_back(struct host *host, const struct had *had)
{
	connect(host, had->server);
	host->servers[had->server].labelled[0] = false;
	return rbx_upkeep_returned(&host->upkeep, had->server, 1, &had->loan);
}

static void server_that_returns_gets_what_was_written_since(void **state)
{
	struct host *host = host_make_shaped(&two, 1, 2);
	uint8_t *kept, *missed;
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	write_extent(host, 0, 63);
	had = lose(host);
	assert_int_equal(word_of(host, 0)->noted, 0); /* they were quiet */
	write_extent(host, 0, 63);
	kept = had.memory;
	missed = had.memory + 63 * EXTENT_BYTES;
	*kept = *missed = 'x';
	assert_int_equal(come_back(host, &had), 0);
	assert_int_equal(host_census(host).whole, 0);
	assert_int_equal(host->upkeep.extents_stale, 1);
	rbx_upkeep_server_added(&host->upkeep, had.server);
	rounds(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_true(host->servers[had.server].labelled[0]);
	assert_int_equal(*missed, 0);
	assert_int_equal(*kept, 'x');
	assert_int_equal(host->counters.rebuilt_bytes, HOST_CELL_BYTES);
	host_free(host);
}

static void server_that_has_missed_nothing_gets_nothing(void **state)
{
	struct host *host = host_make_shaped(&two, 1, 2);
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	had = lose(host);
	assert_int_equal(come_back(host, &had), 0);
	rbx_upkeep_server_added(&host->upkeep, had.server);
	rounds(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_true(host->servers[had.server].labelled[0]);
	assert_int_equal(host->counters.rebuilt_bytes, 0);
	host_free(host);
}

/* Writes reach it from the moment on when it is there, and it is copied to later. */
static void what_is_written_meanwhile_is_at_both(void **state)
{
	struct host *host = host_make_shaped(&two, 1, 2);
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	had = lose(host);
	write_extent(host, 0, 9);
	assert_int_equal(come_back(host, &had), 0);
	write_without_a_round(host, 9, 'n');
	assert_int_equal(had.memory[9 * EXTENT_BYTES], 'n');
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 1);
	rbx_upkeep_server_added(&host->upkeep, had.server);
	rounds(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(had.memory[9 * EXTENT_BYTES], 'n');
	host_free(host);
}

/* It lacks what was acknowledged, so it is not read if the other one is lost before its turn. */
static void what_has_returned_stands_in_for_nothing(void **state)
{
	struct host *host = host_make_shaped(&two, 1, 2);
	struct rbx_slab *slab;
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	had = lose(host);
	write_extent(host, 0, 9);
	assert_int_equal(come_back(host, &had), 0);
	slab = host_slab(host, 0);
	rbx_slab_lock(slab);
	assert_true(rbx_slab_is_last(slab));
	assert_true(rbx_slab_server_down(slab, had.other));
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_DEAD);
	rbx_slab_unlock(slab);
	host_free(host);
}

static void what_is_of_no_use_is_refused(void **state)
{
	struct host *host = host_make_shaped(&two, 2, 3);
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	had = lose(host); /* the third one takes its place */
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(come_back(host, &had), -EEXIST);
	assert_int_equal(rbx_upkeep_returned(&host->upkeep, had.server, 2, &had.loan), -ENODATA);
	assert_int_equal(rbx_upkeep_returned(&host->upkeep, had.server, 3, &had.loan), -EINVAL);
	assert_int_equal(rbx_upkeep_returned(&host->upkeep, had.server, 0, &had.loan), -EINVAL);
	rbx_upkeep_server_failed(&host->upkeep, had.server);
	host_free(host);
}

/* Another server is asked for a replica. If it refuses, the one that has returned may be asked. */
static void what_is_being_borrowed_is_not_returned_as_well(void **state)
{
	static const struct rbx_volume_shape three = {
		.replicas = 3, .on_demand = true, .is_named = true,
	};
	struct host *host = host_make_shaped(&three, 1, 4);
	struct had had;
	uint32_t i, spare = 0;

	(void)state;
	write_extent(host, 0, 0);
	for (i = 0; i < 3; i++)
		spare += host_server_of(host, 0, i);
	spare = 0 + 1 + 2 + 3 - spare;
	rbx_upkeep_server_down(&host->upkeep, host_server_of(host, 0, 2));
	host->servers[spare].is_slow = true;
	had = lose(host);
	assert_true(host->servers[spare].is_asked);
	assert_int_equal(come_back(host, &had), -EEXIST);
	rbx_upkeep_server_added(&host->upkeep, had.server);
	host->servers[spare].refuse = -ENOSPC;
	host->servers[spare].is_slow = false;
	rounds(host);
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 2);
	host_free(host);
}

/* It is put out again while it is asked for its label. Another replica was copied to as well, as
 * the writer before had noted a write: that one counts nevertheless. */
static void server_that_is_lost_before_its_label_stops_nothing(void **state)
{
	static const struct rbx_volume_shape three = {
		.replicas = 3, .on_demand = true, .is_named = true,
	};
	struct host *host = host_make_shaped(&three, 1, 3);
	uint32_t next = 0;
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	had = lose(host);
	rbx_upkeep_found_intent(&host->upkeep, 1, BIT(3), 0);
	assert_int_equal(come_back(host, &had), 0);
	rbx_upkeep_even_out(&host->upkeep);
	host->servers[had.server].is_slow_to_label = true;
	rbx_upkeep_server_added(&host->upkeep, had.server);
	rounds(host);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &next), -EAGAIN);
	rbx_upkeep_server_down(&host->upkeep, had.server);
	host->servers[had.server].down = true;
	host->servers[had.server].is_slow_to_label = false;
	rounds(host);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &next), 0);
	assert_int_equal(rbx_slab_targets(host_slab(host, 0)), 0);
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 2);
	host_free(host);
}

/* Its turn may be far off. Writes to other extents do not wait for that. */
static void what_is_quiet_is_cleared_while_a_replica_waits_for_its_turn(void **state)
{
	struct host *host = host_make_shaped(&two, 1, 2);
	struct had had;

	(void)state;
	write_extent(host, 0, 0);
	had = lose(host);
	write_extent(host, 0, 20);
	assert_int_equal(come_back(host, &had), 0);
	extents_of(host)->set_max = 1;
	write_without_a_round(host, 30, 0);
	assert_int_equal(word_of(host, 0)->noted, BIT(30));
	host_free(host);
}

/* The next client is told of all, whatever is cleared. */
static void extent_that_is_cleared_is_behind_while_a_server_is_out(void **state)
{
	struct host *host = host_make_shaped(&two, 2, 2);
	struct rbx_intents intents;
	bool is_full;

	(void)state;
	write_extent(host, 0, 0);
	write_extent(host, 1, 0);
	(void)lose(host);
	extents_of(host)->set_max = 1;
	write_extent(host, 0, 9);
	write_extent(host, 0, 20);
	assert_int_equal(word_of(host, 0)->behind | word_of(host, 0)->noted, BIT(9) | BIT(20));
	assert_true(word_of(host, 0)->behind & BIT(9));
	assert_int_equal(word_of(host, 1)->behind, 0);
	/* As one that is out is back, nobody lacks anything. The servers hear of it. */
	rbx_extents_track(&host->flow, false);
	assert_int_equal(word_of(host, 0)->behind, 0);
	assert_true(rbx_extents_next(host->flow.map, &intents, &is_full));
	assert_int_equal(intents.count, 1);
	assert_int_equal(intents.all[0].behind, 0);
	rbx_extents_noted(&host->flow, &intents);
	host_free(host);
}

/* What was found at the servers that are left. */
static void word_of_a_client_that_died_is_behind(void **state)
{
	struct host *host = host_make_shaped(&two, 1, 2);

	(void)state;
	rbx_upkeep_found_intent(&host->upkeep, 1, BIT(3), BIT(5));
	rbx_extents_track(&host->flow, true);
	rbx_extents_forget_found(&host->flow);
	assert_int_equal(word_of(host, 0)->noted, 0);
	assert_int_equal(word_of(host, 0)->behind, BIT(3) | BIT(5));
	host_free(host);
}

/* A server that is out may have an old slab of that number. */
static void slab_that_is_new_is_behind_everywhere(void **state)
{
	struct host *host = host_make_shaped(&two, 2, 3);

	(void)state;
	write_extent(host, 0, 0);
	(void)lose(host);
	write_extent(host, 1, 0);
	assert_true(word_of(host, 1)->behind == UINT64_MAX);
	assert_int_equal(word_of(host, 0)->behind, 0);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_returns_gets_what_was_written_since),
		cmocka_unit_test(server_that_has_missed_nothing_gets_nothing),
		cmocka_unit_test(what_is_written_meanwhile_is_at_both),
		cmocka_unit_test(what_has_returned_stands_in_for_nothing),
		cmocka_unit_test(what_is_of_no_use_is_refused),
		cmocka_unit_test(what_is_being_borrowed_is_not_returned_as_well),
		cmocka_unit_test(server_that_is_lost_before_its_label_stops_nothing),
		cmocka_unit_test(what_is_quiet_is_cleared_while_a_replica_waits_for_its_turn),
		cmocka_unit_test(extent_that_is_cleared_is_behind_while_a_server_is_out),
		cmocka_unit_test(word_of_a_client_that_died_is_behind),
		cmocka_unit_test(slab_that_is_new_is_behind_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
