/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.c - opens and closes a volume, and adds servers.
 *
 * Opening connects to the servers, makes the map, and borrows every replica of every slab
 * before it returns. So an open volume has its memory, unless it was opened with
 * on_demand. If a step fails, the steps before it are undone. Closing waits for the
 * requests, stops the upkeep thread, lets running copies of a rebuild end, and closes the
 * sessions, which ends all loans.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "client/joining.h"
#include "core/server_labels.h"
#include "lib/poller/plug.h"
#include "lib/poller/set.h"
#include "lib/sized.h"
#include "lib/volume/named.h"
#include "lib/volume/reader.h"

void rbx_volume_options_defaults_sized(struct rbx_volume_options *options,
				       size_t size_bytes)
{
	static const struct rbx_volume_options defaults = {
		.replicas = 1,
		.spread = RBX_SPREAD_DEFAULT,
	};

	rbx_sized_fill(options, size_bytes, &defaults, sizeof(defaults));
}

static int options_take(struct rbx_volume *volume,
			const struct rbx_volume_options *options)
{
	int err;

	rbx_volume_options_defaults(&volume->options);
	volume->control.spread = volume->options.spread;
	if (!options)
		return 0;
	err = rbx_sized_take("rbx_volume_options",
			     offsetof(struct rbx_volume_options, event),
			     &volume->options, sizeof(volume->options),
			     options);
	if (err)
		return err;
	if (volume->options.replicas < 1 ||
	    volume->options.replicas > RBX_REPLICAS_MAX)
		return rbx_error(-EINVAL, "replicas=%u: it must be 1 to %u",
				 volume->options.replicas, RBX_REPLICAS_MAX);
	if (!rbx_spread_is_good(volume->options.spread))
		return rbx_error(-EINVAL, "spread: it must be the name of a label, such as rack, of at most %u characters",
				 RBX_SPREAD_BYTES - 1);
	volume->control.spread = volume->options.spread;
	if (volume->options.copy_rate && volume->options.copy_rate < RBX_COPY_RATE_MIN)
		return rbx_error(-EINVAL, "copy_rate=%llu: it must be 0, or at least %u bytes a second",
				 (unsigned long long)volume->options.copy_rate,
				 RBX_COPY_RATE_MIN);
	return rbx_scrubber_rate_check(volume);
}

/* ---- Shape of the volume -----------------------------------------------------*/

static int servers_check(struct rbx_volume *volume)
{
	uint32_t i, count = volume->control.server_count;
	int err = 0;

	/* Of a named one, the record says which are needed. */
	if (!volume->control.named && count < volume->options.replicas)
		return rbx_error(-EINVAL, "%u replicas need as many servers, but %u %s given",
				 volume->options.replicas, count, count == 1 ? "is" : "are");
	for (i = 0; i < count && !err; i++)
		if (volume->control.servers[i].peer)
			err = rbx_volume_slab_bytes_check(&volume->control, i);
	return err;
}

/* ---- Memory ---------------------------------------------------------------*/

static void memory_free(struct rbx_volume *volume)
{
	rbx_volume_copies_free(volume);
	rbx_bounces_close(&volume->bounces);
	free(volume->control.flow.pool.memory);
	free(volume->control.flow.map);
}

/* Their places in the table are for servers that join later. */
static void places_of_left_out_free(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < volume->control.server_count; i++) {
		if (volume->control.servers[i].peer)
			continue;
		rbx_volume_map_server_down(volume->control.flow.map, i);
		rbx_upkeep_server_failed(&volume->control.upkeep, i);
	}
}

/* Zeroed, and mapped from the system if it is large: so slabs and checksums take memory
 * only as they are used. */
static int memory_make(struct rbx_volume *volume,
		       const struct rbx_volume_shape *shape)
{
	uint32_t pieces = rbx_context_options(volume->ctx)->requests_max;
	void *map_memory = calloc(1, rbx_volume_map_size(shape));
	void *pool_memory = calloc(1, rbx_flow_pool_size(shape, pieces));
	struct timespec now;

	if (!map_memory || !pool_memory || rbx_bounces_open(&volume->bounces)) {
		free(pool_memory);
		free(map_memory);
		return rbx_error(-ENOMEM, "out of memory: a volume of %llu bytes needs %zu for its map",
				 (unsigned long long)shape->size_bytes,
				 rbx_volume_map_size(shape));
	}
	clock_gettime(CLOCK_REALTIME, &now);
	rbx_flow_open(&volume->control.flow, shape, map_memory,
		      (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec,
		      volume->control.server_count, pool_memory, pieces);
	places_of_left_out_free(volume);
	return 0;
}

/* ---- Open and close -------------------------------------------------------*/

/* Up to which a named volume may grow while it is open. */
static uint64_t room_of(const struct rbx_volume *volume, uint64_t size, uint64_t slab_bytes)
{
	uint64_t max = volume->options.size_max;

	if (!rbx_slab_bytes_are_good(slab_bytes))
		return 0; /* which is refused */
	if (!max)
		max = RBX_MAX(size <= UINT64_MAX / 4 ? 4 * size : size, size + 1024 * slab_bytes);
	return RBX_MAX(size, RBX_MIN(max, slab_bytes * RBX_SLABS_MAX));
}

static int shape_make(const struct rbx_volume *volume, uint64_t size, uint64_t slab_bytes,
		      struct rbx_volume_shape *shape)
{
	const bool named = volume->options.name;

	*shape = (struct rbx_volume_shape){
		.size_bytes = size,
		.size_max_bytes = named ? room_of(volume, size, slab_bytes) : 0,
		.slab_bytes = slab_bytes,
		.fragment_bytes =
			rbx_context_options(volume->ctx)->fragment_bytes,
		.replicas = volume->options.replicas,
		.checksums = volume->options.checksums,
		.crash_copy_bytes = volume->options.crash_copy,
		.on_demand = volume->options.on_demand || named,
		.is_named = named,
	};
	if (!rbx_volume_shape_check(shape))
		return 0;
	return rbx_error(-EINVAL, "a volume of %llu bytes: it must be a multiple of %u, above 0, and at most %u slabs of %llu bytes",
			 (unsigned long long)size, RBX_PAGE_BYTES,
			 RBX_SLABS_MAX, (unsigned long long)shape->slab_bytes);
}

int rbx_volume_memory_make(struct rbx_volume *volume, uint64_t size, uint64_t slab_bytes)
{
	struct rbx_volume_shape shape;
	int err = shape_make(volume, size, slab_bytes, &shape);

	return err ? err : memory_make(volume, &shape);
}

static struct rbx_volume *volume_make(struct rbx_context *ctx)
{
	struct rbx_volume *volume = calloc(1, sizeof(*volume));

	if (!volume)
		return NULL;
	volume->control.servers =
		calloc(RBX_SERVERS_MAX, sizeof(*volume->control.servers));
	if (!volume->control.servers) {
		free(volume);
		return NULL;
	}
	volume->ctx = ctx;
	pthread_mutex_init(&volume->add_lock, NULL);
	pthread_mutex_init(&volume->fence_lock, NULL);
	rbx_scrubber_init(&volume->scrubber);
	rbx_volume_control_init(&volume->control, &rbx_volume_flow_ops,
				&rbx_context_counters(ctx)->volumes,
				rbx_context_options(ctx)->peer_timeout_ms *
					1000000ull);
	return volume;
}

static void volume_free(struct rbx_volume *volume)
{
	rbx_volume_joins_stop(volume);
	rbx_events_end(&volume->events);
	rbx_opening_free(&volume->control);
	rbx_volume_control_destroy(&volume->control);
	rbx_scrubber_destroy(&volume->scrubber);
	free(volume->control.servers);
	free(volume);
}

static int name_check(const struct rbx_volume *volume, uint64_t size)
{
	const struct rbx_volume_options *options = &volume->options;

	if (!options->name)
		return options->read_only ?
			       rbx_error(-EINVAL, "read_only: a volume without a name has no data when it is opened") :
			       0;
	if (size || options->replicas != 1 || options->checksums)
		return rbx_error(-EINVAL, "volume %s is opened as it was made: size 0, and the options that are the defaults",
				 options->name);
	if (options->read_only && options->take_over)
		return rbx_error(-EINVAL, "volume %s: read_only leaves it to the program that has it open, and take_over takes it",
				 options->name);
	return 0;
}

/* A named volume has the servers that have it. */
static int connect_to(struct rbx_volume *volume, const char *servers)
{
	char *members;
	int err;

	if (!volume->options.name)
		return rbx_volume_servers_open(volume, servers, servers);
	err = rbx_volume_named_begin(volume, servers, &members);
	if (err)
		return err;
	err = rbx_volume_servers_open(volume, members, servers);
	rbx_memory_free(members);
	return err;
}

int rbx_volume_turn_wait(struct rbx_volume_control *control)
{
	struct rbx_context *ctx = rbx_volume_of_control(control)->ctx;

	if (!rbx_context_options(ctx)->pollers)
		(void)rbx_poll(ctx); /* the program polls */
	rbx_plug_flush();
	usleep(100);
	return 0;
}

void rbx_volume_pollers_visit(struct rbx_volume_control *control)
{
	rbx_pollers_visit_all(rbx_volume_of_control(control)->ctx);
}

/* Nothing of the program's is under way. */
static void upkeep_stop(struct rbx_volume *volume)
{
	rbx_volume_upkeep_stop(&volume->control);
	rbx_opening_close(&volume->control);
	rbx_events_end(&volume->events); /* the program may look at the map in its callback */
	rbx_upkeep_abandon(&volume->control.upkeep);
	while (rbx_rebuild_is_under_way(&volume->control.flow))
		(void)rbx_volume_turn_wait(&volume->control);
	/* The last completion may still be in a poller's hands. */
	rbx_volume_pollers_visit(&volume->control);
	rbx_upkeep_end(&volume->control.upkeep);
}

/* What is told of events may ask for the status until the end. */
static void reader_end(struct rbx_volume *volume)
{
	if (volume->reader)
		rbx_reader_stop(volume->reader);
	rbx_events_end(&volume->events);
	if (volume->reader)
		rbx_reader_free(volume->reader);
	volume->reader = NULL;
}

/* Nothing of the program's is under way. */
static void reader_stop(struct rbx_volume *volume)
{
	/* The last completion may still be in a poller's hands. */
	rbx_volume_pollers_visit(&volume->control);
	reader_end(volume);
}

int rbx_volume_open(struct rbx_context *ctx, struct rbx_volume **volume_out,
		    const char *servers, uint64_t size,
		    const struct rbx_volume_options *options)
{
	struct rbx_volume *volume;
	uint64_t slab_bytes;
	int err;

	if (!ctx || !volume_out || !servers)
		return rbx_error(-EINVAL, "a volume needs a context and servers");
	err = rbx_guard_wait(ctx, "rbx_volume_open");
	if (err)
		return err;
	volume = volume_make(ctx);
	if (!volume)
		return rbx_error(-ENOMEM, "out of memory");
	err = options_take(volume, options);
	if (!err)
		err = rbx_events_begin(&volume->events, volume, volume->options.event,
				       volume->options.user);
	if (!err)
		err = name_check(volume, size);
	if (!err && volume->options.read_only) {
		err = rbx_reader_open(volume, servers);
		if (!err)
			goto out_opened;
		reader_end(volume);
		memory_free(volume);
		goto out_free;
	}
	if (!err)
		err = connect_to(volume, servers);
	if (err)
		goto out_free;
	if (volume->control.named)
		size = volume->control.named->record.size_bytes;
	err = servers_check(volume);
	if (!err)
		err = rbx_scrubber_volume_check(volume);
	slab_bytes = rbx_peer_slab_bytes(rbx_volume_server_first(&volume->control));
	if (!err)
		err = rbx_volume_memory_make(volume, size, slab_bytes);
	if (err)
		goto out_close_servers;
	if (volume->control.named)
		err = rbx_opening_take(&volume->control, volume->ctx->sessions);
	if (!err)
		err = rbx_upkeep_borrow_all(&volume->control.upkeep);
	if (err == -ENOSPC || err == -EDQUOT)
		err = rbx_volume_room_explain(volume, err);
	if (!err)
		err = rbx_volume_copies_make(volume);
	if (!err)
		err = rbx_volume_upkeep_start(&volume->control);
	if (err)
		goto out_abandon;
	err = rbx_opening_wait_even(&volume->control);
	if (!err && volume->control.named)
		err = rbx_volume_named_watch(volume, servers);
	if (!err)
		err = rbx_volume_joins_start(volume);
	if (!err)
		err = rbx_scrubber_start(&volume->scrubber, volume);
	if (err)
		goto out_stop;
	rbx_upkeep_opened(&volume->control.upkeep, volume->options.copy_rate);
out_opened:
	RBX_FETCH_ADD(&ctx->volumes_count, 1);
	*volume_out = volume;
	return 0;

out_stop:
	rbx_volume_named_join_no_more(volume);
	rbx_volume_joins_stop(volume);
	upkeep_stop(volume);
	goto out_close_servers;
out_abandon:
	rbx_events_end(&volume->events);
	rbx_upkeep_abandon(&volume->control.upkeep);
	rbx_upkeep_end(&volume->control.upkeep);
out_close_servers:
	rbx_events_end(&volume->events);
	/* No peer is lost after this. That looks at the map. */
	rbx_volume_servers_leave(&volume->control);
	memory_free(volume);
out_free:
	volume_free(volume);
	return err;
}

int rbx_volume_close(struct rbx_volume *volume)
{
	struct rbx_context *ctx;
	int err;

	if (!volume)
		return 0;
	ctx = volume->ctx;
	err = rbx_guard_wait(ctx, "rbx_volume_close");
	if (err)
		return err;
	if (!volume->reader) {
		rbx_scrubber_stop(&volume->scrubber);
		rbx_volume_named_join_no_more(volume);
		rbx_volume_joins_stop(volume);
		rbx_upkeep_closes(&volume->control.upkeep);
	}
	rbx_plug_flush();
	while (!rbx_piece_pool_is_idle(&volume->control.flow.pool))
		(void)rbx_volume_turn_wait(&volume->control);
	if (volume->reader) {
		reader_stop(volume);
		goto out_free;
	}
	upkeep_stop(volume);
	/* No peer is lost after this. That looks at the map. */
	rbx_volume_servers_leave(&volume->control);
out_free:
	memory_free(volume);
	volume_free(volume);
	RBX_FETCH_ADD(&ctx->volumes_count, (uint32_t)-1);
	return 0;
}

int rbx_volume_may_change(const struct rbx_volume *volume)
{
	return volume->reader ? rbx_error(-EROFS, "volume %s was opened to be read only",
					  volume->reader->record.name) :
				0;
}

uint64_t rbx_volume_size(const struct rbx_volume *volume)
{
	return rbx_volume_map_bytes(volume->control.flow.map);
}

int rbx_volume_add_server(struct rbx_volume *volume, const char *server)
{
	int err;

	if (!volume || !server || !*server)
		return rbx_error(-EINVAL, "a volume and the server's host:port must be given");
	err = rbx_guard_wait(volume->ctx, "rbx_volume_add_server");
	if (!err)
		err = rbx_volume_may_change(volume);
	if (err)
		return err;
	pthread_mutex_lock(&volume->add_lock);
	err = rbx_volume_server_add(volume, server, "", false);
	if (!err)
		rbx_volume_joins_note(volume, server);
	pthread_mutex_unlock(&volume->add_lock);
	return err;
}

int rbx_volume_discard(struct rbx_volume *volume, uint64_t offset,
		       uint64_t length_bytes)
{
	uint64_t size_bytes;
	int err;

	if (!volume)
		return rbx_error(-EINVAL, "a volume must be given");
	err = rbx_guard_use(volume->ctx, "rbx_volume_discard");
	if (!err)
		err = rbx_volume_may_change(volume);
	if (err)
		return err;
	size_bytes = rbx_volume_map_bytes(volume->control.flow.map);
	if (offset > size_bytes || length_bytes > size_bytes - offset)
		return rbx_error(-EINVAL, "%llu bytes at %llu are beyond the volume's %llu bytes",
				 (unsigned long long)length_bytes,
				 (unsigned long long)offset,
				 (unsigned long long)size_bytes);
	if (volume->control.named)
		return rbx_error(-EOPNOTSUPP, "a named volume keeps its memory until it is removed");
	if (!volume->options.on_demand)
		return rbx_error(-EOPNOTSUPP, "the volume was not opened with on_demand, so it keeps its memory");
	rbx_flow_discard(&volume->control.flow, offset, length_bytes);
	return 0;
}
