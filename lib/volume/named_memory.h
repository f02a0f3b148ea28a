/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_memory.h - borrows the memory of slabs of a named volume before anybody writes to them.
 *
 * Each slab is borrowed as complete: zeros are its contents. So the next client that opens the
 * volume finds it as if it had been written, and no first write has to ask for memory.
 *
 * While a volume is made, its servers forget all that if the session ends before they have a
 * record. When it grows, what was borrowed lies beyond the end until the record says otherwise: the
 * next client, or the next grow, gives it back (client/named.h).
 */
#ifndef RBX_LIB_NAMED_MEMORY_H
#define RBX_LIB_NAMED_MEMORY_H

#include "include/rdmabox/named_volume.h"
#include "lib/volume/crowd.h"

struct rbx_memory_wanted {
	const char *servers; /* a text, for the labels that a pool tells */
	uint64_t from_slab; /* the first slab that is wanted; all up to the size are */
	uint64_t size_bytes; /* that the volume has, or will have */
	void (*progress)(uint64_t done_bytes, uint64_t all_bytes, void *user); /* or NULL */
	void *user;
};

/* The sessions were granted the volume, whose record tells slabs and replicas. Servers that are OUT
 * lend nothing. 0; -ENOSPC, -EDQUOT: they do not lend so much; -EINTR; -errno; reported. After a
 * failure some of it may be borrowed. Blocks. */
int rbx_named_borrow(struct rbx_crowd *crowd, const struct rbx_named *named,
		     const struct rbx_memory_wanted *wanted);

#endif
