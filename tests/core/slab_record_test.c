/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_record_test.c - the pool of records: each is one slab's at a time, also where
 * threads take and put them, and a share is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/slab_record.h"

#define THREADS 4u
#define TURNS 20000u
#define HELD 8u /* of each thread */

static struct rbx_slab_records *pool_make(void)
{
	struct rbx_slab_records *pool = calloc(1, sizeof(*pool));

	rbx_slab_records_init(pool);
	return pool;
}

static void pool_gives_each_record_once_and_clean(void **state)
{
	struct rbx_slab_records *pool = pool_make();
	struct rbx_slab_record *record;
	uint32_t i;

	(void)state;
	for (i = 0; i < RBX_SLAB_RECORDS; i++) {
		record = rbx_slab_records_take(pool, 0);
		assert_non_null(record);
		assert_int_equal(record->slab_index, 0);
		record->slab_index = i + 1;
		record->copies_count = 1;
	}
	assert_int_equal(rbx_slab_records_free(pool), 0);
	assert_null(rbx_slab_records_take(pool, 0));
	record = &pool->all[RBX_SLAB_RECORDS - 1];
	rbx_slab_records_put(pool, record);
	assert_int_equal(rbx_slab_records_free(pool), 1);
	assert_ptr_equal(rbx_slab_records_take(pool, 0), record);
	assert_int_equal(record->copies_count, 0);
	free(pool);
}

static void pool_keeps_a_share(void **state)
{
	struct rbx_slab_records *pool = pool_make();
	uint32_t taken_count = 0;

	(void)state;
	while (rbx_slab_records_take(pool, RBX_SLAB_RECORDS_KEPT))
		taken_count++;
	assert_int_equal(taken_count, RBX_SLAB_RECORDS - RBX_SLAB_RECORDS_KEPT);
	assert_non_null(rbx_slab_records_take(pool, 0));
	free(pool);
}

static void hold(struct rbx_slab_records *pool, struct rbx_slab_record **held)
{
	if (!*held) {
		*held = rbx_slab_records_take(pool, 0);
		if (*held)
			RBX_ASSERT((*held)->slab_index++ == 0);
		return;
	}
	RBX_ASSERT((*held)->slab_index-- == 1);
	rbx_slab_records_put(pool, *held);
	*held = NULL;
}

static void *take_and_put(void *argument)
{
	struct rbx_slab_record *held[HELD] = { 0 };
	uint32_t i;

	for (i = 0; i < TURNS; i++)
		hold(argument, &held[i * 7 % HELD]);
	for (i = 0; i < HELD; i++)
		if (held[i])
			hold(argument, &held[i]);
	return NULL;
}

static void record_is_of_one_thread_at_a_time(void **state)
{
	struct rbx_slab_records *pool = pool_make();
	pthread_t threads[THREADS];
	uint32_t i;

	(void)state;
	/* So few that they meet. */
	while (rbx_slab_records_take(pool, THREADS * HELD / 2))
		;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_put,
						pool),
				 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(rbx_slab_records_free(pool), THREADS * HELD / 2);
	free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_gives_each_record_once_and_clean),
		cmocka_unit_test(pool_keeps_a_share),
		cmocka_unit_test(record_is_of_one_thread_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
