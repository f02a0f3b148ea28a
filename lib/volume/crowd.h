/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.h - a session with each of several servers, which are only asked something.
 */
#ifndef RBX_LIB_CROWD_H
#define RBX_LIB_CROWD_H

#include "lib/volume/named.h"

struct rbx_crowd {
	struct rbx_name_list list;
	struct rbx_session *sessions[RBX_MEMBERS_MAX]; /* in the order of the list */
	uint32_t count;
};

/* Connects to the servers of a list or another pool, none of them twice. 0, or -errno that was
 * reported. Blocks. */
int rbx_crowd_open(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd);
void rbx_crowd_close(struct rbx_crowd *crowd);

#endif
