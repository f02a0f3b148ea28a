/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * threads.c - creates kernel threads, see threads.h.
 *
 * A task that is being killed does not wait for a new thread, and gets none. A worker of
 * the system is never killed. So a worker creates the thread, and the task waits for the
 * worker.
 */
#include "kernel/lib/threads.h"

#include <linux/workqueue.h>

struct creation {
	struct work_struct work;
	int (*main)(void *argument);
	void *argument;
	int node;
	const char *name;
	struct task_struct *task;
};

static void create(struct work_struct *work)
{
	struct creation *creation = container_of(work, struct creation, work);

	creation->task = kthread_create_on_node(creation->main,
						creation->argument,
						creation->node, "rdmabox/%s",
						creation->name);
}

struct task_struct *rbx_kthread_create(int (*main)(void *argument), void *argument,
				       int node, const char *name)
{
	struct creation creation = {
		.main = main,
		.argument = argument,
		.node = node,
		.name = name,
	};

	INIT_WORK_ONSTACK(&creation.work, create);
	create(&creation.work);
	if (PTR_ERR_OR_ZERO(creation.task) == -EINTR) {
		queue_work(system_unbound_wq, &creation.work);
		flush_work(&creation.work);
	}
	destroy_work_on_stack(&creation.work);
	return creation.task;
}
