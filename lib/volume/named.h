/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.h - volumes that servers keep (include/rdmabox/named_volume.h), in a program:
 * client/opening.h opens them.
 */
#ifndef RBX_LIB_NAMED_H
#define RBX_LIB_NAMED_H

#include "client/opening.h"
#include "lib/volume/volume.h"

/* Asks the servers for the volume, and leaves those of them in *members that have it, as
 * "host:port,host:port", allocated. 0, or -errno that was reported. */
int rbx_volume_named_begin(struct rbx_volume *volume, const char *servers, char **members);

/* named_reserve.c */

/* A reserved volume that is open has the memory of all slabs up to this size, at all replicas. No
 * request goes there before the map grows. add_lock is held. 0; or it has no more than before:
 * -EHOSTUNREACH: a server that is not OUT is away; -ENOSPC, -EDQUOT: servers do not lend so much;
 * -EAGAIN; -errno; reported. Blocks. */
int rbx_volume_named_reserve(struct rbx_volume *volume, uint64_t size);

/* named_join.c */

/* The volume is open: servers that come into the pool become servers of it, if it has replicas. If
 * the pool cannot change, those return that are OUT. 0, or -errno that was reported. */
int rbx_volume_named_watch(struct rbx_volume *volume, const char *servers);
/* Whether a server is OUT, or has FAILED. */
bool rbx_volume_named_may_return(struct rbx_volume *volume);
/* Before the thread of joins.c is stopped: it does not wait for that any more. */
void rbx_volume_named_join_no_more(struct rbx_volume *volume);

#endif
