/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_os.h - provides client/host.h in the Linux kernel.
 *
 * A monitor is a spinlock that is taken with interrupts off, because a connection manager or
 * a completion may come in any context, and a wait queue. Threads wait in process context. A
 * waiter is on the queue before it leaves the lock, and the waker holds the lock, so no
 * wake-up is missed.
 *
 * Paging may wait for one of these threads. So their allocations must not begin I/O, and use
 * the reserves if memory is short.
 */
#ifndef RBX_HOST_OS_H
#define RBX_HOST_OS_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

struct rbx_monitor {
	spinlock_t lock;
	unsigned long flags; /* of the thread that is in it */
	wait_queue_head_t changed;
};

static inline void rbx_monitor_init(struct rbx_monitor *monitor)
{
	spin_lock_init(&monitor->lock);
	init_waitqueue_head(&monitor->changed);
}

static inline void rbx_monitor_destroy(struct rbx_monitor *monitor)
{
}

static inline void rbx_monitor_enter(struct rbx_monitor *monitor)
{
	unsigned long flags;

	spin_lock_irqsave(&monitor->lock, flags);
	monitor->flags = flags;
}

static inline void rbx_monitor_leave(struct rbx_monitor *monitor)
{
	unsigned long flags = monitor->flags;

	spin_unlock_irqrestore(&monitor->lock, flags);
}

static inline void rbx_monitor_sleep(struct rbx_monitor *monitor,
				     unsigned int state, long timeout)
{
	DEFINE_WAIT(wait);

	prepare_to_wait(&monitor->changed, &wait, (int)state);
	rbx_monitor_leave(monitor);
	schedule_timeout(timeout);
	finish_wait(&monitor->changed, &wait);
	rbx_monitor_enter(monitor);
}

static inline void rbx_monitor_wait(struct rbx_monitor *monitor)
{
	rbx_monitor_sleep(monitor, TASK_IDLE, MAX_SCHEDULE_TIMEOUT);
}

static inline bool rbx_monitor_wait_signal(struct rbx_monitor *monitor)
{
	rbx_monitor_sleep(monitor, TASK_INTERRUPTIBLE, MAX_SCHEDULE_TIMEOUT);
	return signal_pending(current);
}

static inline void rbx_monitor_wait_until(struct rbx_monitor *monitor,
					  uint64_t at_ns)
{
	uint64_t now_ns = ktime_get_ns();
	uint64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;

	rbx_monitor_sleep(monitor, TASK_IDLE,
			  (long)nsecs_to_jiffies(min_t(uint64_t, left_ns,
						       NSEC_PER_SEC * 3600)) +
				  1);
}

static inline void rbx_monitor_wake(struct rbx_monitor *monitor)
{
	wake_up_all(&monitor->changed);
}

struct rbx_thread {
	struct task_struct *task;
	struct completion over;
	void *(*main)(void *argument);
	void *argument;
};

int rbx_thread_start(struct rbx_thread *thread, const char *name,
		     void *(*main)(void *argument), void *argument);
void rbx_thread_join(struct rbx_thread *thread);

static inline uintptr_t rbx_thread_self(void)
{
	return (uintptr_t)current;
}

static inline void rbx_thread_leave_reserves(void)
{
	current->flags &= ~PF_MEMALLOC;
}

static inline uint64_t rbx_now_ns(void)
{
	return ktime_get_ns();
}

static inline void rbx_pause_ns(uint64_t ns)
{
	unsigned long us = (unsigned long)(ns / NSEC_PER_USEC);

	usleep_range(us, us + us / 2 + 1);
}

static inline void *rbx_memory_make(size_t bytes)
{
	return kvzalloc(bytes, GFP_KERNEL);
}

static inline void *rbx_memory_try(size_t bytes)
{
	return kvmalloc(bytes, GFP_KERNEL | __GFP_NORETRY | __GFP_NOMEMALLOC |
				       __GFP_NOWARN);
}

static inline void rbx_memory_free(void *memory)
{
	kvfree(memory);
}

static inline void rbx_memory_wipe(void *memory, size_t bytes)
{
	memzero_explicit(memory, bytes);
}

static inline void rbx_text_copy(char *to, size_t bytes, const char *from)
{
	strscpy(to, from, bytes);
}

/* "%pISpc" writes at most "[address%scope]:port". */
#define RBX_ADDRESS_TEXT_BYTES 80u

struct rbx_address {
	struct sockaddr_storage at;
	char name[RBX_ADDRESS_TEXT_BYTES];
};

#endif
