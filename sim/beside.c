/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beside.c - a program that only reads the named volume of a client, beside it.
 *
 * It has a machine of its own, and opens and closes the volume again and again, whoever has it
 * open meanwhile. Its machine stands still at times, or does not reach some of the servers, while
 * these are harmed as in any world. Its reads may fail. But what one returns is what was
 * acknowledged RBX_READ_ONLY_LAG_MS before it began, or came later: the oracle of the client says
 * what that is. When all has healed, and so long after the last write, it reads all of the volume,
 * and that may not fail.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/tally.h"
#include "sim/world.h"

#define THREADS 4u
#define READS_MAX 200u
#define UNITS_MAX 8u
#define THINK_NS_MAX (30 * RBX_SIM_MS)
#define AWAY_NS_MAX (6000 * RBX_SIM_MS)
#define PAUSE_NS_MAX (4000 * RBX_SIM_MS)
#define OPEN_AGAIN_NS (100 * RBX_SIM_MS)
/* Its clock may be off. */
#define LAG_NS (RBX_READ_ONLY_LAG_MS * RBX_SIM_MS / 1000 * (1000 + 2 * RBX_SIM_SKEW_MAX / 1000))
#define MOMENTS 4096u
#define MOMENT_NS (2 * RBX_SIM_MS)

struct beside {
	struct rbx_sim_client *client; /* NULL: there is none */
	uint32_t node;
	struct rbx_random random, fate_random;
	struct rbx_sim_fiber *life, *fate, *clock;
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	/* Which moment of the oracle it was, each few milliseconds: a ring. */
	struct {
		uint64_t at_ns, moment;
	} moments[MOMENTS];
	uint32_t moments_count;
	uint64_t submitted[THREADS]; /* of the read under way; UINT64_MAX: none is */
};

static struct beside besides[RBX_SIM_CLIENTS_MAX];

/* ---- What it has to see --------------------------------------------------------------------- */

static void *clock_main(void *arg)
{
	struct beside *beside = arg;

	while (beside->client) {
		uint32_t at = beside->moments_count++ % MOMENTS;

		beside->moments[at].at_ns = rbx_sim_now();
		beside->moments[at].moment = rbx_sim_oracle_moment(beside->client->oracle);
		rbx_sim_sleep(MOMENT_NS);
	}
	return NULL;
}

/* The latest one that is so old. */
static uint64_t moment_to_see(const struct beside *beside)
{
	uint32_t i, count = RBX_MIN(beside->moments_count, MOMENTS);

	for (i = 1; i <= count; i++) {
		uint32_t at = (beside->moments_count - i) % MOMENTS;

		if (beside->moments[at].at_ns + LAG_NS <= rbx_sim_now())
			return beside->moments[at].moment;
	}
	return 0;
}

uint64_t rbx_sim_beside_oldest(const struct rbx_sim_client *client)
{
	const struct beside *beside = &besides[client->index];
	uint64_t oldest;

	if (!beside->client)
		return UINT64_MAX;
	oldest = moment_to_see(beside);
	for (uint32_t i = 0; i < THREADS; i++)
		oldest = RBX_MIN(oldest, beside->submitted[i]);
	return oldest;
}

/* ---- Its load -------------------------------------------------------------------------------- */

static void read_one(struct beside *beside, uint32_t thread, char *buf)
{
	struct rbx_sim_client *client = beside->client;
	uint32_t unit = client->load.unit_bytes;
	uint64_t units = RBX_MIN(client->size_bytes, rbx_volume_size(beside->volume)) / unit;
	uint32_t length = unit * (1 + rbx_random_below(&beside->random,
						       (uint32_t)RBX_MIN(units, UNITS_MAX)));
	uint64_t offset = unit * rbx_sim_between(&beside->random, 0, units - length / unit);
	int err;

	beside->submitted[thread] = moment_to_see(beside);
	err = rbx_read(beside->volume, buf, length, offset);
	if (!err)
		rbx_sim_oracle_read(client->oracle, offset, buf, length,
				    beside->submitted[thread]);
	else if (err != -EIO)
		rbx_sim_fail("survives", "a reader beside client %u: %s", client->index,
			     rbx_last_error());
	rbx_sim_tally(err ? RBX_SIM_TALLY_beside_failed : RBX_SIM_TALLY_beside_reads, 1);
	beside->submitted[thread] = UINT64_MAX;
}

struct thread {
	struct beside *beside;
	uint32_t index;
	uint32_t reads;
};

static void *thread_main(void *arg)
{
	struct thread *thread = arg;
	char *buf = malloc(UNITS_MAX * RBX_PAGE_BYTES);

	if (!buf)
		abort();
	for (uint32_t i = 0; i < thread->reads && !rbx_sim_world.stopping; i++) {
		read_one(thread->beside, thread->index, buf);
		rbx_sim_sleep(rbx_sim_between(&thread->beside->random, 0, THINK_NS_MAX));
	}
	free(buf);
	return NULL;
}

static void use(struct beside *beside)
{
	struct rbx_sim_fiber *fibers[THREADS];
	struct thread threads[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){
			.beside = beside,
			.index = i,
			.reads = rbx_random_below(&beside->random, READS_MAX),
		};
		fibers[i] = rbx_sim_spawn(beside->node, thread_main, &threads[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		(void)rbx_sim_join(fibers[i]);
}

/* ---- Its life -------------------------------------------------------------------------------- */

static bool open_once(struct beside *beside)
{
	beside->volume = NULL;
	return rbx_sim_named_open_beside(beside->client, beside->ctx, &beside->volume) == 0;
}

static void *life(void *arg)
{
	struct beside *beside = arg;
	struct rbx_options options = beside->client->options;

	if (!options.pollers)
		options.pollers = 1;
	if (rbx_open(&beside->ctx, &options))
		rbx_sim_fail("start", "a reader beside client %u: %s", beside->client->index,
			     rbx_last_error());
	while (!rbx_sim_world.stopping) {
		if (!open_once(beside)) {
			rbx_sim_sleep(OPEN_AGAIN_NS);
			continue;
		}
		use(beside);
		(void)rbx_volume_close(beside->volume);
	}
	return NULL;
}

static void apart(const struct beside *beside, uint64_t servers, bool is_cut)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (servers >> i & 1)
			rbx_sim_world.fabric->pair_cut(beside->node, rbx_sim_world.servers[i].node,
						       is_cut);
}

static void *fate(void *arg)
{
	struct beside *beside = arg;
	struct rbx_random *random = &beside->fate_random;

	while (!rbx_sim_world.stopping) {
		uint64_t servers = rbx_sim_between(random, 0, UINT32_MAX);
		uint64_t for_ns = rbx_sim_between(random, 0, AWAY_NS_MAX);

		rbx_sim_sleep(rbx_sim_between(random, 0, PAUSE_NS_MAX));
		if (rbx_random_below(random, 2)) {
			rbx_sim_node_stall(beside->node, rbx_sim_now() + for_ns);
			continue;
		}
		apart(beside, servers, true);
		rbx_sim_sleep(for_ns);
		apart(beside, servers, false);
	}
	rbx_sim_node_stall(beside->node, 0);
	return NULL;
}

void rbx_sim_besides_start(void)
{
	for (uint32_t i = 0; rbx_sim_world.has_readers && i < rbx_sim_world.clients_count; i++) {
		struct beside *beside = &besides[i];

		beside->client = &rbx_sim_world.clients[i];
		beside->node =
			1 + rbx_sim_world.servers_count + 2 * rbx_sim_world.clients_count + i;
		for (uint32_t j = 0; j < THREADS; j++)
			beside->submitted[j] = UINT64_MAX;
		rbx_sim_random_split(&beside->random, rbx_sim_world.options->seed, "beside", i);
		rbx_sim_random_split(&beside->fate_random, rbx_sim_world.options->seed,
				     "beside-fate", i);
		beside->clock = rbx_sim_spawn(0, clock_main, beside);
		beside->fate = rbx_sim_spawn(0, fate, beside);
		beside->life = rbx_sim_spawn(beside->node, life, beside);
	}
}

/* ---- The end --------------------------------------------------------------------------------- */

void rbx_sim_besides_rest(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		if (!besides[i].client)
			continue;
		(void)rbx_sim_join(besides[i].fate);
		(void)rbx_sim_join(besides[i].life);
	}
}

static void *read_all(void *arg)
{
	struct beside *beside = arg;
	struct rbx_sim_client *client = beside->client;
	uint32_t bytes = UNITS_MAX * RBX_PAGE_BYTES;
	char *buf = malloc(bytes);

	if (!buf)
		abort();
	if (!open_once(beside))
		rbx_sim_fail("survives", "a reader beside client %u cannot open its volume in the end: %s",
			     client->index, rbx_last_error());
	rbx_sim_sleep(LAG_NS + MOMENT_NS);
	for (uint64_t at = 0; at < client->size_bytes; at += bytes) {
		uint32_t length = (uint32_t)RBX_MIN((uint64_t)bytes, client->size_bytes - at);
		uint64_t moment = moment_to_see(beside);

		if (rbx_read(beside->volume, buf, length, at))
			rbx_sim_fail("survives", "a reader beside client %u in the end: %s",
				     client->index, rbx_last_error());
		rbx_sim_oracle_read(client->oracle, at, buf, length, moment);
	}
	free(buf);
	(void)rbx_volume_close(beside->volume);
	rbx_close(beside->ctx);
	return NULL;
}

void rbx_sim_beside_end(struct rbx_sim_client *client)
{
	struct beside *beside = &besides[client->index];

	if (!beside->client)
		return;
	rbx_sim_on(beside->node, read_all, beside);
	beside->client = NULL;
	(void)rbx_sim_join(beside->clock);
}
