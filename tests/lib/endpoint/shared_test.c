/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_test.c - endpoints that take from one list of receives: completions
 * say whose a message is, and what the receive was for.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/endpoints.h"

#define ENDPOINTS 4
#define DEPTH 8
#define BYTES 256u

struct world {
	struct endpoints e;
	struct rbx_shared_receives *shared; /* of b */
	struct rbx_endpoint *a[ENDPOINTS], *b[ENDPOINTS];
};

static struct rbx_shared_receives_options options_of(struct world *world)
{
	return (struct rbx_shared_receives_options){
		.size_bytes = sizeof(struct rbx_shared_receives_options),
		.queue = world->e.b.queue,
		.depth = DEPTH,
		.user = world,
	};
}

static void world_open(struct world *world)
{
	struct rbx_endpoint_options with_shared = endpoint_options;
	struct rbx_shared_receives_options options;

	sides_open(&world->e);
	options = options_of(world);
	assert_int_equal(rbx_shared_receives_create(world->e.b.ctx, &options,
						    &world->shared), 0);
	assert_ptr_equal(rbx_shared_receives_user(world->shared), world);
	with_shared.receives = world->shared;
	with_shared.tells_end = 1;
	for (int i = 0; i < ENDPOINTS; i++) {
		struct meeting meeting = {
			.endpoints = &world->e,
			.a_options = endpoint_options,
			.b_options = &with_shared,
		};

		assert_int_equal(meet(&meeting), 0);
		world->a[i] = world->e.a.endpoint;
		world->b[i] = world->e.b.endpoint;
	}
	world->e.a.endpoint = world->e.b.endpoint = NULL;
}

static void world_close(struct world *world)
{
	for (int i = 0; i < ENDPOINTS; i++) {
		rbx_endpoint_close(world->a[i]);
		rbx_endpoint_close(world->b[i]);
	}
	assert_int_equal(rbx_shared_receives_destroy(world->shared), 0);
	sides_close(&world->e);
}

static int post(struct world *world, uintptr_t number)
{
	struct rbx_segment segment = segment_of(&world->e.b, number * BYTES, BYTES);
	const struct rbx_receive receive = { &segment, 1, (void *)number };

	return rbx_shared_receives_post(world->shared, &receive, 1);
}

/* A message that is all `number`, with it as its immediate. */
static void send_one(struct world *world, int which, uint8_t number)
{
	struct rbx_segment segment = segment_of(&world->e.a, number * BYTES, BYTES);
	const struct rbx_operation operation = {
		.kind = RBX_OPERATION_SEND,
		.flags = RBX_OPERATION_IMMEDIATE | RBX_OPERATION_SILENT,
		.segments = &segment,
		.segments_count = 1,
		.immediate = number,
	};

	memset(world->e.a.of_device + number * BYTES, number, BYTES);
	assert_int_equal(rbx_endpoint_post(world->a[which], &operation, 1), 0);
}

static uint8_t expect_message(struct world *world, int *which, uintptr_t *receive)
{
	struct rbx_completion completion = next_of(&world->e.b);
	const uint8_t *bytes;

	assert_int_equal(completion.status, 0);
	assert_int_equal(completion.kind, RBX_COMPLETION_RECEIVED);
	assert_int_equal(completion.length_bytes, BYTES);
	*receive = (uintptr_t)completion.user;
	bytes = world->e.b.memory + *receive * BYTES;
	for (uint32_t i = 0; i < BYTES; i++)
		assert_int_equal(bytes[i], completion.immediate);
	for (*which = 0; world->b[*which] != completion.endpoint;)
		assert_true(++*which < ENDPOINTS);
	return (uint8_t)completion.immediate;
}

static void messages_of_each_endpoint_name_it(void **state)
{
	uintptr_t receive;
	struct world world;
	int which;

	(void)state;
	world_open(&world);
	for (uintptr_t i = 1; i <= DEPTH; i++)
		assert_int_equal(post(&world, i), 0);
	assert_int_equal(post(&world, 20), -EAGAIN);
	for (uint8_t i = 1; i <= 100; i++) {
		send_one(&world, i % ENDPOINTS, i);
		assert_int_equal(expect_message(&world, &which, &receive), i);
		assert_int_equal(which, i % ENDPOINTS);
		assert_int_equal(post(&world, receive), 0);
	}
	world_close(&world);
}

static void end_of_one_is_told_and_the_others_go_on(void **state)
{
	struct rbx_endpoint_event event;
	uintptr_t receive;
	struct world world;
	int which;

	(void)state;
	world_open(&world);
	assert_int_equal(rbx_shared_receives_destroy(world.shared), -EBUSY);
	assert_int_equal(post(&world, 1), 0);
	rbx_endpoint_close(world.a[1]);
	world.a[1] = NULL;
	assert_int_equal(rbx_endpoint_next_event(world.e.b.ctx, &event, 20000), 0);
	assert_int_equal(event.kind, RBX_ENDPOINT_ENDED);
	assert_ptr_equal(event.endpoint, world.b[1]);
	assert_null(event.receives);
	rbx_endpoint_close(world.b[1]);
	world.b[1] = NULL;
	send_one(&world, 2, 77);
	assert_int_equal(expect_message(&world, &which, &receive), 77);
	assert_int_equal(which, 2);
	assert_int_equal(receive, 1);
	world_close(&world);
}

static void low_receives_are_told(void **state)
{
	struct rbx_endpoint_event event;
	uintptr_t receive;
	struct world world;
	int which;

	(void)state;
	world_open(&world);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_int_equal(post(&world, i), 0);
	assert_int_equal(rbx_shared_receives_tell_low(world.shared, DEPTH + 1),
			 -EINVAL);
	assert_int_equal(rbx_shared_receives_tell_low(world.shared, 3), 0);
	assert_int_equal(rbx_endpoint_next_event(world.e.b.ctx, &event, 0),
			 -EAGAIN);
	send_one(&world, 0, 1);
	(void)expect_message(&world, &which, &receive);
	assert_int_equal(rbx_endpoint_next_event(world.e.b.ctx, &event, 20000), 0);
	assert_int_equal(event.kind, RBX_ENDPOINT_RECEIVES_LOW);
	assert_ptr_equal(event.receives, world.shared);
	assert_null(event.endpoint);
	world_close(&world);
}

/* The second of three names memory of another domain, which a device may see. */
static void receives_that_were_not_taken_leave_their_slots(void **state)
{
	struct rbx_protection_domain *domain;
	struct rbx_segment segments[3];
	struct rbx_receive receives[3];
	struct rbx_region *region;
	struct world world;
	uintptr_t i = 1;

	(void)state;
	world_open(&world);
	assert_int_equal(rbx_protection_domain_create(world.e.b.ctx, &domain), 0);
	assert_int_equal(rbx_region_export(world.e.b.ctx, domain,
					   world.e.b.of_device, MEMORY_BYTES, 0,
					   &region), 0);
	for (int j = 0; j < 3; j++) {
		segments[j] = segment_of(&world.e.b, 0, BYTES);
		receives[j] = (struct rbx_receive){ &segments[j], 1, NULL };
	}
	segments[1].region = region;
	if (rbx_shared_receives_post(world.shared, receives, 3) == -EIO) {
		while (!post(&world, i))
			i++;
		assert_int_equal(i, DEPTH);
	}
	rbx_region_release(region);
	assert_int_equal(rbx_protection_domain_destroy(domain), 0);
	world_close(&world);
}

/* In a queue without room. */
static void those_that_were_not_made_are_in_no_domain(void **state)
{
	struct rbx_shared_receives_options options;
	struct rbx_protection_domain *domain;
	struct rbx_shared_receives *other;
	struct world world;

	(void)state;
	world_open(&world);
	assert_int_equal(rbx_protection_domain_create(world.e.b.ctx, &domain), 0);
	options = options_of(&world);
	options.domain = domain;
	options.depth = 1024;
	if (world.e.b.limits.shared_depth_max >= 1024)
		assert_int_equal(rbx_shared_receives_create(world.e.b.ctx,
							    &options, &other),
				 -ENOSPC);
	assert_int_equal(rbx_protection_domain_destroy(domain), 0);
	world_close(&world);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct rbx_shared_receives_options options;
	struct rbx_shared_receives *other;
	struct rbx_segment segments[2];
	struct rbx_receive receive = { segments, 2, NULL };
	struct world world;

	(void)state;
	world_open(&world);
	segments[0] = segments[1] = segment_of(&world.e.b, 0, BYTES);
	assert_int_equal(rbx_endpoint_receive(world.b[0], &receive, 1), -EINVAL);
	assert_int_equal(rbx_shared_receives_post(world.shared, &receive, 1),
			 -EINVAL);
	/* There is but one: what would be behind it is not looked at. */
	assert_int_equal(rbx_shared_receives_post(world.shared, &receive, DEPTH + 1),
			 -EAGAIN);
	options = options_of(&world);
	options.queue = world.e.a.queue; /* of another context */
	assert_int_equal(rbx_shared_receives_create(world.e.b.ctx, &options,
						    &other), -EINVAL);
	options = options_of(&world);
	options.depth = world.e.b.limits.shared_depth_max + 1;
	assert_int_equal(rbx_shared_receives_create(world.e.b.ctx, &options,
						    &other), -EINVAL);
	options.depth = 1024; /* the queue has no such room any more */
	if (world.e.b.limits.shared_depth_max >= 1024)
		assert_int_equal(rbx_shared_receives_create(world.e.b.ctx,
							    &options, &other),
				 -ENOSPC);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_each_endpoint_name_it),
		cmocka_unit_test(end_of_one_is_told_and_the_others_go_on),
		cmocka_unit_test(low_receives_are_told),
		cmocka_unit_test(receives_that_were_not_taken_leave_their_slots),
		cmocka_unit_test(those_that_were_not_made_are_in_no_domain),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
