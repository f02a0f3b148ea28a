/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store.c - see store.h.
 *
 * All of it is in tables that outlive machines. Only calls wait, so nothing here needs a lock: what
 * a call does to the tables happens between two waits, as a whole. A machine that stops leaves its
 * leases, which run out.
 *
 * A watch looks at the changes again and again. It ends with the call that is told of an error, as
 * pool/store.h wants it.
 */
#include "sim/store.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/store.h"
#include "sim/events.h"
#include "sim/fiber.h"
#include "sim/random.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/trace.h"

#define MS UINT64_C(1000000)
#define KEYS_MAX 256u
#define LEASES_MAX 4096u
#define CHANGES_MAX 16384u
#define VALUE_BYTES 1024u /* of an entry; pool/entry.h */
#define KEY_BYTES 64u
#define LATENCY_MS_MAX 3u
#define UNREACHABLE_MS_MAX 5000u
#define LOST_MS_MAX 5000u
#define LOOK_MS 100

struct key {
	char name[KEY_BYTES];
	char value[VALUE_BYTES];
	uint32_t value_bytes;
	uint64_t revision;
	uint64_t lease;
};

/* The revision of a change is its place, and 1 for the first. */
struct change {
	char name[KEY_BYTES];
	char value[VALUE_BYTES];
	uint32_t value_bytes;
	bool is_removal;
};

struct lease {
	struct rbx_sim_event ends;
	uint64_t lasts_ns;
	uint64_t kept_at_ns; /* when it was granted, or kept */
	bool is_alive;
};

struct handle {
	struct rbx_store store; /* first: what the caller has */
	int stop_fd;
	uint64_t next_revision; /* of the watch */
	bool is_watching;
};

static struct key keys[KEYS_MAX];
static uint32_t keys_count;
static struct change changes[CHANGES_MAX];
static uint64_t revision_now, revision_kept; /* changes before the latter are forgotten */
static struct lease leases[LEASES_MAX];
static uint32_t leases_count;
static uint64_t away_until_ns[RBX_SIM_NODES_MAX]; /* of node 0: for all */
static struct rbx_sim_event returns;
static uint64_t healed_at_ns;
static struct rbx_random random_of_store;

/* ---- What it has -------------------------------------------------------------------------- */

static struct key *key_find(const char *name)
{
	for (uint32_t i = 0; i < keys_count; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static void change_note(const struct key *key, bool is_removal)
{
	struct change *change = &changes[revision_now];

	RBX_ASSERT(revision_now < CHANGES_MAX);
	revision_now++;
	memcpy(change->name, key->name, sizeof(change->name));
	memcpy(change->value, key->value, sizeof(change->value));
	change->value_bytes = key->value_bytes;
	change->is_removal = is_removal;
}

static void key_remove(struct key *key)
{
	change_note(key, true);
	*key = keys[--keys_count];
}

static void lease_over(struct lease *lease)
{
	uint64_t number = (uint64_t)(lease - leases) + 1;
	uint32_t i = 0;

	rbx_sim_cancel(&lease->ends);
	lease->is_alive = false;
	while (i < keys_count)
		if (keys[i].lease == number)
			key_remove(&keys[i]);
		else
			i++;
}

static void lease_runs_out(struct rbx_sim_event *event)
{
	struct lease *lease = RBX_CONTAINER_OF(event, struct lease, ends);

	rbx_sim_tally(RBX_SIM_TALLY_announcements_over, 1);
	RBX_SIM_TRACE(0, "store-lease-over", "lease", lease - leases + 1, "keys", keys_count);
	lease_over(lease);
}

static struct lease *lease_find(uint64_t number)
{
	if (!number || number > leases_count || !leases[number - 1].is_alive)
		return NULL;
	return &leases[number - 1];
}

/* ---- Away --------------------------------------------------------------------------------- */

/* It begins anew, and so do its leases. */
static void comes_back(struct rbx_sim_event *event)
{
	(void)event;
	for (uint32_t i = 0; i < leases_count; i++)
		if (leases[i].is_alive)
			rbx_sim_after(&leases[i].ends, leases[i].lasts_ns);
}

void rbx_sim_store_init(uint64_t seed)
{
	rbx_sim_random_split(&random_of_store, seed, "store", 0);
	returns.run = comes_back;
}

void rbx_sim_store_away(uint32_t node, uint64_t for_ns, bool is_down)
{
	RBX_SIM_TRACE(0, "store-away", "node", node, "down", is_down);
	away_until_ns[node] = RBX_MAX(away_until_ns[node], rbx_sim_now() + for_ns);
	if (node || !is_down)
		return;
	for (uint32_t i = 0; i < leases_count; i++)
		rbx_sim_cancel(&leases[i].ends);
	rbx_sim_at(&returns, away_until_ns[0]);
}

bool rbx_sim_store_is_away(uint32_t node)
{
	return rbx_sim_now() < away_until_ns[0] || rbx_sim_now() < away_until_ns[node];
}

void rbx_sim_store_heal(void)
{
	memset(away_until_ns, 0, sizeof(away_until_ns));
	healed_at_ns = rbx_sim_now();
	if (rbx_sim_is_queued(&returns))
		rbx_sim_after(&returns, 0);
}

bool rbx_sim_store_has(const char *ending)
{
	size_t length = strlen(ending);

	for (uint32_t i = 0; i < keys_count; i++) {
		size_t of_key = strlen(keys[i].name);

		if (of_key >= length && !strcmp(keys[i].name + of_key - length, ending))
			return leases[keys[i].lease - 1].kept_at_ns >= healed_at_ns;
	}
	return false;
}

uint32_t rbx_sim_store_keys_count(void)
{
	return keys_count;
}

/* ---- Asking it ---------------------------------------------------------------------------- */

static int fail(struct rbx_store *store, int err, const char *what)
{
	snprintf(store->error, sizeof(store->error), "the store %s", what);
	return err;
}

/* -ECANCELED: the caller is to end. */
static int wait_for(struct rbx_store *store, uint64_t least_ms, uint64_t most_ms)
{
	struct pollfd stop = { .fd = ((struct handle *)store)->stop_fd, .events = POLLIN };

	if (poll(&stop, 1, (int)rbx_sim_between(&random_of_store, least_ms, most_ms)) > 0)
		return fail(store, -ECANCELED, "is not asked any more");
	return 0;
}

static int unreachable(struct rbx_store *store)
{
	int err = wait_for(store, 1, UNREACHABLE_MS_MAX);

	return err ? err : fail(store, -EHOSTUNREACH, "cannot be reached");
}

/* Before it does what it is asked for. */
static int begin(struct rbx_store *store)
{
	int err = wait_for(store, 0, LATENCY_MS_MAX);

	if (err)
		return err;
	if (rbx_sim_store_is_away(rbx_sim_node()))
		return unreachable(store);
	if (rbx_sim_site(RBX_SIM_SITE_store_refuses))
		return fail(store, -EREMOTEIO, "reports an error");
	return 0;
}

/* After it has. */
static int end(struct rbx_store *store, int err)
{
	int waited = wait_for(store, 0, LATENCY_MS_MAX);

	if (waited)
		return waited;
	if (!rbx_sim_store_is_away(rbx_sim_node()) && !rbx_sim_site(RBX_SIM_SITE_store_reply_lost))
		return err;
	waited = wait_for(store, 1, LOST_MS_MAX);
	return waited ? waited : fail(store, -ETIMEDOUT, "does not answer in time");
}

static int visit_key(const struct key *key, rbx_store_visit_fn *visit, void *user)
{
	const struct rbx_store_entry entry = { key->name, key->value, key->value_bytes,
					       key->revision };

	return visit(user, &entry);
}

static int store_get(struct rbx_store *store, const char *name, rbx_store_visit_fn *visit,
		     void *user)
{
	struct key *key, copy;
	int err = begin(store);

	if (err)
		return err;
	key = key_find(name);
	if (key)
		copy = *key;
	err = end(store, key ? 0 : fail(store, -ENOENT, "has no such key"));
	return err ? err : visit_key(&copy, visit, user);
}

static int store_range(struct rbx_store *store, const char *prefix, uint32_t max,
		       rbx_store_visit_fn *visit, void *user, uint64_t *revision)
{
	struct key *copies = malloc(sizeof(keys));
	uint32_t i, count = 0;
	int err = begin(store);

	if (!copies)
		abort();
	for (i = 0; i < keys_count && !err; i++)
		if (!strncmp(keys[i].name, prefix, strlen(prefix)))
			copies[count++] = keys[i];
	*revision = revision_now;
	if (!err)
		err = end(store, count > max ? fail(store, -ENOSPC, "has too many keys") : 0);
	for (i = 0; i < count && !err; i++)
		err = visit_key(&copies[i], visit, user);
	free(copies);
	return err;
}

static bool is_at(const struct key *key, uint64_t if_revision)
{
	return if_revision == RBX_STORE_ANY ||
	       if_revision == (key ? key->revision : RBX_STORE_ABSENT);
}

static int put_now(struct rbx_store *store, const char *name, const char *value, size_t value_bytes,
		   uint64_t if_revision, uint64_t lease)
{
	struct key *key = key_find(name);

	if (!is_at(key, if_revision))
		return fail(store, -EEXIST, "has another revision of the key");
	if (lease != RBX_STORE_NO_LEASE && !lease_find(lease))
		return fail(store, -ENOENT, "has no such lease");
	if (!key) {
		RBX_ASSERT(keys_count < KEYS_MAX && strlen(name) < KEY_BYTES);
		key = &keys[keys_count++];
		strcpy(key->name, name);
	}
	RBX_ASSERT(value_bytes < VALUE_BYTES);
	memcpy(key->value, value, value_bytes);
	key->value[value_bytes] = '\0';
	key->value_bytes = (uint32_t)value_bytes;
	key->lease = lease;
	change_note(key, false);
	key->revision = revision_now;
	return 0;
}

static int store_put(struct rbx_store *store, const char *name, const char *value,
		     size_t value_bytes, uint64_t if_revision, uint64_t lease, uint64_t *revision)
{
	int err = begin(store);

	if (err)
		return err;
	err = put_now(store, name, value, value_bytes, if_revision, lease);
	*revision = revision_now;
	return end(store, err);
}

static int store_remove(struct rbx_store *store, const char *name, uint64_t if_revision)
{
	struct key *key;
	int err = begin(store);

	if (err)
		return err;
	key = key_find(name);
	if (!is_at(key, if_revision))
		err = fail(store, -EEXIST, "has another revision of the key");
	else if (!key)
		err = fail(store, -ENOENT, "has no such key");
	else
		key_remove(key);
	return end(store, err);
}

static int store_lease_grant(struct rbx_store *store, uint32_t seconds, uint64_t *number)
{
	struct lease *lease;
	int err = begin(store);

	if (err)
		return err;
	RBX_ASSERT(leases_count < LEASES_MAX);
	lease = &leases[leases_count++];
	*lease = (struct lease){
		.ends.run = lease_runs_out,
		.lasts_ns = seconds * 1000 * MS,
		.kept_at_ns = rbx_sim_now(),
		.is_alive = true,
	};
	rbx_sim_after(&lease->ends, lease->lasts_ns);
	*number = leases_count;
	err = end(store, 0);
	if (err)
		*number = RBX_STORE_NO_LEASE;
	return err;
}

static int lease_do(struct rbx_store *store, uint64_t number, void (*act)(struct lease *lease))
{
	struct lease *lease;
	int err = begin(store);

	if (err)
		return err;
	lease = lease_find(number);
	if (lease)
		act(lease);
	return end(store, lease ? 0 : fail(store, -ENOENT, "has no such lease"));
}

static void lease_renew(struct lease *lease)
{
	lease->kept_at_ns = rbx_sim_now();
	rbx_sim_after(&lease->ends, lease->lasts_ns);
}

static int store_lease_keep(struct rbx_store *store, uint64_t number)
{
	return lease_do(store, number, lease_renew);
}

static int store_lease_end(struct rbx_store *store, uint64_t number)
{
	return lease_do(store, number, lease_over);
}

/* ---- Watches ------------------------------------------------------------------------------ */

static int store_watch(struct rbx_store *store, const char *prefix, uint64_t from_revision)
{
	struct handle *handle = (struct handle *)store;
	int err = begin(store);

	(void)prefix; /* there is one pool */
	handle->next_revision = from_revision;
	handle->is_watching = !err;
	return err;
}

static void store_watch_end(struct rbx_store *store)
{
	((struct handle *)store)->is_watching = false;
}

/* Visits what has changed since. Returns whether there was anything. */
static bool changes_visit(struct handle *handle, rbx_store_visit_fn *visit, void *user, int *err)
{
	uint64_t until = revision_now;
	bool any = false;

	for (; handle->next_revision <= until && !*err; handle->next_revision++) {
		const struct change *change = &changes[handle->next_revision - 1];
		const struct rbx_store_entry entry = {
			change->name, change->is_removal ? NULL : change->value,
			change->is_removal ? 0 : change->value_bytes, handle->next_revision
		};

		any = true;
		*err = visit(user, &entry);
	}
	return any;
}

/* One that is cut off may be silent, or notices it. */
static int watch_look(struct handle *handle, rbx_store_visit_fn *visit, void *user, bool *any)
{
	struct rbx_store *store = &handle->store;
	int err = wait_for(store, LOOK_MS / 2, LOOK_MS);

	if (err)
		return err;
	if (rbx_sim_store_is_away(rbx_sim_node()))
		return rbx_random_below(&random_of_store, 32) ? 0 : unreachable(store);
	if (handle->next_revision <= revision_now && rbx_sim_site(RBX_SIM_SITE_store_forgets))
		revision_kept = revision_now;
	if (handle->next_revision <= revision_kept)
		return fail(store, -ESTALE, "has forgotten that revision");
	*any = changes_visit(handle, visit, user, &err);
	return err;
}

static int store_watch_next(struct rbx_store *store, uint32_t timeout_ms, rbx_store_visit_fn *visit,
			    void *user)
{
	struct handle *handle = (struct handle *)store;
	uint64_t until_ns = rbx_sim_now() + timeout_ms * MS;
	bool any = false;
	int err = 0;

	RBX_ASSERT(handle->is_watching);
	while (!err && !any && rbx_sim_now() < until_ns)
		err = watch_look(handle, visit, user, &any);
	if (err)
		store_watch_end(store);
	return err;
}

/* ---- Open and close ----------------------------------------------------------------------- */

static void store_close(struct rbx_store *store)
{
	free(store);
}

static int store_open(const struct rbx_store_place *place, struct rbx_store **store, char *error)
{
	struct handle *handle = calloc(1, sizeof(*handle));

	(void)error;
	if (!handle)
		abort();
	handle->store.ops = &rbx_store_etcd_1;
	handle->stop_fd = place->stop_fd;
	*store = &handle->store;
	return 0;
}

const struct rbx_store_ops rbx_store_etcd_1 = {
	.open = store_open,
	.close = store_close,
	.get = store_get,
	.range = store_range,
	.put = store_put,
	.remove = store_remove,
	.lease_grant = store_lease_grant,
	.lease_keep = store_lease_keep,
	.lease_end = store_lease_end,
	.watch = store_watch,
	.watch_next = store_watch_next,
	.watch_end = store_watch_end,
};
