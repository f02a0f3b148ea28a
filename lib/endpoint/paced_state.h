/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_state.h - what an endpoint that is paced is made of, for its two files: paced.c is
 * the way of its operations, paced_channel.c the host of its channel.
 */
#ifndef RBX_LIB_ENDPOINT_PACED_STATE_H
#define RBX_LIB_ENDPOINT_PACED_STATE_H

#include "core/drive.h"
#include "lib/endpoint/paced.h"

struct rbx_paced_op {
	struct rbx_fragment fragment;
	struct rbx_endpoint *endpoint;
	void *user;
	bool is_silent;
	struct rbx_wr wr; /* of what is ordered; its list follows */
	struct rbx_sge sges[];
};

struct rbx_paced {
	struct rbx_channel channel;
	struct rbx_endpoint *endpoint;
	bool is_dead; /* atomic: it has failed, or is closed */
	bool is_marked; /* atomic: a marker is posted */
	bool is_wanted; /* atomic: its turn is over with nothing outstanding */
	struct rbx_work *works;
	uint8_t *ops;
	uint32_t depth_count;
	struct rbx_fragment *free_first; /* with post_lock */
	uint32_t free_count;
	struct rbx_node *freed; /* atomic: by who polls, newest first */
};

static inline struct rbx_paced *rbx_paced_of(struct rbx_channel *channel)
{
	return RBX_CONTAINER_OF(channel, struct rbx_paced, channel);
}

static inline struct rbx_paced_op *rbx_paced_op_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct rbx_paced_op, fragment);
}

/* ---- paced_channel.c ---------------------------------------------------------------*/

extern const struct rbx_drive rbx_paced_drive;
/* It is over: what waits is refused. Any thread. */
void rbx_paced_broken(struct rbx_channel *channel);
/* What was refused, in order, for who polls. */
void rbx_paced_push(struct rbx_queue *queue, struct rbx_fragment *list);

#endif
