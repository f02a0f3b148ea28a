/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_record.h - the state that a slab needs only while something is under way in it.
 *
 * A volume has millions of slabs, and few of them are being rebuilt or moved. So the state of
 * a rebuild is in a record of a bounded pool. So is the memory for one replica more than a
 * slab has room for. The upkeep thread gives a slab a record before it asks a server for a
 * new replica, and takes it back when that has ended (slab_spare.c).
 *
 * The pool may be empty. Then the upkeep thread parks a slab that needs a record, and the
 * slab waits; its replicas are read and written as before. It does not wait for ever. No slab
 * keeps a record while it waits for another one, or after no server would lend. A slab with a
 * record waits for servers that were asked, which ends within a bounded time and is so for at
 * most RBX_ASKS_MAX slabs. Or it is copied, which ends after a bounded number of tries. Or it
 * waits for requests to a lost replica, which end with its connection. Or it waits for its
 * turn to give memory back. The upkeep thread does all that without another record.
 *
 * A write that fails by a fault of this machine leaves replicas that differ in a cell, or
 * that perhaps have data that was never acknowledged (doubts.h). It cannot wait. It takes a
 * record if there are more than the upkeep thread's share. Without one the slab counts as
 * different everywhere, and all of it is copied when its turn comes. A slab may keep its
 * record for ever for pages in doubt, but only RBX_SLAB_RECORDS_DOUBTED slabs do.
 *
 * The pool has no lock: records are the bits of a few words. The record of a slab is found in
 * the chain of the slab's group, under its lock.
 */
#ifndef RBX_SLAB_RECORD_H
#define RBX_SLAB_RECORD_H

#include "core/replica.h"

struct rbx_slab_record {
	struct rbx_slab_record *next; /* of the group */
	/* Does not change while the spare one is in the index of loans. */
	uint32_t slab_index;
	struct rbx_replica spare; /* of the slot that has no memory in the slab */

	/* The rebuild under way, if any: of all replicas that are REBUILDING. */
	bool copy_failed; /* so all that is REBUILDING is lost */
	bool copy_rests; /* or nothing may be lost, and it is tried again in a while */
	uint8_t copies_count; /* copies under way */
	uint8_t copy_failures_count; /* in a row, by a fault of this machine */
	/* Slots that are REBUILDING and have all that was ever acknowledged: they differ at
	 * most in what failed writes left. Valid only for REBUILDING slots. */
	uint8_t stands_in_mask;
	uint8_t leaves_mask; /* slots that are REBUILDING and become LEAVING afterwards */
	uint8_t returned_mask; /* slots that are REBUILDING and were RETURNED before */
	/* Slots that leave only to a server with more memory free (balance.h), and where to. */
	uint8_t moves_mask;
	uint8_t moves_to;
	/* Of a named volume, slots that are REBUILDING: their servers were asked to label them as
	 * complete; and have done so. */
	uint8_t label_asked_mask;
	uint8_t labelled_mask;
	/* The same, slots that leave: their servers were asked to take the label back; and have
	 * done so. See slab_leaving.c. */
	uint8_t unlabel_asked_mask;
	uint8_t unlabelled_mask;
	uint16_t rebuild; /* number of the rebuild */
	uint32_t copy_next; /* cell to copy next */
	uint32_t copy_end; /* end of these cells */
	uint32_t again_next; /* more cells to copy after these, */
	uint32_t again_end; /* again, or for a replica that joined */
	/* Of these cells, only those in these extents (extents.h); 0: all of them. */
	uint64_t copy_extents;
};

RBX_STATIC_ASSERT(RBX_COPIES_MAX + RBX_RETRIES_MAX < 1u << 8, "the counts fit");

#define RBX_SLAB_RECORD_WORDS (RBX_SLAB_RECORDS / 64)
RBX_STATIC_ASSERT(RBX_SLAB_RECORDS % 64 == 0, "the pool is whole words");

struct rbx_slab_records {
	uint64_t free[RBX_SLAB_RECORD_WORDS]; /* atomic: a bit for each free record */
	struct rbx_slab_record all[RBX_SLAB_RECORDS];
};

/* Zeroed memory becomes a pool. */
void rbx_slab_records_init(struct rbx_slab_records *records);

/* How many are free; not exact while other threads take some. */
uint32_t rbx_slab_records_free(const struct rbx_slab_records *records);

/* Takes a record, all zeros, if more than kept_count are free; else NULL. Any thread. */
struct rbx_slab_record *rbx_slab_records_take(struct rbx_slab_records *records,
					      uint32_t kept_count);
void rbx_slab_records_put(struct rbx_slab_records *records,
			  struct rbx_slab_record *record);

#endif
