/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * worker.h - the thread of a pool or of an announcement, and the line that says what is
 * wrong with it.
 *
 * All that may wait for a file or a network is done by such a thread. It waits on
 * descriptors, and stop_fd is always one of them: so it ends at once when it is told to.
 */
#ifndef RBX_POOL_WORKER_H
#define RBX_POOL_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RBX_POOL_TEXT_BYTES 512 /* of a line, as rbx_last_error() has */

struct rbx_pool_worker {
	int stop_fd; /* readable: the thread is to end */
	pid_t process; /* that opened it: a child has no such thread */
	pthread_t thread;
	bool is_running;
	pthread_mutex_t lock; /* guards the trouble, and what the owner says */
	char trouble[RBX_POOL_TEXT_BYTES]; /* "": all is well */
};

/* 0 or -EMFILE, with rbx_last_error(). */
int rbx_pool_worker_open(struct rbx_pool_worker *worker);
/* 0 or -EAGAIN, with rbx_last_error(). */
int rbx_pool_worker_start(struct rbx_pool_worker *worker, void *(*run)(void *user), void *user);
/* Tells the thread to end, waits for that, and frees what open() made. */
void rbx_pool_worker_close(struct rbx_pool_worker *worker);
/* 0, or -EDEADLK or -EINVAL if this thread or process must not close it. */
int rbx_pool_worker_guard(const struct rbx_pool_worker *worker, const char *call);

/* By the thread: waits for so long, or until `fd` is readable (-1: none). False: it is to
 * end. */
bool rbx_pool_worker_wait(const struct rbx_pool_worker *worker, int fd, int timeout_ms);

/* Sets the trouble; "" ends it. Returns whether that is news. */
bool rbx_pool_worker_complain(struct rbx_pool_worker *worker, const char *text);
/* For the public calls: 1 if there is trouble, else 0. */
int rbx_pool_worker_trouble(struct rbx_pool_worker *worker, char *text, size_t text_bytes);

#endif
