/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.c - the thread that makes the rounds of a volume's upkeep
 * (core/upkeep.h), and tells the program what it finds: the program's event
 * callback is called from this thread only.
 */
#include <stdlib.h>
#include <time.h>

#include "lib/volume/volume.h"

/* ---- What is told -----------------------------------------------------------*/

RBX_STATIC_ASSERT((int)RBX_NEWS_SERVER_DOWN == RBX_EVENT_SERVER_DOWN &&
			  (int)RBX_NEWS_REBUILD_STARTED ==
				  RBX_EVENT_REBUILD_STARTED &&
			  (int)RBX_NEWS_REBUILD_DONE ==
				  RBX_EVENT_REBUILD_DONE &&
			  (int)RBX_NEWS_REBUILD_STUCK ==
				  RBX_EVENT_REBUILD_STUCK &&
			  (int)RBX_NEWS_DATA_LOST == RBX_EVENT_DATA_LOST,
		  "same numbers");

static const char *reason_of(const struct rbx_volume_server *server,
			     enum rbx_news news, int err)
{
	switch (news) {
	case RBX_NEWS_SERVER_DOWN:
		return server->reason;
	case RBX_NEWS_REBUILD_STARTED:
		return "replicas are missing and are made anew";
	case RBX_NEWS_REBUILD_DONE:
		return "all replicas are live";
	case RBX_NEWS_REBUILD_STUCK:
		return err == -ENODEV ?
			       "no server of the volume is left that could take a replica; add a server" :
			       rbx_last_error();
	case RBX_NEWS_DATA_LOST:
		return "the last replica is gone; reads end with -EIO";
	}
	return "";
}

void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err)
{
	struct rbx_volume *volume = rbx_volume_of_upkeep(upkeep);
	const struct rbx_volume_server *whose = &volume->servers[server];
	struct rbx_event event = {
		.kind = (enum rbx_event_kind)news,
		.server = news == RBX_NEWS_SERVER_DOWN ?
				  rbx_peer_address(whose->peer) :
				  "",
		.slab_count = count,
		.reason = reason_of(whose, news, err),
	};

	const char *before;

	if (!volume->options.event)
		return;
	before = rbx_callback_enter("event callback");
	volume->options.event(volume, &event, volume->options.user);
	rbx_callback_leave(before);
}

/* ---- The thread -------------------------------------------------------------*/

/* keeper_lock is held. */
static void keeper_sleep(struct rbx_volume *volume, bool again)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += RBX_UPKEEP_RETRY_MS / 1000;
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
		again = rbx_upkeep_round(&volume->upkeep);
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

static int copies_make(struct rbx_volume *volume)
{
	const struct rbx_slab_shape *shape = &volume->flow.map->shape;
	size_t cell_bytes = (size_t)1 << shape->cell_shift;
	uint32_t i;

	volume->copies_memory =
		aligned_alloc(RBX_PAGE_BYTES, RBX_COPIES_MAX * cell_bytes);
	if (!volume->copies_memory)
		return -ENOMEM;
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		void *copy = calloc(1, rbx_piece_size(shape->slots, 0));

		if (!copy)
			return -ENOMEM;
		rbx_rebuild_lend(&volume->flow, i, copy,
				 (uintptr_t)volume->copies_memory +
					 i * cell_bytes);
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
	int err = copies_make(volume);

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
		free(volume->flow.rebuild.copies[i]);
	free(volume->copies_memory);
	pthread_mutex_destroy(&volume->keeper_lock);
	pthread_cond_destroy(&volume->keeper_changed);
}
