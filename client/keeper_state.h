/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_state.h - what the keeper remembers, and what its files do for each other; see keeper.h.
 *
 * Each server has a place in the table of servers. What is known of it is in several parts, because
 * several threads need it: the data path, the thread that adds servers, the one that watches its
 * peer, and the upkeep thread. This is the way of a place, and what is set in each state:
 *
 *	state       means                                    what is set
 *	free        nobody, or nobody any more               -
 *	newcomer    connected, and not in the record         newcomer.server
 *	again       the same, and is the server of another   newcomer.server,
 *	            place, which has FAILED                  newcomer.failed_place: that one
 *	member      the record says that it is IN            members
 *	suspect     the same; to be judged                   members, held.suspects
 *	FAILED      the same; what is sent to it fails       members, held.failed, has_failed
 *	going       a record is proposed that puts it OUT    members, going, is_shunned; and
 *	                                                     held.suspects, unless it drains
 *	OUT         such a record was chosen                 held.out, is_shunned, upkeep: is_down
 *	moved       FAILED, and used at another place        held.failed; has_failed until all slabs
 *	                                                     are taken, then upkeep: is_down
 *	gone        nothing refers to it: it can be used     upkeep: is_free
 *	            for another server
 *
 * The order: free, newcomer or again, member; then suspect, and from there FAILED, or going and
 * OUT. A server that drains has no suspicion: member, going, OUT. What is FAILED stays so until it
 * is moved. OUT and moved end as gone, which is free.
 *
 * While the volume is over (is_over), all are shunned. Each member that is not going has_failed,
 * and is one of not_granted, until it has come again for another place. If it has not when the
 * volume goes on, it is a suspect, has_failed and is shunned until it is judged or comes.
 *
 * Who writes what:
 *
 *	servers[].is_given_up    the thread that watches the peer: it is down for good, in any state
 *	                         but free and gone. Cleared for the next server of the place
 *	servers[].is_shunned     the upkeep thread; the data path sends nothing there
 *	servers[].has_failed     the upkeep thread; the thread that adds servers connects such one
 *	                         once more. Cleared when it is moved, or put OUT
 *	servers[].has_drained    the upkeep thread, as it goes OUT. Cleared as is_given_up
 *	servers[].coming         the thread that adds servers, while it connects this one
 *	members, going, gone, not_granted    the upkeep thread; gone: suspects and all that were
 *	                         judged, as the round began
 *	held.suspects            any thread (core/held.h); the upkeep thread judges: out or failed
 *	newcomer                 the thread that adds servers, then the upkeep thread; in a monitor
 *	asks[].is_wanted         the upkeep thread: it is to be asked for the record
 *	asks[].is_asked          the upkeep thread: it was, and has not answered. Its place is not
 *	                         given away meanwhile, in whatever state it is
 *	asks[].is_to_be_told     the same, of one that drained, and is OUT
 *	upkeep: went_down, is_down, is_gone, is_free    core/upkeep_state.h; in this order
 */
#ifndef RBX_CLIENT_KEEPER_STATE_H
#define RBX_CLIENT_KEEPER_STATE_H

#include "client/intents.h"
#include "client/keeper.h"

/* A server, while a record is proposed. */
struct rbx_keeper_ask {
	struct rbx_ask ask;
	struct rbx_wire_message message; /* the request, then its answer */
	struct rbx_volume_control *control;
	uint64_t version; /* of the record that it was asked to accept */
	bool is_wanted; /* it is to be asked, perhaps once more */
	bool is_asked; /* atomic: it was asked, and has not answered */
	uint64_t tell_version; /* the first record that says so and was chosen, or UINT64_MAX */
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
	struct rbx_server_set not_granted; /* while it is over: not once more, since then */
	/* A server that the record names, and that did not come: it is to be put OUT. 0: none */
	uint64_t absent;
	uint64_t judges_from_ns; /* servers that have not come again by then are judged */
	struct rbx_server_set going; /* servers that the record which is proposed puts OUT */
	struct rbx_server_set gone; /* suspects, and those that were judged; as the round began */
	uint64_t drains_again_ns; /* what is left at servers that drain is looked for again then */
	uint64_t again_ns; /* servers that could not be asked are asked again then */
	struct rbx_keeper_ask asks[RBX_MEMBERS_MAX]; /* by the server's place */
	struct rbx_intents_round intents;
};

/* Zeroed memory. */
void rbx_keeper_init(struct rbx_keeper *keeper, struct rbx_volume_control *control,
		     struct rbx_named *named);
void rbx_keeper_destroy(struct rbx_keeper *keeper);

static inline struct rbx_flow *rbx_keeper_flow(const struct rbx_keeper *keeper)
{
	return &keeper->control->flow;
}

static inline struct rbx_peer *rbx_keeper_peer(const struct rbx_keeper *keeper, uint32_t server)
{
	return keeper->control->servers[server].peer;
}

/* ---- keeper_grow.c, for keeper.c ------------------------------------------------------------- */

/* Takes what is wanted, and ends that if nothing is accepted any more; begins to propose it, if
 * nothing else is proposed; it was chosen. */
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
/* Ends the newcomer's turn, and wakes the thread that waits, with err. */
void rbx_keeper_newcomer_over(struct rbx_newcomer *newcomer, int err);

/* ---- keeper_over.c, for keeper.c ------------------------------------------------------------- */

/* Whether so many servers do not count that they alone can let another client in. again_ns: when
 * the next one may not count; not changed if none does. */
bool rbx_keeper_has_lost_the_volume(const struct rbx_keeper *keeper, uint64_t now_ns,
				    uint64_t *again_ns);
/* All requests fail from now on, and a kernel's log says why. */
void rbx_keeper_lose(struct rbx_keeper *keeper);
/* While it is over: tells the host why. Servers come again, and when enough have, it goes on. */
void rbx_keeper_over_go_on(struct rbx_keeper *keeper, uint64_t now_ns);

/* ---- keeper_again.c, for keeper.c ------------------------------------------------------------ */

/* Goes on with the server that is there again. */
void rbx_keeper_again_go_on(struct rbx_keeper *keeper);

/* ---- keeper.c, for the others ---------------------------------------------------------------- */

/* The next version of the record is to be accepted by those servers that are left. */
void rbx_keeper_propose(struct rbx_keeper *keeper);

/* ---- keeper_judge.c, for the others --------------------------------------------------------- */

/* Servers that are suspects and not needed are put out. If that is not certain because others
 * are silent, they wait until those are back or given up. Returns whether any waits. */
bool rbx_keeper_judge(struct rbx_keeper *keeper, uint64_t now_ns);
/* What is sent to it fails from now on. */
void rbx_keeper_failed(struct rbx_keeper *keeper, uint32_t server);
/* Whether the servers that are left can accept this record, without those that it puts OUT or that
 * have FAILED: it would wait for these. */
bool rbx_keeper_is_acceptable(const struct rbx_keeper *keeper, const struct rbx_membership *next);
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

#endif
