/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * faults.c - makes chosen functions of the kernel and of our modules fail or be late, or
 * counts their calls: rdmabox_faults.ko.
 *
 * Scripts write faults to /sys/kernel/debug/rdmabox_faults, one for each line:
 *
 *	fail FUNCTION BY VALUE [COUNT [SKIP]]	returns VALUE and does nothing
 *	delay FUNCTION BY MS [COUNT [SKIP]]	sleeps before
 *	watch FUNCTION BY			counts calls that could be preempted
 *	clear					removes all faults
 *
 * BY is the caller: a part of "function [module]" or of the name of the task, or * for
 * any. Of the calls that match, the first SKIP go well, and the next COUNT are hit.
 * Reading the file gives a line "FUNCTION HITS CALLS" for each fault; CALLS counts the
 * calls of BY up to the last hit.
 *
 * A probe is placed on the first instruction of a function. The probe may not sleep, so
 * it redirects the call to a function of ours. That decides in the caller's own context,
 * and calls the rest of the original function. It passes on the arguments in registers:
 * six.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>

#define FAULTS_MAX 6
#define NAME_BYTES 64
#define TEXT_BYTES 256
/* The call that the compiler puts before each function. The probe is placed there. */
#define ENTRY_BYTES 5

enum action {
	FAIL,
	DELAY,
	WATCH,
};

typedef unsigned long entry_fn(unsigned long, unsigned long, unsigned long,
			       unsigned long, unsigned long, unsigned long);

struct fault {
	struct kprobe probe;
	char function[NAME_BYTES];
	char by[NAME_BYTES];
	enum action action;
	long value;
	atomic_t skip;
	atomic_t left;
	atomic_t hits;
	atomic_t calls;
};

static struct fault faults[FAULTS_MAX];
static DEFINE_MUTEX(faults_lock); /* guards the next, and the setting of faults */
static int faults_count;
static struct dentry *file;

/* ---- Calls ------------------------------------------------------------------*/

static bool is_by(const struct fault *fault, void *caller)
{
	char text[KSYM_SYMBOL_LEN];

	if (!strcmp(fault->by, "*") || strstr(current->comm, fault->by))
		return true;
	sprint_symbol_no_offset(text, (unsigned long)caller);
	return strstr(text, fault->by);
}

static bool is_hit(struct fault *fault, void *caller)
{
	if (atomic_read(&fault->left) <= 0 || !is_by(fault, caller))
		return false;
	atomic_inc(&fault->calls);
	if (atomic_dec_if_positive(&fault->skip) >= 0)
		return false;
	if (fault->action == WATCH && !preemptible())
		return false;
	if (atomic_dec_if_positive(&fault->left) < 0)
		return false;
	atomic_inc(&fault->hits);
	return true;
}

static unsigned long call(struct fault *fault, void *caller, unsigned long a,
			  unsigned long b, unsigned long c, unsigned long d,
			  unsigned long e, unsigned long f)
{
	entry_fn *rest = (entry_fn *)(fault->probe.addr + ENTRY_BYTES);

	if (is_hit(fault, caller)) {
		if (fault->action == FAIL)
			return (unsigned long)fault->value;
		if (fault->action == DELAY)
			msleep((unsigned int)fault->value);
	}
	return rest(a, b, c, d, e, f);
}

/* Only the address that is called tells which fault it is. */
#define ENTRY(number)                                                             \
	static noinline unsigned long entry_##number(                             \
		unsigned long a, unsigned long b, unsigned long c,                \
		unsigned long d, unsigned long e, unsigned long f)                \
	{                                                                         \
		return call(&faults[number], __builtin_return_address(0), a, b,   \
			    c, d, e, f);                                          \
	}
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)

static entry_fn *const entries[FAULTS_MAX] = { entry_0, entry_1, entry_2,
					       entry_3, entry_4, entry_5 };

static int redirect(struct kprobe *probe, struct pt_regs *regs)
{
	struct fault *fault = container_of(probe, struct fault, probe);

	instruction_pointer_set(regs, (unsigned long)entries[fault - faults]);
	return 1; /* nothing has to be emulated */
}

/* ---- Setting faults -----------------------------------------------------------*/

/* Calls that are running go on in our functions. They are short, except delays. */
static void clear_locked(void)
{
	lockdep_assert_held(&faults_lock);
	while (faults_count)
		unregister_kprobe(&faults[--faults_count].probe);
}

static int action_parse(const char *name, enum action *action)
{
	static const char *const names[] = { "fail", "delay", "watch" };
	int index = match_string(names, ARRAY_SIZE(names), name);

	*action = (enum action)index;
	return index < 0 ? index : 0;
}

static int set_locked(const char *text)
{
	struct fault *fault = &faults[faults_count];
	int count = INT_MAX, skip = 0, err;
	char action[8];

	lockdep_assert_held(&faults_lock);
	if (faults_count == FAULTS_MAX)
		return -ENOSPC;
	memset(fault, 0, sizeof(*fault));
	if (sscanf(text, "%7s %63s %63s %ld %d %d", action, fault->function,
		   fault->by, &fault->value, &count, &skip) < 3)
		return -EINVAL;
	err = action_parse(action, &fault->action);
	if (err)
		return err;
	atomic_set(&fault->left, count);
	atomic_set(&fault->skip, skip);
	fault->probe.symbol_name = fault->function;
	fault->probe.pre_handler = redirect;
	err = register_kprobe(&fault->probe);
	if (err)
		return err;
	faults_count++;
	if (kprobe_ftrace(&fault->probe))
		return 0;
	clear_locked(); /* behind the probe there is not the rest of a function */
	return -EOPNOTSUPP;
}

static ssize_t faults_write(struct file *opened, const char __user *from,
			    size_t length, loff_t *at)
{
	char text[TEXT_BYTES] = "";
	int err = 0;

	if (length >= sizeof(text) || copy_from_user(text, from, length))
		return -EINVAL;
	mutex_lock(&faults_lock);
	if (!strcmp(strim(text), "clear"))
		clear_locked();
	else
		err = set_locked(text);
	mutex_unlock(&faults_lock);
	return err ? err : (ssize_t)length;
}

static ssize_t faults_read(struct file *opened, char __user *to, size_t length,
			   loff_t *at)
{
	char text[FAULTS_MAX * (NAME_BYTES + 32)] = "";
	int size = 0, i;

	mutex_lock(&faults_lock);
	for (i = 0; i < faults_count; i++)
		size += scnprintf(text + size, sizeof(text) - (size_t)size,
				  "%s %d %d\n", faults[i].function,
				  atomic_read(&faults[i].hits),
				  atomic_read(&faults[i].calls));
	mutex_unlock(&faults_lock);
	return simple_read_from_buffer(to, length, at, text, (size_t)size);
}

static const struct file_operations file_operations = {
	.owner = THIS_MODULE,
	.read = faults_read,
	.write = faults_write,
};

static int __init faults_init(void)
{
	file = debugfs_create_file("rdmabox_faults", 0600, NULL, NULL,
				   &file_operations);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit faults_exit(void)
{
	debugfs_remove(file);
	mutex_lock(&faults_lock);
	clear_locked();
	mutex_unlock(&faults_lock);
}

module_init(faults_init);
module_exit(faults_exit);

MODULE_DESCRIPTION("RDMAbox: functions that fail, for tests");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
