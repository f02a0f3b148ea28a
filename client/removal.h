/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * removal.h - removes a named volume from its servers; and what a client has left that died while
 * it did so, or while it made the volume (docs/named-volumes.md, "Removal").
 *
 * A removal is the last change of the record. The volume is granted by enough servers to open it,
 * each of them removes it, and knows from then on that it was removed, and in which epoch. When
 * enough know that to accept a record, the volume is removed. A client that dies before leaves
 * servers of both kinds. Whoever looks for the volume next finds the newest of what they say: if
 * that is the removal, it is finished.
 *
 * A volume that is being made has no writer before all servers have accepted its first record. If
 * one of those that are there has not, the volume was not made, and the others forget it.
 */
#ifndef RBX_CLIENT_REMOVAL_H
#define RBX_CLIENT_REMOVAL_H

#include "client/crowd.h"

/* named has begun, with is_removed. Each server that has the volume removes it. needs_few: also if
 * those could not open it, for an operator says that the others will not come back. 0: it is
 * removed; -EHOSTUNREACH: too few servers; -ESTALE: another client has opened it meanwhile; or
 * another -errno; reported. Blocks. */
int rbx_removal_do(struct rbx_named *named, struct rbx_crowd *crowd);

/* By what all of the crowd have said. any_lacks: a member that is there knows nothing of the
 * volume. */
bool rbx_removal_is_left(const struct rbx_named *named, const struct rbx_crowd *crowd,
			 bool any_lacks);
/* Of a volume of which this is true: removes what is left at the servers of the crowd. As
 * rbx_removal_do(). */
int rbx_removal_finish(struct rbx_named *named, struct rbx_crowd *crowd);

#endif
