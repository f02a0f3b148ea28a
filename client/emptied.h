/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * emptied.h - members of a named volume whose server was started anew without its memory.
 *
 * Such a server is another one, and its former self stays in the record, OUT for ever. A record
 * knows servers by their incarnations alone. But whoever opens the volume was given a list of
 * addresses:
 *
 *	all of them answer     A member that is none of those that answer is at none of these
 *	                       addresses. Each server among them that is no member may be one that
 *	                       was started anew. If there are as many of these as members that were
 *	                       not heard of, the latter are forgotten, by the record of that open
 *	one does not           If one member alone was not heard of, it is the one of that address.
 *	                       If another server comes there while the volume is open, that one
 *	                       takes its place (joining.h)
 *	else                   nobody knows, and nothing is done
 *
 * A pool that may change leaves out what is away, so it tells nothing of this kind.
 *
 * Only members are forgotten that are OUT and have no vote. None of these is ever needed: what it
 * has does not count, and others have it. So if it was taken for another one, and is there after
 * all, it is a new server, and gets a copy of all instead of what it has missed.
 */
#ifndef RBX_CLIENT_EMPTIED_H
#define RBX_CLIENT_EMPTIED_H

#include "core/membership.h"
#include "wire/record.h"

struct rbx_crowd;

/* What a list of servers tells. Zeroed: nothing. */
struct rbx_emptied {
	uint32_t new_count; /* servers that are no members, if all have answered */
	bool is_one_away; /* all but one have answered: this one */
	char away[264]; /* "[host]:port" */
};

/* The volume was looked for. */
void rbx_emptied_look(struct rbx_emptied *emptied, const struct rbx_crowd *crowd,
		      const struct rbx_wire_record *record);
/* there: servers that were heard of. Returns how many members are forgotten; those that still have
 * a vote stay, until this is called for the next membership. */
uint32_t rbx_emptied_forget(const struct rbx_emptied *emptied, struct rbx_membership *next,
			    const struct rbx_member_set *there);
/* Of a volume that nobody has open: those of them that are IN are OUT from the next membership on.
 * Returns how many. */
uint32_t rbx_emptied_put_out(const struct rbx_emptied *emptied, struct rbx_membership *next,
			     const struct rbx_member_set *there);
/* The member at the address that is away, or 0. */
uint64_t rbx_emptied_member_away(const struct rbx_emptied *emptied,
				 const struct rbx_membership *membership,
				 const struct rbx_member_set *there);

#endif
