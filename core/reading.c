/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reading.c - see reading.h. */
#include "core/reading.h"

static bool is_same(const struct rbx_membership *a, const struct rbx_membership *b)
{
	return a->epoch == b->epoch && a->version == b->version;
}

static bool is_in(const struct rbx_membership *membership, uint64_t incarnation)
{
	for (uint32_t i = 0; i < membership->count; i++)
		if (membership->members[i].incarnation == incarnation)
			return membership->members[i].state == RBX_MEMBER_IN;
	return false;
}

/* ---- The record --------------------------------------------------------------------------- */

/* Of those that were not taken yet, the one that was asked last; or NULL. */
static const struct rbx_reading_server *latest(const struct rbx_reading_server *servers,
					       uint32_t count, const struct rbx_member_set *taken)
{
	const struct rbx_reading_server *found = NULL;

	for (uint32_t i = 0; i < count; i++)
		if (servers[i].is_there && servers[i].seen_ns &&
		    !rbx_member_set_has(taken, servers[i].incarnation) &&
		    (!found || servers[i].seen_ns > found->seen_ns))
			found = &servers[i];
	return found;
}

/*
 * The latest moment since which enough servers have been asked, and the newest record that these
 * tell; or 0. What others have told before was not chosen by then, if none of these tells it.
 */
static uint64_t quorum_at(const struct rbx_reading_server *servers, uint32_t count,
			  const struct rbx_membership **newest)
{
	struct rbx_member_set asked = { .count = 0 };
	const struct rbx_reading_server *next;

	*newest = NULL;
	while (asked.count < RBX_MEMBERS_MAX && (next = latest(servers, count, &asked))) {
		rbx_member_set_add(&asked, next->incarnation);
		if (!*newest || rbx_membership_is_newer(&next->membership, *newest))
			*newest = &next->membership;
		if (rbx_membership_can_open(*newest, &asked))
			return next->seen_ns;
	}
	return 0;
}

bool rbx_reading_is_in(const struct rbx_reading *reading, const struct rbx_reading_server *server)
{
	return is_in(&reading->membership, server->incarnation);
}

uint64_t rbx_reading_server_at(const struct rbx_reading *reading,
			       const struct rbx_reading_server *server)
{
	if (!reading->at_ns || !server->is_there || server->seen_ns < reading->heard_ns ||
	    !is_in(&reading->membership, server->incarnation))
		return 0;
	return RBX_MIN(reading->at_ns, server->seen_ns);
}

/* ---- Slabs that nobody has ----------------------------------------------------------------- */

static bool counts_for_zeros(const struct rbx_reading *reading,
			     const struct rbx_reading_server *server, uint64_t since_ns)
{
	return server->is_there && server->all_ns >= RBX_MAX(reading->heard_ns, since_ns) &&
	       server->all_ns && is_in(&reading->membership, server->incarnation);
}

static uint32_t in_count(const struct rbx_membership *membership)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < membership->count; i++)
		count += membership->members[i].state == RBX_MEMBER_IN;
	return count;
}

/* One that tells the record that counts. */
static const struct rbx_reading_server *teller_of(const struct rbx_reading *reading,
						  const struct rbx_reading_server *servers,
						  uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (servers[i].is_there && is_same(&servers[i].membership, &reading->membership))
			return &servers[i];
	return NULL;
}

static uint64_t zeros_at(const struct rbx_reading *reading,
			 const struct rbx_reading_server *servers, uint32_t count,
			 uint64_t since_ns)
{
	const struct rbx_reading_server *teller = teller_of(reading, servers, count);
	uint32_t missing = in_count(&reading->membership), copies = teller ? teller->copies : 0;
	uint64_t at_ns = reading->at_ns, latest_since_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!counts_for_zeros(reading, &servers[i], since_ns))
			continue;
		missing--;
		at_ns = RBX_MIN(at_ns, servers[i].all_ns);
		latest_since_ns = RBX_MAX(latest_since_ns, servers[i].since_ns);
	}
	return (!missing || missing < copies) && latest_since_ns <= at_ns ? at_ns : 0;
}

void rbx_reading_judge(struct rbx_reading *reading, const struct rbx_reading_server *servers,
		       uint32_t count, uint64_t since_ns, uint64_t now_ns)
{
	const struct rbx_reading_server *teller;
	const struct rbx_membership *newest;

	reading->at_ns = quorum_at(servers, count, &newest);
	reading->zeros_at_ns = 0;
	if (!reading->at_ns)
		return;
	if (!is_same(newest, &reading->membership)) {
		reading->membership = *newest;
		reading->heard_ns = now_ns;
	}
	teller = teller_of(reading, servers, count);
	reading->has_lost = teller && teller->has_lost;
	reading->zeros_at_ns = zeros_at(reading, servers, count, since_ns);
}

bool rbx_reading_is_gone(const struct rbx_reading *reading, const struct rbx_member_set *tell)
{
	return reading->membership.epoch && rbx_membership_can_open(&reading->membership, tell);
}
