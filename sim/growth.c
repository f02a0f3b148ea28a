/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * growth.c - a named volume becomes larger while its program has it open.
 *
 * A thread of the client asks for that, and the load goes to what is new as soon as the call has
 * succeeded. Until it has, the volume has the one size or the other, also if the client dies: the
 * next one finds out which. A call that fails is made again with the same size. If the volume is
 * reserved, each slab has memory as soon as the volume has that size.
 */
#include "include/rdmabox/named_volume.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define SLABS_MAX 2u
#define LEAST_NS UINT64_C(2000)
#define DOUBLINGS_MAX 10u
#define SETTLES_NS (120000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (50 * RBX_SIM_MS)

uint64_t rbx_sim_growth_most(const struct rbx_sim_client *client)
{
	return client->size_bytes * (rbx_sim_site_chance(RBX_SIM_SITE_volume_grows) ? 2 : 1);
}

void rbx_sim_growth_memory(const struct rbx_sim_client *client)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	uint32_t blank = rbx_attention_count(&map->attention, RBX_SLAB_BLANK);

	if (!client->is_reserved)
		return;
	rbx_sim_tally(RBX_SIM_TALLY_reserved, 1);
	if (blank)
		rbx_sim_fail("reserved", "client %u: volume of %u slabs has no memory for %u",
			     client->index, rbx_volume_map_slabs(map), blank);
}

static void *grow(void *arg)
{
	struct rbx_sim_client *client = arg;
	int err = rbx_volume_extend(client->volume, client->wanted_bytes);

	RBX_SIM_TRACE(client->node, "grown", "bytes", client->wanted_bytes, "failed", err != 0);
	if (!err) {
		rbx_sim_growth_memory(client);
		client->size_bytes = client->wanted_bytes;
		rbx_sim_tally(RBX_SIM_TALLY_grown, 1);
	}
	client->is_growing = false;
	return NULL;
}

/* From a part of what it takes to much more. */
static void wait_a_little(void)
{
	uint64_t times = rbx_sim_site_draw(RBX_SIM_SITE_volume_grows, 0, DOUBLINGS_MAX);
	uint64_t most_ns = LEAST_NS << times;

	rbx_sim_sleep(rbx_sim_site_draw(RBX_SIM_SITE_volume_grows, 0, most_ns));
}

bool rbx_sim_growth_begins(struct rbx_sim_client *client)
{
	uint64_t most_bytes = client->volume_options.size_max, more_bytes;
	uint64_t pages_max = SLABS_MAX * rbx_sim_world.slab_bytes / RBX_PAGE_BYTES;

	if (!client->is_open || client->is_growing || client->size_bytes >= most_bytes ||
	    !rbx_sim_site(RBX_SIM_SITE_volume_grows))
		return client->is_growing;
	rbx_sim_growth_join(client);
	if (client->wanted_bytes <= client->size_bytes) {
		more_bytes = RBX_PAGE_BYTES *
			     rbx_sim_site_draw(RBX_SIM_SITE_volume_grows, 1, pages_max);
		client->wanted_bytes = RBX_MIN(client->size_bytes + more_bytes, most_bytes);
	}
	client->is_growing = true;
	client->grows = rbx_sim_spawn(client->node, grow, client);
	wait_a_little();
	return true;
}

void rbx_sim_growth_join(struct rbx_sim_client *client)
{
	if (client->grows)
		(void)rbx_sim_join(client->grows);
	client->grows = NULL;
}

/* With one replica nobody asks the servers again by himself, and they may not agree. So what has
 * failed is tried once more, as a program would. */
void rbx_sim_growth_settles(struct rbx_sim_client *client)
{
	uint64_t until_ns = rbx_sim_now() + SETTLES_NS;

	while (!rbx_sim_named_is_said(client->volume) && !client->volume->control.keeper) {
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("grows", "client %u: its volume does not grow long after all healed",
				     client->index);
		rbx_sim_on(client->node, grow, client);
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}

void rbx_sim_growth_opened(struct rbx_sim_client *client)
{
	uint64_t size_bytes = rbx_volume_size(client->volume);

	if (size_bytes == client->size_bytes)
		return;
	if (size_bytes != client->wanted_bytes)
		rbx_sim_fail("size", "client %u: volume of %llu bytes has %llu, and was to have %llu",
			     client->index, (unsigned long long)client->size_bytes,
			     (unsigned long long)size_bytes,
			     (unsigned long long)client->wanted_bytes);
	client->size_bytes = size_bytes;
	rbx_sim_tally(RBX_SIM_TALLY_grown_unheard, 1);
}
