/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_reclaim.c - how a lender gets memory back: by asking for it, when a slab's
 * grace or a client's lease is over (lender.h).
 */
#include "core/lender.h"

#include "core/lender_table.h"

#define NONE RBX_LENDER_NONE

/* ---- Asking ----------------------------------------------------------------*/

static void slab_ask(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
		     uint64_t revoke_ns)
{
	struct rbx_lender_slab *slab = &l->slabs[index];

	RBX_ASSERT(slab->state == SLAB_LENT);
	slab->state = SLAB_ASKED;
	slab->remind_ns = now_ns;
	slab->revoke_ns = revoke_ns;
	l->counts.slabs_asked++;
	l->clients[slab->client].asked_count++;
}

void rbx_lender_set_short(struct rbx_lender *l, bool host_is_short)
{
	l->host_is_short = host_is_short;
}

/* The oldest loan of a client that nobody has asked for. */
static uint32_t oldest_of(const struct rbx_lender *l,
			  const struct rbx_lender_client *client)
{
	uint32_t i = client->slabs.first;

	while (i != NONE && l->slabs[i].state != SLAB_LENT)
		i = l->slabs[i].next;
	return i;
}

/* Of all LENT slabs: one of the client that has most of them, its oldest. */
static uint32_t victim_find(const struct rbx_lender *l)
{
	uint32_t best = NONE, best_holds = 1, i;

	for (i = 0; i < l->config.clients_max; i++) {
		const struct rbx_lender_client *client = &l->clients[i];
		uint32_t holds = client->slabs_count - client->asked_count -
				 client->preparing_count;
		uint32_t oldest;

		if (!client->session_id || holds < best_holds)
			continue;
		oldest = oldest_of(l, client);
		if (holds == best_holds && best != NONE &&
		    l->slabs[best].epoch < l->slabs[oldest].epoch)
			continue;
		best = oldest;
		best_holds = holds;
	}
	return best;
}

uint32_t rbx_lender_shrink(struct rbx_lender *l, uint32_t count,
			   uint64_t now_ns, uint64_t grace_ns)
{
	uint32_t found;

	for (found = 0; found < count; found++) {
		uint32_t index = victim_find(l);

		if (index == NONE)
			break;
		slab_ask(l, index, now_ns, now_ns + grace_ns);
	}
	return found;
}

void rbx_lender_drain(struct rbx_lender *l, uint64_t now_ns)
{
	uint32_t i;

	l->draining = true;
	for (i = 0; i < l->config.slabs_count; i++)
		if (l->slabs[i].state == SLAB_LENT)
			slab_ask(l, i, now_ns, RBX_LENDER_NEVER_NS);
		else if (l->slabs[i].state == SLAB_PREPARING)
			rbx_lender_slab_end(l, i);
}

/* ---- What the host has to do now -------------------------------------------*/

static bool next_expired(struct rbx_lender *l, uint64_t now_ns,
			 struct rbx_lender_action *action)
{
	uint32_t index = l->heard.first;
	const struct rbx_lender_client *client;

	if (index == NONE)
		return false;
	client = &l->clients[index];
	if (now_ns < client->heard_ns ||
	    now_ns - client->heard_ns < l->config.lease_ns)
		return false;
	rbx_lender_client_expire(l, index);
	action->kind = RBX_LENDER_EXPIRE;
	action->session_id = client->session_id;
	return true;
}

static bool next_ending(struct rbx_lender *l, struct rbx_lender_action *action)
{
	uint32_t index = l->ending.first;

	if (index == NONE)
		return false;
	l->ending.first = l->slabs[index].next;
	action->kind = RBX_LENDER_END;
	action->lending.slab_id = index + 1;
	action->lending.epoch = l->slabs[index].epoch;
	return true;
}

/* Looks at each slab once, over several calls; then the host gets false and
 * the next round begins at the front. */
static bool next_asked(struct rbx_lender *l, uint64_t now_ns,
		       struct rbx_lender_action *action)
{
	while (l->counts.slabs_asked && l->scan < l->config.slabs_count) {
		uint32_t index = l->scan++;
		struct rbx_lender_slab *slab = &l->slabs[index];

		if (slab->state != SLAB_ASKED)
			continue;
		if (now_ns >= slab->revoke_ns) {
			rbx_lender_slab_end(l, index);
			l->counts.slabs_revoked++;
			return next_ending(l, action);
		}
		if (now_ns < slab->remind_ns)
			continue;
		slab->remind_ns = now_ns + RBX_EVICT_REMIND_NS;
		action->kind = RBX_LENDER_ASK;
		action->session_id = l->clients[slab->client].session_id;
		action->lending.slab_id = index + 1;
		action->lending.epoch = slab->epoch;
		action->until_ns = slab->revoke_ns;
		return true;
	}
	l->scan = 0;
	return false;
}

bool rbx_lender_next(struct rbx_lender *l, uint64_t now_ns,
		     struct rbx_lender_action *action)
{
	*action = (struct rbx_lender_action){ 0 };
	return next_ending(l, action) || next_expired(l, now_ns, action) ||
	       next_asked(l, now_ns, action);
}

void rbx_lender_ask_again(struct rbx_lender *l, uint64_t slab_id,
			  uint64_t again_ns)
{
	RBX_ASSERT(slab_id && slab_id <= l->config.slabs_count);
	RBX_ASSERT(l->slabs[slab_id - 1].state == SLAB_ASKED);
	l->slabs[slab_id - 1].remind_ns = again_ns;
}

uint64_t rbx_lender_deadline_ns(const struct rbx_lender *l, uint64_t now_ns)
{
	if (l->counts.slabs_asked || l->ending.first != NONE)
		return now_ns;
	if (l->heard.first == NONE)
		return RBX_LENDER_NEVER_NS;
	return l->clients[l->heard.first].heard_ns + l->config.lease_ns;
}
