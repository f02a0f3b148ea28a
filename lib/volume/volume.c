/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.c - opens and closes a volume, adds servers, tells its status.
 *
 * Opening connects to the servers, makes the map, and borrows every replica of
 * every slab before it returns: a volume that is open has its memory. What
 * fails on the way undoes all that was done. Closing waits for the requests,
 * stops the keeper, lets the copies of a rebuild run out, and gives all back.
 *
 * A server's place in the table is never reused: a server that was lost and
 * comes back is added anew. RBX_SERVERS_MAX bounds both together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/poller/plug.h"
#include "lib/poller/set.h"
#include "lib/volume/volume.h"

void rbx_volume_options_defaults(struct rbx_volume_options *options)
{
	memset(options, 0, sizeof(*options));
	options->size_bytes = sizeof(*options);
	options->replicas = 1;
}

static int options_take(struct rbx_volume *volume,
			const struct rbx_volume_options *options)
{
	size_t size = sizeof(*options);

	rbx_volume_options_defaults(&volume->options);
	if (!options)
		return 0;
	if (options->size_bytes < offsetof(struct rbx_volume_options, event))
		return rbx_error(-EINVAL, "volume options: size_bytes is %zu; fill them by rbx_volume_options_defaults()",
				 options->size_bytes);
	memcpy(&volume->options, options, RBX_MIN(options->size_bytes, size));
	if (volume->options.replicas < 1 ||
	    volume->options.replicas > RBX_REPLICAS_MAX)
		return rbx_error(-EINVAL, "replicas=%u: 1 to %u are possible",
				 volume->options.replicas, RBX_REPLICAS_MAX);
	return 0;
}

/* ---- Servers --------------------------------------------------------------*/

/* The control thread tells: only notes it for the keeper. */
static void peer_down(struct rbx_peer *peer, const char *reason, void *user)
{
	struct rbx_volume_server *server = user;

	(void)peer;
	snprintf(server->reason, sizeof(server->reason), "%s", reason);
	RBX_STORE_RELEASE(&server->is_down, true);
	(void)RBX_EXCHANGE(&server->went_down, true);
	rbx_volume_keeper_wake(server->volume);
}

/* The control thread tells: one step of the slab that the memory belongs to. */
static void peer_evict(struct rbx_peer *peer, uint64_t slab_id,
		       uint32_t grace_ms, void *user)
{
	struct rbx_volume_server *server = user;
	struct rbx_volume *volume = server->volume;
	uint32_t index = (uint32_t)(server - volume->servers);
	struct rbx_volume_map *map = RBX_LOAD_ACQUIRE(&volume->map);
	bool found = false;
	uint32_t i;

	(void)peer;
	(void)grace_ms; /* we are as quick as we can be */
	for (i = 0; map && i < map->slab_count && !found; i++) {
		struct rbx_slab *slab = &map->slabs[i];

		rbx_volume_lock(volume, slab);
		found = rbx_slab_evict(slab, index, slab_id);
		rbx_volume_unlock(volume, slab);
	}
	if (found)
		rbx_volume_keeper_wake(volume);
}

static bool is_in_use(const struct rbx_volume *volume, const char *address)
{
	uint32_t i;

	for (i = 0; i < RBX_SERVERS_MAX && volume->servers[i].peer; i++)
		if (!RBX_LOAD_ACQUIRE(&volume->servers[i].is_down) &&
		    !strcmp(rbx_peer_address(volume->servers[i].peer), address))
			return true;
	return false;
}

/* Connects to a server and puts it at this place of the table. */
static int server_open(struct rbx_volume *volume, uint32_t index,
		       const char *address)
{
	struct rbx_volume_server *server = &volume->servers[index];
	struct rbx_peer_events events = {
		.down = peer_down,
		.evict = peer_evict,
		.user = server,
	};
	int err;

	/* Two replicas on one server would be lost together. */
	if (is_in_use(volume, address))
		return rbx_error(-EINVAL, "server %s is named twice", address);
	server->volume = volume;
	server->is_down = false;
	server->went_down = false;
	err = rbx_peer_open(volume->ctx, address, &events, &server->peer);
	if (err)
		server->peer = NULL;
	return err;
}

static void server_close(struct rbx_volume *volume, uint32_t index)
{
	rbx_peer_close(volume->servers[index].peer);
	volume->servers[index].peer = NULL;
}

static void servers_close(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < RBX_SERVERS_MAX && volume->servers[i].peer; i++)
		server_close(volume, i);
}

/* Connects to each server of "host:port,host:port". */
static int servers_open(struct rbx_volume *volume, const char *servers,
			uint32_t *count)
{
	char *list = strdup(servers);
	char *rest = list, *address;
	int err = 0;

	if (!list)
		return rbx_error(-ENOMEM, "out of memory");
	*count = 0;
	while (!err && (address = strsep(&rest, ","))) {
		if (!*address)
			err = rbx_error(-EINVAL, "servers \"%s\": \"host:port,host:port\" is wanted",
					servers);
		else if (*count == RBX_SERVERS_MAX)
			err = rbx_error(-EINVAL, "servers \"%s\": more than %u",
					servers, RBX_SERVERS_MAX);
		else
			err = server_open(volume, *count, address);
		*count += !err;
	}
	free(list);
	if (err)
		servers_close(volume);
	return err;
}

static int slab_bytes_check(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_peer *first = volume->servers[0].peer;
	struct rbx_peer *peer = volume->servers[index].peer;

	if (rbx_peer_slab_bytes(peer) == rbx_peer_slab_bytes(first))
		return 0;
	return rbx_error(-EINVAL, "server %s lends slabs of %llu bytes, %s of %llu; start both with the same --slab",
			 rbx_peer_address(peer),
			 (unsigned long long)rbx_peer_slab_bytes(peer),
			 rbx_peer_address(first),
			 (unsigned long long)rbx_peer_slab_bytes(first));
}

static int servers_check(struct rbx_volume *volume, uint32_t count)
{
	uint32_t i;
	int err;

	if (count < volume->options.replicas)
		return rbx_error(-EINVAL, "%u replicas need as many servers, and %u are given",
				 volume->options.replicas, count);
	for (i = 1; i < count; i++) {
		err = slab_bytes_check(volume, i);
		if (err)
			return err;
	}
	return 0;
}

/* ---- Memory ---------------------------------------------------------------*/

static void memory_free(struct rbx_volume *volume)
{
	free(volume->pool.memory);
	free(volume->slab_locks);
	free(volume->map);
}

/* Zeroed and from the system where large, so that cells and checksums take
 * memory only as they are used. */
static int memory_make(struct rbx_volume *volume,
		       const struct rbx_volume_shape *shape,
		       uint32_t server_count)
{
	uint32_t pieces = rbx_context_options(volume->ctx)->requests_max;
	uint32_t slots = shape->replicas + 1;
	struct rbx_volume_map *map;
	struct timespec now;
	void *map_memory, *pool_memory;
	uint32_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	map_memory = calloc(1, rbx_volume_map_size(shape));
	pool_memory = calloc(1, rbx_piece_pool_size(pieces, slots));
	if (!map_memory || !pool_memory)
		goto out_free;
	map = rbx_volume_map_init(map_memory, shape,
				  (uint64_t)now.tv_sec << 30 ^
					  (uint64_t)now.tv_nsec);
	volume->slab_locks =
		calloc(map->slab_count, sizeof(*volume->slab_locks));
	if (!volume->slab_locks)
		goto out_free;
	for (i = 0; i < map->slab_count; i++)
		pthread_mutex_init(&volume->slab_locks[i], NULL);
	for (i = 0; i < server_count; i++)
		(void)rbx_volume_map_add_server(map);
	rbx_piece_pool_init(&volume->pool, pool_memory, pieces, slots, volume,
			    rbx_volume_parts_done);
	RBX_STORE_RELEASE(&volume->map, map);
	return 0;

out_free:
	free(pool_memory);
	free(map_memory);
	return rbx_error(-ENOMEM, "out of memory: a volume of %llu bytes needs %zu for its map",
			 (unsigned long long)shape->size_bytes,
			 rbx_volume_map_size(shape));
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

static int slabs_borrow(struct rbx_volume *volume)
{
	uint32_t i, replica;
	int err;

	for (i = 0; i < volume->map->slab_count; i++) {
		for (replica = 0; replica < volume->options.replicas;
		     replica++) {
			err = rbx_volume_borrow(volume, &volume->map->slabs[i],
						RBX_REPLICA_LIVE);
			if (err)
				return err;
		}
	}
	return 0;
}

/* ---- Open and close -------------------------------------------------------*/

static int shape_make(struct rbx_volume *volume, uint64_t size,
		      struct rbx_volume_shape *shape)
{
	*shape = (struct rbx_volume_shape){
		.size_bytes = size,
		.slab_bytes = rbx_peer_slab_bytes(volume->servers[0].peer),
		.fragment_bytes =
			rbx_context_options(volume->ctx)->fragment_bytes,
		.replicas = volume->options.replicas,
		.checksums = volume->options.checksums,
	};
	if (!rbx_volume_shape_check(shape))
		return 0;
	return rbx_error(-EINVAL, "a volume of %llu bytes: it must be a multiple of %u, above 0, and at most %u slabs of %llu bytes",
			 (unsigned long long)size, RBX_PAGE_BYTES,
			 RBX_SLABS_MAX, (unsigned long long)shape->slab_bytes);
}

static void locks_init(struct rbx_volume *volume)
{
	pthread_mutex_init(&volume->add_lock, NULL);
	pthread_mutex_init(&volume->fence_lock, NULL);
	pthread_mutex_init(&volume->servers_lock, NULL);
	rbx_volume_keeper_init(volume);
}

int rbx_volume_open(struct rbx_context *ctx, struct rbx_volume **volume_out,
		    const char *servers, uint64_t size,
		    const struct rbx_volume_options *options)
{
	struct rbx_volume_shape shape;
	struct rbx_volume *volume;
	uint32_t server_count = 0;
	int err;

	if (!ctx || !volume_out || !servers)
		return rbx_error(-EINVAL, "a volume needs a context and servers");
	volume = calloc(1, sizeof(*volume));
	if (!volume)
		return rbx_error(-ENOMEM, "out of memory");
	volume->ctx = ctx;
	locks_init(volume);
	err = options_take(volume, options);
	if (err)
		goto out_free;
	err = servers_open(volume, servers, &server_count);
	if (err)
		goto out_free;
	err = servers_check(volume, server_count);
	if (!err)
		err = shape_make(volume, size, &shape);
	if (!err)
		err = memory_make(volume, &shape, server_count);
	if (err)
		goto out_close_servers;
	err = slabs_borrow(volume);
	if (!err)
		err = rbx_volume_keeper_start(volume);
	if (err)
		goto out_return_slabs;
	*volume_out = volume;
	return 0;

out_return_slabs:
	slabs_abandon(volume);
	slabs_return(volume);
out_close_servers:
	servers_close(volume); /* ends the events, which look at the map */
	memory_free(volume);
out_free:
	rbx_volume_keeper_destroy(volume);
	free(volume);
	return err;
}

/* Lets completions happen: by the pollers, or by us where the program polls. */
static void turn_wait(struct rbx_volume *volume)
{
	if (!rbx_context_options(volume->ctx)->pollers)
		(void)rbx_poll(volume->ctx);
	usleep(100);
}

void rbx_volume_close(struct rbx_volume *volume)
{
	struct rbx_context *ctx;

	if (!volume)
		return;
	ctx = volume->ctx;
	rbx_plug_flush();
	while (!rbx_piece_pool_is_idle(&volume->pool))
		turn_wait(volume);
	rbx_volume_keeper_stop(volume);
	slabs_abandon(volume);
	while (rbx_volume_is_rebuilding(volume))
		turn_wait(volume);
	/* The last completion may still be on its way out of us. */
	rbx_pollers_visit_all(ctx);
	slabs_return(volume);
	servers_close(volume); /* ends the events, which look at the map */
	memory_free(volume);
	rbx_volume_keeper_destroy(volume);
	free(volume);
}

uint64_t rbx_volume_size(const struct rbx_volume *volume)
{
	return volume->map->size_bytes;
}

int rbx_volume_add_server(struct rbx_volume *volume, const char *server)
{
	uint32_t index;
	int err;

	if (!volume || !server || !*server)
		return rbx_error(-EINVAL, "a volume and the server's host:port are wanted");
	pthread_mutex_lock(&volume->add_lock);
	index = volume->map->server_count; /* changed under add_lock only */
	if (index == RBX_SERVERS_MAX) {
		err = rbx_error(-ENOSPC, "a volume knows at most %u servers, lost ones included",
				RBX_SERVERS_MAX);
		goto out_unlock;
	}
	err = server_open(volume, index, server);
	if (err)
		goto out_unlock;
	err = slab_bytes_check(volume, index);
	if (err) {
		server_close(volume, index);
		goto out_unlock;
	}
	pthread_mutex_lock(&volume->servers_lock);
	(void)rbx_volume_map_add_server(volume->map);
	pthread_mutex_unlock(&volume->servers_lock);
	rbx_volume_keeper_wake(volume);
out_unlock:
	pthread_mutex_unlock(&volume->add_lock);
	return err;
}

static void servers_count(struct rbx_volume *volume,
			  struct rbx_volume_status *status)
{
	uint32_t i;

	pthread_mutex_lock(&volume->servers_lock);
	status->servers = volume->map->server_count;
	pthread_mutex_unlock(&volume->servers_lock);
	for (i = 0; i < status->servers; i++)
		status->servers_up +=
			!RBX_LOAD_ACQUIRE(&volume->servers[i].is_down);
}

void rbx_volume_status(struct rbx_volume *volume,
		       struct rbx_volume_status *status)
{
	uint32_t i;

	memset(status, 0, sizeof(*status));
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
	servers_count(volume, status);
	status->rebuilt_bytes = RBX_LOAD_RELAXED(&volume->rebuilt_bytes);
}
