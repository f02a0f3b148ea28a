/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_table_test.c - a slab is found by its number, and its number by where it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/slab.h"

/* Each slab is behind the one before it, in its own memory, and knows its number. */
static void expect_slabs_in_order(uint32_t slab_size, uint32_t slab_count,
				  uint32_t from)
{
	const size_t size = rbx_slab_table_size(slab_count, slab_size);
	struct rbx_slab_shape shape = { 0 };
	char *memory = malloc(size + 1);
	const char *end = memory + 1;
	uint32_t i;

	assert_non_null(memory);
	/* At an odd address, to begin with. */
	rbx_slab_table_init(&shape.table, memory + 1, slab_count, slab_size);
	rbx_slab_table_extend(&shape.table, 0, slab_count / 3, &shape);
	rbx_slab_table_extend(&shape.table, slab_count / 3, slab_count, &shape);
	for (i = from; i < slab_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&shape, i);

		assert_true((const char *)slab >= end);
		end = (const char *)slab + slab_size;
		assert_ptr_equal(rbx_slab_shape(slab), &shape);
		assert_int_equal(rbx_slab_index(slab), i);
	}
	assert_true(end <= memory + 1 + size);
	free(memory);
}

static void slab_is_found_by_number_and_knows_it(void **state)
{
	uint32_t replicas;

	(void)state;
	for (replicas = 1; replicas <= RBX_REPLICAS_MAX; replicas++) {
		uint32_t slab_size = rbx_slab_size(replicas);

		expect_slabs_in_order(slab_size, 1, 0);
		expect_slabs_in_order(slab_size, 100000, 0);
	}
}

/* The last of the largest volume, where an inexact inverse would be off first. */
static void slab_of_the_largest_volume_is_found(void **state)
{
	(void)state;
	expect_slabs_in_order(rbx_slab_size(2), RBX_SLABS_MAX,
			      RBX_SLABS_MAX - 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_is_found_by_number_and_knows_it),
		cmocka_unit_test(slab_of_the_largest_volume_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
