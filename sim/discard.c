/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * discard.c - volumes whose slabs get memory on demand: under load a slab is discarded from
 * time to time, and reads as zeros until it is written to.
 *
 * The first write to a slab needs a server that lends. It may fail only if servers are short
 * of memory or leave: it waits for a server that is silent.
 */
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define ONE_IN_ON_DEMAND 3u
#define SLABS_MAX 2u
#define PAUSE_NS_MAX (1000 * RBX_SIM_MS)

void rbx_sim_discards_draw(struct rbx_sim_client *client)
{
	rbx_sim_random_split(&client->discard_random,
			     rbx_sim_world.options->seed, "discard",
			     client->index);
	client->volume_options.on_demand =
		rbx_random_below(&client->discard_random, ONE_IN_ON_DEMAND) ==
		0;
}

/* Some slabs, and a part of their neighbours, which must stay. */
static void discard_once(struct rbx_sim_client *client)
{
	struct rbx_random *random = &client->discard_random;
	uint64_t slab_bytes = rbx_sim_world.slab_bytes;
	uint32_t slabs = (uint32_t)(client->size_bytes / slab_bytes);
	uint32_t first = rbx_random_below(random, slabs);
	uint32_t count = 1 + rbx_random_below(random, RBX_MIN(SLABS_MAX,
							      slabs - first));
	uint64_t offset = first * slab_bytes, length = count * slab_bytes;
	uint64_t before = first == 0 ? 0 : rbx_random_below(random, 4096);
	uint64_t after = first + count == slabs ?
				 0 :
				 rbx_random_below(random, 4096);
	uint32_t number =
		rbx_sim_oracle_discard(client->oracle, offset, length);

	RBX_SIM_TRACE(client->node, "discard", "slab", first, "of", count);
	if (rbx_volume_discard(client->volume, offset - before,
			       before + length + after))
		rbx_sim_fail("survives", "client %u cannot discard: %s",
			     client->index, rbx_last_error());
	rbx_sim_oracle_written(client->oracle, offset, length, number, 0);
	rbx_sim_tally(RBX_SIM_TALLY_discards, count);
}

static void *discard_main(void *arg)
{
	struct rbx_sim_client *client = arg;

	while (!rbx_sim_world.stopping) {
		rbx_sim_sleep(rbx_sim_between(&client->discard_random, 0,
					      PAUSE_NS_MAX));
		if (!rbx_sim_world.stopping)
			discard_once(client);
	}
	return NULL;
}

void rbx_sim_discards_start(struct rbx_sim_client *client)
{
	client->discards = NULL;
	if (client->volume_options.on_demand)
		client->discards =
			rbx_sim_spawn(client->node, discard_main, client);
}

void rbx_sim_discards_join(struct rbx_sim_client *client)
{
	if (client->discards)
		(void)rbx_sim_join(client->discards);
	client->discards = NULL;
}

bool rbx_sim_discards_excuse(const struct rbx_sim_client *client,
			     const struct rbx_request *request)
{
	static const enum rbx_sim_site why[] = {
		RBX_SIM_SITE_memory_shortage,
		RBX_SIM_SITE_pressure,
		RBX_SIM_SITE_server_drain,
	};
	uint64_t fired = 0;

	if (!(client->volume_options.on_demand || rbx_sim_world.is_named) ||
	    request->op != RBX_WRITE || request->status != -ENOSPC)
		return false;
	for (uint32_t i = 0; i < sizeof(why) / sizeof(why[0]); i++)
		fired += rbx_sim_site_fired(why[i]);
	return fired != 0;
}
