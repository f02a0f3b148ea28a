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
/* The same for a volume that is to be made. */
int rbx_crowd_open_to_make(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd);
/* The same, but those that cannot be reached are left out, unless none can. */
int rbx_crowd_open_there(struct rbx_context *ctx, const char *servers, struct rbx_crowd **crowd);
/* Tells the program which ones were left out, if it wants to know (`server_away`). */
void rbx_crowd_away_tell(const struct rbx_context *ctx, const struct rbx_crowd *crowd);
/* For a volume that is to be made: keeps as many servers as it can have, those that have most
 * memory free. 0; -EEXIST: one of the others has a volume of this name; as rbx_crowd_look();
 * reported. Blocks. */
int rbx_crowd_choose(struct rbx_crowd *crowd, const char *name);
/* Ends the sessions with those servers that do not have the volume. Blocks. */
void rbx_crowd_narrow(struct rbx_crowd *crowd);

#endif
