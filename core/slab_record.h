/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_record.h - what a slab needs only while something is under way in it.
 *
 * A volume has millions of slabs, and few of them are being rebuilt or moved. So
 * the state of a rebuild, and the memory for one replica more than a slab has room
 * for, is in a record of a bounded pool. The upkeep thread gives a slab one before
 * it asks a server for a new replica, and takes it back when that has ended
 * (slab_spare.c).
 *
 * The pool may be empty. Then a slab that wants a record is parked by the upkeep
 * thread and waits; what it has is read and written as before. It does not wait for
 * ever. No slab keeps a record while it waits for one, or after no server would
 * lend. Who has one waits for servers that were asked, which is over in a bounded
 * time and for at most RBX_ASKS_MAX slabs; or is copied, which ends after a bounded
 * number of tries; or waits for requests to a lost replica, which end with its
 * connection; or for its turn to give memory back. The upkeep thread does all that
 * without another record.
 *
 * A write that fails for a fault of this machine leaves replicas that differ in a
 * cell, or that perhaps have what nobody was told of (doubts.h), and cannot wait.
 * It takes a record if there are more than the upkeep thread's share; without one
 * the slab counts as different everywhere, and all of it is copied in its turn. For
 * pages in doubt a slab may keep its record for ever, but only
 * RBX_SLAB_RECORDS_DOUBTED slabs do.
 *
 * The pool has no lock: records are the bits of a few words. The record of a slab is
 * found in the chain of the slab's group, under its lock.
 */
#ifndef RBX_SLAB_RECORD_H
#define RBX_SLAB_RECORD_H

#include "core/replica.h"

struct rbx_slab_record {
	struct rbx_slab_record *next; /* of the group */
	/* Stays as it is while the spare one is in the index of loans. */
	uint32_t slab_index;
	struct rbx_replica spare; /* of the slot that has no memory in the slab */

	/* The rebuild under way, if any: of all replicas that are REBUILDING. */
	bool copy_failed; /* so that what is REBUILDING is lost */
	uint8_t copies_count; /* copies under way */
	uint8_t copy_failures_count; /* in a row, for a fault of this machine */
	/* Slots that are REBUILDING and have all that was ever acknowledged: they
	 * differ at most in what failed writes left. Of use only where they are. */
	uint8_t stands_in_mask;
	uint8_t leaves_mask; /* slots that are REBUILDING and LEAVING afterwards */
	uint16_t rebuild; /* which one it is */
	uint32_t copy_next; /* cell to copy next */
	uint32_t copy_end; /* and the end of those */
	uint32_t again_next; /* cells to be copied after these, */
	uint32_t again_end; /* once more or for one that joined */
};

RBX_STATIC_ASSERT(RBX_COPIES_MAX + RBX_RETRIES_MAX < 1u << 8, "the counts fit");

#define RBX_SLAB_RECORD_WORDS (RBX_SLAB_RECORDS / 64)
RBX_STATIC_ASSERT(RBX_SLAB_RECORDS % 64 == 0, "the pool is whole words");

struct rbx_slab_records {
	uint64_t free[RBX_SLAB_RECORD_WORDS]; /* atomic: a bit for each that is */
	struct rbx_slab_record all[RBX_SLAB_RECORDS];
};

/* Zeroed memory becomes a pool. */
void rbx_slab_records_init(struct rbx_slab_records *records);

/* How many are free, more or less while others take some. */
uint32_t rbx_slab_records_free(const struct rbx_slab_records *records);

/* A record, all zeros, if more than that are free; else NULL. Any thread. */
struct rbx_slab_record *rbx_slab_records_take(struct rbx_slab_records *records,
					      uint32_t kept_count);
void rbx_slab_records_put(struct rbx_slab_records *records,
			  struct rbx_slab_record *record);

#endif
