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

#include "client/intents.h"
#include "client/named.h"
#include "client/volume.h"

/* A server, while a record is proposed. */
struct rbx_keeper_ask {
	struct rbx_ask ask;
	struct rbx_wire_message message; /* the request, then its answer */
	struct rbx_volume_control *control;
	uint64_t version; /* of the record that it was asked to accept */
	bool is_wanted; /* it is to be asked, perhaps once more */
	bool is_out; /* atomic: it was asked, and has not answered */
	bool is_to_be_told; /* atomic: it drains, and waits until it has heard that it is OUT */
};

enum rbx_newcomer_state {
	RBX_NEWCOMER_NONE,
	RBX_NEWCOMER_WANTED,
	RBX_NEWCOMER_ALONE,
	RBX_NEWCOMER_NAMED,
	RBX_NEWCOMER_AGAIN,
};

/* A server that comes, while the thread that has connected it waits. */
struct rbx_newcomer {
	struct rbx_monitor monitor; /* guards these; the thread waits in it */
	bool is_new; /* the keeper has not seen it yet */
	bool is_over;
	int err; /* 0: it is a member */
	bool is_closing; /* nobody wants one any more */
	uint32_t server; /* its place */
	uint64_t incarnation;
	uint64_t former; /* of the dead one that it takes the place of; 0: none */
	bool is_again; /* it has FAILED at this place, and has what is RETURNED (volume.h) */
	uint32_t failed_place;
	/* The rest is the upkeep thread's. */
	enum rbx_newcomer_state state;
	struct rbx_membership before; /* that is in force if the record is taken back */
	bool has_begun; /* AGAIN: it is the server of the volume */
};

/* The volume is to be larger, while the thread that wants it waits. */
struct rbx_growth {
	struct rbx_monitor monitor; /* guards these; the thread waits in it */
	uint64_t size_bytes;
	bool is_new; /* the keeper has not seen it yet */
	bool is_over;
	int err; /* 0: it is */
	/* The rest is the upkeep thread's. */
	bool is_wanted;
	bool is_proposed;
};

/* A server that is dead, if its place in the table was given away. */
struct rbx_former {
	uint64_t incarnation; /* 0: none */
	char address[sizeof(((struct rbx_address *)NULL)->name)];
};

struct rbx_keeper {
	struct rbx_volume_control *control;
	struct rbx_named *named;
	struct rbx_server_set members; /* places that have a server of the volume; not OUT */
	struct rbx_newcomer newcomer;
	struct rbx_growth growth;
	struct rbx_former formers[RBX_MEMBERS_MAX]; /* of the thread that adds servers */
	bool is_proposing;
	bool is_over; /* atomic: no record will be accepted, now at least: nothing is sent */
	bool is_closed;
	bool may_differ; /* a server has FAILED once: what failed may be at the others alone */
	struct rbx_server_set former; /* while it is over: they have not granted it once more */
	/* A server that the record names, and that did not come: it is to be put OUT. 0: none */
	uint64_t absent;
	struct rbx_server_set going; /* servers that the record which is proposed puts OUT */
	struct rbx_server_set gone; /* suspects, and those that were judged; as the round began */
	uint64_t drains_again_ns; /* what is left at servers that drain is looked for again then */
	uint64_t again_ns; /* servers that could not be asked are asked again then */
	struct rbx_keeper_ask asks[RBX_MEMBERS_MAX]; /* by the server's place */
	struct rbx_intents_round intents;
};

/* Zeroed memory; the volume has not been connected yet. */
void rbx_keeper_init(struct rbx_keeper *keeper, struct rbx_volume_control *control,
		     struct rbx_named *named);

void rbx_keeper_destroy(struct rbx_keeper *keeper);

/* The volume is open, and has the servers that are connected. */
void rbx_keeper_begin(struct rbx_keeper *keeper);

/* By the upkeep thread. Returns when another one is to be made; UINT64_MAX: when it is woken. */
uint64_t rbx_keeper_round(struct rbx_keeper *keeper, uint64_t now_ns);

/* Whether the record is to say something else, as soon as another round is made. */
bool rbx_keeper_is_behind(const struct rbx_keeper *keeper);

/* ---- Servers that come. One thread at a time; all of it blocks. --------------------------- */

/* Whether nothing is asked any more of the server that had this place. */
bool rbx_keeper_is_done_with(const struct rbx_keeper *keeper, uint32_t server);
/* Whether a server is OUT, so that it may return. */
bool rbx_keeper_any_is_out(struct rbx_named *named);
/* While the server is connected: it makes the volume, or returns (newcomer.h). returns: only if it
 * is OUT. 0; -EAGAIN: it is about to be OUT, and what it has is still needed; -ENOENT: it does not
 * return; -ENOSPC: it drains; -errno; reported. */
int rbx_keeper_welcome(struct rbx_named *named, struct rbx_session *session, bool returns,
		       struct rbx_returned *returned);
/* The server of this place becomes a member, and former is forgotten. 0; or -errno, reported: it is
 * none, and nothing is asked of it any more. */
int rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former);
/* The server of this place is the one that has FAILED at another one: it serves the volume again.
 * 0, or -errno; reported. */
int rbx_keeper_again(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place);
/* Nobody wants one any more: what waits ends soon. Any thread; does not block. */
void rbx_keeper_take_no_more(struct rbx_keeper *keeper);

/* ---- keeper_grow.c ------------------------------------------------------------------------- */

/* The volume becomes so large, for which its map has room. One thread at a time, while the volume
 * is open; blocks. 0; -ESTALE: no record is accepted any more; reported. */
int rbx_keeper_grow(struct rbx_keeper *keeper, uint64_t size_bytes);

/* For keeper.c: takes what is wanted, and ends that if nothing is accepted any more; begins to
 * propose it, if nothing else is proposed; it was chosen. */
void rbx_keeper_growth_look(struct rbx_keeper *keeper);
void rbx_keeper_growth_begin(struct rbx_keeper *keeper);
void rbx_keeper_growth_chosen(struct rbx_keeper *keeper);

/* ---- keeper_newcomer.c, for keeper.c --------------------------------------------------------- */

/* Begins to propose the one that is wanted, if one is. Nothing else is proposed. */
void rbx_keeper_newcomer_begin(struct rbx_keeper *keeper);
/* The newcomer has answered. Returns whether the others are to be asked now. */
bool rbx_keeper_newcomer_answered(struct rbx_keeper *keeper, int err);
/* Before anything else is done: what is to be taken back, because another server is to be put
 * out, or the volume is over or closed. any_suspects: the first of these. */
void rbx_keeper_newcomer_look(struct rbx_keeper *keeper, bool any_suspects);
/* Puts one OUT that was named and did not come, as the volume was over then. Nothing else is
 * proposed. */
void rbx_keeper_absent_put_out(struct rbx_keeper *keeper);
/* The record that names it was chosen. */
void rbx_keeper_newcomer_chosen(struct rbx_keeper *keeper);
/* Hands a newcomer, which is filled in, to the upkeep thread, and waits. */
int rbx_keeper_newcomer_wait(struct rbx_keeper *keeper);
/* That is over. */
void rbx_keeper_newcomer_over(struct rbx_newcomer *newcomer, int err);

/* ---- keeper_over.c, for keeper.c ------------------------------------------------------------- */

/* Whether so many servers do not count that they alone can let another client in. again_ns: when
 * the next one may not count; not changed if none does. */
bool rbx_keeper_has_lost_the_volume(const struct rbx_keeper *keeper, uint64_t now_ns,
				    uint64_t *again_ns);
/* All requests fail from now on, and a kernel's log says why. */
void rbx_keeper_lose(struct rbx_keeper *keeper);
/* While it is over: servers come again, and when enough have, it is not over any more. */
void rbx_keeper_over_go_on(struct rbx_keeper *keeper, uint64_t now_ns);

/* ---- keeper_again.c, for keeper.c ------------------------------------------------------------ */

/* Goes on with the server that is there again. */
void rbx_keeper_again_go_on(struct rbx_keeper *keeper);

/* ---- keeper.c, for the others ---------------------------------------------------------------- */

/* What is sent to it fails from now on. */
void rbx_keeper_failed(struct rbx_keeper *keeper, uint32_t server);
/* The next version of the record is to be accepted by those servers that are left. */
void rbx_keeper_propose(struct rbx_keeper *keeper);
/* Puts these servers OUT, as next says: made by rbx_membership_next(). Nothing else is proposed. */
void rbx_keeper_put_out(struct rbx_keeper *keeper, const struct rbx_server_set *servers,
			const struct rbx_membership *next);

/* ---- keeper_drain.c, for keeper.c ------------------------------------------------------------ */

/* Has all that is at servers that drain leave. Returns when to look again. */
uint64_t rbx_keeper_drains_look(struct rbx_keeper *keeper, uint64_t now_ns);
/* Begins to put those of them out that have nothing, if there are any. Nothing else is proposed. */
void rbx_keeper_drains_begin(struct rbx_keeper *keeper);
/* This server is OUT. If it drains, it is to hear of it. */
void rbx_keeper_drained(struct rbx_keeper *keeper, uint32_t server);
/* A record was chosen that needs no vote of servers that are OUT: those hear of it now. */
void rbx_keeper_drains_tell(struct rbx_keeper *keeper);
/* Whether one of them is to be asked for that. */
bool rbx_keeper_drains_wait(const struct rbx_keeper *keeper);
/* A server has answered. Returns whether it is one of these. */
bool rbx_keeper_drained_answered(struct rbx_keeper *keeper, uint32_t server, int err);

/* ---- The end ------------------------------------------------------------------------------ */

/* The upkeep thread has ended. What waits fails. */
void rbx_keeper_end(struct rbx_keeper *keeper);

/*
 * Nothing is under way, and the servers are still there: a last record says that all replicas are
 * EVEN, if they are. Without it the next client makes them so. Blocks.
 */
void rbx_keeper_close(struct rbx_keeper *keeper);

#endif
