/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * announcement.c - a server writes its entry into a store, and keeps it alive.
 *
 * The entry is bound to a lease of 10 s, which a thread renews three times in that time. If
 * the process dies, the lease runs out and the entry goes. If the lease was lost, because
 * the store or the way to it was away for longer, the thread takes another one and writes
 * the entry again. It also looks now and then whether somebody has removed the entry.
 *
 * At a clean end the lease is ended, and the entry with it. That may take 700 ms: an entry
 * that stays goes with its lease.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/port.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/secret.h"
#include "pool/backoff.h"
#include "pool/entry.h"
#include "pool/pool.h"
#include "pool/store.h"

#define LEASE_S 10
#define KEEP_MS (LEASE_S * 1000 / 3)
#define FREE_BYTES_MS 3000 /* between two entries of which only free_bytes differs */
#define KEEPS_PER_LOOK 9 /* half a minute */
#define GOODBYE_MS 700

struct rbx_announcement {
	struct rbx_pool_worker worker; /* its lock guards `member` */
	struct rbx_pool_member member; /* as the program wants it */
	int changed_fd; /* readable: the member has changed */

	const struct rbx_store_ops *ops;
	struct rbx_store_place place;
	char *endpoints;
	char key[RBX_STORE_KEY_BYTES];

	/* Of the thread: */
	struct rbx_store *store;
	struct rbx_pool_member written;
	uint64_t written_ns;
	uint64_t lease; /* RBX_STORE_NO_LEASE: none, and nothing is written */
	uint64_t keep_at_ns;
	uint32_t keeps_count;
	struct rbx_backoff backoff;
};

/* ---- Steps of the thread: 0 or -errno, with the text in the store -----------------------*/

static struct rbx_pool_member member_now(struct rbx_announcement *a)
{
	struct rbx_pool_member now;

	pthread_mutex_lock(&a->worker.lock);
	now = a->member;
	pthread_mutex_unlock(&a->worker.lock);
	return now;
}

static int entry_write(struct rbx_announcement *a)
{
	struct rbx_pool_member now = member_now(a);
	char json[RBX_ENTRY_BYTES_MAX];
	size_t length = rbx_entry_write(&now, json, sizeof(json));
	uint64_t revision;
	int err;

	err = a->ops->put(a->store, a->key, json, length, RBX_STORE_ANY, a->lease, &revision);
	if (err)
		return err;
	a->written = now;
	a->written_ns = rbx_now_ns();
	return 0;
}

static int lease_take(struct rbx_announcement *a)
{
	int err = a->ops->lease_grant(a->store, LEASE_S, &a->lease);

	if (err)
		return err;
	/* The entry went with the lease before. If this fails, it is written later. */
	memset(&a->written, 0, sizeof(a->written));
	a->keep_at_ns = rbx_after_ms(KEEP_MS);
	return entry_write(a);
}

static int nothing_visit(void *user, const struct rbx_store_entry *entry)
{
	(void)user;
	(void)entry;
	return 0;
}

static int lease_keep(struct rbx_announcement *a)
{
	int err = a->ops->lease_keep(a->store, a->lease);

	if (err)
		return err;
	a->keep_at_ns = rbx_after_ms(KEEP_MS);
	if (++a->keeps_count % KEEPS_PER_LOOK)
		return 0;
	err = a->ops->get(a->store, a->key, nothing_visit, NULL);
	return err == -ENOENT ? entry_write(a) : err;
}

/* When the entry is to be written: 0: now; UINT64_MAX: not at all. */
static uint64_t write_at(struct rbx_announcement *a)
{
	struct rbx_pool_member now = member_now(a), with_free = a->written;

	if (!memcmp(&now, &a->written, sizeof(now)))
		return UINT64_MAX;
	with_free.free_bytes = now.free_bytes;
	if (memcmp(&now, &with_free, sizeof(now)) != 0)
		return 0;
	return a->written_ns + FREE_BYTES_MS * UINT64_C(1000000);
}

static int step(struct rbx_announcement *a)
{
	uint64_t now_ns = rbx_now_ns();
	int err = 0;

	if (a->lease == RBX_STORE_NO_LEASE)
		err = lease_take(a);
	else if (now_ns >= a->keep_at_ns)
		err = lease_keep(a);
	if (!err && now_ns >= write_at(a))
		err = entry_write(a);
	if (err == -ENOENT)
		a->lease = RBX_STORE_NO_LEASE;
	return err;
}

/* ---- The thread -------------------------------------------------------------------------*/

static uint32_t pause_ms(struct rbx_announcement *a)
{
	uint64_t now_ns = rbx_now_ns(), until_ns = RBX_MIN(write_at(a), a->keep_at_ns);

	return until_ns > now_ns ? (uint32_t)((until_ns - now_ns) / 1000000) + 1 : 0;
}

static void *announcement_run(void *announcement)
{
	struct rbx_announcement *a = announcement;
	bool was_lost = false;
	uint32_t wait_ms = 0;
	int err = 0;

	/* After a failure a change is no reason to come sooner. */
	while (rbx_pool_worker_wait(&a->worker, err ? -1 : a->changed_fd, (int)wait_ms)) {
		eventfd_t changes;

		(void)eventfd_read(a->changed_fd, &changes);
		err = step(a);
		/* The lease was lost: at once another one. If that is lost as well, it would be
		 * so again and again. */
		if (err == -ENOENT && !was_lost) {
			was_lost = true;
			wait_ms = 0;
			continue;
		}
		was_lost &= err != 0;
		rbx_pool_worker_complain(&a->worker, err ? a->store->error : "");
		if (!err)
			rbx_backoff_succeeded(&a->backoff);
		wait_ms = err ? RBX_MIN(rbx_backoff_failed(&a->backoff), (uint32_t)KEEP_MS) :
				pause_ms(a);
	}
	return NULL;
}

/* With a store of its own, whose calls do not end at once but soon. */
static void entry_take_back(struct rbx_announcement *a)
{
	const struct itimerspec soon = { .it_value.tv_nsec = GOODBYE_MS * 1000000l };
	int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	char error[RBX_STORE_ERROR_BYTES];
	struct rbx_store *store;

	if (timer_fd < 0)
		return;
	timerfd_settime(timer_fd, 0, &soon, NULL);
	a->place.stop_fd = timer_fd;
	if (!a->ops->open(&a->place, &store, error)) {
		(void)a->ops->lease_end(store, a->lease);
		a->ops->close(store);
	}
	close(timer_fd);
}

/* ---- The public calls ---------------------------------------------------------------------*/

static void announcement_free(struct rbx_announcement *a)
{
	rbx_pool_worker_close(&a->worker);
	if (a->lease != RBX_STORE_NO_LEASE)
		entry_take_back(a);
	if (a->store)
		a->ops->close(a->store);
	if (a->changed_fd >= 0)
		close(a->changed_fd);
	free(a->endpoints);
	free(a);
}

static int member_check(const struct rbx_pool_member *member)
{
	if (!member || !memchr(member->address, 0, sizeof(member->address)) ||
	    !rbx_member_address_is_good(member->address))
		return rbx_error(-EINVAL, "a server is announced by its address host:port");
	if (!memchr(member->labels, 0, sizeof(member->labels)) ||
	    !rbx_member_labels_are_good(member->labels))
		return rbx_error(-EINVAL, "labels \"%.60s\": name=value,name=value of at most %u characters is wanted, and no name twice",
				 member->labels, RBX_POOL_LABELS_BYTES - 1);
	if (!member->incarnation)
		return rbx_error(-EINVAL, "a server is announced with its incarnation");
	return 0;
}

/* Texts with zeros behind their ends, so that members can be compared as a whole. */
static struct rbx_pool_member member_copy(const struct rbx_pool_member *from)
{
	struct rbx_pool_member member;

	rbx_member_init(&member, from->address);
	strcpy(member.labels, from->labels);
	member.memory_bytes = from->memory_bytes;
	member.free_bytes = from->free_bytes;
	member.incarnation = from->incarnation;
	member.draining = !!from->draining;
	return member;
}

static int place_take(struct rbx_announcement *a, const char *pool, uint64_t incarnation)
{
	const char *place = NULL;
	char name[RBX_POOL_NAME_BYTES];
	int err;

	if (!strncmp(pool, "etcds://", 8))
		place = pool + 8;
	else if (!strncmp(pool, "etcd://", 7))
		place = pool + 7;
	if (!place)
		return rbx_error(-EINVAL, "pool \"%.80s\": a server announces itself in etcd://HOST:PORT/NAME",
				 pool);
	a->endpoints = strdup(place);
	if (!a->endpoints)
		return rbx_error(-ENOMEM, "out of memory");
	err = rbx_pool_place_parse(place, a->endpoints, name);
	if (err)
		return err;
	rbx_entry_key(name, incarnation, a->key, sizeof(a->key));
	a->place = (struct rbx_store_place){
		.endpoints = a->endpoints,
		.is_encrypted = place == pool + 8,
		.stop_fd = a->worker.stop_fd,
	};
	return 0;
}

static int store_open(struct rbx_announcement *a)
{
	char error[RBX_STORE_ERROR_BYTES] = "";
	int err = rbx_store_etcd_load(&a->ops);

	if (err)
		return err;
	err = a->ops->open(&a->place, &a->store, error);
	return err ? rbx_error(err, "%s", error) : 0;
}

int rbx_announcement_open(struct rbx_announcement **announcement, const char *pool,
			  const struct rbx_pool_member *member)
{
	struct rbx_announcement *a;
	uint64_t seed = rbx_now_ns();
	int err;

	if (!announcement || !pool)
		return rbx_error(-EINVAL, "a pointer for the announcement and a pool must be given");
	err = rbx_guard_thread("rbx_announcement_open");
	if (!err)
		err = member_check(member);
	if (err)
		return err;
	a = calloc(1, sizeof(*a));
	if (!a)
		return rbx_error(-ENOMEM, "out of memory");
	err = rbx_pool_worker_open(&a->worker);
	if (err) {
		free(a);
		return err;
	}
	a->member = member_copy(member);
	(void)rbx_random(&seed, sizeof(seed));
	rbx_backoff_init(&a->backoff, seed);
	a->changed_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (a->changed_fd < 0)
		err = rbx_error(-errno, "an announcement needs a file descriptor: %s", strerror(errno));
	if (!err)
		err = place_take(a, pool, member->incarnation);
	if (!err)
		err = store_open(a);
	if (!err)
		err = rbx_pool_worker_start(&a->worker, announcement_run, a);
	if (err)
		announcement_free(a);
	else
		*announcement = a;
	return err;
}

int rbx_announcement_update(struct rbx_announcement *a, const struct rbx_pool_member *member)
{
	int err;

	if (!a)
		return rbx_error(-EINVAL, "an announcement must be given");
	err = member_check(member);
	if (err)
		return err;
	if (member->incarnation != a->member.incarnation)
		return rbx_error(-EINVAL, "another incarnation is another server, with an announcement of its own");
	pthread_mutex_lock(&a->worker.lock);
	a->member = member_copy(member);
	pthread_mutex_unlock(&a->worker.lock);
	(void)eventfd_write(a->changed_fd, 1);
	return 0;
}

int rbx_announcement_trouble(struct rbx_announcement *a, char *text, size_t text_bytes)
{
	return rbx_pool_worker_trouble(&a->worker, text, text_bytes);
}

int rbx_announcement_close(struct rbx_announcement *a)
{
	int err = a ? rbx_pool_worker_guard(&a->worker, "rbx_announcement_close") : 0;

	if (a && !err)
		announcement_free(a);
	return err;
}
