/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention.h - which slabs of a volume the keeper has to look at, and in which order.
 *
 * Most slabs want nothing, and there may be many. So the keeper has lists of those
 * that do, and its work is that of what happened, whatever the volume's size:
 *
 *	a step of a slab    rbx_attention_note()   under the slab's lock, any thread
 *	the keeper          rbx_attention_take()   from the inbox to the lists
 *	                    rbx_attention_first()  of a list; does something for it
 *	                    rbx_attention_relist() where it belongs now, or parked
 *
 * The order of the lists is that of need. Writes that wait for their first memory go
 * first. Then comes what one death separates from loss, then what two do: each is
 * copied when its memory has been borrowed, and borrowed shortly before. Then what
 * servers want back, by the time at which they will take it; then what is given back.
 * What no server would lend is parked, so that it is not asked for again at once.
 *
 * A note also keeps the census: how many slabs are in which health, and how many are
 * one death from loss or have lost something.
 *
 * The inbox is a stack to which any thread adds and of which the keeper takes all;
 * a slab is in it once. The lists are the keeper's alone. Nothing is allocated: all of
 * it is 20 bytes a slab.
 */
#ifndef RBX_ATTENTION_H
#define RBX_ATTENTION_H

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
	RBX_LIST_LEAVING, /* a server wants one back: a list for each server */
	RBX_LIST_RETURN, /* only has something to give back */
	RBX_LIST_LEND_WAITS, /* parked: writes wait for a server that is away */
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

struct rbx_attention_node {
	uint32_t inbox_next; /* index of a slab plus 1; 0: the last */
	uint32_t next, previous; /* the same, in its list */
	uint32_t until; /* when a server takes it back: see rbx_attention_until() */
	/* The keeper's: */
	uint16_t list : 6; /* enum rbx_attention_list */
	uint16_t server : 10; /* of RBX_LIST_LEAVING */
	/* The slab's lock: */
	uint8_t counted; /* its health plus 1, and its marks; 0: as it began */
	bool is_in_inbox;
};
RBX_STATIC_ASSERT(RBX_SERVERS_MAX <= 1u << 10 && RBX_LISTS <= 1u << 6,
		  "each server and each list has its number");

struct rbx_attention_ends {
	uint32_t first, last; /* index of a slab plus 1 */
	uint32_t count;
};

struct rbx_attention {
	const struct rbx_slab_shape *shape;
	struct rbx_attention_node *nodes;
	uint32_t inbox; /* atomic */
	uint32_t health_counts[RBX_SLAB_HEALTHS]; /* atomic */
	uint32_t mark_counts[RBX_SLAB_MARKS]; /* atomic */
	uint8_t health_first; /* of a slab that was never noted */

	/* All below is the keeper's. */
	uint32_t taken; /* from the inbox, in order */
	struct rbx_attention_ends lists[RBX_LISTS];
	struct rbx_attention_ends leaving[RBX_SERVERS_MAX];
	struct rbx_server_set leaving_servers; /* whose list is not empty */
};

size_t rbx_attention_size(uint32_t slab_count);

/* nodes: zeroed, lent for the life of the map. The slabs are new. */
void rbx_attention_init(struct rbx_attention *attention, void *nodes,
			const struct rbx_slab_shape *shape,
			uint32_t slab_count);

/* ---- Any thread, with the slab's lock held ----------------------------------*/

void rbx_attention_put(struct rbx_attention *attention, struct rbx_slab *slab);

/* After steps of a slab. Returns whether the keeper is to be woken. */
static inline bool rbx_attention_note(struct rbx_attention *attention,
				      struct rbx_slab *slab)
{
	if (!slab->attention)
		return false;
	rbx_attention_put(attention, slab);
	return true;
}

/* A server takes a replica of this slab back at that time; UINT64_MAX: at none. */
void rbx_attention_until(struct rbx_attention *attention,
			 const struct rbx_slab *slab, uint64_t until_ns);

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

/* ---- The keeper, with no lock held -------------------------------------------*/

/* Puts at most max slabs from the inbox on their lists. Returns whether there are
 * more. */
bool rbx_attention_take(struct rbx_attention *attention, uint32_t max);

/* The slab to look at first; NULL: none. */
struct rbx_slab *rbx_attention_first(struct rbx_attention *attention,
				     enum rbx_attention_list list);

/* Puts a slab where it belongs after what was done for it. parked: on the list of
 * those for which nothing can be done now, if it still wants to be lent something. */
void rbx_attention_relist(struct rbx_attention *attention,
			  struct rbx_slab *slab, bool parked);

static inline uint32_t
rbx_attention_length(const struct rbx_attention *attention,
		     enum rbx_attention_list list)
{
	return attention->lists[list].count;
}

#endif
