/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch.c - what is watched for the listeners: rbx_memory_monitor_watch(), and what is given back.
 *
 * The kernel only knows whether a page is watched. When a watch ends, only the parts that no
 * other watch covers are given back to the kernel. So whatever is watched in the kernel and
 * covered by no watch may be given back at any time, and is, where it is found: memory that
 * has moved, and mappings that have grown.
 */
#include <errno.h>
#include <unistd.h>

#include "lib/monitor/internal.h"
#include "lib/monitor/mappings.h"
#include "lib/monitor/watches.h"

/* Parts of a range that are given back to the kernel before the lock is let go for a moment.
 * Each is a call that takes the lock of the address space, and may split a mapping. */
#define GIVE_BACK_PARTS 16u

struct pages {
	uintptr_t start;
	uintptr_t end;
};

/* The whole pages that hold these bytes. False: there are none. */
static bool pages_of(const void *addr, size_t length_bytes, struct pages *pages)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr;

	if (length_bytes == 0 || start > UINTPTR_MAX - page_bytes ||
	    length_bytes > UINTPTR_MAX - page_bytes - start)
		return false;
	pages->start = start & ~(page_bytes - 1);
	pages->end = (start + length_bytes + page_bytes - 1) & ~(page_bytes - 1);
	return true;
}

/*
 * Gives back what no watch covers, GIVE_BACK_PARTS at most. The lock is held. Returns how far
 * it got. is_refused is set if the kernel refused a part.
 */
static uintptr_t give_back_some(uintptr_t start, uintptr_t end, bool *is_refused)
{
	struct rbx_watches_walk walk = { .at = start, .end = end };
	uintptr_t hole_start, hole_end;

	for (uint32_t parts = 0; parts < GIVE_BACK_PARTS; parts++) {
		if (!rbx_watches_next_hole(&walk, &hole_start, &hole_end))
			return end;
		if (rbx_userfaultfd_unregister(hole_start, hole_end))
			*is_refused = true;
	}
	return walk.at;
}

static bool give_back_range(uintptr_t start, uintptr_t end)
{
	bool is_refused = false;

	while (start < end) {
		rbx_memory_monitor_lock_to_watch();
		start = give_back_some(start, end, &is_refused);
		rbx_memory_monitor_unlock_to_watch();
	}
	return !is_refused;
}

/* One mapping after the other: the kernel refuses a range in which there is a mapping that
 * cannot be watched, such as a file's, all of it. */
static void give_back_mappings(uintptr_t start, uintptr_t end)
{
	struct rbx_mappings_walk walk;
	struct rbx_mapping mapping;

	if (rbx_mappings_begin(&walk))
		return; /* no descriptor is left; what remains is given back in the end */
	for (; start < end && !rbx_mappings_next(&walk, start, &mapping); start = mapping.end)
		(void)give_back_range(RBX_MAX(mapping.start, start), RBX_MIN(mapping.end, end));
	rbx_mappings_end(&walk);
}

/*
 * A mapping of which a part is watched is watched all of it, as others do not merge with it.
 * So what it has grown by (mremap() in place) is watched, too. An older kernel does not tell
 * for so little how far a mapping goes: what it has grown by remains until it is unmapped or
 * all listeners have left.
 */
static void widen_to_mapping(struct pages *pages)
{
	struct rbx_mapping last;

	if (rbx_mappings_find(pages->end - 1, &last))
		pages->end = RBX_MAX(pages->end, last.end);
}

/* The watch is out of the table. */
static void give_back(struct pages pages)
{
	widen_to_mapping(&pages);
	if (!give_back_range(pages.start, pages.end))
		give_back_mappings(pages.start, pages.end);
}

/* No watch was meant for the new place. There may be some by now. */
void rbx_memory_monitor_moved(uintptr_t start, uintptr_t end)
{
	struct pages pages = { start, end };
	bool is_refused = false;

	widen_to_mapping(&pages);
	while (pages.start < pages.end)
		pages.start = give_back_some(pages.start, pages.end, &is_refused);
}

/* The doubt is asked first, and the kernel's lock of the address space is taken after that,
 * by the registration: a thread that discards, and was seen to run, is through by then. */
static int watch_locked(const struct rbx_memory_monitor_listener *listener,
			const struct pages *pages)
{
	int err;

	if (!rbx_memory_monitor_is_listening(listener))
		return -EOPNOTSUPP;
	if (rbx_watches_count() == RBX_MEMORY_MONITOR_WATCHES_MAX)
		return -ENOSPC;
	if (rbx_memory_monitor_is_in_doubt(pages->start, pages->end))
		return -EAGAIN;
	err = rbx_userfaultfd_register(pages->start, pages->end);
	if (!err)
		rbx_watches_add(pages->start, pages->end);
	return err;
}

/*
 * The mappings are looked at when they are watched: what takes the place of one of them
 * meanwhile is told, and the caller's region is marked. So this needs no lock.
 *
 * If there was a hole at first, which has been filled since, what fills it is not watched. It
 * is a mapping of its own then. So if there are several, they are registered once more.
 */
static int check_mappings(const struct pages *pages)
{
	uint32_t count;
	int err = rbx_mappings_check(pages->start, pages->end, &count);

	return !err && count > 1 ? rbx_userfaultfd_register(pages->start, pages->end) : err;
}

static void end_watch(const struct rbx_memory_monitor_listener *listener, const struct pages *pages)
{
	bool is_here;

	rbx_memory_monitor_lock_to_watch();
	is_here = rbx_memory_monitor_is_listening(listener);
	if (is_here)
		rbx_watches_remove(pages->start, pages->end);
	rbx_memory_monitor_unlock_to_watch();
	if (is_here)
		give_back(*pages);
}

int rbx_memory_monitor_watch(struct rbx_memory_monitor_listener *listener, const void *addr,
			     size_t length_bytes)
{
	struct pages pages;
	int err;

	if (listener->source == RBX_MEMORY_MONITOR_NONE)
		return -EOPNOTSUPP;
	if (!pages_of(addr, length_bytes, &pages))
		return -EFAULT;
	rbx_memory_monitor_lock_to_watch();
	err = watch_locked(listener, &pages);
	rbx_memory_monitor_unlock_to_watch();
	if (err)
		return err;
	err = check_mappings(&pages);
	if (err)
		end_watch(listener, &pages);
	return err;
}

void rbx_memory_monitor_unwatch(struct rbx_memory_monitor_listener *listener, const void *addr,
				size_t length_bytes)
{
	struct pages pages;

	RBX_ASSERT(listener->source != RBX_MEMORY_MONITOR_NONE);
	if (pages_of(addr, length_bytes, &pages))
		end_watch(listener, &pages);
}
