/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reject.h - what it means that a connection was not accepted.
 *
 * Whoever connects may find that nobody listens: then a server that was there before
 * has ended, and what it lent with it. All other rejections say nothing about what it
 * has: the one who rejects may be full for the moment, may still hold our connection
 * of before, or may never have been asked, because a queue on the way to it was full.
 * So these mean "again", unless the private data of the rejection hold a reason of our
 * own protocol (wire/reason.h), which then counts.
 */
#ifndef RBX_REJECT_H
#define RBX_REJECT_H

#include "core/port.h"

/* A rejection of InfiniBand's connection manager: no such service. */
#define RBX_REJECT_NO_SERVICE 8

/*
 * reason: of a rejection, as rdma_cm gives it: a code of InfiniBand's, or -errno of
 * TCP where it carries the connections. -ECONNREFUSED: nobody listens; -EBUSY: again.
 */
static inline int rbx_reject_errno(int reason)
{
	return reason == RBX_REJECT_NO_SERVICE || reason == -ECONNREFUSED ?
		       -ECONNREFUSED :
		       -EBUSY;
}

/* Who opens a session waits so long after the nth try (from 0) that ended with -EBUSY:
 * of all who come at once each is served in the end. */
static inline uint64_t rbx_reject_pause_ns(uint32_t try)
{
	return 20000000ull << RBX_MIN(try, 4u);
}

#endif
