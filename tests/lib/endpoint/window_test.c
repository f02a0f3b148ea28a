/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window_test.c - parts of a region for the other side of one endpoint: what a
 * window allows, and that its end is one, whoever brings it about.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/endpoints.h"

#define AT 8192u
#define BYTES 4096u

struct world {
	struct endpoints e;
	struct rbx_region *region; /* of b, for windows alone */
	struct rbx_memory_window *window;
	struct rbx_region_key key;
};

static void world_open(struct world *world, uint32_t rights)
{
	memset(world, 0, sizeof(*world));
	endpoints_open(&world->e);
	if (rbx_region_export(world->e.b.ctx, NULL, world->e.b.of_device,
			      MEMORY_BYTES, RBX_REGION_WINDOWS, &world->region))
		fail_msg("%s", rbx_last_error());
	if (rbx_memory_window_open(world->e.b.endpoint, world->region,
				   world->e.b.of_device + AT, BYTES, rights, NULL,
				   &world->window))
		fail_msg("%s", rbx_last_error());
	rbx_memory_window_key(world->window, &world->key);
	assert_int_equal(world->key.length_bytes, BYTES);
}

static void window_close(struct world *world)
{
	struct rbx_completion completion;
	int err;

	while ((err = rbx_memory_window_close(world->window)) == -EBUSY)
		(void)rbx_queue_poll(world->e.b.queue, &completion, 1, 10);
	assert_int_equal(err, 0);
	world->window = NULL;
}

static void world_close(struct world *world)
{
	if (world->window) {
		assert_int_equal(rbx_endpoint_close(world->e.b.endpoint), -EBUSY);
		window_close(world);
	}
	rbx_endpoint_close(world->e.b.endpoint);
	world->e.b.endpoint = NULL;
	rbx_region_release(world->region);
	endpoints_close(&world->e);
}

/* Of a, through the window; its status. */
static int through(struct world *world, enum rbx_operation_kind kind,
		   uint64_t offset, uint32_t length_bytes)
{
	const struct rbx_operation operation = {
		.kind = kind,
		.key = world->key.key,
		.address = world->key.address + offset,
		.user = (void *)7,
	};
	struct rbx_completion completion;

	assert_int_equal(post_one(&world->e.a, operation, 0, length_bytes), 0);
	completion = next_of(&world->e.a);
	assert_ptr_equal(completion.user, (void *)7);
	return completion.status;
}

static void peer_reaches_the_window_with_its_rights(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, RBX_REGION_READ | RBX_REGION_WRITE);
	memset(world.e.a.of_device, 0x5a, BYTES);
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, BYTES), 0);
	assert_int_equal(world.e.b.memory[AT], 0x5a);
	assert_int_equal(world.e.b.memory[AT + BYTES - 1], 0x5a);
	assert_int_equal(world.e.b.memory[AT + BYTES], 0);
	memset(world.e.b.of_device + AT, 0x77, 64);
	assert_int_equal(through(&world, RBX_OPERATION_READ, 0, 64), 0);
	assert_int_equal(world.e.a.memory[63], 0x77);
	/* One byte behind it, and the connection is over. */
	if (!is_soft_roce())
		assert_int_equal(through(&world, RBX_OPERATION_WRITE, 1, BYTES),
				 -EACCES);
	world_close(&world);
}

static void right_that_was_not_given_is_refused(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, RBX_REGION_READ);
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, 8), -EACCES);
	assert_int_equal(world.e.b.memory[AT], 0);
	world_close(&world);
}

static void peer_ends_it_before_its_message_is_there(void **state)
{
	struct rbx_operation last = { .kind = RBX_OPERATION_SEND,
				      .flags = RBX_OPERATION_INVALIDATE |
					       RBX_OPERATION_SILENT };
	struct rbx_completion completion;
	struct world world;

	(void)state;
	world_open(&world, RBX_REGION_WRITE);
	if (!world.e.b.limits.has_window_invalidate) {
		world_close(&world);
		return;
	}
	window_close(&world);
	assert_int_equal(rbx_memory_window_open(
				 world.e.b.endpoint, world.region,
				 world.e.b.of_device + AT, BYTES,
				 RBX_REGION_WRITE | RBX_REGION_INVALIDATE, NULL,
				 &world.window), 0);
	rbx_memory_window_key(world.window, &world.key);
	receive_at(&world.e.b, 0, 64, 1);
	receive_at(&world.e.b, 64, 64, 2);
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, 8), 0);
	last.invalidate_key = world.key.key;
	assert_int_equal(post_one(&world.e.a, last, 0, 8), 0);
	completion = expect(&world.e.b, RBX_COMPLETION_RECEIVED, 1, 0);
	if (!is_soft_roce()) {
		assert_true(completion.has_invalidated);
		assert_int_equal(completion.invalidated_key, world.key.key);
	}
	memset(world.e.b.of_device + AT, 0, 8);
	memset(world.e.a.of_device, 0x33, 8);
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, 8), -EACCES);
	assert_int_equal(world.e.b.memory[AT], 0);
	world_close(&world);
}

static void closed_window_is_reached_no_more(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, RBX_REGION_WRITE);
	memset(world.e.a.of_device, 0x44, 8);
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, 8), 0);
	window_close(&world);
	memset(world.e.b.of_device + AT, 0, 8);
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, 8), -EACCES);
	assert_int_equal(world.e.b.memory[AT], 0);
	world_close(&world);
}

/* Another connection of the same domain, which has learned the key. */
static void key_is_of_no_use_on_another_endpoint(void **state)
{
	struct rbx_endpoint *first[2];
	struct meeting meeting;
	struct world world;
	int status;

	(void)state;
	world_open(&world, RBX_REGION_WRITE);
	if (!world.e.b.limits.has_window_invalidate) {
		world_close(&world);
		return;
	}
	first[0] = world.e.a.endpoint;
	first[1] = world.e.b.endpoint;
	meeting = (struct meeting){
		.endpoints = &world.e,
		.a_options = endpoint_options,
		.b_options = &endpoint_options,
	};
	assert_int_equal(meet(&meeting), 0);
	memset(world.e.a.of_device, 0x66, 8);
	status = through(&world, RBX_OPERATION_WRITE, 0, 8);
	assert_int_equal(status, -EACCES);
	assert_int_equal(world.e.b.memory[AT], 0);
	rbx_endpoint_close(world.e.a.endpoint);
	rbx_endpoint_close(world.e.b.endpoint);
	world.e.a.endpoint = first[0];
	world.e.b.endpoint = first[1];
	assert_int_equal(through(&world, RBX_OPERATION_WRITE, 0, 8), 0);
	assert_int_equal(world.e.b.memory[AT], 0x66);
	world_close(&world);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct rbx_memory_window *none;
	struct world world;

	(void)state;
	world_open(&world, RBX_REGION_READ);
	/* The region of all memory was not exported for windows. */
	assert_int_equal(rbx_memory_window_open(world.e.b.endpoint,
						world.e.b.region,
						world.e.b.of_device, 64,
						RBX_REGION_READ, NULL, &none),
			 -EINVAL);
	assert_int_equal(rbx_memory_window_open(
				 world.e.b.endpoint, world.region,
				 world.e.b.of_device + MEMORY_BYTES - 63, 64,
				 RBX_REGION_READ, NULL, &none), -EINVAL);
	assert_int_equal(rbx_memory_window_open(
				 world.e.b.endpoint, world.region,
				 world.e.b.of_device, 64, RBX_REGION_WINDOWS, NULL,
				 &none), -EINVAL);
	assert_int_equal(rbx_memory_window_open(world.e.b.endpoint, world.region,
						world.e.b.of_device, 0, 0, NULL,
						&none), -EINVAL);
	world_close(&world);
}

/* Also through a channel. */
static int pace(void **state)
{
	(void)state;
	endpoint_options.paced = 1;
	return 0;
}

static int pace_not(void **state)
{
	(void)state;
	endpoint_options.paced = 0;
	return 0;
}

#define both_ways(test)          \
	cmocka_unit_test(test),  \
	cmocka_unit_test_setup_teardown(test, pace, pace_not)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both_ways(peer_reaches_the_window_with_its_rights),
		both_ways(right_that_was_not_given_is_refused),
		both_ways(peer_ends_it_before_its_message_is_there),
		both_ways(closed_window_is_reached_no_more),
		both_ways(key_is_of_no_use_on_another_endpoint),
		both_ways(what_does_not_fit_is_refused),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
