/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reject.h - says what a rejected connection means.
 *
 * A client may find that nothing listens at the address: then a server that was there before
 * has ended, and its loans with it. All other rejections say nothing about what the server
 * has. It may be full for the moment, it may still hold our earlier connection, or it may
 * never have been asked, because a queue on the way was full. So these mean "again", unless
 * the private data of the rejection holds a reason of our own protocol (wire/reason.h), which
 * then counts.
 */
#ifndef RBX_REJECT_H
#define RBX_REJECT_H

#include "core/port.h"

/* InfiniBand's connection manager rejects: no such service. */
#define RBX_REJECT_NO_SERVICE 8

/*
 * reason: of a rejection, as rdma_cm gives it: a code of InfiniBand, or -errno if TCP carries
 * the connections. -ECONNREFUSED: nothing listens; -EBUSY: try again.
 */
static inline int rbx_reject_errno(int reason)
{
	return reason == RBX_REJECT_NO_SERVICE || reason == -ECONNREFUSED ?
		       -ECONNREFUSED :
		       -EBUSY;
}

/* How long a client waits after the nth try (from 0) to open a session that ended with
 * -EBUSY. If many come at once, all are served in the end. */
static inline uint64_t rbx_reject_pause_ns(uint32_t try)
{
	return 20000000ull << RBX_MIN(try, 4u);
}

#endif
