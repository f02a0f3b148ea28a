/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a server: nothing more is lent, and clients that have somewhere to go
 * move their data there. What is still lent when the drain timeout is over is given
 * up, and clients with replicas rebuild elsewhere.
 *
 * A second signal ends the process on the spot, which clients see as a crash. A
 * thread waits for it, so that it can ask the server what is lent and say what is cut
 * off. A third signal ends the process without a word, in case the server does not
 * answer.
 *
 * With a memory file named volumes keep what they have, however the server ends.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/serve/serve.h"

struct waiter {
	struct rbx_server *server;
	const sigset_t *signals;
	atomic_bool is_over; /* set before the signal that only wakes the thread */
};

void serve_tell(const char *format, ...)
{
	va_list args;

	if (cli_stderr_would_wait())
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

static const char *what_stays(void)
{
	return *serve_options.server.memory_file ?
		       "; what named volumes have stays in the memory file" :
		       "";
}

static uint64_t slabs_lent(struct rbx_server *server)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(server, &stats);
	return stats.slabs_lent;
}

static void *wait_for_second(void *waiter_pointer)
{
	struct waiter *waiter = waiter_pointer;
	uint64_t slabs;
	int signal_number;

	sigwait(waiter->signals, &signal_number);
	if (atomic_load(&waiter->is_over))
		return NULL;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, waiter->signals, NULL);
	slabs = slabs_lent(waiter->server);
	if (slabs)
		serve_tell("rdmabox serve: stopped by a second signal: %" PRIu64 " slabs are still "
		     "lent and cut off; data without another replica is lost%s\n", slabs,
		     what_stays());
	_exit(slabs ? CLI_EXIT_FAILED : CLI_EXIT_OK);
}

static void tell_what_is_left(struct rbx_server *server, double timeout_s)
{
	uint64_t slabs = slabs_lent(server);

	if (slabs)
		serve_tell("rdmabox serve: %" PRIu64 " slabs are still lent after %g s "
			   "and are given up; a longer --drain-timeout waits for them%s\n",
			   slabs, timeout_s, what_stays());
	else
		serve_tell("rdmabox serve: after %g s a named volume still counts on this server, "
			   "though it has nothing of it; the next program that opens the volume "
			   "puts it out\n",
			   timeout_s);
}

void serve_drain(struct rbx_server *server, const sigset_t *signals)
{
	struct waiter waiter = { .server = server, .signals = signals };
	double timeout_s = serve_options.drain_timeout_s;
	pthread_t thread;
	bool is_waiting = !pthread_create(&thread, NULL, wait_for_second, &waiter);

	if (!is_waiting) /* then a signal ends the process without a word */
		pthread_sigmask(SIG_UNBLOCK, signals, NULL);
	serve_tell("rdmabox serve: draining for at most %g s; a second signal stops at once\n",
		   timeout_s);
	if (rbx_server_drain(server, timeout_s * 1000))
		tell_what_is_left(server, timeout_s);
	if (!is_waiting)
		return;
	/* It uses the server. Not pthread_cancel(), which opens a library, and aborts if the
	 * process has no descriptor left. The thread takes the signal by sigwait(). */
	atomic_store(&waiter.is_over, true);
	pthread_kill(thread, SIGTERM); // NOLINT(bugprone-bad-signal-to-kill-thread)
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}
