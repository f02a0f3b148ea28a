/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reservation_test.c - which servers are chosen for all slabs of a volume (core/reservation.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/reservation.h"

/* Chooses for so many slabs. Returns for how many there was room. */
static uint32_t choose(struct rbx_reservation r, uint32_t slabs, uint32_t replicas, bool apart)
{
	uint8_t chosen[RBX_REPLICAS_MAX] = { 0 };
	uint32_t i, j, k;

	for (i = 0; i < slabs; i++) {
		uint64_t before = 0, after = 0;

		for (j = 0; j < r.servers_count; j++)
			before += r.room[j];
		if (!rbx_reservation_next(&r, replicas, apart, chosen))
			return i;
		for (j = 0; j < r.servers_count; j++)
			after += r.room[j];
		assert_int_equal(before - after, replicas);
		for (j = 0; j < replicas; j++)
			for (k = 0; k < j; k++)
				assert_int_not_equal(chosen[j], chosen[k]);
	}
	return i;
}

static void reservation_what_fits_is_found(void **state)
{
	const struct rbx_reservation even = { .servers_count = 3, .room = { 10, 10, 10 } };
	const struct rbx_reservation odd = { .servers_count = 4, .room = { 2, 20, 7, 11 } };

	(void)state;
	assert_int_equal(choose(even, 30, 1, true), 30);
	assert_int_equal(choose(even, 31, 1, true), 30);
	assert_int_equal(choose(even, 15, 2, true), 15);
	assert_int_equal(choose(even, 10, 3, true), 10);
	/* Each slab has one replica at the large server. */
	assert_int_equal(choose(odd, 20, 2, true), 20);
	assert_int_equal(choose(odd, 21, 2, true), 20);
}

static void reservation_too_few_servers_have_no_room(void **state)
{
	const struct rbx_reservation one = { .servers_count = 3, .room = { 0, 100, 0 } };

	(void)state;
	assert_int_equal(choose(one, 1, 2, true), 0);
	assert_int_equal(choose(one, 100, 1, true), 100);
}

static void reservation_replicas_are_in_two_domains_if_there_are_two(void **state)
{
	struct rbx_reservation r = {
		.servers_count = 4,
		.room = { 20, 20, 9, 9 },
		.domains = { 7, 7, 8, 0 }, /* the last one is of its own */
	};
	uint8_t chosen[RBX_REPLICAS_MAX] = { 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 18; i++) {
		assert_true(rbx_reservation_next(&r, 2, true, chosen));
		assert_false(chosen[0] < 2 && chosen[1] < 2);
	}
	/* Better together than not at all. */
	assert_true(rbx_reservation_next(&r, 2, true, chosen));
	assert_true(chosen[0] < 2 && chosen[1] < 2);
}

static void reservation_domains_may_fail_where_there_is_room(void **state)
{
	const struct rbx_reservation r = {
		.servers_count = 4,
		.room = { 10, 10, 5, 5 },
		.domains = { 7, 7, 8, 9 },
	};

	(void)state;
	assert_true(choose(r, 10, 3, true) < 10);
	assert_int_equal(choose(r, 10, 3, false), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reservation_what_fits_is_found),
		cmocka_unit_test(reservation_too_few_servers_have_no_room),
		cmocka_unit_test(reservation_replicas_are_in_two_domains_if_there_are_two),
		cmocka_unit_test(reservation_domains_may_fail_where_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
