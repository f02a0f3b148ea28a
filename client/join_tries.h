/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * join_tries.h - when a server that a volume does not use is tried again.
 *
 * The host knows addresses at which there may be servers for a volume that is open: those of its
 * list or its pool. A thread of the host goes through them every RBX_JOIN_LOOK_MS. It adds
 * (joining.h) what the volume does not use and what is due: a server that is new, one that was left
 * out at the beginning, or one that was lost and serves again. After a failure an address is tried
 * later and later.
 *
 * The host's lock of joining.h is held in all of it.
 */
#ifndef RBX_CLIENT_JOIN_TRIES_H
#define RBX_CLIENT_JOIN_TRIES_H

#include "client/joining.h"

#define RBX_JOIN_LOOK_MS 2000u
#define RBX_JOIN_ADDRESS_BYTES 264u /* "[host]:port", as a pool has it */

/* What came of the last try to add the server of an address. */
struct rbx_join_try {
	char address[RBX_JOIN_ADDRESS_BYTES];
	uint64_t incarnation; /* another one is another server: tried at once; 0: not known */
	uint64_t next_ns;
	uint32_t wait_ms; /* after the last failure; 0: there was none */
	bool is_member; /* of the pool, still; the host's */
	bool is_added; /* by the owner of the volume; the host's */
};

struct rbx_join_tries {
	struct rbx_join_try *all; /* RBX_SERVERS_MAX of them, in memory of the host */
	uint32_t count; /* that are in use */
};

/* That of an address, perhaps a new one; NULL: there is no room. */
struct rbx_join_try *rbx_join_try_of(struct rbx_join_tries *tries, const char *address,
				     uint64_t incarnation);
struct rbx_join_try *rbx_join_try_find(struct rbx_join_tries *tries, const char *address);
/* It may be tried now. */
bool rbx_join_try_is_due(const struct rbx_join_try *one);
/* It was tried: 0, or the error of rbx_joining_add(). Returns whether it is the first failure since
 * it was added, or since it is known. */
bool rbx_join_tried(struct rbx_join_try *one, const struct rbx_volume_control *control, int err);

#endif
