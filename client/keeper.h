/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.h - keeps the record of a named volume that has replicas, while it is open: a server
 * that is lost is OUT in a record that a quorum has accepted, before a write is acknowledged
 * that it missed (core/held.h, docs/named-volumes.md).
 *
 * The upkeep thread makes a round of this before each of its own. Servers are asked to accept
 * side by side, and no thread waits for them. One record is proposed at a time:
 *
 *	suspects          of core/held.h: the peer was given up, or a part failed there
 *	- needed          they have the last copy of something, which may come back with them:
 *	                  what is sent to them FAILS from now on. If another server that
 *	                  has it is silent, they wait until that one is back or given up
 *	- the others      a record is proposed in which they are OUT
 *	chosen            they count as down, and the parts that waited go on. If they voted, a
 *	                  second record follows that needs no vote of theirs
 *	cannot be chosen  too few servers are left, or another client has opened the volume. Then
 *	                  another one may write: nothing is sent any more, reads as well, until so
 *	                  many are there again that nobody else can have opened it
 *
 * The record also says how many complete replicas each slab has at least that was ever written. So
 * the next client knows how many servers it can do without: with fewer missing than that, what no
 * other server names was never written. The number falls with each server that is put OUT, and if
 * a first write gets fewer replicas while no server is silent. It rises when all slabs are whole. A
 * first write needs so many as the record says, and before a change the higher of both numbers
 * counts.
 *
 * Servers that come (keeper_newcomer.c) become members one at a time, if nobody is to be put out:
 *
 *	WANTED            a thread of the host has connected the server, and waits
 *	ALONE             it is asked to accept the record that names it. If it does not, or if a
 *	                  server is to be put out, the record is taken back
 *	NAMED             all others are asked as well
 *	chosen            it counts: slabs are borrowed there from now on
 *
 * If the volume is to be larger, a record says so, and then the map grows (keeper_grow.c).
 *
 * A server that drains has all that is there leave, and is put OUT when it has nothing
 * (keeper_drain.c).
 *
 * A server that has FAILED is tried again as well (keeper_again.c). It is still a member, so
 * nothing was acknowledged without it, and it has all that was acknowledged:
 *
 *	AGAIN             a thread of the host has opened the volume there once more, in the same
 *	                  epoch, for another place of the table. Slab by slab what it has is found
 *	                  there from now on. Nobody is judged meanwhile
 *
 * A server that was put OUT and can be reached again comes in the same way as a new one. It may
 * have missed writes, so it calls nothing complete any more before it is asked to accept. When the
 * record is chosen, what the volume lacks is used there, and what it has missed is copied
 * (extents.h).
 */
#ifndef RBX_CLIENT_KEEPER_H
#define RBX_CLIENT_KEEPER_H

#include "client/named.h"
#include "client/volume.h"

struct rbx_keeper; /* keeper_state.h */

/* Of a volume that has not been connected yet. NULL: no memory. */
struct rbx_keeper *rbx_keeper_make(struct rbx_volume_control *control, struct rbx_named *named);
void rbx_keeper_free(struct rbx_keeper *keeper);

/* The volume is open, and has the servers that are connected. */
void rbx_keeper_begin(struct rbx_keeper *keeper);

/* By the upkeep thread. Returns when another one is to be made; UINT64_MAX: when it is woken. */
uint64_t rbx_keeper_round(struct rbx_keeper *keeper, uint64_t now_ns);

/* The part of a round that has words noted (intents.h), after the round of the upkeep. Returns the
 * same. */
uint64_t rbx_keeper_intents_round(struct rbx_keeper *keeper, uint64_t now_ns);

/* Whether the record is to say something else, as soon as another round is made. */
bool rbx_keeper_is_behind(const struct rbx_keeper *keeper);

/* Whether no record is accepted, now at least: nothing is sent. Any thread. */
bool rbx_keeper_is_over(const struct rbx_keeper *keeper);

/* ---- Servers that come. One thread at a time; all of it blocks. --------------------------- */

/* Whether nothing is asked any more of the server that had this place. */
bool rbx_keeper_is_done_with(const struct rbx_keeper *keeper, uint32_t server);
/* Whether a server is OUT, so that it may return. */
bool rbx_keeper_any_is_out(struct rbx_named *named);
bool rbx_keeper_is_out(struct rbx_named *named, uint64_t incarnation);
/* While the server is connected: it makes the volume, or returns (newcomer.h). returns: only if it
 * is OUT. 0; -EAGAIN: it is about to be OUT, and what it has is still needed; -ENOENT: it does not
 * return; -ENOSPC: it drains, and knows now that it is not needed; -errno; reported. */
int rbx_keeper_welcome(struct rbx_named *named, struct rbx_session *session, bool returns,
		       struct rbx_returned *returned);
/* The server of this place becomes a member, and former is forgotten. 0; or -errno, reported: it is
 * none, and nothing is asked of it any more. */
int rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former);
/* The server of this place is the one that has FAILED at another one: it serves the volume again.
 * 0, or -errno; reported. */
int rbx_keeper_again(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place);
/* A server is dead, or away since before the volume was opened, and its place in the table may be
 * given to another one: what comes to its address still takes its place in the record. */
void rbx_keeper_former_note(struct rbx_keeper *keeper, const char *address, uint64_t incarnation);
/* Which one was noted for this address; 0: none. */
uint64_t rbx_keeper_former_at(const struct rbx_keeper *keeper, const char *address);
/* It was replaced, and is forgotten. */
void rbx_keeper_former_drop(struct rbx_keeper *keeper, uint64_t incarnation);
/* Nobody wants one any more: what waits ends soon. Any thread; does not block. */
void rbx_keeper_take_no_more(struct rbx_keeper *keeper);

/* ---- keeper_grow.c ------------------------------------------------------------------------- */

/* The volume becomes so large, for which its map has room. One thread at a time, while the volume
 * is open; blocks. 0; -ESTALE: no record is accepted any more; reported. */
int rbx_keeper_grow(struct rbx_keeper *keeper, uint64_t size_bytes);
/* Reports that it does not, as no record is accepted any more: -ESTALE. */
int rbx_keeper_growth_refused(const struct rbx_keeper *keeper);

/* ---- The end ------------------------------------------------------------------------------ */

/* The upkeep thread has ended. What waits fails. */
void rbx_keeper_end(struct rbx_keeper *keeper);

/*
 * Nothing is under way, and the servers are still there: a last record says that all replicas are
 * EVEN, if they are. Without it the next client makes them so. Blocks.
 */
void rbx_keeper_close(struct rbx_keeper *keeper);

#endif
