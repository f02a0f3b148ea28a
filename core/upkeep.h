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
 * only after it has refused, or if it certainly has not labelled anything. If that is unknown, what
 * was lent is owed, and the slab is lent anew when its servers have taken it back or are out; with
 * one replica, where no record says so, it is dead. A dead slab is not lent anew. What
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

struct rbx_upkeep; /* upkeep_state.h */

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
	/* Gives memory of this machine, or NULL; takes it back. May block. Also called by the
	 * thread that says that a server is silent. */
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

void rbx_upkeep_init(struct rbx_upkeep *upkeep, struct rbx_flow *flow,
		     const struct rbx_upkeep_ops *ops, uint64_t timeout_ns);

/* T, the peer timeout. Any thread, at any time. */
uint64_t rbx_upkeep_timeout_ns(const struct rbx_upkeep *upkeep);
void rbx_upkeep_set_timeout_ns(struct rbx_upkeep *upkeep, uint64_t timeout_ns);

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
 * rbx_upkeep_server_place() gave. It is the one of another place, and its replicas are about to be
 * found here. Until rbx_upkeep_server_added() nothing is borrowed from it: a slab that it still has
 * at the other place would have two replicas there. */
void rbx_upkeep_server_comes(struct rbx_upkeep *upkeep, uint32_t server);
/* The server was connected, in a volume that is open, for a place that
 * rbx_upkeep_server_place() gave. */
void rbx_upkeep_server_added(struct rbx_upkeep *upkeep, uint32_t server);
/* A server is dead. Any thread; a round does the rest. */
void rbx_upkeep_server_down(struct rbx_upkeep *upkeep, uint32_t server);
/* It is silent, and is about to be done without for a while (slab_away.h); or it is back, with
 * all that it has lent us. Any thread; rounds do the rest. The first may lend memory. */
void rbx_upkeep_server_silent(struct rbx_upkeep *upkeep, uint32_t server);
void rbx_upkeep_server_back(struct rbx_upkeep *upkeep, uint32_t server);
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

/* It is dead, and never asked again. Any thread. */
bool rbx_upkeep_server_is_down(const struct rbx_upkeep *upkeep, uint32_t server);
/* Whether it was asked for something and has not answered. Of the thread that makes rounds. */
bool rbx_upkeep_server_is_busy(const struct rbx_upkeep *upkeep, uint32_t server);

/* Which server has this place; 0: none was connected. Set anew if a server has failed at one place
 * and is there again at another one. The thread that adds servers sets it; others look only at
 * places that are in use. */
uint64_t rbx_upkeep_server_incarnation(const struct rbx_upkeep *upkeep, uint32_t server);
void rbx_upkeep_server_set_incarnation(struct rbx_upkeep *upkeep, uint32_t server,
				       uint64_t incarnation);
/* How many replicas it has, or is asked for. Any thread, but for people alone. */
uint32_t rbx_upkeep_server_replicas(const struct rbx_upkeep *upkeep, uint32_t server);

/* Guards the map's table of servers and that of the host: a place gets another server under it.
 * Taken after a slab's lock. */
struct rbx_lock *rbx_upkeep_servers_lock(struct rbx_upkeep *upkeep);

/* ---- Open, rounds, close -----------------------------------------------------*/

/* While a named volume is opened: this server has this slab, complete. 0; -EINVAL: there is no
 * such slab, or no such loan; -EEXIST: this server has it, or its memory was had already, or
 * another one has the one replica, or a second one has it beyond those that should; -ENOSPC: enough
 * others have it, so this one is given back. */
int rbx_upkeep_adopt(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
		     const struct rbx_loan *loan);

/* The same of a reserved volume that is open, for a slab beyond its end that was just added. By the
 * thread that makes rounds. First it is asked of all of them whether they can be: 0; -EINVAL,
 * -EEXIST: as adopt(), no matter of which slab. */
int rbx_upkeep_may_adopt(struct rbx_upkeep *upkeep, uint32_t server, const struct rbx_loan *loan);
int rbx_upkeep_adopt_reserved(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
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

/* Whether each slab has all its replicas, complete, or was never written, or no server has it
 * (lost_slabs.h). Of the thread that makes rounds. */
bool rbx_upkeep_is_whole(const struct rbx_upkeep *upkeep);

/* Of a volume that is being opened: the fewest replicas that any slab has which a server has; or
 * as many as there are to be. */
uint32_t rbx_upkeep_fewest_copies(const struct rbx_upkeep *upkeep);

/* First writes wait because servers have lent fewer replicas than copies_least: how many at
 * least; 0: none waits. Of the thread that makes rounds. */
uint32_t rbx_upkeep_short_of_copies(struct rbx_upkeep *upkeep);

/* Of a named volume with replicas: a first write needs so many, because the record says that each
 * slab has them which was written; 0 at first. Of the thread that makes rounds, or before. */
uint32_t rbx_upkeep_copies_least(const struct rbx_upkeep *upkeep);
void rbx_upkeep_set_copies_least(struct rbx_upkeep *upkeep, uint32_t copies);

/* Borrows all replicas of all slabs, unless they are borrowed on demand. Returns 0, or why a
 * server lends no more. Blocks. */
int rbx_upkeep_borrow_all(struct rbx_upkeep *upkeep);

/* Whether the whole volume would fit, by what the servers report as free now. */
bool rbx_upkeep_fits(struct rbx_upkeep *upkeep);

/* What opens the volume is over, and has waited for copies. From now on they keep to this rate
 * (copy_pace.h), and replicas may move. */
void rbx_upkeep_opened(struct rbx_upkeep *upkeep, uint64_t copy_rate_bytes);

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

/* How the slabs and servers of a volume are just now. */
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
	uint64_t moved; /* replicas that have begun to move to servers with more memory free */
	uint32_t servers;
	uint32_t servers_up;
};

/* Any thread. */
void rbx_upkeep_census(struct rbx_upkeep *upkeep, struct rbx_census *census);
/* A server went down, and no round has handled that: more may be lacking than is counted. */
bool rbx_upkeep_any_went_down(const struct rbx_upkeep *upkeep);
/* Slabs need a replica, and no server would take one. */
bool rbx_upkeep_is_stuck(const struct rbx_upkeep *upkeep);

/* Slabs that lack a replica, whether it is being rebuilt or not. */
static inline uint32_t rbx_upkeep_lacking(const struct rbx_attention *attention)
{
	return rbx_attention_count(attention, RBX_SLAB_LACKING) +
	       rbx_attention_count(attention, RBX_SLAB_REBUILDING);
}

#endif
