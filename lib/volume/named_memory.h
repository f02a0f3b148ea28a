/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_memory.h - borrows the memory of slabs of a named volume before anybody writes to them.
 *
 * Each slab is borrowed as complete: zeros are its contents. So the next client that opens the
 * volume finds it as if it had been written, and no first write has to ask for memory.
 *
 * While a volume is made, its servers forget all that if the session ends before they have a
 * record. When it grows, what was borrowed lies beyond the end until the record says otherwise: the
 * next client, or the next grow, gives it back (client/named.h). A volume that is open borrows
 * through the sessions that it has (named_reserve.c).
 */
#ifndef RBX_LIB_NAMED_MEMORY_H
#define RBX_LIB_NAMED_MEMORY_H

#include "client/returned.h"
#include "lib/volume/crowd.h"

/* A server that is granted the volume. */
struct rbx_memory_server {
	struct rbx_session *session;
	uint64_t domain; /* core/server_labels.h */
	bool lends; /* false: it is asked for nothing */
	struct rbx_returned *lent; /* what it lends is noted there; or NULL */
};

struct rbx_memory_wanted {
	struct rbx_memory_server servers[RBX_MEMBERS_MAX];
	uint32_t servers_count;
	uint64_t from_slab; /* the first slab that is wanted; all up to the size are */
	uint64_t size_bytes; /* that the volume has, or will have */
	void (*progress)(uint64_t done_bytes, uint64_t all_bytes, void *user); /* or NULL */
	void *user;
};

/* The record tells slabs and replicas. 0; -ENOSPC, -EDQUOT: the servers do not lend so much;
 * -EINTR; -ENOMEM; -errno; reported. After a failure some of it may be borrowed. Blocks. */
int rbx_named_borrow(const struct rbx_named *named, struct rbx_memory_wanted *wanted);
/* The same, and the servers are these; those that are OUT lend nothing. servers: a text, for the
 * labels that a pool tells. */
int rbx_named_borrow_of(const struct rbx_crowd *crowd, const struct rbx_named *named,
			const char *servers, struct rbx_memory_wanted *wanted);

/* Whether these servers could have all slabs of a volume of so many bytes at once, if nobody else
 * had anything of them. 0; -ENOSPC, reported. */
int rbx_named_fit_check(const struct rbx_crowd *crowd, const struct rbx_named *named,
			uint64_t size_bytes);

#endif
