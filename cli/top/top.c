/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox top: shows servers and this machine's volumes, again and again.
 *
 * On a terminal it is a screen with keys (screen.c), elsewhere lines of text, or JSON. It
 * asks each server over the control protocol as any client, so it needs the secret; it
 * borrows nothing. Volumes are those of the kernel module; most of their files need no
 * rights.
 *
 * Signals only end the loop. All threads have them blocked, and whatever waits looks for
 * them.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/reach.h"
#include "cli/top/top.h"

#define FIRST_WAIT_MS 20 /* between checks whether all have answered at first */
#define FIRST_WAIT_S_MAX 15 /* by then a dead server was noticed */

/* Readable once one of the signals came that end it: they are blocked, so that none is
 * lost between a look whether it came and the wait for it. */
static int signals_fd;
static bool stopping;

/* ---- A look ----------------------------------------------------------------*/

/* All that is known, in static memory: only one thread uses it. */
static struct top_report report;
static struct top_server samples[TOP_SERVERS_MAX];
static struct top_volumes volumes, volumes_before;

static const struct top_volume *before_of(const struct top_volume *volume)
{
	uint32_t i;

	for (i = 0; i < volumes_before.count; i++)
		if (!strcmp(volumes_before.list[i].name, volume->name) &&
		    !strcmp(volumes_before.list[i].device, volume->device))
			return &volumes_before.list[i];
	return NULL;
}

static void look(struct top_watchers *watchers)
{
	uint64_t now_ns = top_now_ns();
	uint32_t i;

	report.servers_count =
		watchers ? top_watchers_look(watchers, samples) : 0;
	for (i = 0; i < report.servers_count; i++)
		top_server_row_make(&samples[i], now_ns, &report.servers[i]);
	volumes_before = volumes;
	top_volumes_read("/sys", &volumes);
	report.volumes_count = volumes.count;
	for (i = 0; i < volumes.count; i++)
		top_volume_row_make(&volumes.list[i],
				    before_of(&volumes.list[i]),
				    &report.volumes[i]);
	top_sort(&report, top_options.sort_key, top_options.reversed);
}

/* Whether each server has answered so often, or is down. */
static bool all_tried(struct top_watchers *watchers, uint32_t tries)
{
	uint32_t count = watchers ? top_watchers_look(watchers, samples) : 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		if (samples[i].tries < tries && !samples[i].is_down)
			return false;
	return true;
}

/* ---- Signals and time --------------------------------------------------------*/

static int signals_take(void)
{
	struct sigaction before;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	/* It may be ignored (nohup). One that is blocked would come all the same. */
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signals_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	return signals_fd < 0 ? cli_fail(&top_command, "cannot take signals: %s",
					 strerror(errno)) :
				0;
}

/* Until then, or one of these signals, or another one with a handler, or the descriptor
 * has something, which is returned; -1: none. */
static short wait_until(uint64_t until_ns, int fd)
{
	struct pollfd fds[] = { { .fd = signals_fd, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };
	uint64_t now_ns = top_now_ns();
	int ms = until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000) + 1 : 0;

	if (poll(fds, sizeof(fds) / sizeof(fds[0]), ms) <= 0)
		return 0;
	if (fds[0].revents)
		stopping = true;
	return fds[1].revents;
}

/* Waits until stdout takes something. False: a signal came before. */
static bool wait_for_stdout(void)
{
	struct pollfd fds[] = { { .fd = signals_fd, .events = POLLIN },
				{ .fd = STDOUT_FILENO, .events = POLLOUT } };

	while (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno == EINTR)
		;
	stopping |= fds[0].revents != 0;
	return !stopping;
}

static void sleep_until(uint64_t until_ns)
{
	while (!stopping && top_now_ns() < until_ns)
		(void)wait_until(until_ns, -1);
}

static uint64_t interval_ns(void)
{
	return (uint64_t)(top_options.interval_s * 1e9);
}

/* Waits until there are rates: two answers of each server that is up, and an interval. */
static void wait_first(struct top_watchers *watchers)
{
	uint64_t begin_ns = top_now_ns();
	uint64_t end_ns = begin_ns + interval_ns() +
			  FIRST_WAIT_S_MAX * 1000000000ull;

	sleep_until(begin_ns + interval_ns());
	while (!stopping && !all_tried(watchers, 2) && top_now_ns() < end_ns)
		sleep_until(top_now_ns() + FIRST_WAIT_MS * 1000000ull);
}

/* ---- The two ways to show it -----------------------------------------------*/

/* By pieces that a pipe takes at once if it takes anything: a reader that has stopped must
 * not keep us from our end. False: it cannot be written. */
static bool write_out(const char *text, size_t bytes)
{
	ssize_t n;

	while (bytes && wait_for_stdout()) {
		n = write(STDOUT_FILENO, text, bytes < PIPE_BUF ? bytes : PIPE_BUF);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		text += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* False: it cannot be written. */
static bool print(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	bool is_printed;

	if (!out) {
		cli_fail(&top_command, "no memory for a report");
		return false;
	}
	if (top_options.as_json)
		top_json_print(out, &report);
	else
		top_lines_print(out, &report);
	if (!top_options.as_json && !top_options.once)
		fputs("\n", out);
	is_printed = !fclose(out) && write_out(text, bytes);
	if (!is_printed)
		cli_fail(&top_command, "cannot write to stdout: %s", strerror(errno));
	free(text);
	return is_printed;
}

static bool any_down(void)
{
	uint32_t i;

	for (i = 0; i < report.servers_count; i++)
		if (report.servers[i].state == TOP_DOWN ||
		    report.servers[i].state == TOP_ASKED)
			return true;
	return false;
}

static int run_lines(struct top_watchers *watchers)
{
	uint64_t next_ns;

	look(watchers);
	wait_first(watchers);
	next_ns = top_now_ns();
	while (!stopping) {
		look(watchers);
		if (!print())
			return CLI_EXIT_FAILED;
		if (top_options.once)
			return any_down() ? CLI_EXIT_FAILED : CLI_EXIT_OK;
		next_ns += interval_ns();
		sleep_until(next_ns);
	}
	return CLI_EXIT_OK;
}

static void draw(struct top_screen *screen)
{
	if (wait_for_stdout()) /* Ctrl-S stops it */
		top_screen_draw(screen, &report, top_options.sort_key,
				top_options.reversed, top_options.interval_s);
}

/* False: the user wants to quit. */
static bool obey(struct top_screen *screen, enum top_key key)
{
	switch (key) {
	case TOP_KEY_QUIT:
		return false;
	case TOP_KEY_SORT:
		strcpy(top_options.sort_key, top_sort_next(top_options.sort_key));
		break;
	case TOP_KEY_REVERSE:
		top_options.reversed = !top_options.reversed;
		break;
	case TOP_KEY_REDRAW:
		break;
	case TOP_KEY_NONE:
	case TOP_KEY_OTHER:
		return true;
	}
	top_sort(&report, top_options.sort_key, top_options.reversed);
	draw(screen);
	return true;
}

/* Handles keys until the next report is due. False: the user wants to quit, or the
 * terminal is gone, which would be readable for ever. */
static bool obey_keys(struct top_screen *screen, uint64_t until_ns)
{
	enum top_key key;
	short events;

	while (!stopping && top_now_ns() < until_ns) {
		events = wait_until(until_ns, STDIN_FILENO);
		if (events & (POLLHUP | POLLERR | POLLNVAL))
			return false;
		do {
			key = top_screen_key(screen);
			if (!obey(screen, key))
				return false;
		} while (key != TOP_KEY_NONE);
	}
	return !stopping;
}

static int run_screen(struct top_screen *screen, struct top_watchers *watchers)
{
	uint64_t wait_ns;

	do {
		look(watchers);
		draw(screen);
		wait_ns = interval_ns();
		if (!all_tried(watchers, 1) && wait_ns > 100000000)
			wait_ns = 100000000;
	} while (obey_keys(screen, top_now_ns() + wait_ns));
	top_screen_close(screen);
	return CLI_EXIT_OK;
}

/* ---- Beginning and end -----------------------------------------------------*/

static int run(struct top_watchers *watchers)
{
	bool is_lines = top_options.once || top_options.as_json;
	struct top_screen *screen = is_lines ? NULL : top_screen_open();

	return screen ? run_screen(screen, watchers) : run_lines(watchers);
}

static int run_with_servers(void)
{
	struct top_watchers *watchers;
	struct rbx_context *ctx;
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (rbx_open(&ctx, &top_options.library))
		return cli_fail(&top_command, "%s", rbx_last_error());
	rc = top_watchers_start(&watchers, &top_command, ctx, top_options.servers,
				top_options.interval_s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		rbx_close(ctx);
		return rc;
	}
	rc = run(watchers);
	if (!top_watchers_stop(watchers)) {
		/* Threads that wait for a server still use the library. */
		fflush(stdout);
		_exit(ferror(stdout) ? CLI_EXIT_FAILED : rc);
	}
	rbx_close(ctx);
	return rc;
}

int cli_top(int argc, char **argv)
{
	int rc;

	rc = cli_parse(&top_command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = cli_reach_check(&top_command, top_options.library.secret_file,
			     top_options.library.insecure);
	if (rc)
		return rc;
	if (top_options.interval_s < 0.1)
		return cli_fail(&top_command, "--interval %g is too short; give 0.1 "
				"or more", top_options.interval_s);
	if (!*top_options.servers) {
		top_volumes_read("/sys", &volumes);
		if (!volumes.count)
			return cli_fail(&top_command, "no server, and this machine has "
					"no volume; add --servers A:P,B:P");
	}
	rc = signals_take();
	if (rc)
		return rc;
	return *top_options.servers ? run_with_servers() : run(NULL);
}
