/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * owners.c - the owners of sessions: which number the lender knows a credential by.
 *
 * An owner has a place from its first session until the last slab of its last session has
 * ended, and of its last volume: it counts the entries of clients and volumes that are its. Its
 * quota and its number of volumes are those of its lines in the file of secrets, or else those for
 * all; nobody is an admin but by its lines. If a reload takes its credential away, what is for all
 * is left for the sessions that go on.
 *
 * Names are found by a hash table with chains. They come from the server's own files, so
 * nobody else chooses which names share a chain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "server/state.h"

#define NONE UINT32_MAX

int rbx_owners_init(struct rbx_server *s)
{
	struct rbx_owners *owners = &s->owners;

	owners->table = calloc(RBX_OWNERS_MAX, sizeof(*owners->table));
	if (!owners->table)
		return rbx_error(-ENOMEM, "no memory for the table of owners");
	memset(owners->chains, 0xff, sizeof(owners->chains));
	owners->first_free = NONE;
	return 0;
}

void rbx_owners_destroy(struct rbx_server *s)
{
	free(s->owners.table);
}

uint32_t rbx_owner_number(const struct rbx_server *s, const struct rbx_owner *owner)
{
	return (uint32_t)(owner - s->owners.table);
}

/* FNV-1a. */
static uint32_t *chain_of(struct rbx_owners *owners, const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return &owners->chains[hash % RBX_OWNER_CHAINS];
}

/* An owner that nobody else could be kept out by may have as many as there are. */
static uint32_t volumes_max_of(const struct rbx_server *s, uint32_t wanted)
{
	if (wanted != RBX_VOLUMES_NOT_SAID)
		return wanted;
	if (s->options.volumes_max)
		return s->options.volumes_max;
	return s->credentials.named ? RBX_OWNED_VOLUMES_DEFAULT : RBX_KEPT_VOLUMES_MAX;
}

static void limits_set(struct rbx_server *s, struct rbx_owner *owner)
{
	struct rbx_credential credential;

	rbx_credentials_find(&s->credentials, owner->credential, &credential);
	owner->is_admin = credential.terms.is_admin;
	owner->volumes_max = volumes_max_of(s, credential.terms.volumes_max);
	owner->quota_bytes = credential.terms.quota_bytes ?: s->options.quota_bytes;
	rbx_lender_set_quota(s->lender, rbx_owner_number(s, owner),
			     rbx_slabs_of_quota(s, owner->quota_bytes));
}

static struct rbx_owner *owner_make(struct rbx_server *s, uint32_t *chain, const char *name)
{
	struct rbx_owners *owners = &s->owners;
	uint32_t number = owners->first_free;
	struct rbx_owner *owner;

	if (number != NONE)
		owners->first_free = owners->table[number].next;
	else if (owners->used_count < RBX_OWNERS_MAX)
		number = owners->used_count++;
	else
		return NULL;
	owner = &owners->table[number];
	*owner = (struct rbx_owner){ .next = *chain };
	memcpy(owner->credential, name, sizeof(owner->credential));
	*chain = number;
	limits_set(s, owner);
	return owner;
}

struct rbx_owner *rbx_owner_take(struct rbx_server *s, const char name[RBX_CREDENTIAL_BYTES])
{
	uint32_t *chain = chain_of(&s->owners, name);
	struct rbx_owner *owner = NULL;
	uint32_t i;

	for (i = *chain; i != NONE && !owner; i = s->owners.table[i].next)
		if (!strcmp(s->owners.table[i].credential, name))
			owner = &s->owners.table[i];
	if (!owner)
		owner = owner_make(s, chain, name);
	if (owner)
		owner->clients_count++;
	return owner;
}

void rbx_owner_give(struct rbx_server *s, struct rbx_owner *owner)
{
	uint32_t *link = chain_of(&s->owners, owner->credential);
	uint32_t number = rbx_owner_number(s, owner);

	RBX_ASSERT(owner->clients_count > 0);
	if (--owner->clients_count)
		return;
	RBX_ASSERT(rbx_lender_owner_is_idle(s->lender, number));
	while (*link != number)
		link = &s->owners.table[*link].next;
	*link = owner->next;
	owner->next = s->owners.first_free;
	s->owners.first_free = number;
}

void rbx_owners_set_limits(struct rbx_server *s)
{
	for (uint32_t i = 0; i < s->owners.used_count; i++)
		if (s->owners.table[i].clients_count)
			limits_set(s, &s->owners.table[i]);
}
