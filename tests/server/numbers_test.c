/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* numbers_test.c - what a server tells of itself: traffic, refusals, answers, clients. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/server/world.h"

#define REASONS 32

static void numbers_begin(struct world *world, uint64_t quota_bytes)
{
	world_options(world);
	world->options.quota_bytes = quota_bytes;
	world_start(world);
}

/* A device without the call tells nothing, and so does the server. */
static bool sees_traffic(const struct world *world)
{
	return world->choice.ops->get_traffic != NULL;
}

static void traffic_is_counted_by_request_and_byte(void **state)
{
	struct rbx_session *session;
	struct rbx_server_stats stats;
	struct rbx_loan grant;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	numbers_begin(&world, 0);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &grant), 0);
	qp = world_qp(&world, session);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &grant), 0);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &grant), 0);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &grant), 0);
	stats = world_stats(&world);
	if (sees_traffic(&world)) {
		assert_int_equal(stats.writes, 2);
		assert_int_equal(stats.written_bytes, 2 * WORLD_SLAB_BYTES);
		assert_int_equal(stats.reads, 1);
		assert_int_equal(stats.read_bytes, WORLD_SLAB_BYTES);
	} else {
		assert_int_equal(stats.reads, RBX_SERVER_NOT_SEEN);
		assert_int_equal(stats.written_bytes, RBX_SERVER_NOT_SEEN);
	}
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void traffic_that_was_refused_is_not_counted(void **state)
{
	struct rbx_session *session;
	struct rbx_loan grant;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	numbers_begin(&world, 0);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &grant), 0);
	qp = world_qp(&world, session);
	grant.remote_addr += 1; /* the last byte is beyond the slab */
	assert_int_not_equal(world_transfer(&world, qp, RBX_OP_READ, &grant), 0);
	if (sees_traffic(&world))
		assert_int_equal(world_stats(&world).reads, 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static uint64_t refused(struct world *world, const char *reason)
{
	struct rbx_server_refusal refusals[REASONS];
	size_t count = rbx_server_refusals_get(world->server, refusals, REASONS);
	size_t i;

	assert_in_range(count, 1, REASONS);
	for (i = 0; i < count; i++) {
		assert_true(refusals[i].sentence[0] != '\0');
		if (!strcmp(refusals[i].reason, reason))
			return refusals[i].count;
	}
	fail_msg("no reason %s", reason);
	return 0;
}

static void refusals_are_counted_by_reason(void **state)
{
	struct rbx_session *session;
	struct rbx_loan grant;
	struct world world;

	(void)state;
	numbers_begin(&world, WORLD_SLAB_BYTES);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &grant), 0);
	assert_int_equal(refused(&world, "QUOTA"), 0);
	assert_int_equal(rbx_session_map(session, &grant), -EDQUOT);
	assert_int_equal(rbx_session_map(session, &grant), -EDQUOT);
	assert_int_equal(refused(&world, "QUOTA"), 2);
	assert_int_equal(refused(&world, "FULL"), 0);
	assert_int_equal(refused(&world, "WRONG_SECRET"), 0);
	assert_true(rbx_server_refusals_get(world.server, NULL, 0) > 10);
	rbx_session_close(session);
	world_stop(&world);
}

static void answers_are_counted_in_time(void **state)
{
	struct rbx_server_answers first, then;
	struct rbx_session *session;
	struct rbx_loan grant;
	struct world world;
	size_t i;

	(void)state;
	numbers_begin(&world, 0);
	session = world_session(&world);
	rbx_server_answers_get(world.server, &first);
	assert_int_equal(first.count, 2); /* HELLO, AUTH */
	assert_int_equal(rbx_session_map(session, &grant), 0);
	rbx_server_answers_get(world.server, &then);
	assert_true(then.count >= 3);
	assert_true(then.sum_ns > first.sum_ns && then.max_ns > 0);
	assert_true(then.max_ns <= then.sum_ns);
	for (i = 1; i < RBX_SERVER_ANSWER_BOUNDS_COUNT; i++)
		assert_true(then.within[i - 1] <= then.within[i]);
	assert_true(then.within[RBX_SERVER_ANSWER_BOUNDS_COUNT - 1] <=
		    then.count);
	/* All but what took longer than a second. */
	if (then.max_ns <= 1000000000)
		assert_int_equal(then.within[RBX_SERVER_ANSWER_BOUNDS_COUNT - 1],
				 then.count);
	rbx_session_close(session);
	world_stop(&world);
}

static bool nobody_is_there(struct world *world)
{
	return rbx_server_clients_get(world->server, NULL, 0) == 0;
}

static void clients_are_listed_with_their_slabs(void **state)
{
	struct rbx_server_client clients[2];
	struct rbx_session *one, *two;
	struct rbx_loan grant;
	struct world world;
	uint64_t slabs;

	(void)state;
	numbers_begin(&world, 0);
	assert_int_equal(rbx_server_clients_get(world.server, clients, 2), 0);
	one = world_session(&world);
	two = world_session(&world);
	assert_int_equal(rbx_session_map(one, &grant), 0);
	assert_int_equal(rbx_session_map(one, &grant), 0);
	assert_int_equal(rbx_session_map(two, &grant), 0);
	assert_int_equal(rbx_server_clients_get(world.server, clients, 2), 2);
	slabs = clients[0].slabs_lent * 10 + clients[1].slabs_lent;
	assert_true(slabs == 12 || slabs == 21);
	assert_true(clients[0].connected && clients[1].connected);
	assert_true(clients[0].address[0] && clients[0].age_ms < 600000);
	/* No more are stored than there is room for. */
	memset(clients, 0xff, sizeof(clients));
	assert_int_equal(rbx_server_clients_get(world.server, clients, 1), 2);
	assert_true(clients[1].slabs_lent == UINT64_MAX);
	rbx_session_close(one);
	rbx_session_close(two);
	world_wait(&world, nobody_is_there);
	world_stop(&world);
}

static void drain_shows(void **state)
{
	struct world world;

	(void)state;
	numbers_begin(&world, 0);
	assert_int_equal(world_stats(&world).draining, 0);
	assert_int_equal(rbx_server_drain(world.server, WORLD_WAIT_MS), 0);
	assert_int_equal(world_stats(&world).draining, 1);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_is_counted_by_request_and_byte),
		cmocka_unit_test(traffic_that_was_refused_is_not_counted),
		cmocka_unit_test(refusals_are_counted_by_reason),
		cmocka_unit_test(answers_are_counted_in_time),
		cmocka_unit_test(clients_are_listed_with_their_slabs),
		cmocka_unit_test(drain_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
