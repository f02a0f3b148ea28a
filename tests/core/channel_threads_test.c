/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_threads_test.c - submitting, combining, parking and completing at
 * once.
 *
 * Several threads submit through one narrow window, so that combiners park and
 * are taken over all the time, while one thread completes and a third one halts
 * and reopens the channel. A lost hand-over of the combiner's role would leave
 * fragments behind: then the test waits for them until the runner's timeout
 * ends it. Run under ThreadSanitizer by ./check.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/harvest.h"

#define THREADS 3
#define PER_THREAD 20000
#define OUTSTANDING 8 /* of each thread */
#define DEPTH 16u
#define RINGS 2

struct world;

struct slot {
	struct rbx_fragment fragment;
	struct world *world;
	uint32_t busy; /* atomic */
};

struct world {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[RINGS][DEPTH];
	struct slot slots[THREADS][OUTSTANDING];
	uint64_t completed; /* atomic */
	bool stop; /* atomic */

	pthread_mutex_t device_lock; /* guards the numbers signaled */
	uint32_t signaled[RINGS][DEPTH];
	uint32_t signaled_count[RINGS];
};

static void combine(struct world *world)
{
	struct rbx_chain chain;

	while (rbx_channel_combine(&world->channel, 1, &chain)) {
		uint32_t ring = chain.ring_index;

		pthread_mutex_lock(&world->device_lock);
		world->signaled[ring][world->signaled_count[ring]++] =
			chain.first_number + chain.work_count - 1;
		pthread_mutex_unlock(&world->device_lock);
	}
}

static void unpark(struct world *world)
{
	if (rbx_channel_unpark(&world->channel))
		combine(world);
}

static void done(struct rbx_fragment *fragment)
{
	struct slot *slot = RBX_CONTAINER_OF(fragment, struct slot, fragment);

	RBX_FETCH_ADD(&slot->world->completed, 1);
	RBX_STORE_RELEASE(&slot->busy, 0);
}

/* Takes one chain's completion from the device; false: there is none. */
static bool complete_one(struct world *world, uint32_t ring)
{
	struct rbx_harvest harvest = { 0 };
	struct rbx_node *node;
	uint32_t number;

	pthread_mutex_lock(&world->device_lock);
	if (world->signaled_count[ring] == 0) {
		pthread_mutex_unlock(&world->device_lock);
		return false;
	}
	number = world->signaled[ring][0];
	world->signaled_count[ring]--;
	for (uint32_t i = 0; i < world->signaled_count[ring]; i++)
		world->signaled[ring][i] = world->signaled[ring][i + 1];
	pthread_mutex_unlock(&world->device_lock);

	rbx_channel_complete(&world->channel, ring, number, 0, 2, &harvest);
	rbx_window_give(&world->window, harvest.work_requests, harvest.bytes);
	for (node = &harvest.done_first->node; node;) {
		struct rbx_fragment *fragment = rbx_fragment_of(node);

		node = node->next;
		done(fragment);
	}
	unpark(world);
	return true;
}

static void *poll_device(void *arg)
{
	struct world *world = arg;

	while (!RBX_LOAD_ACQUIRE(&world->stop)) {
		bool found = false;

		for (uint32_t ring = 0; ring < RINGS; ring++)
			found |= complete_one(world, ring);
		if (!found)
			sched_yield();
	}
	return NULL;
}

static void *halt_and_reopen(void *arg)
{
	struct world *world = arg;

	while (!RBX_LOAD_ACQUIRE(&world->stop)) {
		rbx_channel_set_state(&world->channel, RBX_CHANNEL_HALTED);
		while (!rbx_channel_seize(&world->channel))
			sched_yield();
		rbx_channel_set_state(&world->channel, RBX_CHANNEL_OPEN);
		combine(world);
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
	return NULL;
}

struct submitter {
	struct world *world;
	int thread;
};

static void *submit_all(void *arg)
{
	struct submitter *submitter = arg;
	struct world *world = submitter->world;
	uint32_t at = 0;

	for (int i = 0; i < PER_THREAD; i++) {
		struct slot *slot;

		do {
			slot = &world->slots[submitter->thread]
					    [at++ % OUTSTANDING];
			if (at % OUTSTANDING == 0)
				sched_yield();
		} while (RBX_LOAD_ACQUIRE(&slot->busy));
		slot->busy = 1;
		slot->world = world;
		slot->fragment = (struct rbx_fragment){
			.direction = RBX_DIRECTION_WRITE,
			.remote_addr = (uint64_t)i * 512,
			.length_bytes = 512,
			.flags = i % 500 ? 0 : RBX_FRAGMENT_FENCE,
		};
		if (rbx_channel_submit(&world->channel, &slot->fragment,
				       &slot->fragment))
			combine(world);
	}
	return NULL;
}

static void wait_for_all(struct world *world)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	/* Up to a minute; a lost hand-over never ends. */
	for (int i = 0; i < 60000; i++) {
		if (RBX_LOAD_ACQUIRE(&world->completed) ==
		    THREADS * PER_THREAD)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("fragments were left behind");
}

static void run(uint64_t window_bytes, uint32_t window_work_requests,
		bool with_halts)
{
	static struct world world;
	struct submitter submitters[THREADS];
	pthread_t threads[THREADS], poller, halter;

	world = (struct world){ .device_lock = PTHREAD_MUTEX_INITIALIZER };
	world.planner = (struct rbx_planner){
		.merge = true,
		.chain_max = 4,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = 2048,
		.has_any_lkey = true,
	};
	rbx_window_init(&world.window, window_bytes,
			window_work_requests);
	rbx_channel_init(&world.channel, &world.planner, &world.window);
	for (int i = 0; i < RINGS; i++)
		rbx_channel_add_ring(&world.channel, world.works[i], DEPTH);
	pthread_create(&poller, NULL, poll_device, &world);
	if (with_halts)
		pthread_create(&halter, NULL, halt_and_reopen, &world);
	for (int t = 0; t < THREADS; t++) {
		submitters[t] = (struct submitter){ &world, t };
		pthread_create(&threads[t], NULL, submit_all, &submitters[t]);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	wait_for_all(&world);
	RBX_STORE_RELEASE(&world.stop, true);
	pthread_join(poller, NULL);
	if (with_halts)
		pthread_join(halter, NULL);
	assert_int_equal(rbx_window_in_flight_bytes(&world.window), 0);
	assert_true(rbx_channel_idle(&world.channel));
}

/* With one in flight nobody else comes by: each hand-over must succeed. */
static void channel_window_of_one_leaves_nothing_behind(void **state)
{
	(void)state;
	run(0, 1, false);
}

static void channel_narrow_window_leaves_nothing_behind(void **state)
{
	(void)state;
	run(0, 2, false);
}

static void channel_full_rings_leave_nothing_behind(void **state)
{
	(void)state;
	run(0, 0, false);
}

static void channel_halts_leave_nothing_behind(void **state)
{
	(void)state;
	run(1024, 3, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel_window_of_one_leaves_nothing_behind),
		cmocka_unit_test(channel_narrow_window_leaves_nothing_behind),
		cmocka_unit_test(channel_full_rings_leave_nothing_behind),
		cmocka_unit_test(channel_halts_leave_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
