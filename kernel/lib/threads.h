/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * threads.h - creates kernel threads.
 */
#ifndef RBX_KERNEL_THREADS_H
#define RBX_KERNEL_THREADS_H

#include <linux/kthread.h>

/*
 * As kthread_create_on_node(), but it works for a task that is being killed too, so that
 * such a task can finish what it began, such as giving memory back to servers. It sleeps
 * until there is memory for a thread, whatever memalloc_noio_save() says. So do not call
 * it under a lock that our own I/O may need.
 */
struct task_struct *rbx_kthread_create(int (*main)(void *argument), void *argument,
				       int node, const char *name);

#endif
