/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM end a run early: the command checks now and then, prints what it
 * has, and gives back what it borrowed. The second signal, of either kind, ends the
 * process. So does the first one while a volume is opened, which may wait long for servers: a
 * process that ends there leaves nothing, and has nothing to print.
 */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cli/cli.h"

static _Atomic int signal_taken;
static _Atomic bool ends_at_once;
static const char *_Atomic removed; /* a file that is not whole; or NULL */

static void take_signal(int signal_number)
{
	const char *path = atomic_load(&removed);

	if (atomic_load(&ends_at_once)) {
		if (path)
			unlink(path);
		_exit(CLI_EXIT_SIGNAL + signal_number);
	}
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	atomic_store(&signal_taken, signal_number);
}

void cli_interrupt_catch(bool restarts)
{
	struct sigaction action = { .sa_handler = take_signal,
				    .sa_flags = restarts ? SA_RESTART : 0 };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void cli_interrupt_ends_at_once(bool at_once)
{
	atomic_store(&ends_at_once, at_once);
}

void cli_interrupt_removes(const char *path)
{
	atomic_store(&removed, path);
}

int cli_interrupted(void)
{
	return atomic_load(&signal_taken);
}

void cli_interrupt_forget(void)
{
	atomic_store(&signal_taken, 0);
}
