/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share: the kernel's host of the volume's
 * state machine (core/volume.h, core/slab.h).
 *
 *	volume.c         opens and closes, tells the status
 *	servers.c        connects to the servers that the options name
 *	volume_submit.c  the way of an I/O: split, send, join
 *	volume_keeper.c  the thread that replaces what was lost
 *	loans.c          what servers have lent, and what is owed to them
 *
 * Locks: servers_lock and a slab's lock are spinlocks, taken in process context
 * only, never both, and nothing is called under them but steps of the core.
 */
#ifndef RBX_KERNEL_VOLUME_H
#define RBX_KERNEL_VOLUME_H

#include <linux/spinlock.h>
#include <linux/wait.h>

#include "core/piece_pool.h"
#include "core/volume.h"
#include "kernel/api.h"
#include "kernel/lib/peer.h"

struct rbx_volume_server {
	struct rbx_volume *volume;
	struct rbx_peer *peer; /* set before any replica refers to it */
	bool went_down; /* atomic: the keeper has yet to see to it */
	bool is_down; /* atomic: never to be asked again */
};

/* The rebuild of one slab: cells are copied, each copy followed by the next. */
struct rbx_volume_rebuild {
	struct rbx_slab *slab; /* atomic; NULL: none is under way */
	struct rbx_piece *copies[RBX_COPIES_MAX];
	void *memory[RBX_COPIES_MAX]; /* a cell for each copy */
};

/* A loan that could not be given back, since the connection was broken. It is of
 * no use to us and is lost to others, until the server hears of it. */
struct rbx_volume_owed {
	uint32_t server;
	struct rbx_loan loan;
};

/* More than a connection that breaks again and again has left behind; what comes
 * after that goes back when the volume is closed. */
#define RBX_VOLUME_OWED_MAX 256u

struct rbx_volume {
	struct rbx_client client;
	struct rbx_context *ctx; /* the client's */
	void *secret; /* a copy of it */
	struct rbx_volume_map *map;
	spinlock_t *slab_locks; /* one for each slab */
	struct rbx_piece_pool pool;
	uint32_t server_count;
	struct rbx_volume_server servers[RBX_SERVERS_MAX];
	spinlock_t servers_lock; /* guards the map's table of servers */

	struct task_struct *keeper;
	wait_queue_head_t keeper_changed;
	bool keeper_wanted; /* atomic */
	struct rbx_volume_rebuild rebuild;
	struct rbx_volume_owed owed[RBX_VOLUME_OWED_MAX]; /* the keeper's own */
	uint32_t owed_count;
	uint64_t rebuilt_bytes; /* atomic */
	uint64_t failovers; /* atomic */
};

static inline void rbx_volume_lock(struct rbx_volume *volume,
				   const struct rbx_slab *slab)
{
	spin_lock(&volume->slab_locks[slab->index]);
}

static inline void rbx_volume_unlock(struct rbx_volume *volume,
				     const struct rbx_slab *slab)
{
	spin_unlock(&volume->slab_locks[slab->index]);
}

/* servers.c */

/* Opens the context and a peer for each server. Blocks. */
int rbx_volume_servers_open(struct rbx_volume *volume,
			    const struct rbx_volume_options *options);
void rbx_volume_servers_close(struct rbx_volume *volume);

/* volume_submit.c */

/* Starts pieces that have been aimed at their slabs, and sends their parts; the
 * list is empty then. A piece that ends at once is ended by the poller, never
 * from here: whoever submits from a completion would recurse. */
void rbx_volume_start(struct rbx_volume *volume, struct rbx_piece_list *pieces);
/* done() of the parts. */
void rbx_volume_parts_done(struct rbx_fragment *list);

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

/* volume_keeper.c */

int rbx_volume_keeper_start(struct rbx_volume *volume);
/* A rebuild may still be under way then. */
void rbx_volume_keeper_stop(struct rbx_volume *volume);
/* Frees what rebuilds need; none is under way. */
void rbx_volume_keeper_free(struct rbx_volume *volume);
/* Something is to be seen to. Any context. */
void rbx_volume_keeper_wake(struct rbx_volume *volume);
/* A copy has ended. */
void rbx_volume_copy_ended(struct rbx_volume *volume, struct rbx_piece *piece);
/* rbx_slab_task(), with the slab's lock. */
enum rbx_slab_task rbx_volume_task(struct rbx_volume *volume,
				   struct rbx_slab *slab);

#endif
