/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM end a run early: the command checks now and then, prints what it
 * has, and gives back what it borrowed. The second signal, of either kind, ends the
 * process.
 */
#include <signal.h>
#include <stdatomic.h>

#include "cli/cli.h"

static _Atomic int signal_taken;

static void take_signal(int signal_number)
{
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

int cli_interrupted(void)
{
	return atomic_load(&signal_taken);
}

void cli_interrupt_forget(void)
{
	atomic_store(&signal_taken, 0);
}
