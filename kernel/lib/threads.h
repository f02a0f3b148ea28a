/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * threads.h - kernel threads, for whoever asks.
 */
#ifndef RBX_KERNEL_THREADS_H
#define RBX_KERNEL_THREADS_H

#include <linux/kthread.h>

/*
 * As kthread_create_on_node(), but also by a task that is being killed, which would get
 * none: what it began, such as giving back what it has of servers, is to come to its end.
 * Sleeps until there is memory for a thread, whatever memalloc_noio_save() says: so under
 * no lock that our own I/O may need.
 */
struct task_struct *rbx_kthread_create(int (*main)(void *argument), void *argument,
				       int node, const char *name);

#endif
