/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced_state.h - the state of a paced endpoint. Two files use it: paced.c has its
 * operations, paced_channel.c is the host of its channel.
 */
#ifndef RBX_LIB_ENDPOINT_PACED_STATE_H
#define RBX_LIB_ENDPOINT_PACED_STATE_H

#include "core/paced.h"
#include "lib/endpoint/paced.h"

struct rbx_paced_op {
	struct rbx_fragment fragment;
	struct rbx_endpoint *endpoint;
	void *user;
	bool is_silent;
	bool is_of_exchange; /* the user is the exchanger's */
	bool *is_opening; /* if it opens a memory window; atomic; else NULL */
	struct rbx_wr wr; /* if it is ordered; its list of segments follows */
	struct rbx_sge sges[];
};

struct rbx_paced_endpoint {
	struct rbx_paced paced;
	struct rbx_endpoint *endpoint;
	bool is_wanted; /* atomic: its stint has ended and nothing is outstanding */
	struct rbx_work *works;
	uint8_t *ops;
};

static inline struct rbx_paced_endpoint *
rbx_paced_endpoint_of(struct rbx_paced *paced)
{
	return RBX_CONTAINER_OF(paced, struct rbx_paced_endpoint, paced);
}

static inline struct rbx_paced_endpoint *
rbx_paced_of_channel(struct rbx_channel *channel)
{
	return RBX_CONTAINER_OF(channel, struct rbx_paced_endpoint,
				paced.channel);
}

static inline struct rbx_paced_op *rbx_paced_op_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct rbx_paced_op, fragment);
}

/* ---- paced_channel.c ---------------------------------------------------------------*/

extern const struct rbx_drive rbx_paced_drive;
extern const struct rbx_paced_host rbx_paced_host;

#endif
