/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * held.h - parts that have failed, and wait until a record says that their server is out.
 *
 * A named volume outlives its client, and the next one takes what it finds at the servers. If a
 * replica has missed a write, the next client must not take it for complete. So such a write
 * does not end when the other replicas have it, but when the servers of the volume have accepted
 * a record in which that server is OUT (docs/named-volumes.md, "A replica that misses a write").
 * Until then no replica is lost, and the part that failed waits here, with its granules.
 *
 *	rbx_held_take()    a part has failed: it waits, if its server was not judged yet
 *	rbx_held_suspects()   the upkeep: servers to judge
 *	rbx_held_out(), rbx_held_failed()   a server was judged:
 *	    OUT            the record says so. Parts that fail there cost their replica
 *	    FAILED         no record can say so. It stays a server of the volume, and may have the
 *	                   last copy of something: what is sent to it fails, as by a fault of
 *	                   this machine (status.h), and is never acknowledged
 *
 * A judgement is final for as long as the server has its place, and wakes the parts that wait for
 * it.
 */
#ifndef RBX_HELD_H
#define RBX_HELD_H

#include "core/piece.h"
#include "core/server_set.h"

struct rbx_held {
	struct rbx_lock lock; /* guards all of it; taken after a slab's lock */
	struct rbx_fragment *first; /* parts that wait */
	struct rbx_server_set suspects; /* to be judged */
	struct rbx_server_set out;
	struct rbx_server_set failed;
	bool ends; /* all that is not OUT has FAILED */
};

/* What a part that failed is to do. */
enum rbx_held_verdict {
	RBX_HELD_GOES_ON, /* with its status */
	RBX_HELD_FAILS, /* with -EIO: this machine can do nothing about it */
	RBX_HELD_WAITS, /* it is ours now; its server is one of the suspects */
};

/* Zeroed memory. */
void rbx_held_init(struct rbx_held *held);

/* A part has failed at its server, by a fault that is not this machine's. */
enum rbx_held_verdict rbx_held_take(struct rbx_held *held, struct rbx_part *part);

/* A server is dead, or has failed. Any thread. */
void rbx_held_suspect(struct rbx_held *held, uint32_t server);
/* Those that are to be judged; and with them all that were. Returns whether there are any. */
bool rbx_held_suspects(struct rbx_held *held, struct rbx_server_set *suspects,
		       struct rbx_server_set *gone);
/* Whether what is sent to it fails from now on. */
bool rbx_held_has_failed(struct rbx_held *held, uint32_t server);

/* They return the parts that waited for it, to be done once more; or NULL. */
struct rbx_fragment *rbx_held_out(struct rbx_held *held, uint32_t server);
struct rbx_fragment *rbx_held_failed(struct rbx_held *held, uint32_t server);
/* Its place has another server now, and nothing is under way to the one that was judged. */
void rbx_held_renew(struct rbx_held *held, uint32_t server);
/* No record is accepted: all that waits fails, and so does what fails from now on, until
 * rbx_held_resume(). */
struct rbx_fragment *rbx_held_end(struct rbx_held *held);
bool rbx_held_has_ended(struct rbx_held *held);
/* Records are accepted again. Servers that were not judged before are not. */
void rbx_held_resume(struct rbx_held *held);

#endif
