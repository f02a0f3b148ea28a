/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.h - RDMA devices come and go, also below a context.
 *
 * A context outlives its device: a driver is unbound or resets it, an interface is
 * deleted, and what comes back is another struct ib_device. What a context has of
 * its device is bound to it, and bound anew to the next one:
 *
 *	            hold()                       the device goes
 *	   unbound ---------> bound, held ------------------------> leaving
 *	      ^                                                        |
 *	      +--------------------------------------------------------+
 *	           nobody holds it any more: unmapped, freed, put
 *
 * Whoever makes something of the device, such as a queue pair, holds it meanwhile.
 * When it goes, each peer is told that its connection is broken, drains it and ends
 * its session's connection, and nobody gets a hold any more. Then what is mapped
 * for the device is unmapped, and the completion queue and the protection domain
 * are freed, all before the driver goes on to take the device away. I/Os wait for
 * their peers, as when a cable is pulled: recovery tries to resume until its time
 * is over. The first whose address leads to a device again binds the context to
 * that one, which maps anew what waits, and then every session is resumed on it.
 */
#ifndef RBX_KERNEL_DEVICE_H
#define RBX_KERNEL_DEVICE_H

#include <rdma/ib_verbs.h>

struct rbx_context;

/* For the module. */
int rbx_devices_init(void);
void rbx_devices_exit(void);

/* Whether it is there, and is not about to go. contexts_lock is held. */
bool rbx_device_is_there_locked(const struct ib_device *device);

#endif
