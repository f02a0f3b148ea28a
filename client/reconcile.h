/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reconcile.h - reads the checksums that servers keep of a named volume (core/tails.h), while it is
 * opened and before anything else is read of it.
 *
 * All replicas of a slab have the same checksums, with two exceptions. In extents that servers have
 * noted (core/extents.h) a client that crashed was writing, or a write has failed at the client: a
 * page and its checksum may be of different writes there, at each replica. And memory of a server
 * may be damaged. So the checksums of all replicas are read, and of these pages the data as well:
 * those of noted extents, and those about whose checksum replicas do not agree. Then each such page
 * is decided, once and for all:
 *
 *	1. data that fits the checksum of its own replica, of the first such one
 *	2. else data that fits the checksum of another replica
 *	3. else, in a noted extent, what two replicas have, or else the first one: no write was
 *	   acknowledged that is missing there, but it may be damaged; and with it gets a checksum
 *	4. else the page is damaged at all of them, and reads of it end with -EIO
 *
 * What is decided is written where there is something else, checksums too. So the replicas are
 * equal afterwards, and with a slab of which this is known nothing more is to be done. If a server
 * does not answer, the others are reconciled among themselves, and what it has is made like them as
 * that of any replica that differs (core/even_out.c).
 *
 * At the open, and not before the first use of a slab, as it is the time at which nobody writes: so
 * no page needs a lock. It costs 1/1024 of the data that is there, for each replica.
 */
#ifndef RBX_CLIENT_RECONCILE_H
#define RBX_CLIENT_RECONCILE_H

#include "client/volume.h"

/* The slabs are in the map, and no round of upkeep was made. is_even: no client has crashed. 0;
 * -EIO: of some slab no server tells the checksums; -ENOMEM; reported. Blocks. */
int rbx_reconcile(struct rbx_volume_control *control, bool is_even);

#endif
