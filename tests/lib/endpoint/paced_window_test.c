/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_window_test.c - memory windows of endpoints that are paced: the opening
 * waits as any operation does, and ends once, whatever becomes of the connection. What a
 * window allows is in endpoint_window_test.c.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/endpoints.h"

#define AT 8192u
#define BYTES 4096u
#define OPENING ((void *)99)

struct world {
	struct endpoints e;
	struct rbx_region *region; /* of b, for windows alone */
	struct rbx_memory_window *window;
	struct rbx_region_key key;
};

static int window_open(struct world *world)
{
	return rbx_memory_window_open(world->e.b.endpoint, world->region,
				      world->e.b.of_device + AT, BYTES,
				      RBX_REGION_WRITE, OPENING, &world->window);
}

/* The window of b's context is full with a message that nobody receives. */
static void world_open_full(struct world *world)
{
	struct rbx_operation send = { .kind = RBX_OPERATION_SEND,
				      .user = (void *)1 };

	memset(world, 0, sizeof(*world));
	endpoint_options.paced = 1;
	context_option = "window_work_requests=1";
	endpoints_open(&world->e);
	context_option = "mode=hybrid";
	if (rbx_region_export(world->e.b.ctx, NULL, world->e.b.of_device,
			      MEMORY_BYTES, RBX_REGION_WINDOWS, &world->region))
		fail_msg("%s", rbx_last_error());
	assert_int_equal(post_one(&world->e.b, send, 0, 64), 0);
}

static bool is_posted_on_b(const struct world *world)
{
	return world->e.b.limits.has_window_invalidate;
}

static void nothing_is_told(const struct side *side)
{
	struct rbx_completion completion;

	assert_int_equal(rbx_queue_poll(side->queue, &completion, 1, 50), 0);
}

static void window_close(struct world *world)
{
	int err;

	while ((err = rbx_memory_window_close(world->window)) == -EBUSY)
		nothing_is_told(&world->e.b);
	assert_int_equal(err, 0);
	world->window = NULL;
}

static void world_close(struct world *world)
{
	assert_int_equal(rbx_endpoint_close(world->e.b.endpoint), 0);
	world->e.b.endpoint = NULL;
	rbx_region_release(world->region);
	endpoints_close(&world->e);
}

/* A message that tells of the key comes when the window is open. */
static void opening_waits_and_what_tells_of_it_comes_later(void **state)
{
	struct rbx_operation operation = { .kind = RBX_OPERATION_SEND,
					   .user = (void *)2 };
	struct world world;
	uint32_t i;

	(void)state;
	world_open_full(&world);
	assert_int_equal(window_open(&world), 0);
	assert_int_equal(post_one(&world.e.b, operation, 64, 64), 0);
	if (is_posted_on_b(&world)) {
		nothing_is_told(&world.e.b);
		assert_int_equal(rbx_memory_window_close(world.window), -EBUSY);
	}
	receive_at(&world.e.a, 0, 64, 11);
	receive_at(&world.e.a, 64, 64, 12);
	expect(&world.e.b, RBX_COMPLETION_POSTED, 1, 0);
	expect(&world.e.b, RBX_COMPLETION_POSTED, 2, 0);
	expect(&world.e.a, RBX_COMPLETION_RECEIVED, 11, 0);
	expect(&world.e.a, RBX_COMPLETION_RECEIVED, 12, 0);
	rbx_memory_window_key(world.window, &world.key);
	operation = (struct rbx_operation){
		.kind = RBX_OPERATION_WRITE,
		.key = world.key.key,
		.address = world.key.address,
		.user = (void *)3,
	};
	memset(world.e.a.of_device, 0x5a, BYTES);
	assert_int_equal(post_one(&world.e.a, operation, 0, BYTES), 0);
	expect(&world.e.a, RBX_COMPLETION_POSTED, 3, 0);
	assert_int_equal(world.e.b.memory[AT + BYTES - 1], 0x5a);
	/* It was told of nowhere, as it went well. */
	assert_int_equal(rbx_memory_window_close(world.window), 0);
	/* Then its place is used for what knows nothing of it. */
	operation = (struct rbx_operation){ .kind = RBX_OPERATION_SEND,
					    .user = (void *)4 };
	for (i = 0; i < 3; i++) {
		receive_at(&world.e.a, 0, 64, 13);
		assert_int_equal(post_one(&world.e.b, operation, 0, 64), 0);
	}
	for (i = 0; i < 3; i++) {
		expect(&world.e.b, RBX_COMPLETION_POSTED, 4, 0);
		expect(&world.e.a, RBX_COMPLETION_RECEIVED, 13, 0);
	}
	nothing_is_told(&world.e.b);
	world_close(&world);
}

static void connection_that_ends_meanwhile_ends_the_opening(void **state)
{
	struct rbx_completion completion;
	struct world world;

	(void)state;
	world_open_full(&world);
	assert_int_equal(window_open(&world), 0);
	rbx_endpoint_disconnect(world.e.b.endpoint);
	completion = next_of(&world.e.b);
	assert_ptr_equal(completion.user, (void *)1);
	assert_int_not_equal(completion.status, 0);
	if (is_posted_on_b(&world)) {
		completion = next_of(&world.e.b);
		assert_ptr_equal(completion.user, OPENING);
		assert_int_equal(completion.status, -EHOSTUNREACH);
	}
	assert_int_equal(rbx_memory_window_close(world.window), 0);
	world_close(&world);
}

static void window_of_an_ended_connection_is_closed(void **state)
{
	struct rbx_completion completion;
	struct world world;

	(void)state;
	world_open_full(&world);
	rbx_endpoint_disconnect(world.e.b.endpoint);
	(void)next_of(&world.e.b);
	assert_int_equal(window_open(&world), 0);
	if (is_posted_on_b(&world)) {
		assert_int_equal(rbx_memory_window_close(world.window), -EBUSY);
		completion = next_of(&world.e.b);
		assert_ptr_equal(completion.user, OPENING);
		assert_int_equal(completion.status, -EHOSTUNREACH);
	}
	window_close(&world);
	world_close(&world);
}

/* The endpoint can be closed: it has no window. */
static void opening_without_a_place_leaves_nothing(void **state)
{
	struct rbx_operation send = { .kind = RBX_OPERATION_SEND };
	struct world world;

	(void)state;
	world_open_full(&world);
	for (uint32_t i = 1; i < rbx_endpoint_send_depth(world.e.b.endpoint); i++)
		assert_int_equal(post_one(&world.e.b, send, 0, 64), 0);
	if (is_posted_on_b(&world))
		assert_int_equal(window_open(&world), -EAGAIN);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening_waits_and_what_tells_of_it_comes_later),
		cmocka_unit_test(connection_that_ends_meanwhile_ends_the_opening),
		cmocka_unit_test(window_of_an_ended_connection_is_closed),
		cmocka_unit_test(opening_without_a_place_leaves_nothing),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
