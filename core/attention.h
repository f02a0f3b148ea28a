/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention.h - which slabs of a volume the upkeep thread has to look at, and in which order.
 *
 * A volume may have many slabs, and most of them need nothing. So the upkeep thread keeps
 * lists of those that do. Its work depends on what happened and not on the size of the
 * volume:
 *
 *	a step of a slab    rbx_attention_note()   under the slab's lock, any thread
 *	the upkeep thread   rbx_attention_take()   from the inbox to the lists
 *	                    rbx_attention_first()  of a list; does something for it
 *	                    rbx_attention_relist() where it belongs now, or parked
 *
 * The lists are in the order of need. First come slabs with writes that wait for their first
 * memory. Then come slabs that one death would lose, then those that two would. Each of these
 * is copied once its memory has been borrowed, and borrowed shortly before. Then come slabs
 * that servers want back, ordered by the time at which they will be revoked, and last slabs
 * with something to give back. One exception: memory for a few slabs that servers want back
 * is borrowed before all else (upkeep.c), because they have a deadline.
 *
 * A slab is parked if no server would lend for it, so that servers are not asked again at
 * once. A slab that lacks only something that passes by itself is parked on a list of its
 * own.
 *
 * Within a list the slabs are taken by index, from where the upkeep thread was last. So each
 * slab is served before any is served twice, and none starves.
 *
 * Slabs that servers want back are on one list for each second of the time at which they will
 * be revoked. The lists form a circle of about RBX_DUE_SLOTS seconds. The circle is read from
 * the slot of the time at which an eviction came last. An eviction that is due later than
 * RBX_EVICT_NEAR_NS from now counts as having no time. The server sends a reminder every
 * second (RBX_EVICT_REMIND_NS), and one of these will be near enough.
 *
 * A note also keeps the census: how many slabs are in which health, and how many are
 * one death from loss, have lost something, or have replicas that would be lost together.
 *
 * The inbox (index_inbox.h) takes notes from any thread; a slab is in it at most once. Only
 * the upkeep thread uses the lists (index_sets.h). Nothing is allocated. A slab needs one
 * byte for its list, one for what was counted of it, and 1.5 bits besides.
 */
#ifndef RBX_ATTENTION_H
#define RBX_ATTENTION_H

#include "core/index_inbox.h"
#include "core/index_sets.h"
#include "core/slab.h"

/* In the order in which they are served, except that LEAVING may go first (upkeep.c). */
enum rbx_attention_list {
	RBX_LIST_NONE, /* wants nothing */
	RBX_LIST_LEND, /* blank or dead, and writes wait */
	RBX_LIST_COPY_ONE, /* one live copy; memory for another is there */
	RBX_LIST_BORROW_ONE, /* one live copy */
	RBX_LIST_COPY_SOME, /* fewer copies than wanted, and memory for another */
	RBX_LIST_BORROW_SOME, /* fewer copies than wanted */
	RBX_LIST_COPY_LEAVING, /* a server wants one back; memory is there */
	RBX_LIST_LEAVING, /* a server wants one back; the one that is due first comes first */
	RBX_LIST_RETURN, /* only has a loan to give back */
	RBX_LIST_LEND_WAITS, /* parked: writes wait for a server that is silent */
	RBX_LIST_BORROW_WAITS, /* parked: no server took one yet, for a reason that passes */
	RBX_LIST_STUCK, /* parked: no server would take a replica */
	RBX_LISTS,
};

#define RBX_SLAB_HEALTHS (RBX_SLAB_DEAD + 1)

/* Further counts of slabs, whatever their health. */
enum rbx_slab_mark {
	RBX_MARK_LAST, /* only one server has all of it: one death from loss */
	RBX_MARK_HOLES, /* it was lost, and not all of it has been written since */
	RBX_MARK_TOGETHER, /* whole, but two replicas are in one failure domain */
	RBX_SLAB_MARKS,
};

/* The circle of times at which servers take memory back. One slot is for what was due just now. */
#define RBX_DUE_SHIFT 30u /* log2 of a slot in ns */
#define RBX_DUE_SLOTS 15u
RBX_STATIC_ASSERT((RBX_EVICT_NEAR_NS >> RBX_DUE_SHIFT) + 2 <= RBX_DUE_SLOTS,
		  "no two times are a circle apart");

/* How many sets: the lists, and behind them those of the circle. */
#define RBX_ATTENTION_SETS (RBX_LISTS - 1 + RBX_DUE_SLOTS)
RBX_STATIC_ASSERT(RBX_ATTENTION_SETS <= RBX_INDEX_SETS_MAX, "each has a number");

struct rbx_attention {
	const struct rbx_slab_shape *shape;
	struct rbx_index_inbox inbox;
	/* One byte for each slab, guarded by its lock. The lower half is what is counted of
	 * it, minus what is counted of a slab that was never noted. The upper half is 1 plus
	 * the slot of the time at which a server takes a replica back; 0: none. */
	uint8_t *noted;
	uint8_t counted_first;
	uint32_t due_now; /* atomic: slot of the time when an eviction came last */
	uint32_t health_counts[RBX_SLAB_HEALTHS]; /* atomic */
	uint32_t mark_counts[RBX_SLAB_MARKS]; /* atomic */

	/* Used by the upkeep thread only. */
	struct rbx_index_sets lists;
	uint32_t due_count; /* slabs in the circle */
	uint32_t next[RBX_ATTENTION_SETS + 1]; /* where to go on in each set */
};

size_t rbx_attention_size(uint32_t slab_count);

/* memory: zeroed, aligned for words, borrowed for the life of the map; for slab_max slabs. There
 * are slab_count, and all are new. */
void rbx_attention_init(struct rbx_attention *attention, void *memory,
			const struct rbx_slab_shape *shape, uint32_t slab_max,
			uint32_t slab_count);
/* So many more are there, which are new. Before they are published. */
void rbx_attention_grow(struct rbx_attention *attention, uint32_t slab_count);

/* ---- Any thread, with the slab's lock held ----------------------------------*/

void rbx_attention_put(struct rbx_attention *attention, struct rbx_slab *slab);

/* Called after steps of a slab. Returns whether to wake the upkeep thread. */
static inline bool rbx_attention_note(struct rbx_attention *attention,
				      struct rbx_slab *slab)
{
	if (!slab->attention)
		return false;
	rbx_attention_put(attention, slab);
	return true;
}

/* A server said at now_ns that it takes a replica of this slab back at until_ns; UINT64_MAX:
 * no time is set. */
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

/* The slab to look at next, or NULL. */
struct rbx_slab *rbx_attention_first(struct rbx_attention *attention,
				     enum rbx_attention_list list);

/* Whether a slab that still needs a loan is tried again at once. */
enum rbx_attention_parking {
	RBX_PARK_NOT,
	RBX_PARK_WAITS, /* nothing can be done now; the cause passes by itself */
	RBX_PARK_STUCK, /* nothing can be done now */
};

/* Puts a slab on the list where it belongs after something was done for it. */
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
