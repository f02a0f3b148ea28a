/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joining.h - one more server for a volume that is open.
 *
 * To a volume without a name it is added at once. Of one that has a name and replicas it becomes a
 * member (keeper_newcomer.c): a record that names it has to be accepted. One of its servers that
 * has FAILED comes again (keeper_again.c). A named volume with one replica takes none: it has no
 * record that could be changed while it is open.
 *
 * One thread at a time: the host has a lock for that, which guards server_count as well.
 */
#ifndef RBX_CLIENT_JOINING_H
#define RBX_CLIENT_JOINING_H

#include "client/volume.h"

/* A server that is to join. */
struct rbx_joining {
	const char *address; /* as the name of its peer will be */
	struct rbx_server_name *name; /* of the host, who connects to it */
	const char *labels; /* what the pool says of its place; "": nothing */
	bool returns; /* only if it was a member, and is OUT */
};

/* 0; -EINVAL: it is one already, or lends slabs of another length; -ENOSPC: there are too many;
 * -EOPNOTSUPP: it has a name and one replica; -EAGAIN: not yet; -ENOENT, -EEXIST: as
 * rbx_keeper_welcome(); as rbx_session_open(); reported. Blocks. */
int rbx_joining_add(struct rbx_volume_control *control, const struct rbx_joining *joining);
/* Whether a server of this address is in use. One that has FAILED (core/held.h) is not: it may be
 * asked for the volume once more. */
bool rbx_joining_is_used(const struct rbx_volume_control *control, const char *address);
/* Whether a server of a named volume is OUT, or has FAILED. */
bool rbx_joining_may_return(const struct rbx_volume_control *control);
/* The address of the server of this place, if it has FAILED; or NULL. */
const char *rbx_joining_failed_address(const struct rbx_volume_control *control, uint32_t index);
/* The place of the one of this address that has FAILED, or -1. */
int rbx_joining_failed_at(const struct rbx_volume_control *control, const char *address);

/* ---- While all are opened ------------------------------------------------------------------- */

/* The first server that is connected. One is, or the volume would not have been opened. */
struct rbx_peer *rbx_volume_server_first(const struct rbx_volume_control *control);
/* The server of this place is no other one of the volume under another address. 0 or -EINVAL. */
int rbx_volume_twice_check(struct rbx_volume_control *control, uint32_t index);
/* 0, or -EINVAL if it lends slabs of another length than the first one. */
int rbx_volume_slab_bytes_check(const struct rbx_volume_control *control, uint32_t index);
/* Drops a server that is of no use; its place is free again. Blocks. */
void rbx_volume_server_drop(struct rbx_volume_control *control, uint32_t index);

/* ---- What the host does for it -------------------------------------------------------------- */

/* When it returns, nothing that ended before is in the hands of a thread that polls. */
void rbx_volume_pollers_visit(struct rbx_volume_control *control);

#endif
