/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * done_list.c - the end of a request: it is counted, its buffer is released, and then its
 * callback is called or it is put on the list.
 *
 * Requests with a callback are quicker: they need no lock. The others go on the context's
 * list, from which rbx_reap() takes them. done_fd is readable while the list is not
 * empty, for programs that wait with epoll.
 *
 * If the program polls (pollers = 0), a thread that waits here polls.
 */
#include "lib/done_list.h"

#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/context.h"
#include "lib/outstanding.h"
#include "lib/peer/internal.h"
#include "lib/poller/waiting.h"

/* reserved[] of a request: [0] the time of submit, [1] the link of the list.
 * outstanding.h has the rest. */
#define STAMP(request) ((request)->reserved[0])
#define LINK(request) ((request)->reserved[1])

int rbx_done_list_init(struct rbx_context *ctx)
{
	pthread_condattr_t attributes;

	ctx->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ctx->done_fd < 0)
		return rbx_error(-errno, "cannot create an eventfd: %s",
				 strerror(errno));
	pthread_mutex_init(&ctx->done_lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->done_changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return 0;
}

void rbx_done_list_destroy(struct rbx_context *ctx)
{
	pthread_cond_destroy(&ctx->done_changed);
	pthread_mutex_destroy(&ctx->done_lock);
	close(ctx->done_fd);
}

/*
 * A request counts as complete when a poll has found it. Requests that the callbacks of
 * that poll submit are counted from the same moment. So one look at the clock serves all
 * of them; two more for each request would cost a tenth of a small one.
 */
void rbx_request_stamp(struct rbx_request *request)
{
	const struct rbx_poller *poller = rbx_poller_current();

	STAMP(request) = poller ? poller->round.found_ns : rbx_now_ns();
}

static void bump(uint64_t *counter, uint64_t value)
{
	RBX_STORE_RELAXED(counter, RBX_LOAD_RELAXED(counter) + value);
}

/* Adds to the numbers of the thread that polls: every request ends there, see poller.c. */
static void count(const struct rbx_request *request)
{
	struct rbx_poller *poller = rbx_poller_current();

	RBX_ASSERT(poller);
	bump(&poller->counters.requests, 1);
	bump(&poller->counters.bytes, request->length_bytes);
	if (request->status != 0)
		bump(&poller->counters.errors, 1);
	rbx_histogram_add(&poller->latency, poller->round.found_ns - STAMP(request));
}

static void queue(struct rbx_context *ctx, struct rbx_request *request)
{
	uint64_t one = 1;
	bool was_empty;

	LINK(request) = 0;
	pthread_mutex_lock(&ctx->done_lock);
	was_empty = ctx->done_first == NULL;
	if (was_empty)
		ctx->done_first = request;
	else
		LINK(ctx->done_last) = (uintptr_t)request;
	ctx->done_last = request;
	if (was_empty) {
		pthread_cond_broadcast(&ctx->done_changed);
		/* This cannot fail: the counter is zero, see take_locked(). */
		if (write(ctx->done_fd, &one, sizeof(one)) < 0)
			RBX_ASSERT(errno == EAGAIN);
	}
	pthread_mutex_unlock(&ctx->done_lock);
}

void rbx_context_complete(struct rbx_context *ctx, struct rbx_request *request)
{
	count(request);
	rbx_buffers_release(ctx, request);
	if (request->complete) {
		rbx_request_end(request);
		request->complete(request);
	} else {
		queue(ctx, request);
	}
}

static unsigned int take_locked(struct rbx_context *ctx,
				struct rbx_request *done[], unsigned int max)
{
	unsigned int taken = 0;
	uint64_t ignored;

	while (taken < max && ctx->done_first) {
		struct rbx_request *request = ctx->done_first;

		ctx->done_first =
			(struct rbx_request *)(uintptr_t)LINK(request);
		rbx_request_end(request);
		done[taken++] = request;
	}
	if (taken != 0 && !ctx->done_first &&
	    read(ctx->done_fd, &ignored, sizeof(ignored)) < 0)
		RBX_ASSERT(errno == EAGAIN);
	return taken;
}

/* A moment in the future for pthread_cond_timedwait(); timeout_ms is not negative. */
static struct timespec time_after(int timeout_ms)
{
	return rbx_timespec_at(rbx_now_ns() + (uint64_t)timeout_ms * 1000000);
}

/*
 * Waits for a change, with done_lock held. If the program polls, this polls instead.
 * False: the time is over.
 */
static bool wait_locked(struct rbx_context *ctx, struct rbx_waiting *waiting,
			const struct timespec *until)
{
	struct timespec now;

	if (ctx->options.pollers == 0) {
		pthread_mutex_unlock(&ctx->done_lock);
		rbx_waiting_poll(waiting, ctx);
		pthread_mutex_lock(&ctx->done_lock);
		if (!until)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
		return now.tv_sec < until->tv_sec ||
		       (now.tv_sec == until->tv_sec &&
			now.tv_nsec < until->tv_nsec);
	}
	if (!until)
		return pthread_cond_wait(&ctx->done_changed,
					 &ctx->done_lock) == 0;
	return pthread_cond_timedwait(&ctx->done_changed, &ctx->done_lock,
				      until) == 0;
}

int rbx_reap(struct rbx_context *ctx, struct rbx_request *done[],
	     unsigned int max, int timeout_ms)
{
	struct rbx_waiting waiting = { 0 };
	struct timespec until = { 0 };
	unsigned int taken;
	int err;

	if (!ctx || !done || max == 0)
		return rbx_error(-EINVAL, "rbx_reap: a context and room for requests must be given");
	err = timeout_ms ? rbx_guard_wait(ctx, "rbx_reap") :
			   rbx_guard_use(ctx, "rbx_reap");
	if (err)
		return err;
	rbx_plug_flush();
	if (timeout_ms >= 0)
		until = time_after(timeout_ms);
	pthread_mutex_lock(&ctx->done_lock);
	for (;;) {
		taken = take_locked(ctx, done, max);
		if (taken != 0 ||
		    !wait_locked(ctx, &waiting, timeout_ms < 0 ? NULL : &until))
			break;
	}
	if (taken == 0)
		taken = take_locked(ctx, done, max);
	pthread_mutex_unlock(&ctx->done_lock);
	return (int)taken;
}

void rbx_context_made_room(struct rbx_context *ctx)
{
	/*
	 * Pairs with the addition in rbx_wait_room(). Either the caller of
	 * rbx_wait_room(), when it tries again, sees the room that was made before this
	 * load; or we see here that it waits.
	 */
	if (RBX_LOAD_ORDERED(&ctx->room_waiters) == 0)
		return;
	pthread_mutex_lock(&ctx->done_lock);
	ctx->room_count++;
	pthread_cond_broadcast(&ctx->done_changed);
	pthread_mutex_unlock(&ctx->done_lock);
}

/* Room may have been made between the -EAGAIN and this call, and then nothing reports it.
 * So the call returns after this time, which costs the caller one more try. */
#define ROOM_GUESS_MS 1

int rbx_wait_room(struct rbx_context *ctx, int timeout_ms)
{
	int guess_ms = timeout_ms < 0 || timeout_ms > ROOM_GUESS_MS ?
			       ROOM_GUESS_MS :
			       timeout_ms;
	struct timespec until = time_after(guess_ms);
	/* It sleeps after one look. A caller that tries again and again looks often
	 * enough. */
	struct rbx_waiting waiting = { .looks_until_ns = 1 };
	uint64_t room_count;
	bool in_time = true;
	int err = rbx_guard_wait(ctx, "rbx_wait_room");

	if (err)
		return err;
	rbx_plug_flush();
	RBX_FETCH_ADD(&ctx->room_waiters, 1);
	pthread_mutex_lock(&ctx->done_lock);
	room_count = ctx->room_count;
	while (in_time && ctx->room_count == room_count)
		in_time = wait_locked(ctx, &waiting, &until);
	pthread_mutex_unlock(&ctx->done_lock);
	RBX_FETCH_ADD(&ctx->room_waiters, (uint32_t)-1);
	if (in_time || guess_ms != timeout_ms)
		return 0;
	return rbx_error(-ETIMEDOUT, "nothing completed within %d ms", timeout_ms);
}
