/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store_pool.c - a pool whose servers announce themselves in a store.
 *
 * The entries are read at one revision of the store, and watched from the next one on: so
 * nothing between is missed. If the store has forgotten that revision (compaction), or
 * the watch ends, they are read anew.
 *
 * While the store is away the members that were read last stay in force, and it is tried
 * again and again, at all its endpoints, with longer and longer waits. A watch that is
 * silent is no proof that the store is there, so every 10 s a key is read.
 *
 * An entry that cannot be right is left out and named in the trouble: one server that
 * writes nonsense must not take the others away. More entries than a pool may have are
 * refused as a whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/secret.h"
#include "pool/backoff.h"
#include "pool/entry.h"
#include "pool/pool.h"
#include "pool/store.h"

#define SILENCE_MS 10000

struct entry {
	uint64_t revision;
	bool is_broken; /* then only the incarnation of the member is set */
	struct rbx_pool_member member;
};

struct store_pool {
	struct rbx_store *store;
	char prefix[RBX_STORE_KEY_BYTES];
	struct entry *entries; /* RBX_POOL_MEMBERS_MAX of them, by incarnation */
	size_t count;
	char broken[RBX_POOL_TEXT_BYTES]; /* about the last one that was */
	struct rbx_backoff backoff;
};

/* ---- Entries ----------------------------------------------------------------------*/

static struct entry *entry_find(struct store_pool *all, uint64_t incarnation)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		if (all->entries[i].member.incarnation == incarnation)
			return &all->entries[i];
	return NULL;
}

static void entry_remove(struct store_pool *all, struct entry *entry)
{
	if (entry)
		*entry = all->entries[--all->count];
}

static void entry_set(struct store_pool *all, const struct rbx_store_entry *from,
		      uint64_t incarnation, struct entry *entry)
{
	char error[RBX_ENTRY_ERROR_BYTES];

	*entry = (struct entry){ .revision = from->revision };
	entry->is_broken = rbx_entry_read(from->value, from->value_bytes, &entry->member, error);
	if (entry->is_broken) {
		memset(&entry->member, 0, sizeof(entry->member));
		snprintf(all->broken, sizeof(all->broken), "%s: %s; it is left out", from->key, error);
	}
	entry->member.incarnation = incarnation;
}

/* Takes over what a key is now; the same for a read and for a change. */
static int entry_visit(void *user, const struct rbx_store_entry *from)
{
	struct store_pool *all = user;
	uint64_t incarnation = rbx_entry_incarnation(all->prefix, from->key);
	struct entry *entry = entry_find(all, incarnation);

	if (!incarnation) /* a key of somebody else; what a server writes ends in its number */
		return 0;
	if (!from->value) {
		entry_remove(all, entry);
		return 0;
	}
	if (!entry && all->count == RBX_POOL_MEMBERS_MAX) {
		snprintf(all->store->error, sizeof(all->store->error),
			 "more than %u servers have announced themselves in %s",
			 RBX_POOL_MEMBERS_MAX, all->prefix);
		return -ENOSPC;
	}
	entry_set(all, from, incarnation, entry ? entry : &all->entries[all->count++]);
	return 0;
}

/* Whether another entry of this address is younger: a server that was started anew, while
 * the lease of the former one has not run out. */
static bool is_former(const struct store_pool *all, const struct entry *entry)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		if (all->entries[i].revision > entry->revision && !all->entries[i].is_broken &&
		    !strcmp(all->entries[i].member.address, entry->member.address))
			return true;
	return false;
}

static int members_publish(struct rbx_pool *pool)
{
	struct store_pool *all = pool->kind_data;
	struct rbx_members members = { .count = 0 };
	bool some_broken = false;
	int err = 0;
	size_t i;

	for (i = 0; i < all->count && !err; i++) {
		some_broken |= all->entries[i].is_broken;
		if (!all->entries[i].is_broken && !is_former(all, &all->entries[i]))
			err = rbx_members_add(&members, &all->entries[i].member);
		if (err == -EEXIST) /* two entries that were written by one transaction */
			err = 0;
	}
	if (!err)
		rbx_pool_set(pool, &members, some_broken ? all->broken : "");
	rbx_members_free(&members);
	return err;
}

/* ---- Reading and watching -----------------------------------------------------------*/

/* Reads all entries and begins to watch them. */
static int entries_read(struct store_pool *all)
{
	struct rbx_store *store = all->store;
	uint64_t revision;
	int err;

	all->count = 0;
	err = store->ops->range(store, all->prefix, RBX_POOL_MEMBERS_MAX, entry_visit, all,
				&revision);
	return err ? err : store->ops->watch(store, all->prefix, revision + 1);
}

static int nothing_visit(void *user, const struct rbx_store_entry *entry)
{
	(void)user;
	(void)entry;
	return 0;
}

/* Follows the changes, until an error. */
static int changes_follow(struct rbx_pool *pool)
{
	struct store_pool *all = pool->kind_data;
	struct rbx_store *store = all->store;
	uint64_t look_at_ns = rbx_after_ms(SILENCE_MS);
	int err = 0;

	while (!err) {
		err = store->ops->watch_next(store, SILENCE_MS, entry_visit, all);
		if (!err)
			err = members_publish(pool);
		if (err || rbx_now_ns() < look_at_ns)
			continue;
		err = store->ops->get(store, all->prefix, nothing_visit, NULL);
		if (err == -ENOENT)
			err = 0;
		look_at_ns = rbx_after_ms(SILENCE_MS);
		/* It has lasted, so the next failure is a first one. */
		rbx_backoff_succeeded(&all->backoff);
	}
	return err;
}

static void *store_run(void *pool_pointer)
{
	struct rbx_pool *pool = pool_pointer;
	struct store_pool *all = pool->kind_data;
	int err = 0; /* open() has read them */

	while (rbx_pool_worker_wait(&pool->worker, -1,
				    err ? (int)rbx_backoff_failed(&all->backoff) : 0)) {
		if (err) {
			err = entries_read(all);
			if (!err)
				err = members_publish(pool);
			if (err) {
				rbx_pool_complain(pool, all->store->error);
				continue;
			}
		}
		err = changes_follow(pool);
		all->store->ops->watch_end(all->store);
	}
	return NULL;
}

/* ---- Open and close -----------------------------------------------------------------*/

static int store_open(struct rbx_pool *pool, const char *place, bool is_encrypted)
{
	struct store_pool *all = pool->kind_data;
	char *endpoints = strdup(place), name[RBX_POOL_NAME_BYTES];
	char error[RBX_STORE_ERROR_BYTES] = "";
	struct rbx_store_place at = {
		.endpoints = endpoints,
		.is_encrypted = is_encrypted,
		.stop_fd = pool->worker.stop_fd,
	};
	const struct rbx_store_ops *ops;
	int err;

	err = endpoints ? rbx_pool_place_parse(place, endpoints, name) :
			  rbx_error(-ENOMEM, "out of memory");
	if (!err)
		err = rbx_store_etcd_load(&ops);
	if (!err) {
		rbx_entry_prefix(name, all->prefix, sizeof(all->prefix));
		err = ops->open(&at, &all->store, error);
		if (err)
			rbx_error(err, "%s", error);
	}
	free(endpoints);
	return err;
}

static int pool_open(struct rbx_pool *pool, const char *place, bool is_encrypted)
{
	struct store_pool *all = calloc(1, sizeof(*all));
	uint64_t seed = rbx_now_ns();
	int err;

	if (!all)
		return rbx_error(-ENOMEM, "out of memory");
	pool->kind_data = all;
	all->entries = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*all->entries));
	if (!all->entries)
		return rbx_error(-ENOMEM, "out of memory");
	(void)rbx_random(&seed, sizeof(seed));
	rbx_backoff_init(&all->backoff, seed);
	err = store_open(pool, place, is_encrypted);
	if (err)
		return err;
	err = entries_read(all);
	if (err)
		return rbx_error(err, "%s", all->store->error);
	err = members_publish(pool);
	return err ? rbx_error(err, "out of memory") :
		     rbx_pool_worker_start(&pool->worker, store_run, pool);
}

static int plain_open(struct rbx_pool *pool, const char *place)
{
	return pool_open(pool, place, false);
}

static int encrypted_open(struct rbx_pool *pool, const char *place)
{
	return pool_open(pool, place, true);
}

static void pool_close(struct rbx_pool *pool)
{
	struct store_pool *all = pool->kind_data;

	if (!all)
		return;
	if (all->store)
		all->store->ops->close(all->store);
	free(all->entries);
	free(all);
}

const struct rbx_pool_kind rbx_pool_etcd = {
	.prefix = "etcd://",
	.open = plain_open,
	.close = pool_close,
};

const struct rbx_pool_kind rbx_pool_etcds = {
	.prefix = "etcds://",
	.open = encrypted_open,
	.close = pool_close,
};
