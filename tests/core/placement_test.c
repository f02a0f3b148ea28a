/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * placement_test.c - the power of two choices: only eligible servers, the one
 * with more room, and an even spread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/placement.h"

static const struct rbx_server_set none;

static struct rbx_server_set set_of(uint32_t first, uint32_t count)
{
	struct rbx_server_set set = { 0 };

	while (count--)
		rbx_server_set_add(&set, first++);
	return set;
}

/* The server that is taken, as the upkeep does it; or -1. */
static int choose(const uint64_t *free_bytes, const struct rbx_server_set *up,
		  const struct rbx_server_set *not_servers,
		  struct rbx_random *random)
{
	uint32_t drawn[2], count;

	count = rbx_placement_draw(up, not_servers, random, drawn);
	if (count < 2)
		return count ? (int)drawn[0] : -1;
	assert_int_not_equal(drawn[0], drawn[1]);
	return (int)drawn[rbx_placement_better(free_bytes[drawn[0]],
					       free_bytes[drawn[1]])];
}

static void server_set_counts_and_finds_its_members(void **state)
{
	struct rbx_server_set set = { 0 };
	struct rbx_random random = { 6 };
	bool is_in[RBX_SERVERS_MAX] = { false };
	uint32_t i, n, nth = 0;

	(void)state;
	for (i = 0; i < 3000; i++) {
		n = rbx_random_below(&random, RBX_SERVERS_MAX);
		is_in[n] = i % 3 != 0;
		if (is_in[n])
			rbx_server_set_add(&set, n);
		else
			rbx_server_set_remove(&set, n);
	}
	for (i = 0; i < RBX_SERVERS_MAX; i++) {
		assert_int_equal(rbx_server_set_has(&set, i), is_in[i]);
		if (is_in[i])
			assert_int_equal(rbx_server_set_member(&set, nth++), i);
	}
	assert_int_equal(rbx_server_set_count(&set), nth);
	assert_in_range(nth, 100, 1000);
}

static void placement_no_server_draws_none(void **state)
{
	struct rbx_server_set all = set_of(0, RBX_SERVERS_MAX);
	struct rbx_random random = { 1 };
	uint32_t drawn[2];

	(void)state;
	assert_int_equal(rbx_placement_draw(&none, &none, &random, drawn), 0);
	assert_int_equal(rbx_placement_draw(&all, &all, &random, drawn), 0);
}

static void placement_chooses_eligible_servers_only(void **state)
{
	static const uint64_t free_bytes[RBX_SERVERS_MAX];
	struct rbx_random random = { 2 };
	struct rbx_server_set up, not_servers;
	uint32_t i, j;
	int server;

	(void)state;
	for (i = 0; i < 10000; i++) {
		for (j = 0; j < RBX_SERVER_SET_WORDS; j++) {
			up.words[j] = rbx_random_next(&random);
			not_servers.words[j] = rbx_random_next(&random);
		}
		server = choose(free_bytes, &up, &not_servers, &random);
		assert_true(server >= 0);
		assert_true(rbx_server_set_has(&up, (uint32_t)server));
		assert_false(rbx_server_set_has(&not_servers, (uint32_t)server));
	}
	up = set_of(RBX_SERVERS_MAX - 1, 1);
	assert_int_equal(choose(free_bytes, &up, &none, &random),
			 RBX_SERVERS_MAX - 1);
}

static void placement_of_two_takes_the_one_with_more_room(void **state)
{
	static const uint64_t free_bytes[RBX_SERVERS_MAX] = { [3] = 10,
							      [909] = 11 };
	struct rbx_server_set up = set_of(3, 1);
	struct rbx_random random = { 3 };
	uint32_t i;

	(void)state;
	rbx_server_set_add(&up, 909);
	for (i = 0; i < 100; i++)
		assert_int_equal(choose(free_bytes, &up, &none, &random), 909);
}

/* One random choice leaves the fullest of 1,024 servers about 35 above the mean of
 * 100; the better of two stays within a few. */
static void placement_keeps_servers_even(void **state)
{
	static uint64_t free_bytes[RBX_SERVERS_MAX];
	struct rbx_server_set up = set_of(0, RBX_SERVERS_MAX);
	struct rbx_random random = { 4 };
	uint32_t i;

	(void)state;
	for (i = 0; i < RBX_SERVERS_MAX; i++)
		free_bytes[i] = 1000;
	for (i = 0; i < RBX_SERVERS_MAX * 100; i++)
		free_bytes[choose(free_bytes, &up, &none, &random)]--;
	for (i = 0; i < RBX_SERVERS_MAX; i++)
		assert_in_range(free_bytes[i], 890, 910);
}

/* Whether the slabs from this one on can be placed, by trying it. */
static bool can_place(uint64_t free_slabs[4],
		      uint32_t server_count, uint32_t slab_count,
		      uint32_t replicas)
{
	bool found = !slab_count;
	uint32_t set, i;

	for (set = 0; set < 1u << server_count && !found; set++) {
		bool has_room = true;

		if ((uint32_t)__builtin_popcount(set) != replicas)
			continue;
		for (i = 0; i < server_count; i++)
			has_room &= !(set >> i & 1) || free_slabs[i];
		if (!has_room)
			continue;
		for (i = 0; i < server_count; i++)
			free_slabs[i] -= set >> i & 1;
		found = can_place(free_slabs, server_count, slab_count - 1,
				  replicas);
		for (i = 0; i < server_count; i++)
			free_slabs[i] += set >> i & 1;
	}
	return found;
}

static bool has_room(const uint64_t free_slabs[4], uint32_t slab_count,
		     uint32_t replicas)
{
	uint64_t room = 0;

	for (uint32_t i = 0; i < 4; i++)
		room += rbx_placement_room(free_slabs[i], slab_count);
	return room >= (uint64_t)slab_count * replicas;
}

static void placement_has_room_where_some_placement_fits(void **state)
{
	uint64_t free_slabs[4] = { 0 };
	uint32_t code, slabs, replicas, fits_count = 0;

	(void)state;
	for (code = 0; code < 4 * 4 * 4 * 4; code++) {
		for (uint32_t i = 0; i < 4; i++)
			free_slabs[i] = code >> 2 * i & 3;
		for (slabs = 1; slabs <= 4; slabs++)
			for (replicas = 1; replicas <= 3; replicas++) {
				bool fits = can_place(free_slabs, 4, slabs,
						      replicas);

				assert_int_equal(has_room(free_slabs, slabs,
							  replicas),
						 fits);
				fits_count += fits;
			}
	}
	assert_in_range(fits_count, 500, 2500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_set_counts_and_finds_its_members),
		cmocka_unit_test(placement_no_server_draws_none),
		cmocka_unit_test(placement_chooses_eligible_servers_only),
		cmocka_unit_test(placement_of_two_takes_the_one_with_more_room),
		cmocka_unit_test(placement_keeps_servers_even),
		cmocka_unit_test(placement_has_room_where_some_placement_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
