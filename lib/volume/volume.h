/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share: the user-space host of its flow
 * and its upkeep (core/flow.h, core/upkeep.h).
 *
 *	volume.c   opens and closes, adds servers, tells the status
 *	connect.c  connects to servers, takes leave of them
 *	servers.c  what servers say, borrows from them
 *	submit.c   the way of a request: split, started, joined
 *	scatter.c  requests of segments are split
 *	bounce.c   pages for what lies in several segments
 *	fence.c    requests that wait for all earlier ones
 *	keeper.c   the thread that makes the rounds of the upkeep
 *	sync.c     rbx_read(), rbx_write() and so on
 *
 * Locks, in order of precedence (none is held while blocking but add_lock):
 * add_lock, fence_lock, keeper_lock, that of bounce.h, those of the core. No two of the
 * latter four are ever held together.
 */
#ifndef RBX_LIB_VOLUME_H
#define RBX_LIB_VOLUME_H

#include <pthread.h>

#include "core/upkeep.h"
#include "lib/context.h"
#include "lib/peer/peer.h"
#include "lib/volume/bounce.h"

struct rbx_volume_server {
	struct rbx_volume *volume;
	/* Set before any replica refers to it; NULL: there is none. Changed with the
	 * upkeep's servers_lock. */
	struct rbx_peer *peer;
	struct rbx_ask ask; /* the upkeep's */
	/* Of the opening: */
	const char *address;
	int open_err;
	char reason[RBX_ERROR_TEXT_MAX]; /* written before it is down */
};

struct rbx_volume {
	struct rbx_context *ctx;
	struct rbx_volume_options options;
	struct rbx_flow flow;
	struct rbx_upkeep upkeep;
	struct rbx_bounces bounces;
	pthread_mutex_t add_lock; /* one server is added at a time */
	uint32_t server_count; /* places that are or were in use; with add_lock */
	struct rbx_volume_server servers[RBX_SERVERS_MAX];

	pthread_mutex_t fence_lock; /* guards both below */
	struct rbx_piece_list fenced; /* pieces behind a fence, in order */
	uint32_t fence_cursor; /* of the first of them */

	pthread_t keeper;
	char *copies_memory; /* a cell for each copy of a rebuild */
	pthread_mutex_t keeper_lock; /* guards all below */
	pthread_cond_t keeper_changed;
	bool keeper_wanted;
	bool keeper_stop;
};

static inline struct rbx_volume *rbx_volume_of_flow(struct rbx_flow *flow)
{
	return RBX_CONTAINER_OF(flow, struct rbx_volume, flow);
}

static inline struct rbx_volume *
rbx_volume_of_upkeep(struct rbx_upkeep *upkeep)
{
	return RBX_CONTAINER_OF(upkeep, struct rbx_volume, upkeep);
}

/* connect.c. All of it blocks. */

/* Connects to one server more and puts it at this place of the table. */
int rbx_volume_server_open(struct rbx_volume *volume, uint32_t index,
			   const char *address);
/* It is of no use: the place is free again. */
void rbx_volume_server_close(struct rbx_volume *volume, uint32_t index);
/* Connects to each of "host:port,host:port". */
int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers);
/* Takes leave of all: what they have lent ends. */
void rbx_volume_servers_close(struct rbx_volume *volume);

/* servers.c */

struct rbx_peer_events rbx_volume_peer_events(struct rbx_volume *volume,
					      uint32_t index);
extern const struct rbx_upkeep_ops rbx_volume_upkeep_ops;

/* submit.c */

extern const struct rbx_flow_ops rbx_volume_flow_ops;
/* 0, or -EINVAL for a range that no request can have. */
int rbx_volume_range_check(const struct rbx_volume *volume, uint64_t offset,
			   uint64_t length_bytes);

/* scatter.c */

/* How many pieces and bounces a request of segments needs, in range and checked. */
void rbx_volume_scatter_count(const struct rbx_volume *volume,
			      const struct rbx_request *request,
			      uint32_t *pieces_count, uint32_t *bounces_count);
/* Takes pieces from one list, and bounces off the chain; aimed, they are added to the
 * other list. */
void rbx_volume_scatter(struct rbx_volume *volume, struct rbx_request *request,
			struct rbx_piece_list *pieces, uint32_t *bounce,
			struct rbx_piece_list *own);

/* fence.c */

/* Starts the pieces when all that was submitted before has ended. */
void rbx_volume_fence(struct rbx_volume *volume, struct rbx_piece_list *pieces);
/* A piece was put back while a fence waits. */
void rbx_volume_fence_look(struct rbx_volume *volume);

/* keeper.c */

void rbx_volume_keeper_init(struct rbx_volume *volume);
void rbx_volume_keeper_destroy(struct rbx_volume *volume);
int rbx_volume_keeper_start(struct rbx_volume *volume);
/* A rebuild may still be under way then. */
void rbx_volume_keeper_stop(struct rbx_volume *volume);
/* Something is to be seen to. Any thread; does not block. */
void rbx_volume_keeper_wake(struct rbx_volume *volume);
/* Tells the program the news of the upkeep. */
void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err);

#endif
