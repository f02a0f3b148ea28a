/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab.h - a slab of a volume and its replicas: who is read, who is written,
 * who is lost.
 *
 * The slab is the unit of placement, locking, epochs and rebuild. It is a state
 * machine without threads or connections: who calls (flow.h) takes the slab's
 * lock, makes one step, releases the lock, and does what the step put on its list:
 *
 *	rbx_slab_lock(slab); rbx_slab_start(slab, group, piece, &todo); rbx_slab_unlock(slab);
 *	for each piece of todo, in order:
 *		READING or WRITING: send the parts of its send_mask
 *		IDLE: it has ended with piece->status
 *	...when a part is done:
 *	lock; rbx_slab_done(slab, group, part, status, &todo); unlock; the same again
 *
 * Normally a read goes to one live replica, by stripes, so that neighbours go
 * to the same server and merge, and a write to all replicas once its granules
 * are free (cell.h). It ends when all have answered.
 *
 * Failure. A replica whose part fails is lost there and then, before the write
 * ends: what missed a write is never read again. A write has succeeded where a
 * live replica has it; a read goes on to another live replica. What is under way
 * when the last live replica is lost ends with -EIO: what was in the slab is gone.
 *
 * A slab that was lost is dead: reads end with -EIO at once. A write waits until the
 * slab has new memory, like the first one of a blank slab, and ends with -EIO if no
 * server will lend any. What it does not write stays lost (lost_pages.h): zeros
 * would be junk.
 *
 * A failure of this machine (status.h) says nothing about a replica and loses
 * none. The request ends with it; but nobody knows how much of such a write has
 * arrived at which replica, by this attempt or one before. So that they do not
 * diverge one of them is the truth from then on, and its cell is copied to the
 * others, which are not read meanwhile: see write_failed_here() in slab_way.c.
 *
 * With checksums a read whose data does not match takes its granules as a
 * write does, so that no write is under way, and reads again, then from each
 * other replica; only then it ends with -EIO. When one has it, what was read is
 * written to those that had not, before the granules are given back. A replica
 * whose data is bad stays live.
 *
 * Rebuild (slab_replica.c): a new replica gets every write from the step on
 * that makes it REBUILDING; then each cell is copied to it while the copy holds
 * the whole cell, which waits for the writes from before that step. It is read
 * only when all cells are there. A replica that may differ in some cells only is
 * REBUILDING too, until these are copied.
 *
 * A lost replica keeps its memory until nothing is under way to it; then the
 * host can give the memory back. So no late write reaches another's slab.
 *
 * On demand: a slab that was never written, or was discarded, is
 * blank. It is all zeros and has no memory: a read of it ends at once, a write
 * waits until memory is lent. Discarding loses all replicas of a slab.
 */
#ifndef RBX_SLAB_H
#define RBX_SLAB_H

#include "core/cell.h"
#include "core/limits.h"
#include "core/loan.h"
#include "core/lost_pages.h"
#include "core/piece.h"
#include "core/server_set.h"

enum rbx_replica_state {
	RBX_REPLICA_EMPTY, /* no memory: the slot can take a new replica */
	RBX_REPLICA_BORROWING, /* a server is being asked for memory */
	RBX_REPLICA_REBUILDING, /* takes every write; not all is there yet */
	RBX_REPLICA_LIVE, /* has all that was ever acknowledged */
	RBX_REPLICA_LEAVING, /* live, but its server wants the memory back */
	RBX_REPLICA_LOST, /* failed or replaced: takes nothing new */
};

/* Packed: a volume has millions of them. The words of the loan stay as they are while
 * it is in the index of loans, which is read without the slab's lock. */
struct rbx_replica {
	uint64_t page : RBX_LOAN_PAGE_BITS; /* of its loan's remote_addr */
	uint64_t server : RBX_LOAN_SERVER_BITS;
	uint64_t epoch : RBX_LOAN_EPOCH_BITS; /* of its loan */
	uint64_t slab_id : RBX_LOAN_ID_BITS; /* of its loan */
	uint32_t rkey; /* of its loan */
	uint32_t flight_count; /* parts not done */
};

RBX_STATIC_ASSERT(sizeof(struct rbx_replica) == 24, "three words");

static inline uint64_t rbx_replica_addr(const struct rbx_replica *replica)
{
	return (uint64_t)replica->page * RBX_PAGE_BYTES;
}

static inline struct rbx_loan
rbx_replica_loan(const struct rbx_replica *replica)
{
	return (struct rbx_loan){
		.slab_id = replica->slab_id,
		.epoch = replica->epoch,
		.remote_addr = rbx_replica_addr(replica),
		.rkey = replica->rkey,
	};
}

static inline void rbx_replica_set_loan(struct rbx_replica *replica,
					const struct rbx_loan *loan)
{
	RBX_ASSERT(rbx_loan_fits(loan));
	replica->page = loan->remote_addr / RBX_PAGE_BYTES;
	replica->epoch = loan->epoch;
	replica->slab_id = loan->slab_id;
	replica->rkey = loan->rkey;
}

/* Whether it has this loan of this server. */
static inline bool rbx_replica_is(const struct rbx_replica *replica,
				  uint32_t server, uint64_t slab_id,
				  uint64_t epoch)
{
	return replica->server == server && replica->slab_id == slab_id &&
	       replica->epoch == epoch;
}

/*
 * Slabs that share a lock: every so many-th of a volume, so that neighbours do not.
 * Nobody takes a second one while holding one. The cells of these slabs that somebody
 * is at are together in one table.
 */
struct rbx_slab_group {
	struct rbx_lock lock; /* guards all slabs of the group, and: */
	struct rbx_cells cells;
	struct rbx_lost_pages *lost[RBX_LOST_BUCKETS]; /* of slabs that have any */
};

/* What all slabs of a volume have in common. */
struct rbx_slab_shape {
	struct rbx_slab_group *groups; /* RBX_SLAB_LOCKS of them */
	char *slabs; /* a slab is as long as its slots make it: rbx_slab_at() */
	uint32_t *checksums; /* of each page; NULL: none (checksum.h) */
	uint32_t slab_shift; /* log2 of bytes */
	uint32_t cell_shift; /* log2 of bytes */
	uint32_t replicas; /* wanted */
	uint32_t slots; /* replicas + 1 */
	uint32_t slab_size; /* rbx_slab_size() of these */
	bool on_demand; /* slabs begin blank and may be discarded */
};

#define RBX_SLAB_CELL_BITS 20u

struct rbx_slab {
	const struct rbx_slab_shape *shape;
	/* Who makes a step holds the lock of its group, which guards all below. */
	uint32_t index; /* in the volume */
	uint16_t states; /* of the replicas: rbx_slab_state() */
	/* What follows from them, kept for speed. */
	uint8_t read_mask; /* LIVE or LEAVING */
	uint8_t write_mask; /* those, and REBUILDING */
	/* The slab wants the host to look at rbx_slab_task(). */
	bool attention;
	bool blank : 1; /* all zeros, and nothing is written to it */
	bool placing : 1; /* dead, and what is lent for it is not in use yet */
	bool has_holes : 1; /* it was lost: its lost pages say what is good */
	bool has_pages : 1; /* the host lent memory for lost pages */
	bool waits : 1; /* writes wait for memory: a blank or dead slab */
	bool has_checksums : 1; /* as all of the volume, or none */
	/* The rebuild under way, if any: of all replicas that are REBUILDING. */
	bool copy_failed : 1; /* so that what is REBUILDING is lost */
	uint16_t rebuild; /* which one it is */
	/* Slots that are REBUILDING and have all that was ever acknowledged: they
	 * differ at most in what failed writes left. Of use only where they are. */
	uint32_t stands_in_mask : 4;
	uint32_t copies_count : 4; /* copies under way */
	uint32_t copy_failures_count : 4; /* in a row, for a fault of this machine */
	uint32_t copy_next : RBX_SLAB_CELL_BITS; /* cell to copy next */
	uint64_t copy_end : RBX_SLAB_CELL_BITS; /* and the end of those */
	uint64_t again_next : RBX_SLAB_CELL_BITS; /* cells to be copied after these, */
	uint64_t again_end : RBX_SLAB_CELL_BITS; /* once more or for one that joined */
	struct rbx_replica replicas[]; /* one for each slot */
};

RBX_STATIC_ASSERT(RBX_SLAB_BYTES_MAX / RBX_FRAGMENT_BYTES_MIN <
			  1u << RBX_SLAB_CELL_BITS,
		  "the end of the cells, too");
RBX_STATIC_ASSERT(RBX_COPIES_MAX < 1u << 4 && RBX_SLOTS_MAX <= 4 &&
			  RBX_RETRIES_MAX + RBX_COPIES_MAX < 1u << 4,
		  "they fit");

static inline enum rbx_replica_state
rbx_slab_state(const struct rbx_slab *slab, uint32_t slot)
{
	return (enum rbx_replica_state)(slab->states >> 4 * slot & 0xf);
}

/* How many replicas may be read. */
static inline uint32_t rbx_slab_readable(const struct rbx_slab *slab)
{
	/* A digit for each mask of four bits. */
	return 0x4332322132212110u >> 4 * slab->read_mask & 0xf;
}

/* Bytes of a slab that has so many slots. */
static inline size_t rbx_slab_size(uint32_t slots)
{
	return sizeof(struct rbx_slab) + slots * sizeof(struct rbx_replica);
}

static inline struct rbx_slab *rbx_slab_at(const struct rbx_slab_shape *shape,
					   uint32_t index)
{
	return (struct rbx_slab *)(shape->slabs +
				   (size_t)index * shape->slab_size);
}

/* shape: shared, for the life of the slab. */
void rbx_slab_init(struct rbx_slab *slab, const struct rbx_slab_shape *shape,
		   uint32_t index);

/* Zeroed memory becomes a group. */
static inline void rbx_slab_group_init(struct rbx_slab_group *group)
{
	rbx_lock_init(&group->lock);
}

/* Of a volume with checksums. */
static inline uint32_t *rbx_slab_checksums(const struct rbx_slab *slab)
{
	const struct rbx_slab_shape *shape = slab->shape;

	return shape->checksums +
	       ((size_t)slab->index << shape->slab_shift) / RBX_PAGE_BYTES;
}

static inline struct rbx_slab_group *rbx_slab_group(const struct rbx_slab *slab)
{
	return &slab->shape->groups[slab->index % RBX_SLAB_LOCKS];
}

/* Where writes wait for memory: the queue of a cell that no slab has. */
static inline uint64_t rbx_slab_waiting_place(const struct rbx_slab *slab)
{
	return (uint64_t)slab->index << 32 | UINT32_MAX;
}

static inline void rbx_slab_lock(const struct rbx_slab *slab)
{
	rbx_lock(&rbx_slab_group(slab)->lock);
}

static inline void rbx_slab_unlock(const struct rbx_slab *slab)
{
	rbx_unlock(&rbx_slab_group(slab)->lock);
}

/* ---- Requests: slab_way.h -------------------------------------------------*/

/* Returns whether the slab wanted attention, which ends thereby. */
static inline bool rbx_slab_attention(struct rbx_slab *slab)
{
	bool attention = slab->attention;

	slab->attention = false;
	return attention;
}

/* ---- Replicas come and go -------------------------------------------------*/

/* What the host is to do for the slab, first things first. */
enum rbx_slab_task {
	RBX_TASK_NONE,
	RBX_TASK_GIVE_BACK, /* rbx_slab_give_back(), then tell the server */
	RBX_TASK_LEND, /* rbx_slab_place(), borrow LIVE ones, rbx_slab_begin() */
	RBX_TASK_FREE_PAGES, /* rbx_slab_take_pages() */
	RBX_TASK_COPY, /* start copies: rbx_slab_copy_next() */
	RBX_TASK_BORROW, /* borrow memory: rbx_slab_borrow() */
};

enum rbx_slab_task rbx_slab_task(const struct rbx_slab *slab);

/* Reserves a slot; the host then asks the server, without the lock. */
uint32_t rbx_slab_borrow(struct rbx_slab *slab, uint32_t server);
/* The server lent it. state: LIVE for a new slab, which is all zeros, else
 * REBUILDING. */
void rbx_slab_lent(struct rbx_slab *slab, uint32_t slot,
		   const struct rbx_loan *loan, enum rbx_replica_state state);
/* The server refused. */
void rbx_slab_refused(struct rbx_slab *slab, uint32_t slot);

/* Adds those that have or are asked for a replica, and so not for another; returns how
 * many. */
uint32_t rbx_slab_servers(const struct rbx_slab *slab,
			  struct rbx_server_set *servers);
/* Whether a server has or is asked for a replica; whether any is or has one. */
bool rbx_slab_has_server(const struct rbx_slab *slab, uint32_t server);
bool rbx_slab_has_memory(const struct rbx_slab *slab);

/* A server is gone. Returns whether it had a replica. */
bool rbx_slab_server_down(struct rbx_slab *slab, uint32_t server);

/* A server wants the memory of a loan back. Returns whether it is this slab's, and
 * leaves or is lost: one that stands in stays until it is asked for again. */
bool rbx_slab_evict(struct rbx_slab *slab, uint32_t server, uint64_t slab_id,
		    uint64_t epoch);

/* The loan of a replica whose server wants the memory back; false: there is
 * none. Where no other server takes the replica its server may have revoked it
 * meanwhile, which nobody would notice before the next request. */
bool rbx_slab_leaving(const struct rbx_slab *slab, uint32_t *server,
		      struct rbx_loan *loan);
/* A server has revoked a loan: its replica, if there still is one, is lost. */
void rbx_slab_revoked(struct rbx_slab *slab, uint32_t server,
		      const struct rbx_loan *loan);

/* Loses all replicas, so that all can be given back: for the close. */
void rbx_slab_abandon(struct rbx_slab *slab);

/* Empties a slot whose memory is of no more use to anybody; returns which. */
uint32_t rbx_slab_give_back(struct rbx_slab *slab, uint32_t *server,
			struct rbx_loan *loan);

/* ---- Rebuild --------------------------------------------------------------*/

/* Aims an idle piece with cell-sized memory at the next cell; then start it.
 * false: there is no more to copy. */
bool rbx_slab_copy_next(struct rbx_slab *slab, struct rbx_piece *piece);

/* A copy has ended. Returns true where it was the last of the rebuild: its
 * replicas are live now, or lost. */
bool rbx_slab_copy_done(struct rbx_slab *slab, const struct rbx_piece *piece);

/* ---- On demand, and after a loss ------------------------------------------*/

/* Which of its pages are good, while it has_pages. */
struct rbx_lost_pages *rbx_slab_pages(const struct rbx_slab *slab);
/* Whether RBX_TASK_LEND needs memory for a dead slab's pages, of
 * rbx_lost_pages_size(): lent by rbx_slab_lend_pages(). */
bool rbx_slab_wants_pages(const struct rbx_slab *slab);
void rbx_slab_lend_pages(struct rbx_slab *slab, struct rbx_lost_pages *pages);
/* The memory again, if there is any, when it says nothing: RBX_TASK_FREE_PAGES, or
 * the close. */
struct rbx_lost_pages *rbx_slab_take_pages(struct rbx_slab *slab);

/* Of RBX_TASK_LEND, before the first server is asked. */
void rbx_slab_place(struct rbx_slab *slab);

/* Of RBX_TASK_LEND, when servers have lent what they will, of a new slab that is
 * LIVE. The writes that waited start; where err says that no server has lent
 * anything they end with -ENOSPC, or with -EIO if there is none (-ENODEV) or the
 * slab is dead. */
void rbx_slab_begin(struct rbx_slab *slab, int err,
		    struct rbx_piece_list *todo);

/* Everything in the slab is zeros from here on, and its memory goes back when
 * what is under way to it has ended. */
void rbx_slab_discard(struct rbx_slab *slab);

enum rbx_slab_health {
	RBX_SLAB_BLANK, /* all zeros, and nothing is lent */
	RBX_SLAB_WHOLE, /* all replicas are live */
	RBX_SLAB_LACKING, /* a replica is missing or wanted back */
	RBX_SLAB_REBUILDING, /* the same, and it is being made anew */
	RBX_SLAB_DEAD, /* no live replica */
};

enum rbx_slab_health rbx_slab_health(const struct rbx_slab *slab);

/* ---- For the files of the slab only ---------------------------------------*/

/* The one function that changes the state of a replica. */
void rbx_slab_move(struct rbx_slab *slab, uint32_t slot,
		   enum rbx_replica_state state);

/* Of a replica that is written to; else it does nothing. */
void rbx_slab_lose(struct rbx_slab *slab, uint32_t slot);

/* Sets what follows from the states of the replicas. */
void rbx_slab_masks(struct rbx_slab *slab);

/* A bit for each slot that is REBUILDING. */
uint8_t rbx_slab_targets(const struct rbx_slab *slab);

/* Whether the replica in a slot has all that was ever acknowledged. */
static inline bool rbx_slab_has_all(const struct rbx_slab *slab, uint32_t slot)
{
	return slab->read_mask >> slot & 1 ||
	       (rbx_slab_state(slab, slot) == RBX_REPLICA_REBUILDING &&
		slab->stands_in_mask >> slot & 1);
}

/* Whether a single server has all that was ever acknowledged: its death would be the
 * loss. */
static inline bool rbx_slab_is_last(const struct rbx_slab *slab)
{
	uint32_t targets = slab->write_mask & (uint32_t)~slab->read_mask;

	if (rbx_slab_readable(slab) != 1)
		return false;
	for (; targets; targets &= targets - 1)
		if (rbx_slab_has_all(slab, (uint32_t)__builtin_ctz(targets)))
			return false;
	return true;
}

/* These replicas, those of a mask that are written to, may differ in a cell from one
 * that is readable and not of them, by what a write left that was not acknowledged:
 * they are not read until it is copied to them. */
void rbx_slab_differ(struct rbx_slab *slab, uint8_t mask, uint32_t cell);

static inline uint32_t rbx_slab_cells(const struct rbx_slab_shape *shape)
{
	return 1u << (shape->slab_shift - shape->cell_shift);
}

#endif
