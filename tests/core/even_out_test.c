/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * even_out_test.c - after a client has died, what its servers had noted is made equal, and nothing
 * else is (core/even_out.c).
 */
#include "tests/core/noted_extents.h"

/* The first servers have a slab that a client has left, with these words. */
static struct host *make_left_at(uint32_t servers, uint64_t word, uint64_t other)
{
	struct host *host = noted_make(1, 2);
	uint32_t server;

	for (server = 0; server < servers; server++) {
		const struct rbx_loan loan = {
			.slab_id = 0, .epoch = 1, .rkey = server + 1,
			.remote_addr = (uintptr_t)host->servers[server].memory[0],
		};

		memset(host->servers[server].memory[0], 'a' + (int)server, HOST_SLAB_BYTES);
		host->servers[server].keys[0] = server + 1;
		host->servers[server].epochs[0] = 1;
		host->servers[server].labelled[0] = true;
		assert_int_equal(rbx_upkeep_adopt(&host->upkeep, server, 1, &loan), 0);
		rbx_upkeep_found_intent(&host->upkeep, 1, server ? other : word, 0);
	}
	return host;
}

static struct host *make_left(uint64_t word, uint64_t other)
{
	return make_left_at(2, word, other);
}

static bool is_copied(const struct host *host, uint32_t extent)
{
	const uint8_t *first = host->servers[0].memory[0] + extent * EXTENT_BYTES;
	const uint8_t *second = host->servers[1].memory[0] + extent * EXTENT_BYTES;

	assert_true(memcmp(first, second, EXTENT_BYTES) == 0 || second[0] == 'b');
	return memcmp(first, second, EXTENT_BYTES) == 0;
}

static void only_what_was_noted_is_made_equal(void **state)
{
	struct host *host = make_left((uint64_t)1 << 63, 1);
	const uint32_t cell_extents = HOST_CELL_BYTES / EXTENT_BYTES;
	struct rbx_intents intents;
	uint32_t extent, at = 0;

	(void)state;
	host->notes_nothing = true;
	rbx_upkeep_even_out(&host->upkeep);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), -EAGAIN);
	rounds(host);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), 0);
	for (extent = 0; extent < 64; extent++)
		assert_int_equal(is_copied(host, extent),
				 extent < cell_extents || extent >= 64 - cell_extents);
	/* From now on nothing is noted. */
	intents = noted_next(host);
	assert_int_equal(intents.count, 2);
	assert_int_equal(intents.all[0].word, 0);
	rbx_extents_noted(&host->flow, &intents);
	host_free(host);
}

/* While the volume is opened, a replica is made anew, and gets the word that was found. It is zero
 * later, and nothing may be written before servers have noted more than that. */
static void what_was_found_and_noted_again_is_not_safe(void **state)
{
	struct host *host = make_left_at(1, UINT64_MAX, 0);
	struct rbx_intents intents;
	uint32_t at = 0;

	(void)state;
	rbx_upkeep_even_out(&host->upkeep);
	rounds(host);
	assert_int_equal(host_census(host).whole, 1);
	host->notes_nothing = true;
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), 0);
	write_extent(host, 0, 5);
	assert_false(host_poll(host)); /* nothing was sent */
	intents = noted_next(host);
	assert_int_equal(intents.count, 2);
	assert_int_equal(intents.all[0].word, 1 << 5);
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* What was noted by a client that has closed the volume is forgotten, and nothing is copied. */
static void volume_that_was_closed_is_not_copied(void **state)
{
	struct host *host = make_left(1, 1);
	uint32_t at = 0;

	(void)state;
	host->notes_nothing = true;
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), 0);
	rounds(host);
	assert_false(is_copied(host, 0));
	assert_int_equal(noted_next(host).all[1].word, 0);
	host_free(host);
}

/* Nobody has read anything yet, so another replica may be the truth. */
static void server_dies_meanwhile_the_other_is_the_truth(void **state)
{
	struct host *host = make_left(1, 1);
	uint32_t at = 0;

	(void)state;
	rbx_upkeep_even_out(&host->upkeep);
	rbx_upkeep_server_down(&host->upkeep, 0);
	host->servers[0].down = true;
	(void)host_round(host);
	while (host_poll(host))
		;
	(void)host_round(host);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), 0);
	assert_int_equal(host_census(host).dead, 0);
	host_free(host);
}

static void server_that_has_failed_ends_the_open(void **state)
{
	struct host *host = make_left(1, 1);
	uint32_t at = 0;

	(void)state;
	rbx_upkeep_even_out(&host->upkeep);
	assert_null(rbx_held_failed(&host->flow.held, 1));
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), -EIO);
	host_free(host);
}

/* Its copies are tried again later, and the open does not wait for that. */
static void fault_of_this_machine_ends_the_open(void **state)
{
	struct host *host = make_left(1, 1);
	uint32_t at = 0;

	(void)state;
	rbx_upkeep_even_out(&host->upkeep);
	host->fails_here = -EFAULT;
	rounds(host);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), -EIO);
	host->fails_here = 0;
	host->now_ns += RBX_UPKEEP_RETRY_MS * 1000000ull;
	rounds(host);
	assert_int_equal(rbx_upkeep_evened_out(&host->upkeep, &at), 0);
	assert_true(is_copied(host, 0));
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_noted_is_made_equal),
		cmocka_unit_test(what_was_found_and_noted_again_is_not_safe),
		cmocka_unit_test(volume_that_was_closed_is_not_copied),
		cmocka_unit_test(server_dies_meanwhile_the_other_is_the_truth),
		cmocka_unit_test(server_that_has_failed_ends_the_open),
		cmocka_unit_test(fault_of_this_machine_ends_the_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
