/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_storm_test.c - requests to a volume under harm of all kinds, at random.
 *
 * Servers are slow, refuse, hear nothing, die and come back; they want their memory
 * back or have revoked it unheard; this machine fails; slabs are discarded. Parts that
 * were sent are done one by one, in any order, between rounds of the upkeep. All of it
 * is drawn from a seed, in one thread: a seed is the same history each time.
 *
 * Harm leaves a copy of all that was acknowledged, or it is noted that it may cost a
 * slab (storm_harm.h). So what is expected is plain. What is read was written, and no
 * request fails without a reason (storm_io.h). In the end, with all servers well again,
 * each slab is whole, each copy has what was written, and nothing is lent that nobody
 * has.
 *
 * A mix says which harm there is. One seed of it alone, as a failure names it:
 *
 *	core_upkeep_storm_test MIX SEED
 */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "tests/core/storm_harm.h"

#ifdef __SANITIZE_ADDRESS__ /* four times as slow; what is looked for is in each of them */
#define SEEDS 60
#else
#define SEEDS 300
#endif

static const struct mix mixes[] = {
	{ .name = "evictions", .seeds_count = SEEDS, .evicts = true, .kills = true },
	{ .name = "on_demand", .seeds_count = SEEDS, .on_demand = true,
	  .evicts = true, .kills = true, .discards = true },
	{ .name = "silence", .seeds_count = SEEDS,
	  .evicts = true, .kills = true, .falls_silent = true },
	{ .name = "faults", .seeds_count = SEEDS,
	  .evicts = true, .kills = true, .faults_here = true },
	{ .name = "faults_with_checksums", .seeds_count = SEEDS, .checksums = true,
	  .evicts = true, .kills = true, .faults_here = true },
	{ .name = "same_keys", .seeds_count = SEEDS, .on_demand = true,
	  .evicts = true, .kills = true, .discards = true, .reuses_keys = true },
	{ .name = "losses", .seeds_count = SEEDS, .on_demand = true,
	  .evicts = true, .kills = true, .discards = true, .costs = true },
	{ .name = "close", .seeds_count = SEEDS, .on_demand = true,
	  .evicts = true, .kills = true, .costs = true, .closes = true },
	{ .name = "all", .seeds_count = SEEDS, .on_demand = true,
	  .evicts = true, .kills = true, .falls_silent = true, .faults_here = true,
	  .discards = true, .reuses_keys = true, .costs = true },
	{ .name = "all_with_checksums", .seeds_count = SEEDS, .on_demand = true,
	  .checksums = true, .evicts = true, .kills = true, .falls_silent = true,
	  .faults_here = true, .discards = true, .reuses_keys = true, .costs = true },
};

#define MIXES (sizeof(mixes) / sizeof(mixes[0]))
#define STEPS_MIN 200u
#define STEPS_MAX 3200u
#define SETTLE_SECONDS_MAX 4000u
#define ROUNDS_MAX 100000u /* at one time: it never settles */

struct storm storm;

/* ---- A step ---------------------------------------------------------------------*/

static void start_one(void)
{
	uint32_t slab = draw(storm.slabs);
	/* Those at the beginning more often, so that some meet. */
	uint32_t cells = one_of(2) ? 1 + draw(STORM_CELLS) : STORM_CELLS;

	storm_io_start(&storm.io, one_of(3), slab, draw(cells));
}

static void make_round(void)
{
	struct host *host = storm.host;

	host->wakes_count = 0;
	memset(host->news, 0, sizeof(host->news));
	(void)host_round(host);
}

static bool is_round_due(void)
{
	return storm.host->wakes_count || storm.host->now_ns >= storm.host->due_ns;
}

/* A part that fails here may have been carried out all the same. With checksums that may
 * cost the page, which is for those who find out before. */
static void poll_one(void)
{
	bool fails = storm.mix->faults_here && one_of(40);
	bool is_carried_out = !storm.mix->checksums && one_of(2);

	(void)host_poll_one(storm.host, draw(10), fails ? -EFAULT : 0,
			    is_carried_out);
	storm_io_reap(&storm.io);
}

static void step(void)
{
	switch (draw(8)) {
	case 0:
	case 1:
		start_one();
		break;
	case 2:
		if (is_round_due())
			make_round();
		break;
	case 3:
		storm_harm();
		break;
	default:
		poll_one();
	}
}

/* ---- The end --------------------------------------------------------------------*/

static void poll_all(void)
{
	while (host_poll_one(storm.host, 0, 0, true))
		storm_io_reap(&storm.io);
}

/* All that can be done at this time. */
static void rest(void)
{
	uint32_t rounds = 0;

	do {
		assert_true(rounds++ < ROUNDS_MAX);
		poll_all();
		make_round();
	} while (storm.host->wakes_count || storm.host->sent_first ||
		 storm.host->later_first);
}

static void servers_are_well(void)
{
	for (uint32_t i = 0; i < HOST_SERVERS; i++) {
		storm.host->servers[i].is_slow = false;
		storm.host->servers[i].refuse = 0;
		storm.host->servers[i].deaf = 0;
	}
}

/* What was avoided is asked again after a while. */
static void settle(void)
{
	uint32_t seconds = 0;

	servers_are_well();
	do {
		storm.host->now_ns += SECOND_NS;
		rest();
	} while (seconds++ < 20 || (storm.host->due_ns != UINT64_MAX &&
				    seconds < SETTLE_SECONDS_MAX));
	assert_int_equal(storm_io_busy(&storm.io), 0);
}

/* Unless there is no server for another replica, or it was lost. */
static void judge_health(uint32_t index)
{
	enum rbx_slab_health health = rbx_slab_health(host_slab(storm.host, index));

	if (HOST_SERVERS - storm.down_count <= storm.replicas ||
	    (health == RBX_SLAB_DEAD && storm.io.may_be_lost[index]))
		return;
	if (health != RBX_SLAB_WHOLE && health != RBX_SLAB_BLANK)
		fail_msg("slab %" PRIu32 " has health %d", index, health);
}

static bool is_in_doubt(const struct rbx_slab *slab)
{
	struct rbx_doubts *doubts = rbx_slab_doubts(slab);

	return doubts && rbx_doubts_are_later(doubts) && slab->read_mask;
}

static void judge_slab(uint32_t index)
{
	struct rbx_slab *slab = host_slab(storm.host, index);
	uint32_t slot, cell;

	judge_health(index);
	assert_true(!slab->has_record || is_in_doubt(slab));
	for (slot = 0; slot <= storm.replicas; slot++) {
		const struct rbx_replica *replica;

		if (!(slab->read_mask >> slot & 1))
			continue;
		replica = rbx_slab_replica(slab, slot);
		assert_int_equal(rbx_replica_flights(replica), 0);
		if (host_has_loan(storm.host, replica))
			storm_io_judge(&storm.io, slab,
				       (void *)(uintptr_t)rbx_replica_addr(replica));
	}
	for (cell = 0; cell < STORM_CELLS; cell++) {
		storm_io_start(&storm.io, true, index, cell);
		poll_all();
	}
	assert_int_equal(storm_io_busy(&storm.io), 0);
}

static bool has_loan(uint32_t server, uint32_t area)
{
	uint32_t i, slot;

	for (i = 0; i < storm.slabs; i++)
		for (slot = 0; slot <= storm.replicas; slot++) {
			const struct rbx_slab *slab = host_slab(storm.host, i);
			const struct rbx_replica *replica;

			if (rbx_slab_state(slab, slot) < RBX_REPLICA_REBUILDING)
				continue;
			replica = rbx_slab_replica(slab, slot);
			if (rbx_replica_server(replica) == server &&
			    replica->slab_id == area &&
			    replica->epoch == storm.host->servers[server].epochs[area])
				return true;
		}
	return false;
}

/* Nothing is lent that nobody has. */
static void judge_loans(void)
{
	for (uint32_t i = 0; i < HOST_SERVERS; i++)
		for (uint32_t area = 0; area < HOST_AREAS; area++)
			assert_true(storm.host->servers[i].down ||
				    !storm.host->servers[i].keys[area] ||
				    has_loan(i, area));
}

static uint32_t count_health(enum rbx_slab_health health)
{
	uint32_t i, count = 0;

	for (i = 0; i < storm.slabs; i++)
		count += rbx_slab_health(host_slab(storm.host, i)) == health;
	return count;
}

static void judge(void)
{
	struct rbx_census census = host_census(storm.host);
	uint32_t records_count = 0;

	assert_int_equal(census.whole, count_health(RBX_SLAB_WHOLE));
	assert_int_equal(census.blank, count_health(RBX_SLAB_BLANK));
	assert_int_equal(census.dead, count_health(RBX_SLAB_DEAD));
	judge_loans();
	for (uint32_t i = 0; i < storm.slabs; i++)
		judge_slab(i);
	for (uint32_t i = 0; i < storm.slabs; i++)
		records_count += host_slab(storm.host, i)->has_record;
	assert_int_equal(rbx_slab_records_free(&storm.host->flow.map->records),
			 RBX_SLAB_RECORDS - records_count);
}

/* All requests end soon, whatever the servers do. */
static void close_it(void)
{
	struct host *host = storm.host;
	uint64_t end_ns = host->now_ns + HOST_TIMEOUT_NS / 2 + SECOND_NS / 4;

	rbx_upkeep_closes(&host->upkeep);
	storm.io.closes = true;
	for (;;) {
		rest();
		if (!storm_io_busy(&storm.io))
			return;
		host->now_ns += SECOND_NS / 10;
		assert_true(host->now_ns < end_ns);
	}
}

static void calm_down(void)
{
	settle();
	/* Nothing else would have the slabs looked at that were done without then. */
	storm_silence();
	settle();
	judge();
}

/* ---- Seeds ----------------------------------------------------------------------*/

static struct host *make_host(void)
{
	return host_make_shaped(
		&(struct rbx_volume_shape){ .replicas = storm.replicas,
					    .on_demand = storm.mix->on_demand,
					    .checksums = storm.mix->checksums },
		storm.slabs, HOST_SERVERS);
}

static void begin(const struct mix *mix, uint64_t seed)
{
	storm.mix = mix;
	storm.seed = seed;
	storm.down_count = 0;
	rbx_random_seed(&storm.random, seed);
	storm.slabs = 1 + draw(STORM_SLABS_MAX);
	storm.replicas = 1 + draw(RBX_REPLICAS_MAX);
	storm.host = make_host();
	storm.host->reuses_keys = mix->reuses_keys;
	storm_io_begin(&storm.io, storm.host, storm.slabs * (uint64_t)HOST_SLAB_BYTES);
	storm.io.faults_here = mix->faults_here;
	assert_int_equal(rbx_upkeep_borrow_all(&storm.host->upkeep), 0);
}

static void run(const struct mix *mix, uint64_t seed)
{
	uint32_t steps;

	begin(mix, seed);
	steps = STEPS_MIN + draw(STEPS_MAX - STEPS_MIN);
	for (uint32_t i = 0; i < steps; i++)
		step();
	if (mix->closes)
		close_it();
	else
		calm_down();
	host_free(storm.host);
	storm_io_end(&storm.io);
	storm.mix = NULL;
}

static const char *only_mix; /* NULL: all */
static uint64_t only_seed;

static void storm_passes(void **state)
{
	const struct mix *mix = *state;

	if (only_mix) {
		run(mix, only_seed);
		return;
	}
	for (uint64_t seed = 1; seed <= mix->seeds_count; seed++)
		run(mix, seed);
}

/* Which one has failed, if any. */
static int name_seed(void **state)
{
	(void)state;
	if (storm.mix)
		print_error("failed: core_upkeep_storm_test %s %" PRIu64 "\n",
			    storm.mix->name, storm.seed);
	storm.mix = NULL;
	return 0;
}

/* An assertion of the core, which ends the process. */
static void aborted(int signal)
{
	(void)signal;
	(void)name_seed(NULL);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[MIXES] = { 0 };

	if (argc == 3) {
		only_mix = argv[1];
		only_seed = strtoull(argv[2], NULL, 0);
		cmocka_set_test_filter(only_mix);
	}
	for (size_t i = 0; i < MIXES; i++)
		tests[i] = (struct CMUnitTest){
			.name = mixes[i].name,
			.test_func = storm_passes,
			.teardown_func = name_seed,
			.initial_state = (void *)&mixes[i],
		};
	signal(SIGABRT, aborted);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
