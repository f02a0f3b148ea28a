/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention_test.c - what the keeper sees to first, how much of it in a round, and
 * what it does not look at.
 */
#include "tests/core/scripted_host.h"

#define TASKS_MAX 64u

static struct {
	uint32_t slab;
	enum rbx_slab_task task;
} tasks[TASKS_MAX];
static uint32_t tasks_count;

static void tending(struct rbx_upkeep *upkeep, const struct rbx_slab *slab,
		    enum rbx_slab_task task)
{
	(void)upkeep;
	if (tasks_count == TASKS_MAX)
		return;
	tasks[tasks_count].slab = slab->index;
	tasks[tasks_count++].task = task;
}

static struct rbx_upkeep_ops watched;

static void watch(struct host *host)
{
	watched = *host->upkeep.ops;
	watched.tending = tending;
	host->upkeep.ops = &watched;
	tasks_count = 0;
}

/* The slab of the nth task of this kind, or -1. */
static int nth(enum rbx_slab_task task, uint32_t n)
{
	for (uint32_t i = 0; i < tasks_count; i++)
		if (tasks[i].task == task && !n--)
			return (int)tasks[i].slab;
	return -1;
}

static void settle(struct host *host)
{
	for (uint32_t i = 0; i < 8; i++)
		(void)host_settle(host);
}

static struct host *open_host(uint32_t slabs, uint32_t replicas,
			      uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	return host;
}

static void lose(struct host *host, uint32_t slab_index, uint32_t slot)
{
	struct rbx_slab *slab = host_slab(host, slab_index);
	const struct rbx_replica *replica = &slab->replicas[slot];
	const struct rbx_loan loan = rbx_replica_loan(replica);

	host->servers[replica->server].keys[replica->slab_id] = 0;
	rbx_slab_revoked(slab, replica->server, &loan);
	assert_true(rbx_attention_note(&host->flow.map->attention, slab));
}

static void evict_until(struct host *host, uint32_t slab_index, uint64_t until_ns)
{
	const struct rbx_replica *replica =
		&host_slab(host, slab_index)->replicas[0];
	const struct rbx_eviction eviction = {
		.slab_id = replica->slab_id,
		.epoch = replica->epoch,
		.until_ns = until_ns,
	};

	rbx_upkeep_evict(&host->upkeep, replica->server, &eviction);
}

static void slab_with_one_copy_comes_before_one_with_two(void **state)
{
	struct host *host = open_host(2, 3, 4);

	(void)state;
	lose(host, 0, 0); /* two are left, and it was first */
	lose(host, 1, 0);
	lose(host, 1, 1);
	watch(host);
	settle(host);
	assert_int_equal(nth(RBX_TASK_COPY, 0), 1);
	assert_int_equal(nth(RBX_TASK_COPY, 1), 0);
	assert_int_equal(host_census(host).whole, 2);
	host_free(host);
}

static void slab_on_a_single_server_is_counted_until_it_has_another(void **state)
{
	struct host *host = open_host(3, 2, 4);

	(void)state;
	assert_int_equal(host_census(host).last, 0);
	lose(host, 0, 0);
	lose(host, 2, 1);
	assert_int_equal(host_census(host).last, 2);
	settle(host);
	assert_int_equal(host_census(host).last, 0);
	lose(host, 1, 0);
	lose(host, 1, 1);
	assert_int_equal(host_census(host).last, 0); /* it has none */
	assert_int_equal(host_census(host).dead, 1);
	host_free(host);
}

/* Not read for now, but it has all that was acknowledged. */
static void slab_with_a_stand_in_is_on_two_servers(void **state)
{
	static uint8_t page[RBX_PAGE_BYTES];
	struct host *host = open_host(1, 2, 4);

	(void)state;
	host->fails_here = -EFAULT;
	host_start(host, RBX_PIECE_WRITE, 0, page, sizeof(page));
	host_poll(host);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 1);
	assert_int_equal(host_census(host).last, 0);
	assert_int_equal(host_census(host).rebuilding, 1);
	host->fails_here = 0;
	settle(host);
	host_free(host);
}

static void loss_comes_before_an_eviction(void **state)
{
	struct host *host = open_host(2, 2, 4);

	(void)state;
	evict_until(host, 0, 1);
	lose(host, 1, 0);
	watch(host);
	settle(host);
	assert_int_equal(nth(RBX_TASK_COPY, 0), 1);
	assert_int_equal(nth(RBX_TASK_COPY, 1), 0);
	host_free(host);
}

/* The first slab that is not where slab 0 is. */
static uint32_t slab_elsewhere(struct host *host)
{
	uint32_t slab = 1;

	while (host_slab(host, slab)->replicas[0].server ==
	       host_slab(host, 0)->replicas[0].server)
		slab++;
	return slab;
}

/* Of one server they are in the order in which it asked. */
static void evictions_go_by_the_time_at_which_they_end(void **state)
{
	static const uint64_t until_ns[] = { 3000000000, 9000000000, UINT64_MAX };

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		struct host *host = open_host(8, 1, 4);
		uint32_t slabs[] = { 0, slab_elsewhere(host) };
		/* Every two of the times, in both orders. */
		uint32_t sooner = i / 2 == 2, later = 1 + (i / 2 > 0);

		evict_until(host, slabs[i % 2], until_ns[later]);
		evict_until(host, slabs[1 - i % 2], until_ns[sooner]);
		watch(host);
		settle(host);
		assert_int_equal(nth(RBX_TASK_BORROW, 0), slabs[1 - i % 2]);
		settle(host);
		assert_int_equal(host_census(host).whole, 8);
		host_free(host);
	}
}

static uint8_t out[HOST_CELL_BYTES];

static void write_to(struct host *host, uint32_t slab_index)
{
	host_start(host, RBX_PIECE_WRITE, (uint64_t)slab_index * HOST_SLAB_BYTES,
		   out, sizeof(out));
}

/* Slabs 1 to 3 lack a replica; the first write of slab 0 comes last. */
static void first_write_comes_before_a_rebuild(void **state)
{
	struct host *host = host_make_on_demand(4, 2, 4);

	(void)state;
	for (uint32_t i = 1; i < 4; i++)
		write_to(host, i);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), 3);
	for (uint32_t i = 1; i < 4; i++)
		lose(host, i, 0);
	write_to(host, 0);
	watch(host);
	settle(host);
	assert_int_equal(tasks[0].slab, 0);
	assert_int_equal(tasks[0].task, RBX_TASK_LEND);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 4);
	host_free(host);
}

/* Memory is borrowed for few slabs more than are copied. */
static void rebuild_borrows_little_ahead(void **state)
{
	struct host *host = open_host(4, 2, 4);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		lose(host, i, 0);
	(void)rbx_upkeep_round(&host->upkeep);
	assert_int_equal(host_census(host).lacking, 4);
	assert_int_equal(host_census(host).rebuilding,
			 1 + RBX_UPKEEP_AHEAD_MAX);
	settle(host);
	assert_int_equal(host_census(host).whole, 4);
	assert_string_equal(host->news, "SF");
	host_free(host);
}

/* What one round leaves the next one does, which nobody else would begin. */
static void round_at_its_bound_wakes_the_keeper(void **state)
{
	const uint32_t slabs = RBX_UPKEEP_RETURNS_MAX + 1;
	struct host *host = host_make_on_demand(slabs, 1, 4);

	(void)state;
	for (uint32_t i = 0; i < slabs; i++)
		write_to(host, i);
	host->wakes_count = 0;
	assert_false(rbx_upkeep_round(&host->upkeep)); /* lends to all but one */
	assert_int_equal(host->wakes_count, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), slabs);
	rbx_flow_discard(&host->flow, 0, (uint64_t)slabs * HOST_SLAB_BYTES);
	host->wakes_count = 0;
	assert_false(rbx_upkeep_round(&host->upkeep)); /* gives back all but one */
	assert_int_equal(host->wakes_count, 1);
	host->wakes_count = 0;
	assert_false(rbx_upkeep_round(&host->upkeep));
	assert_int_equal(host->wakes_count, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(host_lent_count(host, i), 0);
	host_free(host);
}

/* Those that nobody takes are asked for again a few at a time, and all in the end. */
static void stuck_slabs_are_tried_in_turn(void **state)
{
	struct host *host = open_host(4, 1, 2);

	(void)state;
	host->servers[0].refuse = host->servers[1].refuse = -EDQUOT;
	for (uint32_t i = 0; i < 4; i++)
		evict_until(host, i, UINT64_MAX);
	assert_true(host_settle(host));
	assert_string_equal(host->news, "T");
	assert_int_equal(host->news_counts[0], 4);
	host->servers[0].refuse = host->servers[1].refuse = 0;
	settle(host);
	assert_int_equal(host_census(host).whole, 4);
	host_free(host);
}

/* A slab that wants nothing is not looked at: its lock would not be taken. */
static void round_looks_at_nothing_that_wants_nothing(void **state)
{
	struct host *host = open_host(4, 1, 2);

	(void)state;
	settle(host);
	watch(host);
	assert_false(rbx_attention_take(&host->flow.map->attention, 1));
	evict_until(host, 2, UINT64_MAX);
	settle(host);
	for (uint32_t i = 0; i < tasks_count; i++)
		assert_int_equal(tasks[i].slab, 2);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_with_one_copy_comes_before_one_with_two),
		cmocka_unit_test(
			slab_on_a_single_server_is_counted_until_it_has_another),
		cmocka_unit_test(slab_with_a_stand_in_is_on_two_servers),
		cmocka_unit_test(loss_comes_before_an_eviction),
		cmocka_unit_test(evictions_go_by_the_time_at_which_they_end),
		cmocka_unit_test(first_write_comes_before_a_rebuild),
		cmocka_unit_test(rebuild_borrows_little_ahead),
		cmocka_unit_test(round_at_its_bound_wakes_the_keeper),
		cmocka_unit_test(stuck_slabs_are_tried_in_turn),
		cmocka_unit_test(round_looks_at_nothing_that_wants_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
