/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* killed.c - tests that a task that is being killed finishes what it began. */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>

#include "kernel/test/pair.h"

struct killed {
	struct pair *pair;
	char address[80];
	struct completion over;
	int status;
};

/* The first domain of a device starts its pollers, and the last one stops them. */
static int connect_and_close(struct killed *killed)
{
	struct pair *pair = killed->pair;
	const struct rbx_operation send = { 0 };
	struct rbx_completion completion;

	allow_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
	CHECK(fatal_signal_pending(current));
	CHECK(!pair_make(pair, killed->address));
	CHECK(!pair_connect(pair));
	CHECK(!post_receive(&pair->far, 0, 8));
	CHECK(!post_and_wait(&pair->near, &send, 0, 8));
	CHECK(!next(&pair->far, &completion) && !completion.status);
	return 0;
}

static int killed_main(void *argument)
{
	struct killed *killed = argument;

	killed->status = connect_and_close(killed);
	pair_free(killed->pair);
	complete(&killed->over);
	return 0;
}

int test_killed_task(struct pair *pair)
{
	struct killed killed = { .pair = pair };
	struct task_struct *task;

	strscpy(killed.address, pair->address, sizeof(killed.address));
	init_completion(&killed.over);
	pair_free(pair);
	task = kthread_run(killed_main, &killed, "rdmabox_killed");
	if (!IS_ERR(task))
		wait_for_completion(&killed.over);
	/* So that it can be freed. */
	CHECK(!pair_make(pair, killed.address) && !IS_ERR(task));
	return killed.status;
}
