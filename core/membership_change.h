/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * membership_change.h - servers that become members of a named volume, and what a server is to
 * one (membership.h).
 *
 * A new member is IN from the membership on that names it first. That one needs a quorum of the
 * servers of before as well, so nobody can have the volume by the new ones alone. It must not
 * have anything of the volume yet: what it gets comes after that membership was chosen.
 *
 *	rbx_membership_next(&next, chosen);
 *	rbx_membership_add(&next, incarnation);
 *	the new server accepts it first, and then the others
 *	chosen: the server counts
 *
 * The new server accepts it first. So whoever hears of it from another member finds the volume at
 * the new one, too.
 */
#ifndef RBX_MEMBERSHIP_CHANGE_H
#define RBX_MEMBERSHIP_CHANGE_H

#include "core/membership.h"

enum rbx_membership_place {
	RBX_PLACE_NOT, /* it is no member */
	RBX_PLACE_COMES, /* it is, and this membership is the first one that names it */
	RBX_PLACE_IN,
	RBX_PLACE_OUT,
};

enum rbx_membership_place rbx_membership_place(const struct rbx_membership *membership,
					       uint64_t incarnation);

/* Makes a server a member that is IN, which is none or is OUT. False: there is no room. */
bool rbx_membership_add(struct rbx_membership *next, uint64_t incarnation);

/* Whether those that stay IN by it can have it accepted, without those that it puts OUT, and
 * without these, which cannot answer. */
bool rbx_membership_is_acceptable(const struct rbx_membership *next,
				  const struct rbx_member_set *away);

/* Makes room for one more: a member is forgotten that is OUT and has no vote, if there is one; this
 * one in any case, unless it is 0. What it has does not count, so nobody misses it. */
void rbx_membership_forget(struct rbx_membership *next, uint64_t incarnation);

#endif
