/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * write_behind.h - the writes that go to a disk after faster memory has acknowledged them: in
 * which order, how much, and what the disk holds.
 *
 * The unit is the block, a page of RBX_PAGE_BYTES, and a buffer of so many pages.
 * A write takes a page for each of its blocks, into which the host copies them,
 * before it goes anywhere:
 *
 *	rbx_write_behind_begin()	its pages are HELD; or it waits its turn
 *	rbx_write_behind_end()		it is acknowledged; its pages go to the disk
 *	rbx_write_behind_send()		neighbours leave as one run, oldest first
 *	rbx_write_behind_sent()		the disk has them, or it has failed
 *
 * Room. A write that does not find all its pages at once waits, and so do all later writes,
 * in their order. So at most the buffer is ever behind. If the disk is slower, writes go at
 * its pace.
 *
 * Order. Of two writes to a block the disk gets the later one last. A write waits for one
 * that has not ended and has a page for one of its blocks: so the faster memory and the disk
 * agree on which is the later. An acknowledged page replaces an older one that was not sent.
 * While the older one is on its way, it waits for that.
 *
 * Where the data is. Two bits for each block tell what the disk holds; a new block holds
 * nothing, whatever was on the disk before. A block that the disk would not take is lost
 * there until it is written successfully; old data is never returned for it. A lookup of a
 * block (rbx_write_behind_find()) finds what was acknowledged last: its page while that is on
 * its way, the disk afterwards.
 *
 * A third bit tells that the faster memory does not have what was acknowledged last, because
 * a write went through to the disk only. It may have older data of the block, and may even be
 * readable again. So it is not asked for the block (rbx_write_behind_is_only_here()) until it
 * has taken a newer write. All bits together are 1/10923 of the bytes.
 *
 * Reads of the disk go first, since a program waits for them. But after
 * RBX_BEHIND_READ_RUN_MAX of them in a row what is to be sent has its turn, as a program may
 * wait for that, too (rbx_write_behind_read_may_go()).
 *
 * A state machine without a lock, a disk or the pages themselves: the host makes each step
 * under a lock of its own. Not here: sending again what the disk has refused, which is the
 * task of the disk's driver.
 */
#ifndef RBX_WRITE_BEHIND_H
#define RBX_WRITE_BEHIND_H

#include "core/limits.h"
#include "core/request.h"

enum rbx_behind_state {
	RBX_BEHIND_FREE,
	RBX_BEHIND_HELD, /* its write has begun and not ended */
	RBX_BEHIND_WAITING, /* an older page of its block is on its way */
	RBX_BEHIND_QUEUED, /* to be sent */
	RBX_BEHIND_SENT, /* on its way to the disk */
};

/* A page of the buffer. A block has at most one HELD page, one that is WAITING or QUEUED, and
 * one that is SENT. */
struct rbx_behind_page {
	uint64_t block;
	struct rbx_behind_write *write; /* the write, until it ends; NULL: acknowledged */
	struct rbx_behind_page *next; /* in the list of free pages, of a write, or in the queue */
	struct rbx_behind_page *previous; /* in the queue */
	struct rbx_behind_page *chain; /* in its bucket */
	uint32_t memory; /* number of the page's memory */
	uint8_t state; /* enum rbx_behind_state */
};

/* How a write ended in the faster memory. */
enum rbx_behind_end {
	RBX_BEHIND_WELL, /* it has the data */
	RBX_BEHIND_BADLY, /* it may have the data or not, and the writer gets an error */
	RBX_BEHIND_THROUGH, /* only the disk will have the data */
};

/* A write under way; it belongs to the host, from begin to end. */
struct rbx_behind_write {
	struct rbx_node node; /* used here while it waits, else the host's */
	uint64_t block; /* the first of */
	uint32_t count; /* 1 to RBX_BEHIND_BLOCKS_MAX */
	struct rbx_behind_page *pages; /* in the order of its blocks, by next */
	uint32_t left_count; /* blocks that the disk has not taken yet */
	bool failed; /* the disk would not take one of them */
};

/* Neighbours that are sent to the disk together. */
struct rbx_behind_run {
	uint64_t block; /* the first of */
	uint32_t count;
	struct rbx_behind_page *pages[RBX_BEHIND_BLOCKS_MAX];
};

struct rbx_write_behind {
	uint32_t page_count;
	uint32_t free_count;
	uint32_t behind_count; /* acknowledged, and not on the disk */
	uint32_t bucket_shift;
	uint32_t read_run_count; /* reads in a row while something was to be sent */
	uint64_t only_count; /* blocks that the faster memory is not asked for; atomic */
	uint64_t waits_count; /* writes that had to wait */
	struct rbx_behind_page *free;
	struct rbx_behind_page *queue_first, *queue_last;
	struct rbx_node *waiting_last; /* a ring: waiting_last->next is first */
	struct rbx_behind_page *pages;
	struct rbx_behind_page **buckets;
	uint8_t *held; /* enum rbx_behind_held, two bits for each block */
	uint8_t *only; /* a bit for each block */
};

/* Bytes for so many blocks and a buffer of so many pages. */
size_t rbx_write_behind_size(uint64_t blocks, uint32_t pages);

/* memory: zeroed, of that size, borrowed for the life of what is returned. pages: at least
 * RBX_BEHIND_BLOCKS_MAX. */
struct rbx_write_behind *rbx_write_behind_init(void *memory, uint64_t blocks,
					       uint32_t pages);

/* ---- A write --------------------------------------------------------------*/

/* block and count are set. true: it has its pages, for the host to fill. false: it waits, and
 * comes out of rbx_write_behind_admit(). */
bool rbx_write_behind_begin(struct rbx_write_behind *behind,
			    struct rbx_behind_write *write);

/* The first of the waiting writes, if it gets its pages now; else NULL. To be called until it
 * returns NULL, whenever a write has ended or pages came free. */
struct rbx_behind_write *rbx_write_behind_admit(struct rbx_write_behind *behind);

/* The write will not be made: its pages are free again. */
void rbx_write_behind_cancel(struct rbx_write_behind *behind,
			     struct rbx_behind_write *write);

/* The pages of the write go to the disk. THROUGH: it ends only with the disk
 * (rbx_write_behind_sent()). Otherwise it ends here, and the host may reuse its memory. */
void rbx_write_behind_end(struct rbx_write_behind *behind,
			  struct rbx_behind_write *write,
			  enum rbx_behind_end how);

/* ---- The disk -------------------------------------------------------------*/

/* The next run to send: the page that has waited longest and its neighbours.
 * false: there is nothing to send now. */
bool rbx_write_behind_send(struct rbx_write_behind *behind,
			   struct rbx_behind_run *run);

/* The disk has taken all of a run, or has failed. Returns the writes that end with it, a list
 * by node, with `failed`. */
struct rbx_node *rbx_write_behind_sent(struct rbx_write_behind *behind,
				       const struct rbx_behind_run *run,
				       bool taken);

/* Whether a read may use the disk next; else a run is to be sent before. */
bool rbx_write_behind_read_may_go(struct rbx_write_behind *behind);

/* ---- Where the data is ---------------------------------------------------- */

enum rbx_behind_held {
	RBX_BEHIND_NEW, /* never written: zeros */
	RBX_BEHIND_DISK, /* on the disk */
	RBX_BEHIND_LOST, /* the disk would not take it */
	RBX_BEHIND_PAGE, /* in a page of the buffer */
};

/* Where the last acknowledged data of a block is. *page: set for RBX_BEHIND_PAGE; the page
 * does not change until the next step. */
enum rbx_behind_held rbx_write_behind_find(const struct rbx_write_behind *behind,
					   uint64_t block,
					   const struct rbx_behind_page **page);

/* Whether the faster memory must not be asked for these blocks, because for one of them it
 * would not return what was acknowledged last. */
bool rbx_write_behind_is_only_here(const struct rbx_write_behind *behind,
				   uint64_t block, uint32_t count);

/* Whether nothing is under way. */
static inline bool rbx_write_behind_is_idle(const struct rbx_write_behind *behind)
{
	return behind->free_count == behind->page_count &&
	       !behind->waiting_last;
}

#endif
