/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * evictions_test.c - a server that wants much back says so to a client only as fast as
 * that hears it: whose receives are taken by what it has not looked at loses its
 * connection.
 */
#include <unistd.h>

#include "core/limits.h"
#include "lib/clock.h"
#include "server/state.h"
#include "tests/server/named_volume.h"
#include "tests/server/raw_client.h"

#define SLABS (3 * RBX_EVICTIONS_MAX)

/* Returns the epoch of what is heard. */
static uint64_t hear(struct raw_client *raw, enum rbx_wire_type type)
{
	struct rbx_wire_message message;

	assert_true(raw_client_hear(raw, &message));
	assert_int_equal(message.type, type);
	return message.epoch;
}

static uint64_t ask(struct raw_client *raw, enum rbx_wire_type type,
		    enum rbx_wire_type answer)
{
	struct rbx_wire_message message = { .type = type };

	raw_client_send(raw, &message);
	return hear(raw, answer);
}

static void drain(struct rbx_server *server)
{
	pthread_mutex_lock(&server->lock);
	rbx_lender_drain(server->lender, rbx_now_ns());
	pthread_mutex_unlock(&server->lock);
	rbx_control_thread_wake(server);
}

/* By one slab. Returns for how many somebody is asked. */
static uint32_t shrink(struct rbx_server *server)
{
	uint32_t count;

	pthread_mutex_lock(&server->lock);
	count = rbx_lender_shrink(server->lender, 1, rbx_now_ns(), RBX_EVICT_GRACE_NS);
	pthread_mutex_unlock(&server->lock);
	rbx_control_thread_wake(server);
	return count;
}

/* In ms, of which some have passed when it is told. */
static void eviction_tells_how_long_there_is(void **state)
{
	const uint32_t grace_ms = RBX_EVICT_GRACE_NS / 1000000;
	struct rbx_wire_message message;
	struct raw_client raw = { 0 };
	struct world world;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	ask(&raw, RBX_WIRE_SLAB_MAP, RBX_WIRE_SLAB_LOAN);
	assert_int_equal(shrink(world.server), 1);
	assert_true(raw_client_hear(&raw, &message));
	assert_int_equal(message.type, RBX_WIRE_SLAB_EVICT);
	assert_in_range(message.evict.grace_ms, grace_ms / 2, grace_ms);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* Long enough for a server that says too much to have said it. */
static void dawdle(void)
{
	usleep(50000);
}

static void evictions_wait_until_they_are_heard(void **state)
{
	struct raw_client borrower = { 0 }, raw = { 0 };
	uint64_t epoch = 0;
	struct world world;
	uint32_t i;

	(void)state;
	world_options(&world);
	world.options.memory_bytes = SLABS * WORLD_SLAB_BYTES;
	world_start(&world);
	raw_client_arrive(&borrower, &world);
	raw_client_enter(&borrower);
	for (i = 0; i < SLABS; i++)
		epoch = ask(&borrower, RBX_WIRE_SLAB_MAP, RBX_WIRE_SLAB_LOAN);
	raw_client_resume(&raw, &borrower, epoch); /* has receives anew */
	ask(&raw, RBX_WIRE_HEARTBEAT, RBX_WIRE_HEARTBEAT_REPLY);
	drain(world.server);
	for (i = 0; i < RBX_EVICTIONS_MAX; i++)
		hear(&raw, RBX_WIRE_SLAB_EVICT);
	dawdle();
	/* It may have been sent before they were heard. */
	ask(&raw, RBX_WIRE_HEARTBEAT, RBX_WIRE_HEARTBEAT_REPLY);
	dawdle();
	/* Nobody sends this one who has not heard the answer, and what came before. */
	ask(&raw, RBX_WIRE_HEARTBEAT, RBX_WIRE_HEARTBEAT_REPLY);
	for (i = 0; i < RBX_EVICTIONS_MAX; i++)
		hear(&raw, RBX_WIRE_SLAB_EVICT);
	dawdle();
	ask(&raw, RBX_WIRE_HEARTBEAT, RBX_WIRE_HEARTBEAT_REPLY);
	raw_client_leave(&raw);
	raw_client_leave(&borrower);
	world_stop(&world);
}

static bool nobody_is_there(struct world *world)
{
	return world_stats(world).clients == 0;
}

/* Until it has another one, who can move its data. */
static void volume_whose_writer_has_left_is_asked_for_nothing(void **state)
{
	struct rbx_session *writer;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	writer = named_make(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(writer);
	world_wait(&world, nobody_is_there);
	assert_int_equal(shrink(world.server), 0);
	writer = world_session(&world);
	assert_int_equal(named_open(writer, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	assert_int_equal(shrink(world.server), 1);
	rbx_session_close(writer);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eviction_tells_how_long_there_is),
		cmocka_unit_test(evictions_wait_until_they_are_heard),
		cmocka_unit_test(volume_whose_writer_has_left_is_asked_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
