/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * visit.c - short lives of a second volume beside a client's own: it is opened, written and
 * read everywhere, and closed with requests outstanding. They have to succeed before it is
 * closed, each once, with what the oracle of that volume allows.
 */
#include <stdlib.h>

#include "core/limits.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/host/wrap.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define REQUESTS 16u
#define ROUNDS_MAX 16u
#define UNITS_MAX 16u
#define PAUSE_NS_MAX (3000 * RBX_SIM_MS)

struct visit {
	struct rbx_sim_client *client;
	struct rbx_sim_oracle *oracle;
	uint64_t size_bytes;
	struct guest {
		struct rbx_request request;
		struct visit *visit;
		bool is_outstanding;
		uint32_t number;
		uint64_t submitted;
	} guests[REQUESTS];
	uint32_t outstanding_count;
	bool is_closing;
};

/* A write that waits for memory when the volume is closed may end so. */
static bool closing_excuses(const struct visit *visit,
			    const struct rbx_request *request)
{
	return visit->is_closing && request->op == RBX_WRITE &&
	       visit->client->volume_options.on_demand &&
	       request->status == -ECANCELED;
}

static void done(struct rbx_request *request)
{
	struct guest *guest = request->user;
	struct visit *visit = guest->visit;

	if (!guest->is_outstanding)
		rbx_sim_fail("completed-once", "client %u: a request of a visit completes twice",
			     visit->client->index);
	guest->is_outstanding = false;
	visit->outstanding_count--;
	if (request->status != 0 && !closing_excuses(visit, request) &&
	    !rbx_sim_memory_excuses(request) &&
	    !rbx_sim_discards_excuse(visit->client, request) &&
	    !rbx_sim_loss_excuses(visit->client, request))
		rbx_sim_fail("survives", "client %u: a request of a visit ends with %d",
			     visit->client->index, request->status);
	if (request->op == RBX_READ && request->status == 0)
		rbx_sim_oracle_read(visit->oracle, request->offset, request->buf,
				    request->length_bytes, guest->submitted);
	else if (request->op == RBX_WRITE)
		rbx_sim_oracle_written(visit->oracle, request->offset,
				       request->length_bytes, guest->number,
				       request->status);
}

static void aim(struct visit *visit, struct guest *guest)
{
	struct rbx_random *random = &visit->client->visit_random;
	struct rbx_request *request = &guest->request;
	uint32_t unit = RBX_PAGE_BYTES;
	uint64_t units = visit->size_bytes / unit;

	request->op = rbx_random_below(random, 2) ? RBX_READ : RBX_WRITE;
	request->length_bytes = unit * (1 + rbx_random_below(random, UNITS_MAX));
	request->offset =
		unit * rbx_sim_between(random, 0,
				       units - request->length_bytes / unit);
	request->complete = done;
	request->user = guest;
	if (request->op == RBX_READ)
		guest->submitted = rbx_sim_oracle_moment(visit->oracle);
	else
		guest->number = rbx_sim_oracle_write(visit->oracle,
						     request->offset,
						     request->buf,
						     request->length_bytes);
	guest->is_outstanding = true;
	visit->outstanding_count++;
}

/* One after another, without waiting for any end. */
static void use(struct visit *visit, struct rbx_volume *volume)
{
	uint32_t rounds =
		1 + rbx_random_below(&visit->client->visit_random, ROUNDS_MAX);

	for (uint32_t i = 0; i < rounds * REQUESTS; i++) {
		struct guest *guest = &visit->guests[i % REQUESTS];
		struct rbx_request *request = &guest->request;

		if (guest->is_outstanding)
			continue;
		aim(visit, guest);
		while (rbx_submit(volume, &request, 1))
			(void)rbx_wait_room(visit->client->ctx, 10);
	}
}

/* A closed volume has nothing left to lose. Its memory is freed before the close returns, so
 * harm.c and first_copies.c must not look at it from here on. */
void __wrap_rbx_upkeep_abandon(struct rbx_upkeep *upkeep)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rbx_sim_client *client = &rbx_sim_world.clients[i];

		if (client->visited &&
		    &client->visited->control.upkeep == upkeep)
			client->visited = NULL;
	}
	__real_rbx_upkeep_abandon(upkeep);
}

static void visit_once(struct rbx_sim_client *client)
{
	struct rbx_volume_options options = client->volume_options;
	struct visit *visit = calloc(1, sizeof(*visit));
	char *buffers = malloc(REQUESTS * UNITS_MAX * RBX_PAGE_BYTES);
	char servers[RBX_SIM_SERVERS_TEXT];
	uint64_t bytes = rbx_sim_world.slab_bytes *
			 (1 + rbx_random_below(&client->visit_random, 2));

	if (!visit || !buffers)
		abort();
	options.size_max = 0;
	rbx_sim_servers_name(servers, false);
	if (rbx_volume_open(client->ctx, &client->visited, servers, bytes,
			    &options)) {
		client->visited = NULL; /* not at this time */
		goto out_free;
	}
	visit->client = client;
	visit->size_bytes = bytes;
	visit->oracle = rbx_sim_oracle_make(
		RBX_SIM_VISITS_FIRST + client->index, bytes);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		visit->guests[i].visit = visit;
		visit->guests[i].request.buf =
			buffers + i * UNITS_MAX * RBX_PAGE_BYTES;
	}
	use(visit, client->visited);
	rbx_sim_tally(RBX_SIM_TALLY_closed_in_use,
		      visit->outstanding_count != 0);
	visit->is_closing = true;
	rbx_volume_close(client->visited); /* sets it to NULL, see above */
	if (visit->outstanding_count != 0)
		rbx_sim_fail("completed-once", "client %u: a volume is closed with %u requests outstanding",
			     client->index, visit->outstanding_count);
	rbx_sim_oracle_free(visit->oracle);
out_free:
	free(buffers);
	free(visit);
}

static void *visit_main(void *arg)
{
	struct rbx_sim_client *client = arg;

	while (!rbx_sim_world.stopping) {
		rbx_sim_sleep(rbx_sim_between(&client->visit_random, 0,
					      PAUSE_NS_MAX));
		if (!rbx_sim_world.stopping)
			visit_once(client);
	}
	return NULL;
}

void rbx_sim_visits_start(struct rbx_sim_client *client)
{
	rbx_sim_random_split(&client->visit_random, rbx_sim_world.options->seed,
			     "visit", client->index);
	client->visits = NULL;
	if (client->load.has_flags && !rbx_sim_world.may_fail)
		client->visits = rbx_sim_spawn(client->node, visit_main, client);
}

void rbx_sim_visits_join(struct rbx_sim_client *client)
{
	if (client->visits)
		(void)rbx_sim_join(client->visits);
	client->visits = NULL;
}
