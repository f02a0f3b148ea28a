/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.h - what contexts do when RDMA devices are added and removed.
 *
 * A context outlives its device. A driver may be unbound or may reset the device, or an
 * interface may be deleted; what comes back is another struct ib_device. What a context
 * has of its device is bound to it, and is bound again to the next one:
 *
 *	            hold()                       the device is removed
 *	   unbound ---------> bound, held ------------------------> leaving
 *	      ^                                                        |
 *	      +--------------------------------------------------------+
 *	           nobody holds it any more: unmapped, freed, put
 *
 * A thread that makes an object of the device, such as a queue pair, holds the context
 * meanwhile. When the device is removed, each peer is told that its connection is broken,
 * drains it and ends the connection of its session; from then on nobody can hold the
 * context. Then the memory that is mapped for the device is unmapped, and the completion
 * queues and the protection domain are freed. All this is done before the driver goes on
 * to remove the device. I/Os wait for their peers, as when a cable is pulled: the
 * recovery tries to resume until its time is over. The first peer whose address leads to
 * a device again binds the context to that device. The memory of the waiting I/Os is
 * mapped again, and then every session is resumed on it.
 */
#ifndef RBX_KERNEL_DEVICE_H
#define RBX_KERNEL_DEVICE_H

#include <rdma/ib_verbs.h>

struct rbx_context;

/* Called by the module. */
int rbx_devices_init(void);
void rbx_devices_exit(void);

/* Whether the device is there and is not being removed. contexts_lock is held. */
bool rbx_device_is_there_locked(const struct ib_device *device);

#endif
