/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * membership.h - which servers a named volume has, which of them may be behind, and which
 * vote on that (docs/named-volumes.md).
 *
 * The same membership is kept by the servers of the volume, and changed by its writer. A change
 * has been chosen when a quorum has accepted it. A client that opens the volume asks for the
 * memberships of a quorum, and takes the newest. Two rules make sure that it hears of each
 * chosen one:
 *
 * - An open needs more than half of the voters; a change needs the others and one more. So
 *   the quorum of an open has a server in common with that of each change. Changes need few,
 *   because they are made when servers are lost; with two voters the writer goes on without
 *   one of them.
 * - If a change is to the voters themselves, it names those of before and those of after, and
 *   needs a quorum of both, as does an open that hears of it. When it has been chosen, the
 *   next membership names the new ones only. That one needs no server of before.
 *
 * A server is named by its incarnation, so one that has lost its memory votes no more. Servers
 * that are OUT do not vote: a writer may lose one after another, as long as each time a
 * quorum of the rest is left.
 *
 * acceptor.h is a server's part in this, proposer.h the writer's.
 */
#ifndef RBX_MEMBERSHIP_H
#define RBX_MEMBERSHIP_H

#include "core/limits.h"
#include "core/port.h"

enum rbx_member_state {
	RBX_MEMBER_IN, /* what it has of the volume is complete; it votes */
	RBX_MEMBER_OUT, /* it may have missed writes */
};

struct rbx_member {
	uint64_t incarnation;
	uint8_t state; /* enum rbx_member_state */
	bool was_in; /* it voted before this membership; its vote is needed until the next */
};

struct rbx_membership {
	uint64_t epoch; /* of the writer that proposed it; 0: there is none */
	uint64_t version; /* grows with each membership of a volume */
	uint32_t count;
	struct rbx_member members[RBX_MEMBERS_MAX];
};

/* A set of servers, by their incarnations. */
struct rbx_member_set {
	uint32_t count;
	uint64_t incarnations[RBX_MEMBERS_MAX];
};

static inline bool rbx_membership_is_newer(const struct rbx_membership *a,
					   const struct rbx_membership *b)
{
	return a->epoch > b->epoch || (a->epoch == b->epoch && a->version > b->version);
}

/* What is wrong with one that came from another machine, or NULL. */
const char *rbx_membership_fault(const struct rbx_membership *membership);

/* NULL: it is none of them. */
struct rbx_member *rbx_membership_find(struct rbx_membership *membership,
				       uint64_t incarnation);

/* Whether these servers are enough to open the volume, or to change its membership. */
bool rbx_membership_can_open(const struct rbx_membership *membership,
			     const struct rbx_member_set *granted);
bool rbx_membership_can_change(const struct rbx_membership *membership,
			       const struct rbx_member_set *accepted);

/* Whether servers vote that the next membership does not need. */
bool rbx_membership_is_joint(const struct rbx_membership *membership);

/* Makes the next version of one that was chosen, without changes. */
void rbx_membership_next(struct rbx_membership *next,
			 const struct rbx_membership *chosen);

static inline bool rbx_member_set_has(const struct rbx_member_set *set,
				      uint64_t incarnation)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->incarnations[i] == incarnation)
			return true;
	return false;
}

/* A full set takes no more: of so many servers none is a member. */
static inline void rbx_member_set_add(struct rbx_member_set *set, uint64_t incarnation)
{
	if (!rbx_member_set_has(set, incarnation) && set->count < RBX_MEMBERS_MAX)
		set->incarnations[set->count++] = incarnation;
}

#endif
