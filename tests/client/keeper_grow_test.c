/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* keeper_grow_test.c - a volume is larger when a record says so that was chosen. */
#include <pthread.h>

#include "tests/client/keeper_world.h"

#define SIZE (5ull * RBX_SLAB_BYTES_MIN)

static int grow_err;

static void *grow(void *arg)
{
	struct world *w = arg;

	grow_err = rbx_keeper_grow(&w->keeper, SIZE);
	return NULL;
}

/* The thread waits, and the keeper makes its first round since. */
static struct world *wanted(uint32_t count, pthread_t *thread)
{
	struct world *w = make(count);

	assert_int_equal(pthread_create(thread, NULL, grow, w), 0);
	woken_wait();
	(void)turn(w);
	return w;
}

static void map_grows_when_the_record_is_chosen(void **state)
{
	pthread_t thread;
	struct world *w = wanted(3, &thread);
	const struct rbx_volume_map *map = w->control.flow.map;

	(void)state;
	assert_int_equal(servers[0].asked.record.size_bytes, SIZE);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(rbx_volume_map_slabs(map), 2);
	answers(2, 0);
	(void)turn(w);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(grow_err, 0);
	assert_int_equal(rbx_volume_map_slabs(map), 5);
	assert_int_equal(rbx_volume_map_bytes(map), SIZE);
	assert_int_equal(rbx_attention_count(&map->attention, RBX_SLAB_BLANK), 5);
	assert_true(rbx_upkeep_is_whole(&w->control.upkeep));
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 1); /* once */
	end(w);
}

/* A server that is lost goes first; then the volume grows. */
static void loss_of_a_server_goes_first(void **state)
{
	struct world *w = make(2);
	pthread_t thread;
	uint32_t i;

	(void)state;
	suspect(w, 0);
	assert_int_equal(pthread_create(&thread, NULL, grow, w), 0);
	woken_wait();
	(void)turn(w);
	assert_int_not_equal(servers[1].asked.record.size_bytes, SIZE);
	for (i = 0; i < 3; i++) { /* it is out, its vote is not needed, and the size */
		answers(1, 0);
		(void)turn(w);
	}
	assert_int_equal(servers[1].asked.record.size_bytes, SIZE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(grow_err, 0);
	end(w);
}

static void volume_that_another_client_has_does_not_grow(void **state)
{
	pthread_t thread;
	struct world *w = wanted(3, &thread);

	(void)state;
	answers(1, -ESTALE);
	(void)turn(w);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(grow_err, -ESTALE);
	assert_int_equal(rbx_volume_map_slabs(w->control.flow.map), 2);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_grows_when_the_record_is_chosen),
		cmocka_unit_test(loss_of_a_server_goes_first),
		cmocka_unit_test(volume_that_another_client_has_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
