/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * monitor.c - the listeners, what they are told, and the gate of look-ups.
 *
 * Nothing is allocated, and nobody frees memory, while the lock is held: a thread in free()
 * may hold a lock of malloc while it waits for an event to be read, which needs this lock.
 *
 * A thread that changes memory waits for whoever has the lock. So it is held for a walk of the
 * table and some calls of the kernel at most (watch.c), never while /proc is read. And those
 * that tell go before those that watch (lock_to_tell()): otherwise threads that register one
 * buffer after the other would keep the lock among them.
 */
#include "lib/monitor/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/monitor/internal.h"
#include "lib/monitor/watches.h"

/* Discarded ranges whose pages may not be gone yet. If there are more, they are taken
 * together. */
#define DOUBTS_MAX 64u

/*
 * How long a range stays in doubt after the thread that discards it was seen to run. All that
 * is left to it then is to take the lock of the address space and to discard; the registration
 * with the kernel that follows waits for that lock. So this has to be longer than a thread
 * is kept from running in between. No call tells when it has run, so this is a guess: ten
 * periods of a control group whose processor time is bounded. If a thread is kept for longer
 * just there, memory that it discards may be cached before, and the cache is stale.
 */
#define DOUBT_NS 1000000000ull

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
	pthread_mutex_t crowd_lock; /* guards nothing: one thread at a time waits to watch */
	pthread_mutex_t next_lock; /* guards nothing: who has it gets the lock next */
	/* Guards all below but the users, and the table of watches. Nothing is allocated
	 * under it. */
	pthread_mutex_t lock;
	uint32_t userfaultfd_users;
	uint32_t listeners_count;
	uint32_t doubts_count;
	struct rbx_memory_monitor_listener *listeners[RBX_MEMORY_MONITOR_LISTENERS_MAX];
	struct doubt doubts[DOUBTS_MAX];
} monitor = {
	.source_lock = PTHREAD_MUTEX_INITIALIZER,
	.crowd_lock = PTHREAD_MUTEX_INITIALIZER,
	.next_lock = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

uint32_t rbx_memory_monitor_telling;

static bool overlaps(const struct range *range, uintptr_t start, uintptr_t end)
{
	return range->start < end && start < range->end;
}

static void lock_to_tell(void)
{
	pthread_mutex_lock(&monitor.next_lock);
	pthread_mutex_lock(&monitor.lock);
	pthread_mutex_unlock(&monitor.next_lock);
}

/*
 * Mutexes are not fair: a thread that lets one go and takes it again is quicker than one that
 * has to be woken. The thread that has this lock keeps the crowd's, too. So a thread that
 * tells finds the next one's free, and while it waits with that, nobody can pass.
 */
void rbx_memory_monitor_lock_to_watch(void)
{
	pthread_mutex_lock(&monitor.crowd_lock);
	lock_to_tell();
}

void rbx_memory_monitor_unlock_to_watch(void)
{
	pthread_mutex_unlock(&monitor.lock);
	pthread_mutex_unlock(&monitor.crowd_lock);
}

/*
 * Closes the gate. Before the event is read, or before the change is made: a thread that
 * knows the change to be over must find the gate closed, or all told. The exchange is ordered
 * before the system call that follows by that call itself.
 */
void rbx_memory_monitor_tell_begin(void)
{
	lock_to_tell();
	RBX_EXCHANGE(&rbx_memory_monitor_telling, 1);
}

void rbx_memory_monitor_tell(uintptr_t start, uintptr_t end)
{
	for (uint32_t i = 0; i < monitor.listeners_count; i++)
		monitor.listeners[i]->changed(monitor.listeners[i], start, end);
}

/* Pair: the acquire of rbx_memory_monitor_gate(), which then sees what changed() has written. */
void rbx_memory_monitor_tell_end(void)
{
	RBX_STORE_RELEASE(&rbx_memory_monitor_telling, 0);
	pthread_mutex_unlock(&monitor.lock);
}

static void widen(struct range *range, uintptr_t start, uintptr_t end)
{
	range->start = RBX_MIN(range->start, start);
	range->end = RBX_MAX(range->end, end);
}

void rbx_memory_monitor_tell_early(uintptr_t start, uintptr_t end)
{
	struct doubt *doubt = &monitor.doubts[DOUBTS_MAX - 1];

	if (monitor.doubts_count < DOUBTS_MAX) {
		doubt = &monitor.doubts[monitor.doubts_count++];
		doubt->range = (struct range){ start, end };
	}
	widen(&doubt->range, start, end);
	doubt->until_ns = 0;
	rbx_memory_monitor_tell(start, end);
}

bool rbx_memory_monitor_is_in_doubt(uintptr_t start, uintptr_t end)
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

void rbx_memory_monitor_wait(void)
{
	pthread_mutex_lock(&monitor.lock);
	pthread_mutex_unlock(&monitor.lock);
}

bool rbx_memory_monitor_is_settled(struct rbx_memory_monitor_listener *listener)
{
	if (listener->source == RBX_MEMORY_MONITOR_USERFAULTFD && rbx_userfaultfd_is_changing())
		return false;
	/* After it: a change that was over at that time is told by now, or being told. */
	rbx_memory_monitor_gate();
	return true;
}

/* In a child of fork(). Other threads, which are not here, may have held the locks. */
static void child_begins(void)
{
	rbx_userfaultfd_forget();
	pthread_mutex_init(&monitor.source_lock, NULL);
	pthread_mutex_init(&monitor.crowd_lock, NULL);
	pthread_mutex_init(&monitor.next_lock, NULL);
	pthread_mutex_init(&monitor.lock, NULL);
	monitor.userfaultfd_users = 0;
	monitor.listeners_count = 0;
	rbx_watches_clear();
	monitor.doubts_count = 0;
	RBX_STORE_RELEASE(&rbx_memory_monitor_telling, 0);
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
		RBX_ASSERT(rbx_watches_count() == 0);
	}
	pthread_mutex_unlock(&monitor.source_lock);
}

int rbx_memory_monitor_try_userfaultfd(char *text, size_t size_bytes)
{
	int err = take_userfaultfd(text, size_bytes);

	if (!err)
		drop_userfaultfd();
	return err;
}

static int choose_source(struct rbx_memory_monitor_listener *listener,
			 enum rbx_memory_monitor_mode mode)
{
	char text[sizeof(listener->why) - 32];
	int err;

	listener->source = RBX_MEMORY_MONITOR_NONE;
	if (mode == RBX_MEMORY_MONITOR_NONE) {
		snprintf(listener->why, sizeof(listener->why), "none, as asked for");
		return 0;
	}
	err = take_userfaultfd(text, sizeof(text));
	if (!err) {
		listener->source = RBX_MEMORY_MONITOR_USERFAULTFD;
		snprintf(listener->why, sizeof(listener->why), "userfaultfd, tried by an event");
		return 0;
	}
	snprintf(listener->why, sizeof(listener->why), "none; %s", text);
	return mode == RBX_MEMORY_MONITOR_AUTO ? 0 : rbx_error(err, "memory_monitor=userfaultfd: %s", text);
}

static void drop_source(const struct rbx_memory_monitor_listener *listener)
{
	if (listener->source == RBX_MEMORY_MONITOR_USERFAULTFD)
		drop_userfaultfd();
}

static int add_listener(struct rbx_memory_monitor_listener *listener)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&monitor.lock);
	if (monitor.listeners_count < RBX_MEMORY_MONITOR_LISTENERS_MAX) {
		monitor.listeners[monitor.listeners_count++] = listener;
		err = 0;
	}
	pthread_mutex_unlock(&monitor.lock);
	return err;
}

int rbx_memory_monitor_listen(struct rbx_memory_monitor_listener *listener,
			      enum rbx_memory_monitor_mode mode)
{
	int err;

	RBX_ASSERT(listener->changed);
	watch_forks();
	err = choose_source(listener, mode);
	if (err)
		return err;
	if (!add_listener(listener))
		return 0;
	drop_source(listener);
	return rbx_error(-ENOSPC, "a process can have %u contexts that cache registrations",
			 RBX_MEMORY_MONITOR_LISTENERS_MAX);
}

bool rbx_memory_monitor_is_listening(const struct rbx_memory_monitor_listener *listener)
{
	uint32_t i = 0;

	while (i < monitor.listeners_count && monitor.listeners[i] != listener)
		i++;
	return i < monitor.listeners_count;
}

/* False in a child of fork(): it has no listener of its parent. */
static bool remove_listener(const struct rbx_memory_monitor_listener *listener)
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

void rbx_memory_monitor_leave(struct rbx_memory_monitor_listener *listener)
{
	if (remove_listener(listener))
		drop_source(listener);
}

int rbx_memory_changed(void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)addr;

	if (length == 0 || length > UINTPTR_MAX - start)
		return rbx_error(-EINVAL, "rbx_memory_changed: the range must have at least 1 byte and must not wrap around: %zu bytes at %p",
				 length, addr);
	rbx_memory_monitor_tell_begin();
	rbx_memory_monitor_tell(start, start + length);
	rbx_memory_monitor_tell_end();
	return 0;
}
