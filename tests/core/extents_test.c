/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * extents_test.c - nothing is written before the servers have noted where (core/extents.h).
 */
#include "tests/core/noted_extents.h"

/* A volume whose slabs have replicas, and of whose words nothing is left to send. */
static struct host *make_written(uint32_t slabs, uint32_t servers)
{
	struct host *host = noted_make(slabs, servers);
	uint32_t i;

	for (i = 0; i < slabs; i++)
		write_extent(host, i, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), slabs);
	host->notes_nothing = true;
	return host;
}

static void first_write_of_an_extent_waits_until_all_have_noted_it(void **state)
{
	struct host *host = make_written(1, 2);
	struct rbx_intents intents;
	uint32_t i;

	(void)state;
	host->wakes_count = 0;
	write_extent(host, 0, 5);
	assert_true(host->wakes_count > 0);
	assert_false(host_poll(host)); /* nothing was sent */
	intents = noted_next(host);
	assert_int_equal(intents.count, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(intents.all[i].word, 1 | 1 << 5);
		assert_int_equal(intents.all[i].server, host_server_of(host, 0, i));
	}
	assert_false(host_poll(host));
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	/* The next one waits for nothing, and neither does a read of another extent. */
	write_extent(host, 0, 5);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(noted_next(host).count, 0);
	host_free(host);
}

/* The thread that makes rounds finds the others as well. */
static void only_the_first_word_wakes(void **state)
{
	struct host *host = make_written(3, 2);
	struct rbx_intents intents;

	(void)state;
	host->wakes_count = 0;
	write_extent(host, 0, 5);
	assert_int_equal(host->wakes_count, 1);
	write_extent(host, 1, 5);
	assert_int_equal(host->wakes_count, 1);
	intents = noted_next(host);
	assert_int_equal(intents.slabs_count, 2);
	write_extent(host, 2, 5);
	assert_int_equal(host->wakes_count, 2);
	rbx_extents_noted(&host->flow, &intents);
	host_note(host);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 3);
	host_free(host);
}

/* What is asked for while servers note a word is in the next one. */
static void word_follows_the_one_before(void **state)
{
	struct host *host = make_written(1, 2);
	struct rbx_intents intents;

	(void)state;
	write_extent(host, 0, 5);
	intents = noted_next(host);
	write_extent(host, 0, 6);
	write_extent(host, 0, 5);
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 2);
	intents = noted_next(host);
	assert_int_equal(intents.all[0].word, 1 | 1 << 5 | 1 << 6);
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* A piece is longer than an extent here. */
static void piece_waits_for_all_its_extents(void **state)
{
	struct host *host = make_written(1, 2);
	static uint8_t out[3 * EXTENT_BYTES];
	struct rbx_intents intents;

	(void)state;
	host_start(host, RBX_PIECE_WRITE, 0, out, sizeof(out));
	assert_false(host_poll(host));
	intents = noted_next(host);
	assert_int_equal(intents.all[0].word, 7);
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* It cannot be known what it has noted, and what is sent there fails. */
static void server_has_failed_writes_that_wait_end(void **state)
{
	struct host *host = make_written(1, 2);
	struct rbx_intents intents;

	(void)state;
	write_extent(host, 0, 5);
	intents = noted_next(host);
	assert_null(rbx_held_failed(&host->flow.held, host_server_of(host, 0, 1)));
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_null(host->sent_first);
	host_free(host);
}

static uint32_t bits(uint64_t word)
{
	return rbx_server_set_count_word(word);
}

/* The one that was not written lately is cleared. */
static void extents_above_the_bound_are_cleared(void **state)
{
	struct host *host = make_written(1, 2);
	struct rbx_intents intents;
	uint32_t extent;

	(void)state;
	host->notes_nothing = false;
	extents_of(host)->set_max = 4;
	for (extent = 1; extent < 20; extent++) {
		write_extent(host, 0, extent);
		rounds(host);
		assert_int_equal(host_ended(host, 0), 1);
		assert_in_range(bits(extents_of(host)->words[0].noted), 1, 4);
		assert_true(extents_of(host)->words[0].safe >> extent & 1);
	}
	/* One of them that is written all the time stays. */
	for (extent = 20; extent < 40; extent++) {
		write_extent(host, 0, 19);
		write_extent(host, 0, extent);
		rounds(host);
		assert_int_equal(host_ended(host, 0), 2);
		assert_true(extents_of(host)->words[0].safe >> 19 & 1);
	}
	intents = noted_next(host);
	assert_int_equal(intents.count, 0);
	host_free(host);
}

static void what_is_cleared_while_servers_are_asked_is_not_safe(void **state)
{
	struct host *host = make_written(1, 2);
	struct rbx_volume_map *map = host->flow.map;
	uint64_t due_ns = rbx_extents_round(map, 1);
	struct rbx_intents intents;

	(void)state;
	due_ns = rbx_extents_round(map, due_ns); /* it was written before it */
	write_extent(host, 0, 1);
	intents = noted_next(host);
	assert_int_equal(intents.slabs_count, 1);
	(void)rbx_extents_round(map, due_ns);
	assert_int_equal(extents_of(host)->words[0].noted & 1, 0);
	rbx_extents_noted(&host->flow, &intents);
	assert_int_equal(extents_of(host)->words[0].safe & 1, 0);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_note(host);
	host_free(host);
}

/* Else no other extent could be noted any more, once there are as many as there is room for. */
static void extents_that_were_asked_for_in_vain_give_their_room_back(void **state)
{
	struct host *host = make_written(1, 2);
	struct rbx_intents intents;
	uint32_t extent;

	(void)state;
	extents_of(host)->set_max = 4;
	assert_null(rbx_held_failed(&host->flow.held, host_server_of(host, 0, 1)));
	for (extent = 1; extent < 40; extent++) {
		write_extent(host, 0, extent);
		intents = noted_next(host);
		rbx_extents_noted(&host->flow, &intents);
		while (host_poll(host))
			;
		assert_int_equal(host_ended(host, -EIO), 1);
		assert_in_range(extents_of(host)->set_count, 1, 5);
	}
	host_free(host);
}

static void extent_that_is_being_written_is_not_cleared(void **state)
{
	struct host *host = make_written(2, 2);
	struct rbx_intents intents;

	(void)state;
	extents_of(host)->set_max = 1;
	write_extent(host, 0, 0); /* under way */
	write_extent(host, 1, 9);
	intents = noted_next(host);
	assert_true(extents_of(host)->words[0].safe & 1);
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 2);
	/* It has ended. */
	write_extent(host, 1, 10);
	intents = noted_next(host);
	assert_false(extents_of(host)->words[0].safe & 1);
	assert_false(extents_of(host)->words[0].noted & 1);
	rbx_extents_noted(&host->flow, &intents);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	/* And if it is written again, it waits until it is noted again. */
	write_extent(host, 0, 0);
	assert_false(host_poll(host));
	host_note(host);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* So a client that writes little leaves little that is to be copied. */
static void extent_that_is_quiet_is_cleared_in_time(void **state)
{
	struct host *host = make_written(3, 2);
	struct rbx_volume_map *map = host->flow.map;
	uint64_t now_ns = 1, due_ns = rbx_extents_round(map, now_ns);
	uint32_t i;

	(void)state;
	assert_int_equal(due_ns, now_ns + RBX_EXTENTS_QUIET_NS);
	assert_int_equal(rbx_extents_round(map, due_ns - 1), due_ns);
	now_ns = due_ns;
	due_ns = rbx_extents_round(map, now_ns); /* they were written before it */
	assert_int_equal(due_ns, now_ns + RBX_EXTENTS_QUIET_NS);
	assert_int_equal(noted_next(host).count, 0);
	write_extent(host, 1, 0);
	write_extent(host, 2, 1); /* waits for the same word, but another extent */
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	(void)rbx_extents_round(map, due_ns);
	for (i = 0; i < 3; i++)
		assert_int_equal(extents_of(host)->words[i].noted & 1, i == 1);
	assert_int_equal(extents_of(host)->set_count, 1);
	host_note(host);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	now_ns = due_ns + 2 * RBX_EXTENTS_QUIET_NS;
	(void)rbx_extents_round(map, now_ns);
	(void)rbx_extents_round(map, now_ns + RBX_EXTENTS_QUIET_NS);
	for (i = 0; i < 3; i++)
		assert_int_equal(extents_of(host)->words[i].noted, 0);
	assert_int_equal(extents_of(host)->set_count, 0);
	/* And nothing is looked at any more. */
	assert_int_equal(rbx_extents_round(map, now_ns), UINT64_MAX);
	host_note(host);
	host_free(host);
}

/* A replica is not equal there before it was made so. */
static void extent_that_differs_is_not_cleared(void **state)
{
	struct host *host = make_written(1, 2);

	(void)state;
	extents_of(host)->set_max = 1;
	write_extent(host, 0, 0);
	host_poll_slot(host, 0, -EFAULT, false); /* a fault of this machine */
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EFAULT), 1);
	write_extent(host, 0, 7);
	host_note(host);
	assert_true(extents_of(host)->words[0].noted & 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	write_extent(host, 0, 8);
	host_note(host);
	assert_false(extents_of(host)->words[0].noted & 1);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* It began with all bits, so it may be written at once, and gets the word when it is complete. */
static void replica_that_is_made_anew_gets_the_word(void **state)
{
	struct host *host = make_written(1, 3);
	struct rbx_intents intents;
	uint32_t lost = host_server_of(host, 0, 0);

	(void)state;
	rbx_upkeep_server_down(&host->upkeep, lost);
	host->servers[lost].down = true;
	rounds(host);
	assert_int_equal(host_census(host).whole, 1);
	intents = noted_next(host);
	assert_int_equal(intents.count, 2);
	assert_int_equal(intents.all[0].word, 1);
	assert_int_equal(intents.all[1].word, 1);
	assert_true(intents.all[0].server != lost && intents.all[1].server != lost);
	rbx_extents_noted(&host->flow, &intents);
	host_free(host);
}

/* ---- Another client has the volume ---------------------------------------------------------- */

/* No server says that it was written to since. */
static void what_was_never_written_is_not_read_when_it_is_over(void **state)
{
	struct host *host = noted_make(1, 2);
	static uint8_t in[512];

	(void)state;
	host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	(void)host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	rbx_extents_end(host->flow.map);
	host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	(void)host_poll(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	/* It was not so. */
	rbx_extents_resume(host->flow.map);
	host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	(void)host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_write_of_an_extent_waits_until_all_have_noted_it),
		cmocka_unit_test(only_the_first_word_wakes),
		cmocka_unit_test(word_follows_the_one_before),
		cmocka_unit_test(piece_waits_for_all_its_extents),
		cmocka_unit_test(server_has_failed_writes_that_wait_end),
		cmocka_unit_test(extents_above_the_bound_are_cleared),
		cmocka_unit_test(extents_that_were_asked_for_in_vain_give_their_room_back),
		cmocka_unit_test(extent_that_is_being_written_is_not_cleared),
		cmocka_unit_test(what_is_cleared_while_servers_are_asked_is_not_safe),
		cmocka_unit_test(extent_that_is_quiet_is_cleared_in_time),
		cmocka_unit_test(extent_that_differs_is_not_cleared),
		cmocka_unit_test(replica_that_is_made_anew_gets_the_word),
		cmocka_unit_test(what_was_never_written_is_not_read_when_it_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
