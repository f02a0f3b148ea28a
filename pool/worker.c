/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* worker.c - the thread of a pool or of an announcement, see worker.h. */
#include "pool/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/guard.h"

int rbx_pool_worker_open(struct rbx_pool_worker *worker)
{
	memset(worker, 0, sizeof(*worker));
	worker->process = getpid();
	worker->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (worker->stop_fd < 0)
		return rbx_error(-errno, "a pool needs a file descriptor: %s", strerror(errno));
	pthread_mutex_init(&worker->lock, NULL);
	return 0;
}

/* The signals of the program are for its own threads. */
int rbx_pool_worker_start(struct rbx_pool_worker *worker, void *(*run)(void *user), void *user)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&worker->thread, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return rbx_error(-err, "cannot start the thread of a pool: %s", strerror(err));
	worker->is_running = true;
	return 0;
}

void rbx_pool_worker_close(struct rbx_pool_worker *worker)
{
	if (worker->is_running) {
		(void)eventfd_write(worker->stop_fd, 1);
		pthread_join(worker->thread, NULL);
	}
	close(worker->stop_fd);
	pthread_mutex_destroy(&worker->lock);
}

int rbx_pool_worker_guard(const struct rbx_pool_worker *worker, const char *call)
{
	if (worker->process != getpid())
		return rbx_error(-EINVAL, "%s: it belongs to the process that opened it", call);
	return rbx_guard_thread(call);
}

bool rbx_pool_worker_wait(const struct rbx_pool_worker *worker, int fd, int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = worker->stop_fd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	return poll(fds, 2, timeout_ms) <= 0 || !fds[0].revents;
}

bool rbx_pool_worker_complain(struct rbx_pool_worker *worker, const char *text)
{
	bool is_news;

	pthread_mutex_lock(&worker->lock);
	is_news = strncmp(worker->trouble, text, sizeof(worker->trouble) - 1) != 0;
	snprintf(worker->trouble, sizeof(worker->trouble), "%s", text);
	pthread_mutex_unlock(&worker->lock);
	return is_news;
}

int rbx_pool_worker_trouble(struct rbx_pool_worker *worker, char *text, size_t text_bytes)
{
	bool is_there;

	pthread_mutex_lock(&worker->lock);
	is_there = worker->trouble[0];
	if (text && text_bytes)
		snprintf(text, text_bytes, "%s", worker->trouble);
	pthread_mutex_unlock(&worker->lock);
	return is_there;
}
