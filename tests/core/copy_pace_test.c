/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* copy_pace_test.c - copies that yield to requests, keep to a rate, and end all the same. */
#include "core/slab_rebuild.h"
#include "tests/core/scripted_host.h"

#define MS 1000000ull
#define CELL (128u << 10)

/* ---- The pace alone --------------------------------------------------------------*/

static void pace_without_requests_goes_on_at_once(void **state)
{
	struct rbx_copy_pace pace = { .uses = 7 };

	(void)state;
	rbx_copy_pace_look(&pace, 7, 1000 * MS);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, false, 1000 * MS), 0);
	assert_int_equal(rbx_copy_pace_next(&pace, 1, CELL, false, 1000 * MS), 0);
	assert_true(rbx_copy_pace_goes_on(&pace, 7));
	assert_false(rbx_copy_pace_goes_on(&pace, 8));
}

/* One at a time, and each takes a hundredth of the time. */
static void pace_yields_while_requests_come(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint64_t now_ns = 1000 * MS, due_ns;

	(void)state;
	rbx_copy_pace_look(&pace, 1, now_ns);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, false, now_ns), 0);
	assert_false(rbx_copy_pace_goes_on(&pace, 1));
	assert_int_equal(rbx_copy_pace_next(&pace, 1, CELL, false, now_ns), UINT64_MAX);
	now_ns += MS / 2;
	rbx_copy_pace_look(&pace, 2, now_ns);
	due_ns = rbx_copy_pace_next(&pace, 0, CELL, false, now_ns);
	assert_int_equal(due_ns, now_ns + (RBX_COPY_SHARE - 1) * MS / 2);
	rbx_copy_pace_look(&pace, 3, due_ns - 1);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, false, due_ns - 1), due_ns);
	rbx_copy_pace_look(&pace, 4, due_ns);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, false, due_ns), 0);
}

static void pace_has_the_link_again_when_requests_cease(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	rbx_copy_pace_look(&pace, 1, now_ns);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, false, now_ns), 0);
	now_ns += 90 * MS;
	rbx_copy_pace_look(&pace, 1, now_ns);
	/* It has taken long, so the next one would rest beyond that. */
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, false, now_ns),
			 1000 * MS + RBX_COPY_QUIET_NS);
	now_ns = 1000 * MS + RBX_COPY_QUIET_NS;
	rbx_copy_pace_look(&pace, 1, now_ns);
	assert_int_equal(rbx_copy_pace_next(&pace, 3, CELL, false, now_ns), 0);
	assert_true(rbx_copy_pace_goes_on(&pace, 1));
}

/* However slow copies are, and requests come all the time. */
static void pace_has_a_floor(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint64_t now_ns = 1000 * MS, end_ns = now_ns + 10000 * MS, copied = 0, uses = 0, due_ns;

	(void)state;
	while (now_ns < end_ns) {
		rbx_copy_pace_look(&pace, ++uses, now_ns);
		due_ns = rbx_copy_pace_next(&pace, 0, CELL, false, now_ns);
		copied += due_ns ? 0 : CELL;
		now_ns = due_ns ? due_ns : now_ns + 20 * MS;
	}
	/* A copy itself takes 20 ms of 31 that it may. */
	assert_in_range(copied, 6 * RBX_COPY_FLOOR_BYTES, 10 * RBX_COPY_FLOOR_BYTES);
}

static void pace_is_faster_if_a_server_waits(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	rbx_copy_pace_look(&pace, 1, now_ns);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, true, now_ns), 0);
	rbx_copy_pace_look(&pace, 2, now_ns + MS);
	assert_int_equal(rbx_copy_pace_next(&pace, 0, CELL, true, now_ns + MS),
			 now_ns + RBX_COPY_HURRIED_SHARE * MS);
}

static void pace_keeps_to_a_rate(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint64_t now_ns = 1000 * MS, end_ns = now_ns + 2000 * MS, copied = 0, due_ns;

	(void)state;
	rbx_copy_pace_limit(&pace, 64 << 20);
	while (now_ns < end_ns) {
		assert_false(rbx_copy_pace_goes_on(&pace, 0));
		due_ns = rbx_copy_pace_next(&pace, 3, CELL, false, now_ns);
		copied += due_ns ? 0 : CELL;
		/* The thread wakes up a little late, which costs nothing. */
		now_ns = due_ns ? due_ns + MS : now_ns;
	}
	assert_in_range(copied, 127 << 20, 130 << 20);
}

static void pace_of_a_rate_saves_nothing_for_later(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint32_t count = 0;

	(void)state;
	rbx_copy_pace_limit(&pace, 64 << 20);
	while (!rbx_copy_pace_next(&pace, 0, CELL, false, 3600000 * MS))
		count++;
	assert_in_range(count, 2, 7); /* 10 ms of it, and one */
}

static void pace_without_a_limit_never_waits(void **state)
{
	struct rbx_copy_pace pace = { 0 };
	uint32_t i;

	(void)state;
	rbx_copy_pace_limit(&pace, UINT64_MAX);
	rbx_copy_pace_look(&pace, 1, MS);
	for (i = 0; i < 1000; i++)
		assert_int_equal(rbx_copy_pace_next(&pace, i, CELL, false, MS), 0);
	assert_true(rbx_copy_pace_goes_on(&pace, 2));
}

/* ---- A rebuild that keeps to it -----------------------------------------------------*/

/* One slab that lacks a replica; requests come. */
static struct host *open_lacking(uint32_t replicas)
{
	struct host *host = host_make(1, replicas, replicas + 1);

	rbx_copy_pace_limit(&host->flow.rebuild.pace, 0);
	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	host_write_cell(host, 7);
	host_poll(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->now_ns = 1000 * MS;
	host_server_dies(host, rbx_replica_server(rbx_slab_replica(host_slab(host, 0), 0)));
	return host;
}

/* A request comes, and time goes on to when the next round is wanted. */
static void busy_round(struct host *host)
{
	host_assert_cell(host, 7);
	host->now_ns = RBX_MAX(host->now_ns, host->due_ns == UINT64_MAX ? 0 : host->due_ns);
	(void)host_round(host);
}

static void rebuild_beside_requests_has_one_copy_under_way_and_ends(void **state)
{
	struct host *host = open_lacking(2);
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t i;

	(void)state;
	(void)host_round(host);
	for (i = 0; i < 1000 && rbx_slab_health(slab) != RBX_SLAB_WHOLE; i++) {
		assert_true(rbx_slab_copies_count(slab) <= 1);
		busy_round(host);
	}
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
	assert_int_equal(host->flow.rebuild.copied_bytes, HOST_SLAB_BYTES);
	host_assert_cell(host, 7);
	host_free(host);
}

/* All at once again, without another request. */
static void rebuild_after_requests_has_all_copies_under_way(void **state)
{
	struct host *host = open_lacking(2);

	(void)state;
	(void)host_round(host);
	assert_int_equal(rbx_slab_copies_count(host_slab(host, 0)), 1);
	host_poll(host); /* read */
	host_poll(host); /* written */
	(void)host_round(host);
	host->now_ns += RBX_COPY_QUIET_NS;
	(void)host_round(host);
	assert_int_equal(rbx_slab_copies_count(host_slab(host, 0)), RBX_COPIES_MAX);
	assert_false(host_settle(host));
	assert_int_equal(rbx_slab_health(host_slab(host, 0)), RBX_SLAB_WHOLE);
	host_free(host);
}

/* While all copies are parked. */
static void rebuild_parked_its_target_dies_another_begins(void **state)
{
	struct host *host = open_lacking(2);
	struct rbx_slab *slab = host_slab(host, 0);
	uint32_t target, i;

	(void)state;
	(void)host_round(host);
	host_poll(host);
	host_poll(host);
	assert_int_equal(rbx_slab_copies_count(slab), 0);
	assert_true(rbx_rebuild_is_under_way(&host->flow));
	target = (uint32_t)__builtin_ctz(rbx_slab_targets(slab));
	target = rbx_replica_server(rbx_slab_replica(slab, target));
	rbx_slab_lock(slab);
	rbx_slab_server_down(slab, target);
	rbx_slab_unlock(slab);
	for (i = 0; i < 100 && rbx_slab_health(slab) != RBX_SLAB_WHOLE; i++)
		busy_round(host);
	/* What was lost there is given back, and it lends anew. */
	assert_int_equal(rbx_slab_health(slab), RBX_SLAB_WHOLE);
	host_assert_cell(host, 7);
	host_free(host);
}

static void rebuild_parked_the_volume_is_closed(void **state)
{
	struct host *host = open_lacking(3);

	(void)state;
	(void)host_round(host);
	host_poll(host);
	host_poll(host);
	assert_int_equal(rbx_slab_copies_count(host_slab(host, 0)), 0);
	assert_true(rbx_rebuild_is_under_way(&host->flow));
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace_without_requests_goes_on_at_once),
		cmocka_unit_test(pace_yields_while_requests_come),
		cmocka_unit_test(pace_has_the_link_again_when_requests_cease),
		cmocka_unit_test(pace_has_a_floor),
		cmocka_unit_test(pace_is_faster_if_a_server_waits),
		cmocka_unit_test(pace_keeps_to_a_rate),
		cmocka_unit_test(pace_of_a_rate_saves_nothing_for_later),
		cmocka_unit_test(pace_without_a_limit_never_waits),
		cmocka_unit_test(rebuild_beside_requests_has_one_copy_under_way_and_ends),
		cmocka_unit_test(rebuild_after_requests_has_all_copies_under_way),
		cmocka_unit_test(rebuild_parked_its_target_dies_another_begins),
		cmocka_unit_test(rebuild_parked_the_volume_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
