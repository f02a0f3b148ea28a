/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * monitor.c - the listeners, what is watched for them, and the gate of look-ups.
 *
 * A watch is an entry in a table, as several caches, and several regions of one cache, may
 * overlap. The kernel only knows whether a page is watched. When a watch ends, only the parts
 * that no other watch covers are given back to the kernel. The table is searched from end to
 * end: next to registering memory, that is nothing.
 *
 * Nothing is allocated, and nobody frees memory, while the lock is held: a thread in free()
 * may hold a lock of malloc while it waits for an event to be read, which needs this lock.
 */
#include "lib/monitor/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/monitor/internal.h"

/* Discarded ranges whose pages may not be gone yet. If there are more, they are taken
 * together. */
#define DOUBTS_MAX 64u

/*
 * How long a range stays in doubt after the thread that discards it was seen to run. All that
 * is left to it then is to take the lock of the address space and to discard; the registration
 * with the kernel that follows waits for that lock. So this only has to be longer than a
 * thread is preempted in between.
 */
#define DOUBT_NS 200000000ull

struct range {
	uintptr_t start;
	uintptr_t end;
};

struct doubt {
	struct range range;
	uint64_t until_ns; /* 0: the thread was not seen to run yet */
};

static struct {
	/* Locks in order of precedence. */
	pthread_mutex_t source_lock; /* guards the start and stop of the source, and its users */
	pthread_mutex_t lock; /* guards all below but the users; nothing is allocated under it */
	uint32_t userfaultfd_users;
	uint32_t listeners_count;
	uint32_t watches_count;
	uint32_t doubts_count;
	struct rbx_monitor_listener *listeners[RBX_MONITOR_LISTENERS_MAX];
	struct range watches[RBX_MONITOR_WATCHES_MAX];
	struct doubt doubts[DOUBTS_MAX];
} monitor = {
	.source_lock = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

uint32_t rbx_monitor_telling;

static bool overlaps(const struct range *range, uintptr_t start, uintptr_t end)
{
	return range->start < end && start < range->end;
}

/*
 * Closes the gate. Before the event is read, or before the change is made: a thread that
 * knows the change to be over must find the gate closed, or all told. The exchange is ordered
 * before the system call that follows by that call itself.
 */
void rbx_monitor_tell_begin(void)
{
	pthread_mutex_lock(&monitor.lock);
	RBX_EXCHANGE(&rbx_monitor_telling, 1);
}

void rbx_monitor_tell(uintptr_t start, uintptr_t end)
{
	for (uint32_t i = 0; i < monitor.listeners_count; i++)
		monitor.listeners[i]->changed(monitor.listeners[i], start, end);
}

/* Pair: the acquire of rbx_monitor_gate(), which then sees what changed() has written. */
void rbx_monitor_tell_end(void)
{
	RBX_STORE_RELEASE(&rbx_monitor_telling, 0);
	pthread_mutex_unlock(&monitor.lock);
}

static void widen(struct range *range, uintptr_t start, uintptr_t end)
{
	range->start = RBX_MIN(range->start, start);
	range->end = RBX_MAX(range->end, end);
}

void rbx_monitor_tell_early(uintptr_t start, uintptr_t end)
{
	struct doubt *doubt = &monitor.doubts[DOUBTS_MAX - 1];

	if (monitor.doubts_count < DOUBTS_MAX) {
		doubt = &monitor.doubts[monitor.doubts_count++];
		doubt->range = (struct range){ start, end };
	}
	widen(&doubt->range, start, end);
	doubt->until_ns = 0;
	rbx_monitor_tell(start, end);
}

/* Whether pages of the range may still be discarded. The lock is held. */
static bool is_in_doubt(uintptr_t start, uintptr_t end)
{
	bool is_changing = monitor.doubts_count != 0 && rbx_userfaultfd_is_changing();
	uint64_t now_ns = monitor.doubts_count != 0 ? rbx_now_ns() : 0;
	bool found = false;

	for (uint32_t i = 0; i < monitor.doubts_count;) {
		struct doubt *doubt = &monitor.doubts[i];

		if (doubt->until_ns == 0 && !is_changing)
			doubt->until_ns = now_ns + DOUBT_NS;
		if (doubt->until_ns != 0 && doubt->until_ns <= now_ns) {
			*doubt = monitor.doubts[--monitor.doubts_count];
			continue;
		}
		found = found || overlaps(&doubt->range, start, end);
		i++;
	}
	return found;
}

void rbx_monitor_wait(void)
{
	pthread_mutex_lock(&monitor.lock);
	pthread_mutex_unlock(&monitor.lock);
}

bool rbx_monitor_is_settled(struct rbx_monitor_listener *listener)
{
	if (listener->source == RBX_MONITOR_USERFAULTFD && rbx_userfaultfd_is_changing())
		return false;
	/* After it: a change that was over at that time is told by now, or being told. */
	rbx_monitor_gate();
	return true;
}

/* In a child of fork(). Other threads, which are not here, may have held the locks. */
static void child_begins(void)
{
	rbx_userfaultfd_forget();
	pthread_mutex_init(&monitor.source_lock, NULL);
	pthread_mutex_init(&monitor.lock, NULL);
	monitor.userfaultfd_users = 0;
	monitor.listeners_count = 0;
	monitor.watches_count = 0;
	monitor.doubts_count = 0;
	RBX_STORE_RELEASE(&rbx_monitor_telling, 0);
}

static void register_child_begins(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}

static void watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_child_begins);
}

/* Starts the source for its first user. */
static int take_userfaultfd(char *text, size_t size_bytes)
{
	int err = 0;

	watch_forks();
	pthread_mutex_lock(&monitor.source_lock);
	if (monitor.userfaultfd_users == 0)
		err = rbx_userfaultfd_open(text, size_bytes);
	if (!err)
		monitor.userfaultfd_users++;
	pthread_mutex_unlock(&monitor.source_lock);
	return err;
}

static void drop_userfaultfd(void)
{
	pthread_mutex_lock(&monitor.source_lock);
	if (--monitor.userfaultfd_users == 0) {
		rbx_userfaultfd_close();
		RBX_ASSERT(monitor.watches_count == 0);
	}
	pthread_mutex_unlock(&monitor.source_lock);
}

int rbx_monitor_try_userfaultfd(char *text, size_t size_bytes)
{
	int err = take_userfaultfd(text, size_bytes);

	if (!err)
		drop_userfaultfd();
	return err;
}

static int choose_source(struct rbx_monitor_listener *listener, enum rbx_monitor_mode mode)
{
	char text[sizeof(listener->why) - 32];
	int err;

	listener->source = RBX_MONITOR_NONE;
	if (mode == RBX_MONITOR_NONE) {
		snprintf(listener->why, sizeof(listener->why), "none, as asked for");
		return 0;
	}
	err = take_userfaultfd(text, sizeof(text));
	if (!err) {
		listener->source = RBX_MONITOR_USERFAULTFD;
		snprintf(listener->why, sizeof(listener->why), "userfaultfd, tried by an event");
		return 0;
	}
	snprintf(listener->why, sizeof(listener->why), "none; %s", text);
	return mode == RBX_MONITOR_AUTO ? 0 : rbx_error(err, "memory_monitor=userfaultfd: %s", text);
}

static void drop_source(const struct rbx_monitor_listener *listener)
{
	if (listener->source == RBX_MONITOR_USERFAULTFD)
		drop_userfaultfd();
}

static int add_listener(struct rbx_monitor_listener *listener)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&monitor.lock);
	if (monitor.listeners_count < RBX_MONITOR_LISTENERS_MAX) {
		monitor.listeners[monitor.listeners_count++] = listener;
		err = 0;
	}
	pthread_mutex_unlock(&monitor.lock);
	return err;
}

int rbx_monitor_listen(struct rbx_monitor_listener *listener, enum rbx_monitor_mode mode)
{
	int err;

	RBX_ASSERT(listener->changed);
	if (mode == RBX_MONITOR_HOOKS)
		return rbx_error(-ENOTSUP, "memory_monitor=hooks: there are none in this version");
	watch_forks();
	err = choose_source(listener, mode);
	if (err)
		return err;
	if (!add_listener(listener))
		return 0;
	drop_source(listener);
	return rbx_error(-ENOSPC, "a process can have %u contexts that cache registrations",
			 RBX_MONITOR_LISTENERS_MAX);
}

/* False in a child of fork(): it has no listener of its parent. */
static bool remove_listener(const struct rbx_monitor_listener *listener)
{
	bool found = false;

	pthread_mutex_lock(&monitor.lock);
	for (uint32_t i = 0; i < monitor.listeners_count && !found; i++) {
		found = monitor.listeners[i] == listener;
		if (found)
			monitor.listeners[i] = monitor.listeners[--monitor.listeners_count];
	}
	pthread_mutex_unlock(&monitor.lock);
	return found;
}

void rbx_monitor_leave(struct rbx_monitor_listener *listener)
{
	if (remove_listener(listener))
		drop_source(listener);
}

/* The whole pages that hold these bytes. False: there are none. */
static bool pages_of(const void *addr, size_t length_bytes, struct range *pages)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr;

	if (length_bytes == 0 || length_bytes > UINTPTR_MAX - start - page_bytes)
		return false;
	pages->start = start & ~(page_bytes - 1);
	pages->end = (start + length_bytes + page_bytes - 1) & ~(page_bytes - 1);
	return true;
}

/* Gives back what no watch covers any more. The lock is held. */
static void unregister_uncovered(const struct range *pages)
{
	uintptr_t at = pages->start;

	/* Each turn passes a watch, or the hole before the next one. */
	while (at < pages->end) {
		uintptr_t covered_to = at;
		uintptr_t next = pages->end;

		for (uint32_t i = 0; i < monitor.watches_count; i++) {
			const struct range *watch = &monitor.watches[i];

			if (watch->start <= at)
				covered_to = RBX_MAX(covered_to, watch->end);
			else
				next = RBX_MIN(next, watch->start);
		}
		if (covered_to == at)
			rbx_userfaultfd_unregister(at, next);
		at = covered_to == at ? next : covered_to;
	}
}

static void remove_watch(const struct range *pages)
{
	uint32_t i = 0;

	while (monitor.watches[i].start != pages->start || monitor.watches[i].end != pages->end) {
		i++;
		RBX_ASSERT(i < monitor.watches_count);
	}
	monitor.watches[i] = monitor.watches[--monitor.watches_count];
	unregister_uncovered(pages);
}

/*
 * The doubt is asked first, and the kernel's lock of the address space is taken after that,
 * by the registration: a thread that discards, and was seen to run, is through by then.
 *
 * The mappings are looked at last: they are watched already, so what takes the place of one
 * of them meanwhile is told.
 */
static int watch_locked(const struct range *pages)
{
	int err;

	if (monitor.watches_count == RBX_MONITOR_WATCHES_MAX)
		return -ENOSPC;
	if (is_in_doubt(pages->start, pages->end))
		return -EAGAIN;
	err = rbx_userfaultfd_register(pages->start, pages->end);
	if (err)
		return err == -EINVAL ? -EOPNOTSUPP : err;
	monitor.watches[monitor.watches_count++] = *pages;
	err = rbx_mappings_check(pages->start, pages->end);
	if (err)
		remove_watch(pages);
	return err;
}

int rbx_monitor_watch(struct rbx_monitor_listener *listener, const void *addr,
		      size_t length_bytes)
{
	struct range pages;
	int err;

	if (listener->source == RBX_MONITOR_NONE)
		return -EOPNOTSUPP;
	if (!pages_of(addr, length_bytes, &pages))
		return -EFAULT;
	pthread_mutex_lock(&monitor.lock);
	err = watch_locked(&pages);
	pthread_mutex_unlock(&monitor.lock);
	return err;
}

void rbx_monitor_unwatch(struct rbx_monitor_listener *listener, const void *addr,
			 size_t length_bytes)
{
	struct range pages;

	RBX_ASSERT(listener->source != RBX_MONITOR_NONE);
	if (!pages_of(addr, length_bytes, &pages))
		return;
	pthread_mutex_lock(&monitor.lock);
	RBX_ASSERT(monitor.watches_count != 0);
	remove_watch(&pages);
	pthread_mutex_unlock(&monitor.lock);
}

int rbx_memory_changed(void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)addr;

	if (length == 0 || length > UINTPTR_MAX - start)
		return rbx_error(-EINVAL, "rbx_memory_changed: the range must have at least 1 byte and must not wrap around: %zu bytes at %p",
				 length, addr);
	rbx_monitor_tell_begin();
	rbx_monitor_tell(start, start + length);
	rbx_monitor_tell_end();
	return 0;
}
