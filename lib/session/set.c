/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * set.c - the control thread of a context, and its timers.
 *
 * A turn: the clock, completions and their news, timers and theirs. What has arrived
 * comes before the timers, and these go by a time at which all of it had yet to be
 * read: a process that is stopped for a while, wherever that is, reads its mail before
 * it counts anybody as dead.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/session/state.h"

#define SLEEP_MS_MAX 1000

void rbx_session_set_wake(struct rbx_session_set *set)
{
	const uint64_t one = 1;
	ssize_t ignored = write(set->wake_fd, &one, sizeof(one));

	(void)ignored;
}

/* ---- The control thread ------------------------------------------------------*/

/* Timers and news of all sessions. Returns when the next timer is due. */
static uint64_t sessions_tick(struct rbx_session_set *set, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX, next_ns;
	uint32_t i;

	for (i = 0; i < RBX_SESSIONS_MAX; i++) {
		struct rbx_session *session = set->sessions[i];

		if (!session)
			continue;
		next_ns = rbx_borrower_tick(&session->borrower, now_ns);
		due_ns = RBX_MIN(due_ns, next_ns);
		rbx_session_pump(session);
		rbx_session_tell_news(session);
	}
	return due_ns;
}

/* All that is there, as far as the queue can hold it. */
static bool completions_take(struct rbx_session_set *set)
{
	struct rbx_wc wcs[RBX_POLL_BATCH];
	uint32_t polls;
	int n, i;

	for (polls = 0; polls < RBX_SESSION_POLLS_PER_TURN; polls++) {
		n = set->ops->poll(set->cq, wcs, RBX_POLL_BATCH);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			rbx_session_completed(set, &wcs[i]);
	}
	return polls > 0;
}

static void nap(struct rbx_session_set *set, uint64_t due_ns)
{
	struct pollfd fds[] = {
		{ .fd = set->cq->event_fd, .events = POLLIN },
		{ .fd = set->wake_fd, .events = POLLIN },
	};
	uint64_t now_ns = rbx_now_ns();
	uint64_t ms = SLEEP_MS_MAX;
	uint64_t wakes;
	ssize_t ignored;

	if (due_ns < now_ns)
		due_ns = now_ns;
	if (due_ns - now_ns < ms * 1000000)
		ms = (due_ns - now_ns) / 1000000 + 1;
	pthread_mutex_unlock(&set->lock);
	poll(fds, sizeof(fds) / sizeof(fds[0]), (int)ms);
	pthread_mutex_lock(&set->lock);
	if (fds[0].revents)
		set->ops->consume_events(set->cq);
	if (fds[1].revents) {
		ignored = read(set->wake_fd, &wakes, sizeof(wakes));
		(void)ignored;
	}
}

static void *control_thread(void *argument)
{
	struct rbx_session_set *set = argument;

	pthread_mutex_lock(&set->lock);
	while (!set->stopping) {
		uint64_t now_ns = rbx_now_ns();
		bool any = completions_take(set);
		uint64_t due_ns = sessions_tick(set, now_ns);

		if (any)
			continue;
		set->ops->arm(set->cq);
		if (!completions_take(set) && !set->stopping)
			nap(set, due_ns);
	}
	pthread_mutex_unlock(&set->lock);
	return NULL;
}

/* ---- Open and close --------------------------------------------------------*/

static int buffers_make(struct rbx_session_set *set)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_mr_init init;
	int err;

	set->buffers_bytes = (size_t)RBX_SESSION_CQ_DEPTH *
			     RBX_WIRE_MESSAGE_BYTES_MAX;
	set->buffers = mmap(NULL, set->buffers_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (set->buffers == MAP_FAILED) {
		set->buffers = NULL;
		return rbx_error(-ENOMEM, "no memory for message buffers");
	}
	init = (struct rbx_mr_init){
		.addr = set->buffers,
		.length_bytes = set->buffers_bytes,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	err = set->ops->register_memory(set->options.device, &init, 1,
					&set->buffers_mr, error);
	if (err) {
		set->buffers_mr = NULL;
		return rbx_error(err, "cannot register message buffers: %s",
				 error);
	}
	return 0;
}

static void set_destroy(struct rbx_session_set *set)
{
	if (set->cq)
		set->ops->destroy_cq(set->cq);
	if (set->buffers_mr)
		set->ops->deregister_memory(set->options.device,
					    &set->buffers_mr, 1);
	if (set->buffers)
		munmap(set->buffers, set->buffers_bytes);
	if (set->wake_fd >= 0)
		close(set->wake_fd);
	pthread_mutex_destroy(&set->lock);
	free(set);
}

static int set_prepare(struct rbx_session_set *set)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err;

	set->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->wake_fd < 0)
		return rbx_error(-errno, "cannot make an eventfd: %s",
				 strerror(errno));
	err = buffers_make(set);
	if (err)
		return err;
	err = set->ops->create_cq(set->options.device, RBX_SESSION_CQ_DEPTH,
				  &set->cq, error);
	if (err) {
		set->cq = NULL;
		return rbx_error(err, "cannot make a completion queue: %s",
				 error);
	}
	err = -pthread_create(&set->thread, NULL, control_thread, set);
	if (err)
		return rbx_error(err, "cannot start a thread: %s",
				 strerror(-err));
	return 0;
}

int rbx_session_set_open(struct rbx_session_set **out,
			 const struct rbx_session_set_options *options)
{
	struct rbx_session_set *set = calloc(1, sizeof(*set));
	int err;

	if (!set)
		return rbx_error(-ENOMEM, "no memory for sessions");
	set->options = *options;
	set->ops = options->device->ops;
	pthread_mutex_init(&set->lock, NULL);
	err = set_prepare(set);
	if (err)
		set_destroy(set);
	else
		*out = set;
	return err;
}

void rbx_session_set_close(struct rbx_session_set *set)
{
	uint32_t i;

	pthread_mutex_lock(&set->lock);
	for (i = 0; i < RBX_SESSIONS_MAX; i++)
		RBX_ASSERT(!set->sessions[i]);
	set->stopping = true;
	pthread_mutex_unlock(&set->lock);
	rbx_session_set_wake(set);
	pthread_join(set->thread, NULL);
	set_destroy(set);
}
