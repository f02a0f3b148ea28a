/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_reclaim.c - how a lender gets memory back: it asks clients, and revokes when the
 * grace of a slab or the lease of a client is over (lender.h).
 */
#include "core/lender.h"

#include "core/lender_table.h"

#define NONE RBX_LENDER_NONE

/* ---- Limits ----------------------------------------------------------------*/

static uint32_t promised_count(const struct rbx_lender *l)
{
	return l->counts.slabs_lent + l->counts.slabs_preparing;
}

uint32_t rbx_lender_room(const struct rbx_lender *l)
{
	uint32_t promised = promised_count(l);

	return l->config.lend_max > promised ? l->config.lend_max - promised : 0;
}

uint32_t rbx_lender_surplus(const struct rbx_lender *l)
{
	uint32_t promised = promised_count(l);

	return promised > l->config.lend_max ? promised - l->config.lend_max : 0;
}

/* What was asked for without a deadline gets one, or is not asked for any more. */
typedef void take_fn(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
		     uint64_t revoke_ns);

/* A named volume never gets a deadline. */
static bool is_taken(const struct rbx_lender_client *client, take_fn *take)
{
	return client->asked.first != NONE &&
	       !(client->is_kept && take == rbx_lender_slab_set_due);
}

static uint32_t patient_clients(const struct rbx_lender *l, take_fn *take)
{
	uint32_t count = 0, i;

	for (i = l->asking.first; i != NONE; i = l->clients[i].asking_next)
		count += is_taken(&l->clients[i], take);
	return count;
}

/* Takes so many of them, of each client about as many. Returns how many there were. */
static uint32_t take_patient(struct rbx_lender *l, uint32_t count, take_fn *take,
			     uint64_t now_ns, uint64_t revoke_ns)
{
	uint32_t left = count, clients, share, taken, i, next;

	while (left && (clients = patient_clients(l, take))) {
		share = RBX_MAX(left / clients, 1u);
		for (i = l->asking.first; i != NONE && left; i = next) {
			next = l->clients[i].asking_next;
			for (taken = 0; taken < share && left; taken++, left--) {
				if (!is_taken(&l->clients[i], take))
					break;
				take(l, l->clients[i].asked.first, now_ns, revoke_ns);
			}
		}
	}
	return count - left;
}

static void withdraw(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
		     uint64_t revoke_ns)
{
	(void)now_ns, (void)revoke_ns;
	rbx_lender_slab_withdraw(l, index);
}

void rbx_lender_withdraw(struct rbx_lender *l)
{
	uint32_t surplus = rbx_lender_surplus(l), due = l->counts.slabs_due;
	uint32_t wanted = surplus > due ? surplus - due : 0;
	uint32_t patient = l->counts.slabs_asked - due;

	if (!l->draining && patient > wanted)
		(void)take_patient(l, patient - wanted, withdraw, 0, 0);
}

void rbx_lender_set_lend_max(struct rbx_lender *l, uint32_t lend_max)
{
	RBX_ASSERT(lend_max > 0 && lend_max <= l->config.slabs_count);
	l->config.lend_max = lend_max;
	rbx_lender_withdraw(l);
}

void rbx_lender_set_quota(struct rbx_lender *l, uint32_t owner, uint32_t quota_count)
{
	RBX_ASSERT(owner < l->config.owners_max);
	l->owners[owner].quota_count = quota_count;
}

void rbx_lender_set_short(struct rbx_lender *l, bool host_is_short)
{
	l->host_is_short = host_is_short;
}

/* ---- Asking ----------------------------------------------------------------*/

/*
 * Which clients are asked. The rule takes one loan at a time from the client that has most,
 * until enough are found. It leaves all clients that were asked at one level: with the same
 * number of loans, or one fewer if their oldest loan was older. The level, and the epoch that
 * is old enough, are both found by bisection. So the clients are looked at some dozens of
 * times, however many slabs are wanted.
 *
 * Named volumes are asked by the same rule, but after all others, and only those that have
 * somebody who can move their data.
 */

/* Of the clients, or of the named volumes. */
static uint32_t unasked_count(const struct rbx_lender_client *client, bool is_kept)
{
	if (!client->session_id || client->is_kept != is_kept ||
	    client->has_writer != is_kept)
		return 0;
	return client->slabs_count - client->asked_count - client->preparing_count;
}

/* The oldest loan of a client that was not asked for yet; there is one. Before it in the list
 * are at most slabs that are being prepared, a few for each client. */
static uint32_t oldest_of(const struct rbx_lender *l,
			  const struct rbx_lender_client *client)
{
	uint32_t i = client->slabs.first;

	while (l->slabs[i].state != SLAB_LENT)
		i = l->slabs[i].next;
	return i;
}

/* How many loans are above a level, of all clients. */
static uint64_t count_above(const struct rbx_lender *l, uint32_t level, bool is_kept)
{
	uint64_t count = 0;
	uint32_t i;

	for (i = 0; i < rbx_lender_entries(&l->config); i++) {
		uint32_t has = unasked_count(&l->clients[i], is_kept);

		count += has > level ? has - level : 0;
	}
	return count;
}

/* The lowest level with at most count loans above it. */
static uint32_t level_find(const struct rbx_lender *l, uint32_t count, bool is_kept)
{
	uint32_t low = 0, high = l->slabs_used;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (count_above(l, middle, is_kept) <= count)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Whether a client is at this level and its oldest loan is not newer than this epoch. */
static bool is_old(const struct rbx_lender *l,
		   const struct rbx_lender_client *client, uint32_t level,
		   uint64_t epoch, bool is_kept)
{
	return unasked_count(client, is_kept) == level &&
	       l->slabs[oldest_of(l, client)].epoch <= epoch;
}

/* The epoch up to which so many of the clients at the level have their oldest loan; so many
 * are fewer than there are. */
static uint64_t epoch_find(const struct rbx_lender *l, uint32_t level,
			   uint32_t count, bool is_kept)
{
	uint64_t low = 0, high = l->last_epoch;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint32_t old_count = 0, i;

		for (i = 0; i < rbx_lender_entries(&l->config); i++)
			old_count += is_old(l, &l->clients[i], level, middle, is_kept);
		if (old_count >= count)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Asks for so many that nobody was asked for yet. Returns how many were found. */
static uint32_t ask_more(struct rbx_lender *l, uint32_t count, uint64_t now_ns,
			 uint64_t revoke_ns, bool is_kept)
{
	uint32_t level = level_find(l, count, is_kept), found = 0, i;
	uint64_t epoch;

	for (i = 0; i < rbx_lender_entries(&l->config); i++) {
		struct rbx_lender_client *client = &l->clients[i];

		for (; unasked_count(client, is_kept) > level; found++)
			rbx_lender_slab_ask(l, oldest_of(l, client), now_ns,
					    revoke_ns);
	}
	if (!level || found == count)
		return found;
	epoch = epoch_find(l, level, count - found, is_kept);
	for (i = 0; i < rbx_lender_entries(&l->config); i++)
		if (is_old(l, &l->clients[i], level, epoch, is_kept)) {
			rbx_lender_slab_ask(l, oldest_of(l, &l->clients[i]), now_ns,
					    revoke_ns);
			found++;
		}
	return found;
}

uint32_t rbx_lender_shrink(struct rbx_lender *l, uint32_t count,
			   uint64_t now_ns, uint64_t grace_ns)
{
	uint64_t revoke_ns = grace_ns == RBX_LENDER_NEVER_NS ? RBX_LENDER_NEVER_NS :
							       now_ns + grace_ns;
	uint32_t found = 0;

	/* A drain asks for all without a deadline, whatever else happens. */
	if (revoke_ns != RBX_LENDER_NEVER_NS && !l->draining)
		found = take_patient(l, count, rbx_lender_slab_set_due, now_ns, revoke_ns);
	if (found < count)
		found += ask_more(l, count - found, now_ns, revoke_ns, false);
	if (found < count)
		found += ask_more(l, count - found, now_ns, RBX_LENDER_NEVER_NS, true);
	return found;
}

void rbx_lender_drain(struct rbx_lender *l, uint64_t now_ns)
{
	uint32_t i;

	l->draining = true;
	for (i = 0; i < l->slabs_used; i++)
		if (l->slabs[i].state == SLAB_LENT)
			rbx_lender_slab_ask(l, i, now_ns, RBX_LENDER_NEVER_NS);
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
	action->loan.slab_id = index + 1;
	action->loan.epoch = l->slabs[index].epoch;
	return true;
}

/* What has to be done about the slab of a list that is told of next. Clients are told in
 * turn, so a slab whose grace ends before its turn is revoked then, less than
 * RBX_EVICT_REMIND_NS late. If its client reads slowly, that is when the grace of the slabs
 * before it ends as well. */
static bool list_asked(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
		       struct rbx_lender_action *action)
{
	struct rbx_lender_slab *slab = &l->slabs[index];

	if (index == NONE)
		return false;
	if (now_ns >= slab->revoke_ns) {
		rbx_lender_slab_end(l, index);
		l->counts.slabs_revoked++;
		return next_ending(l, action);
	}
	if (now_ns < slab->remind_ns)
		return false;
	slab->remind_ns = now_ns + RBX_EVICT_REMIND_NS;
	rbx_lender_asked_move(l, index, false);
	action->kind = RBX_LENDER_ASK;
	action->session_id = l->clients[slab->client].session_id;
	action->loan.slab_id = index + 1;
	action->loan.epoch = slab->epoch;
	action->until_ns = slab->revoke_ns;
	return true;
}

/* What has a deadline first: the rest must not keep it waiting. */
static bool client_asked(struct rbx_lender *l,
			 const struct rbx_lender_client *client,
			 uint64_t now_ns, struct rbx_lender_action *action)
{
	return list_asked(l, client->due.first, now_ns, action) ||
	       list_asked(l, client->asked.first, now_ns, action);
}

/* Looks once at each client that was asked for something, over several calls. Then the host
 * gets false, and the next round begins. */
static bool next_asked(struct rbx_lender *l, uint64_t now_ns,
		       struct rbx_lender_action *action)
{
	if (!l->round_is_on)
		l->asking_left = l->asking_count;
	l->round_is_on = true;
	while (l->asking_left) {
		uint32_t index = l->asking.first;

		if (client_asked(l, &l->clients[index], now_ns, action))
			return true;
		rbx_lender_asking_rotate(l, index);
		l->asking_left--;
	}
	l->round_is_on = false;
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
	uint32_t index = (uint32_t)slab_id - 1;

	RBX_ASSERT(slab_id && slab_id <= l->slabs_used);
	l->slabs[index].remind_ns = again_ns;
	rbx_lender_asked_move(l, index, true);
	/* If the client cannot be told of one slab it cannot be told of any: the others have
	 * their turn. */
	if (l->asking_left && l->asking.first == l->slabs[index].client) {
		rbx_lender_asking_rotate(l, l->slabs[index].client);
		l->asking_left--;
	}
}

uint64_t rbx_lender_deadline_ns(const struct rbx_lender *l, uint64_t now_ns)
{
	const struct rbx_lender_counts *counts = &l->counts;
	uint64_t deadline_ns = RBX_LENDER_NEVER_NS;

	if (l->ending.first != NONE || counts->slabs_due ||
	    (l->draining && counts->slabs_asked))
		return now_ns;
	if (l->heard.first != NONE)
		deadline_ns = l->clients[l->heard.first].heard_ns + l->config.lease_ns;
	/* There is no hurry, and it may last for days. */
	if (counts->slabs_asked)
		deadline_ns = RBX_MIN(deadline_ns, now_ns + RBX_EVICT_REMIND_NS / 4);
	return deadline_ns;
}
