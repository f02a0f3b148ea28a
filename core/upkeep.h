/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep.h - sees to the replicas of a volume: lent, replaced, given back.
 *
 * Requests only note a loss and wake the keeper, a thread of the host. It makes
 * rounds, and what may block is done there: memory is borrowed from another
 * server, and given back. A round takes the slabs that want something in the order
 * of their need (attention.h) and does what rbx_slab_task() says. It is short: after
 * some requests to servers the next one begins, with what is most urgent by then. So a
 * first write never waits behind a rebuild, however large, and what a round costs does
 * not depend on the size of the volume.
 *
 * One slab is copied at a time. Memory is borrowed for few of them before: what would
 * lie there until its turn comes others can use, and what gets more urgent meanwhile
 * finds it.
 *
 *	rbx_upkeep_init, servers are connected, rbx_flow_open
 *	rbx_upkeep_borrow_all      a volume that is open has its memory, or has
 *	                           each slab's with its first write
 *	rbx_upkeep_round           by the keeper, whenever it is woken
 *	...the last request has ended, the keeper is stopped:
 *	rbx_upkeep_abandon, the copies of a rebuild run out, rbx_upkeep_end
 *
 * A slab whose last replica is lost stays without memory until it is written to. Then
 * it is placed anew like a first write's, and what it does not write stays lost
 * (lost_pages.h). Nobody waits there for a server that is away: who has another copy,
 * as a backup, would wait for nothing.
 *
 * Where no server can take a replica the round says so and wants to be made
 * again in RBX_UPKEEP_RETRY_MS; so it does where a first write waits for a server
 * that is away, until that one is back or down. When a server lends again, the
 * others that wait are not kept for the next time. A replica that should leave is then
 * checked with its server: what was revoked is no replica any more. What cannot be
 * given back because its server is out of reach is owed, and tried again as well.
 *
 * A server that was lost and comes back is added anew. The place of a lost one in the
 * table can be used again when nothing refers to it any more: what it held is lost or
 * replaced, nothing is under way to it, and nothing is owed. So a volume may see any
 * number of servers come and go; RBX_SERVERS_MAX bounds those that it has.
 */
#ifndef RBX_UPKEEP_H
#define RBX_UPKEEP_H

#include "core/eviction.h"
#include "core/flow.h"

struct rbx_upkeep;

/* What there is to tell, each once. */
enum rbx_news {
	RBX_NEWS_SERVER_DOWN, /* with replicas of count slabs */
	RBX_NEWS_REBUILD_STARTED, /* count slabs lack replicas */
	RBX_NEWS_REBUILD_DONE, /* count replicas were made, all are live */
	RBX_NEWS_REBUILD_STUCK, /* no server takes those of count slabs */
	RBX_NEWS_DATA_LOST, /* count slabs have no replica left */
};

/* What the host does for it: by the thread that calls the upkeep, with no lock
 * held. Only what is said to block may. */
struct rbx_upkeep_ops {
	/* Begins to borrow one slab of a server. Each is followed by its answer(),
	 * and others may be asked meanwhile, but not the same server. */
	void (*ask)(struct rbx_upkeep *upkeep, uint32_t server);
	/* Waits for the answer: 0, or why it lends none. -ENOTCONN, -ETIMEDOUT:
	 * the server could not be asked, and may be back. Blocks. */
	int (*answer)(struct rbx_upkeep *upkeep, uint32_t server,
		      struct rbx_loan *loan);
	/* Gives it back. -ENOTCONN, -ETIMEDOUT: the server has not heard of it;
	 * else the loan has ended. Blocks. */
	int (*unmap)(struct rbx_upkeep *upkeep, uint32_t server,
		     const struct rbx_loan *loan);
	/* 0: the loan is still good. -ESTALE, -EPERM: it was revoked. Blocks. */
	int (*check)(struct rbx_upkeep *upkeep, uint32_t server,
		     const struct rbx_loan *loan);
	/* Memory of this machine, or NULL; and it is of no more use. May block. */
	void *(*memory_lend)(struct rbx_upkeep *upkeep, size_t size);
	void (*memory_take_back)(struct rbx_upkeep *upkeep, void *memory);
	/* As the server last said. */
	uint64_t (*free_bytes)(struct rbx_upkeep *upkeep, uint32_t server);
	/* server: of SERVER_DOWN. err: of REBUILD_STUCK, as rbx_loans_borrow(). */
	void (*tell)(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err);
	/* A task of a slab is about to be done: for traces. NULL: nobody looks. */
	void (*tending)(struct rbx_upkeep *upkeep, const struct rbx_slab *slab,
			enum rbx_slab_task task);
};

struct rbx_upkeep_server {
	bool went_down; /* atomic: a round has yet to see to it */
	bool is_down; /* atomic: never to be asked again */
	bool is_free; /* atomic: its place can be used again */
	bool is_gone; /* and all replicas there are lost; of who makes the rounds */
	uint64_t incarnation; /* as it said when it was connected; 0: it is not */
	uint32_t replicas_count; /* with its memory, or asked for; of who makes the
				    rounds */
};

/* A loan that could not be given back, since the connection was broken. It is of
 * no use to us and is lost to others, until the server hears of it. */
struct rbx_owed {
	uint32_t server;
	struct rbx_loan loan;
};

/* A replica that a server is asked for. */
struct rbx_asked {
	struct rbx_slab *slab;
	uint32_t slot;
	uint32_t server;
	enum rbx_replica_state state; /* that it begins in */
};

/* A server that is gone, while its replicas are looked for. */
struct rbx_lost {
	bool is_on;
	uint32_t server;
	uint32_t next; /* slab to look at next */
	uint32_t slab_count; /* that had a replica there */
};

struct rbx_upkeep {
	struct rbx_flow *flow;
	const struct rbx_upkeep_ops *ops;
	struct rbx_upkeep_server servers[RBX_SERVERS_MAX];
	struct rbx_lock servers_lock; /* guards the map's table of servers, and that
					 of the host; taken after a slab's lock */
	bool any_went_down; /* atomic */

	/* All below is of who makes the rounds. */
	struct rbx_lost lost;
	struct rbx_owed owed[RBX_OWED_MAX];
	uint32_t owed_count;
	struct rbx_asked asked[RBX_ASKS_MAX]; /* each of another server */
	uint32_t asked_count;
	uint32_t refusals_count; /* since it was set to 0 */
	int refusal; /* the reason */
	/* What was told, so that each news is told once. */
	uint32_t rebuilt_count; /* replicas since all were live */
	uint32_t dead_count; /* slabs */
	uint32_t gone_count; /* servers whose place is not free yet */
	bool is_stuck;
	int stuck_err; /* of the last slab that no server took a replica of */
	/* Of the round. */
	uint32_t borrows_count; /* slabs that servers were asked to lend for */
	uint32_t lent_count; /* those that they did lend for */
	uint32_t returns_count; /* loans that servers were given back */
};

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops);

/* ---- Servers --------------------------------------------------------------*/

/* Finds a place of the table for one more server, of a volume that is open: one that is
 * free again, so that the host frees what it had there, or the next one. -ENOSPC. One
 * thread at a time, until the server is added or has failed. */
int rbx_upkeep_server_place(struct rbx_upkeep *upkeep, uint32_t *server);
/* A server is about to be connected for this place. */
void rbx_upkeep_server_begins(struct rbx_upkeep *upkeep, uint32_t server);
/* It was not connected, or is of no use. */
void rbx_upkeep_server_failed(struct rbx_upkeep *upkeep, uint32_t server);
/*
 * It is connected, and is this incarnation of a server. -EEXIST: it is one that the
 * volume has already, under another address: two replicas on it would be lost together.
 * other: which. The caller lets no two servers be connected at once.
 */
int rbx_upkeep_server_connected(struct rbx_upkeep *upkeep, uint32_t server,
				uint64_t incarnation, uint32_t *other);
/* It was connected, in a volume that is open, for a place that
 * rbx_upkeep_server_place() gave. */
void rbx_upkeep_server_added(struct rbx_upkeep *upkeep, uint32_t server);
/* It is gone for good. Any thread; a round does the rest. */
void rbx_upkeep_server_down(struct rbx_upkeep *upkeep, uint32_t server);
/* It wants a loan back. Any thread; one step of the slab that it belongs to. */
void rbx_upkeep_evict(struct rbx_upkeep *upkeep, uint32_t server,
		      const struct rbx_eviction *eviction);

static inline bool
rbx_upkeep_server_is_down(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return RBX_LOAD_ACQUIRE(&upkeep->servers[server].is_down);
}

/* ---- Open, rounds, close: all of it blocks ----------------------------------*/

/* Borrows all replicas of all slabs, unless they are lent on demand; 0, or why a
 * server lends no more. */
int rbx_upkeep_borrow_all(struct rbx_upkeep *upkeep);

/* Whether all of it would fit, by what the servers say is free now. */
bool rbx_upkeep_fits(struct rbx_upkeep *upkeep);

/* Returns whether another round is to be made in RBX_UPKEEP_RETRY_MS, even if
 * nothing wakes the keeper. */
bool rbx_upkeep_round(struct rbx_upkeep *upkeep);

/* Nothing new is sent from here on; a rebuild may still be under way. */
void rbx_upkeep_abandon(struct rbx_upkeep *upkeep);
/* Nothing is under way, and the host takes leave of the servers, which ends all loans
 * (wire/PROTOCOL.md, BYE). Gives back memory of this machine. */
void rbx_upkeep_end(struct rbx_upkeep *upkeep);

/* ---- Status ---------------------------------------------------------------*/

struct rbx_census {
	uint32_t slabs;
	uint32_t blank; /* never written, or discarded: nothing is lent */
	uint32_t whole; /* with all replicas */
	uint32_t lacking; /* those being rebuilt among them */
	uint32_t rebuilding;
	uint32_t dead; /* without a live replica */
	uint32_t last; /* that a single server has: one death from loss */
	uint32_t holes; /* that were lost, and not all written since */
	uint32_t servers;
	uint32_t servers_up;
};

/* Any thread. */
void rbx_upkeep_census(struct rbx_upkeep *upkeep, struct rbx_census *census);

/* ---- upkeep_servers.c, for upkeep.c ------------------------------------------*/

/* Places of the table that are or were in use. */
uint32_t rbx_upkeep_servers_count(struct rbx_upkeep *upkeep);
/* Looks for what servers held that went down. Returns whether there is more to do, in
 * the next round. */
bool rbx_upkeep_servers_tend(struct rbx_upkeep *upkeep);
/* At the end of a round, so what was owed to one that is gone is no more. */
void rbx_upkeep_places_free(struct rbx_upkeep *upkeep);

/* ---- loans.c, for upkeep.c: all of it blocks ---------------------------------*/

/* Borrows so many replicas, all at once. Returns how many were lent, and if it is fewer
 * the reason: -ENODEV: no server is left that could be asked, or that one of them is
 * away, or why the one that was asked last refused. */
uint32_t rbx_loans_borrow(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			  enum rbx_replica_state state, uint32_t wanted_count,
			  int *reason);
/* Borrows all replicas of all slabs; 0, or the reason. */
int rbx_loans_borrow_all(struct rbx_upkeep *upkeep);
/* Does RBX_TASK_GIVE_BACK. */
void rbx_loans_give_back(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Gives back what is owed; returns whether something was taken. */
bool rbx_loans_pay_owed(struct rbx_upkeep *upkeep);
/* Loses a replica that should leave, where its server has revoked it. */
void rbx_loans_check_leaving(struct rbx_upkeep *upkeep, struct rbx_slab *slab);

#endif
