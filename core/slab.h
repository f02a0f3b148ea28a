/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab.h - a slab of a volume and its replicas: which are read, which are written, which are
 * lost.
 *
 * The slab is the unit of placement, locking, epochs and rebuild. It is a state machine
 * without threads or connections. The caller (flow.h) takes the slab's lock, makes one step,
 * releases the lock, and does what the step put on its list:
 *
 *	rbx_slab_lock(slab); rbx_slab_start(slab, group, piece, &todo); rbx_slab_unlock(slab);
 *	for each piece of todo, in order:
 *		READING or WRITING: send the parts of its send_mask
 *		IDLE: it has ended with piece->status
 *	...when a part is done:
 *	lock; rbx_slab_done(slab, group, part, status, &todo); unlock; the same again
 *
 * Normally a read goes to one live replica, chosen by stripes, so that neighbours go to the
 * same server and merge. A write goes to all replicas once its granules are free (cell.h),
 * and ends when all have answered.
 *
 * Failure. A replica whose part fails is lost at that moment, before the write ends: a
 * replica that missed a write is never read again. A write has succeeded if a live replica
 * has it. A read goes on to another live replica. If the last live replica is lost, the data
 * of the slab is lost, and what is under way ends with -EIO.
 *
 * A slab without a live replica is dead: reads end with -EIO at once. A write waits until the
 * slab has new memory, like the first write of a blank slab, and ends with -EIO if no server
 * will lend any. What it does not write stays lost (lost_pages.h): zeros would be wrong data.
 *
 * A failure of this machine (status.h) says nothing about a replica, so none is lost. The
 * request ends with that failure. But it is unknown how much of such a write has arrived at
 * which replica, by this attempt or an earlier one. So that the replicas do not diverge, one
 * of them is the truth from then on. Its cell is copied to the others, which are not read
 * meanwhile: see write_failed_here() in slab_way.c.
 *
 * With checksums, a read whose data does not match takes its granules as a write does, so
 * that no write is under way. It reads again, then the pages that do not match from each other
 * replica (slab_search.c), and ends with -EIO only if one matches nowhere. Else the right data
 * is written to the live replicas that were tried in vain, before the granules are given back. A
 * replica with bad data stays live.
 *
 * A replica of a named volume that leaves its server takes every write until the server has
 * taken its label back (slab_leaving.c): the next client must not find there what missed a write.
 *
 * Rebuild (slab_rebuild.h): from the step on that makes a new replica REBUILDING, it gets
 * every write. Then each cell is copied to it. The copy holds the whole cell, so it waits for
 * writes from before that step. The replica is read only when all cells are there. A replica
 * that may differ in some cells only is REBUILDING too, until these are copied.
 *
 * Of a volume without a name a replica whose server is only silent is AWAY, and not lost
 * (slab_away.h): it is there again if the server is, and lacks what was written meanwhile.
 *
 * A lost replica keeps its memory until nothing is under way to it; then the host can give
 * the memory back. So no late write reaches a slab of another client.
 *
 * On demand: a slab that was never written, or was discarded, is blank. It is all zeros and
 * has no memory. A read of it ends at once; a write waits until memory is borrowed.
 * Discarding loses all replicas of a slab.
 */
#ifndef RBX_SLAB_H
#define RBX_SLAB_H

#include "core/cell.h"
#include "core/domains.h"
#include "core/doubts.h"
#include "core/limits.h"
#include "core/lost_pages.h"
#include "core/piece.h"
#include "core/replica.h"
#include "core/server_set.h"
#include "core/slab_record.h"
#include "core/slab_table.h"

enum rbx_replica_state {
	RBX_REPLICA_EMPTY, /* no memory: the slot can take a new replica */
	RBX_REPLICA_BORROWING, /* a server is being asked for memory */
	RBX_REPLICA_REBUILDING, /* takes every write; not all is there yet */
	RBX_REPLICA_LIVE, /* has all that was ever acknowledged */
	RBX_REPLICA_LEAVING, /* live, but its server wants the memory back */
	RBX_REPLICA_LOST, /* failed or replaced: takes nothing new */
	/* Was complete, its server was OUT, and is there again: takes every write, and is
	 * REBUILDING as soon as the slab has a record. Or it was AWAY. */
	RBX_REPLICA_RETURNED,
	RBX_REPLICA_AWAY, /* was live, and its server is silent: takes nothing (slab_away.h) */
};

struct rbx_extents;

/*
 * A group: slabs that share a lock. Each group has every RBX_SLAB_LOCKS-th slab of a volume,
 * so that neighbours do not share one. No thread takes a second such lock while holding one.
 * The cells in use of these slabs are in one table.
 */
struct rbx_slab_group {
	struct rbx_lock lock; /* guards all slabs of the group, and what follows */
	uint32_t cell_shift; /* that of the shape, to save a look-up; never changes */
	struct rbx_extents *extents; /* of a guarded volume (extents.h), or NULL; never changes */
	struct rbx_cells cells;
	struct rbx_lost_pages *lost[RBX_LOST_BUCKETS]; /* of slabs that have lost pages */
	struct rbx_slab_record *records; /* of slabs that have one */
};

/* What is common to all slabs of a volume. */
struct rbx_slab_shape {
	struct rbx_slab_group *groups; /* RBX_SLAB_LOCKS of them */
	struct rbx_slab_table table; /* of the slabs */
	uint32_t *checksums; /* of each page; NULL: none (checksum.h) */
	/* Atomic: a word of each slab, or NULL: then no replica is AWAY (slab_away.h). */
	uint64_t *missed;
	struct rbx_slab_records *records;
	struct rbx_doubts *doubts; /* of each record; NULL: the volume has no checksums */
	const struct rbx_domains *domains; /* of the servers; NULL: they have none */
	uint32_t slab_shift; /* log2 of bytes */
	uint32_t cell_shift; /* log2 of bytes */
	uint32_t replicas; /* wanted */
	uint32_t slots; /* replicas + 1 */
	bool on_demand; /* slabs begin blank and may be discarded */
	bool is_named; /* servers keep the slabs when the client goes: upkeep.h */
	bool is_guarded; /* named, with several replicas: how they are lost is in held.h */
	bool has_tails; /* named, with checksums: servers keep these, too (tails.h) */
};

/* A step is made with the lock of the slab's group held, which guards all of this. */
struct rbx_slab {
	/* These follow from the states of the replicas, and are kept for speed. */
	uint8_t read_mask : 4; /* LIVE or LEAVING */
	uint8_t write_mask : 4; /* those, REBUILDING and RETURNED */
	/* The slab wants the host to look at rbx_slab_task(). */
	uint8_t attention : 1;
	/* In one byte, because most slabs have none of these: rbx_slab_is_plain(). */
	uint8_t has_holes : 1; /* it was lost: its lost pages say what is good */
	uint8_t has_checksums : 1; /* as all slabs of the volume, or none */
	uint8_t has_record : 1; /* a record, while something is under way: slab_record.h */
	uint8_t swapped : 2; /* which slot is the spare one, see slab_spare.h */
	uint8_t blank : 1; /* all zeros, and has no memory */
	uint8_t has_away : 1; /* a replica is AWAY; follows from the states, as the masks do */
	uint16_t states : 12; /* of the replicas: rbx_slab_state() */
	uint16_t has_pages : 1; /* the host lent memory for lost pages */
	uint16_t waits : 1; /* writes wait for memory: a blank or dead slab */
	uint16_t had_surplus : 1; /* one replica too many was found: rbx_upkeep_adopt() */
	uint16_t placing : 1; /* dead, and the memory borrowed for it is not in use yet */
	struct rbx_replica frames[]; /* of all slots but the spare one */
};

RBX_STATIC_ASSERT(sizeof(struct rbx_slab) == 4, "a word");
RBX_STATIC_ASSERT(RBX_PART_OF_TAIL == 1u << RBX_SLOTS_MAX, "bits of parts and tails");
RBX_STATIC_ASSERT(RBX_SLOTS_MAX <= 4 && RBX_REPLICAS_MAX < 1u << 2 &&
			  RBX_REPLICA_AWAY < 1 << 3,
		  "they fit");

static inline enum rbx_replica_state
rbx_slab_state(const struct rbx_slab *slab, uint32_t slot)
{
	return (enum rbx_replica_state)(slab->states >> 3 * slot & 7);
}

/* Whether each replica is in the frame of its slot, and data is not checked or missing, also at
 * none that is AWAY. */
static inline bool rbx_slab_is_plain(const struct rbx_slab *slab)
{
	return !(slab->has_holes || slab->has_checksums || slab->has_record ||
		 slab->swapped || slab->has_away);
}

/* One of the places for a replica in the slab itself. */
static inline struct rbx_replica *rbx_slab_frame(const struct rbx_slab *slab,
						 uint32_t frame)
{
	RBX_DEBUG_ASSERT(frame < rbx_slab_shape(slab)->replicas);
	return (struct rbx_replica *)&slab->frames[frame];
}

struct rbx_replica *rbx_slab_replica_moved(const struct rbx_slab *slab,
					   uint32_t slot) RBX_RARE;

/* The replica of a slot that is not empty. */
static inline struct rbx_replica *rbx_slab_replica(const struct rbx_slab *slab,
						   uint32_t slot)
{
	if (slab->swapped || slab->has_record)
		return rbx_slab_replica_moved(slab, slot);
	return rbx_slab_frame(slab, slot);
}

/* How many replicas may be read. */
static inline uint32_t rbx_slab_readable(const struct rbx_slab *slab)
{
	/* A hex digit for each mask of four bits. */
	return 0x4332322132212110u >> 4 * slab->read_mask & 0xf;
}

/* Bytes of a slab with so many replicas. */
static inline uint32_t rbx_slab_size(uint32_t replicas)
{
	return (uint32_t)(sizeof(struct rbx_slab) +
			  replicas * sizeof(struct rbx_replica));
}

static inline struct rbx_slab *rbx_slab_at(const struct rbx_slab_shape *shape,
					   uint32_t index)
{
	return rbx_slab_table_at(&shape->table, index);
}

/* Prepares a slab of the table. */
void rbx_slab_init(struct rbx_slab *slab);

/* Zeroed memory becomes a group. */
static inline void rbx_slab_group_init(struct rbx_slab_group *group,
				       uint32_t cell_shift)
{
	group->cell_shift = cell_shift;
	rbx_lock_init(&group->lock);
}

/* Only for volumes with checksums. */
static inline uint32_t *rbx_slab_checksums(const struct rbx_slab *slab)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);

	return shape->checksums +
	       ((size_t)rbx_slab_index(slab) << shape->slab_shift) /
		       RBX_PAGE_BYTES;
}

static inline struct rbx_slab_group *
rbx_slab_group_at(const struct rbx_slab_shape *shape, uint32_t index)
{
	return &shape->groups[index % RBX_SLAB_LOCKS];
}

static inline struct rbx_slab_group *rbx_slab_group(const struct rbx_slab *slab)
{
	return rbx_slab_group_at(rbx_slab_shape(slab), rbx_slab_index(slab));
}

/* The place where writes wait for memory: the queue of a cell number that no slab has. */
static inline uint64_t rbx_slab_waiting_place(const struct rbx_slab *slab)
{
	return (uint64_t)rbx_slab_index(slab) << 32 | UINT32_MAX;
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

/* Returns whether the slab wanted attention, and clears that. */
static inline bool rbx_slab_attention(struct rbx_slab *slab)
{
	bool attention = slab->attention;

	slab->attention = false;
	return attention;
}

/* ---- Replicas come and go -------------------------------------------------*/

/* What the host has to do for the slab, in this order. */
enum rbx_slab_task {
	RBX_TASK_NONE,
	RBX_TASK_GIVE_BACK, /* rbx_slab_give_back(), then tell the server */
	RBX_TASK_LEND, /* rbx_slab_place(), borrow LIVE ones, rbx_slab_begin() */
	RBX_TASK_FREE_PAGES, /* rbx_slab_take_pages() */
	RBX_TASK_RETURN_RECORD, /* rbx_slab_return_record() */
	RBX_TASK_COPY, /* with a record, start copies: rbx_slab_copy_next() */
	RBX_TASK_LABEL, /* of a named volume: rbx_slab_unlabelled() */
	RBX_TASK_UNLABEL, /* the same: rbx_slab_superfluous() */
	RBX_TASK_BORROW, /* with a record, borrow memory: rbx_slab_borrow() */
};

enum rbx_slab_task rbx_slab_task(const struct rbx_slab *slab);

/* Reserves a slot; then the host asks the server, without the lock. */
uint32_t rbx_slab_borrow(struct rbx_slab *slab, uint32_t server);
/* The server has lent it. state: LIVE for a new slab, which is all zeros, else REBUILDING. */
void rbx_slab_lent(struct rbx_slab *slab, uint32_t slot,
		   const struct rbx_loan *loan, enum rbx_replica_state state);
/* The server refused. */
void rbx_slab_refused(struct rbx_slab *slab, uint32_t slot);

/* How many replicas are in this state. */
uint32_t rbx_slab_count(const struct rbx_slab *slab, enum rbx_replica_state state);

/* Adds the servers that have a replica or are asked for one, and so must not be asked for
 * another. Returns how many. */
uint32_t rbx_slab_servers(const struct rbx_slab *slab,
			  struct rbx_server_set *servers);
/* Adds only those whose replica stays: the server has lent it or is asked for it, and it is
 * neither lost, AWAY, nor wanted back. No other replica should be lost together with it. */
void rbx_slab_holders(const struct rbx_slab *slab, struct rbx_server_set *servers);
/* Whether two of its live replicas would be lost together. */
bool rbx_slab_is_together(const struct rbx_slab *slab);
/* Whether a server has a replica or is asked for one; whether it is or has any server's. */
bool rbx_slab_has_server(const struct rbx_slab *slab, uint32_t server);
bool rbx_slab_has_memory(const struct rbx_slab *slab);

/* A server is dead. Returns whether it had a replica. */
bool rbx_slab_server_down(struct rbx_slab *slab, uint32_t server);

/* A server wants the memory of a loan back. Returns whether it is of this slab, which then is
 * LEAVING or LOST. A replica that stands in stays until the server asks again. */
bool rbx_slab_evict(struct rbx_slab *slab, uint32_t server, uint64_t slab_id,
		    uint64_t epoch);

/* The loan of a replica that is LEAVING; false: there is none. While no other server takes
 * the replica, its server may have revoked it, which would not be noticed before the next
 * request. */
bool rbx_slab_leaving(const struct rbx_slab *slab, uint32_t *server,
		      struct rbx_loan *loan);
/* A server has revoked a loan: its replica, if it is still there, is lost. */
void rbx_slab_revoked(struct rbx_slab *slab, uint32_t server,
		      const struct rbx_loan *loan);

/* Loses all replicas, so that all can be given back; for closing the volume. */
void rbx_slab_abandon(struct rbx_slab *slab);

/* The server of a slot whose memory is of no more use. Empties that slot; returns which. */
uint32_t rbx_slab_drained_server(const struct rbx_slab *slab);
uint32_t rbx_slab_give_back(struct rbx_slab *slab, uint32_t *server,
			    struct rbx_loan *loan);

/* ---- Leaving a server, of a guarded volume: slab_leaving.c ----------------*/

/*
 * The slot of a replica that leaves and is not needed any more: its server is to take the label
 * back. -ENOENT: there is none, or that is under way.
 */
int rbx_slab_superfluous(const struct rbx_slab *slab);
void rbx_slab_unlabel_asked(struct rbx_slab *slab, uint32_t slot);
/* The server has taken the label back, if the loan is still in use: the replica is lost. */
void rbx_slab_unlabel_done(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan);
/* Or it is not known to have done so, and is not waited for any more. */
void rbx_slab_unlabel_failed(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan);
/* The server of a slot says whether it has the label. */
void rbx_slab_unlabel_found(struct rbx_slab *slab, uint32_t slot, bool has_label);
/* A replica that is in use leaves, as another one, at a target, will take its place (balance.h). It
 * stays if that one is lost. The slab has a record. */
void rbx_slab_move_away(struct rbx_slab *slab, uint32_t slot, uint32_t target);
/* How many replicas are there to stay: they are live, or will be. */
uint32_t rbx_slab_staying(const struct rbx_slab *slab);
/* Fewer are to stay than before: those that leave only to move do not any more. */
void rbx_slab_moves_end(struct rbx_slab *slab);
/* A server is to have none: its replica leaves, or is lost if it was never complete. Returns
 * whether it has one. */
bool rbx_slab_leave(struct rbx_slab *slab, uint32_t server);

/* ---- On demand, and after a loss ------------------------------------------*/

/* Which of its pages are good; only while it has_pages. */
struct rbx_lost_pages *rbx_slab_pages(const struct rbx_slab *slab);
/* Whether RBX_TASK_LEND needs memory for a dead slab's pages, of rbx_lost_pages_size():
 * rbx_slab_lend_pages() provides it. */
bool rbx_slab_wants_pages(const struct rbx_slab *slab);
void rbx_slab_lend_pages(struct rbx_slab *slab, struct rbx_lost_pages *pages);
/* Gives the memory for lost pages back, if there is any and it is not needed:
 * RBX_TASK_FREE_PAGES, or at the close. */
struct rbx_lost_pages *rbx_slab_take_pages(struct rbx_slab *slab);

/* For RBX_TASK_LEND, before the first server is asked. */
void rbx_slab_place(struct rbx_slab *slab);

/* For RBX_TASK_LEND, after servers have lent what they will; the replicas of a new slab are
 * LIVE. The writes that waited start. If no server has lent anything (err), they end with
 * -ENOSPC; or with -EIO if there is no server (-ENODEV) or the slab is dead. */
void rbx_slab_begin(struct rbx_slab *slab, int err,
		    struct rbx_piece_list *todo);

/* From here on everything in the slab is zeros. Its memory goes back when what is under way
 * to it has ended. */
void rbx_slab_discard(struct rbx_slab *slab);

enum rbx_slab_health {
	RBX_SLAB_BLANK, /* all zeros, and has no memory */
	RBX_SLAB_WHOLE, /* all replicas are live */
	RBX_SLAB_LACKING, /* a replica is missing or wanted back */
	RBX_SLAB_REBUILDING, /* the same, and it is being rebuilt */
	RBX_SLAB_DEAD, /* no live replica */
};

enum rbx_slab_health rbx_slab_health(const struct rbx_slab *slab);

/* ---- For the files of the slab only ---------------------------------------*/

/* The one function that changes the state of a replica. */
void rbx_slab_move(struct rbx_slab *slab, uint32_t slot,
		   enum rbx_replica_state state);

/* It has a loan: in use, or to be used when all that was asked for has come. */
bool rbx_slab_is_lent(const struct rbx_slab *slab, uint32_t slot);
/* The slot that is lent by this server, or -1. */
int rbx_slab_slot_of(const struct rbx_slab *slab, uint32_t server);
/* Only of a replica that is lent; else it does nothing. */
void rbx_slab_lose(struct rbx_slab *slab, uint32_t slot);

/* Sets the masks, which follow from the states of the replicas. */
void rbx_slab_masks(struct rbx_slab *slab);

/* The first slot in this state, or -1. */
static inline int rbx_slab_find(const struct rbx_slab *slab,
				enum rbx_replica_state state)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == state)
			return (int)slot;
	return -1;
}

/* A bit for each slot that is REBUILDING or RETURNED. */
uint8_t rbx_slab_targets(const struct rbx_slab *slab);
/* A bit for each slot that is RETURNED. */
uint8_t rbx_slab_returned(const struct rbx_slab *slab);

/* Whether a slot is REBUILDING and has all that was ever acknowledged. */
bool rbx_slab_stands_in(const struct rbx_slab *slab, uint32_t slot);

/* Whether the server of a slot that is REBUILDING was asked to label it. */
bool rbx_slab_may_be_labelled(const struct rbx_slab *slab, uint32_t slot);

/* Whether the label of a slot's replica is being taken back: the next client may not find it. */
bool rbx_slab_is_unlabelling(const struct rbx_slab *slab, uint32_t slot);
/* No copies are under way: what has no label any more is lost. */
void rbx_slab_unlabelled_lose(struct rbx_slab *slab);

/* Whether the replica in a slot has all that was ever acknowledged. */
static inline bool rbx_slab_has_all(const struct rbx_slab *slab, uint32_t slot)
{
	return slab->read_mask >> slot & 1 || rbx_slab_stands_in(slab, slot);
}

/* Whether only one server has all that was ever acknowledged: its death would lose data. */
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

/* Its record, or NULL. */
struct rbx_slab_record *rbx_slab_record(const struct rbx_slab *slab);
/* Its pages in doubt; NULL: it has no record, or the volume no checksums. */
struct rbx_doubts *rbx_slab_doubts(const struct rbx_slab *slab);
/* Gives it a record for a failed write, if it has none; false: only those of the upkeep
 * thread are left. */
bool rbx_slab_record_give_at_once(struct rbx_slab *slab);
/* Which slot has no frame. */
uint32_t rbx_slab_spare_slot(const struct rbx_slab *slab);
/* Whether RBX_TASK_RETURN_RECORD has something to do. */
bool rbx_slab_may_return_record(const struct rbx_slab *slab);

/* The extents of a range that lies in a slab: a bit for each 64th of it that is touched. */
static inline uint64_t rbx_extents_of(uint32_t offset_bytes, uint32_t length_bytes,
				      uint32_t slab_shift)
{
	uint32_t first = offset_bytes >> (slab_shift - 6);
	uint32_t last = (offset_bytes + length_bytes - 1) >> (slab_shift - 6);

	return (((uint64_t)2 << (last - first)) - 1) << first;
}

/* The same of a cell. */
static inline uint64_t rbx_extents_of_cell(const struct rbx_slab_shape *shape, uint32_t cell)
{
	return rbx_extents_of(cell << shape->cell_shift, 1u << shape->cell_shift,
			      shape->slab_shift);
}

static inline uint32_t rbx_slab_cells(const struct rbx_slab_shape *shape)
{
	return 1u << (shape->slab_shift - shape->cell_shift);
}

#endif
