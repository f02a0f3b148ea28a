/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.c - takes completions and gives requests back.
 *
 * core/poll_round.h tells what a round does. A fragment that is to end without a
 * completion, because its peer is dead or a post failed, is put on a list that the poller
 * takes.
 *
 * The thread holds the poller's lock while it polls. It drops the lock to sleep, or if
 * another thread waits for it. A thread that removes a peer takes the lock of each poller
 * once; then it knows that no poller uses the peer any more.
 */
#include "lib/poller/poller.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/peer/internal.h"
#include "lib/poller/polling.h"

static _Thread_local struct rbx_poller *current;

struct rbx_poller *rbx_poller_current(void)
{
	return current;
}

void rbx_poller_wake(struct rbx_poller *poller)
{
	uint64_t one = 1;

	/* This fails only if the counter is full, and then it is readable. */
	if (write(poller->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list)
{
	rbx_poll_round_end(&poller->round, list);
	rbx_poller_wake(poller);
}

void rbx_poller_unpark(struct rbx_poller *poller)
{
	rbx_poll_round_unpark(&poller->round);
	rbx_poller_wake(poller);
}

static void handle(struct rbx_wc *wc, uint64_t now_ns,
		   struct rbx_harvest *harvest)
{
	struct rbx_peer_qp *pair = wc->qp->user;

	if (wc->wr_id == RBX_SENTINEL_WR_ID) {
		rbx_peer_note_broken(pair->peer, "the connection has ended");
		return;
	}
	if (wc->wr_id == RBX_MARKER_WR_ID) {
		rbx_channel_complete_rest(&pair->peer->channel,
					  pair->ring_index, now_ns, harvest);
		return;
	}
	rbx_drive_completed(&rbx_peer_drive, &pair->peer->channel,
			    pair->ring_index, (uint32_t)wc->wr_id, wc->status,
			    now_ns, harvest);
}

/* Takes the completions of one queue. */
static uint32_t take(struct rbx_poller *poller, struct rbx_cq *cq)
{
	struct rbx_poll_round *round = &poller->round;
	struct rbx_wc wcs[RBX_POLL_BATCH];
	int count = poller->ctx->device->ops->poll(
		cq, wcs, (int)rbx_poll_policy_ask(&round->policy));

	if (count <= 0)
		return 0;
	round->found_ns = rbx_now_ns();
	for (int i = 0; i < count; i++)
		handle(&wcs[i], round->found_ns, &round->harvest);
	return (uint32_t)count;
}

static uint32_t take_all(struct rbx_poller *poller)
{
	uint32_t cq_count = RBX_LOAD_ACQUIRE(&poller->cq_count);
	uint32_t count = take(poller, poller->cqs[0]);

	for (uint32_t i = 1; i < cq_count; i++)
		count += take(poller, poller->cqs[i]);
	return count;
}

uint32_t rbx_poller_poll(struct rbx_poller *poller)
{
	struct rbx_context *ctx = poller->ctx;
	struct rbx_poll_found found;
	uint32_t count = rbx_poll_round_settle(&poller->round, &ctx->window,
					       take_all(poller), rbx_now_ns, &found);

	if (count == 0)
		return 0;
	/* What the callbacks submit leaves as one batch. */
	rbx_plug_push();
	current = poller;
	rbx_drive_done(found.done);
	rbx_drive_done(found.ended);
	current = NULL;
	rbx_plug_pull();
	if (rbx_context_unpark(ctx))
		rbx_poller_unpark(poller);
	return count;
}

void rbx_poller_arm(struct rbx_poller *poller)
{
	uint32_t cq_count = RBX_LOAD_ACQUIRE(&poller->cq_count);

	RBX_STORE_RELAXED(&poller->armed, true);
	rbx_poll_count(&poller->round.counters.arms, 1);
	for (uint32_t i = 0; i < cq_count; i++)
		poller->ctx->device->ops->arm(poller->cqs[i]);
}

#define MUTE_CQ_LOOK_MS 100

/* The descriptors on which a poller sleeps: the first is for wakes, the others for the
 * events of each queue. A queue that is made meanwhile is looked at after a wake (cqs.c). */
struct bell {
	uint32_t count;
	struct pollfd fds[1 + RBX_POLLER_CQS_MAX];
};

static void await(const struct rbx_poller *poller, struct bell *bell,
		  int timeout_ms)
{
	uint32_t cq_count = RBX_LOAD_ACQUIRE(&poller->cq_count);

	bell->count = 1 + cq_count;
	bell->fds[0] = (struct pollfd){ poller->wake_fd, POLLIN, 0 };
	for (uint32_t i = 0; i < cq_count; i++)
		bell->fds[1 + i] = (struct pollfd){
			RBX_LOAD_RELAXED(&poller->cq_is_mute[i]) ?
				-1 : /* poll() ignores it */
				poller->cqs[i]->event_fd, POLLIN, 0 };
	if (timeout_ms < 0 && RBX_LOAD_RELAXED(&poller->has_mute_cq))
		timeout_ms = MUTE_CQ_LOOK_MS;
	poll(bell->fds, bell->count, timeout_ms);
}

/* An error and nothing to read mean that the device was unplugged. The queue is then
 * polled now and then, for completions that still have to be flushed. */
static void note_mute(struct rbx_poller *poller, uint32_t cq, short revents)
{
	if (revents & POLLIN || !(revents & (POLLERR | POLLHUP | POLLNVAL)))
		return;
	RBX_STORE_RELAXED(&poller->cq_is_mute[cq], true);
	RBX_STORE_RELAXED(&poller->has_mute_cq, true);
}

/* Makes unreadable what await() found readable. Reading the others would cost one more
 * system call for each request that comes alone. */
static void disarm(struct rbx_poller *poller, const struct bell *bell)
{
	uint64_t ignored;

	RBX_STORE_RELAXED(&poller->armed, false);
	for (uint32_t i = 1; i < bell->count; i++) {
		if (bell->fds[i].revents == 0)
			continue;
		note_mute(poller, i - 1, bell->fds[i].revents);
		poller->ctx->device->ops->consume_events(poller->cqs[i - 1]);
	}
	if (bell->fds[0].revents != 0 &&
	    read(poller->wake_fd, &ignored, sizeof(ignored)) < 0)
		return; /* it stays readable until it is read */
}

void rbx_poller_disarm(struct rbx_poller *poller)
{
	struct bell bell;

	await(poller, &bell, 0);
	disarm(poller, &bell);
}

static bool is_silent(const struct rbx_poller *poller)
{
	uint32_t cq_count = RBX_LOAD_ACQUIRE(&poller->cq_count);
	struct pollfd wish = { poller->wake_fd, POLLIN, 0 };
	/* A wake may be for a queue that was made since, and is not armed. */
	bool rings = poll(&wish, 1, 0) != 0;

	for (uint32_t i = 0; i < cq_count && !rings; i++) {
		struct pollfd event = { poller->cqs[i]->event_fd, POLLIN, 0 };

		rings = poll(&event, 1, 0) != 0 && event.revents & POLLIN;
	}
	return !rings;
}

bool rbx_poller_has_looked(const struct rbx_poller *poller,
			   uint64_t *polls_count)
{
	uint64_t count = RBX_LOAD_RELAXED(&poller->round.counters.polls);

	if (count != *polls_count) {
		*polls_count = count;
		return true;
	}
	return RBX_LOAD_RELAXED(&poller->armed) && is_silent(poller);
}

static void sleep_for_event(struct rbx_poller *poller)
{
	struct bell bell;

	pthread_mutex_unlock(&poller->lock);
	await(poller, &bell, -1);
	pthread_mutex_lock(&poller->lock);
	rbx_poll_count(&poller->round.counters.wakeups, 1);
	disarm(poller, &bell);
}

static void let_lock_waiters_in(struct rbx_poller *poller)
{
	pthread_mutex_unlock(&poller->lock);
	while (RBX_LOAD_ORDERED(&poller->lock_waiters) != 0)
		sched_yield();
	pthread_mutex_lock(&poller->lock);
}

static void *poller_main(void *arg)
{
	struct rbx_poller *poller = arg;

	RBX_STORE_RELEASE(&poller->thread_id, gettid());
	pthread_mutex_lock(&poller->lock);
	while (!RBX_LOAD_ORDERED(&poller->stop)) {
		switch (rbx_poll_round_next(&poller->round, rbx_poller_poll(poller),
					    rbx_now_ns)) {
		case RBX_POLL_AGAIN:
			break;
		case RBX_POLL_ARM:
			rbx_poller_arm(poller);
			break;
		case RBX_POLL_SLEEP:
			sleep_for_event(poller);
			break;
		}
		if (RBX_LOAD_RELAXED(&poller->lock_waiters) != 0)
			let_lock_waiters_in(poller);
	}
	pthread_mutex_unlock(&poller->lock);
	return NULL;
}

void rbx_poller_visit(struct rbx_poller *poller)
{
	RBX_FETCH_ADD(&poller->lock_waiters, 1);
	rbx_poller_wake(poller);
	pthread_mutex_lock(&poller->lock);
}

void rbx_poller_leave(struct rbx_poller *poller)
{
	RBX_FETCH_ADD(&poller->lock_waiters, (uint32_t)-1);
	pthread_mutex_unlock(&poller->lock);
}

static void close_event_fd(struct rbx_poller *poller)
{
	if (poller->event_fd >= 0)
		close(poller->event_fd);
}

/* One descriptor for a program that polls, and sleeps in between. */
static int open_event_fd(struct rbx_poller *poller)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	poller->event_fd = fd;
	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, poller->wake_fd, &event))
		return rbx_error(-errno, "cannot make an event descriptor: %s",
				 strerror(errno));
	return 0;
}

static int start_thread(struct rbx_poller *poller)
{
	int err = -pthread_create(&poller->thread, NULL, poller_main, poller);

	if (err)
		return rbx_error(err, "cannot start a poller: %s",
				 strerror(-err));
	poller->has_thread = true;
	return 0;
}

int rbx_poller_create(struct rbx_context *ctx, uint32_t qps_each_count,
		      bool with_thread, struct rbx_poller **out)
{
	struct rbx_poller *poller = calloc(1, sizeof(*poller));
	struct rbx_polling polling = rbx_polling_of(&ctx->options);
	int err;

	if (!poller)
		return rbx_error(-ENOMEM, "cannot allocate a poller");
	poller->ctx = ctx;
	poller->qps_each_count = qps_each_count;
	poller->event_fd = -1;
	if (!with_thread) {
		/* The program decides what happens after a poll. */
		polling.rule.batch_max = RBX_POLL_BATCH;
		polling.rule.event_max = RBX_POLL_EVENT_UNBOUNDED;
	}
	rbx_poll_policy_init(&poller->round.policy, &polling.rule);
	pthread_mutex_init(&poller->lock, NULL);
	poller->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (poller->wake_fd < 0) {
		err = rbx_error(-errno, "cannot create an eventfd: %s",
				strerror(errno));
		goto out_free;
	}
	err = with_thread ? 0 : open_event_fd(poller);
	if (!err)
		err = rbx_poller_cqs_open(poller);
	if (err)
		goto out_close_event;
	err = with_thread ? start_thread(poller) : 0;
	if (err)
		goto out_close_cqs;
	*out = poller;
	return 0;

out_close_cqs:
	rbx_poller_cqs_close(poller);
out_close_event:
	close_event_fd(poller);
	close(poller->wake_fd);
out_free:
	free(poller);
	return err;
}

void rbx_poller_destroy(struct rbx_poller *poller)
{
	if (poller->has_thread) {
		RBX_STORE_RELEASE(&poller->stop, true);
		rbx_poller_wake(poller);
		pthread_join(poller->thread, NULL);
	}
	close_event_fd(poller);
	rbx_poller_cqs_close(poller);
	close(poller->wake_fd);
	pthread_mutex_destroy(&poller->lock);
	free(poller);
}
