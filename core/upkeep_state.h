/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_state.h - what the upkeep of a volume remembers. A host only gives it the memory; the
 * functions of upkeep.h answer what it wants to know.
 *
 * What servers are asked for passes through three tables, none of which is longer than a round may
 * make it:
 *
 *	borrowings    slabs for which servers are asked for memory       borrow.h
 *	asked         what each of these servers is asked, one thing      asks.h
 *	owed          loans that are to be given back                     loans.h
 *
 * All but what says otherwise is of the thread that makes rounds.
 */
#ifndef RBX_UPKEEP_STATE_H
#define RBX_UPKEEP_STATE_H

#include "core/upkeep.h"

/* What is remembered of a server for a while. */
enum rbx_server_mark {
	RBX_SERVER_AVOIDED, /* asked only if no other one lends */
	RBX_SERVER_REFUSED, /* lent nothing when it was asked */
	RBX_SERVER_FULL, /* said just now that it lends nothing: no choice */
	RBX_SERVER_MARKS,
};

struct rbx_upkeep_server {
	bool went_down; /* atomic: the next round has to handle it */
	bool is_down; /* atomic: never to be asked again */
	bool is_free; /* atomic: its place can be used again */
	bool is_silent; /* atomic: some of its replicas may be AWAY (slab_away.h) */
	bool is_back; /* atomic: it was silent; the next round has to handle it */
	bool is_gone; /* and all replicas there are lost; of the thread that makes rounds */
	uint64_t incarnation; /* as the server said when it was connected; 0: not connected */
	/* with its memory, or asked for; of the thread that makes rounds. Others may look, but for
	 * people alone */
	uint32_t replicas_count;
	uint32_t drawn_count; /* entries of drawn[] */
	uint64_t marked_until_ns[RBX_SERVER_MARKS]; /* the server has the mark until then */
};

/* A loan that is to be given back. We cannot use it, and others cannot either until the
 * server is told. */
struct rbx_owed {
	uint32_t server;
	struct rbx_loan loan;
	/* Of a guarded volume: the server may call it complete, so this slab, which was never
	 * written, is not lent before it has answered. NULL: it does not matter */
	struct rbx_slab *slab;
	uint64_t not_before_ns; /* the server could not be reached */
	bool is_asked; /* the server was asked and has not answered */
};

/* A slab for which servers are asked for memory. An entry that is not in use has no slab. */
struct rbx_borrowing {
	struct rbx_slab *slab;
	enum rbx_replica_state state; /* the state in which its replicas begin */
	enum rbx_attention_list list; /* the list from which it was taken */
	uint32_t wanted_count; /* replicas */
	uint32_t lent_count;
	uint32_t asks_count; /* requests for it that are out */
	uint64_t since_ns;
	bool is_overdue; /* its writes do not wait any longer */
	bool is_uncertain; /* of a named volume: a server may have it, and nobody knows */
	bool is_hopeless; /* the same, and nobody will know while the volume is open */
	/* servers that were asked and could not be reached: they may be back */
	struct rbx_server_set away;
	struct rbx_server_set not_servers; /* asked already, or have a replica */
	int err; /* why one of them did not lend */
	/* of a named volume: too few servers have lent for a first write, and it waits for a
	 * record that allows so few */
	bool is_short;
	/* a replica is to move to this server, and to no other one (balance.h) */
	bool moves;
	uint32_t to;
};

/* What a server is asked, one request at a time. */
struct rbx_asked {
	enum rbx_call_kind kind;
	uint32_t server;
	uint64_t since_ns;
	bool is_late;
	uint64_t again_ns; /* it is asked again then; 0: it was asked, and has not answered */
	/* Of MAP, and of LABEL for first writes: what it is for. NULL: not needed any more. */
	struct rbx_borrowing *borrowing;
	struct rbx_slab *slab; /* but for UNMAP */
	uint32_t slot; /* of MAP and LABEL */
	struct rbx_loan loan; /* but for MAP */
};

/* A server that will be asked for a replica of a slab, while a volume is opened. */
struct rbx_drawn {
	struct rbx_slab *slab;
	uint32_t server;
	uint32_t slot; /* which is taken already */
};

/* A server that is dead, while its replicas are looked for. */
struct rbx_lost {
	bool is_on;
	uint32_t server;
	uint32_t next; /* slab to look at next */
	uint32_t slab_count; /* that had a replica there */
};

/* A server that is back, while its replicas that are AWAY are looked for. */
struct rbx_back {
	bool is_on;
	bool some_wait; /* for parts that are under way to them */
	uint32_t server;
	uint32_t next; /* slab to look at next */
	struct rbx_server_set again; /* servers that are looked for once more, as some wait there */
	uint64_t again_ns; /* when that begins; 0: there are none */
};

struct rbx_upkeep {
	struct rbx_flow *flow;
	const struct rbx_upkeep_ops *ops;
	uint64_t timeout_ns; /* T, the peer timeout; atomic: it may be changed at any time */
	bool is_open; /* atomic: what opens the volume waits for nothing any more */
	bool is_closing; /* atomic */
	struct rbx_upkeep_server servers[RBX_SERVERS_MAX];
	/* guards the map's table of servers, and that of the host; taken after a slab's lock */
	struct rbx_lock servers_lock;
	struct rbx_server_set leaving; /* servers that are to have nothing; under servers_lock */
	bool any_went_down; /* atomic */
	bool any_is_back; /* atomic */
	bool is_stuck; /* atomic: slabs need a replica, and no server would take one */

	/* All below is used only by the thread that makes rounds. */
	struct rbx_lost lost;
	struct rbx_back back;
	uint64_t now_ns; /* when the round began */
	struct rbx_owed owed[RBX_OWED_MAX];
	uint32_t owed_count;
	struct rbx_asked asked[RBX_ASKS_MAX]; /* each to another server */
	uint32_t asked_count;
	struct rbx_borrowing borrowings[RBX_ASKS_MAX]; /* each has requests out, or is short */
	uint32_t borrowings_count;
	struct rbx_server_set busy; /* servers that have not answered */
	struct rbx_server_set late; /* those of them that take long */
	struct rbx_server_set marked[RBX_SERVER_MARKS];
	bool any_marked[RBX_SERVER_MARKS]; /* false: no server has the mark */
	/* first writes wait, and no server that was asked has lent anything since; 0: not so */
	uint64_t in_vain_since_ns;
	bool stuck_is_next; /* STUCK slabs are tried next, not those that wait for a record */
	uint64_t rest_until_ns; /* when copies that failed are tried again; 0: none has */
	uint64_t retry_next_ns; /* when parked slabs are tried again even if answers come */
	/* While a volume is opened: */
	uint32_t open_next; /* the next slab that needs memory */
	struct rbx_server_set open_refused; /* servers */
	int open_err; /* what the last one answered */
	struct rbx_drawn drawn[RBX_OPEN_DRAWS_MAX]; /* in their order */
	uint32_t drawn_count;
	/* Of a named volume with replicas: a first write needs so many, because the record says
	 * that each slab has them which was written. The host sets it. */
	uint32_t copies_least;
	/* Extents of replicas that returned: that are used as they are, and that are copied. */
	uint64_t extents_kept, extents_stale;
	uint64_t back_count; /* replicas that returned after they were AWAY */
	/* Replicas move to servers with more memory free (balance.h): */
	bool balance_is_on; /* one is on its way, or was just now */
	uint32_t balance_from; /* the server that it is to leave */
	uint32_t balance_next; /* the slab to look at next */
	uint32_t balance_looked; /* slabs that were looked at in vain */
	uint64_t balance_ns; /* when to look again */
	uint64_t moved_count; /* atomic: replicas that have begun to move */
	/* What was reported, so that each news is told once. */
	uint32_t rebuilt_count; /* replicas since all were live */
	uint32_t dead_count; /* slabs */
	uint32_t lost_slabs_count; /* lost_slabs.h */
	uint32_t gone_count; /* dead servers whose place is not free yet */
	/* Of this round. */
	/* parked slabs are tried again, and servers asked about loans they want back */
	bool may_retry;
	int stuck_err; /* of the last slab of which no server took a replica; 0: none */
	uint32_t borrows_count; /* slabs for which servers were asked */
	uint32_t lent_count; /* those of them for which one lent */
	uint32_t returns_count; /* loans to give back */
	uint32_t passed_count; /* slabs that have one of a silent server, to which enough is owed */
	uint32_t pays_count; /* loans of which servers were told */
	bool lacks_servers; /* the servers to be asked next have not answered yet */
	bool lacks_records; /* slabs wait for a record (slab_record.h) */
};

#endif
