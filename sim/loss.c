/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loss.c - worlds in which servers are harmed at any cost, so slabs lose their last replica.
 *
 * Requests to lost data may fail. What is read must still be what the oracle allows: not
 * zeros, and not older data. At the end, when servers have room again, everything is written,
 * and after that nothing may fail any more.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/fail.h"
#include "sim/tally.h"
#include "sim/world.h"

#define WRITE_BYTES (64u << 10)
/*
 * The time for peers to notice that theirs are dead, and for servers that came back to be
 * connected.
 */
#define WRITTEN_NS (120000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (50 * RBX_SIM_MS)

bool rbx_sim_loss_excuses(const struct rbx_sim_client *client,
			  const struct rbx_request *request)
{
	bool is_first_write = client->volume_options.on_demand &&
			      request->op == RBX_WRITE &&
			      request->status == -ENOSPC;

	if (!rbx_sim_world.may_lose ||
	    (request->status != -EIO && !is_first_write))
		return false;
	rbx_sim_tally(RBX_SIM_TALLY_lost_requests, 1);
	return true;
}

struct rewrite {
	struct rbx_sim_client *client;
	uint64_t at;
	int status;
};

static void *write_once(void *arg)
{
	struct rewrite *rewrite = arg;
	struct rbx_sim_client *client = rewrite->client;
	uint32_t length = (uint32_t)RBX_MIN((uint64_t)WRITE_BYTES,
					    client->size_bytes - rewrite->at);
	char *buf = malloc(length);
	uint32_t number;

	if (!buf)
		abort();
	number = rbx_sim_oracle_write(client->oracle, rewrite->at, buf, length);
	rewrite->status = rbx_write(client->volume, buf, length, rewrite->at);
	rbx_sim_oracle_written(client->oracle, rewrite->at, length, number,
			       rewrite->status);
	free(buf);
	return NULL;
}

static void write_all(struct rbx_sim_client *client, void (*offer)(void))
{
	uint64_t until_ns = rbx_sim_now() + WRITTEN_NS;
	struct rewrite rewrite = { .client = client };
	struct rbx_volume_status status;

	while (rewrite.at < client->size_bytes) {
		rbx_sim_on(client->node, write_once, &rewrite);
		if (rewrite.status == 0) {
			rewrite.at += WRITE_BYTES;
			continue;
		}
		if (rbx_sim_now() > until_ns)
			rbx_sim_fail("placed-anew", "client %u: what was lost cannot be written long after all healed: %d",
				     client->index, rewrite.status);
		offer();
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
	rbx_volume_status(client->volume, &status);
	if (status.slabs_lost + status.slabs_holed != 0)
		rbx_sim_fail("placed-anew", "client %u: %u slabs are lost and %u have holes when all was written",
			     client->index, status.slabs_lost,
			     status.slabs_holed);
}

void rbx_sim_loss_repair(void (*offer)(void))
{
	if (!rbx_sim_world.may_lose)
		return;
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		write_all(&rbx_sim_world.clients[i], offer);
}
