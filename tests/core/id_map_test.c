/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* id_map_test.c - what was put is found, and nothing else; beside a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/id_map.h"
#include "core/random.h"

#define COUNT_MAX 24u
#define IDS 60u
#define STEPS 200000u

static struct rbx_id_map map;

static int setup(void **state)
{
	*state = malloc(rbx_id_map_size(COUNT_MAX));
	assert_non_null(*state);
	rbx_id_map_init(&map, *state, COUNT_MAX);
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void what_is_not_there_is_not_found(void **state)
{
	(void)state;
	assert_int_equal(rbx_id_map_find(&map, 0), RBX_ID_MAP_NONE);
	assert_int_equal(rbx_id_map_find(&map, 5), RBX_ID_MAP_NONE);
	rbx_id_map_put(&map, 5, 3);
	assert_int_equal(rbx_id_map_find(&map, 5), 3);
	assert_int_equal(rbx_id_map_find(&map, 0), RBX_ID_MAP_NONE);
	rbx_id_map_remove(&map, 5);
	assert_int_equal(rbx_id_map_find(&map, 5), RBX_ID_MAP_NONE);
}

/* Full, over and over: chains of probes form, run over the end, and close again. */
static void all_are_found_whoever_has_gone(void **state)
{
	struct rbx_random random;
	uint64_t ids[IDS];
	bool is_in[IDS] = { false };
	uint32_t count = 0;

	(void)state;
	rbx_random_seed(&random, 7);
	for (uint32_t i = 0; i < IDS; i++)
		ids[i] = rbx_random_next(&random) | 1;
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t i = rbx_random_below(&random, IDS);

		if (is_in[i]) {
			rbx_id_map_remove(&map, ids[i]);
			count--;
			is_in[i] = false;
		} else if (count < COUNT_MAX) {
			rbx_id_map_put(&map, ids[i], i);
			count++;
			is_in[i] = true;
		}
		i = rbx_random_below(&random, IDS);
		assert_int_equal(rbx_id_map_find(&map, ids[i]),
				 is_in[i] ? i : RBX_ID_MAP_NONE);
		if (step % 1000 == 0)
			for (i = 0; i < IDS; i++)
				assert_int_equal(rbx_id_map_find(&map, ids[i]),
						 is_in[i] ? i : RBX_ID_MAP_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_there_is_not_found,
						setup, teardown),
		cmocka_unit_test_setup_teardown(all_are_found_whoever_has_gone,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
