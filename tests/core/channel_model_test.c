/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_model_test.c - the whole way of random fragments over a model device.
 *
 * The device keeps what is posted on each queue pair in order, carries out any
 * prefix of it against an array that stands for remote memory, and may fail a
 * queue pair at any work request, flushing the rest. Beside it the same
 * requests are applied one by one to a plain array. At the end each fragment
 * has completed exactly once, both arrays and all buffers read into agree, and
 * the window is empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/harvest.h"

#define REMOTE_BYTES (256 * 1024u)
#define SLOT_BYTES (20 * 1024u) /* local memory of one fragment */
#define FRAGMENTS 96
#define RINGS 3
#define DEPTH 64u

struct posted {
	uint32_t number;
	bool signaled;
};

struct model_qp {
	struct posted posted[DEPTH];
	uint32_t count;
	bool broken;
};

struct user {
	struct rbx_fragment fragment;
	bool outstanding;
	bool expect_error;
	uint8_t local[SLOT_BYTES];
	uint8_t expected[SLOT_BYTES];
};

struct world {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_staging staging;
	struct rbx_window window;
	struct rbx_work works[RINGS][DEPTH];
	struct model_qp qps[RINGS];
	struct user users[FRAGMENTS];
	uint8_t remote[REMOTE_BYTES];
	uint8_t plain[REMOTE_BYTES];
	uint8_t busy[REMOTE_BYTES / 512]; /* ranges of outstanding fragments */
	struct rbx_fragment *again;
	uint64_t submitted;
	uint64_t completed;
	bool halted;
	unsigned int seed;
};

static uint8_t staging_memory[RBX_STAGING_BYTES];

static unsigned int draw(struct world *world, unsigned int below)
{
	return (unsigned int)rand_r(&world->seed) % below;
}

static struct world *new_world(unsigned int seed)
{
	struct world *world = calloc(1, sizeof(*world));

	world->seed = seed;
	rbx_staging_init(&world->staging, staging_memory, 1);
	world->planner = (struct rbx_planner){
		.merge = draw(world, 4) != 0,
		.stage_always = draw(world, 3) == 0,
		.chain_max = 1 + draw(world, RBX_CHAIN_MAX),
		.sge_max = 1 + draw(world, RBX_SGE_MAX),
		.message_bytes_max = 4096u << draw(world, 6),
		.has_any_lkey = draw(world, 2) == 0,
		.any_lkey = 2,
		.staging = &world->staging,
	};
	rbx_window_init(&world->window,
			draw(world, 2) ? 1 + draw(world, 100000) : 0,
			draw(world, 2) ? 1 + draw(world, 20) : 0);
	rbx_channel_init(&world->channel, &world->planner, &world->window);
	for (int i = 0; i < RINGS; i++)
		rbx_channel_add_ring(&world->channel, world->works[i], DEPTH);
	return world;
}

static void finish(struct rbx_fragment *fragment);

static void combine(struct world *world)
{
	struct rbx_chain chain;

	while (rbx_channel_combine(&world->channel, 1, &chain)) {
		struct model_qp *qp = &world->qps[chain.ring_index];

		assert_null(chain.refused);
		for (uint32_t i = 0; i < chain.work_count; i++) {
			assert_true(qp->count < DEPTH);
			qp->posted[qp->count++] = (struct posted){
				chain.first_number + i,
				i + 1 == chain.work_count
			};
		}
	}
}

/* Moves the bytes of a work request, as a device would. */
static void carry_out(struct world *world, struct rbx_work *work)
{
	uint8_t *remote = world->remote + work->remote_addr;

	for (uint32_t i = 0; i < work->sge_count; i++) {
		uint8_t *local = (uint8_t *)(uintptr_t)work->sges[i].addr;

		if (work->direction == RBX_DIRECTION_WRITE)
			memcpy(remote, local, work->sges[i].length_bytes);
		else
			memcpy(local, remote, work->sges[i].length_bytes);
		remote += work->sges[i].length_bytes;
	}
	assert_ptr_equal(remote, world->remote + work->remote_addr +
					 work->length_bytes);
}

static void harvested(struct world *world, struct rbx_harvest *harvest)
{
	rbx_window_give(&world->window, harvest->work_requests, harvest->bytes);
	if (harvest->again_first) {
		harvest->again_last->node.next =
			world->again ? &world->again->node : NULL;
		world->again = harvest->again_first;
	}
	for (struct rbx_node *node = harvest->done_first ?
					     &harvest->done_first->node :
					     NULL;
	     node;) {
		struct rbx_fragment *fragment = rbx_fragment_of(node);

		node = node->next;
		world->completed++;
		finish(fragment);
	}
}

static void complete(struct world *world, uint32_t ring, uint32_t number,
		     int status)
{
	struct rbx_harvest harvest = { 0 };

	rbx_channel_complete(&world->channel, ring, number, status, 2,
			     &harvest);
	harvested(world, &harvest);
}

/* Carries out some of what is posted; an unsignaled one is told of only by a
 * later signaled one. */
static void device_step(struct world *world, uint32_t ring)
{
	struct model_qp *qp = &world->qps[ring];
	uint32_t signaled = 0;

	while (signaled < qp->count && !qp->posted[signaled].signaled)
		signaled++;
	if (signaled == qp->count)
		return;
	for (uint32_t i = 0; i <= signaled; i++)
		carry_out(world, rbx_send_ring_slot(&world->channel.rings[ring],
						    qp->posted[i].number));
	complete(world, ring, qp->posted[signaled].number, 0);
	qp->count -= signaled + 1;
	memmove(qp->posted, qp->posted + signaled + 1,
		qp->count * sizeof(qp->posted[0]));
}

/* Fails a queue pair: some are done, one has an error, the rest are flushed.
 * Sometimes the failed one and flushed ones were carried out all the same. */
static void device_break(struct world *world, uint32_t ring)
{
	struct model_qp *qp = &world->qps[ring];
	uint32_t at = qp->count ? draw(world, qp->count) : 0;

	if (qp->count == 0)
		return;
	for (uint32_t i = 0; i < qp->count; i++) {
		if (i < at || draw(world, 2))
			carry_out(world, rbx_send_ring_slot(
						 &world->channel.rings[ring],
						 qp->posted[i].number));
	}
	if (!world->halted) {
		rbx_channel_set_state(&world->channel, RBX_CHANNEL_HALTED);
		world->halted = true;
	}
	complete(world, ring, qp->posted[at].number, -ETIMEDOUT);
	for (uint32_t i = at + 1; i < qp->count; i++)
		complete(world, ring, qp->posted[i].number, -ECANCELED);
	qp->count = 0;
}

static void device_restore(struct world *world)
{
	if (!world->halted)
		return;
	for (uint32_t i = 0; i < RINGS; i++)
		device_break(world, i);
	assert_true(rbx_channel_idle(&world->channel));
	assert_true(rbx_channel_seize(&world->channel));
	assert_null(rbx_channel_send_again(&world->channel, world->again));
	world->again = NULL;
	rbx_channel_set_state(&world->channel, RBX_CHANNEL_OPEN);
	world->halted = false;
	combine(world);
}

static struct world *the_world;

static void mark_busy(struct world *world, const struct rbx_fragment *fragment,
		      uint8_t busy)
{
	memset(world->busy + fragment->remote_addr / 512, busy,
	       fragment->length_bytes / 512);
}

static void finish(struct rbx_fragment *fragment)
{
	struct user *user = RBX_CONTAINER_OF(fragment, struct user, fragment);

	assert_true(user->outstanding);
	user->outstanding = false;
	assert_int_equal(fragment->status, 0);
	if (fragment->direction == RBX_DIRECTION_READ)
		assert_memory_equal(user->local, user->expected,
				    fragment->length_bytes);
	mark_busy(the_world, fragment, 0);
}

static bool range_is_free(struct world *world, uint32_t at, uint32_t length)
{
	for (uint32_t i = at / 512; i < (at + length) / 512; i++) {
		if (world->busy[i])
			return false;
	}
	return true;
}

/* Neighbours are submitted in order, or not: at either end of the list. */
static void put_somewhere(struct world *world, struct rbx_fragment *fragment,
			  struct rbx_fragment **first,
			  struct rbx_fragment **last)
{
	if (!*first) {
		*first = *last = fragment;
	} else if (draw(world, 2)) {
		(*last)->node.next = &fragment->node;
		*last = fragment;
	} else {
		fragment->node.next = &(*first)->node;
		*first = fragment;
	}
}

/* Submits some fragments, often neighbours, none overlapping. */
static void submit_some(struct world *world)
{
	struct rbx_fragment *first = NULL, *last = NULL;
	uint32_t length = 512 * (1 + draw(world, SLOT_BYTES / 512 - 1));
	uint32_t at = 512 * draw(world, REMOTE_BYTES / 512);
	uint32_t direction = draw(world, 2);

	for (int i = 0; i < FRAGMENTS && draw(world, 8); i++) {
		struct user *user = &world->users[i];

		if (user->outstanding || at + length > REMOTE_BYTES ||
		    !range_is_free(world, at, length))
			continue;
		user->fragment = (struct rbx_fragment){
			.direction = (uint8_t)direction,
			.remote_addr = at,
			.local_addr = (uintptr_t)user->local,
			.length_bytes = length,
			.flags = draw(world, 40) ? 0 : RBX_FRAGMENT_FENCE,
		};
		if (draw(world, 5) == 0)
			user->fragment.flags |= RBX_FRAGMENT_URGENT;
		user->outstanding = true;
		mark_busy(world, &user->fragment, 1);
		if (direction == RBX_DIRECTION_WRITE) {
			memset(user->local, (int)draw(world, 256), length);
			memcpy(world->plain + at, user->local, length);
		} else {
			memcpy(user->expected, world->plain + at, length);
		}
		put_somewhere(world, &user->fragment, &first, &last);
		world->submitted++;
		at += length + (draw(world, 4) ? 0 : 512);
	}
	if (first && rbx_channel_submit(&world->channel, first, last))
		combine(world);
}

static void settle(struct world *world)
{
	for (int i = 0; i < 10000 && world->completed < world->submitted; i++) {
		device_restore(world);
		for (uint32_t ring = 0; ring < RINGS; ring++)
			device_step(world, ring);
		if (rbx_channel_unpark(&world->channel))
			combine(world);
	}
	device_restore(world);
}

static void run(unsigned int seed, bool with_faults)
{
	struct world *world = new_world(seed);

	the_world = world;
	for (int step = 0; step < 400; step++) {
		unsigned int what = draw(world, 10);

		if (what < 5)
			submit_some(world);
		else if (what < 9 || !with_faults)
			device_step(world, draw(world, RINGS));
		else if (draw(world, 8) == 0)
			device_break(world, draw(world, RINGS));
		else
			device_restore(world);
		if (rbx_channel_unpark(&world->channel))
			combine(world);
	}
	settle(world);
	assert_int_equal(world->completed, world->submitted);
	assert_memory_equal(world->remote, world->plain, REMOTE_BYTES);
	assert_int_equal(rbx_window_in_flight_bytes(&world->window), 0);
	assert_int_equal(rbx_window_in_flight_work_requests(&world->window), 0);
	for (unsigned int i = 0; i < RBX_STAGING_WORDS; i++)
		assert_int_equal(world->staging.taken[i], 0);
	free(world);
}

static void channel_random_fragments_equal_plain_array(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 300; seed++)
		run(seed, false);
}

static void channel_random_faults_lose_and_double_nothing(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 300; seed++)
		run(seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel_random_fragments_equal_plain_array),
		cmocka_unit_test(channel_random_faults_lose_and_double_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
