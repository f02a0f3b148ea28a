/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * membership.c - quorums; see membership.h.
 */
#include "core/membership.h"

struct tally {
	uint32_t voters;
	uint32_t votes;
};

static void count(struct tally *tally, bool has_voted)
{
	tally->voters++;
	tally->votes += has_voted;
}

/* Of the voters of before and of after. */
static void count_both(const struct rbx_membership *membership, const struct rbx_member_set *set,
		       struct tally *before, struct tally *after)
{
	*before = *after = (struct tally){ 0 };
	for (uint32_t i = 0; i < membership->count; i++) {
		const struct rbx_member *member = &membership->members[i];
		const bool has_voted = rbx_member_set_has(set, member->incarnation);

		if (member->was_in)
			count(before, has_voted);
		if (member->state == RBX_MEMBER_IN)
			count(after, has_voted);
	}
}

static uint32_t open_quorum(const struct tally *tally)
{
	return tally->voters / 2 + 1;
}

bool rbx_membership_can_open(const struct rbx_membership *membership,
			     const struct rbx_member_set *granted)
{
	struct tally before, after;

	count_both(membership, granted, &before, &after);
	/* The first membership has no voters of before. */
	return (!before.voters || before.votes >= open_quorum(&before)) &&
	       after.votes >= open_quorum(&after);
}

bool rbx_membership_can_change(const struct rbx_membership *membership,
			       const struct rbx_member_set *accepted)
{
	struct tally before, after;

	count_both(membership, accepted, &before, &after);
	return (!before.voters ||
		before.votes + open_quorum(&before) > before.voters) &&
	       after.votes + open_quorum(&after) > after.voters;
}

bool rbx_membership_is_joint(const struct rbx_membership *membership)
{
	for (uint32_t i = 0; i < membership->count; i++)
		if (membership->members[i].was_in !=
		    (membership->members[i].state == RBX_MEMBER_IN))
			return true;
	return false;
}

void rbx_membership_next(struct rbx_membership *next, const struct rbx_membership *chosen)
{
	*next = *chosen;
	next->version++;
	for (uint32_t i = 0; i < next->count; i++)
		next->members[i].was_in = next->members[i].state == RBX_MEMBER_IN;
}

struct rbx_member *rbx_membership_find(struct rbx_membership *membership, uint64_t incarnation)
{
	for (uint32_t i = 0; i < membership->count; i++)
		if (membership->members[i].incarnation == incarnation)
			return &membership->members[i];
	return NULL;
}

const char *rbx_membership_fault(const struct rbx_membership *membership)
{
	bool has_voter = false;

	if (!membership->epoch || !membership->version)
		return "it has no epoch or no version";
	if (membership->version > UINT64_MAX / 2)
		return "its version leaves no room for others";
	if (membership->count > RBX_MEMBERS_MAX)
		return "it has too many members";
	for (uint32_t i = 0; i < membership->count; i++) {
		const struct rbx_member *member = &membership->members[i];

		if (!member->incarnation)
			return "a member has no incarnation";
		if (member->state > RBX_MEMBER_OUT)
			return "a member is in no state";
		for (uint32_t j = 0; j < i; j++)
			if (membership->members[j].incarnation == member->incarnation)
				return "a member is in it twice";
		has_voter |= member->state == RBX_MEMBER_IN;
	}
	return has_voter ? NULL : "no member votes";
}
