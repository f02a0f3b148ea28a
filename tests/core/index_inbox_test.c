/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index_inbox_test.c - what is put in comes out, once, and none is lost when threads
 * put while one takes.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/index_inbox.h"
#include "core/random.h"

static const uint32_t sizes[] = { 1, 63, 64, 65, 4095, 4096, 4097, 300001,
				  1u << 24 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static void *inbox_make(struct rbx_index_inbox *inbox, uint32_t count)
{
	void *memory = calloc(1, rbx_index_inbox_size(count));

	rbx_index_inbox_init(inbox, memory, count);
	return memory;
}

static void put_twice_it_comes_out_once(void **state)
{
	struct rbx_index_inbox inbox;
	void *memory;

	(void)state;
	for (uint32_t i = 0; i < SIZES; i++) {
		memory = inbox_make(&inbox, sizes[i]);
		assert_false(rbx_index_inbox_has_any(&inbox));
		rbx_index_inbox_put(&inbox, sizes[i] - 1);
		rbx_index_inbox_put(&inbox, sizes[i] - 1);
		assert_true(rbx_index_inbox_has_any(&inbox));
		assert_int_equal(rbx_index_inbox_take(&inbox), sizes[i] - 1);
		assert_false(rbx_index_inbox_has_any(&inbox));
		assert_int_equal(rbx_index_inbox_take(&inbox), RBX_INDEX_NONE);
		free(memory);
	}
}

/* Beside plain arrays: how often each was put and taken, and whether it was put since it
 * was taken last. */
struct model {
	struct rbx_index_inbox inbox;
	void *memory;
	uint16_t *puts, *takes;
	uint8_t *is_in;
	uint32_t in_count;
};

static void put(struct model *model, uint32_t index)
{
	rbx_index_inbox_put(&model->inbox, index);
	model->puts[index]++;
	model->in_count += !model->is_in[index];
	model->is_in[index] = 1;
}

/* False: there was none. One that is put during a pass may come out of it, and again. */
static bool take(struct model *model)
{
	bool has_any = rbx_index_inbox_has_any(&model->inbox);
	uint32_t index = rbx_index_inbox_take(&model->inbox);

	if (index == RBX_INDEX_NONE) {
		assert_int_equal(model->in_count, 0);
		return false;
	}
	assert_true(has_any);
	assert_true(++model->takes[index] <= model->puts[index]);
	model->in_count -= model->is_in[index];
	model->is_in[index] = 0;
	return true;
}

/* First more is put than taken, then all is taken. */
static void inbox_at_random_gives_what_was_put(void **state)
{
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 9);
	for (uint32_t i = 0; i < SIZES - 1; i++) {
		struct model model = {
			.puts = calloc(sizes[i], sizeof(*model.puts)),
			.takes = calloc(sizes[i], sizeof(*model.takes)),
			.is_in = calloc(sizes[i], 1),
		};

		model.memory = inbox_make(&model.inbox, sizes[i]);
		for (uint32_t step = 0; step < 20000; step++) {
			if (rbx_random_below(&random, 3) > step / 10000)
				put(&model, rbx_random_below(&random, sizes[i]));
			else
				(void)take(&model);
		}
		while (take(&model))
			;
		assert_false(rbx_index_inbox_has_any(&model.inbox));
		free(model.puts);
		free(model.takes);
		free(model.is_in);
		free(model.memory);
	}
}

static void pass_goes_up_by_index(void **state)
{
	struct rbx_index_inbox inbox;
	void *memory = inbox_make(&inbox, 100000);

	(void)state;
	for (uint32_t i = 99999; i >= 777; i -= 777)
		rbx_index_inbox_put(&inbox, i);
	for (uint32_t i = 99999 % 777 + 777; i <= 99999; i += 777)
		assert_int_equal(rbx_index_inbox_take(&inbox), i);
	assert_int_equal(rbx_index_inbox_take(&inbox), RBX_INDEX_NONE);
	free(memory);
}

/* ---- Threads ----------------------------------------------------------------------*/

#define THREADS 3
#define PUTS 3000
#define INDICES 4200u /* three levels, and threads meet in words */

struct race {
	struct rbx_index_inbox inbox;
	pthread_mutex_t locks[8];
	uint8_t changed[INDICES]; /* with the lock of the index */
	uint32_t begun, ended; /* atomic: passes of the taker */
	uint32_t lost_count, over_count; /* atomic */
};

static pthread_mutex_t *lock_of(struct race *race, uint32_t index)
{
	return &race->locks[index % 8];
}

static bool is_changed(struct race *race, uint32_t index)
{
	bool changed;

	pthread_mutex_lock(lock_of(race, index));
	changed = race->changed[index];
	pthread_mutex_unlock(lock_of(race, index));
	return changed;
}

/* A pass that begins after the put has seen the change when it ends. */
static void wait_for_a_pass(struct race *race)
{
	uint32_t pass = RBX_LOAD_ORDERED(&race->begun) + 1;

	while ((int32_t)(RBX_LOAD_ORDERED(&race->ended) - pass) < 0)
		sched_yield();
}

/* Each thread changes what nobody else does, in words that all do. */
static void *put_some(void *argument)
{
	static uint32_t threads; /* atomic */
	struct race *race = argument;
	uint32_t thread = RBX_FETCH_ADD(&threads, 1) % THREADS;
	struct rbx_random random;

	rbx_random_seed(&random, thread);
	for (uint32_t i = 0; i < PUTS; i++) {
		uint32_t index = rbx_random_below(&random, INDICES / THREADS) *
					 THREADS +
				 thread;

		pthread_mutex_lock(lock_of(race, index));
		race->changed[index] = 1;
		rbx_index_inbox_put(&race->inbox, index);
		pthread_mutex_unlock(lock_of(race, index));
		if (i % 8)
			continue;
		wait_for_a_pass(race);
		RBX_FETCH_ADD(&race->lost_count, is_changed(race, index));
	}
	RBX_FETCH_ADD(&race->over_count, 1);
	return NULL;
}

static void pass(struct race *race)
{
	uint32_t index;

	RBX_FETCH_ADD(&race->begun, 1);
	while ((index = rbx_index_inbox_take(&race->inbox)) != RBX_INDEX_NONE) {
		pthread_mutex_lock(lock_of(race, index));
		race->changed[index] = 0;
		pthread_mutex_unlock(lock_of(race, index));
	}
	RBX_FETCH_ADD(&race->ended, 1);
}

static void nothing_is_lost_between_a_put_and_a_pass(void **state)
{
	struct race *race = calloc(1, sizeof(*race));
	void *memory = inbox_make(&race->inbox, INDICES);
	pthread_t threads[THREADS];

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		pthread_mutex_init(&race->locks[i], NULL);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_some, race),
				 0);
	while (RBX_LOAD_ORDERED(&race->over_count) < THREADS) {
		pass(race);
		sched_yield();
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pass(race);
	assert_int_equal(race->lost_count, 0);
	for (uint32_t i = 0; i < INDICES; i++)
		assert_false(race->changed[i]);
	free(memory);
	free(race);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_twice_it_comes_out_once),
		cmocka_unit_test(inbox_at_random_gives_what_was_put),
		cmocka_unit_test(pass_goes_up_by_index),
		cmocka_unit_test(nothing_is_lost_between_a_put_and_a_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
