/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention_test.c - what the upkeep thread sees to first, how much of it in a
 * round, and what it does not look at.
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
	tasks[tasks_count].slab = rbx_slab_index(slab);
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
	const struct rbx_replica *replica = rbx_slab_replica(slab, slot);
	const struct rbx_loan loan = rbx_replica_loan(replica);

	host->servers[rbx_replica_server(replica)].keys[replica->slab_id] = 0;
	rbx_slab_revoked(slab, rbx_replica_server(replica), &loan);
	assert_true(rbx_attention_note(&host->flow.map->attention, slab));
}

static void evict_at(struct host *host, uint32_t slab_index, uint64_t now_ns,
		     uint64_t until_ns)
{
	const struct rbx_replica *replica =
		rbx_slab_replica(host_slab(host, slab_index), 0);
	const struct rbx_eviction eviction = {
		.slab_id = replica->slab_id,
		.epoch = replica->epoch,
		.now_ns = now_ns,
		.until_ns = until_ns,
	};

	rbx_upkeep_evict(&host->upkeep, rbx_replica_server(replica), &eviction);
}

static void evict_until(struct host *host, uint32_t slab_index, uint64_t until_ns)
{
	evict_at(host, slab_index, 0, until_ns);
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

	while (host_server_of(host, slab, 0) ==
	       host_server_of(host, 0, 0))
		slab++;
	return slab;
}

/* Whichever comes first. */
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

#define SECOND 1000000000ull
#define DUE ((uint64_t)1 << RBX_DUE_SHIFT)

/* At any time: the circle begins anywhere. */
static void evictions_all_round_the_circle_go_by_time(void **state)
{
	static const uint32_t order[] = { 3, 0, 6, 2, 7, 1, 5, 4 };

	(void)state;
	for (uint32_t i = 0; i < 2 * RBX_DUE_SLOTS; i++) {
		struct host *host = open_host(8, 1, 4);
		uint64_t now_ns = (1000 + i) * DUE + DUE / 2;

		/* Each a slot or two after the one before; the last is told of first. */
		for (uint32_t k = 8; k-- > 0;)
			evict_at(host, order[k], now_ns,
				 now_ns + k * DUE * 13 / 8);
		watch(host);
		settle(host);
		for (uint32_t k = 0; k < 8; k++)
			assert_int_equal(nth(RBX_TASK_BORROW, k), order[k]);
		host_free(host);
	}
}

static void eviction_far_ahead_has_no_time_until_it_is_near(void **state)
{
	const uint64_t far_ns = RBX_EVICT_NEAR_NS + SECOND;

	(void)state;
	for (uint32_t reminded = 0; reminded < 2; reminded++) {
		struct host *host = open_host(3, 1, 4);

		evict_at(host, 2, 0, UINT64_MAX);
		evict_at(host, 1, 0, RBX_EVICT_NEAR_NS - 1);
		evict_at(host, 0, 0, far_ns);
		/* The others come nearer, too. */
		if (reminded) {
			evict_at(host, 0, far_ns - SECOND, far_ns);
			evict_at(host, 1, far_ns - SECOND,
				 far_ns - SECOND + RBX_EVICT_NEAR_NS - 1);
		}
		watch(host);
		settle(host);
		assert_int_equal(nth(RBX_TASK_BORROW, 0), reminded ? 0 : 1);
		assert_int_equal(nth(RBX_TASK_BORROW, 1), reminded ? 1 : 0);
		assert_int_equal(nth(RBX_TASK_BORROW, 2), 2);
		host_free(host);
	}
}

/* It may still be there, and its server is about to take it. */
static void eviction_that_was_due_just_now_comes_first(void **state)
{
	struct host *host = open_host(2, 1, 4);

	(void)state;
	evict_at(host, 1, 100 * DUE, 101 * DUE);
	evict_at(host, 0, 102 * DUE, 102 * DUE);
	watch(host);
	settle(host);
	assert_int_equal(nth(RBX_TASK_BORROW, 0), 1);
	assert_int_equal(nth(RBX_TASK_BORROW, 1), 0);
	host_free(host);
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
	(void)host_round(host);
	assert_int_equal(host_census(host).lacking, 4);
	assert_int_equal(host_census(host).rebuilding,
			 1 + RBX_UPKEEP_AHEAD_MAX);
	settle(host);
	assert_int_equal(host_census(host).whole, 4);
	assert_string_equal(host->news, "SF");
	host_free(host);
}

/* What one round leaves the next one does, which nobody else would begin. */
static void round_at_its_bound_wakes_the_upkeep_thread(void **state)
{
	const uint32_t slabs = RBX_UPKEEP_RETURNS_MAX + 1;
	struct host *host = host_make_on_demand(slabs, 1, 4);

	(void)state;
	for (uint32_t i = 0; i < slabs; i++)
		write_to(host, i);
	host->wakes_count = 0;
	assert_false(host_round(host)); /* lends to all but one */
	assert_int_equal(host->wakes_count, 1);
	assert_false(host_settle(host));
	assert_int_equal(host_ended(host, 0), slabs);
	rbx_flow_discard(&host->flow, 0, (uint64_t)slabs * HOST_SLAB_BYTES);
	host->wakes_count = 0;
	assert_false(host_round(host)); /* gives back all but one */
	assert_int_equal(host->wakes_count, 1);
	host->wakes_count = 0;
	assert_false(host_round(host));
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

/* Each has its turn before any has its second. */
static void stuck_slabs_all_have_their_turn(void **state)
{
	struct host *host = open_host(4 * RBX_UPKEEP_RETRIES_MAX, 1, 4);
	uint32_t tries[4 * RBX_UPKEEP_RETRIES_MAX] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		host->servers[i].refuse = -EDQUOT;
	for (uint32_t i = 0; i < 4 * RBX_UPKEEP_RETRIES_MAX; i++)
		evict_until(host, i, UINT64_MAX);
	assert_true(host_settle(host));
	for (uint32_t turn = 1; turn <= 3; turn++) {
		watch(host);
		for (uint32_t round = 0; round < 4; round++)
			assert_true(host_round(host));
		for (uint32_t i = 0; i < tasks_count; i++)
			tries[tasks[i].slab]++;
		for (uint32_t i = 0; i < 4 * RBX_UPKEEP_RETRIES_MAX; i++)
			assert_int_equal(tries[i], turn);
	}
	host_free(host);
}

static void census_is_as_a_count(struct host *host)
{
	struct rbx_census census = host_census(host);
	uint32_t counts[RBX_SLAB_HEALTHS] = { 0 }, last = 0, holes = 0;

	for (uint32_t i = 0; i < census.slabs; i++) {
		const struct rbx_slab *slab = host_slab(host, i);

		counts[rbx_slab_health(slab)]++;
		last += rbx_slab_is_last(slab);
		holes += slab->has_holes && slab->read_mask;
	}
	assert_int_equal(census.blank, counts[RBX_SLAB_BLANK]);
	assert_int_equal(census.whole, counts[RBX_SLAB_WHOLE]);
	assert_int_equal(census.rebuilding, counts[RBX_SLAB_REBUILDING]);
	assert_int_equal(census.lacking, counts[RBX_SLAB_LACKING] +
						 counts[RBX_SLAB_REBUILDING]);
	assert_int_equal(census.dead, counts[RBX_SLAB_DEAD]);
	assert_int_equal(census.last, last);
	assert_int_equal(census.holes, holes);
}

static void step_at_random(struct host *host, struct rbx_random *random)
{
	uint32_t index = rbx_random_below(random, 5);
	struct rbx_slab *slab = host_slab(host, index);
	uint32_t slot = rbx_random_below(random, 2);

	switch (rbx_random_below(random, 5)) {
	case 0:
		host_start(host, RBX_PIECE_WRITE, (uint64_t)index * HOST_SLAB_BYTES,
			   out, sizeof(out));
		break;
	case 1:
		if (slab->read_mask >> slot & 1)
			lose(host, index, slot);
		break;
	case 2:
		if (slab->read_mask & 1)
			evict_until(host, index, UINT64_MAX);
		break;
	case 3:
		rbx_flow_discard(&host->flow, (uint64_t)index * HOST_SLAB_BYTES,
				 HOST_SLAB_BYTES);
		break;
	default:
		(void)host_poll(host);
		(void)host_round(host);
	}
	while (host_poll(host))
		;
	if (host->ended.first)
		(void)rbx_piece_pool_give(&host->flow.pool, &host->ended);
}

static void census_at_random_is_as_a_count_of_all(void **state)
{
	struct host *host = host_make_on_demand(5, 2, 4);
	struct rbx_random random;

	(void)state;
	rbx_random_seed(&random, 21);
	for (uint32_t i = 0; i < 3000; i++) {
		step_at_random(host, &random);
		memset(host->news, 0, sizeof(host->news));
		census_is_as_a_count(host);
	}
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
		cmocka_unit_test(evictions_all_round_the_circle_go_by_time),
		cmocka_unit_test(eviction_far_ahead_has_no_time_until_it_is_near),
		cmocka_unit_test(eviction_that_was_due_just_now_comes_first),
		cmocka_unit_test(first_write_comes_before_a_rebuild),
		cmocka_unit_test(rebuild_borrows_little_ahead),
		cmocka_unit_test(round_at_its_bound_wakes_the_upkeep_thread),
		cmocka_unit_test(stuck_slabs_are_tried_in_turn),
		cmocka_unit_test(stuck_slabs_all_have_their_turn),
		cmocka_unit_test(census_at_random_is_as_a_count_of_all),
		cmocka_unit_test(round_looks_at_nothing_that_wants_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
