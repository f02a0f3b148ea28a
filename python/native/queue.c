/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue.c - passes items from threads of the library to one thread of Python.
 *
 * Items are put on a stack without locks. The thread that takes swaps the stack for an
 * empty one and turns it around, so items come out in order. The thread that puts onto an
 * empty stack makes the descriptor readable. The thread that takes empties first the
 * descriptor and then the stack. So an item that is put in between is never overlooked;
 * it only costs one look that finds nothing.
 *
 * After a fork nothing has to be repaired, as there is no lock that could be held.
 * Threads that were about to put something are not in the child, and the child waits for
 * none.
 */
#include "native.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct rbxpy_queue {
	_Atomic(struct rbxpy_item *) newest;
	atomic_uint putters; /* threads inside of rbxpy_queue_put() */
	int fd;
	pid_t process; /* the process whose threads put */
	struct rbxpy_item *oldest; /* used by the thread that takes */
};

struct rbxpy_queue *rbxpy_queue_new(void)
{
	struct rbxpy_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	queue->process = getpid();
	if (queue->fd < 0) {
		free(queue);
		return NULL;
	}
	return queue;
}

void rbxpy_queue_free(struct rbxpy_queue *queue)
{
	if (!queue)
		return;
	while (queue->process == getpid() && atomic_load(&queue->putters))
		sched_yield();
	close(queue->fd);
	free(queue);
}

int rbxpy_queue_fd(const struct rbxpy_queue *queue)
{
	return queue->fd;
}

void rbxpy_queue_wake(struct rbxpy_queue *queue)
{
	uint64_t one = 1;
	ssize_t written;

	/* If the counter is full it is readable too. */
	do
		written = write(queue->fd, &one, sizeof(one));
	while (written < 0 && errno == EINTR);
}

void rbxpy_queue_put(struct rbxpy_queue *queue, struct rbxpy_item *item)
{
	struct rbxpy_item *newest;

	atomic_fetch_add(&queue->putters, 1);
	newest = atomic_load(&queue->newest);
	do
		item->next = newest;
	while (!atomic_compare_exchange_weak(&queue->newest, &newest, item));
	/* The item may have been freed by now. */
	if (!newest)
		rbxpy_queue_wake(queue);
	atomic_fetch_sub(&queue->putters, 1);
}

void rbxpy_queue_wait(const struct rbxpy_queue *queue, int timeout_ms)
{
	struct pollfd readable = { .fd = queue->fd, .events = POLLIN };

	while (poll(&readable, 1, timeout_ms) < 0 && errno == EINTR)
		;
}

static void refill(struct rbxpy_queue *queue)
{
	struct rbxpy_item *item, *next;
	uint64_t ignored;

	while (read(queue->fd, &ignored, sizeof(ignored)) < 0 && errno == EINTR)
		;
	for (item = atomic_exchange(&queue->newest, NULL); item; item = next) {
		next = item->next;
		item->next = queue->oldest;
		queue->oldest = item;
	}
}

struct rbxpy_item *rbxpy_queue_take(struct rbxpy_queue *queue)
{
	struct rbxpy_item *item;

	if (!queue->oldest)
		refill(queue);
	item = queue->oldest;
	if (item)
		queue->oldest = item->next;
	return item;
}
