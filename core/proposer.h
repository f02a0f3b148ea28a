/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * proposer.h - a writer's part in the membership of its volume: opens it, and changes it. See
 * membership.h.
 *
 *	open()                    for a volume that exists; create() for one that does not
 *	promised() ...            each answer of a server, until the state is OPENED
 *	adopt()                   proposes the membership that was found, under our epoch
 *	accepted() ...            until the state is CHOSEN: we are the writer
 *	propose()                 a change, and accepted() until it is CHOSEN, and so on
 *
 * refused(), at any time: another client has a later epoch. That is the end.
 *
 * What was found may not have been chosen by the writer before. It is proposed again as it is,
 * so it does not matter. Changes come after that.
 *
 * The host sends, repeats and waits. It is told by state and membership what to send to whom:
 * a server that has not promised first. Answers may come late, twice, or never.
 */
#ifndef RBX_PROPOSER_H
#define RBX_PROPOSER_H

#include "core/membership.h"

enum rbx_proposer_state {
	RBX_PROPOSER_OPENING, /* too few servers have promised */
	RBX_PROPOSER_OPENED, /* membership is the newest that can have been chosen: adopt() */
	RBX_PROPOSER_PROPOSED, /* membership is not chosen yet */
	RBX_PROPOSER_CHOSEN, /* membership is in force */
	RBX_PROPOSER_SHUT_OUT, /* another client opened the volume: for good */
};

struct rbx_proposer {
	enum rbx_proposer_state state;
	uint64_t epoch;
	struct rbx_membership membership;
	struct rbx_member_set promised; /* servers that have promised our epoch */
	struct rbx_member_set accepted; /* servers that have accepted membership */
};

/* epoch: higher than all that the client has heard of; each is used by one client only. */
void rbx_proposer_open(struct rbx_proposer *proposer, uint64_t epoch);
/* With these servers, all of them IN. */
void rbx_proposer_create(struct rbx_proposer *proposer, uint64_t epoch,
			 const uint64_t *incarnations, uint32_t count);

/* A server has promised our epoch, and had accepted this membership: one with epoch 0 if none,
 * else it has no fault. */
void rbx_proposer_promised(struct rbx_proposer *proposer, uint64_t incarnation,
			   const struct rbx_membership *membership);
void rbx_proposer_accepted(struct rbx_proposer *proposer, uint64_t incarnation,
			   uint64_t version);
void rbx_proposer_refused(struct rbx_proposer *proposer);

/* What was found, under our epoch. In state OPENED. */
void rbx_proposer_adopt(struct rbx_proposer *proposer);
/*
 * The same, but only these members of it are left: an operator has said that the others will not
 * come back. So it needs the votes of none of those, neither to be opened nor to be chosen; and if
 * too few have promised, it may not be the newest. In state OPENING or OPENED, when all that are
 * left have promised. false, and nothing has changed: none that is left is IN.
 */
bool rbx_proposer_overrule(struct rbx_proposer *proposer, const struct rbx_member_set *left);
/* A change of what was chosen: made by rbx_membership_next(). In state CHOSEN. */
void rbx_proposer_propose(struct rbx_proposer *proposer,
			  const struct rbx_membership *membership);
/*
 * What was proposed is taken back: only servers that it makes members were asked to accept it, so
 * it cannot have been chosen, and before, which was, is in force. Its version is used up, for one
 * of them may have accepted. In state PROPOSED.
 */
void rbx_proposer_withdraw(struct rbx_proposer *proposer, const struct rbx_membership *before);

#endif
