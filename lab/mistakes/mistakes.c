/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mistakes.c - makes one mistake of each kind that the debug kernel looks for, so that
 * lab/debug-check can check that it is noticed. They are harmless enough for the machine
 * to go on.
 *
 * The mistake for the lock validator comes first, as the validator stops after its first
 * report, whatever caused it.
 */
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static noinline void read_after_free(void)
{
	char *memory = kmalloc(64, GFP_KERNEL);

	if (!memory)
		return;
	kfree(memory);
	OPTIMIZER_HIDE_VAR(memory);
	(void)READ_ONCE(memory[8]);
}

static noinline void read_past_the_end(void)
{
	char *memory = kmalloc(64, GFP_KERNEL);

	if (!memory)
		return;
	OPTIMIZER_HIDE_VAR(memory);
	(void)READ_ONCE(memory[64]);
	kfree(memory);
}

static void sleep_with_a_spinlock(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static void never(struct timer_list *timer)
{
}

static void free_a_timer_that_runs(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer); /* the kernel stops it, once it has said so */
}

static void add_twice(void)
{
	static LIST_HEAD(list);
	static struct list_head entry;

	list_add(&entry, &list);
	list_add(&entry, &list); /* is not done */
}

static void lock_in_two_orders(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static int __init mistakes_init(void)
{
	int i;

	lock_in_two_orders();
	/* KFENCE may take one of two objects for itself, and does not see all. */
	for (i = 0; i < 2; i++) {
		read_after_free();
		read_past_the_end();
	}
	sleep_with_a_spinlock();
	free_a_timer_that_runs();
	add_twice();
	return -ECANCELED; /* all is done */
}
module_init(mistakes_init);

MODULE_DESCRIPTION("Mistakes that a debug kernel notices");
MODULE_LICENSE("Dual BSD/GPL");
