/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * extents.h - the intent words of a named volume with replicas: which extents of each slab may be
 * written, and what the servers have to note before (docs/named-volumes.md, "Writes under way
 * when a client dies").
 *
 * An extent is 1/64 of a slab. Each server keeps an intent word for each replica that it has, a
 * bit for each extent. If the client dies, replicas differ at most in extents whose bit is set, and
 * these are all that the next client makes equal (even_out.c).
 *
 *	a write begins      its extents are SAFE: it goes on. Else it waits, and the word is queued
 *	rbx_extents_next()  words to be noted by the servers of all current replicas
 *	... the servers have noted them
 *	rbx_extents_noted() the extents are safe, and the writes that waited go on
 *
 * A word is sent as a whole, and the next batch of words is made when all servers have answered
 * for the one before. So no older word comes after a newer one. What a server lends begins with all
 * bits set. So a replica that joins needs no word before it is used, and gets one later.
 *
 * Extents that are quiet are cleared: each slab that has any set is looked at once in
 * RBX_EXTENTS_QUIET_NS, and an extent is cleared that was not written since, if no piece is in its
 * cells and no replica is being made equal: then the replicas are equal there. It is not safe from
 * then on, so the next write waits until its bit is set again. Only so many are set as an open
 * after a crash is to copy (rbx_extents_max()), unless more are being written: to make room slabs
 * are looked at before their time.
 *
 * A write that failed here may have left a page and its checksum, which the servers keep (tails.h),
 * that are of different writes. Nothing puts that back while the volume is open. So its extents
 * have STRAYED: they stay noted until the volume is opened again, when they are decided by the data
 * (client/reconcile.h), and it is not closed as one whose replicas are equal. They do not count for
 * the bound.
 *
 * Behind words. While a server of the volume is OUT, an extent that is cleared, or was found to be
 * noted, is BEHIND from then on. So both words together name all extents in which a server that is
 * OUT may lack something: those to which writes were under way when it was lost, and those that
 * were written since. What is quiet is cleared just before it is lost. Servers keep both words.
 * They are emptied when no server is OUT any more, and not before: a word does not say since when
 * a server is away. A replica that returns gets a copy of these extents, which are STALE
 * (labels.c).
 *
 * Writes that wait are in the queue of a cell number that no slab has, and hold no granules.
 */
#ifndef RBX_EXTENTS_H
#define RBX_EXTENTS_H

#include "core/server_set.h"
#include "core/slab.h"
#include "wire/record.h"

struct rbx_flow;
struct rbx_held;
struct rbx_volume_map;

/* The word of a slab. Guarded by the slab's lock, but for next. */
struct rbx_extent_word {
	uint64_t safe; /* all servers have noted these: they may be written */
	uint64_t noted; /* what servers have noted, or are to note next; safe is a part of it */
	uint64_t asked; /* to be noted, because writes wait for them */
	uint64_t waited; /* all extents of writes that wait */
	uint64_t written; /* and safe; since they were looked at last */
	uint64_t behind; /* written before, while a server was OUT */
	uint64_t stale; /* what replicas that are RETURNED lack */
	uint64_t strayed; /* a part of noted */
	uint64_t counted; /* the same; of the thread that makes rounds */
	uint32_t next; /* in the queue: 1 + the index of a slab; guarded by the queue's lock */
	bool is_queued;
	bool is_asked; /* servers are asked to note it */
	bool has_waiters;
};

struct rbx_extents {
	struct rbx_lock lock; /* guards the queue; taken after a slab's lock */
	uint32_t first, last; /* words to be sent: 1 + the index of a slab; 0: none */
	/* Atomic: a server is OUT, or about to be. Set before the record says so, and so before a
	 * replica is lost, which is seen in the slab's lock by whoever looks at this there. */
	bool is_tracking;
	struct rbx_extent_word *words; /* of each slab */
	bool is_over; /* atomic: slabs that were blank may not be any more */
	bool have_strayed; /* atomic: some extents */

	/* Of the thread that makes rounds: a ring of the slabs of which writes have set extents. */
	uint32_t set_max; /* extents: more only while more are being written */
	uint32_t room; /* for extents that are set, never more */
	uint32_t set_count; /* in all words: those that are counted */
	uint32_t ring_count;
	uint32_t ring_next; /* the slab that is looked at next */
	uint32_t *ring; /* indexes of slabs: each has one extent that is counted, at least */
	uint64_t look_ns; /* it is looked at then; 0: it is not known yet */
	uint64_t quiet_ns; /* RBX_EXTENTS_QUIET_NS */
};

/* How many extents may be set, if an open after a crash is to copy so many bytes at most; 0:
 * RBX_EXTENTS_BYTES, and RBX_EXTENTS_PRESET extents. 1 at least, RBX_EXTENTS_MAX at most. */
uint32_t rbx_extents_max(uint64_t crash_copy_bytes, uint64_t slab_bytes);

/* Bytes of memory for the extents of so many slabs, and that memory, zeroed. */
size_t rbx_extents_size(uint32_t slab_count, uint32_t set_max);
struct rbx_extents *rbx_extents_init(void *memory, uint32_t slab_count, uint32_t set_max);

static inline struct rbx_extent_word *rbx_extent_word_of(const struct rbx_slab *slab)
{
	return &rbx_slab_group(slab)->extents->words[rbx_slab_index(slab)];
}

/* ---- Writes -------------------------------------------------------------------- */

/* Whether a write may begin in a slab that has replicas. */
static inline bool rbx_extents_may_write(struct rbx_extents *extents,
					 const struct rbx_piece *piece, uint32_t slab_shift)
{
	struct rbx_extent_word *word = &extents->words[piece->slab_index];
	uint64_t mask = rbx_extents_of(piece->offset_bytes, piece->length_bytes, slab_shift);

	/* Usually it is so: then the memory, which is next to that of other slabs, stays clean. */
	if (mask & ~word->written)
		word->written |= mask;
	return !(mask & ~word->safe);
}

/* If not, it waits. */
void rbx_extents_wait(struct rbx_slab *slab, struct rbx_slab_group *group,
		      struct rbx_piece *piece) RBX_RARE;

/* A write of a volume with tails has failed, at some replicas or at all. The slab's lock is held.
 */
static inline void rbx_extents_stray(struct rbx_extents *extents, const struct rbx_piece *piece,
				     uint32_t slab_shift)
{
	extents->words[piece->slab_index].strayed |=
		rbx_extents_of(piece->offset_bytes, piece->length_bytes, slab_shift);
	/* Whoever closes the volume has seen that write end, and so sees this. */
	RBX_STORE_RELEASE(&extents->have_strayed, true);
}

/* ---- What the servers note, by the thread that makes rounds -------------------------- */

/* A replica's word. */
struct rbx_intent {
	uint32_t server;
	uint64_t slab_id; /* of its loan */
	uint64_t epoch;
	uint64_t word;
	uint64_t behind;
};

/* Words that are sent together. No server has two of them of one slab. */
struct rbx_intents {
	uint32_t slabs_count;
	uint32_t slabs[RBX_WIRE_INTENTS_MAX]; /* their indexes */
	uint64_t words[RBX_WIRE_INTENTS_MAX];
	uint32_t count;
	struct rbx_intent all[RBX_WIRE_INTENTS_MAX * RBX_SLOTS_MAX];
};

/* Takes words from the queue, after room was made for new bits. false: there are none, or no room
 * now: *is_full. */
bool rbx_extents_next(struct rbx_volume_map *map, struct rbx_intents *intents, bool *is_full);

/* Clears what is quiet, if it is time. Returns when it is time again; UINT64_MAX: nothing is set.
 */
uint64_t rbx_extents_round(struct rbx_volume_map *map, uint64_t now_ns);

/* All servers of the current replicas have noted them, but for those of which nothing is known to
 * arrive any more (held.h): what was to be written there fails. */
void rbx_extents_noted(struct rbx_flow *flow, const struct rbx_intents *intents);

/* ---- Replicas come ------------------------------------------------------------------ */

/* A replica is complete, as its server knows: it gets the word of the slab, in place of the one
 * that it began with. The slab's lock is held. */
void rbx_extents_joined(struct rbx_slab *slab);

/* While the volume is opened: a server has noted these extents for a replica. */
void rbx_extents_found(struct rbx_volume_map *map, uint32_t slab_index, uint64_t word,
		       uint64_t behind);
/* The replicas of a slab were made equal, so what was found of it can be cleared. Its lock is
 * held. */
void rbx_extents_made_equal(struct rbx_slab *slab);
/* All replicas are equal, so all that was found can be cleared. */
void rbx_extents_forget_found(struct rbx_flow *flow);

/* Another client has the volume, or may have it soon. What is not there may be written by it. */
void rbx_extents_end(struct rbx_volume_map *map);
/* No other client had it meanwhile, and none can have it now. */
void rbx_extents_resume(struct rbx_volume_map *map);

/* Extents in which the replicas of a slab may differ. The slab's lock is held. */
uint64_t rbx_extents_unequal(const struct rbx_slab *slab);

/* ---- Servers are OUT, and return ---------------------------------------------------- */

/* Whether a server of the volume is OUT: before the record can be chosen that says so, or after the
 * one that says that none is. By the thread that makes rounds, or while the volume is opened. Looks
 * at all that is noted, or at all slabs. */
void rbx_extents_track(struct rbx_flow *flow, bool any_is_out);
/* With the slab's lock held. It is about to be written to for the first time: what a server that is
 * OUT may have of it counts for nothing. */
void rbx_extents_begin(struct rbx_slab *slab);
/* A replica has returned. Returns what it may lack. What its own server has noted does not matter:
 * whatever was under way there was noted by all others as well. */
uint64_t rbx_extents_returned(struct rbx_slab *slab);
/* A replica has returned that does not have what is being written to this cell. */
void rbx_extents_stale_add(struct rbx_slab *slab, uint32_t cell);
/* What those that have returned lack, which is copied to them from here on. */
uint64_t rbx_extents_stale_take(struct rbx_slab *slab);

#endif
