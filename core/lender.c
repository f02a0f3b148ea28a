/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender.c - see lender.h.
 *
 * Slabs stand in a table; free ones form a stack, ending ones a queue, both by
 * index. Clients stand in a table of RBX_CLIENTS_MAX that is searched from end
 * to end, as is the slab table where a client leaves or slabs are wanted back:
 * rare events, and at most 64 Ki entries. Lending and giving back touch one
 * entry. Epochs come from one counter for all slabs.
 */
#include "core/lender.h"

#define NO_INDEX UINT32_MAX

enum slab_state {
	SLAB_FREE, /* nobody can reach it */
	SLAB_LENT, /* its client reads and writes it */
	SLAB_ASKED, /* the same, and the client was asked to give it back */
	SLAB_ENDING, /* no client's any more; the host ends the access */
};

struct slab {
	uint64_t epoch; /* of the last lending */
	uint64_t revoke_ns; /* ASKED: when it is taken back */
	uint64_t remind_ns; /* ASKED: when the client is told next */
	uint32_t client; /* LENT, ASKED: index of the client */
	uint32_t next; /* FREE, ENDING: index of the next one */
	uint8_t state; /* enum slab_state */
};

struct client {
	uint64_t session_id; /* 0: this entry is free */
	uint64_t heard_ns;
	uint32_t slabs_count; /* LENT and ASKED */
	uint32_t asked_count; /* ASKED */
	bool expired; /* the host has been told to end it */
};

struct rbx_lender {
	struct rbx_lender_config config;
	struct client clients[RBX_CLIENTS_MAX];
	uint64_t last_epoch;
	uint32_t free_first; /* stack */
	uint32_t ending_first; /* queue: not yet given to the host */
	uint32_t ending_last;
	uint32_t scan; /* where next() goes on looking for ASKED slabs */
	bool draining;
	bool host_is_short;
	struct rbx_lender_counts counts;
	struct slab slabs[];
};

RBX_STATIC_ASSERT(sizeof(struct slab) == 40, "RBX_SLABS_MAX of them are 2.5 MiB, as limits.h says");

size_t rbx_lender_size(const struct rbx_lender_config *config)
{
	return sizeof(struct rbx_lender) +
	       config->slabs_count * sizeof(struct slab);
}

struct rbx_lender *rbx_lender_init(void *memory,
				   const struct rbx_lender_config *config)
{
	struct rbx_lender *l = memory;
	uint32_t i;

	RBX_ASSERT(config->slabs_count > 0);
	RBX_ASSERT(config->slabs_count <= RBX_SLABS_MAX);
	rbx_port_fill(l, 0, rbx_lender_size(config));
	l->config = *config;
	for (i = 0; i < config->slabs_count; i++)
		l->slabs[i].next = i + 1;
	l->slabs[config->slabs_count - 1].next = NO_INDEX;
	l->ending_first = NO_INDEX;
	l->counts.slabs_free = config->slabs_count;
	return l;
}

/* ---- Clients ---------------------------------------------------------------*/

static uint32_t client_find(const struct rbx_lender *l, uint64_t session_id)
{
	uint32_t i;

	for (i = 0; i < RBX_CLIENTS_MAX; i++)
		if (l->clients[i].session_id == session_id)
			return i;
	return NO_INDEX;
}

/* One that is not about to be thrown out. */
static uint32_t client_find_live(const struct rbx_lender *l,
				 uint64_t session_id)
{
	uint32_t i = session_id ? client_find(l, session_id) : NO_INDEX;

	return i == NO_INDEX || l->clients[i].expired ? NO_INDEX : i;
}

uint32_t rbx_lender_admit(struct rbx_lender *l, uint64_t session_id,
			  uint64_t now_ns)
{
	uint32_t i = client_find(l, 0);

	RBX_ASSERT(session_id && client_find(l, session_id) == NO_INDEX);
	if (i == NO_INDEX)
		return RBX_REASON_TOO_MANY;
	l->clients[i] = (struct client){
		.session_id = session_id,
		.heard_ns = now_ns,
	};
	l->counts.clients++;
	l->counts.sessions++;
	return RBX_REASON_NONE;
}

uint32_t rbx_lender_heard(struct rbx_lender *l, uint64_t session_id,
			  uint64_t now_ns)
{
	uint32_t i = client_find_live(l, session_id);

	if (i == NO_INDEX)
		return RBX_REASON_STALE_SESSION;
	l->clients[i].heard_ns = now_ns;
	return RBX_REASON_NONE;
}

/* ---- The states of a slab ------------------------------------------------*/

/* LENT or ASKED -> ENDING: from here on it is nobody's. */
static void slab_end(struct rbx_lender *l, uint32_t index)
{
	struct slab *slab = &l->slabs[index];

	RBX_ASSERT(slab->state == SLAB_LENT || slab->state == SLAB_ASKED);
	if (slab->state == SLAB_ASKED) {
		l->counts.slabs_asked--;
		l->clients[slab->client].asked_count--;
	}
	l->clients[slab->client].slabs_count--;
	l->counts.slabs_lent--;
	slab->state = SLAB_ENDING;
	slab->next = NO_INDEX;
	if (l->ending_first == NO_INDEX)
		l->ending_first = index;
	else
		l->slabs[l->ending_last].next = index;
	l->ending_last = index;
}

static void slab_ask(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
		     uint64_t revoke_ns)
{
	struct slab *slab = &l->slabs[index];

	RBX_ASSERT(slab->state == SLAB_LENT);
	slab->state = SLAB_ASKED;
	slab->remind_ns = now_ns;
	slab->revoke_ns = revoke_ns;
	l->counts.slabs_asked++;
	l->clients[slab->client].asked_count++;
}

/* What a client was lent after an epoch ends. Returns how many slabs. */
static uint32_t slabs_end_after(struct rbx_lender *l, uint32_t client,
				uint64_t epoch)
{
	uint32_t before = l->clients[client].slabs_count;
	uint32_t i;

	for (i = 0; i < l->config.slabs_count && l->clients[client].slabs_count;
	     i++) {
		const struct slab *slab = &l->slabs[i];

		if ((slab->state == SLAB_LENT || slab->state == SLAB_ASKED) &&
		    slab->client == client && slab->epoch > epoch)
			slab_end(l, i);
	}
	return before - l->clients[client].slabs_count;
}

uint32_t rbx_lender_resumed(struct rbx_lender *l, uint64_t session_id,
			    uint64_t now_ns, uint64_t last_epoch)
{
	uint32_t reason = rbx_lender_heard(l, session_id, now_ns);

	if (reason)
		return reason;
	l->counts.slabs_revoked +=
		slabs_end_after(l, client_find(l, session_id), last_epoch);
	return RBX_REASON_NONE;
}

void rbx_lender_leave(struct rbx_lender *l, uint64_t session_id)
{
	uint32_t client = client_find(l, session_id);
	uint32_t slabs_count;

	RBX_ASSERT(session_id && client != NO_INDEX);
	slabs_count = slabs_end_after(l, client, 0);
	RBX_ASSERT(!l->clients[client].slabs_count);
	if (l->clients[client].expired)
		l->counts.slabs_revoked += slabs_count;
	else
		l->counts.slabs_unmapped += slabs_count;
	l->clients[client].session_id = 0;
	l->counts.clients--;
}

uint32_t rbx_lender_lend(struct rbx_lender *l, uint64_t session_id,
			 struct rbx_lending *lending)
{
	uint32_t client = client_find_live(l, session_id);
	uint32_t index = l->free_first;
	struct slab *slab;

	if (client == NO_INDEX)
		return RBX_REASON_STALE_SESSION;
	if (l->draining)
		return RBX_REASON_DRAINING;
	if (l->config.quota_count &&
	    l->clients[client].slabs_count >= l->config.quota_count) {
		l->counts.refused_quota++;
		return RBX_REASON_QUOTA;
	}
	if (index == NO_INDEX || l->host_is_short) {
		l->counts.refused_full++;
		return RBX_REASON_FULL;
	}
	slab = &l->slabs[index];
	RBX_ASSERT(slab->state == SLAB_FREE);
	l->free_first = slab->next;
	slab->state = SLAB_LENT;
	slab->client = client;
	slab->epoch = ++l->last_epoch;
	l->clients[client].slabs_count++;
	l->counts.slabs_free--;
	l->counts.slabs_lent++;
	l->counts.slabs_mapped++;
	lending->slab_id = index + 1;
	lending->epoch = slab->epoch;
	return RBX_REASON_NONE;
}

uint32_t rbx_lender_check(const struct rbx_lender *l, uint64_t session_id,
			  const struct rbx_lending *lending)
{
	uint32_t client = client_find_live(l, session_id);
	const struct slab *slab;

	if (client == NO_INDEX)
		return RBX_REASON_STALE_SESSION;
	if (!lending->slab_id || lending->slab_id > l->config.slabs_count)
		return RBX_REASON_NOT_YOURS;
	slab = &l->slabs[lending->slab_id - 1];
	if ((slab->state != SLAB_LENT && slab->state != SLAB_ASKED) ||
	    slab->client != client)
		return RBX_REASON_NOT_YOURS;
	if (slab->epoch != lending->epoch)
		return RBX_REASON_STALE_EPOCH;
	return RBX_REASON_NONE;
}

uint32_t rbx_lender_unmap(struct rbx_lender *l, uint64_t session_id,
			  const struct rbx_lending *lending)
{
	uint32_t reason = rbx_lender_check(l, session_id, lending);

	if (reason)
		return reason;
	slab_end(l, (uint32_t)lending->slab_id - 1);
	l->counts.slabs_unmapped++;
	return RBX_REASON_NONE;
}

void rbx_lender_ended(struct rbx_lender *l, uint64_t slab_id)
{
	struct slab *slab = &l->slabs[slab_id - 1];

	RBX_ASSERT(slab_id && slab_id <= l->config.slabs_count);
	RBX_ASSERT(slab->state == SLAB_ENDING);
	slab->state = SLAB_FREE;
	slab->next = l->free_first;
	l->free_first = (uint32_t)slab_id - 1;
	l->counts.slabs_free++;
}

/* ---- Getting memory back ---------------------------------------------------*/

void rbx_lender_set_short(struct rbx_lender *l, bool host_is_short)
{
	l->host_is_short = host_is_short;
}

/* Of all LENT slabs: one of the client that has most of them, its oldest. */
static uint32_t victim_find(const struct rbx_lender *l)
{
	const struct slab *best = NULL;
	uint32_t best_holds = 0;
	uint32_t i;

	for (i = 0; i < l->config.slabs_count; i++) {
		const struct slab *slab = &l->slabs[i];
		const struct client *client = &l->clients[slab->client];
		uint32_t holds = client->slabs_count - client->asked_count;

		if (slab->state != SLAB_LENT)
			continue;
		if (!best || holds > best_holds ||
		    (holds == best_holds && slab->epoch < best->epoch)) {
			best = slab;
			best_holds = holds;
		}
	}
	return best ? (uint32_t)(best - l->slabs) : NO_INDEX;
}

uint32_t rbx_lender_shrink(struct rbx_lender *l, uint32_t count,
			   uint64_t now_ns, uint64_t grace_ns)
{
	uint32_t found;

	for (found = 0; found < count; found++) {
		uint32_t index = victim_find(l);

		if (index == NO_INDEX)
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
}

/* ---- What the host has to do now -------------------------------------------*/

static bool next_expired(struct rbx_lender *l, uint64_t now_ns,
			 struct rbx_lender_action *action)
{
	uint32_t i;

	for (i = 0; i < RBX_CLIENTS_MAX; i++) {
		struct client *client = &l->clients[i];

		if (!client->session_id || client->expired ||
		    now_ns < client->heard_ns ||
		    now_ns - client->heard_ns < l->config.lease_ns)
			continue;
		client->expired = true;
		l->counts.leases_expired++;
		action->kind = RBX_LENDER_EXPIRE;
		action->session_id = client->session_id;
		return true;
	}
	return false;
}

static bool next_ending(struct rbx_lender *l, struct rbx_lender_action *action)
{
	uint32_t index = l->ending_first;

	if (index == NO_INDEX)
		return false;
	l->ending_first = l->slabs[index].next;
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
		struct slab *slab = &l->slabs[index];

		if (slab->state != SLAB_ASKED)
			continue;
		if (now_ns >= slab->revoke_ns) {
			slab_end(l, index);
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
	uint64_t deadline_ns = RBX_LENDER_NEVER_NS;
	uint32_t i;

	if (l->counts.slabs_asked || l->ending_first != NO_INDEX)
		return now_ns;
	for (i = 0; i < RBX_CLIENTS_MAX; i++) {
		const struct client *client = &l->clients[i];

		if (client->session_id && !client->expired)
			deadline_ns = RBX_MIN(deadline_ns,
					      client->heard_ns +
						      l->config.lease_ns);
	}
	return deadline_ns;
}

/* ---- Numbers ----------------------------------------------------------------*/

void rbx_lender_counts(const struct rbx_lender *l,
		       struct rbx_lender_counts *counts)
{
	*counts = l->counts;
}

uint32_t rbx_lender_lent_to(const struct rbx_lender *l, uint64_t session_id)
{
	uint32_t i = session_id ? client_find(l, session_id) : NO_INDEX;

	return i == NO_INDEX ? 0 : l->clients[i].slabs_count;
}

bool rbx_lender_is_draining(const struct rbx_lender *l)
{
	return l->draining;
}
