/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* membership_change.c - see membership_change.h. */
#include "core/membership_change.h"

/* The first membership of a volume has nobody who was in before. */
static bool is_first(const struct rbx_membership *membership)
{
	uint32_t i;

	for (i = 0; i < membership->count; i++)
		if (membership->members[i].was_in)
			return false;
	return true;
}

enum rbx_membership_place rbx_membership_place(const struct rbx_membership *membership,
					       uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < membership->count; i++) {
		const struct rbx_member *member = &membership->members[i];

		if (member->incarnation != incarnation)
			continue;
		if (member->state == RBX_MEMBER_OUT)
			return RBX_PLACE_OUT;
		return member->was_in || is_first(membership) ? RBX_PLACE_IN :
								RBX_PLACE_COMES;
	}
	return RBX_PLACE_NOT;
}

bool rbx_membership_add(struct rbx_membership *next, uint64_t incarnation)
{
	struct rbx_member *member = rbx_membership_find(next, incarnation);

	RBX_ASSERT(incarnation && !(member && member->state == RBX_MEMBER_IN));
	if (!member) {
		if (next->count == RBX_MEMBERS_MAX)
			return false;
		member = &next->members[next->count++];
	}
	*member = (struct rbx_member){
		.incarnation = incarnation,
		.state = RBX_MEMBER_IN,
	};
	return true;
}

bool rbx_membership_is_acceptable(const struct rbx_membership *next,
				  const struct rbx_member_set *away)
{
	struct rbx_member_set stay = { .count = 0 };
	uint32_t i;

	for (i = 0; i < next->count; i++)
		if (next->members[i].state == RBX_MEMBER_IN &&
		    !rbx_member_set_has(away, next->members[i].incarnation))
			rbx_member_set_add(&stay, next->members[i].incarnation);
	return stay.count && rbx_membership_can_change(next, &stay);
}

static bool may_go(const struct rbx_member *member)
{
	return member->state == RBX_MEMBER_OUT && !member->was_in;
}

void rbx_membership_forget(struct rbx_membership *next, uint64_t incarnation)
{
	struct rbx_member *member = rbx_membership_find(next, incarnation);
	uint32_t i;

	if (member && may_go(member))
		*member = next->members[--next->count];
	for (i = 0; next->count == RBX_MEMBERS_MAX && i < next->count; i++)
		if (may_go(&next->members[i]))
			next->members[i] = next->members[--next->count];
}
