/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender.h - decides for a memory server which client has which slab, and until when.
 *
 * A server lends slabs to clients. A slab goes round
 *
 *	FREE -> lend() -> PREPARING -> prepared() -> LENT -> unmap() --> ENDING -> FREE
 *	                      |                       | leave(), lease      ^
 *	                      |                       | expired, unknown    |
 *	                      |                       | at resumed()        |
 *	                      |                       +-> ASKED (wanted) ---+
 *	                      |             withdraw() <--+ unmap(), or its |
 *	                      |             (LENT)          grace is over   |
 *	                      +-> unprepared(), leave(), resumed(), drain() +
 *
 * In PREPARING the host makes the slab's memory. In ENDING it ends the access (keys first,
 * then memory) and reports that with ended(); only then can the slab be lent again. Both take
 * time, and the lender goes on meanwhile. A slab that is being prepared counts for its
 * owner's quota, but the client does not know of it.
 *
 * From the moment that it is LENT, each loan has an epoch that is higher than all before. So
 * a message about a loan that the client lost cannot be taken for one about a newer loan.
 * Loans are sent in the order of their epochs, so one number says which of them a client
 * knows.
 *
 * A client is admitted, is heard from time to time, and leaves. A client that was not heard
 * for the lease term is expired: the host ends its queue pairs, then calls leave(). Only
 * next() judges the term, so a server that was itself stopped reads what has arrived before
 * it expires a client.
 *
 * An owner is who borrows: all sessions of one credential. The host numbers the owners and
 * says of each session whose it is. The quota is for an owner: it counts the slabs of all its
 * sessions, also of those that have left as long as their slabs are ENDING. So a client that
 * leaves and comes back, again and again, has no more than one that stays.
 *
 * A named volume is lent slabs as a client is, but has no lease and is not expired. Clients
 * come and go, one writer at a time, and the slabs stay. They are asked for only while a
 * writer is there, who can move the data, and are never revoked.
 *
 * The host reports events and then calls next() until it returns false. One thread at a time.
 * Memory is the host's, one block of rbx_lender_size().
 *
 * Not here, but in the host: what a slab is made of, connections, proofs.
 */
#ifndef RBX_LENDER_H
#define RBX_LENDER_H

#include "core/limits.h"
#include "core/port.h"
#include "wire/reason.h"

#define RBX_LENDER_NEVER_NS UINT64_MAX

struct rbx_lender;

struct rbx_lender_config {
	uint32_t slabs_count; /* of the table, 1 to RBX_LENT_SLABS_MAX */
	uint32_t lend_max; /* slabs to lend in all, 1 to slabs_count */
	uint32_t owners_max; /* 1 to RBX_OWNERS_MAX; numbered from 0 */
	uint32_t clients_max; /* at a time, 1 to RBX_CLIENTS_MAX */
	uint32_t volumes_max; /* named ones, at most RBX_KEPT_VOLUMES_MAX */
	uint64_t lease_ns;
};

size_t rbx_lender_size(const struct rbx_lender_config *config);

/* Makes a lender in memory that the caller keeps as long as it is used. */
struct rbx_lender *rbx_lender_init(void *memory,
				   const struct rbx_lender_config *config);

/* ---- Clients. Functions that can refuse return enum rbx_reason. ----------*/

/* session_id: not 0 and not in use. TOO_MANY. */
uint32_t rbx_lender_admit(struct rbx_lender *lender, uint64_t session_id,
			  uint32_t owner, uint64_t now_ns);

/* The client has sent something. STALE_SESSION. */
uint32_t rbx_lender_heard(struct rbx_lender *lender, uint64_t session_id,
			  uint64_t now_ns);

/*
 * The client is back. What it was lent after last_epoch begins to end: the answer was lost
 * with a connection, so the client does not know of the loan and would never give it back.
 * STALE_SESSION.
 */
uint32_t rbx_lender_resumed(struct rbx_lender *lender, uint64_t session_id,
			    uint64_t now_ns, uint64_t last_epoch);

/* The client is dead, with no queue pair left; its slabs begin to end. */
void rbx_lender_leave(struct rbx_lender *lender, uint64_t session_id);

struct rbx_lender_loan {
	uint64_t slab_id; /* 1 to slabs_count */
	uint64_t epoch; /* not 0 */
};

/* ---- Named volumes --------------------------------------------------------*/

/* From here on slabs may be lent to the volume under this id, in place of a session's: not 0
 * and not in use. It leaves like a client. TOO_MANY_VOLUMES. */
uint32_t rbx_lender_keep(struct rbx_lender *lender, uint64_t volume_id, uint32_t owner);

/* The volume has a new writer, and the one before can do nothing any more: what was being
 * prepared for that one begins to end. All that the volume was lent before stays, whatever the
 * new writer knows of it. */
void rbx_lender_opened(struct rbx_lender *lender, uint64_t volume_id);

/* Its writer is back, and knows of its loans up to last_epoch; what it was lent later begins
 * to end, as in rbx_lender_resumed(). */
void rbx_lender_writer_resumed(struct rbx_lender *lender, uint64_t volume_id,
			       uint64_t last_epoch);

/* Its writer has gone, as if it were followed by nobody. */
void rbx_lender_closed(struct rbx_lender *lender, uint64_t volume_id);

/* The slab of the volume with the next higher id; 0: with the lowest. False: there is none. */
bool rbx_lender_next_of(const struct rbx_lender *lender, uint64_t volume_id,
			uint64_t after_slab_id, struct rbx_lender_loan *loan);

/*
 * For a host that starts with what a former one has lent to volumes: before anything else is
 * lent, once for each loan, in the order of their epochs. Then restored(), after which loans have
 * epochs above last_epoch.
 */
void rbx_lender_restore(struct rbx_lender *lender, uint64_t volume_id,
			const struct rbx_lender_loan *loan);
void rbx_lender_restored(struct rbx_lender *lender, uint64_t last_epoch);

/* ---- Slabs -----------------------------------------------------------------*/

/* No reasons to refuse: a slab is ENDING, and what it takes is needed. LATER: nothing is free
 * now. QUOTA_LATER: its owner has its quota only with such slabs; others may be lent to. */
#define RBX_LENDER_LATER UINT32_MAX
#define RBX_LENDER_QUOTA_LATER (UINT32_MAX - 1)

/*
 * Takes a slab for the client, which the host has to prepare; it has no epoch yet.
 * STALE_SESSION, DRAINING, QUOTA, FULL; RBX_LENDER_LATER, RBX_LENDER_QUOTA_LATER: ask again
 * after the next ended().
 */
uint32_t rbx_lender_lend(struct rbx_lender *lender, uint64_t session_id,
			 struct rbx_lender_loan *loan);

/*
 * The slab that lend() named is ready: it is lent to the client from now on, and loan gets
 * its epoch. False: its client is gone or nothing is lent any more; the slab is ending.
 */
bool rbx_lender_prepared(struct rbx_lender *lender,
			 struct rbx_lender_loan *loan);

/* The slab cannot be prepared, or its client cannot be told: it begins to end, unless it does
 * so already. */
void rbx_lender_unprepared(struct rbx_lender *lender, uint64_t slab_id);

/* Is the slab lent to this client in this epoch? STALE_SESSION, NOT_YOURS,
 * STALE_EPOCH. */
uint32_t rbx_lender_check(const struct rbx_lender *lender, uint64_t session_id,
			  const struct rbx_lender_loan *loan);

/* The client gives the slab back. Refuses like check(). */
uint32_t rbx_lender_unmap(struct rbx_lender *lender, uint64_t session_id,
			  const struct rbx_lender_loan *loan);

/* The slab's memory cannot be reached any more, and has been given back. */
void rbx_lender_ended(struct rbx_lender *lender, uint64_t slab_id);

/* ---- Getting memory back -----------------------------------------------*/

/* A new limit, as in the config. The host asks for what is lent above it by shrink(). A
 * higher one withdraws. */
void rbx_lender_set_lend_max(struct rbx_lender *lender, uint32_t lend_max);

/* The most slabs of an owner in all; 0: all there are, as at first. It keeps what it has above
 * a new quota. */
void rbx_lender_set_quota(struct rbx_lender *lender, uint32_t owner,
			  uint32_t quota_count);

/* Slabs that could be lent now, or when those that are ending have ended. */
uint32_t rbx_lender_room(const struct rbx_lender *lender);

/* Stops asking for slabs without a deadline that are not above lend_max any more. Their
 * clients are not told: one that has begun to move its data gives the slab back. */
void rbx_lender_withdraw(struct rbx_lender *lender);

/* Slabs that clients have, or will have when they are ready, above lend_max. */
uint32_t rbx_lender_surplus(const struct rbx_lender *lender);

/* While true nothing is lent: the host itself is short of memory. */
void rbx_lender_set_short(struct rbx_lender *lender, bool host_is_short);

/*
 * Asks for count slabs and revokes them after grace_ns: each time the oldest loan of the
 * client that has the most. With RBX_LENDER_NEVER_NS there is no deadline, and nothing is
 * revoked. A call with a deadline first sets it for slabs that were asked for without one.
 * Returns how many were found.
 */
uint32_t rbx_lender_shrink(struct rbx_lender *lender, uint32_t count,
			   uint64_t now_ns, uint64_t grace_ns);

/* Lends nothing more and asks for all slabs, without a time limit. What is being prepared
 * begins to end. */
void rbx_lender_drain(struct rbx_lender *lender, uint64_t now_ns);

/* ---- What the host has to do now -----------------------------------------*/

enum rbx_lender_action_kind {
	RBX_LENDER_EXPIRE, /* end the client's queue pairs, call leave() */
	RBX_LENDER_END, /* end access to the slab, then call ended() */
	RBX_LENDER_ASK, /* ask the client to give the slab back */
};

struct rbx_lender_action {
	enum rbx_lender_action_kind kind;
	uint64_t session_id; /* EXPIRE, ASK */
	struct rbx_lender_loan loan; /* END, ASK */
	uint64_t until_ns; /* ASK: it is revoked then; or never */
};

/* True: do this and call again. False: nothing to do now. */
bool rbx_lender_next(struct rbx_lender *lender, uint64_t now_ns,
		     struct rbx_lender_action *action);

/* The ASK that next() just returned could not be sent. It comes again at again_ns, and not
 * before the others had their turn. Meanwhile its client is asked for nothing. */
void rbx_lender_ask_again(struct rbx_lender *lender, uint64_t slab_id,
			  uint64_t again_ns);

/* When next() may have something without a new event: at the end of a lease, or now if a slab
 * is wanted back. */
uint64_t rbx_lender_deadline_ns(const struct rbx_lender *lender,
				uint64_t now_ns);

/* ---- Numbers --------------------------------------------------------------*/

struct rbx_lender_counts {
	uint32_t clients; /* now */
	uint32_t volumes; /* now, named ones */
	uint32_t slabs_lent; /* now, LENT and ASKED */
	uint32_t slabs_asked; /* now, ASKED */
	uint32_t slabs_due; /* now, ASKED with a deadline */
	uint32_t slabs_preparing; /* now */
	uint32_t slabs_ending; /* now */
	uint32_t slabs_free; /* now */
	uint64_t sessions;
	uint64_t slabs_mapped;
	uint64_t slabs_unmapped;
	uint64_t slabs_revoked;
	uint64_t leases_expired;
	uint64_t refused_full;
	uint64_t refused_quota;
};

void rbx_lender_counts(const struct rbx_lender *lender,
		       struct rbx_lender_counts *counts);

/* Slabs that this client has now, or will have when they are prepared. */
uint32_t rbx_lender_lent_to(const struct rbx_lender *lender,
			    uint64_t session_id);

/* The epoch of the last loan; 0: there was none. */
uint64_t rbx_lender_last_epoch(const struct rbx_lender *lender);
/* Whether the owner has no session, and no slab in any state: the host may use its number for
 * another one. */
bool rbx_lender_owner_is_idle(const struct rbx_lender *lender, uint32_t owner);

/* No slab_id above it was ever given out. */
uint32_t rbx_lender_slabs_used(const struct rbx_lender *lender);

bool rbx_lender_is_draining(const struct rbx_lender *lender);

#endif
