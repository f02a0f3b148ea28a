/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share. It is the user-space host of a volume's
 * flow, upkeep and control (core/flow.h, core/upkeep.h, client/volume.h).
 *
 *	volume.c   opens and closes, adds servers
 *	status.c   how it is
 *	connect.c  connects to the servers of a list or a pool
 *	joins.c    connects to those that come later, or again; named_join.c if it has a name
 *	news.c     tells the program what the upkeep finds
 *	events.c   a thread that calls the program for that
 *	submit.c   a request: split, started, joined
 *	scatter.c  splits requests that have segments
 *	scrub.c    reads what each replica has; scrubber.c does so for ever
 *	bounce.c   pages for bytes that lie in several segments
 *	fence.c    requests that wait for all earlier ones
 *	copies.c   memory for the copies of a rebuild
 *	scratch.c  memory outside of any request
 *	room.c     why a volume finds no memory
 *	reader.h   a named volume that is only read
 *	sync.c     rbx_read(), rbx_write() and so on
 *
 * Locks, in order of precedence: add_lock, fence_lock, the monitor of the control,
 * the lock of bounce.h, the locks of the core. Only add_lock is held while blocking.
 * No two of the last four are held together.
 */
#ifndef RBX_LIB_VOLUME_H
#define RBX_LIB_VOLUME_H

#include <pthread.h>

#include "client/join_tries.h"
#include "client/volume.h"
#include "lib/context.h"
#include "lib/peer/peer.h"
#include "lib/volume/bounce.h"
#include "lib/volume/events.h"
#include "lib/volume/scrubber.h"
#include "pool/pool.h"

/* A server of the pool that is not used. */
struct rbx_left_out {
	char address[RBX_POOL_ADDRESS_BYTES];
	char reason[RBX_ERROR_TEXT_MAX];
};

/* What becomes of the members of the pool, and of servers that were added. */
struct rbx_volume_joins {
	struct rbx_pool_member *members; /* of the thread: room for all */
	struct rbx_pool *pool; /* NULL: nothing of this is used, as the volume takes no servers */
	struct rbx_pool_worker worker; /* the thread that connects to them */
	bool has_worker;
	bool only_returns; /* it is a list: those that are used no more, or are OUT */
	char trouble[RBX_POOL_TEXT_BYTES]; /* of the pool, as the program was told; "": none */
	struct rbx_left_out *left_out; /* at the beginning; until the thread has told of them */
	uint32_t left_out_count;
	struct rbx_join_tries tries; /* guarded by add_lock */
};

struct rbx_volume {
	struct rbx_context *ctx;
	struct rbx_volume_options options;
	struct rbx_volume_control control;
	struct rbx_bounces bounces;
	/* Held while a server is added; guards server_count of the control, and formers of its
	 * keeper. */
	pthread_mutex_t add_lock;

	pthread_mutex_t fence_lock; /* guards both below */
	struct rbx_piece_list fenced; /* pieces that wait behind a fence, in order */
	uint32_t fence_cursor; /* of the first of these pieces */

	struct rbx_events events;
	struct rbx_volume_joins joins;
	struct rbx_scrubber scrubber;

	struct rbx_reader *reader; /* reader.h; NULL: it may be written */

	char *copies_memory; /* a cell for each copy of a rebuild */
	/* For the upkeep thread: why the last server that was asked refused to take a
	 * missing replica. */
	char refusal[RBX_ERROR_TEXT_MAX];
};

static inline struct rbx_volume *
rbx_volume_of_control(struct rbx_volume_control *control)
{
	return RBX_CONTAINER_OF(control, struct rbx_volume, control);
}

static inline struct rbx_volume *rbx_volume_of_flow(struct rbx_flow *flow)
{
	return rbx_volume_of_control(rbx_volume_control_of_flow(flow));
}

/* connect.c. All of it blocks. */

/* Connects to one more server, which joins the volume (client/joining.h). labels: what the pool
 * says of it; "": nothing. returns: only if it was one of a named volume, and is OUT. add_lock is
 * held. */
int rbx_volume_server_add(struct rbx_volume *volume, const char *address, const char *labels,
			  bool returns);
/* Connects to each server of "host:port,host:port", or to those of a pool that can be. told: a
 * pool that says more of them than their addresses; it may be the same. */
int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers, const char *told);

/* joins.c */

/* Notes that a member is not used, for the reason that rbx_last_error() has. 0 or -ENOMEM. */
int rbx_volume_leave_out(struct rbx_volume *volume, const char *address);
/* The program has added the server of this address: if it is lost, it is tried again. add_lock is
 * held. If there are too many, it is not. */
void rbx_volume_joins_note(struct rbx_volume *volume, const char *address);
/* Starts the thread, if there is a pool. 0 or -errno. */
int rbx_volume_joins_start(struct rbx_volume *volume);
/* Stops it, and closes the pool. */
void rbx_volume_joins_stop(struct rbx_volume *volume);

/* volume.c */

/* The map, and what requests need. 0, or -errno that was reported. */
int rbx_volume_memory_make(struct rbx_volume *volume, uint64_t size, uint64_t slab_bytes);
/* 0; -EROFS: it is only read; reported. */
int rbx_volume_may_change(const struct rbx_volume *volume);
/* Starts pieces that were filled; the list is empty afterwards. */
void rbx_volume_start(struct rbx_volume *volume, struct rbx_piece_list *pieces);

/* copies.c */

int rbx_volume_copies_make(struct rbx_volume *volume);
void rbx_volume_copies_free(struct rbx_volume *volume);

/* room.c */

/* Adds what was asked for, and what each server has, to the error of this thread. Returns
 * err. Called by the thread that opens the volume, before it gives anything back. */
int rbx_volume_room_explain(struct rbx_volume *volume, int err);

/* submit.c */

extern const struct rbx_flow_ops rbx_volume_flow_ops;
/* 0, or -EINVAL if no request can have this range. */
int rbx_volume_range_check(const struct rbx_volume *volume, uint64_t offset,
			   uint64_t length_bytes);

/* scatter.c */

/* Counts the pieces and bounce pages that a request with segments needs. It was checked. */
void rbx_volume_scatter_count(const struct rbx_volume *volume,
			      const struct rbx_request *request,
			      uint32_t *pieces_count, uint32_t *bounces_count);
/* Fills pieces, from one of a list on, and bounce pages, which it takes off the chain. Returns
 * the last piece. */
struct rbx_piece *rbx_volume_scatter(struct rbx_volume *volume,
				     struct rbx_request *request,
				     struct rbx_piece *piece, uint32_t *bounce);

/* fence.c */

/* Starts the pieces when all that was submitted before has ended. */
void rbx_volume_fence(struct rbx_volume *volume, struct rbx_piece_list *pieces);
/* Called when a piece was put back while a fence waits. */
void rbx_volume_fence_look(struct rbx_volume *volume);

#endif
