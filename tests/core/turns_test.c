/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * turns_test.c - several channels on one window: shares in bytes, and nobody
 * left behind.
 *
 * Each channel keeps a number of fragments of one size waiting or in flight, over
 * a device that serves chains in the order posted. First in one thread, where
 * each byte is accounted for; then with a thread that submits for each channel,
 * two that complete, and a window so narrow that everybody waits all the time.
 * A hand-over that is lost would leave fragments behind for ever. Run under
 * ThreadSanitizer by ./check.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/drive.h"
#include "core/random.h"

#define CHANNELS 8u
#define OUTSTANDING_MAX 256u
#define DEPTH 256u
#define POLLERS 2u

struct user;

struct slot {
	struct rbx_fragment fragment;
	struct user *user;
	uint32_t busy; /* atomic */
	uint64_t total_bytes; /* of all, when it was submitted */
};

struct posted {
	uint32_t channel;
	uint32_t number;
};

struct world {
	struct rbx_window window;
	struct rbx_planner planner;
	uint64_t total_bytes; /* completed */
	uint32_t pollers; /* 1: chains complete in the order posted */
	bool stop; /* atomic */

	pthread_mutex_t device_lock; /* guards the chains posted */
	struct posted posted[POLLERS][CHANNELS * DEPTH];
	uint32_t posted_count[POLLERS];
	uint32_t taken_count[POLLERS];

	struct user {
		struct world *world;
		struct rbx_channel channel;
		struct rbx_work works[DEPTH];
		uint32_t length_bytes;
		uint32_t outstanding;
		uint64_t served_bytes;
		uint64_t wait_bytes_max; /* completed by all while one waited */
		uint64_t completed; /* atomic */
		struct slot slots[OUTSTANDING_MAX];
	} users[CHANNELS];
};

static void combine(struct world *world, uint32_t index)
{
	uint32_t poller = index % world->pollers;
	struct rbx_chain chain;

	while (rbx_channel_combine(&world->users[index].channel, 1, &chain)) {
		pthread_mutex_lock(&world->device_lock);
		world->posted[poller][world->posted_count[poller]++ %
				      (CHANNELS * DEPTH)] = (struct posted){
			index, chain.first_number + chain.work_count - 1
		};
		pthread_mutex_unlock(&world->device_lock);
	}
}

static uint32_t slots_used(void *world)
{
	(void)world;
	return CHANNELS;
}

static struct rbx_channel *channel_at(void *world, uint32_t slot)
{
	return &((struct world *)world)->users[slot].channel;
}

static void combine_channel(struct rbx_channel *channel)
{
	struct user *user = RBX_CONTAINER_OF(channel, struct user, channel);

	combine(user->world, (uint32_t)(user - user->world->users));
}

static void make_round(struct world *world)
{
	static const struct rbx_drive_channels channels = {
		.slots_used = slots_used,
		.at = channel_at,
		.combine = combine_channel,
	};

	while (rbx_drive_unpark(&channels, world, &world->window.turns))
		;
}

static void submit(struct slot *slot)
{
	struct user *user = slot->user;
	struct world *world = user->world;

	slot->busy = 1;
	slot->total_bytes = world->total_bytes;
	slot->fragment = (struct rbx_fragment){
		.direction = RBX_DIRECTION_WRITE,
		.flags = RBX_FRAGMENT_ALONE,
		.length_bytes = user->length_bytes,
	};
	if (rbx_channel_submit(&user->channel, &slot->fragment,
			       &slot->fragment))
		combine(world, (uint32_t)(user - world->users));
}

static void note_done(struct slot *slot)
{
	struct user *user = slot->user;
	uint64_t wait_bytes = user->world->total_bytes - slot->total_bytes;

	user->world->total_bytes += user->length_bytes;
	user->served_bytes += user->length_bytes;
	user->wait_bytes_max = RBX_MAX(user->wait_bytes_max, wait_bytes);
	submit(slot);
}

static void note_freed(struct slot *slot)
{
	RBX_FETCH_ADD(&slot->user->completed, 1);
	RBX_STORE_RELEASE(&slot->busy, 0);
}

/* Completes the oldest chain of a poller; false: there is none. */
static bool complete_one(struct world *world, uint32_t poller,
			 void (*note)(struct slot *slot))
{
	struct rbx_harvest harvest = { 0 };
	struct posted posted;
	bool found;

	pthread_mutex_lock(&world->device_lock);
	found = world->taken_count[poller] != world->posted_count[poller];
	posted = world->posted[poller][world->taken_count[poller] %
				       (CHANNELS * DEPTH)];
	world->taken_count[poller] += found;
	pthread_mutex_unlock(&world->device_lock);
	if (!found)
		return false;
	rbx_channel_complete(&world->users[posted.channel].channel, 0,
			     posted.number, 0, 2, &harvest);
	rbx_harvest_settle(&harvest, &world->window, 2);
	for (struct rbx_node *node = &harvest.done_first->node; node;) {
		struct rbx_fragment *fragment = rbx_fragment_of(node);

		node = node->next;
		note(RBX_CONTAINER_OF(fragment, struct slot, fragment));
	}
	make_round(world);
	return true;
}

static struct world *new_world(uint64_t window_bytes,
			       uint32_t window_work_requests)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	pthread_mutex_init(&world->device_lock, NULL);
	world->pollers = 1;
	world->planner = (struct rbx_planner){
		.chain_max = 4,
		.sge_max = 1,
		.message_bytes_max = RBX_FRAGMENT_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&world->window, window_bytes, window_work_requests);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		struct user *user = &world->users[i];

		user->world = world;
		rbx_channel_init(&user->channel, &world->planner,
				 &world->window);
		user->channel.slot = i;
		rbx_channel_add_ring(&user->channel, user->works, DEPTH);
		for (uint32_t k = 0; k < OUTSTANDING_MAX; k++)
			user->slots[k].user = user;
	}
	return world;
}

static void set_load(struct world *world, uint32_t index, uint32_t length_bytes,
		     uint32_t outstanding)
{
	world->users[index].length_bytes = length_bytes;
	world->users[index].outstanding = outstanding;
}

/* Until so much has been served. */
static void run(struct world *world, uint64_t bytes)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		for (uint32_t k = 0; k < world->users[i].outstanding; k++)
			submit(&world->users[i].slots[k]);
	}
	while (world->total_bytes < bytes)
		assert_true(complete_one(world, 0, note_done));
}

/* ---- Shares ----------------------------------------------------------------*/

static void heavy_and_light_with_backlog_get_the_same_bytes(void **state)
{
	struct world *world = new_world(1 << 20, 0);

	(void)state;
	set_load(world, 0, 131072, 256);
	for (uint32_t i = 1; i < CHANNELS; i++)
		set_load(world, i, 4096, 256);
	run(world, 1ull << 30);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		uint64_t share = world->users[i].served_bytes * CHANNELS * 100 /
				 world->total_bytes;

		assert_in_range(share, 95, 105);
	}
	free(world);
}

static void light_ones_get_all_they_ask_for_beside_a_heavy_one(void **state)
{
	struct world *world = new_world(1 << 20, 0);
	struct user *heavy = &world->users[0];

	(void)state;
	set_load(world, 0, 131072, 256);
	for (uint32_t i = 1; i < CHANNELS; i++)
		set_load(world, i, 4096, 4);
	run(world, 1ull << 30);
	for (uint32_t i = 1; i < CHANNELS; i++) {
		/* What is in flight before it, and one turn of each other. */
		assert_true(world->users[i].wait_bytes_max <=
			    (1 << 20) + 2 * RBX_TURN_BYTES + CHANNELS * 16384);
		assert_true(world->users[i].served_bytes * 10 >=
			    world->users[1].served_bytes * 9);
	}
	/* And it has all that they leave. */
	assert_true(heavy->served_bytes * 100 > world->total_bytes * 80);
	free(world);
}

static void large_requests_are_not_starved_by_small_ones(void **state)
{
	/* No room for a large one while any small one is in flight. */
	struct world *world = new_world(131072, 0);

	(void)state;
	set_load(world, 0, 131072, 8);
	for (uint32_t i = 1; i < CHANNELS; i++)
		set_load(world, i, 4096, 256);
	run(world, 256 << 20);
	assert_true(world->users[0].served_bytes * CHANNELS * 100 >=
		    world->total_bytes * 90);
	free(world);
}

/* They fill the window as their rings allow, and wait for their own completions. */
static void large_requests_are_not_starved_by_full_rings(void **state)
{
	const uint32_t depth = 8;
	struct world *world = new_world((CHANNELS - 1) * depth * 4096, 0);

	(void)state;
	set_load(world, 0, 131072, 8);
	for (uint32_t i = 1; i < CHANNELS; i++) {
		rbx_channel_set_depth(&world->users[i].channel, 0, depth);
		set_load(world, i, 4096, 256);
	}
	run(world, 256 << 20);
	assert_true(world->users[0].served_bytes * CHANNELS * 100 >=
		    world->total_bytes * 90);
	free(world);
}

/* Nor does one whose ring is full stand in the way of others, or wait for a turn. */
static void full_ring_waits_for_its_own_and_nobody_for_it(void **state)
{
	struct world *world = new_world(2 << 20, 0);
	struct rbx_turns *turns = &world->window.turns;
	struct rbx_channel *full = &world->users[0].channel;

	(void)state;
	rbx_channel_set_depth(full, 0, 2);
	set_load(world, 0, 4096, 256);
	set_load(world, 1, 4096, 256);
	run(world, 0);
	assert_int_equal(rbx_channel_parked(full), RBX_PARKED_OTHER);
	assert_int_equal(rbx_send_ring_used(&full->rings[0]), 2);
	assert_true(rbx_window_in_flight_bytes(&world->window) > 200 * 4096);
	/* The other one takes all that there is to take. */
	assert_int_equal(turns->waiting_count, 0);
	assert_int_equal(turns->parked_count, 1);
	while (world->total_bytes < 64 << 20)
		assert_true(complete_one(world, 0, note_done));
	/* Each has gone on with its own. */
	assert_true(world->users[0].served_bytes != 0);
	assert_true(world->users[1].served_bytes > world->users[0].served_bytes);
	free(world);
}

static void random_backlogs_never_drift_apart(void **state)
{
	struct rbx_random random;

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct world *world;

		rbx_random_seed(&random, seed);
		world = new_world(65536u << rbx_random_below(&random, 5),
				  rbx_random_below(&random, 2) ? 24 : 0);
		for (uint32_t i = 0; i < CHANNELS; i++)
			set_load(world, i,
				 4096u << rbx_random_below(&random, 6), 256);
		run(world, 256 << 20);
		for (uint32_t i = 1; i < CHANNELS; i++) {
			int64_t apart = (int64_t)world->users[i].served_bytes -
					(int64_t)world->users[0].served_bytes;

			/* Who came first found nobody waiting. */
			assert_true(llabs(apart) <=
				    (int64_t)world->window.in_flight_bytes_peak +
					    2 * RBX_TURN_BYTES);
		}
		free(world);
	}
}

static void one_alone_knows_no_turns(void **state)
{
	struct world *world = new_world(8 << 20, 0);

	(void)state;
	set_load(world, 3, 65536, 256);
	run(world, 256 << 20);
	assert_int_equal(world->users[3].served_bytes, world->total_bytes);
	assert_int_equal(world->window.in_flight_bytes_peak, 8 << 20);
	free(world);
}

/* ---- Threads ---------------------------------------------------------------*/

#define PER_THREAD 6000u
#define SLOTS 8u /* outstanding of a thread */

static void *submit_all(void *arg)
{
	struct user *user = arg;
	uint32_t at = 0;

	for (uint32_t i = 0; i < PER_THREAD; i++) {
		while (RBX_LOAD_ACQUIRE(&user->slots[at % SLOTS].busy)) {
			if (++at % SLOTS == 0)
				sched_yield();
		}
		submit(&user->slots[at % SLOTS]);
	}
	return NULL;
}

struct polling {
	struct world *world;
	uint32_t poller;
};

static void *poll_device(void *arg)
{
	struct polling *polling = arg;
	struct world *world = polling->world;

	while (!RBX_LOAD_ACQUIRE(&world->stop)) {
		if (!complete_one(world, polling->poller, note_freed))
			sched_yield();
	}
	return NULL;
}

static void wait_for(struct user *user)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	/* Up to a minute; a lost hand-over never ends. */
	for (int i = 0; i < 60000; i++) {
		if (RBX_LOAD_ACQUIRE(&user->completed) == PER_THREAD)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("fragments were left behind");
}

static void storm(uint64_t window_bytes, uint32_t window_work_requests)
{
	struct world *world = new_world(window_bytes, window_work_requests);
	pthread_t submitters[CHANNELS], pollers[POLLERS];
	struct polling pollings[POLLERS];

	world->pollers = POLLERS;
	for (uint32_t i = 0; i < POLLERS; i++) {
		pollings[i] = (struct polling){ world, i };
		pthread_create(&pollers[i], NULL, poll_device, &pollings[i]);
	}
	for (uint32_t i = 0; i < CHANNELS; i++) {
		set_load(world, i, 512u << i % 4, 0);
		pthread_create(&submitters[i], NULL, submit_all,
			       &world->users[i]);
	}
	for (uint32_t i = 0; i < CHANNELS; i++)
		pthread_join(submitters[i], NULL);
	for (uint32_t i = 0; i < CHANNELS; i++)
		wait_for(&world->users[i]);
	RBX_STORE_RELEASE(&world->stop, true);
	for (uint32_t i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	assert_int_equal(rbx_window_in_flight_bytes(&world->window), 0);
	assert_int_equal(world->window.turns.waiting_count, 0);
	assert_int_equal(world->window.turns.parked_count, 0);
	assert_int_equal(world->window.turns.wanted_count, 0);
	free(world);
}

static void storm_with_one_in_flight_leaves_nobody_behind(void **state)
{
	(void)state;
	storm(0, 1);
}

static void storm_with_few_bytes_leaves_nobody_behind(void **state)
{
	(void)state;
	storm(8192, 0);
}

static void storm_with_few_in_flight_leaves_nobody_behind(void **state)
{
	(void)state;
	storm(0, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heavy_and_light_with_backlog_get_the_same_bytes),
		cmocka_unit_test(
			light_ones_get_all_they_ask_for_beside_a_heavy_one),
		cmocka_unit_test(large_requests_are_not_starved_by_small_ones),
		cmocka_unit_test(large_requests_are_not_starved_by_full_rings),
		cmocka_unit_test(full_ring_waits_for_its_own_and_nobody_for_it),
		cmocka_unit_test(random_backlogs_never_drift_apart),
		cmocka_unit_test(one_alone_knows_no_turns),
		cmocka_unit_test(storm_with_one_in_flight_leaves_nobody_behind),
		cmocka_unit_test(storm_with_few_bytes_leaves_nobody_behind),
		cmocka_unit_test(storm_with_few_in_flight_leaves_nobody_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
