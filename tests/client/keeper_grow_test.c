/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* keeper_grow_test.c - a volume is larger when a record says so that was chosen. */
#include "tests/client/keeper_world.h"

#define SIZE (5ull * RBX_SLAB_BYTES_MIN)

struct grower {
	struct world *w;
	uint64_t size_bytes;
	int err;
	pthread_t thread;
};

static void *grower_run(void *argument)
{
	struct grower *grower = argument;

	grower->err = rbx_keeper_grow(&grower->w->keeper, grower->size_bytes);
	return NULL;
}

static void grows(struct grower *grower, struct world *w, uint64_t size_bytes)
{
	bool is_seen;

	*grower = (struct grower){ .w = w, .size_bytes = size_bytes };
	assert_int_equal(pthread_create(&grower->thread, NULL, grower_run, grower), 0);
	do {
		woken_wait();
		rbx_monitor_enter(&w->keeper.growth.monitor);
		is_seen = w->keeper.growth.is_new;
		rbx_monitor_leave(&w->keeper.growth.monitor);
	} while (!is_seen);
	(void)turn(w);
}

static int grown(struct grower *grower)
{
	assert_int_equal(pthread_join(grower->thread, NULL), 0);
	return grower->err;
}

static void map_grows_when_the_record_is_chosen(void **state)
{
	struct world *w = make(3);
	const struct rbx_volume_map *map = w->control.flow.map;
	struct grower grower;

	(void)state;
	grows(&grower, w, SIZE);
	assert_int_equal(servers[0].asked.record.size_bytes, SIZE);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(rbx_volume_map_slabs(map), 2);
	answers(2, 0);
	(void)turn(w);
	assert_int_equal(grown(&grower), 0);
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
	struct grower grower;
	uint32_t i;

	(void)state;
	suspect(w, 0);
	grows(&grower, w, SIZE);
	assert_int_not_equal(servers[1].asked.record.size_bytes, SIZE);
	for (i = 0; i < 3; i++) { /* it is out, its vote is not needed, and the size */
		answers(1, 0);
		(void)turn(w);
	}
	assert_int_equal(servers[1].asked.record.size_bytes, SIZE);
	assert_int_equal(grown(&grower), 0);
	end(w);
}

static void volume_that_another_client_has_does_not_grow(void **state)
{
	struct world *w = make(3);
	struct grower grower;

	(void)state;
	grows(&grower, w, SIZE);
	answers(1, -ESTALE);
	(void)turn(w);
	assert_int_equal(grown(&grower), -ESTALE);
	assert_int_equal(rbx_volume_map_slabs(w->control.flow.map), 2);
	(void)turn(w);
	assert_int_equal(stopped.count, 1); /* once */
	assert_string_equal(stopped.why, "another client has opened it");
	assert_string_equal(stopped.server, "a server");
	end(w);
}

/* Some may have accepted the size that was not chosen. */
static void volume_that_was_about_to_grow_can_grow_later(void **state)
{
	struct world *w = make(2);
	const struct rbx_volume_map *map = w->control.flow.map;
	struct grower grower;
	struct comer comer;

	(void)state;
	grows(&grower, w, SIZE);
	answers(0, -ENOTCONN);
	answers(1, -ENOTCONN);
	two_are_lost(w);
	assert_int_equal(grown(&grower), -ESTALE);
	grows(&grower, w, SIZE); /* while nothing is accepted */
	assert_int_equal(grown(&grower), -ESTALE);
	comes_again(&comer, w, 2, 0);
	(void)turn(w);
	assert_int_equal(came(&comer), 0);
	assert_false(w->keeper.is_over);
	assert_int_equal(servers[0].asked.record.size_bytes, SIZE);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(rbx_volume_map_slabs(map), 2);
	/* It is never said to be smaller. */
	grows(&grower, w, SIZE - RBX_SLAB_BYTES_MIN);
	assert_int_equal(servers[0].asked.record.size_bytes, SIZE);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(grown(&grower), 0);
	assert_int_equal(rbx_volume_map_bytes(map), SIZE);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_grows_when_the_record_is_chosen),
		cmocka_unit_test(loss_of_a_server_goes_first),
		cmocka_unit_test(volume_that_another_client_has_does_not_grow),
		cmocka_unit_test(volume_that_was_about_to_grow_can_grow_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
