/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.c - opens and closes a volume, and tells its status.
 *
 * Opening connects to the servers, makes the map, and borrows every replica of
 * every slab before it returns: a volume that is open has its memory. What fails
 * on the way undoes all that was done. Closing waits for the I/Os, stops the
 * keeper, lets the copies of a rebuild run out, and gives all back.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kernel/lib/volume.h"

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

/* An option that is out of its bounds, or NULL. */
static const char *bad_option(const struct rbx_volume_options *options)
{
	uint64_t pieces =
		(uint64_t)options->ios_max * options->io_segments_max;

	if (!options->servers || !*options->servers)
		return "servers";
	if (options->replicas < 1 || options->replicas > RBX_REPLICAS_MAX)
		return "replicas";
	if (options->queue_pairs < 1 ||
	    options->queue_pairs > RBX_QUEUE_PAIRS_MAX)
		return "queue_pairs";
	if (pieces < 1 || pieces > RBX_PIECES_MAX)
		return "ios_max times io_segments_max";
	return rbx_client_bad_option(options->peer_timeout_ms, options->secret,
				     options->secret_bytes);
}

/* ---- Memory ---------------------------------------------------------------*/

static int shape_make(const struct rbx_volume *volume,
		      const struct rbx_volume_options *options,
		      struct rbx_volume_shape *shape)
{
	uint64_t slab_bytes =
		volume->servers[0].peer->session->welcome.slab_bytes;
	uint32_t i;

	for (i = 1; i < volume->server_count; i++) {
		const struct rbx_session *session =
			volume->servers[i].peer->session;

		if (session->welcome.slab_bytes == slab_bytes)
			continue;
		pr_err("rdmabox: server %s lends slabs of %llu bytes, the first one of %llu\n",
		       rbx_session_name(session), session->welcome.slab_bytes,
		       slab_bytes);
		return -EINVAL;
	}
	*shape = (struct rbx_volume_shape){
		.size_bytes = options->size_bytes,
		.slab_bytes = slab_bytes,
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.replicas = options->replicas,
	};
	if (!rbx_volume_shape_check(shape) &&
	    options->replicas <= volume->server_count)
		return 0;
	pr_err("rdmabox: no volume of %llu bytes in slabs of %llu, %u replicas on %u servers\n",
	       shape->size_bytes, slab_bytes, options->replicas,
	       volume->server_count);
	return -EINVAL;
}

static void memory_free(struct rbx_volume *volume)
{
	kvfree(volume->pool.memory);
	kvfree(volume->slab_locks);
	kvfree(volume->map);
}

static int memory_make(struct rbx_volume *volume,
		       const struct rbx_volume_options *options,
		       const struct rbx_volume_shape *shape)
{
	uint32_t pieces = options->ios_max * options->io_segments_max;
	uint32_t slots = shape->replicas + 1, i;
	void *map_memory, *pool_memory;
	struct rbx_volume_map *map;

	map_memory = kvzalloc(rbx_volume_map_size(shape), GFP_KERNEL);
	pool_memory = kvzalloc(rbx_piece_pool_size(pieces, slots), GFP_KERNEL);
	if (!map_memory || !pool_memory)
		goto out_free;
	map = rbx_volume_map_init(map_memory, shape, get_random_u64());
	volume->slab_locks = kvcalloc(map->slab_count,
				      sizeof(*volume->slab_locks), GFP_KERNEL);
	if (!volume->slab_locks)
		goto out_free;
	for (i = 0; i < map->slab_count; i++)
		spin_lock_init(&volume->slab_locks[i]);
	for (i = 0; i < volume->server_count; i++)
		(void)rbx_volume_map_add_server(map);
	rbx_piece_pool_init(&volume->pool, pool_memory, pieces, slots, volume,
			    rbx_volume_parts_done);
	/* From here on events of servers find their slabs. */
	RBX_STORE_RELEASE(&volume->map, map);
	return 0;

out_free:
	kvfree(pool_memory);
	kvfree(map_memory);
	return -ENOMEM;
}

/* ---- Slabs ----------------------------------------------------------------*/

/* Nothing new is sent from here on. */
static void slabs_abandon(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < volume->map->slab_count; i++) {
		struct rbx_slab *slab = &volume->map->slabs[i];

		rbx_volume_lock(volume, slab);
		rbx_slab_abandon(slab);
		rbx_volume_unlock(volume, slab);
	}
}

/* Gives back all that was abandoned; nothing is under way. */
static void slabs_return(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < volume->map->slab_count; i++) {
		struct rbx_slab *slab = &volume->map->slabs[i];

		while (rbx_volume_task(volume, slab) == RBX_TASK_GIVE_BACK)
			rbx_volume_give_back(volume, slab);
	}
}

static int slabs_borrow(struct rbx_volume *volume, uint32_t replicas)
{
	uint32_t i, replica;
	int err = 0;

	for (i = 0; i < volume->map->slab_count && !err; i++)
		for (replica = 0; replica < replicas && !err; replica++)
			err = rbx_volume_borrow(volume, &volume->map->slabs[i],
						RBX_REPLICA_LIVE);
	if (err)
		pr_err("rdmabox: the servers lend no more than %u of %u slabs (%d)\n",
		       i - 1, volume->map->slab_count, err);
	return err;
}

/* ---- Open and close -------------------------------------------------------*/

static struct rbx_volume *volume_make(const struct rbx_volume_options *options)
{
	struct rbx_volume *volume = kvzalloc(sizeof(*volume), GFP_KERNEL);

	if (!volume)
		return NULL;
	if (options->secret) {
		volume->secret = kmemdup(options->secret, options->secret_bytes,
					 GFP_KERNEL);
		if (!volume->secret) {
			kvfree(volume);
			return NULL;
		}
	}
	spin_lock_init(&volume->servers_lock);
	init_waitqueue_head(&volume->keeper_changed);
	return volume;
}

static void volume_free(struct rbx_volume *volume)
{
	kfree_sensitive(volume->secret);
	kvfree(volume);
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
	if (err)
		goto out_close_servers;
	err = slabs_borrow(volume, options->replicas);
	if (err)
		goto out_return;
	err = rbx_volume_keeper_start(volume);
	if (err)
		goto out_free_keeper;
	*out = volume;
	return 0;

out_free_keeper:
	rbx_volume_keeper_free(volume);
out_return:
	slabs_abandon(volume);
	slabs_return(volume);
out_close_servers:
	rbx_volume_servers_close(volume); /* ends the events, which look at the map */
	memory_free(volume);
	volume_free(volume);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_volume_open);

void rbx_volume_close(struct rbx_volume *volume)
{
	/* Promise 1 of the design: each ends; and within the peer timeout. */
	while (!rbx_piece_pool_is_idle(&volume->pool))
		msleep(1);
	rbx_volume_keeper_stop(volume);
	slabs_abandon(volume);
	rbx_volume_keeper_free(volume);
	slabs_return(volume);
	rbx_volume_servers_close(volume); /* ends the events, which look at the map */
	memory_free(volume);
	volume_free(volume);
}
EXPORT_SYMBOL_GPL(rbx_volume_close);

u64 rbx_volume_size_bytes(const struct rbx_volume *volume)
{
	return volume->map->size_bytes;
}
EXPORT_SYMBOL_GPL(rbx_volume_size_bytes);

/* ---- Status -------------------------------------------------------------------*/

static void count_slabs(struct rbx_volume *volume,
			struct rbx_volume_status *status)
{
	uint32_t i;

	status->slabs = volume->map->slab_count;
	for (i = 0; i < status->slabs; i++) {
		struct rbx_slab *slab = &volume->map->slabs[i];
		enum rbx_slab_health health;

		rbx_volume_lock(volume, slab);
		health = rbx_slab_health(slab);
		rbx_volume_unlock(volume, slab);
		status->slabs_whole += health == RBX_SLAB_WHOLE;
		status->slabs_rebuilding += health == RBX_SLAB_REBUILDING;
		status->slabs_lost += health == RBX_SLAB_DEAD;
	}
}

static void count_server(struct rbx_volume_server *server,
			 struct rbx_volume_status *status)
{
	const struct rbx_channel_counters *counters =
		&server->peer->channel.counters;

	status->servers_up += !RBX_LOAD_ACQUIRE(&server->is_down);
	status->work_requests += RBX_LOAD_RELAXED(&counters->work_requests);
	status->doorbells += RBX_LOAD_RELAXED(&counters->doorbells);
	status->merged_requests += RBX_LOAD_RELAXED(&counters->merged_requests);
	status->window_waits += RBX_LOAD_RELAXED(&counters->window_waits);
	status->retries += READ_ONCE(server->peer->retries_count);
}

void rbx_volume_status(struct rbx_volume *volume,
		       struct rbx_volume_status *status)
{
	const struct rbx_poller_counters *poller = &volume->ctx->poller.counters;
	uint32_t i;

	memset(status, 0, sizeof(*status));
	count_slabs(volume, status);
	status->servers = volume->server_count;
	for (i = 0; i < volume->server_count; i++)
		count_server(&volume->servers[i], status);
	status->window_bytes = RBX_LOAD_RELAXED(&volume->ctx->window.bytes_max);
	status->inflight_bytes =
		rbx_window_in_flight_bytes(&volume->ctx->window);
	status->inflight_bytes_max =
		RBX_LOAD_RELAXED(&volume->ctx->window.in_flight_bytes_peak);
	status->completions = READ_ONCE(poller->completions);
	status->polls = READ_ONCE(poller->polls);
	status->empty_polls = READ_ONCE(poller->empty_polls);
	status->arms = READ_ONCE(poller->arms);
	status->wakeups = READ_ONCE(poller->wakeups);
	status->rebuilt_bytes = RBX_LOAD_RELAXED(&volume->rebuilt_bytes);
	status->failovers = RBX_LOAD_RELAXED(&volume->failovers);
}
EXPORT_SYMBOL_GPL(rbx_volume_status);
