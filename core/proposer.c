/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * proposer.c - opens and changes the membership of a volume; see proposer.h.
 */
#include "core/proposer.h"

static void look(struct rbx_proposer *p)
{
	if (p->state == RBX_PROPOSER_OPENING && p->membership.count &&
	    rbx_membership_can_open(&p->membership, &p->promised))
		p->state = RBX_PROPOSER_OPENED;
	else if (p->state == RBX_PROPOSER_PROPOSED &&
		 rbx_membership_can_change(&p->membership, &p->accepted))
		p->state = RBX_PROPOSER_CHOSEN;
}

void rbx_proposer_open(struct rbx_proposer *p, uint64_t epoch)
{
	RBX_ASSERT(epoch);
	p->state = RBX_PROPOSER_OPENING;
	p->epoch = epoch;
	p->membership.epoch = 0;
	p->membership.version = 0;
	p->membership.count = 0;
	p->promised.count = 0;
	p->accepted.count = 0;
}

void rbx_proposer_create(struct rbx_proposer *p, uint64_t epoch, const uint64_t *incarnations,
			 uint32_t count)
{
	RBX_ASSERT(count && count <= RBX_MEMBERS_MAX);
	rbx_proposer_open(p, epoch);
	p->membership.count = count;
	for (uint32_t i = 0; i < count; i++)
		p->membership.members[i] = (struct rbx_member){
			.incarnation = incarnations[i],
			.state = RBX_MEMBER_IN,
		};
}

void rbx_proposer_promised(struct rbx_proposer *p, uint64_t incarnation,
			   const struct rbx_membership *membership)
{
	if (p->state == RBX_PROPOSER_SHUT_OUT)
		return;
	rbx_member_set_add(&p->promised, incarnation);
	/* Once enough have promised, nothing newer can have been chosen. But somebody may have
	 * seen it: by what is newer it was decided which servers to ask, or a name was shown
	 * that a volume has. */
	if ((p->state == RBX_PROPOSER_OPENING || p->state == RBX_PROPOSER_OPENED) &&
	    rbx_membership_is_newer(membership, &p->membership)) {
		p->membership = *membership;
		p->state = RBX_PROPOSER_OPENING;
	}
	look(p);
}

static void propose(struct rbx_proposer *p)
{
	p->membership.epoch = p->epoch;
	p->accepted.count = 0;
	p->state = RBX_PROPOSER_PROPOSED;
}

void rbx_proposer_adopt(struct rbx_proposer *p)
{
	RBX_ASSERT(p->state == RBX_PROPOSER_OPENED);
	p->membership.version++;
	propose(p);
}

bool rbx_proposer_overrule(struct rbx_proposer *p, const struct rbx_member_set *left)
{
	struct rbx_membership kept = p->membership;
	uint32_t i;

	RBX_ASSERT(p->state == RBX_PROPOSER_OPENING || p->state == RBX_PROPOSER_OPENED);
	kept.count = 0;
	for (i = 0; i < p->membership.count; i++)
		if (rbx_member_set_has(left, p->membership.members[i].incarnation))
			kept.members[kept.count++] = p->membership.members[i];
	if (rbx_membership_fault(&kept))
		return false;
	p->membership = kept;
	p->membership.version++;
	propose(p);
	return true;
}

void rbx_proposer_propose(struct rbx_proposer *p, const struct rbx_membership *membership)
{
	RBX_ASSERT(p->state == RBX_PROPOSER_CHOSEN);
	RBX_ASSERT(membership->version == p->membership.version + 1);
	p->membership = *membership;
	propose(p);
}

void rbx_proposer_withdraw(struct rbx_proposer *p, const struct rbx_membership *before)
{
	uint64_t version = p->membership.version;

	RBX_ASSERT(p->state == RBX_PROPOSER_PROPOSED && before->version < version);
	p->membership = *before;
	p->membership.version = version;
	p->state = RBX_PROPOSER_CHOSEN;
}

void rbx_proposer_accepted(struct rbx_proposer *p, uint64_t incarnation, uint64_t version)
{
	if (p->state != RBX_PROPOSER_PROPOSED || version != p->membership.version)
		return;
	rbx_member_set_add(&p->accepted, incarnation);
	look(p);
}

void rbx_proposer_refused(struct rbx_proposer *p)
{
	p->state = RBX_PROPOSER_SHUT_OUT;
}
