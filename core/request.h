/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - what travels through the core.
 *
 * A program's request becomes one or more fragments: each is at most
 * fragment_bytes long and goes to one peer. Fragments wait in the merge queue
 * of their peer; the planner makes work requests of them (work.h): several
 * neighbours in one. A fragment completes exactly once, with its own status,
 * whatever it was merged with.
 *
 * Ownership: whoever submits a fragment lends it, and the memory behind
 * local_addr, until done() is called; then both are the submitter's again.
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
	 * channel of one ring, never merged, and never sent twice. What else they are
	 * is the host's, which finds it around the fragment. Always with
	 * RBX_FRAGMENT_ORDERED_FLAGS.
	 */
	RBX_DIRECTION_ORDERED,
	RBX_DIRECTIONS,
};

enum rbx_fragment_flags {
	RBX_FRAGMENT_FENCE = 1, /* after all earlier fragments of its peer */
	RBX_FRAGMENT_ALONE = 2, /* not to be merged (RBX_NO_MERGE, or sent
				   again after a merged failure) */
	RBX_FRAGMENT_URGENT = 4, /* somebody waits: before what nobody does */
	RBX_FRAGMENT_HAS_LKEY = 8, /* lkey covers the memory at local_addr */
	RBX_FRAGMENT_AGAIN = 16, /* the core's: sent before, so no fence that
				    waits now may pass it */
	RBX_FRAGMENT_NO_RESEND = 32, /* once posted it ends with the connection: it is
					not sent again (RBX_NO_RESEND) */
};

#define RBX_FRAGMENT_ORDERED_FLAGS \
	(RBX_FRAGMENT_ALONE | RBX_FRAGMENT_HAS_LKEY | RBX_FRAGMENT_NO_RESEND)

struct rbx_fragment {
	struct rbx_node node; /* the core's, from submit until done() */
	uint8_t direction; /* enum rbx_direction */
	uint8_t flags; /* enum rbx_fragment_flags */
	uint8_t retries_count; /* in: 0; how often it was sent again */
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t local_addr;
	uint32_t length_bytes;
	uint32_t lkey; /* where RBX_FRAGMENT_HAS_LKEY */
	int32_t status; /* in: 0; out: 0 or -errno */
	uint16_t flushes_count; /* in: 0; how often it was sent again because
				   another one's failure broke the connection */
	/* Takes the fragments that have ended from a list, up to the first with
	 * another done(), which it returns, or NULL: what they have in common can be
	 * done once. */
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

/* Puts the fragments linked from first to last at the end of a list, whose last
 * is of use only where it has a first. */
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
