/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stderr_line.c - writes a line to stderr, even if nobody reads it.
 *
 * The threads of a server log with its lock held. If stderr is a pipe that nobody reads,
 * a write would stop them all. If nobody has the pipe open any more, SIGPIPE would end
 * the program. So a line is written only if poll() says that there is room, which means
 * PIPE_BUF bytes, and with SIGPIPE blocked in this thread. The lock keeps other lines of
 * this process from taking that room meanwhile. Another process that writes to the same
 * pipe can still take it; then the line waits as any write does.
 */
#include "server/stderr_line.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "server/log.h"

#define LINE_PREFIX "rdmabox serve: "
#define TEXT_BYTES_MAX (RBX_LOG_LINE_MAX + 128) /* two prefixes and a number */

/* A longer text would not be written whole, and poll() would not promise room for it. */
_Static_assert(TEXT_BYTES_MAX <= PIPE_BUF, "a line is one write to a pipe");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long lost_count; /* lines lost since the last one; guarded by the lock */

static bool has_room(void)
{
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

/* If a SIGPIPE was pending before, it is not ours and stays. */
static bool write_without_signal(const char *text, size_t bytes)
{
	const struct timespec at_once = { 0 };
	sigset_t pipe_signal, before, pending;
	bool written;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	sigpending(&pending);
	written = write(STDERR_FILENO, text, bytes) > 0;
	if (!written && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe_signal, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return written;
}

static bool line_write(const char *line)
{
	char text[TEXT_BYTES_MAX];
	int length = 0;

	if (lost_count)
		length = snprintf(text, sizeof(text),
				  LINE_PREFIX "%llu lines were lost\n",
				  lost_count);
	length += snprintf(text + length, sizeof(text) - (size_t)length,
			   LINE_PREFIX "%s\n", line);
	return write_without_signal(text, (size_t)length);
}

void rbx_stderr_line(const char *text)
{
	pthread_mutex_lock(&lock);
	if (has_room() && line_write(text))
		lost_count = 0;
	else
		lost_count++;
	pthread_mutex_unlock(&lock);
}
