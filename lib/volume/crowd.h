/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.h - a session with each server of a list or another pool (client/crowd.h).
 */
#ifndef RBX_LIB_CROWD_H
#define RBX_LIB_CROWD_H

#include "client/crowd.h"
#include "fabric/fabric.h"

struct rbx_context;

/* Connects to the servers of a list or another pool, none of them twice. 0, or -errno that was
 * reported. Blocks. */
int rbx_crowd_open(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd);
/* The same, but those that cannot be reached are left out, unless none can. */
int rbx_crowd_open_there(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd);

#endif
