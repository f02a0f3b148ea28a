/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rival.c - a client that has the named volume of one that has crashed, and lives on when that one
 * is back and takes the volume over.
 *
 * It has a machine and a small load of its own, and writes to the same oracle. Meanwhile its
 * machine may stand still or be cut off, and the network may be divided: one server can be reached
 * by the rival alone, which reaches no other one. Its requests may fail at any time. But from
 * rbx_sim_rival_fence() on, when the one that is back can read for the first time,
 *
 *	- nothing is read or written by its machine any more, late or not: the device looks
 *	- nothing that it submits from then on succeeds
 *	- a write that succeeds nevertheless, because its end was heard of late, was there then
 *
 * Both may open the volume at the same time. Then the one with the higher epoch has it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/keeper_state.h"
#include "client/named.h"
#include "lib/volume/volume.h"
#include "sim/fail.h"
#include "sim/host/wrap.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

#define REQUESTS 16u
/* The others are for when it has stood still: these may wait for servers that it does not reach. */
#define FIRST_REQUESTS 4u
#define THINK_NS_MAX (60 * RBX_SIM_MS)
#define ALONE_NS_MAX (4000 * RBX_SIM_MS)
/* So long it may take to open the volume before the other one is back. */
#define OPENS_NS_MAX (40000 * RBX_SIM_MS)
#define LOOK_AGAIN_NS (10 * RBX_SIM_MS)
/* In a world of outages it goes on trying for so long (client/keeper_over.c). */
#define LINGERS_NS (20000 * RBX_SIM_MS)
#define ONE_IN_TOGETHER 3u
#define ONE_IN_CUT 3u
#define ONE_IN_EARLY 3u

struct rival {
	struct rbx_sim_client *client; /* in whose place it is; NULL: there is none */
	uint32_t node;
	struct rbx_random random;
	struct rbx_sim_fiber *life, *fate;
	struct rbx_context *ctx;
	struct rbx_volume *volume; /* NULL: not open */
	uint64_t yields_ns; /* the other one may be back */
	bool is_trying; /* to open it */
	bool is_followed; /* the other one is back */
	bool is_asked_for; /* and asks servers for the volume */
	bool is_divided; /* the network, from then on: */
	uint32_t alone; /* the server that the rival alone reaches */
	bool has_stood; /* still, and goes on with requests that wait for nothing */
	bool is_fenced;
	uint64_t lingers_until_ns;
	bool has_ended;
	struct guest {
		struct rbx_request request;
		struct rival *rival;
		bool is_outstanding;
		bool is_late; /* submitted when it was fenced */
		bool is_over; /* and the rival knew it */
		bool was_there; /* the write, when it was fenced */
		uint32_t number;
		uint64_t submitted;
	} guests[REQUESTS];
	char *buffers;
};

static struct rival rivals[RBX_SIM_CLIENTS_MAX];

static struct rival *rival_of(const struct rbx_sim_client *client)
{
	struct rival *rival = &rivals[client->index];

	return rival->client ? rival : NULL;
}

/* ---- Its load -------------------------------------------------------------------------- */

/* What was never written is read without a server, until the rival knows that it is over. */
static bool is_zeros(const struct rbx_request *request)
{
	const char *bytes = request->buf;

	return !bytes[0] && !memcmp(bytes, bytes + 1, request->length_bytes - 1);
}

static void read_check(const struct guest *guest)
{
	const struct rbx_request *request = &guest->request;

	if (guest->is_late && (guest->is_over || !is_zeros(request)))
		rbx_sim_fail("fenced", "the rival of client %u reads what is not its own any more",
			     guest->rival->client->index);
	rbx_sim_oracle_read(guest->rival->client->oracle, request->offset, request->buf,
			    request->length_bytes, guest->submitted);
}

static void write_check(const struct guest *guest)
{
	const struct rival *rival = guest->rival;

	if (guest->request.status == 0 &&
	    (guest->is_late || (rival->is_fenced && !guest->was_there)))
		rbx_sim_fail("fenced", "a write of the rival of client %u succeeds, and the next writer did not find it",
			     rival->client->index);
}

static void done(struct rbx_request *request)
{
	struct guest *guest = request->user;
	struct rival *rival = guest->rival;

	if (!guest->is_outstanding)
		rbx_sim_fail("completed-once", "a request of the rival of client %u completes twice",
			     rival->client->index);
	guest->is_outstanding = false;
	rbx_sim_tally(RBX_SIM_TALLY_former_requests, rival->is_fenced);
	if (request->op == RBX_READ && request->status == 0)
		read_check(guest);
	if (request->op == RBX_WRITE)
		write_check(guest);
	if (request->op == RBX_WRITE && !rival->is_fenced)
		rbx_sim_oracle_written(rival->client->oracle, request->offset,
				       request->length_bytes, guest->number, request->status);
}

/* What it writes when it is fenced is no word of any writer. */
static void fill(struct guest *guest)
{
	struct rbx_sim_oracle *oracle = guest->rival->client->oracle;
	struct rbx_request *request = &guest->request;

	if (request->op == RBX_READ)
		guest->submitted = rbx_sim_oracle_moment(oracle);
	else if (guest->is_late)
		memset(request->buf, 0x55, request->length_bytes);
	else
		guest->number = rbx_sim_oracle_write(oracle, request->offset, request->buf,
						     request->length_bytes);
}

static bool is_over(const struct rbx_volume *volume)
{
	return volume->control.keeper && volume->control.keeper->is_over;
}

static void aim(struct guest *guest)
{
	struct rival *rival = guest->rival;
	const struct rbx_sim_load *load = &rival->client->load;
	struct rbx_request *request = &guest->request;
	/* The client may have made it larger since. */
	uint64_t units = RBX_MIN(rival->client->size_bytes, rbx_volume_size(rival->volume)) /
			 load->unit_bytes;
	uint32_t units_max = (uint32_t)RBX_MIN((uint64_t)load->units_max, units);

	request->op = rbx_random_below(&rival->random, 2) ? RBX_READ : RBX_WRITE;
	request->length_bytes =
		load->unit_bytes * (1 + rbx_random_below(&rival->random, units_max));
	request->offset = load->unit_bytes *
			  rbx_sim_between(&rival->random, 0,
					  units - request->length_bytes / load->unit_bytes);
	request->complete = done;
	request->user = guest;
	guest->is_late = rival->is_fenced;
	guest->is_over = is_over(rival->volume);
	guest->is_outstanding = true;
	fill(guest);
}

/* Returns whether one that was submitted too late has ended, as it has to. */
static bool submit_all(struct rival *rival)
{
	for (uint32_t i = 0; i < (rival->has_stood ? REQUESTS : FIRST_REQUESTS); i++) {
		struct guest *guest = &rival->guests[i];
		struct rbx_request *request = &guest->request;

		if (guest->is_outstanding)
			continue;
		if (guest->is_late && rbx_sim_now() >= rival->lingers_until_ns)
			return true;
		aim(guest);
		while (rbx_submit(rival->volume, &request, 1))
			(void)rbx_wait_room(rival->ctx, 10);
	}
	return false;
}

static void use(struct rival *rival)
{
	while (!rbx_sim_world.stopping && !submit_all(rival))
		rbx_sim_sleep(rbx_sim_between(&rival->random, 0, THINK_NS_MAX));
}

/* ---- Its life -------------------------------------------------------------------------- */

static bool open_once(struct rival *rival)
{
	struct rbx_volume *volume = NULL;
	int err;

	rival->is_trying = true;
	err = rbx_sim_named_open_for(rival->client, rival->ctx, &volume);
	rival->volume = err ? NULL : volume;
	rival->is_trying = false;
	return err == 0;
}

static void open_it(struct rival *rival)
{
	uint64_t until_ns = rbx_sim_now() + OPENS_NS_MAX;

	while (!rival->is_followed && !rbx_sim_world.stopping && rbx_sim_now() < until_ns) {
		if (open_once(rival))
			return;
		rbx_sim_sleep(LOOK_AGAIN_NS);
	}
}

static void *life(void *arg)
{
	struct rival *rival = arg;
	struct rbx_options options = rival->client->options;
	uint64_t yields_ns;

	if (!options.pollers)
		options.pollers = 1;
	if (rbx_open(&rival->ctx, &options))
		rbx_sim_fail("start", "the rival of client %u: %s", rival->client->index,
			     rbx_last_error());
	open_it(rival);
	yields_ns = rbx_sim_now() + rbx_sim_between(&rival->random, 0, ALONE_NS_MAX);
	rival->yields_ns = RBX_MIN(rival->yields_ns, yields_ns);
	if (rival->volume) {
		rbx_sim_tally(RBX_SIM_TALLY_rivals, 1);
		use(rival);
		(void)rbx_volume_close(rival->volume);
		rival->volume = NULL;
	}
	rbx_close(rival->ctx);
	rival->has_ended = true;
	return NULL;
}

bool rbx_sim_rival_start(struct rbx_sim_client *client)
{
	const struct rbx_sim_load *load = &client->load;
	struct rival *rival = &rivals[client->index];
	struct rbx_random random = rival->random;

	if (!client->is_made || rival->client || !rbx_sim_site(RBX_SIM_SITE_rival))
		return false;
	if (!rival->node)
		rbx_sim_random_split(&random, rbx_sim_world.options->seed, "rival", client->index);
	*rival = (struct rival){
		.client = client,
		.node = 1 + rbx_sim_world.servers_count + rbx_sim_world.clients_count +
			client->index,
		.random = random,
		.buffers = malloc((size_t)REQUESTS * load->unit_bytes * load->units_max),
	};
	if (!rival->buffers)
		abort();
	for (uint32_t i = 0; i < REQUESTS; i++) {
		rival->guests[i].rival = rival;
		rival->guests[i].request.buf =
			rival->buffers + (size_t)i * load->unit_bytes * load->units_max;
	}
	rival->yields_ns =
		rbx_sim_now() + (rbx_random_below(&rival->random, ONE_IN_TOGETHER) ?
					 OPENS_NS_MAX :
					 rbx_sim_between(&rival->random, 0, 200 * RBX_SIM_MS));
	rbx_sim_world.fabric->node_fence(rival->node, false);
	rival->life = rbx_sim_spawn(rival->node, life, rival);
	return true;
}

bool rbx_sim_rival_waits(const struct rbx_sim_client *client)
{
	const struct rival *rival = rival_of(client);

	return rival && !rival->is_followed && rbx_sim_now() < rival->yields_ns;
}

static bool has_later_epoch(const struct rbx_named *named)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if (rbx_sim_server_promised(&rbx_sim_world.servers[i], named->record.volume_id) >
		    named->epoch)
			return true;
	return false;
}

/* ---- What happens to it ---------------------------------------------------------------- */

/* One server is reached by the rival alone, and no other one: that of one end of both. */
static void divide(const struct rival *rival, uint32_t node, bool is_cut)
{
	for (uint32_t i = 0; i < rbx_sim_world.servers_count; i++)
		if ((i == rival->alone) == (node == rival->client->node))
			rbx_sim_world.fabric->pair_cut(node, rbx_sim_world.servers[i].node, is_cut);
}

static void heal(const struct rival *rival)
{
	divide(rival, rival->node, false);
	divide(rival, rival->client->node, false);
	rbx_sim_world.fabric->node_cut(rival->node, false);
	rbx_sim_node_stall(rival->node, 0);
}

/* In hundredths. */
static uint64_t part_of_lease(struct rival *rival, uint32_t least, uint32_t most)
{
	uint64_t part_ns = rbx_sim_world.lease_ms * RBX_SIM_MS / 100;

	return rbx_sim_between(&rival->random, least * part_ns, most * part_ns);
}

/* The other one asks for the volume. From now on the rival hears nothing of those that let it
 * in. */
int __wrap_rbx_named_grant(struct rbx_named *named, struct rbx_session *session)
{
	rbx_sim_given_up_asked();
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++) {
		struct rival *rival = &rivals[i];

		if (!rival->client || rival->client->node != rbx_sim_node() ||
		    !rival->is_followed || rival->is_asked_for)
			continue;
		rival->is_asked_for = true;
		if (rival->is_divided)
			divide(rival, rival->node, true);
	}
	return __real_rbx_named_grant(named, session);
}

static void wait_for_grant(const struct rival *rival)
{
	while (!rbx_sim_world.stopping && !rival->is_asked_for && !rival->has_ended)
		rbx_sim_sleep(LOOK_AGAIN_NS);
}

/* Most often about when it would end by itself, until the others would have ended its sessions. */
static void stand_still(struct rival *rival)
{
	bool is_late = rbx_random_below(&rival->random, ONE_IN_EARLY);
	uint64_t first_ns = is_late ? part_of_lease(rival, 55, 76) : part_of_lease(rival, 0, 60);
	uint64_t cut_ns = part_of_lease(rival, 0, 50);

	if (rbx_random_below(&rival->random, ONE_IN_CUT) == 0) {
		rbx_sim_sleep(first_ns);
		rbx_sim_world.fabric->node_cut(rival->node, true);
		rbx_sim_sleep(cut_ns);
		rbx_sim_world.fabric->node_cut(rival->node, false);
		first_ns = 0;
	}
	rbx_sim_sleep(first_ns);
	rival->has_stood = true;
	if (!rbx_sim_world.stopping)
		rbx_sim_node_stall(rival->node,
				   rbx_sim_now() + (is_late ?
							    part_of_lease(rival, 75, 100) :
							    part_of_lease(rival, 0, 175)));
}

static void *fate(void *arg)
{
	struct rival *rival = arg;

	wait_for_grant(rival);
	if (rbx_random_below(&rival->random, 4))
		stand_still(rival);
	rbx_sim_sleep(part_of_lease(rival, 0, 200));
	heal(rival);
	return NULL;
}

/* The other one is back, and is about to open the volume. */
void rbx_sim_rival_followed(const struct rbx_sim_client *client)
{
	struct rival *rival = rival_of(client);

	if (!rival || rival->is_followed)
		return;
	rival->is_followed = true;
	rival->alone = rbx_random_below(&rival->random, rbx_sim_world.servers_count);
	rival->is_divided = rbx_random_below(&rival->random, 2) && rbx_sim_world.servers_count > 2;
	if (rival->is_divided)
		divide(rival, client->node, true);
	rival->fate = rbx_sim_spawn(0, fate, rival);
}

/* ---- When the other one has it ------------------------------------------------------------ */

static bool is_there(const struct rbx_sim_client *client, const struct guest *guest)
{
	const struct rbx_volume_map *map = client->volume->control.flow.map;
	const struct rbx_request *request = &guest->request;
	uint64_t slab_bytes = 1ull << map->shape.slab_shift;
	uint64_t at = request->offset, end = at + request->length_bytes;

	for (; at < end; at += RBX_SIM_UNIT_BYTES) {
		const struct rbx_slab *slab =
			rbx_slab_at(&map->shape, (uint32_t)(at / slab_bytes));
		uint64_t addr;

		if (!slab->read_mask)
			return false;
		addr = rbx_replica_addr(
			rbx_slab_replica(slab, (uint32_t)__builtin_ctz(slab->read_mask)));
		if (!rbx_sim_oracle_may_follow(client->oracle, at,
					       (void *)(uintptr_t)(addr + at % slab_bytes),
					       guest->number))
			return false;
	}
	return true;
}

static void guest_fence(const struct rbx_sim_client *client, struct guest *guest)
{
	const struct rbx_request *request = &guest->request;

	if (!guest->is_outstanding || request->op == RBX_READ)
		return;
	guest->was_there = is_there(client, guest);
	rbx_sim_oracle_written(client->oracle, request->offset, request->length_bytes,
			       guest->number, -ECANCELED);
}

int rbx_sim_rival_fence(struct rbx_sim_client *client)
{
	struct rival *rival = rival_of(client);

	if (!rival || rival->is_fenced || rival->has_ended)
		return 0;
	while (rival->is_trying)
		rbx_sim_sleep(LOOK_AGAIN_NS);
	if (has_later_epoch(client->volume->control.named))
		return -EAGAIN;
	rival->is_fenced = true;
	if (rbx_sim_world.may_fail)
		rival->lingers_until_ns = rbx_sim_now() + LINGERS_NS;
	rbx_sim_tally(RBX_SIM_TALLY_formers, rival->volume != NULL);
	rbx_sim_world.fabric->node_fence(rival->node, true);
	for (uint32_t i = 0; i < REQUESTS; i++)
		guest_fence(client, &rival->guests[i]);
	RBX_SIM_TRACE(rival->node, "fenced", "client", client->index, "open", rival->volume != NULL);
	return 0;
}

uint64_t rbx_sim_rival_oldest(const struct rbx_sim_client *client)
{
	const struct rival *rival = rival_of(client);
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; rival && i < REQUESTS; i++) {
		const struct guest *guest = &rival->guests[i];

		if (guest->is_outstanding && guest->request.op == RBX_READ)
			oldest = RBX_MIN(oldest, guest->submitted);
	}
	return oldest;
}

/* ---- The end ---------------------------------------------------------------------------- */

static void end(struct rival *rival)
{
	if (rival->fate)
		(void)rbx_sim_join(rival->fate);
	(void)rbx_sim_join(rival->life);
	free(rival->buffers);
	rival->client = NULL;
}

void rbx_sim_rivals_look(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rivals[i].client && rivals[i].has_ended)
			end(&rivals[i]);
}

void rbx_sim_rivals_heal(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rivals[i].client)
			heal(&rivals[i]);
}

void rbx_sim_rivals_end(void)
{
	for (uint32_t i = 0; i < rbx_sim_world.clients_count; i++)
		if (rivals[i].client)
			end(&rivals[i]);
}
