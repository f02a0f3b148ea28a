/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* staging_test.c - runs of blocks against a plain map of who has which. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/staging.h"

#define BLOCKS (RBX_STAGING_WORDS * 64)

static uint32_t blocks_of(uint32_t length_bytes)
{
	return (length_bytes + RBX_PAGE_BYTES - 1) / RBX_PAGE_BYTES;
}

static void staging_random_runs_never_overlap(void **state)
{
	static uint8_t owned[BLOCKS];
	struct {
		uint32_t block;
		uint32_t length_bytes;
	} runs[200];
	struct rbx_staging staging;
	int count = 0;

	(void)state;
	srand(1);
	rbx_staging_init(&staging, NULL, 0);
	for (int step = 0; step < 100000; step++) {
		if (count < 200 && rand() % 2) {
			uint32_t length =
				1 + (uint32_t)rand() % RBX_STAGING_RUN_BYTES;
			int32_t block = rbx_staging_take(&staging, length);

			if (block < 0)
				continue;
			for (uint32_t i = 0; i < blocks_of(length); i++)
				assert_int_equal(owned[(uint32_t)block + i]++,
						 0);
			runs[count].block = (uint32_t)block;
			runs[count++].length_bytes = length;
		} else if (count > 0) {
			int at = rand() % count;

			for (uint32_t i = 0;
			     i < blocks_of(runs[at].length_bytes); i++)
				owned[runs[at].block + i] = 0;
			rbx_staging_give(&staging, runs[at].block,
					 runs[at].length_bytes);
			runs[at] = runs[--count];
		}
	}
}

static void staging_full_pool_says_again(void **state)
{
	struct rbx_staging staging;

	(void)state;
	rbx_staging_init(&staging, NULL, 0);
	for (unsigned int i = 0; i < RBX_STAGING_WORDS; i++)
		assert_true(rbx_staging_take(&staging, RBX_STAGING_RUN_BYTES) >=
			    0);
	assert_int_equal(rbx_staging_take(&staging, 1), -EAGAIN);
	rbx_staging_give(&staging, 64, RBX_STAGING_RUN_BYTES);
	assert_int_equal(rbx_staging_take(&staging, RBX_STAGING_RUN_BYTES), 64);
}

static void staging_all_single_blocks_can_be_had(void **state)
{
	struct rbx_staging staging;

	(void)state;
	rbx_staging_init(&staging, NULL, 0);
	for (unsigned int i = 0; i < BLOCKS; i++)
		assert_true(rbx_staging_take(&staging, 1) >= 0);
	assert_int_equal(rbx_staging_take(&staging, 1), -EAGAIN);
}

struct shared {
	struct rbx_staging staging;
	int owners[BLOCKS]; /* atomic */
};

static void *take_and_give(void *arg)
{
	struct shared *shared = arg;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	for (int i = 0; i < 20000; i++) {
		uint32_t length = 1 + (uint32_t)rand_r(&seed) %
					      RBX_STAGING_RUN_BYTES;
		int32_t block = rbx_staging_take(&shared->staging, length);

		if (block < 0)
			continue;
		for (uint32_t b = 0; b < blocks_of(length); b++)
			assert_int_equal(
				RBX_FETCH_ADD(&shared->owners[block + (int)b], 1),
				0);
		for (uint32_t b = 0; b < blocks_of(length); b++)
			RBX_FETCH_ADD(&shared->owners[block + (int)b], -1);
		rbx_staging_give(&shared->staging, (uint32_t)block, length);
	}
	return NULL;
}

static void staging_many_threads_never_share_a_block(void **state)
{
	static struct shared shared;
	pthread_t threads[4];

	(void)state;
	rbx_staging_init(&shared.staging, NULL, 0);
	for (int t = 0; t < 4; t++)
		pthread_create(&threads[t], NULL, take_and_give, &shared);
	for (int t = 0; t < 4; t++)
		pthread_join(threads[t], NULL);
	for (unsigned int i = 0; i < RBX_STAGING_WORDS; i++)
		assert_int_equal(shared.staging.taken[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(staging_random_runs_never_overlap),
		cmocka_unit_test(staging_full_pool_says_again),
		cmocka_unit_test(staging_all_single_blocks_can_be_had),
		cmocka_unit_test(staging_many_threads_never_share_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
