/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep.h - sees to the replicas of a volume: lent, replaced, given back.
 *
 * Requests only note a loss and wake the upkeep thread, a thread of the host. It
 * makes rounds, and what may block is done there: memory is borrowed from another
 * server, and given back. A round takes the slabs that want something in the order
 * of their need (attention.h) and does what rbx_slab_task() says. It is short:
 * after some requests to servers the next one begins, with what is most urgent by
 * then. So a first write never waits behind a rebuild, however large, and what a
 * round costs does not depend on the size of the volume.
 *
 * One slab is copied at a time. Memory is borrowed for few of them before: what would
 * lie there until its turn comes others can use, and what gets more urgent meanwhile
 * finds it.
 *
 *	rbx_upkeep_init, servers are connected, rbx_flow_open
 *	rbx_upkeep_borrow_all      a volume that is open has its memory, or has
 *	                           each slab's with its first write
 *	rbx_upkeep_round           by the upkeep thread, whenever it is woken
 *	...the last request has ended, the upkeep thread is stopped:
 *	rbx_upkeep_abandon, the copies of a rebuild run out, rbx_upkeep_end
 *
 * A slab whose last replica is lost stays without memory until it is written to. Then
 * it is placed anew like a first write's, and what it does not write stays lost
 * (lost_pages.h). Nobody waits there for a server that is away: who has another copy,
 * as a backup, would wait for nothing.
 *
 * If no server can take a replica, the round says so and wants to be made again in
 * RBX_UPKEEP_RETRY_MS; so it does while a first write waits for a server that is away,
 * until that one is back or down. It says so with the reason of that very round, and not
 * while the reason passes by itself: a server that revoked a replica is not asked for
 * another before the last parts of the lost one have ended. When a server lends again, the
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

#include "core/ask.h"
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
	/* Asks a server, and does not wait: MAP, UNMAP or CHECK; loan: of the last two.
	 * Nothing else is asked of it before answer() has said that this is over. */
	void (*ask)(struct rbx_upkeep *upkeep, uint32_t server,
		    enum rbx_call_kind kind, const struct rbx_loan *loan);
	/*
	 * -EAGAIN: it is not over. As soon as it is the host wakes the upkeep thread,
	 * unless it was over at once. Else that was the answer: 0; -ENOTCONN, -ETIMEDOUT:
	 * the server has not heard of it, or has not said, and may be back. MAP: why it
	 * lends none (-ETIMEDOUT: none yet); or the loan. UNMAP: another error: the loan
	 * has ended. CHECK: -ESTALE, -EPERM: it was revoked. Does not wait.
	 */
	int (*answer)(struct rbx_upkeep *upkeep, uint32_t server,
		      struct rbx_loan *loan);
	/* What answer() has just said may be told as why a rebuild is stuck: the host
	 * keeps the words, since others will have been said by then. */
	void (*refused)(struct rbx_upkeep *upkeep);
	/* While a volume is opened: waits until something that was asked may be over.
	 * -EINTR: whoever opens it does not want to wait any longer. Blocks. */
	int (*wait)(struct rbx_upkeep *upkeep);
	/* Memory of this machine, or NULL; and it is of no more use. May block. */
	void *(*memory_lend)(struct rbx_upkeep *upkeep, size_t size);
	void (*memory_take_back)(struct rbx_upkeep *upkeep, void *memory);
	/* As the server last said. */
	uint64_t (*free_bytes)(struct rbx_upkeep *upkeep, uint32_t server);
	/* server: of SERVER_DOWN. err: of REBUILD_STUCK, why the last
	 * server that was asked took none; -ENODEV: there is none to ask. */
	void (*tell)(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err);
	/* A task of a slab is about to be done: for traces. NULL: nobody looks. */
	void (*tending)(struct rbx_upkeep *upkeep, const struct rbx_slab *slab,
			enum rbx_slab_task task);
};

/* What is remembered of a server for a while. */
enum rbx_server_mark {
	RBX_SERVER_AVOIDED, /* asked only if no other one lends */
	RBX_SERVER_REFUSED, /* lent nothing when it was asked */
	RBX_SERVER_MARKS,
};

struct rbx_upkeep_server {
	bool went_down; /* atomic: a round has yet to see to it */
	bool is_down; /* atomic: never to be asked again */
	bool is_free; /* atomic: its place can be used again */
	bool is_gone; /* and all replicas there are lost; of who makes the rounds */
	uint64_t incarnation; /* as it said when it was connected; 0: it is not */
	uint32_t replicas_count; /* with its memory, or asked for; of who makes the
				    rounds */
	uint64_t marked_until_ns[RBX_SERVER_MARKS]; /* if it has the mark */
};

/* A loan that is to be given back. It is of no use to us and is lost to others, until
 * the server hears of it. */
struct rbx_owed {
	uint32_t server;
	struct rbx_loan loan;
	uint64_t not_before_ns; /* the server could not be asked */
	bool is_asked; /* and has not answered */
};

/* A slab for which servers are asked for memory. One of the table that is not in use has
 * no slab. */
struct rbx_borrowing {
	struct rbx_slab *slab;
	enum rbx_replica_state state; /* that its replicas begin in */
	enum rbx_attention_list list; /* from which it was taken */
	uint32_t wanted_count; /* replicas */
	uint32_t lent_count;
	uint32_t asks_count; /* that are out for it */
	uint64_t since_ns;
	bool is_overdue; /* its writes wait no longer */
	struct rbx_server_set not_servers; /* asked already, or have one */
	int err; /* why one of them did not lend */
};

/* What a server is asked, one thing at a time. */
struct rbx_asked {
	enum rbx_call_kind kind;
	uint32_t server;
	uint64_t since_ns;
	bool is_late;
	/* Of MAP: for whom. NULL: nobody waits for it any more. */
	struct rbx_borrowing *borrowing;
	struct rbx_slab *slab; /* of MAP and CHECK */
	uint32_t slot; /* of MAP */
	struct rbx_loan loan; /* of UNMAP and CHECK */
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
	uint64_t timeout_ns; /* T, the peer timeout */
	bool is_closing; /* atomic */
	struct rbx_upkeep_server servers[RBX_SERVERS_MAX];
	struct rbx_lock servers_lock; /* guards the map's table of servers, and that
					 of the host; taken after a slab's lock */
	bool any_went_down; /* atomic */

	/* All below is of who makes the rounds. */
	struct rbx_lost lost;
	uint64_t now_ns; /* when the round began */
	struct rbx_owed owed[RBX_OWED_MAX];
	uint32_t owed_count;
	struct rbx_asked asked[RBX_ASKS_MAX]; /* each of another server */
	uint32_t asked_count;
	struct rbx_borrowing borrowings[RBX_ASKS_MAX]; /* each has asks out */
	uint32_t borrowings_count;
	struct rbx_server_set busy; /* have not answered */
	struct rbx_server_set late; /* those among them that take long */
	struct rbx_server_set marked[RBX_SERVER_MARKS];
	bool any_marked[RBX_SERVER_MARKS]; /* false: none is */
	uint64_t in_vain_since_ns; /* first writes wait, and no server that was asked has
				      lent anything; 0: they do not */
	bool stuck_is_next; /* to be tried again, and not what waits for a record */
	uint64_t retry_next_ns; /* what was parked is tried again even if answers come */
	/* While a volume is opened: */
	uint32_t open_next; /* slab that wants memory next */
	struct rbx_server_set open_refused; /* servers */
	int open_err; /* what the last one said */
	/* What was told, so that each news is told once. */
	uint32_t rebuilt_count; /* replicas since all were live */
	uint32_t dead_count; /* slabs */
	uint32_t gone_count; /* servers whose place is not free yet */
	bool is_stuck;
	/* Of the round. */
	bool may_retry; /* what was parked, and what servers say of loans they want back */
	int stuck_err; /* of the last slab that no server took a replica of; 0: none */
	uint32_t borrows_count; /* slabs that servers were asked to lend for */
	uint32_t lent_count; /* those that they did lend for */
	uint32_t returns_count; /* loans that were to be given back */
	uint32_t pays_count; /* loans of which servers were told */
	bool lacks_servers; /* those to be asked next have not answered yet */
	bool lacks_records; /* slabs wait for one (slab_record.h) */
};

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops, uint64_t timeout_ns);

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

/* ---- Open, rounds, close -----------------------------------------------------*/

/* Borrows all replicas of all slabs, unless they are lent on demand; 0, or why a
 * server lends no more. Blocks. */
int rbx_upkeep_borrow_all(struct rbx_upkeep *upkeep);

/* Whether all of it would fit, by what the servers say is free now. */
bool rbx_upkeep_fits(struct rbx_upkeep *upkeep);

/* Returns when another round is to be made even if nothing wakes the upkeep thread;
 * UINT64_MAX: at no time. It waits for no server. */
uint64_t rbx_upkeep_round(struct rbx_upkeep *upkeep, uint64_t now_ns);

/* The volume is being closed: from here on nothing more is rebuilt, and writes that wait
 * for memory end with -ECANCELED, unless a server that was asked lends it soon. Any
 * thread. */
void rbx_upkeep_closes(struct rbx_upkeep *upkeep);

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

/* ---- asks.c, for loans.c -----------------------------------------------------------*/

/* Asks a server that is not busy. Returns the ask, until it is over. */
struct rbx_asked *rbx_asks_send(struct rbx_upkeep *upkeep, uint32_t server,
				enum rbx_call_kind kind,
				const struct rbx_loan *loan);
/* Takes one that is over off the table: its answer as ops->answer(); -EAGAIN: none is.
 * *index: where to go on looking. */
int rbx_asks_take(struct rbx_upkeep *upkeep, uint32_t *index,
		  struct rbx_asked *asked, struct rbx_loan *loan);
/* A server to borrow from, but none of these, by what it and another one say is free now,
 * whether or not it is busy; or -ENOSPC. */
int rbx_asks_draw(struct rbx_upkeep *upkeep,
		  const struct rbx_server_set *not_servers);
/* A server that can be asked now, but none of these; -EAGAIN: one that could be is asked for
 * something else, and -ETIMEDOUT: it has been for long; -ENOSPC: there is none. */
int rbx_asks_place(struct rbx_upkeep *upkeep,
		   const struct rbx_server_set *not_servers);
/* The same, of those only that answer in time and have not refused. */
int rbx_asks_place_well(struct rbx_upkeep *upkeep,
			const struct rbx_server_set *not_servers);
/* Adds those that have refused to lend in the time that a first write waits. */
void rbx_asks_join_refused(const struct rbx_upkeep *upkeep,
			   struct rbx_server_set *servers);
/* Whether a slab can ask for all that it wants. */
static inline bool rbx_asks_room(const struct rbx_upkeep *upkeep)
{
	return upkeep->asked_count + RBX_REPLICAS_MAX <= RBX_ASKS_MAX;
}
/* Not to be asked before others until then. */
void rbx_asks_avoid(struct rbx_upkeep *upkeep, uint32_t server, uint64_t until_ns);
/* It is gone for good: what it refused is not held against who gets its place. */
void rbx_asks_forget(struct rbx_upkeep *upkeep, uint32_t server);
/* Looks at the clock: which asks are late, and which servers are avoided no more. Returns
 * when to look again. */
uint64_t rbx_asks_tick(struct rbx_upkeep *upkeep);

/* ---- borrow.c ------------------------------------------------------------------*/

/* Asks servers for so many replicas of a slab. 0; or why nobody was asked, as
 * rbx_asks_place(). When nothing is out for it any more rbx_upkeep_borrowed(). */
int rbx_borrow_begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_replica_state state, uint32_t wanted_count,
		     enum rbx_attention_list list);
/* A server has not lent. */
void rbx_borrow_refused(struct rbx_borrowing *borrowing, int err);
/* Asks others for what was refused. Whether nothing is out any more for it. */
bool rbx_borrow_go_on(struct rbx_upkeep *upkeep,
		      struct rbx_borrowing *borrowing);
/* Nothing is out for it and nobody has lent. Whether it is to wait for one that is busy
 * before any is asked again. */
bool rbx_borrow_waits(struct rbx_upkeep *upkeep,
		      const struct rbx_borrowing *borrowing);
/* How long first writes wait for a server that is there and does not lend. Less if the
 * volume is being closed: until it is late. */
static inline uint64_t rbx_upkeep_lend_ns(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->is_closing) ?
		       upkeep->timeout_ns / 4 :
		       RBX_UPKEEP_LEND_TIMES * upkeep->timeout_ns;
}
/* Looks at the clock, after rbx_asks_tick(). */
void rbx_borrowings_tick(struct rbx_upkeep *upkeep);
/* When the first writes of some slab wait no longer. */
uint64_t rbx_borrowings_due_ns(const struct rbx_upkeep *upkeep);
void rbx_borrow_end(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing);
/* How many slabs that were on this list servers are asked for. */
uint32_t rbx_borrowings_of(const struct rbx_upkeep *upkeep,
			   enum rbx_attention_list list);

/* ---- upkeep_slab.c -----------------------------------------------------------------*/

/* Does what is to be done for a slab at the head of a list. What was borrowed is copied in
 * its turn. */
void rbx_upkeep_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_attention_list list);
/* Nothing is out for it any more. */
void rbx_upkeep_borrowed(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing);
/* Ends first writes that have waited in vain for long enough, or all when the volume is
 * being closed. Returns when to look again; *more: there was too much for a round. */
uint64_t rbx_upkeep_waits_tick(struct rbx_upkeep *upkeep, bool *more);
/* Gives the host back what it lent for a slab's lost pages. */
void rbx_upkeep_pages_free(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Slabs that lack a replica, being rebuilt or not. */
static inline uint32_t rbx_upkeep_lacking(const struct rbx_attention *attention)
{
	return rbx_attention_count(attention, RBX_SLAB_LACKING) +
	       rbx_attention_count(attention, RBX_SLAB_REBUILDING);
}

/* ---- loans.c ----------------------------------------------------------------------*/

/* Reserves a slot of a slab and asks a server for it. */
struct rbx_asked *rbx_loans_ask(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				uint32_t server);
/* Takes the answers that have come. Returns whether there was one. */
bool rbx_loans_take(struct rbx_upkeep *upkeep);
/* Borrows all replicas of all slabs; 0, or the reason. Blocks. */
int rbx_loans_borrow_all(struct rbx_upkeep *upkeep);
/* Before the slabs are abandoned: no slab waits for an answer any more. */
void rbx_loans_withdraw(struct rbx_upkeep *upkeep);
/* Does RBX_TASK_GIVE_BACK. */
void rbx_loans_give_back(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Tells servers what is owed to them, as many as a round does. */
void rbx_loans_pay_owed(struct rbx_upkeep *upkeep);
/* Asks about a replica that should leave, which its server may have revoked. */
void rbx_loans_check_leaving(struct rbx_upkeep *upkeep, struct rbx_slab *slab);

#endif
