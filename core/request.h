/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - the fragment: what travels through the core.
 *
 * A program's request becomes one or more fragments. Each is at most fragment_bytes long and
 * goes to one peer. Fragments wait in the merge queue of their peer. The planner makes work
 * requests from them (work.h), with several neighbours in one. A fragment completes exactly
 * once, with its own status, whatever it was merged with.
 *
 * Ownership: the submitter lets the core use a fragment, and the memory at local_addr, until
 * done() is called; then both are the submitter's again.
 */
#ifndef RBX_REQUEST_H
#define RBX_REQUEST_H

#include "core/limits.h"
#include "core/port.h"

/* A link of the merge queue and of the list of a work request's members. */
struct rbx_node {
	struct rbx_node *next;
};

enum rbx_direction {
	RBX_DIRECTION_READ,
	RBX_DIRECTION_WRITE,
	/*
	 * Messages and atomics: posted in the order in which they were submitted, on a
	 * channel of one ring, never merged, and never sent twice. The host knows what else
	 * they are, from the structure around the fragment. Always with
	 * RBX_FRAGMENT_ORDERED_FLAGS.
	 */
	RBX_DIRECTION_ORDERED,
	RBX_DIRECTIONS,
};

enum rbx_fragment_flags {
	RBX_FRAGMENT_FENCE = 1, /* after all earlier fragments of its peer */
	/* not to be merged (RBX_NO_MERGE, or sent again after a merged work request failed) */
	RBX_FRAGMENT_ALONE = 2,
	/* a thread waits for it: it goes before fragments for which none waits */
	RBX_FRAGMENT_URGENT = 4,
	RBX_FRAGMENT_HAS_LKEY = 8, /* lkey covers the memory at local_addr */
	/* set by the core: sent before, so no fence that waits now may pass it */
	RBX_FRAGMENT_AGAIN = 16,
	/* once posted, it is not sent again when the connection breaks (RBX_NO_RESEND) */
	RBX_FRAGMENT_NO_RESEND = 32,
};

#define RBX_FRAGMENT_ORDERED_FLAGS \
	(RBX_FRAGMENT_ALONE | RBX_FRAGMENT_HAS_LKEY | RBX_FRAGMENT_NO_RESEND)

struct rbx_fragment {
	struct rbx_node node; /* the core's, from submit until done() */
	uint8_t direction; /* enum rbx_direction */
	uint8_t flags; /* enum rbx_fragment_flags */
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t local_addr;
	uint32_t length_bytes;
	uint32_t lkey; /* if RBX_FRAGMENT_HAS_LKEY */
	/* These eight bytes are 0 at submit. */
	int32_t status; /* at the end 0 or -errno */
	uint16_t retries_count; /* how often it was sent again */
	/* how often it was sent again because another fragment's failure broke the connection */
	uint16_t flushes_count;
	/* Takes ended fragments from a list, up to the first with another done(), which it
	 * returns, or NULL. So what they have in common is done once. */
	struct rbx_fragment *(*done)(struct rbx_fragment *list);
};

static inline struct rbx_fragment *rbx_fragment_of(struct rbx_node *node)
{
	return RBX_CONTAINER_OF(node, struct rbx_fragment, node);
}

/* The next of a list, or NULL. */
static inline struct rbx_fragment *
rbx_fragment_next(const struct rbx_fragment *fragment)
{
	return fragment->node.next ? rbx_fragment_of(fragment->node.next) :
				     NULL;
}

/* Puts the fragments linked from first to last at the end of a list. *list_last is valid only
 * if the list has a first. */
static inline void rbx_fragment_append(struct rbx_fragment **list_first,
				       struct rbx_fragment **list_last,
				       struct rbx_fragment *first,
				       struct rbx_fragment *last)
{
	last->node.next = NULL;
	if (!*list_first)
		*list_first = first;
	else
		(*list_last)->node.next = &first->node;
	*list_last = last;
}

#endif
