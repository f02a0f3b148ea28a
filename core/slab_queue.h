/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_queue.h - a fair queue of slabs that wait for a worker thread of a memory server.
 *
 * Making the memory of a slab, or emptying it, takes a worker tens of milliseconds. A client
 * that leaves with thousands of slabs must not make the others wait for all of them. The same
 * holds for a client that borrows many at once. So each slab waits in the line of its owner,
 * and the owners take turns, one slab each. The host chooses the owners: its clients, and one
 * more for slabs that belong to no client any more.
 *
 * A turn is a whole slab. A worker could switch more often, but all slabs of a server have
 * one length, so serving halves would only make each of them ready later.
 *
 * One thread at a time. Memory is the host's, one block of rbx_slab_queue_size().
 */
#ifndef RBX_SLAB_QUEUE_H
#define RBX_SLAB_QUEUE_H

#include "core/limits.h"
#include "core/port.h"

#define RBX_SLAB_QUEUE_EMPTY UINT32_MAX

struct rbx_slab_queue;

size_t rbx_slab_queue_size(uint32_t slabs_count, uint32_t owners_count);

/* Makes a queue in memory that the caller keeps. */
struct rbx_slab_queue *rbx_slab_queue_init(void *memory, uint32_t slabs_count,
					   uint32_t owners_count);

/* Adds a slab, by index, that does not wait already: behind the owner's others. */
void rbx_slab_queue_put(struct rbx_slab_queue *queue, uint32_t slab,
			uint32_t owner);

/* The slab whose turn it is, or RBX_SLAB_QUEUE_EMPTY. */
uint32_t rbx_slab_queue_take(struct rbx_slab_queue *queue);

#endif
