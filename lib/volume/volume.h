/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share: the user-space host of the
 * volume's state machine (core/volume.h, core/slab.h).
 *
 *	volume.c  opens and closes, adds servers, tells the status
 *	submit.c  the way of a request: split, send, join
 *	fence.c   requests that wait for all earlier ones
 *	keeper.c  the thread that replaces what was lost
 *	loans.c   what servers have lent, and what is owed to them
 *	sync.c    rbx_read() and rbx_write()
 *
 * Locks, in order of precedence (none is held while blocking but add_lock):
 * add_lock, fence_lock, keeper_lock, servers_lock, a slab's lock. No two of the
 * latter four are ever held together.
 */
#ifndef RBX_LIB_VOLUME_H
#define RBX_LIB_VOLUME_H

#include <pthread.h>

#include "core/checksum.h"
#include "core/piece_pool.h"
#include "core/volume.h"
#include "lib/context.h"
#include "lib/peer/peer.h"

struct rbx_volume_server {
	struct rbx_volume *volume;
	struct rbx_peer *peer; /* set before any replica refers to it */
	bool went_down; /* atomic: the keeper has yet to see to it */
	bool is_down; /* atomic: never to be asked again */
	char reason[RBX_ERROR_TEXT_MAX]; /* written before went_down */
};

/* The rebuild of one slab: cells are copied, each copy followed by the next. */
struct rbx_volume_rebuild {
	struct rbx_slab *slab; /* NULL: none is under way; keeper_lock */
	struct rbx_piece *copies[RBX_COPIES_MAX];
	char *memory; /* a cell for each copy */
};

/* What the program has been told, so that each news is told once. The keeper's
 * own. */
struct rbx_volume_news {
	uint32_t rebuilt_count; /* replicas since all were live */
	bool stuck;
	uint32_t dead_count;
};

/* A loan that could not be given back, since the connection was broken. It is of
 * no use to us and is lost to others, until the server hears of it. */
struct rbx_volume_owed {
	uint32_t server;
	struct rbx_grant grant;
};

/* More than a connection that breaks again and again has left behind; what comes
 * after that goes back when the volume is closed. */
#define RBX_VOLUME_OWED_MAX 256u

struct rbx_volume {
	struct rbx_context *ctx;
	struct rbx_volume_options options;
	struct rbx_volume_map *map;
	pthread_mutex_t *slab_locks; /* one for each slab */
	struct rbx_piece_pool pool;
	struct rbx_volume_server servers[RBX_SERVERS_MAX];
	pthread_mutex_t add_lock; /* one server is added at a time */

	pthread_mutex_t fence_lock; /* guards both below */
	struct rbx_piece_list fenced; /* pieces behind a fence, in order */
	uint32_t fence_cursor; /* of the first of them */

	pthread_t keeper;
	pthread_mutex_t keeper_lock; /* guards the three below */
	pthread_cond_t keeper_changed;
	bool keeper_wanted;
	bool keeper_stop;
	struct rbx_volume_rebuild rebuild;
	struct rbx_volume_news news;
	struct rbx_volume_owed owed[RBX_VOLUME_OWED_MAX]; /* the keeper's own */
	uint32_t owed_count;
	uint64_t rebuilt_bytes; /* atomic */

	pthread_mutex_t servers_lock; /* guards the map's table of servers */
};

static inline void rbx_volume_lock(struct rbx_volume *volume,
				   const struct rbx_slab *slab)
{
	pthread_mutex_lock(&volume->slab_locks[slab->index]);
}

static inline void rbx_volume_unlock(struct rbx_volume *volume,
				     const struct rbx_slab *slab)
{
	pthread_mutex_unlock(&volume->slab_locks[slab->index]);
}

/* submit.c */

/* 0, or -EINVAL for a range that no request can have. */
int rbx_volume_range_check(const struct rbx_volume *volume, uint64_t offset,
			   uint64_t length_bytes);

/* Starts pieces that have been aimed at their slabs, and sends their parts; the
 * list is empty then. A piece that ends at once is ended by the poller, never
 * from here: whoever submits from a completion would recurse. */
void rbx_volume_start(struct rbx_volume *volume, struct rbx_piece_list *pieces);
/* done() of the parts. */
void rbx_volume_parts_done(struct rbx_fragment *list);

/* fence.c */

/* Starts the pieces when all that was submitted before has ended. */
void rbx_volume_fence(struct rbx_volume *volume, struct rbx_piece_list *pieces);
/* A piece was put back while a fence waits. */
void rbx_volume_fence_look(struct rbx_volume *volume);

/* loans.c: all of it blocks. */

/* Borrows one replica; 0, or why no server lends it. */
int rbx_volume_borrow(struct rbx_volume *volume, struct rbx_slab *slab,
		      enum rbx_replica_state state);
/* Does RBX_TASK_GIVE_BACK. */
void rbx_volume_give_back(struct rbx_volume *volume, struct rbx_slab *slab);
/* Gives back what is owed; returns whether something still is. */
bool rbx_volume_pay_owed(struct rbx_volume *volume);
/* Loses a replica that should leave, where its server has revoked it. */
void rbx_volume_check_leaving(struct rbx_volume *volume, struct rbx_slab *slab);

/* keeper.c */

void rbx_volume_keeper_init(struct rbx_volume *volume);
void rbx_volume_keeper_destroy(struct rbx_volume *volume);
int rbx_volume_keeper_start(struct rbx_volume *volume);
/* A rebuild may still be under way then. */
void rbx_volume_keeper_stop(struct rbx_volume *volume);
/* Something is to be seen to. Any thread; does not block. */
void rbx_volume_keeper_wake(struct rbx_volume *volume);
/* A copy has ended. */
void rbx_volume_copy_ended(struct rbx_volume *volume, struct rbx_piece *piece);
bool rbx_volume_is_rebuilding(struct rbx_volume *volume);
/* rbx_slab_task(), with the slab's lock. */
enum rbx_slab_task rbx_volume_task(struct rbx_volume *volume,
				   struct rbx_slab *slab);

#endif
