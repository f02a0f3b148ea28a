/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drain.h - the end of a connection whose completions a poller takes.
 */
#ifndef RBX_KERNEL_DRAIN_H
#define RBX_KERNEL_DRAIN_H

#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/poller/poller.h"

/*
 * Drains a connection, for timeout_ms at most, and destroys it. True: all that was posted
 * has come back. False: the device does not give back what was posted, which is said in
 * the log, with name. Then *is_over was set, under poller.lock, before what the device has
 * still told of was swept out of the completion queue: whoever handles completions drops
 * them from there on. In both cases the device has done with the memory. Nobody posts any
 * more. Sleeps.
 */
bool rbx_drain_and_destroy(struct rbx_ib_conn *conn, struct rbx_poller *poller,
			   uint32_t timeout_ms, bool *is_over, const char *name);

#endif
