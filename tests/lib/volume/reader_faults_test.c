/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader_faults_test.c - what a program that reads a named volume beside its writer is not led
 * astray by: servers that are gone for good, servers that lie, and its own end.
 */
#include <errno.h>

#include "tests/lib/volume/lying_server.h"
#include "tests/lib/volume/reader_world.h"

#define MORE_SERVERS 3u

/* ---- Servers that are gone ------------------------------------------------------------------ */

static struct rbx_server *more[MORE_SERVERS];

static int six_servers_start(void **state)
{
	servers_start(state);
	for (uint32_t i = 0; i < MORE_SERVERS; i++) {
		more[i] = tenant_server();
		strcat(pool, ",");
		strcat(pool, rbx_server_address(more[i]));
	}
	return 0;
}

static int six_servers_stop(void **state)
{
	for (uint32_t i = 0; i < MORE_SERVERS; i++)
		rbx_server_stop(more[i]);
	return servers_stop(state);
}

static struct rbx_server **server_at(uint32_t i)
{
	return i < SERVERS ? &servers[i] : &more[i - SERVERS];
}

/* How many have the only slab; the first of them: which one. */
static uint32_t holders_count(uint32_t *first)
{
	struct rbx_server_stats stats;
	uint32_t i, count = 0;

	for (i = 0; i < SERVERS + MORE_SERVERS; i++) {
		if (!*server_at(i))
			continue;
		rbx_server_stats_get(*server_at(i), &stats);
		if (stats.slabs_lent && !count++)
			*first = i;
	}
	return count;
}

static void wait_whole(struct rbx_volume *volume)
{
	struct rbx_volume_status status;

	do
		rbx_volume_status(volume, &status);
	while (status.slabs_whole + status.slabs_blank < status.slabs && !usleep(1000));
}

/* One of two that have it ends, as all know, and another one has all of it then. */
static void holder_ends(void)
{
	uint32_t holder = 0;

	wait_whole(reader);
	assert_int_equal(holders_count(&holder), 2);
	rbx_server_stop(*server_at(holder));
	*server_at(holder) = NULL;
	while (holders_count(&holder) < 2)
		usleep(1000);
	wait_whole(writer);
}

/* The page of this seed, after that of the one before; nothing else. */
static void expect_next(uint64_t seed)
{
	uint8_t page[PAGE], expected[PAGE];

	do {
		if (rbx_read(reader, page, PAGE, 0))
			fail_msg("%s", rbx_last_error());
		tenant_fill(expected, PAGE, seed);
		if (!memcmp(page, expected, PAGE))
			return;
		tenant_fill(expected, PAGE, seed - 1);
		assert_memory_equal(page, expected, PAGE);
	} while (!usleep(1000));
}

/* A slab has RBX_SLOTS_MAX places for those that have it: who is gone is in nobody's way. */
static void servers_that_are_gone_make_room(void **state)
{
	uint64_t seed;

	(void)state;
	begin_with(2, 0);
	put(0, 1);
	lag();
	for (seed = 2; seed < 2 + RBX_SLOTS_MAX; seed++) {
		holder_ends();
		put(0, seed);
		expect_next(seed);
	}
	finish();
}

/* ---- Servers that lie ----------------------------------------------------------------------- */

static void all_say_size(uint64_t size_bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		server_say_size(servers[i], size_bytes);
}

static void size_that_makes_no_sense_is_not_taken(void **state)
{
	static const uint64_t sizes[] = { UINT64_MAX - PAGE + 1, SIZE + 1 };

	(void)state;
	begin_with(2, 0);
	put_all(1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		all_say_size(sizes[i], SERVERS);
		lag();
		assert_int_equal(rbx_volume_size(reader), SIZE);
	}
	all_say_size(SIZE, SERVERS);
	lag();
	expect_all(1);
	/* Not all tell the same. */
	all_say_size(SIZE + SLAB, 1);
	lag();
	assert_int_equal(rbx_volume_size(reader), SIZE);
	expect_all(1);
	all_say_size(SIZE + SLAB, SERVERS);
	while (rbx_volume_size(reader) != SIZE + SLAB)
		usleep(1000);
	all_say_size(SIZE, SERVERS);
	finish();
}

/* ---- Its own end ---------------------------------------------------------------------------- */

static bool is_told, is_closing; /* atomic */

static void status_ask(struct rbx_volume *volume)
{
	struct rbx_volume_status status;

	__atomic_store_n(&is_told, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&is_closing, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(100000); /* for the close to get on */
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs, SLABS);
}

static void status_may_be_asked_until_the_end(void **state)
{
	(void)state;
	on_removal = status_ask;
	begin_with(2, 0);
	put_all(1);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 1), 0);
	while (!__atomic_load_n(&is_told, __ATOMIC_ACQUIRE))
		usleep(1000);
	__atomic_store_n(&is_closing, true, __ATOMIC_RELEASE);
	finish();
	on_removal = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(servers_that_are_gone_make_room, six_servers_start,
						six_servers_stop),
		cmocka_unit_test_setup_teardown(size_that_makes_no_sense_is_not_taken,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(status_may_be_asked_until_the_end, servers_start,
						servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
