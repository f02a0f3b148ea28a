/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers.c - a thread for each server asks for its numbers every interval.
 *
 * A request may wait for as long as the peer timeout, and the other servers must not wait
 * for it. So each server has a thread. A thread keeps one watch while it is answered. If
 * it is not, the thread makes a new watch every interval, so it notices when a server
 * comes back. A thread stores its results under the lock.
 *
 * At the end, a thread that waits for its server gets only a short time; then the process
 * ends without it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/host_port.h"
#include "cli/top/top.h"

#define STOP_WAIT_S 1

struct watcher {
	pthread_t thread;
	struct top_watchers *all;
	struct rbx_server_watch *watch; /* used by the thread only; NULL: none */
	struct top_server server; /* guarded by the lock */
};

struct top_watchers {
	struct rbx_context *ctx;
	uint64_t interval_ns;
	uint32_t count;
	/* Guards all below, and each watcher's server. */
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	bool stopping;
	uint32_t running; /* threads that may still use this struct */
	struct watcher list[TOP_SERVERS_MAX];
};

static struct timespec time_at(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

static int ask(struct watcher *watcher, struct top_sample *sample)
{
	uint64_t begin_ns;
	int err = 0;

	*sample = (struct top_sample){ 0 };
	if (!watcher->watch)
		err = rbx_server_watch_open(watcher->all->ctx, &watcher->watch,
					    watcher->server.address);
	if (err) {
		watcher->watch = NULL;
		return err;
	}
	begin_ns = top_now_ns();
	err = rbx_server_watch_stats(watcher->watch, &sample->stats);
	sample->at_ns = top_now_ns();
	sample->took_ns = sample->at_ns - begin_ns;
	return err;
}

static void watch_end(struct watcher *watcher)
{
	rbx_server_watch_close(watcher->watch);
	watcher->watch = NULL;
}

/* With the lock. */
static void note_answer(struct top_server *server,
			const struct top_sample *sample)
{
	bool same_life = !server->is_down && server->now.at_ns &&
			 sample->stats.uptime_s >= server->now.stats.uptime_s;

	server->before = same_life ? server->now : (struct top_sample){ 0 };
	server->now = *sample;
	server->is_down = false;
	server->error[0] = '\0';
}

/* With the lock. */
static void note_failure(struct top_server *server)
{
	server->is_down = true;
	snprintf(server->error, sizeof(server->error), "%s", rbx_last_error());
}

static void *watcher_run(void *argument)
{
	struct watcher *watcher = argument;
	struct top_watchers *all = watcher->all;
	struct top_server *server = &watcher->server;
	uint64_t next_ns = top_now_ns();
	struct top_sample sample;
	struct timespec until;
	int err;

	pthread_mutex_lock(&all->lock);
	while (!all->stopping) {
		server->asked_ns = top_now_ns();
		pthread_mutex_unlock(&all->lock);
		err = ask(watcher, &sample);
		pthread_mutex_lock(&all->lock);
		server->asked_ns = 0;
		server->tries++;
		if (err)
			note_failure(server);
		else
			note_answer(server, &sample);
		if (err && watcher->watch) {
			pthread_mutex_unlock(&all->lock);
			watch_end(watcher);
			pthread_mutex_lock(&all->lock);
		}
		next_ns += all->interval_ns;
		if (next_ns < top_now_ns())
			next_ns = top_now_ns() + all->interval_ns;
		until = time_at(next_ns);
		while (!all->stopping &&
		       pthread_cond_timedwait(&all->stopped, &all->lock,
					      &until) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&all->lock);
	watch_end(watcher);
	pthread_mutex_lock(&all->lock);
	all->running--;
	pthread_cond_broadcast(&all->stopped);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Splits the list at its commas. */
static int addresses_take(struct top_watchers *all,
			  const struct cli_command *command, const char *text)
{
	struct rbx_host_port at;
	struct top_server *server;
	size_t length;

	for (; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		if (all->count == TOP_SERVERS_MAX)
			return cli_fail(command, "more than %d servers; give fewer",
					TOP_SERVERS_MAX);
		server = &all->list[all->count++].server;
		snprintf(server->address, sizeof(server->address), "%.*s",
			 (int)length, text);
		if (length >= sizeof(server->address) ||
		    rbx_host_port_parse(server->address, false, &at))
			return cli_fail(command,
					"'%.*s' is no address of a server; give "
					"ADDR:PORT[,ADDR:PORT...]",
					(int)length, text);
	}
	return 0;
}

static int threads_start(struct top_watchers *all,
			 const struct cli_command *command)
{
	uint32_t i, count = all->count;
	int err;

	all->running = count;
	for (i = 0; i < count; i++) {
		all->list[i].all = all;
		err = pthread_create(&all->list[i].thread, NULL, watcher_run,
				     &all->list[i]);
		if (err) {
			pthread_mutex_lock(&all->lock);
			all->running -= count - i;
			all->count = i;
			pthread_mutex_unlock(&all->lock);
			return cli_fail(command, "cannot start a thread: %s",
					strerror(err));
		}
	}
	return 0;
}

static void locks_init(struct top_watchers *all)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&all->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&all->stopped, &attr);
	pthread_condattr_destroy(&attr);
}

int top_watchers_start(struct top_watchers **watchers,
		       const struct cli_command *command,
		       struct rbx_context *ctx, const char *addresses,
		       double interval_s)
{
	struct top_watchers *all = calloc(1, sizeof(*all));
	int rc;

	if (!all)
		return cli_fail(command, "no memory");
	locks_init(all);
	all->ctx = ctx;
	all->interval_ns = (uint64_t)(interval_s * 1e9);
	rc = addresses_take(all, command, addresses);
	if (rc) {
		free(all);
		return rc;
	}
	rc = threads_start(all, command);
	if (!rc)
		*watchers = all;
	else if (!top_watchers_stop(all))
		_exit(rc); /* the context cannot be closed while they use it */
	return rc;
}

uint32_t top_watchers_look(struct top_watchers *all,
			   struct top_server servers[TOP_SERVERS_MAX])
{
	uint32_t i;

	pthread_mutex_lock(&all->lock);
	for (i = 0; i < all->count; i++)
		servers[i] = all->list[i].server;
	pthread_mutex_unlock(&all->lock);
	return all->count;
}

bool top_watchers_stop(struct top_watchers *all)
{
	struct timespec until =
		time_at(top_now_ns() + STOP_WAIT_S * 1000000000ull);
	uint32_t i, running;

	pthread_mutex_lock(&all->lock);
	all->stopping = true;
	pthread_cond_broadcast(&all->stopped);
	while (all->running != 0 &&
	       pthread_cond_timedwait(&all->stopped, &all->lock, &until) !=
		       ETIMEDOUT)
		;
	running = all->running;
	pthread_mutex_unlock(&all->lock);
	if (running != 0)
		return false; /* some threads still use it */
	for (i = 0; i < all->count; i++)
		pthread_join(all->list[i].thread, NULL);
	pthread_cond_destroy(&all->stopped);
	pthread_mutex_destroy(&all->lock);
	free(all);
	return true;
}
