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

static void placement_no_server_is_enospc(void **state)
{
	uint64_t free_bytes[RBX_SERVERS_MAX] = { 0 };
	struct rbx_random random = { 1 };

	(void)state;
	assert_int_equal(rbx_placement_choose(free_bytes, 0, &random),
			 -ENOSPC);
}

static void placement_chooses_eligible_servers_only(void **state)
{
	uint64_t free_bytes[RBX_SERVERS_MAX] = { 0 };
	struct rbx_random random = { 2 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 10000; i++) {
		uint64_t eligible = rbx_random_next(&random) |
				    1ull << rbx_random_below(&random, 64);
		int server = rbx_placement_choose(free_bytes, eligible,
						  &random);

		assert_true(server >= 0 && eligible >> server & 1);
	}
	assert_int_equal(rbx_placement_choose(free_bytes, 1ull << 63, &random),
			 63);
}

static void placement_of_two_takes_the_one_with_more_room(void **state)
{
	uint64_t free_bytes[RBX_SERVERS_MAX] = { [3] = 10, [9] = 11 };
	struct rbx_random random = { 3 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(rbx_placement_choose(free_bytes,
						      1u << 3 | 1u << 9,
						      &random),
				 9);
}

/* One random choice leaves the fullest of 16 servers about 30 above the mean
 * of 100; the better of two stays within a few. */
static void placement_keeps_servers_even(void **state)
{
	uint64_t free_bytes[RBX_SERVERS_MAX];
	struct rbx_random random = { 4 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 16; i++)
		free_bytes[i] = 1000;
	for (i = 0; i < 16 * 100; i++)
		free_bytes[rbx_placement_choose(free_bytes, 0xffff, &random)]--;
	for (i = 0; i < 16; i++)
		assert_in_range(free_bytes[i], 890, 910);
}

/* Whether the slabs from this one on can be placed, by trying it. */
static bool can_place(uint64_t free_slabs[RBX_SERVERS_MAX],
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

static void placement_fits_where_some_placement_does(void **state)
{
	uint64_t free_slabs[RBX_SERVERS_MAX] = { 0 };
	uint32_t code, slabs, replicas, fits_count = 0;

	(void)state;
	for (code = 0; code < 4 * 4 * 4 * 4; code++) {
		for (uint32_t i = 0; i < 4; i++)
			free_slabs[i] = code >> 2 * i & 3;
		for (slabs = 1; slabs <= 4; slabs++)
			for (replicas = 1; replicas <= 3; replicas++) {
				bool fits = can_place(free_slabs, 4, slabs,
						      replicas);

				assert_int_equal(rbx_placement_fits(free_slabs,
								    4, slabs,
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
		cmocka_unit_test(placement_no_server_is_enospc),
		cmocka_unit_test(placement_chooses_eligible_servers_only),
		cmocka_unit_test(placement_of_two_takes_the_one_with_more_room),
		cmocka_unit_test(placement_keeps_servers_even),
		cmocka_unit_test(placement_fits_where_some_placement_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
