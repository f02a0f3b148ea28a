/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share: the user-space host of its flow, its
 * upkeep and its control (core/flow.h, core/upkeep.h, client/volume.h).
 *
 *	volume.c   opens and closes, adds servers, tells the status
 *	connect.c  names of servers, and connecting to them
 *	news.c     tells the program what the upkeep finds
 *	submit.c   the way of a request: split, started, joined
 *	scatter.c  requests of segments are split
 *	bounce.c   pages for what lies in several segments
 *	fence.c    requests that wait for all earlier ones
 *	copies.c   memory for the copies of a rebuild
 *	sync.c     rbx_read(), rbx_write() and so on
 *
 * Locks, in order of precedence (none is held while blocking but add_lock):
 * add_lock, fence_lock, the control's monitor, that of bounce.h, those of the core. No
 * two of the latter four are ever held together.
 */
#ifndef RBX_LIB_VOLUME_H
#define RBX_LIB_VOLUME_H

#include <pthread.h>

#include "client/volume.h"
#include "lib/context.h"
#include "lib/peer/peer.h"
#include "lib/volume/bounce.h"

struct rbx_volume {
	struct rbx_context *ctx;
	struct rbx_volume_options options;
	struct rbx_volume_control control;
	struct rbx_bounces bounces;
	/* One server is added at a time; guards the control's server_count. */
	pthread_mutex_t add_lock;

	pthread_mutex_t fence_lock; /* guards both below */
	struct rbx_piece_list fenced; /* pieces behind a fence, in order */
	uint32_t fence_cursor; /* of the first of them */

	char *copies_memory; /* a cell for each copy of a rebuild */
	/* The upkeep thread's: what the last server said that was asked in vain to
	 * take a replica that is missing. */
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

/* Connects to one server more and puts it at this place of the table. */
int rbx_volume_server_add(struct rbx_volume *volume, uint32_t index,
			  const char *address);
/* It is of no use: the place is free again. */
void rbx_volume_server_drop(struct rbx_volume *volume, uint32_t index);
/* Connects to each of "host:port,host:port". */
int rbx_volume_servers_open(struct rbx_volume *volume, const char *servers);

/* copies.c */

int rbx_volume_copies_make(struct rbx_volume *volume);
void rbx_volume_copies_free(struct rbx_volume *volume);

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

#endif
