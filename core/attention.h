/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention.h - which slabs of a volume the upkeep thread has to look at, and in
 * which order.
 *
 * Most slabs want nothing, and there may be many. So the upkeep thread has lists of
 * those that do, and its work is that of what happened, whatever the volume's size:
 *
 *	a step of a slab    rbx_attention_note()   under the slab's lock, any thread
 *	the upkeep thread   rbx_attention_take()   from the inbox to the lists
 *	                    rbx_attention_first()  of a list; does something for it
 *	                    rbx_attention_relist() where it belongs now, or parked
 *
 * The order of the lists is that of need. Writes that wait for their first memory go
 * first. Then comes what one death separates from loss, then what two do: each is
 * copied when its memory has been borrowed, and borrowed shortly before. Then what
 * servers want back, by the time at which they will take it; then what is given back.
 * What no server would lend is parked, so that it is not asked for again at once;
 * what is only short of something that passes by itself is parked beside that.
 *
 * Within a list the slabs go round by their index, on from where the upkeep thread
 * was last: so each has its turn before any has a second one, and nobody starves.
 *
 * What servers want back has a list for each second of the time at which they take it,
 * in a circle of RBX_DUE_SLOTS seconds or so: what is to be taken first is in the list
 * that comes next, as seen from the time at which one was asked for last. An eviction
 * whose time is farther than RBX_EVICT_NEAR_NS counts as having none, until the server
 * reminds, which it does every second (RBX_EVICT_REMIND_NS).
 *
 * A note also keeps the census: how many slabs are in which health, and how many are
 * one death from loss or have lost something.
 *
 * The inbox (index_inbox.h) takes notes from any thread; a slab is in it once. The
 * lists (index_sets.h) are the upkeep thread's alone. Nothing is allocated: a slab
 * takes a byte for its list, one for what was counted and told of it, and 1.5 bits
 * beside.
 */
#ifndef RBX_ATTENTION_H
#define RBX_ATTENTION_H

#include "core/index_inbox.h"
#include "core/index_sets.h"
#include "core/slab.h"

/* In the order in which they are served. */
enum rbx_attention_list {
	RBX_LIST_NONE, /* wants nothing */
	RBX_LIST_LEND, /* blank or dead, and writes wait */
	RBX_LIST_COPY_ONE, /* one live copy; memory for another is there */
	RBX_LIST_BORROW_ONE, /* one live copy */
	RBX_LIST_COPY_SOME, /* fewer copies than wanted, and memory for another */
	RBX_LIST_BORROW_SOME, /* fewer copies than wanted */
	RBX_LIST_COPY_LEAVING, /* a server wants one back; memory is there */
	RBX_LIST_LEAVING, /* a server wants one back: first what it takes first */
	RBX_LIST_RETURN, /* only has something to give back */
	RBX_LIST_LEND_WAITS, /* parked: writes wait for a server that is away */
	RBX_LIST_BORROW_WAITS, /* parked: no server took one yet, which passes */
	RBX_LIST_STUCK, /* parked: no server took a replica */
	RBX_LISTS,
};

#define RBX_SLAB_HEALTHS (RBX_SLAB_DEAD + 1)

/* What else is counted of a slab, whatever its health. */
enum rbx_slab_mark {
	RBX_MARK_LAST, /* only one server has all: one death from loss */
	RBX_MARK_HOLES, /* it was lost, and not all of it was written since */
	RBX_SLAB_MARKS,
};

/* The circle of times at which servers take memory back. One slot is for what was due
 * just now. */
#define RBX_DUE_SHIFT 30u /* log2 of a slot in ns */
#define RBX_DUE_SLOTS 15u
RBX_STATIC_ASSERT((RBX_EVICT_NEAR_NS >> RBX_DUE_SHIFT) + 2 <= RBX_DUE_SLOTS,
		  "no two times are a circle apart");

/* Sets of the lists: their numbers; behind them those of the circle. */
#define RBX_ATTENTION_SETS (RBX_LISTS - 1 + RBX_DUE_SLOTS)
RBX_STATIC_ASSERT(RBX_ATTENTION_SETS <= RBX_INDEX_SETS_MAX, "each has a number");

struct rbx_attention {
	const struct rbx_slab_shape *shape;
	struct rbx_index_inbox inbox;
	/* Of each slab, guarded by its lock: in the lower half what is counted of it,
	 * less what is of a slab that was never noted; in the upper half the slot of
	 * the time at which a server takes a replica back, plus 1; 0: none. */
	uint8_t *noted;
	uint8_t counted_first;
	uint32_t due_now; /* atomic: slot of the time when an eviction came last */
	uint32_t health_counts[RBX_SLAB_HEALTHS]; /* atomic */
	uint32_t mark_counts[RBX_SLAB_MARKS]; /* atomic */

	/* The upkeep thread's. */
	struct rbx_index_sets lists;
	uint32_t due_count; /* slabs in the circle */
	uint32_t next[RBX_ATTENTION_SETS + 1]; /* where to go on in each set */
};

size_t rbx_attention_size(uint32_t slab_count);

/* memory: zeroed, lent for the life of the map, and aligned for words. The slabs are
 * new. */
void rbx_attention_init(struct rbx_attention *attention, void *memory,
			const struct rbx_slab_shape *shape,
			uint32_t slab_count);

/* ---- Any thread, with the slab's lock held ----------------------------------*/

void rbx_attention_put(struct rbx_attention *attention, struct rbx_slab *slab);

/* After steps of a slab. Returns whether the upkeep thread is to be woken. */
static inline bool rbx_attention_note(struct rbx_attention *attention,
				      struct rbx_slab *slab)
{
	if (!slab->attention)
		return false;
	rbx_attention_put(attention, slab);
	return true;
}

/* A server has said at this time that it takes a replica of this slab back at that
 * time; UINT64_MAX: at none. */
void rbx_attention_until(struct rbx_attention *attention,
			 const struct rbx_slab *slab, uint64_t now_ns,
			 uint64_t until_ns);

static inline uint32_t
rbx_attention_count(const struct rbx_attention *attention,
		    enum rbx_slab_health health)
{
	return RBX_LOAD_RELAXED(&attention->health_counts[health]);
}

static inline uint32_t
rbx_attention_marked(const struct rbx_attention *attention,
		     enum rbx_slab_mark mark)
{
	return RBX_LOAD_RELAXED(&attention->mark_counts[mark]);
}

/* ---- The upkeep thread, with no lock held ------------------------------------*/

/* Puts at most max slabs from the inbox on their lists. Returns whether there are
 * more. */
bool rbx_attention_take(struct rbx_attention *attention, uint32_t max);

/* The slab to look at next; NULL: none. */
struct rbx_slab *rbx_attention_first(struct rbx_attention *attention,
				     enum rbx_attention_list list);

/* Whether a slab that still wants to be lent something is tried again at once. */
enum rbx_attention_parking {
	RBX_PARK_NOT,
	RBX_PARK_WAITS, /* nothing can be done for it now; that passes by itself */
	RBX_PARK_STUCK, /* nothing can be done for it now */
};

/* Puts a slab where it belongs after what was done for it. */
void rbx_attention_relist(struct rbx_attention *attention,
			  struct rbx_slab *slab,
			  enum rbx_attention_parking parking);

static inline uint32_t
rbx_attention_length(const struct rbx_attention *attention,
		     enum rbx_attention_list list)
{
	uint32_t count = rbx_index_sets_count(&attention->lists, list);

	return list == RBX_LIST_LEAVING ? count + attention->due_count : count;
}

#endif
