/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM end a run early: the command checks now and then, prints what it
 * has, and gives back what it borrowed. The second signal, of either kind, ends the
 * process. timeout(1) sends one to the process and one to its group, so the second one counts
 * only a second after the first.
 *
 * A volume that is being opened cannot be given up: servers may have recorded who opens it, and
 * keep it from others until the lease is over. So the first signal is only noted, and the user is
 * told what the command waits for.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define SECOND_MS 1000

static const char opening_waits[] =
	"rdmabox: interrupted: waiting until the volume is open, to close it; a second signal, a second after the first, ends the command at once\n";
static const char opening_ends[] =
	"rdmabox: ended while a volume was being opened: servers may keep it from others until their lease is over, if no --take-over is given\n";

static _Atomic int signal_taken;
static _Atomic int64_t first_ms; /* when the first signal came; 0: none has */
static _Atomic bool is_opening;
static const char *_Atomic removed; /* a file that is not whole; or NULL */

/* ---- What runs in the signal handler -----------------------------------------------------*/

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}

static void tell(const char *text)
{
	ssize_t written = write(STDERR_FILENO, text, strlen(text));

	(void)written;
}

static void end_now(int signal_number)
{
	const char *path = atomic_load(&removed);

	if (path)
		unlink(path);
	if (atomic_load(&is_opening)) {
		tell(opening_ends);
		_exit(CLI_EXIT_SIGNAL + signal_number);
	}
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void take_signal(int signal_number)
{
	int64_t now = now_ms(), none = 0;
	int saved = errno;

	if (atomic_compare_exchange_strong(&first_ms, &none, now)) {
		atomic_store(&signal_taken, signal_number);
		if (atomic_load(&is_opening))
			tell(opening_waits);
	} else if (now - none >= SECOND_MS) {
		end_now(signal_number);
	}
	errno = saved;
}

/* ---- What the commands call --------------------------------------------------------------*/

void cli_interrupt_catch(bool restarts)
{
	struct sigaction action = { .sa_handler = take_signal,
				    .sa_flags = restarts ? SA_RESTART : 0 };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupt_opens(bool opens)
{
	atomic_store(&is_opening, opens);
	return cli_interrupted();
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
