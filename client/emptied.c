/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* emptied.c - see emptied.h. */
#include "client/emptied.h"

#include "client/crowd.h"
#include "client/session.h"
#include "core/membership_change.h"

/* A server that is a member and is not asked to open the volume drains, and was heard of all the
 * same: then it is not known who is missing. */
void rbx_emptied_look(struct rbx_emptied *emptied, const struct rbx_crowd *crowd,
		      const struct rbx_wire_record *record)
{
	uint32_t i, new_count = 0;

	*emptied = (struct rbx_emptied){ .new_count = 0 };
	if (crowd->may_change)
		return;
	for (i = 0; i < crowd->count; i++) {
		bool is_member = rbx_record_has_member(
			record, rbx_session_incarnation(crowd->sessions[i]));

		if (is_member && !crowd->has[i])
			return;
		new_count += !is_member;
	}
	if (!crowd->away_count)
		emptied->new_count = new_count;
	emptied->is_one_away = crowd->away_count == 1 && !new_count;
	if (emptied->is_one_away)
		rbx_text_copy(emptied->away, sizeof(emptied->away), crowd->away[0].name);
}

/* How many were not heard of; one of them, or 0. */
static uint32_t unheard(const struct rbx_membership *membership, const struct rbx_member_set *there,
			uint64_t *one)
{
	uint32_t i, count = 0;

	*one = 0;
	for (i = 0; i < membership->count; i++) {
		if (rbx_member_set_has(there, membership->members[i].incarnation))
			continue;
		*one = membership->members[i].incarnation;
		count++;
	}
	return count;
}

uint32_t rbx_emptied_forget(const struct rbx_emptied *emptied, struct rbx_membership *next,
			    const struct rbx_member_set *there)
{
	const struct rbx_membership before = *next;
	uint64_t one;
	uint32_t i;

	if (unheard(next, there, &one) > emptied->new_count)
		return 0;
	for (i = 0; i < before.count; i++)
		if (!rbx_member_set_has(there, before.members[i].incarnation))
			rbx_membership_forget(next, before.members[i].incarnation);
	return before.count - next->count;
}

uint32_t rbx_emptied_put_out(const struct rbx_emptied *emptied, struct rbx_membership *next,
			     const struct rbx_member_set *there)
{
	uint32_t i, count = 0;
	uint64_t one;

	if (unheard(next, there, &one) > emptied->new_count)
		return 0;
	for (i = 0; i < next->count; i++) {
		struct rbx_member *member = &next->members[i];

		if (member->state != RBX_MEMBER_IN ||
		    rbx_member_set_has(there, member->incarnation))
			continue;
		member->state = RBX_MEMBER_OUT;
		count++;
	}
	return count;
}

uint64_t rbx_emptied_member_away(const struct rbx_emptied *emptied,
				 const struct rbx_membership *membership,
				 const struct rbx_member_set *there)
{
	uint64_t one;

	return emptied->is_one_away && unheard(membership, there, &one) == 1 ? one : 0;
}
