/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep.h - maintains the replicas of a volume: borrows, replaces, gives back.
 *
 * Requests only note a loss and wake the upkeep thread, a thread of the host. It makes
 * rounds, and there it does what may block: it borrows memory from another server, and gives
 * memory back. A round takes the slabs that need something in the order of their need
 * (attention.h) and does what rbx_slab_task() says. It is short: after some requests to
 * servers the next one begins, with what is most urgent by then. So a first write never waits
 * for a whole rebuild, and the cost of a round does not depend on the size of the volume.
 *
 * One slab is copied at a time. Memory is borrowed in advance for only a few others. So
 * memory that would not be used yet stays free for others, and a slab that becomes more
 * urgent meanwhile finds some.
 *
 *	rbx_upkeep_init, servers are connected, rbx_flow_open
 *	rbx_upkeep_borrow_all      a volume that is open has its memory, or has
 *	                           each slab's with its first write
 *	rbx_upkeep_round           by the upkeep thread, whenever it is woken
 *	...the last request has ended, the upkeep thread is stopped:
 *	rbx_upkeep_abandon, the copies of a rebuild run out, rbx_upkeep_end
 *
 * A slab whose last replica is lost stays without memory until it is written to. Then it is
 * placed anew like a first write's, and what it does not write stays lost (lost_pages.h).
 * Such a write does not wait for a silent server: a program that has another copy, such as a
 * backup, would wait in vain.
 *
 * If no server can take a replica, the round returns that it wants to be made again in
 * RBX_UPKEEP_RETRY_MS. It also does that while a first write waits for a silent server, until
 * that one is back or down. It reports the reason of that round, but not a reason that passes
 * by itself: a server that revoked a replica is not asked for another before the last parts
 * of the lost one have ended. When a server lends again, the other slabs that wait are tried
 * at once. A replica that should leave is then checked with its server: if it was revoked, it
 * is lost. A loan that cannot be given back because its server cannot be reached is owed, and
 * tried again as well.
 *
 * Named volumes (docs/named-volumes.md). Their servers keep the slabs when the client goes, each
 * with a label that says which slab it is. So no slab may be had from two servers unless both have
 * the same contents. A server that was asked for a slab is waited for, and another one is asked
 * only after it has refused, or if it certainly has not labelled anything. If that is unknown
 * and the server is dead, the slab is dead as well. A dead slab is not lent anew. What
 * leaves a server of a volume with replicas loses its label first (slab_leaving.c). With one
 * replica nothing leaves.
 *
 * A server that was lost and comes back is added anew. The place of a lost server in the
 * table can be used again when nothing refers to it any more: its replicas are lost or
 * replaced, nothing is under way to it, and nothing is owed. So a volume may see any number
 * of servers come and go; RBX_SERVERS_MAX bounds those that it has at a time.
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

/* What the host does for upkeep: called by the thread that calls the upkeep, with no lock
 * held. A function may block only if its comment says so. */
struct rbx_upkeep_ops {
	/* Sends a request to a server, and does not wait: MAP, UNMAP, CHECK, LABEL or UNLABEL.
	 * loan: but for MAP. label: for a MAP of a named volume, 1 + the index of the slab; else
	 * 0. Nothing else is asked of this server before answer() has said that this is over. */
	void (*ask)(struct rbx_upkeep *upkeep, uint32_t server,
		    enum rbx_call_kind kind, const struct rbx_loan *loan, uint64_t label);
	/*
	 * -EAGAIN: it is not over. As soon as it is, the host wakes the upkeep thread, unless
	 * it was over at once. Else this is the answer: 0; -ENOTCONN, -ETIMEDOUT: the server
	 * has not received it, or has not answered, and may be back. MAP: why it lends none
	 * (-ETIMEDOUT: none yet); or the loan. UNMAP: another error: the loan has
	 * ended. CHECK, LABEL, UNLABEL: -ESTALE, -EPERM: it was revoked. Does not wait.
	 */
	int (*answer)(struct rbx_upkeep *upkeep, uint32_t server,
		      struct rbx_loan *loan);
	/* The last result of answer() may later be reported as why a rebuild is stuck. The
	 * host keeps its text, because other errors will have replaced it by then. */
	void (*refused)(struct rbx_upkeep *upkeep);
	/* While a volume is opened: waits until something that was asked may be over. -EINTR:
	 * the caller of open does not want to wait any longer. Blocks. */
	int (*wait)(struct rbx_upkeep *upkeep);
	/* Gives memory of this machine, or NULL; takes it back. May block. */
	void *(*memory_lend)(struct rbx_upkeep *upkeep, size_t size);
	void (*memory_take_back)(struct rbx_upkeep *upkeep, void *memory);
	/* As the server last reported. */
	uint64_t (*free_bytes)(struct rbx_upkeep *upkeep, uint32_t server);
	/* server: of SERVER_DOWN. err: of REBUILD_STUCK, why the last server that was asked
	 * took none; -ENODEV: there is none to ask. */
	void (*tell)(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err);
	/* A task of a slab is about to be done: for traces. May be NULL. */
	void (*tending)(struct rbx_upkeep *upkeep, const struct rbx_slab *slab,
			enum rbx_slab_task task);
};

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
	/* servers that were asked and could not be reached: they may be back */
	struct rbx_server_set away;
	struct rbx_server_set not_servers; /* asked already, or have a replica */
	int err; /* why one of them did not lend */
	/* of a named volume: too few servers have lent for a first write, and it waits for a
	 * record that allows so few */
	bool is_short;
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

struct rbx_upkeep {
	struct rbx_flow *flow;
	const struct rbx_upkeep_ops *ops;
	uint64_t timeout_ns; /* T, the peer timeout; atomic: it may be changed at any time */
	bool is_closing; /* atomic */
	struct rbx_upkeep_server servers[RBX_SERVERS_MAX];
	/* guards the map's table of servers, and that of the host; taken after a slab's lock */
	struct rbx_lock servers_lock;
	struct rbx_server_set leaving; /* servers that are to have nothing; under servers_lock */
	bool any_went_down; /* atomic */
	bool is_stuck; /* atomic: slabs need a replica, and no server would take one */

	/* All below is used only by the thread that makes rounds. */
	struct rbx_lost lost;
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
	/* What was reported, so that each news is told once. */
	uint32_t rebuilt_count; /* replicas since all were live */
	uint32_t dead_count; /* slabs */
	uint32_t gone_count; /* dead servers whose place is not free yet */
	/* Of this round. */
	/* parked slabs are tried again, and servers asked about loans they want back */
	bool may_retry;
	int stuck_err; /* of the last slab of which no server took a replica; 0: none */
	uint32_t borrows_count; /* slabs for which servers were asked */
	uint32_t lent_count; /* those of them for which one lent */
	uint32_t returns_count; /* loans to give back */
	uint32_t pays_count; /* loans of which servers were told */
	bool lacks_servers; /* the servers to be asked next have not answered yet */
	bool lacks_records; /* slabs wait for a record (slab_record.h) */
};

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops, uint64_t timeout_ns);

/* ---- Servers --------------------------------------------------------------*/

/* Finds a place in the table for one more server, of a volume that is open: one that is free
 * again, so the host frees what it had there, or the next one. -ENOSPC. One thread at a time,
 * until the server is added or has failed. */
int rbx_upkeep_server_place(struct rbx_upkeep *upkeep, uint32_t *server);
/* A server is about to be connected for this place. */
void rbx_upkeep_server_begins(struct rbx_upkeep *upkeep, uint32_t server);
/* The failure domain of the server that was connected for this place (server_labels.h). */
void rbx_upkeep_server_domain(struct rbx_upkeep *upkeep, uint32_t server,
			      uint64_t domain);
/* The server was not connected, or is of no use. */
void rbx_upkeep_server_failed(struct rbx_upkeep *upkeep, uint32_t server);
/*
 * The server is connected, and has this incarnation. -EEXIST: the volume has the same server
 * already, under another address: two replicas on it would be lost together. other: which
 * one. The caller connects one server at a time.
 */
int rbx_upkeep_server_connected(struct rbx_upkeep *upkeep, uint32_t server,
				uint64_t incarnation, uint32_t *other);
/* The server was connected, in a volume that is open, for a place that
 * rbx_upkeep_server_place() gave. */
void rbx_upkeep_server_added(struct rbx_upkeep *upkeep, uint32_t server);
/* A server is dead. Any thread; a round does the rest. */
void rbx_upkeep_server_down(struct rbx_upkeep *upkeep, uint32_t server);
/* A server wants a loan back. Any thread; one step of the slab that has the loan. */
void rbx_upkeep_evict(struct rbx_upkeep *upkeep, uint32_t server,
		      const struct rbx_eviction *eviction);

/* Nothing is borrowed there any more, until the place has another server, and what is there moves
 * to other servers. Returns how many slabs still have something there; what such a call finds in a
 * state in which it cannot leave, a later one takes along. Any thread; looks at all slabs. */
uint32_t rbx_upkeep_server_leave(struct rbx_upkeep *upkeep, uint32_t server);
bool rbx_upkeep_server_leaves(struct rbx_upkeep *upkeep, uint32_t server);
/* Whether it has nothing, has been given back all, and is asked for nothing. Of the thread that
 * makes rounds. */
bool rbx_upkeep_server_is_empty(const struct rbx_upkeep *upkeep, uint32_t server);

static inline bool
rbx_upkeep_server_is_down(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return RBX_LOAD_ACQUIRE(&upkeep->servers[server].is_down);
}

/* ---- Open, rounds, close -----------------------------------------------------*/

/* While a named volume is opened: this server has this slab, complete. 0; -EINVAL: there is no
 * such slab, or no such loan; -EEXIST: this server has it, or its memory was had already, or
 * another one has the one replica, or a second one has it beyond those that should; -ENOSPC: enough
 * others have it, so this one is given back. */
int rbx_upkeep_adopt(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
		     const struct rbx_loan *loan);

/* And it has noted these words for that slab (extents.h). */
void rbx_upkeep_found_intent(struct rbx_upkeep *upkeep, uint64_t label, uint64_t word,
			     uint64_t behind);
/* A server that was OUT is there again, and the record says that it is IN. It had this slab
 * complete, and does not call it so any more: what it may lack is copied there. 0; or it is of no
 * use there, and is to be given back: -EINVAL: there is no such slab, or no such loan; -EEXIST:
 * enough servers have it, or this one; -ENODATA: none has it to copy it from. As adopt(), or by
 * the thread that makes rounds. */
int rbx_upkeep_returned(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
			const struct rbx_loan *loan);

/* The same, of a volume that was not closed: writes were under way, and may have reached some
 * replicas only. In the extents that servers have noted (extents.h), all are to be made like one of
 * them. */
void rbx_upkeep_even_out(struct rbx_upkeep *upkeep);
/* Before the volume is used, while rounds are made: 0: all replicas are equal; -EAGAIN: not yet;
 * -EIO: they cannot be made so. next: 0 at first; up to which slab they are. */
int rbx_upkeep_evened_out(struct rbx_upkeep *upkeep, uint32_t *next);

/* Whether each slab has all its replicas, complete, or was never written. Of the thread that
 * makes rounds. */
bool rbx_upkeep_is_whole(const struct rbx_upkeep *upkeep);

/* Of a volume that is being opened: the fewest replicas that any slab has which a server has; or
 * as many as there are to be. */
uint32_t rbx_upkeep_fewest_copies(const struct rbx_upkeep *upkeep);

/* First writes wait because servers have lent fewer replicas than copies_least: how many at
 * least; 0: none waits. Of the thread that makes rounds. */
uint32_t rbx_upkeep_short_of_copies(struct rbx_upkeep *upkeep);

/* Borrows all replicas of all slabs, unless they are borrowed on demand. Returns 0, or why a
 * server lends no more. Blocks. */
int rbx_upkeep_borrow_all(struct rbx_upkeep *upkeep);

/* Whether the whole volume would fit, by what the servers report as free now. */
bool rbx_upkeep_fits(struct rbx_upkeep *upkeep);

/* Returns when another round is to be made even if nothing wakes the upkeep thread;
 * UINT64_MAX: never. It waits for no server. */
uint64_t rbx_upkeep_round(struct rbx_upkeep *upkeep, uint64_t now_ns);

/* The volume is being closed: nothing more is rebuilt from here on. Writes that wait for
 * memory end with -ECANCELED, unless a server that was asked lends soon. Any thread. */
void rbx_upkeep_closes(struct rbx_upkeep *upkeep);

/* Nothing new is sent from here on; a rebuild may still be under way. */
void rbx_upkeep_abandon(struct rbx_upkeep *upkeep);
/* Nothing is under way, and the host says BYE to the servers, which ends all loans
 * (wire/PROTOCOL.md). Gives back memory of this machine. */
void rbx_upkeep_end(struct rbx_upkeep *upkeep);

/* ---- Status ---------------------------------------------------------------*/

struct rbx_census {
	uint32_t slabs;
	uint32_t blank; /* never written, or discarded: nothing is lent */
	uint32_t whole; /* with all replicas */
	uint32_t lacking; /* including those being rebuilt */
	uint32_t rebuilding;
	uint32_t dead; /* without a live replica */
	uint32_t last; /* that only one server has: one death from loss */
	uint32_t holes; /* that were lost, and not completely written since */
	uint32_t together; /* whole, but two replicas are in one failure domain */
	uint32_t servers;
	uint32_t servers_up;
};

/* Any thread. */
void rbx_upkeep_census(struct rbx_upkeep *upkeep, struct rbx_census *census);

/* ---- upkeep_servers.c, for upkeep.c ------------------------------------------*/

/* Places of the table that are or were in use. */
uint32_t rbx_upkeep_servers_count(struct rbx_upkeep *upkeep);
/* Handles the replicas of servers that went down. Returns whether there is more to do, in the
 * next round. */
bool rbx_upkeep_servers_tend(struct rbx_upkeep *upkeep);
/* At the end of a round, so nothing is owed to dead servers any more. */
void rbx_upkeep_places_free(struct rbx_upkeep *upkeep);

/* ---- asks.c, for loans.c -----------------------------------------------------------*/

/* Sends a request to a server that is not busy. Returns the entry, until it is over. */
struct rbx_asked *rbx_asks_send(struct rbx_upkeep *upkeep, uint32_t server,
				enum rbx_call_kind kind,
				const struct rbx_loan *loan, uint64_t label);
/* The server could not be asked: it is asked for the same again in a while. */
void rbx_asks_again(struct rbx_upkeep *upkeep, const struct rbx_asked *asked);
/* Takes an entry that is over off the table. Returns its answer as ops->answer(); -EAGAIN:
 * none is over. *index: where to go on looking. */
int rbx_asks_take(struct rbx_upkeep *upkeep, uint32_t *index,
		  struct rbx_asked *asked, struct rbx_loan *loan);
/* A server to borrow from, not of not_servers, chosen by what it and another one report as
 * free now, whether or not it is busy; or -ENOSPC. */
int rbx_asks_draw(struct rbx_upkeep *upkeep,
		  const struct rbx_server_set *not_servers);
/* Adds the servers that are up and would be lost together with one of the holders, which have
 * replicas of a slab that stay. Returns whether servers have failure domains at all. */
bool rbx_asks_join_domains(struct rbx_upkeep *upkeep, const struct rbx_server_set *holders,
			   struct rbx_server_set *servers);
/* A server that can be asked now, not of not_servers; if possible, one that is not lost together
 * with a holder. -EAGAIN: one that could be asked is busy; -ETIMEDOUT: it has been busy for
 * long; -ENOSPC: there is none. is_patient: rather waits for such a late one. */
int rbx_asks_place(struct rbx_upkeep *upkeep, const struct rbx_server_set *not_servers,
		   const struct rbx_server_set *holders, bool is_patient);
/* The same, but only of those that answer in time and have not refused. */
int rbx_asks_place_well(struct rbx_upkeep *upkeep,
			const struct rbx_server_set *not_servers);
/* Adds the servers that have refused to lend in the time that a first write waits. */
void rbx_asks_join_refused(const struct rbx_upkeep *upkeep,
			   struct rbx_server_set *servers);
/* Whether there is room to ask for all that a slab needs. */
static inline bool rbx_asks_room(const struct rbx_upkeep *upkeep)
{
	return upkeep->asked_count + RBX_REPLICAS_MAX <= RBX_ASKS_MAX;
}
/* The server is asked only after others until then. */
void rbx_asks_avoid(struct rbx_upkeep *upkeep, uint32_t server, uint64_t until_ns);
/* The server is dead: its refusals do not count for the server that gets its place. */
void rbx_asks_forget(struct rbx_upkeep *upkeep, uint32_t server);
/* Checks the time: which requests are late, and which servers need not be avoided any more.
 * Returns when to check again. */
uint64_t rbx_asks_tick(struct rbx_upkeep *upkeep);

/* ---- borrow.c ------------------------------------------------------------------*/

/* Asks servers for so many replicas of a slab. Returns 0; or why no server was asked, as
 * rbx_asks_place(). When nothing is out for it any more: rbx_upkeep_borrowed(). */
int rbx_borrow_begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_replica_state state, uint32_t wanted_count,
		     enum rbx_attention_list list);
/* A server has not lent. */
void rbx_borrow_refused(struct rbx_borrowing *borrowing, int err);
/* Asks other servers for what was refused. Returns whether nothing is out for it any more. */
bool rbx_borrow_go_on(struct rbx_upkeep *upkeep,
		      struct rbx_borrowing *borrowing);
/* Nothing is out for it and no server has lent. Returns whether it has to wait for a busy
 * server before any is asked again. */
bool rbx_borrow_waits(struct rbx_upkeep *upkeep,
		      const struct rbx_borrowing *borrowing);
/* How long first writes wait for a server that is there and does not lend. Shorter if the
 * volume is being closed: until the request is late. */
static inline uint64_t rbx_upkeep_lend_ns(const struct rbx_upkeep *upkeep)
{
	return RBX_LOAD_RELAXED(&upkeep->is_closing) ?
		       RBX_LOAD_RELAXED(&upkeep->timeout_ns) / 4 :
		       RBX_UPKEEP_LEND_TIMES * RBX_LOAD_RELAXED(&upkeep->timeout_ns);
}
/* Checks the time, after rbx_asks_tick(). */
void rbx_borrowings_tick(struct rbx_upkeep *upkeep);
/* When the first writes of a slab stop waiting. */
uint64_t rbx_borrowings_due_ns(const struct rbx_upkeep *upkeep);
void rbx_borrow_end(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing);
/* For how many slabs of this list servers are being asked. */
uint32_t rbx_borrowings_of(const struct rbx_upkeep *upkeep,
			   enum rbx_attention_list list);

/* ---- upkeep_slab.c -----------------------------------------------------------------*/

/* Does what is needed for a slab at the head of a list. Borrowed memory is copied to when its
 * turn comes. */
void rbx_upkeep_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_attention_list list);
/* Nothing is out for it any more. */
void rbx_upkeep_borrowed(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing);
/* Ends first writes that have waited too long, or all when the volume is being closed.
 * Returns when to check again; *more: there was too much for one round. */
uint64_t rbx_upkeep_waits_tick(struct rbx_upkeep *upkeep, bool *more);
/* Gives the host's memory for a slab's lost pages back. */
void rbx_upkeep_pages_free(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Slabs that lack a replica, whether it is being rebuilt or not. */
static inline uint32_t rbx_upkeep_lacking(const struct rbx_attention *attention)
{
	return rbx_attention_count(attention, RBX_SLAB_LACKING) +
	       rbx_attention_count(attention, RBX_SLAB_REBUILDING);
}

/* ---- loans.c ----------------------------------------------------------------------*/

/* Reserves a slot of a slab for what a server is to be asked for; or gives it up again. */
uint32_t rbx_loans_reserve(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server);
void rbx_loans_unreserve(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server,
			 uint32_t slot);
/* Asks a server for it. */
struct rbx_asked *rbx_loans_send(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				 uint32_t server, uint32_t slot);
/* Both. */
struct rbx_asked *rbx_loans_ask(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				uint32_t server);
/* A server has lent a slab, and labelled it if it has to; or err says why not. */
void rbx_loans_borrowed(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err,
			const struct rbx_loan *loan);
/* Takes the answers that have come. Returns whether there was one. */
bool rbx_loans_take(struct rbx_upkeep *upkeep);
/* Before the slabs are abandoned: no slab waits for an answer any more. */
void rbx_loans_withdraw(struct rbx_upkeep *upkeep);
/* Does RBX_TASK_GIVE_BACK. For a named volume usually nothing is owed: its memory is the
 * volume's. */
void rbx_loans_give_back(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Tells servers about the loans owed to them, as many as a round may. */
void rbx_loans_pay_owed(struct rbx_upkeep *upkeep);
/* Asks about a replica that is LEAVING, which its server may have revoked. */
void rbx_loans_check_leaving(struct rbx_upkeep *upkeep, struct rbx_slab *slab);

/* ---- loans_open.c ------------------------------------------------------------------*/

/* Borrows all replicas of all slabs; 0, or the reason. Blocks. */
int rbx_loans_borrow_all(struct rbx_upkeep *upkeep);

#endif
