/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * drain.h - ends a connection whose completions a poller takes.
 */
#ifndef RBX_KERNEL_DRAIN_H
#define RBX_KERNEL_DRAIN_H

#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/poller/poller.h"

/*
 * Drains a connection, for timeout_ms at most, and destroys it. True: all that was posted
 * has come back. False: the device does not give it back, which is logged with name. Then
 * *is_over is set, under poller.lock, and after that the completion queue is swept of
 * what the device has still reported. Completion handlers drop completions once *is_over
 * is set. In both cases the device does not use the memory any more. Nobody may post any
 * more. Sleeps.
 */
bool rbx_drain_and_destroy(struct rbx_ib_conn *conn, struct rbx_poller *poller,
			   uint32_t timeout_ms, bool *is_over, const char *name);

#endif
