/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender.c - the clients of a lender, and how slabs are lent and come back (lender.h).
 *
 * A slab that was given back or revoked is lent after all others that are free: a client that
 * does not know yet that its loan is over does not meet the slab again soon. If no other slab
 * is free it is lent all the same. Refusing would keep memory from all clients for the sake
 * of one, and the epoch distinguishes the two loans. Epochs come from one counter for all
 * slabs.
 */
#include "core/lender.h"

#include "core/lender_table.h"

#define NONE RBX_LENDER_NONE

/* ---- Tables ----------------------------------------------------------------*/

size_t rbx_lender_size(const struct rbx_lender_config *config)
{
	uint32_t entries = rbx_lender_entries(config);

	return sizeof(struct rbx_lender) + rbx_id_map_size(entries) +
	       entries * sizeof(struct rbx_lender_client) +
	       config->owners_max * sizeof(struct rbx_lender_owner) +
	       config->slabs_count * sizeof(struct rbx_lender_slab);
}

struct rbx_lender *rbx_lender_init(void *memory,
				   const struct rbx_lender_config *config)
{
	const struct rbx_lender_list empty = { NONE, NONE };
	struct rbx_lender *l = memory;
	uint32_t entries = rbx_lender_entries(config), i;
	uint8_t *places = memory;

	RBX_ASSERT(config->slabs_count > 0);
	RBX_ASSERT(config->slabs_count <= RBX_LENT_SLABS_MAX);
	RBX_ASSERT(config->lend_max > 0);
	RBX_ASSERT(config->lend_max <= config->slabs_count);
	RBX_ASSERT(config->clients_max > 0);
	RBX_ASSERT(config->clients_max <= RBX_CLIENTS_MAX);
	RBX_ASSERT(config->volumes_max <= RBX_KEPT_VOLUMES_MAX);
	RBX_ASSERT(config->owners_max > 0);
	RBX_ASSERT(config->owners_max <= RBX_OWNERS_MAX);
	places += sizeof(*l) + entries * sizeof(*l->clients) +
		  config->owners_max * sizeof(*l->owners);
	/* Slabs are written when they are first lent: tables for many cost nothing. */
	rbx_port_fill(l, 0, (size_t)(places - (uint8_t *)memory));
	l->config = *config;
	l->clients = (struct rbx_lender_client *)(l + 1);
	l->owners = (struct rbx_lender_owner *)(l->clients + entries);
	l->slabs = (struct rbx_lender_slab *)places;
	rbx_id_map_init(&l->sessions, l->slabs + config->slabs_count, entries);
	l->free_slabs = empty;
	l->ending = empty;
	l->heard = empty;
	l->asking = empty;
	for (i = 0; i < entries; i++)
		l->clients[i].next = i + 1;
	l->clients[entries - 1].next = NONE;
	l->counts.slabs_free = config->slabs_count;
	return l;
}

/* ---- Clients ---------------------------------------------------------------*/

/* It was heard last of all. */
static void client_join(struct rbx_lender *l, uint32_t index)
{
	struct rbx_lender_client *client = &l->clients[index];

	client->next = NONE;
	client->prev = l->heard.last;
	if (l->heard.last == NONE)
		l->heard.first = index;
	else
		l->clients[l->heard.last].next = index;
	l->heard.last = index;
}

static void client_part(struct rbx_lender *l, uint32_t index)
{
	const struct rbx_lender_client *client = &l->clients[index];

	if (client->prev == NONE)
		l->heard.first = client->next;
	else
		l->clients[client->prev].next = client->next;
	if (client->next == NONE)
		l->heard.last = client->prev;
	else
		l->clients[client->next].prev = client->prev;
}

void rbx_lender_client_expire(struct rbx_lender *l, uint32_t index)
{
	client_part(l, index);
	l->clients[index].expired = true;
	l->counts.leases_expired++;
}

/* A client that has not expired. */
static uint32_t client_find_live(const struct rbx_lender *l,
				 uint64_t session_id)
{
	uint32_t i = rbx_id_map_find(&l->sessions, session_id);

	return i == NONE || l->clients[i].expired ? NONE : i;
}

uint32_t rbx_lender_entry_take(struct rbx_lender *l, uint64_t id, uint32_t owner)
{
	uint32_t i = l->client_free;

	RBX_ASSERT(i != NONE && id && owner < l->config.owners_max);
	rbx_id_map_put(&l->sessions, id, i);
	l->owners[owner].clients_count++;
	l->client_free = l->clients[i].next;
	l->clients[i] = (struct rbx_lender_client){
		.session_id = id,
		.owner = owner,
		.slabs = { NONE, NONE },
		.asked = { NONE, NONE },
		.due = { NONE, NONE },
	};
	return i;
}

uint32_t rbx_lender_admit(struct rbx_lender *l, uint64_t session_id,
			  uint32_t owner, uint64_t now_ns)
{
	uint32_t i;

	if (l->counts.clients == l->config.clients_max)
		return RBX_REASON_TOO_MANY;
	i = rbx_lender_entry_take(l, session_id, owner);
	l->clients[i].heard_ns = now_ns;
	client_join(l, i);
	l->counts.clients++;
	l->counts.sessions++;
	return RBX_REASON_NONE;
}

uint32_t rbx_lender_heard(struct rbx_lender *l, uint64_t session_id,
			  uint64_t now_ns)
{
	uint32_t i = client_find_live(l, session_id);

	if (i == NONE)
		return RBX_REASON_STALE_SESSION;
	l->clients[i].heard_ns = now_ns;
	client_part(l, i);
	client_join(l, i);
	return RBX_REASON_NONE;
}

/* ---- The states of a slab ------------------------------------------------*/

void rbx_lender_slab_end(struct rbx_lender *l, uint32_t index)
{
	struct rbx_lender_slab *slab = &l->slabs[index];
	struct rbx_lender_client *client = &l->clients[slab->client];

	RBX_ASSERT(slab->state == SLAB_PREPARING || rbx_lender_slab_is_had(slab));
	if (slab->state == SLAB_PREPARING) {
		l->counts.slabs_preparing--;
		client->preparing_count--;
	} else {
		l->counts.slabs_lent--;
	}
	if (slab->state == SLAB_ASKED)
		rbx_lender_slab_unask(l, index);
	client->slabs_count--;
	l->owners[slab->owner].slabs_count--;
	l->owners[slab->owner].ending_count++;
	l->counts.slabs_ending++;
	rbx_lender_slab_part(l, index);
	slab->state = SLAB_ENDING;
	rbx_lender_queue_put(l, &l->ending, index);
}

/* In one list of a client: ends what was lent after an epoch, and what is being prepared.
 * Returns how many slabs the list had. */
static uint32_t list_end_after(struct rbx_lender *l, uint32_t first,
			       uint64_t epoch)
{
	uint32_t had_count = 0, i, next;

	for (i = first; i != NONE; i = next) {
		const struct rbx_lender_slab *slab = &l->slabs[i];
		bool is_had = rbx_lender_slab_is_had(slab) &&
			      slab->epoch > epoch;

		next = slab->next;
		if (!is_had && slab->state != SLAB_PREPARING)
			continue;
		rbx_lender_slab_end(l, i);
		had_count += is_had;
	}
	return had_count;
}

uint32_t rbx_lender_slabs_end_after(struct rbx_lender *l, uint32_t client, uint64_t epoch)
{
	return list_end_after(l, l->clients[client].slabs.first, epoch) +
	       list_end_after(l, l->clients[client].asked.first, epoch) +
	       list_end_after(l, l->clients[client].due.first, epoch);
}

uint32_t rbx_lender_resumed(struct rbx_lender *l, uint64_t session_id,
			    uint64_t now_ns, uint64_t last_epoch)
{
	uint32_t reason = rbx_lender_heard(l, session_id, now_ns);

	if (reason)
		return reason;
	l->counts.slabs_revoked += rbx_lender_slabs_end_after(
		l, rbx_id_map_find(&l->sessions, session_id), last_epoch);
	return RBX_REASON_NONE;
}

void rbx_lender_leave(struct rbx_lender *l, uint64_t session_id)
{
	uint32_t index = rbx_id_map_find(&l->sessions, session_id);
	struct rbx_lender_client *client = &l->clients[index];
	uint32_t slabs_count;

	RBX_ASSERT(index != NONE);
	slabs_count = rbx_lender_slabs_end_after(l, index, 0);
	RBX_ASSERT(!client->slabs_count);
	if (client->expired)
		l->counts.slabs_revoked += slabs_count;
	else
		l->counts.slabs_unmapped += slabs_count;
	if (client->is_kept)
		l->counts.volumes--;
	else
		l->counts.clients--;
	if (!client->is_kept && !client->expired)
		client_part(l, index);
	rbx_id_map_remove(&l->sessions, session_id);
	client->session_id = 0;
	client->next = l->client_free;
	l->client_free = index;
	l->owners[client->owner].clients_count--;
}

/* ---- Lending ---------------------------------------------------------------*/

/* One that was never lent, as long as there are fewer than may be lent; else the one
 * that has been free for longest. */
static uint32_t slab_take(struct rbx_lender *l)
{
	uint32_t index = l->free_slabs.first;

	if (l->slabs_used < l->config.lend_max)
		return l->slabs_used++;
	RBX_ASSERT(index != NONE && l->slabs[index].state == SLAB_FREE);
	l->free_slabs.first = l->slabs[index].next;
	return index;
}

/* Why no slab can be lent to anybody now; or RBX_LENDER_LATER; or none. */
static uint32_t lend_judge(const struct rbx_lender *l)
{
	uint32_t room = rbx_lender_room(l);

	if (l->draining)
		return RBX_REASON_DRAINING;
	if (!room || l->host_is_short)
		return RBX_REASON_FULL;
	/* The memory of a slab that is ending is still taken. */
	return room > l->counts.slabs_ending ? RBX_REASON_NONE : RBX_LENDER_LATER;
}

/* Why none can be lent to this owner now, whatever is free; or none. */
static uint32_t quota_judge(const struct rbx_lender_owner *owner)
{
	if (!owner->quota_count ||
	    owner->slabs_count + owner->ending_count < owner->quota_count)
		return RBX_REASON_NONE;
	return owner->slabs_count < owner->quota_count ? RBX_LENDER_QUOTA_LATER :
							 RBX_REASON_QUOTA;
}

uint32_t rbx_lender_lend(struct rbx_lender *l, uint64_t session_id,
			 struct rbx_lender_loan *loan)
{
	uint32_t client = client_find_live(l, session_id);
	uint32_t reason = lend_judge(l), quota_reason, index;
	struct rbx_lender_owner *owner;

	if (client == NONE)
		return RBX_REASON_STALE_SESSION;
	if (reason == RBX_REASON_DRAINING)
		return reason;
	owner = &l->owners[l->clients[client].owner];
	quota_reason = quota_judge(owner);
	if (quota_reason == RBX_REASON_QUOTA) {
		l->counts.refused_quota++;
		return quota_reason;
	}
	if (reason) {
		l->counts.refused_full += reason == RBX_REASON_FULL;
		return reason;
	}
	if (quota_reason)
		return quota_reason;
	index = slab_take(l);
	l->slabs[index] = (struct rbx_lender_slab){
		.state = SLAB_PREPARING,
		.client = client,
		.owner = (uint16_t)l->clients[client].owner,
	};
	rbx_lender_slab_join(l, index);
	owner->slabs_count++;
	l->clients[client].slabs_count++;
	l->clients[client].preparing_count++;
	l->counts.slabs_free--;
	l->counts.slabs_preparing++;
	*loan = (struct rbx_lender_loan){ .slab_id = index + 1 };
	return RBX_REASON_NONE;
}

bool rbx_lender_prepared(struct rbx_lender *l, struct rbx_lender_loan *loan)
{
	uint32_t index = (uint32_t)loan->slab_id - 1;
	struct rbx_lender_slab *slab = &l->slabs[index];

	RBX_ASSERT(loan->slab_id && loan->slab_id <= l->slabs_used);
	if (slab->state != SLAB_PREPARING)
		return false;
	slab->state = SLAB_LENT;
	slab->epoch = ++l->last_epoch;
	rbx_lender_slab_part(l, index);
	rbx_lender_slab_join(l, index); /* behind all of earlier epochs */
	l->clients[slab->client].preparing_count--;
	l->counts.slabs_preparing--;
	l->counts.slabs_lent++;
	l->counts.slabs_mapped++;
	loan->epoch = slab->epoch;
	return true;
}

void rbx_lender_unprepared(struct rbx_lender *l, uint64_t slab_id)
{
	RBX_ASSERT(slab_id && slab_id <= l->slabs_used);
	if (l->slabs[slab_id - 1].state == SLAB_PREPARING)
		rbx_lender_slab_end(l, (uint32_t)slab_id - 1);
}

uint32_t rbx_lender_check(const struct rbx_lender *l, uint64_t session_id,
			  const struct rbx_lender_loan *loan)
{
	uint32_t client = client_find_live(l, session_id);
	const struct rbx_lender_slab *slab;

	if (client == NONE)
		return RBX_REASON_STALE_SESSION;
	if (!loan->slab_id || loan->slab_id > l->slabs_used)
		return RBX_REASON_NOT_YOURS;
	slab = &l->slabs[loan->slab_id - 1];
	if (!rbx_lender_slab_is_had(slab) || slab->client != client)
		return RBX_REASON_NOT_YOURS;
	if (slab->epoch != loan->epoch)
		return RBX_REASON_STALE_EPOCH;
	return RBX_REASON_NONE;
}

uint32_t rbx_lender_unmap(struct rbx_lender *l, uint64_t session_id,
			  const struct rbx_lender_loan *loan)
{
	uint32_t reason = rbx_lender_check(l, session_id, loan);

	if (reason)
		return reason;
	rbx_lender_slab_end(l, (uint32_t)loan->slab_id - 1);
	l->counts.slabs_unmapped++;
	return RBX_REASON_NONE;
}

void rbx_lender_ended(struct rbx_lender *l, uint64_t slab_id)
{
	struct rbx_lender_slab *slab = &l->slabs[slab_id - 1];

	RBX_ASSERT(slab_id && slab_id <= l->slabs_used);
	RBX_ASSERT(slab->state == SLAB_ENDING);
	slab->state = SLAB_FREE;
	rbx_lender_queue_put(l, &l->free_slabs, (uint32_t)slab_id - 1);
	l->owners[slab->owner].ending_count--;
	l->counts.slabs_ending--;
	l->counts.slabs_free++;
}

/* ---- Numbers ----------------------------------------------------------------*/

void rbx_lender_counts(const struct rbx_lender *l,
		       struct rbx_lender_counts *counts)
{
	*counts = l->counts;
}

uint32_t rbx_lender_lent_to(const struct rbx_lender *l, uint64_t session_id)
{
	uint32_t i = rbx_id_map_find(&l->sessions, session_id);

	return i == NONE ? 0 : l->clients[i].slabs_count;
}

uint64_t rbx_lender_last_epoch(const struct rbx_lender *l)
{
	return l->last_epoch;
}

bool rbx_lender_owner_is_idle(const struct rbx_lender *l, uint32_t owner)
{
	const struct rbx_lender_owner *o = &l->owners[owner];

	RBX_ASSERT(owner < l->config.owners_max);
	return !o->clients_count && !o->slabs_count && !o->ending_count;
}

uint32_t rbx_lender_slabs_used(const struct rbx_lender *l)
{
	return l->slabs_used;
}

bool rbx_lender_is_draining(const struct rbx_lender *l)
{
	return l->draining;
}
