/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * monitor.h - tells when memory of this process is unmapped, moved, discarded or shrunk.
 *
 * A registration pins pages, not addresses. If the program unmaps a buffer and maps another
 * one at the same address, the device still reaches the old pages. So a cache of
 * registrations must forget a region before it can be looked up again. Such a cache is a
 * listener of the monitor. There is one monitor in a process, as a mapping can be watched
 * through one userfaultfd only.
 *
 * A cache calls, in this order:
 *
 *	once		rbx_memory_monitor_listen()
 *	to register	enter the region in its table, as "being registered"
 *			rbx_memory_monitor_watch()	an error: use the registration once, do not
 *						cache it
 *			register with the device
 *			under its own lock: if changed() has marked the region, do not cache
 *			it; else it can be looked up from now on
 *	to look up	rbx_memory_monitor_is_settled(); false: this is a miss that is not cached
 *			take its own lock and look up
 *	to deregister	rbx_memory_monitor_unwatch(), when the region is out of the table
 *
 * The order to register is the point of the whole. If the device came first, an unmap
 * between the two would be told to nobody. If the region were not in the table yet, changed()
 * would not find it.
 *
 * The sources that tell of changes:
 *
 *	userfaultfd	The kernel tells, whoever made the call, glibc's free() too. The
 *			thread that called munmap() waits in the kernel until the monitor has
 *			read the event (userfaultfd.c).
 *	none		Only rbx_memory_changed(). The program must declare what is stable.
 *
 * What cannot be seen is not watched, if that can be known:
 *
 *	files		ftruncate() and fallocate() change the file, not its mapping.
 *	shared memory	It may have other mappings, in this process or another, and what
 *			MADV_REMOVE discards there is gone here. Memory of shmat(), memfd and
 *			hugetlbfs is a file's and shared.
 *
 * It is registered for each use, unless the program registers it for long by itself.
 *
 * One change of private memory cannot be seen: madvise(MADV_GUARD_INSTALL), Linux 6.13. It
 * discards the pages, and no event comes. A program that puts guards into memory that it
 * has sent from or received to must call rbx_memory_changed() for it, as one that gives it
 * back. Guards that were there before do no harm: they cannot be registered.
 *
 * After fork() the child has no monitor, and the kernel has ended all watching in it. It
 * cannot use the registrations either (lib/guard.h). Nothing changes for the parent: since
 * 5.12 the kernel gives the child the copy of a pinned page.
 */
#ifndef RBX_LIB_MONITOR_H
#define RBX_LIB_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/port.h"

/* The contexts of a process that have a cache. */
#define RBX_MEMORY_MONITOR_LISTENERS_MAX 64u
/* Regions that are cached at once, of all caches. A region more is not cached. */
#define RBX_MEMORY_MONITOR_WATCHES_MAX 16384u

/* The option memory_monitor. */
enum rbx_memory_monitor_mode {
	RBX_MEMORY_MONITOR_AUTO, /* userfaultfd if it works, else none */
	RBX_MEMORY_MONITOR_USERFAULTFD,
	RBX_MEMORY_MONITOR_NONE,
};

struct rbx_memory_monitor_listener {
	/*
	 * Bytes from start to before end are no longer what they were, or will soon not be.
	 * Regions that overlap them must not be found any more. A region that is being
	 * registered must be marked. What is in flight may go on: the old pages stay pinned
	 * until it is deregistered.
	 *
	 * Called with the lock of the monitor held, in any thread. It must neither allocate
	 * nor free memory, unmap it, deregister, or call the monitor; and no lock that it
	 * takes may be held by a thread that does one of these. For a thread in free() may
	 * hold a lock of malloc while it waits in munmap() for this very call.
	 */
	void (*changed)(struct rbx_memory_monitor_listener *listener, uintptr_t start,
			uintptr_t end);
	enum rbx_memory_monitor_mode source; /* set by listen(): which one is used; never AUTO */
	char why[192]; /* set by listen(): the choice and its reason, for rbx_describe() */
};

/* 0, or -EINVAL: rbx_last_error() names the values that there are. */
int rbx_memory_monitor_mode_parse(const char *text, enum rbx_memory_monitor_mode *mode);

/*
 * Starts to tell a listener; changed must be set. Blocks for system calls. 0; -ENOSPC: there
 * are too many; else -errno if the wanted source does not work, with rbx_last_error() that
 * says how to mend it. AUTO never fails for want of a source.
 */
int rbx_memory_monitor_listen(struct rbx_memory_monitor_listener *listener,
			      enum rbx_memory_monitor_mode mode);

/* Stops it. When it returns, changed() does not run and never will. Must not be called if
 * listen() failed. Its watches must have been ended before. The last one waits for the
 * changes that are under way, and takes some microseconds for each mapping of the process. */
void rbx_memory_monitor_leave(struct rbx_memory_monitor_listener *listener);

/*
 * Watches memory from now on. The caller must keep the memory mapped meanwhile. May block
 * for a system call; allocates nothing. 0, or the registration must not be cached:
 *
 *	-EAGAIN		the memory is being changed at this time; a later try may succeed
 *	-EFAULT		some of it is not mapped
 *	-EOPNOTSUPP	a file or shared memory is mapped there, the range cuts a page of
 *			MAP_HUGETLB in two, or nothing tells of changes
 *	-ENOSPC		there are RBX_MEMORY_MONITOR_WATCHES_MAX already
 *	-errno		of the kernel, such as -ENOMEM if there would be too many mappings
 */
int rbx_memory_monitor_watch(struct rbx_memory_monitor_listener *listener, const void *addr,
			     size_t length_bytes);

/* Ends a watch that succeeded, with the same arguments. Other watches of the same memory
 * remain. Must not be called in changed(). In a child of fork() it does nothing, as
 * leave(): the watches are its parent's. */
void rbx_memory_monitor_unwatch(struct rbx_memory_monitor_listener *listener, const void *addr,
				size_t length_bytes);

/* See rbx_memory_monitor_gate(). */
extern uint32_t rbx_memory_monitor_telling;

/* Waits until the listeners know of each change that has been read. */
void rbx_memory_monitor_wait(void);

/*
 * What has to be known before a look-up: every change whose call has returned, in any thread,
 * was told to the listeners. One load, unless a change is just being told.
 *
 * Pair: tell_begin() stores 1 before the event is read; the read lets the thread in munmap()
 * go on. So a thread that knows that munmap() has returned sees the 1, or a later 0. The 0 is
 * stored with release after changed() has returned: whoever loads it with acquire sees what
 * changed() has written.
 *
 * This is not enough for an address that is used again. The kernel may give the unmapped
 * addresses to another thread before the first thread has returned from munmap(), or even
 * before the event can be read. rbx_memory_monitor_is_settled() knows this, too.
 */
static inline void rbx_memory_monitor_gate(void)
{
	if (RBX_LOAD_ACQUIRE(&rbx_memory_monitor_telling))
		rbx_memory_monitor_wait();
}

/*
 * The gate, and whether no change is under way in the kernel. A look-up that finds false must
 * not hit. For a system call that only reads a counter (a fraction of a microsecond), it
 * closes the window that rbx_memory_monitor_gate() leaves: the kernel raises the counter before it
 * unmaps, with the lock of the address space held. So a thread that got the same address
 * again by mmap() finds it raised, or the change told.
 */
bool rbx_memory_monitor_is_settled(struct rbx_memory_monitor_listener *listener);

/* Whether userfaultfd can be used here, tried by an event that arrives. 0, or -errno with
 * what is wrong and how to mend it in text. */
int rbx_memory_monitor_try_userfaultfd(char *text, size_t size_bytes);

#endif
