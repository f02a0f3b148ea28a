/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * internal.h - what a source of changes and the monitor need of each other.
 *
 * A source tells so:
 *
 *	rbx_memory_monitor_tell_begin()	look-ups wait from now on
 *	learn of the change, so that the thread that makes it may go on
 *	rbx_memory_monitor_tell()		once for each range
 *	rbx_memory_monitor_tell_end()
 */
#ifndef RBX_LIB_MONITOR_INTERNAL_H
#define RBX_LIB_MONITOR_INTERNAL_H

#include "lib/monitor/monitor.h"

void rbx_memory_monitor_tell_begin(void);
void rbx_memory_monitor_tell(uintptr_t start, uintptr_t end);
/* The same, of pages that the kernel discards only after it was told (userfaultfd.c). */
void rbx_memory_monitor_tell_early(uintptr_t start, uintptr_t end);
/* Memory has come here from elsewhere by mremap(). The kernel goes on watching it. */
void rbx_memory_monitor_moved(uintptr_t start, uintptr_t end);
void rbx_memory_monitor_tell_end(void);

/* Who watches takes the lock behind those that tell. */
void rbx_memory_monitor_lock_to_watch(void);
void rbx_memory_monitor_unlock_to_watch(void);
/* Whether pages of the range may still be discarded. The lock is held. */
bool rbx_memory_monitor_is_in_doubt(uintptr_t start, uintptr_t end);
/* False in a child of fork(): it has no listener of its parent. The lock is held. */
bool rbx_memory_monitor_is_listening(const struct rbx_memory_monitor_listener *listener);

/* Start and stop the source. 0 or -errno with a text that says how to mend it. */
int rbx_userfaultfd_open(char *text, size_t size_bytes);
void rbx_userfaultfd_close(void);
/* In a child: its copies of the descriptors belong to the parent's source. */
void rbx_userfaultfd_forget(void);

/* Whole pages. 0; -EOPNOTSUPP: what is mapped there cannot be watched; or another -errno. */
int rbx_userfaultfd_register(uintptr_t start, uintptr_t end);
/* The lock of the monitor is held: no watch may cover them. 0, or -errno if something is mapped
 * there by now that cannot be watched, or nothing at all: then nothing has been done. */
int rbx_userfaultfd_unregister(uintptr_t start, uintptr_t end);

/* Whether some thread is between the start of a change and the end of its wait. */
bool rbx_userfaultfd_is_changing(void);

#endif
