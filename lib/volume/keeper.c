/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.c - the thread that sees to a volume's lost replicas.
 *
 * Requests only note a loss and wake the keeper; what may block is done here:
 * memory is borrowed from another server, and given back. A round goes over all
 * slabs and does for each what rbx_slab_task() says. Slabs are rebuilt one at a
 * time, with RBX_COPIES_MAX cells under way; the copies go on by themselves,
 * each started by the end of the one before, and the last wakes the keeper.
 * Meanwhile requests go on as ever, writes to the new replica too.
 *
 * Where no server can take a replica the keeper tells it and tries again every
 * second, and at once when a server is added. A replica that should leave is then
 * checked with its server: what was revoked is no replica any more. The program's
 * event callback is called from this thread only.
 */
#include <stdlib.h>
#include <time.h>

#include "lib/volume/volume.h"

/* Until a refused replica is tried again. */
#define RETRY_S 1

static void tell(struct rbx_volume *volume, enum rbx_event_kind kind,
		 const char *server, uint32_t slab_count, const char *reason)
{
	struct rbx_event event = {
		.kind = kind,
		.server = server,
		.slab_count = slab_count,
		.reason = reason,
	};

	if (volume->options.event)
		volume->options.event(volume, &event, volume->options.user);
}

struct census {
	uint32_t lacking;
	uint32_t dead;
};

static struct census census_take(struct rbx_volume *volume)
{
	struct census census = { 0 };
	uint32_t i;

	for (i = 0; i < volume->map->slab_count; i++) {
		struct rbx_slab *slab = &volume->map->slabs[i];
		enum rbx_slab_health health;

		rbx_volume_lock(volume, slab);
		health = rbx_slab_health(slab);
		rbx_volume_unlock(volume, slab);
		census.dead += health == RBX_SLAB_DEAD;
		census.lacking += health == RBX_SLAB_LACKING ||
				  health == RBX_SLAB_REBUILDING;
	}
	return census;
}

enum rbx_slab_task rbx_volume_task(struct rbx_volume *volume,
				   struct rbx_slab *slab)
{
	enum rbx_slab_task task;

	rbx_volume_lock(volume, slab);
	task = rbx_slab_task(slab);
	rbx_volume_unlock(volume, slab);
	return task;
}

static void copy_start(struct rbx_volume *volume, struct rbx_piece *copy)
{
	struct rbx_piece_list list = { 0 };

	rbx_piece_list_add(&list, copy);
	rbx_volume_start(volume, &list);
}

/* Starts the next copy of a rebuild; false: there is none. */
static bool copy_next(struct rbx_volume *volume, struct rbx_slab *slab,
		      struct rbx_piece *copy)
{
	bool more;

	rbx_volume_lock(volume, slab);
	more = rbx_slab_copy_next(slab, copy);
	rbx_volume_unlock(volume, slab);
	if (more)
		copy_start(volume, copy);
	return more;
}

/* The slab of the rebuild under way, or NULL. */
static struct rbx_slab *rebuild_slab(struct rbx_volume *volume)
{
	struct rbx_slab *slab;

	pthread_mutex_lock(&volume->keeper_lock);
	slab = volume->rebuild.slab;
	pthread_mutex_unlock(&volume->keeper_lock);
	return slab;
}

bool rbx_volume_is_rebuilding(struct rbx_volume *volume)
{
	return rebuild_slab(volume) != NULL;
}

static void rebuild_set(struct rbx_volume *volume, struct rbx_slab *slab)
{
	pthread_mutex_lock(&volume->keeper_lock);
	volume->rebuild.slab = slab;
	volume->keeper_wanted = true;
	pthread_cond_signal(&volume->keeper_changed);
	pthread_mutex_unlock(&volume->keeper_lock);
}

static void rebuild_start(struct rbx_volume *volume, struct rbx_slab *slab)
{
	uint32_t i;
	bool any = false;

	rebuild_set(volume, slab);
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		/* The first may have gone over all cells already, and ended
		 * the rebuild; then this finds no more. */
		any |= copy_next(volume, slab, volume->rebuild.copies[i]);
	}
	if (!any) /* the target was lost before the first copy */
		rebuild_set(volume, NULL);
}

void rbx_volume_copy_ended(struct rbx_volume *volume, struct rbx_piece *piece)
{
	struct rbx_counters *counters = rbx_context_counters(volume->ctx);
	struct rbx_slab *slab = piece->slab;
	bool last, more;

	if (piece->status == 0) {
		RBX_ADD_RELAXED(&volume->rebuilt_bytes, piece->length_bytes);
		RBX_ADD_RELAXED(&counters->rebuilt_bytes, piece->length_bytes);
	}
	rbx_volume_lock(volume, slab);
	last = rbx_slab_copy_done(slab, piece);
	more = !last && rbx_slab_copy_next(slab, piece);
	rbx_volume_unlock(volume, slab);
	/* Without more the piece may be part of the next rebuild by now. */
	if (more)
		copy_start(volume, piece);
	else if (last)
		rebuild_set(volume, NULL);
}

/* Returns whether no server could take the replica. */
static bool replace(struct rbx_volume *volume, struct rbx_slab *slab)
{
	struct rbx_volume_news *news = &volume->news;

	if (rbx_volume_borrow(volume, slab, RBX_REPLICA_REBUILDING)) {
		rbx_volume_check_leaving(volume, slab);
		return true;
	}
	if (!news->rebuilt_count)
		tell(volume, RBX_EVENT_REBUILD_STARTED, "",
		     census_take(volume).lacking,
		     "replicas are missing and are made anew");
	news->rebuilt_count++;
	return false;
}

/* Returns whether the slab stays without a replica. */
static bool slab_tend(struct rbx_volume *volume, struct rbx_slab *slab)
{
	uint32_t i;

	/* Bounded: a slot can be given back once, and one more is borrowed. */
	for (i = 0; i < 2 * RBX_SLOTS_MAX; i++) {
		switch (rbx_volume_task(volume, slab)) {
		case RBX_TASK_GIVE_BACK:
			rbx_volume_give_back(volume, slab);
			break;
		case RBX_TASK_BORROW:
			if (replace(volume, slab))
				return true;
			break;
		case RBX_TASK_COPY:
			if (!rbx_volume_is_rebuilding(volume))
				rebuild_start(volume, slab);
			return false;
		case RBX_TASK_NONE:
			return false;
		}
	}
	return false;
}

/* Marks what a dead server held as lost; fragments that failed there have done
 * so already for their slabs. */
static void server_down(struct rbx_volume *volume, uint32_t index)
{
	struct rbx_volume_server *server = &volume->servers[index];
	uint32_t i, slab_count = 0;

	pthread_mutex_lock(&volume->servers_lock);
	rbx_volume_map_server_down(volume->map, index);
	pthread_mutex_unlock(&volume->servers_lock);
	for (i = 0; i < volume->map->slab_count; i++) {
		struct rbx_slab *slab = &volume->map->slabs[i];

		rbx_volume_lock(volume, slab);
		slab_count += rbx_slab_servers(slab) >> index & 1;
		rbx_slab_server_down(slab, index);
		rbx_volume_unlock(volume, slab);
	}
	tell(volume, RBX_EVENT_SERVER_DOWN, rbx_peer_address(server->peer),
	     slab_count, server->reason);
}

static void servers_tend(struct rbx_volume *volume)
{
	uint32_t i, server_count;

	pthread_mutex_lock(&volume->servers_lock);
	server_count = volume->map->server_count;
	pthread_mutex_unlock(&volume->servers_lock);
	for (i = 0; i < server_count; i++)
		if (RBX_EXCHANGE(&volume->servers[i].went_down, false))
			server_down(volume, i);
}

static void news_tell(struct rbx_volume *volume, uint32_t stuck_count)
{
	struct rbx_volume_news *news = &volume->news;
	struct census census = census_take(volume);

	if (census.dead > news->dead_count)
		tell(volume, RBX_EVENT_DATA_LOST, "",
		     census.dead - news->dead_count,
		     "the last replica is gone; requests end with -EIO");
	news->dead_count = census.dead;
	if (stuck_count && !news->stuck)
		tell(volume, RBX_EVENT_REBUILD_STUCK, "", stuck_count,
		     rbx_last_error());
	news->stuck = stuck_count > 0;
	if (news->rebuilt_count && !census.lacking) {
		tell(volume, RBX_EVENT_REBUILD_DONE, "", news->rebuilt_count,
		     "all replicas are live");
		news->rebuilt_count = 0;
	}
}

/* Returns whether it is to be tried again later. */
static bool keeper_round(struct rbx_volume *volume)
{
	uint32_t i, stuck_count = 0;

	servers_tend(volume);
	for (i = 0; i < volume->map->slab_count; i++)
		stuck_count += slab_tend(volume, &volume->map->slabs[i]);
	news_tell(volume, stuck_count);
	return rbx_volume_pay_owed(volume) || stuck_count > 0;
}

/* keeper_lock is held. */
static void keeper_sleep(struct rbx_volume *volume, bool again)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += RETRY_S;
	while (!volume->keeper_wanted && !volume->keeper_stop && !err) {
		if (again)
			err = pthread_cond_timedwait(&volume->keeper_changed,
						     &volume->keeper_lock,
						     &until);
		else
			pthread_cond_wait(&volume->keeper_changed,
					  &volume->keeper_lock);
	}
}

static void *keeper_main(void *arg)
{
	struct rbx_volume *volume = arg;
	bool again;

	pthread_mutex_lock(&volume->keeper_lock);
	while (!volume->keeper_stop) {
		volume->keeper_wanted = false;
		pthread_mutex_unlock(&volume->keeper_lock);
		again = keeper_round(volume);
		pthread_mutex_lock(&volume->keeper_lock);
		keeper_sleep(volume, again);
	}
	pthread_mutex_unlock(&volume->keeper_lock);
	return NULL;
}

void rbx_volume_keeper_wake(struct rbx_volume *volume)
{
	pthread_mutex_lock(&volume->keeper_lock);
	volume->keeper_wanted = true;
	pthread_cond_signal(&volume->keeper_changed);
	pthread_mutex_unlock(&volume->keeper_lock);
}

/* The memory of the copies is had beforehand: a rebuild must not fail for the
 * want of it. */
static int rebuild_prepare(struct rbx_volume *volume)
{
	size_t cell_bytes = (size_t)1 << volume->map->shape.cell_shift;
	uint32_t slots = volume->map->shape.slots;
	uint32_t i;

	volume->rebuild.memory =
		aligned_alloc(RBX_PAGE_BYTES, RBX_COPIES_MAX * cell_bytes);
	if (!volume->rebuild.memory)
		return -ENOMEM;
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		struct rbx_piece *copy = calloc(1, rbx_piece_size(slots));

		if (!copy)
			return -ENOMEM;
		rbx_piece_init(copy, slots, volume, rbx_volume_parts_done);
		copy->kind = RBX_PIECE_COPY;
		copy->local_addr = (uintptr_t)volume->rebuild.memory +
				   i * cell_bytes;
		volume->rebuild.copies[i] = copy;
	}
	return 0;
}

void rbx_volume_keeper_init(struct rbx_volume *volume)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&volume->keeper_changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&volume->keeper_lock, NULL);
}

int rbx_volume_keeper_start(struct rbx_volume *volume)
{
	int err = rebuild_prepare(volume);

	if (!err)
		err = -pthread_create(&volume->keeper, NULL, keeper_main,
				      volume);
	if (err)
		return rbx_error(err, "cannot start the volume's thread: %s",
				 strerror(-err));
	return 0;
}

void rbx_volume_keeper_stop(struct rbx_volume *volume)
{
	pthread_mutex_lock(&volume->keeper_lock);
	volume->keeper_stop = true;
	pthread_cond_signal(&volume->keeper_changed);
	pthread_mutex_unlock(&volume->keeper_lock);
	pthread_join(volume->keeper, NULL);
}

void rbx_volume_keeper_destroy(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < RBX_COPIES_MAX; i++)
		free(volume->rebuild.copies[i]);
	free(volume->rebuild.memory);
	pthread_mutex_destroy(&volume->keeper_lock);
	pthread_cond_destroy(&volume->keeper_changed);
}
