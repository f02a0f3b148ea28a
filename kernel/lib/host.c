/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.c - the parts of client/host.h that are longer than a line.
 */
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched/task.h>

#include "client/host.h"
#include "core/status.h"
#include "kernel/lib/threads.h"

static int thread_main(void *argument)
{
	struct rbx_thread *thread = argument;
	unsigned int noio = memalloc_noio_save();
	unsigned int noreclaim = memalloc_noreclaim_save();

	thread->main(thread->argument);
	memalloc_noreclaim_restore(noreclaim);
	memalloc_noio_restore(noio);
	complete_all(&thread->over);
	return 0;
}

int rbx_thread_start(struct rbx_thread *thread, const char *name,
		     void *(*main)(void *argument), void *argument)
{
	struct task_struct *task;

	thread->main = main;
	thread->argument = argument;
	init_completion(&thread->over);
	task = rbx_kthread_create(thread_main, thread, NUMA_NO_NODE, name);
	if (IS_ERR(task))
		return PTR_ERR(task);
	thread->task = get_task_struct(task); /* it may end before rbx_thread_join() */
	wake_up_process(task);
	return 0;
}

/* A task that is stopped before it first runs never calls main(), so its end is waited
 * for; idle, as that may take as long as the peer timeout, and is no hang. Then this waits
 * until the task is gone, as its code may be in a module that is unloaded. */
void rbx_thread_join(struct rbx_thread *thread)
{
	(void)wait_for_completion_state(&thread->over, TASK_IDLE);
	kthread_stop(thread->task);
	put_task_struct(thread->task);
}

int rbx_random(void *bytes, size_t length_bytes)
{
	get_random_bytes(bytes, length_bytes);
	return 0;
}

/* No text for a server that is away: that was logged when it was lost. A caller that may
 * try again logs its own text. */
int rbx_error(int err, const char *format, ...)
{
	struct va_format text = { .fmt = format };
	va_list arguments;

	if (err == -ENOTCONN || err == -EAGAIN)
		return err;
	va_start(arguments, format);
	text.va = &arguments;
	pr_notice_ratelimited("rdmabox: %pV (%d)\n", &text, err);
	va_end(arguments);
	return err;
}

const char *rbx_error_text(void)
{
	return "the log has the reason";
}

int rbx_error_again(int err, const char *text)
{
	return err;
}

const char *rbx_status_text(int status)
{
	switch (rbx_status_class(status)) {
	case RBX_STATUS_LOCAL:
		return "our own device failed";
	case RBX_STATUS_PATH:
		return "the server is gone";
	case RBX_STATUS_KEY:
		return "the server refused the access";
	case RBX_STATUS_REMOTE:
		break;
	}
	return "the server failed";
}
