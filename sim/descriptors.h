/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * descriptors.h - the descriptors that poll() waits for in a simulation: counters that are
 * readable while they are not zero, like those of eventfd(2).
 *
 * The host's code makes them with eventfd(). A device makes them for its completion queues
 * and listeners, and raises them from its own events. Fibers wait for them. A descriptor may
 * be a set of others, like one of epoll(7): it is readable while one of them is.
 */
#ifndef RBX_SIM_DESCRIPTORS_H
#define RBX_SIM_DESCRIPTORS_H

#include "core/port.h"

#define RBX_SIM_DESCRIPTORS_MAX 32768u
/* Numbers that no file of the process has. */
#define RBX_SIM_DESCRIPTOR_FIRST 0x10000000

static inline bool rbx_sim_is_descriptor(int fd)
{
	return fd >= RBX_SIM_DESCRIPTOR_FIRST;
}

/* Members of a set. */
#define RBX_SIM_DESCRIPTOR_MEMBERS_MAX 2u
/* Threads that sleep on one descriptor at a time. */
#define RBX_SIM_DESCRIPTOR_WAITERS_MAX 16u

/* For the node whose fiber runs; never fails. */
int rbx_sim_descriptor_open(void);
/* From now on fd is a member of the set, too. */
void rbx_sim_descriptor_join(int set, int fd);
void rbx_sim_descriptor_close(int fd);
/* Adds to the count, and wakes waiting fibers. */
void rbx_sim_descriptor_raise(int fd, uint64_t count);
/* The same, later; once. */
void rbx_sim_descriptor_raise_after(int fd, uint64_t delay_ns);
/* Returns the count and sets it to 0. */
uint64_t rbx_sim_descriptor_take(int fd);
bool rbx_sim_descriptor_is_raised(int fd);

/* For poll(): a raise in between wakes the fiber that runs. */
void rbx_sim_descriptor_wait_begin(int fd);
void rbx_sim_descriptor_wait_end(int fd);

/* Closes all descriptors of a node that has stopped. */
void rbx_sim_descriptors_stop(uint32_t node);

#endif
