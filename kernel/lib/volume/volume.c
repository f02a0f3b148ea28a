/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.c - opens and closes a volume, and tells its status.
 *
 * Opening connects to the servers, makes the map, and borrows every replica of every slab
 * before it returns. So an open volume has its memory, unless it was opened with
 * on_demand; then it is refused if the servers do not have that much free. If a step
 * fails, the steps before it are undone. Closing takes no server any more, waits for the
 * I/Os, stops the upkeep thread, lets running copies of a rebuild end, and closes the
 * sessions, which ends all loans.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include "client/connection.h"
#include "client/opening.h"
#include "kernel/lib/volume/volume.h"

void rbx_volume_options_defaults(struct rbx_volume_options *options)
{
	*options = (struct rbx_volume_options){
		.replicas = 1,
		.queue_pairs = 1,
		.ios_max = 128,
		.io_segments_max = 32,
		.peer_timeout_ms = 5000,
		.mode = "hybrid",
	};
}
EXPORT_SYMBOL_GPL(rbx_volume_options_defaults);

/* A named volume is opened as it was made. */
static bool has_other_shape(const struct rbx_volume_options *options)
{
	return options->size_bytes || options->replicas != 1 || options->checksums;
}

/* The name of an option that is out of range, or NULL. */
static const char *bad_option(const struct rbx_volume_options *options)
{
	uint64_t pieces =
		(uint64_t)options->ios_max * options->io_segments_max;

	if (!options->servers || !*options->servers)
		return "servers";
	if (options->volume && has_other_shape(options))
		return "size, replicas or checksums of a named volume";
	if (options->replicas < 1 || options->replicas > RBX_REPLICAS_MAX)
		return "replicas";
	if (options->queue_pairs < 1 ||
	    options->queue_pairs > RBX_QUEUE_PAIRS_MAX)
		return "queue_pairs";
	if (pieces < 1 || pieces > RBX_PIECES_MAX)
		return "ios_max times io_segments_max";
	if (options->copy_rate && options->copy_rate < RBX_COPY_RATE_MIN)
		return "copy_rate";
	return rbx_client_bad_option(options->peer_timeout_ms, options->secret,
				     options->secret_bytes, options->credential);
}

/* ---- Memory ---------------------------------------------------------------*/

static int shape_make(const struct rbx_volume *volume,
		      const struct rbx_volume_options *options,
		      struct rbx_volume_shape *shape)
{
	const struct rbx_named *named = volume->control.named;
	uint64_t slab_bytes =
		rbx_peer_slab_bytes(volume->control.servers[0].peer);
	uint32_t i;
	int err = 0;

	for (i = 0; i < volume->control.server_count && !err; i++)
		err = rbx_volume_slab_bytes_check(&volume->control, i);
	if (err)
		return err;
	*shape = (struct rbx_volume_shape){
		.size_bytes = named ? named->record.size_bytes : options->size_bytes,
		.slab_bytes = slab_bytes,
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.replicas = named ? named->record.replicas : options->replicas,
		.checksums = named ? rbx_named_has_tails(named) : options->checksums,
		.crash_copy_bytes = options->crash_copy,
		.on_demand = options->on_demand || named,
		.is_named = named != NULL,
	};
	/* Of a named one, the record says which servers are needed. */
	if (!rbx_volume_shape_check(shape) &&
	    (named || options->replicas <= volume->control.server_count))
		return 0;
	pr_err("rdmabox: no volume of %llu bytes in slabs of %llu, %u replicas on %u servers\n",
	       shape->size_bytes, slab_bytes, shape->replicas,
	       volume->control.server_count);
	return -EINVAL;
}

static void memory_free(struct rbx_volume *volume)
{
	kvfree(volume->control.flow.pool.memory);
	vfree(volume->control.flow.map);
}

/* How large a named volume is, its servers say: of the memory of this machine its map takes an
 * eighth at most. */
static int map_check(const struct rbx_volume *volume, const struct rbx_volume_shape *shape)
{
	const struct rbx_named *named = volume->control.named;
	u64 bytes = rbx_volume_map_size(shape);

	if (!named || bytes >> PAGE_SHIFT <= totalram_pages() / 8)
		return 0;
	pr_err("rdmabox: volume %s of %llu bytes needs %llu bytes of this machine's memory, which is more than an eighth of it\n",
	       named->record.name, shape->size_bytes, bytes);
	return -E2BIG;
}

static int memory_make(struct rbx_volume *volume,
		       const struct rbx_volume_options *options,
		       const struct rbx_volume_shape *shape)
{
	uint32_t pieces = options->ios_max * options->io_segments_max;
	void *map_memory, *pool_memory;
	int err = map_check(volume, shape);

	if (err)
		return err;
	/* With checksums a large volume needs more than kvzalloc() gives. */
	map_memory = vzalloc(rbx_volume_map_size(shape));
	pool_memory = kvzalloc(rbx_flow_pool_size(shape, pieces), GFP_KERNEL);
	if (!map_memory || !pool_memory) {
		kvfree(pool_memory);
		vfree(map_memory);
		return -ENOMEM;
	}
	rbx_flow_open(&volume->control.flow, shape, map_memory, get_random_u64(),
		      volume->control.server_count, pool_memory, pieces);
	return 0;
}

static int slabs_borrow(struct rbx_volume *volume)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	struct rbx_census census;
	int err;

	if (map->shape.on_demand && !map->shape.is_named &&
	    !rbx_upkeep_fits(&volume->control.upkeep)) {
		pr_err("rdmabox: the servers have no room for %u slabs on %u of them each\n",
		       map->slab_count, map->shape.replicas);
		return -ENOSPC;
	}
	err = rbx_upkeep_borrow_all(&volume->control.upkeep);
	if (!err)
		return 0;
	rbx_upkeep_census(&volume->control.upkeep, &census);
	pr_err("rdmabox: the servers lend no more than %u of %u slabs (%d)\n",
	       census.whole, census.slabs, err);
	return err;
}

/* ---- Open and close -------------------------------------------------------*/

static struct rbx_volume *volume_make(const struct rbx_volume_options *options)
{
	struct rbx_volume *volume = kvzalloc(sizeof(*volume), GFP_KERNEL);

	if (!volume)
		return NULL;
	mutex_init(&volume->add_lock);
	volume->may_be_far = options->secret || options->insecure;
	rbx_volume_state_begin(volume, options);
	if (options->secret)
		volume->secret = kmemdup(options->secret, options->secret_bytes,
					 GFP_KERNEL);
	if (rbx_volume_joins_make(volume) || (options->secret && !volume->secret)) {
		rbx_volume_joins_free(volume);
		kfree_sensitive(volume->secret);
		kvfree(volume);
		return NULL;
	}
	rbx_volume_control_init(&volume->control, &rbx_volume_flow_ops,
				&volume->counters,
				options->peer_timeout_ms * 1000000ull);
	return volume;
}

static void volume_free(struct rbx_volume *volume)
{
	rbx_opening_free(&volume->control);
	rbx_volume_joins_free(volume);
	kfree_sensitive(volume->secret);
	kvfree(volume);
}

void rbx_holder_describe(char holder[RBX_WIRE_HOLDER_BYTES])
{
	snprintf(holder, RBX_WIRE_HOLDER_BYTES, "%.40s, kernel", init_utsname()->nodename);
}

int rbx_volume_turn_wait(struct rbx_volume_control *control)
{
	return rbx_sessions_pause(&rbx_volume_of_control(control)->client.sessions,
				  NSEC_PER_MSEC);
}

/* No I/O is under way. */
static void upkeep_stop(struct rbx_volume *volume)
{
	rbx_volume_upkeep_stop(&volume->control);
	rbx_opening_close(&volume->control);
	rbx_upkeep_abandon(&volume->control.upkeep);
	rbx_volume_copies_end(volume);
	rbx_upkeep_end(&volume->control.upkeep);
}

/* All that has a map. */
static int memory_begin(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;
	int err = 0;

	if (control->named)
		err = rbx_opening_take(control, &volume->client.sessions);
	if (!err)
		err = slabs_borrow(volume);
	if (err)
		goto out_abandon;
	err = rbx_volume_copies_make(volume);
	if (err)
		goto out_free_copies;
	err = rbx_volume_tails_open(volume);
	if (err)
		goto out_close_tails;
	err = rbx_volume_mappings_open(volume);
	if (!err)
		err = rbx_volume_upkeep_start(control);
	if (err)
		goto out_close_mappings;
	err = rbx_opening_wait_even(control);
	if (!err)
		err = rbx_volume_joins_start(volume);
	if (err)
		upkeep_stop(volume);
	return err;

out_close_mappings:
	rbx_volume_mappings_close(volume);
out_close_tails:
	rbx_volume_tails_close(volume);
out_free_copies:
	rbx_volume_copies_free(volume);
out_abandon:
	rbx_upkeep_abandon(&control->upkeep);
	rbx_upkeep_end(&control->upkeep);
	return err;
}

int rbx_volume_open(const struct rbx_volume_options *options,
		    struct rbx_volume **out)
{
	const char *bad = bad_option(options);
	struct rbx_volume_shape shape;
	struct rbx_volume *volume;
	int err;

	if (bad) {
		pr_err("rdmabox: %s is out of bounds\n", bad);
		return -EINVAL;
	}
	volume = volume_make(options);
	if (!volume)
		return -ENOMEM;
	err = rbx_volume_servers_open(volume, options);
	if (!err)
		err = shape_make(volume, options, &shape);
	if (!err)
		err = memory_make(volume, options, &shape);
	if (!err)
		err = memory_begin(volume);
	if (!err) {
		rbx_volume_state_start(volume);
		rbx_upkeep_opened(&volume->control.upkeep, options->copy_rate);
		*out = volume;
		return 0;
	}
	rbx_volume_servers_close(volume); /* no events after this; they look at the map */
	memory_free(volume);
	volume_free(volume);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_volume_open);

void rbx_volume_close(struct rbx_volume *volume)
{
	rbx_volume_state_stop(volume); /* nothing is told from now on */
	rbx_volume_joins_stop(volume);
	rbx_upkeep_closes(&volume->control.upkeep);
	/* Promise 1 of the design: each request ends, within the peer timeout. */
	while (!rbx_piece_pool_is_idle(&volume->control.flow.pool))
		msleep(1);
	upkeep_stop(volume);
	rbx_volume_servers_close(volume); /* no events after this; they look at the map */
	rbx_volume_state_stop(volume); /* a thread that has ended now may have been about to tell */
	memory_free(volume);
	volume_free(volume);
}
EXPORT_SYMBOL_GPL(rbx_volume_close);

u64 rbx_volume_size_bytes(const struct rbx_volume *volume)
{
	return volume->control.flow.map->size_bytes;
}
EXPORT_SYMBOL_GPL(rbx_volume_size_bytes);

u32 rbx_volume_replicas(const struct rbx_volume *volume)
{
	return volume->control.flow.map->shape.replicas;
}
EXPORT_SYMBOL_GPL(rbx_volume_replicas);

bool rbx_volume_has_checksums(const struct rbx_volume *volume)
{
	return volume->control.flow.map->shape.checksums;
}
EXPORT_SYMBOL_GPL(rbx_volume_has_checksums);

u64 rbx_volume_slab_bytes(const struct rbx_volume *volume)
{
	return 1ull << volume->control.flow.map->shape.slab_shift;
}
EXPORT_SYMBOL_GPL(rbx_volume_slab_bytes);

int rbx_volume_node(const struct rbx_volume *volume)
{
	return volume->ctx->node;
}
EXPORT_SYMBOL_GPL(rbx_volume_node);

/* ---- Status -------------------------------------------------------------------*/

static void count_server(const struct rbx_volume_server *server,
			 struct rbx_volume_status *status)
{
	const struct rbx_channel_counters *counters =
		&server->peer->channel.counters;

	status->work_requests += RBX_LOAD_RELAXED(&counters->work_requests);
	status->doorbells += RBX_LOAD_RELAXED(&counters->doorbells);
	status->merged_requests += RBX_LOAD_RELAXED(&counters->merged_requests);
	status->window_waits += RBX_LOAD_RELAXED(&counters->window_waits);
	status->retries += RBX_LOAD_RELAXED(&counters->retries);
}

static void count_poller(const struct rbx_poll_counters *counters,
			 struct rbx_volume_status *status)
{
	status->completions += READ_ONCE(counters->completions);
	status->polls += READ_ONCE(counters->polls);
	status->empty_polls += READ_ONCE(counters->empty_polls);
	status->arms += READ_ONCE(counters->arms);
	status->wakeups += READ_ONCE(counters->wakeups);
}

static void count_device(const struct rbx_context *ctx, struct rbx_volume_status *status)
{
	uint32_t i;

	status->window_bytes += RBX_LOAD_RELAXED(&ctx->window.bytes_max);
	status->inflight_bytes += rbx_window_in_flight_bytes(&ctx->window);
	status->inflight_bytes_max += RBX_LOAD_RELAXED(&ctx->window.in_flight_bytes_peak);
	for (i = 0; i < ctx->pollers_count; i++)
		count_poller(&ctx->pollers[i].round.counters, status);
}

void rbx_volume_status(struct rbx_volume *volume,
		       struct rbx_volume_status *status)
{
	const struct rbx_flow_counters *counters = &volume->counters;
	const struct rbx_client *client;
	struct rbx_census census;
	uint32_t i;

	rbx_upkeep_census(&volume->control.upkeep, &census);
	*status = (struct rbx_volume_status){
		.servers = census.servers,
		.servers_up = census.servers_up,
		.slabs = census.slabs,
		.slabs_whole = census.whole,
		.slabs_blank = census.blank,
		.slabs_rebuilding = census.rebuilding,
		.slabs_lost = census.dead,
		.slabs_last = census.last,
		.slabs_holed = census.holes,
		.slabs_together = census.together,
		.rebuilt_bytes = RBX_LOAD_RELAXED(&counters->rebuilt_bytes),
		.replicas_moved = census.moved,
		.failovers = RBX_LOAD_RELAXED(&counters->failovers),
		.checksum_errors = RBX_LOAD_RELAXED(&counters->checksum_errors),
		.checksum_repairs =
			RBX_LOAD_RELAXED(&counters->checksum_repairs),
	};
	/* A dead server may give its place to another one meanwhile. */
	rbx_lock(rbx_upkeep_servers_lock(&volume->control.upkeep));
	for (i = 0; i < volume->control.server_count; i++)
		if (volume->control.servers[i].peer)
			count_server(&volume->control.servers[i], status);
	rbx_unlock(rbx_upkeep_servers_lock(&volume->control.upkeep));
	for (client = &volume->client; client; client = rbx_client_next(client))
		count_device(client->ctx, status);
}
EXPORT_SYMBOL_GPL(rbx_volume_status);
