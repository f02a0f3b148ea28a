/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client.c - a client of the simulated world: a context, a volume and how both are used, all
 * drawn from the seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/options.h"
#include "lib/volume/volume.h"
#include "sim/descriptors.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"
#include "sim/world.h"

/* Draws one of the words of "a b c". */
static void draw_option(struct rbx_sim_client *client, const char *key,
			const char *words)
{
	char text[64], *word = text;
	uint32_t count = 1, chosen;

	for (const char *c = words; *c; c++)
		count += *c == ' ';
	chosen = rbx_random_below(&client->random, count);
	for (; chosen; chosen--)
		words = strchr(words, ' ') + 1;
	word += sprintf(text, "%s=", key);
	snprintf(word, sizeof(text) - (size_t)(word - text), "%.*s",
		 (int)strcspn(words, " "), words);
	if (rbx_options_set(&client->options, text))
		rbx_sim_fail("start", "%s", rbx_last_error());
}

static void draw_options(struct rbx_sim_client *client)
{
	rbx_options_defaults(&client->options);
	client->options.insecure = 1;
	strcpy(client->options.tune_file, "none");
	draw_option(client, "mode", "single doorbell merge hybrid hybrid hybrid");
	draw_option(client, "polling",
		    "event event-batch:4 hybrid adaptive:2 adaptive:8:4");
	draw_option(client, "fragment_bytes", "4K 8K 16K 64K");
	draw_option(client, "window", "off 64K 128K 1M aimd delay auto auto");
	draw_option(client, "window_work_requests", "0 0 1 4 64");
	draw_option(client, "queue_pairs", "1 1 2 4");
	/* At most so many pollers, if each queue pair has one. */
	if (rbx_sim_world.servers_count * client->options.queue_pairs >
	    RBX_POLLER_SLOTS)
		client->options.queue_pairs = 1;
	draw_option(client, "pollers", "0 1 1 2 peer queue_pair");
	draw_option(client, "requests_max", "64 128 1024");
	draw_option(client, "buffers", "staging direct auto");
	draw_option(client, "peer_timeout_ms", "1000 2000 5000");
}

/* What may be in flight: as the option says, or the maximum of a policy. */
static uint64_t window_bytes(const struct rbx_options *options)
{
	int64_t bytes;

	if (!strcmp(options->window, "off"))
		return UINT64_MAX;
	return rbx_number_parse(options->window, &bytes) ?
		       (uint64_t)bytes :
		       RBX_WINDOW_BYTES_MAX;
}

static void draw_load(struct rbx_sim_client *client)
{
	struct rbx_random *random = &client->random;
	struct rbx_sim_load *load = &client->load;

	load->threads_count = 1 + rbx_random_below(random, RBX_SIM_THREADS_MAX);
	load->depth_count = 1u << rbx_random_below(random, 6);
	load->read_percent = 10 + 20 * rbx_random_below(random, 5);
	load->unit_bytes = client->volume_options.checksums ?
				   RBX_PAGE_BYTES :
				   RBX_SIM_UNIT_BYTES;
	load->units_max = 1u << rbx_random_below(random, 6);
	load->hot_bytes = rbx_random_below(random, 2) ? 16 << 10 : 0;
	load->think_ns_max = (40u << 3 * rbx_random_below(random, 3)) * RBX_SIM_MS;
	load->has_flags = true;
}

void rbx_sim_client_draw(struct rbx_sim_client *client, uint32_t index)
{
	struct rbx_random *random = &client->random;

	rbx_sim_random_split(random, rbx_sim_world.options->seed, "client",
			     index);
	client->index = index;
	client->node = 1 + rbx_sim_world.servers_count + index;
	rbx_volume_options_defaults(&client->volume_options);
	client->volume_options.replicas =
		rbx_sim_world.one_replica ?
			1 :
			RBX_MIN(2 + rbx_random_below(random,
						     RBX_REPLICAS_MAX - 1),
				rbx_sim_world.servers_count);
	client->volume_options.checksums = rbx_random_below(random, 2);
	/* A page that is torn on all replicas cannot be read, and that is correct. */
	if (client->volume_options.checksums)
		rbx_sim_site_force(RBX_SIM_SITE_bad_memory_late, 0);
	client->size_bytes =
		rbx_sim_world.slab_bytes * (1 + rbx_random_below(random, 8));
	if (rbx_sim_world.is_named) {
		client->volume_options.size_max = rbx_sim_growth_most(client);
		client->is_reserved = rbx_sim_site(RBX_SIM_SITE_volume_reserved);
	}
	draw_options(client);
	draw_load(client);
	rbx_sim_discards_draw(client);
}

static const char *pollers_of(const struct rbx_options *options)
{
	static char text[16];

	if (options->pollers == RBX_POLLERS_PEER)
		return "peer";
	if (options->pollers == RBX_POLLERS_QUEUE_PAIR)
		return "queue_pair";
	snprintf(text, sizeof(text), "%u", options->pollers);
	return text;
}

void rbx_sim_client_print(const struct rbx_sim_client *client)
{
	const struct rbx_options *options = &client->options;
	const struct rbx_sim_load *load = &client->load;

	printf("client %u: replicas=%u checksums=%u on_demand=%u reserved=%u bytes=%llu mode=%s polling=%s fragment=%u window=%s,%u queue_pairs=%u pollers=%s requests_max=%u buffers=%s timeout_ms=%u threads=%u depth=%u read=%u%% unit=%u*%u hot=%llu\n",
	       client->index, client->volume_options.replicas,
	       client->volume_options.checksums,
	       client->volume_options.on_demand, client->is_reserved,
	       (unsigned long long)client->size_bytes, options->mode,
	       options->polling, options->fragment_bytes, options->window,
	       options->window_work_requests, options->queue_pairs,
	       pollers_of(options), options->requests_max, options->buffers,
	       options->peer_timeout_ms, load->threads_count,
	       load->depth_count, load->read_percent, load->unit_bytes,
	       load->units_max, (unsigned long long)load->hot_bytes);
}

static void told(struct rbx_volume *volume, const struct rbx_event *event,
		 void *user)
{
	struct rbx_sim_client *client = user;

	if (event->kind == RBX_EVENT_DATA_LOST)
		rbx_sim_tally(RBX_SIM_TALLY_slabs_lost, event->slab_count);
	if (event->kind == RBX_EVENT_DATA_LOST && !rbx_sim_world.may_lose &&
	    !rbx_sim_world.may_fail)
		rbx_sim_fail("survives", "client %u: the last replica of %u slabs is lost",
			     client->index, event->slab_count);
	if (event->kind == RBX_EVENT_REBUILD_DONE)
		rbx_sim_tally(RBX_SIM_TALLY_rebuilds, 1);
	if (event->kind == RBX_EVENT_SERVER_ADDED)
		rbx_sim_named_returned(volume);
	RBX_SIM_TRACE(client->node, "volume-event", "kind", event->kind,
		      "slabs", event->slab_count);
}

/* If no server answers, open is tried again so many times. */
#define OPEN_TRIES 3000u
#define OPEN_PAUSE_NS (100 * RBX_SIM_MS)

static int open_once(struct rbx_sim_client *client)
{
	char servers[RBX_SIM_SERVERS_TEXT];

	if (rbx_sim_world.is_named)
		return rbx_sim_named_open(client);
	rbx_sim_servers_name(servers, false);
	return rbx_volume_open(client->ctx, &client->volume, servers, client->size_bytes,
			       &client->volume_options);
}

static void volume_open(struct rbx_sim_client *client)
{
	for (uint32_t i = 0; i < OPEN_TRIES; i++) {
		if (open_once(client) == 0)
			return;
		client->volume = NULL;
		RBX_SIM_TRACE(client->node, "open-failed", "time", i, "of",
			      OPEN_TRIES);
		rbx_sim_sleep(OPEN_PAUSE_NS);
	}
	rbx_sim_fail("start", "client %u: %s", client->index, rbx_last_error());
}

static void *open_all(void *arg)
{
	struct rbx_sim_client *client = arg;

	client->volume_options.event = told;
	client->volume_options.user = client;
	client->window_bytes = window_bytes(&client->options);
	if (rbx_open(&client->ctx, &client->options))
		rbx_sim_fail("start", "client %u: %s", client->index,
			     rbx_last_error());
	rbx_sim_loop_start(client);
	volume_open(client);
	client->is_open = true;
	return NULL;
}

/* The words of a client that has crashed are not used again. */
static void oracle_make(struct rbx_sim_client *client)
{
	client->oracle = rbx_sim_oracle_make(
		client->lives_count++ * RBX_SIM_CLIENTS_MAX + client->index + 1,
		RBX_MAX(client->size_bytes, client->volume_options.size_max));
}

void rbx_sim_client_open(struct rbx_sim_client *client)
{
	client->is_made = false;
	client->is_renamed = client->index % 2; /* as if it had: it keeps the name that it makes */
	oracle_make(client);
	rbx_sim_on(client->node, open_all, client);
	RBX_SIM_TRACE(client->node, "volume-open", "bytes", client->size_bytes,
		      "replicas", client->volume_options.replicas);
}

static bool is_whole(const struct rbx_volume *volume)
{
	const struct rbx_volume_map *map = volume ? volume->control.flow.map : NULL;

	for (uint32_t i = 0; map && i < map->slab_count; i++) {
		enum rbx_slab_health health = rbx_slab_health(rbx_slab_at(&map->shape, i));

		if (health != RBX_SLAB_WHOLE && health != RBX_SLAB_BLANK)
			return false;
	}
	return true;
}

/* Nothing says BYE and nothing is freed, as after a real power failure. */
void rbx_sim_client_power_off(struct rbx_sim_client *client)
{
	RBX_SIM_TRACE(client->node, "power-off", "time", client->lives_count,
		      "outstanding", client->outstanding_count);
	rbx_sim_named_left(client);
	rbx_sim_node_stop(client->node);
	rbx_sim_world.fabric->node_stop(client->node);
	rbx_sim_descriptors_stop(client->node);
	if (rbx_sim_world.is_named)
		rbx_sim_load_abandon(client);
	else
		rbx_sim_oracle_free(client->oracle);
	client->ctx = NULL;
	client->is_renamed = false;
	client->volume = NULL;
	client->is_open = client->is_offered = false;
	client->offers = client->grows = NULL;
	client->is_growing = false;
	client->visited = NULL;
	client->waiters = (struct rbx_sim_waiters){ 0 };
	client->outstanding_count = 0;
}

static void *start_anew(void *arg)
{
	struct rbx_sim_client *client = arg;

	open_all(client);
	rbx_sim_load_start(client);
	return NULL;
}

void rbx_sim_client_power_on(struct rbx_sim_client *client)
{
	client->left_all_copies = false;
	rbx_sim_rival_followed(client);
	if (rbx_sim_world.is_named)
		rbx_sim_tally(RBX_SIM_TALLY_volumes_taken, 1);
	else
		oracle_make(client);
	client->starts = rbx_sim_spawn(client->node, start_anew, client);
}

void rbx_sim_client_has_started(struct rbx_sim_client *client)
{
	if (client->starts)
		(void)rbx_sim_join(client->starts);
	client->starts = NULL;
}

static void *open_anew(void *arg)
{
	struct rbx_sim_client *client = arg;

	if (rbx_volume_close(rbx_sim_named_take(client)))
		rbx_sim_fail("liveness", "client %u: %s", client->index, rbx_last_error());
	volume_open(client);
	return NULL;
}

void rbx_sim_client_open_anew(struct rbx_sim_client *client)
{
	if (client->volume->control.keeper)
		rbx_sim_on(client->node, open_anew, client);
}

static void *close_all(void *arg)
{
	struct rbx_sim_client *client = arg;
	struct rbx_stats stats;

	rbx_sim_returns_tally(client->volume);
	rbx_volume_close(client->volume);
	client->volume = NULL;
	if (rbx_sim_world.is_named)
		rbx_sim_named_remove(client);
	rbx_sim_loop_end(client);
	rbx_stats_get(client->ctx, &stats);
	rbx_sim_tally(RBX_SIM_TALLY_retries, stats.retries);
	rbx_sim_tally(RBX_SIM_TALLY_failovers, stats.failovers);
	rbx_close(client->ctx); /* asserts that the window is zero */
	client->ctx = NULL;
	return NULL;
}

void rbx_sim_client_close(struct rbx_sim_client *client)
{
	rbx_sim_on(client->node, close_all, client);
	rbx_sim_oracle_free(client->oracle);
}

struct addition {
	struct rbx_sim_client *client;
	const struct rbx_sim_server *server;
};

static void *add(void *arg)
{
	struct addition *addition = arg;
	struct rbx_volume *volume = addition->client->volume;
	char address[16];

	snprintf(address, sizeof(address), "n%u:7000", addition->server->node);
	/* Refused while the volume still hopes for the earlier server. Then that one comes
	 * back, or it is lost and added at the end. */
	if (!rbx_volume_add_server(volume, address) && rbx_sim_world.is_named)
		rbx_sim_named_returned(volume);
	return NULL;
}

void rbx_sim_client_add_server(struct rbx_sim_client *client,
			       const struct rbx_sim_server *server)
{
	struct addition addition = { client, server };

	if (client->is_open)
		rbx_sim_on(client->node, add, &addition);
}

/* Looks without locks: no fiber runs meanwhile. A volume that is not open has nothing to lose,
 * unless it has a name. */
bool rbx_sim_client_is_whole(const struct rbx_sim_client *client)
{
	return (client->volume || !rbx_sim_world.is_named) && is_whole(client->volume) &&
	       rbx_sim_named_is_said(client->volume) && is_whole(client->visited);
}

/* Of a named volume what counts is what its record says, whatever the client knows. */
bool rbx_sim_client_survives_a_loss(const struct rbx_sim_client *client)
{
	if (!rbx_sim_world.is_named)
		return rbx_sim_client_is_whole(client);
	return (client->volume ? rbx_sim_named_is_said(client->volume) : client->left_all_copies) &&
	       is_whole(client->visited);
}
