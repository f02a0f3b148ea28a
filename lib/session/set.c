/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * set.c - the control thread of a context's sessions.
 *
 * A pass of its loop reads the clock, takes completions and tells their sessions, and
 * then looks at the sessions that are due. Messages come before deadlines, and deadlines
 * are compared with a time that was read before any message was. So a process that was
 * stopped for a while reads the messages that have arrived before it counts anybody as
 * dead.
 *
 * A completion queue is polled in each pass until it is empty and armed. From then on its
 * descriptor reports the next completion.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/secret.h"
#include "lib/session/set.h"

#define SLEEP_MS_MAX 1000
#define NS_PER_MS 1000000u

/* Enough polls to empty a full queue. */
#define POLLS_PER_TURN (RBX_BANK_CQ_DEPTH / RBX_POLL_BATCH + 1)

void rbx_session_set_wake(struct rbx_session_set *set)
{
	const uint64_t one = 1;
	ssize_t ignored;

	if (pthread_equal(pthread_self(), set->thread))
		return;
	ignored = write(set->wake_fd, &one, sizeof(one));
	(void)ignored;
}

int rbx_sessions_pause(struct rbx_sessions *sessions, uint64_t pause_ns)
{
	(void)sessions;
	rbx_pause_ns(pause_ns);
	return 0;
}

/* ---- The control thread -----------------------------------------------------------*/

/* The session of a clock, which stays until current_end(). NULL: it is closed. */
static struct rbx_session *current_begin(struct rbx_session_set *set,
					 struct rbx_clock *clock)
{
	struct rbx_session *session;

	rbx_monitor_enter(&set->monitor);
	session = clock->session;
	if (session)
		set->current = clock;
	rbx_monitor_leave(&set->monitor);
	return session;
}

static void current_end_entered(struct rbx_session_set *set)
{
	set->current = NULL;
	rbx_monitor_wake(&set->monitor);
}

static void completed(struct rbx_session_set *set, struct rbx_bank *bank,
		      const struct rbx_wc *wc)
{
	uint32_t number = rbx_clock_number(wc->wr_id);
	struct rbx_clock *clock = &bank->clocks[number];
	struct rbx_session *session;

	RBX_ASSERT(number < RBX_BANK_SESSIONS);
	session = current_begin(set, clock);
	if (!session)
		return;
	rbx_clock_completed(session, clock, wc);
	rbx_monitor_enter(&set->monitor);
	current_end_entered(set);
	rbx_monitor_leave(&set->monitor);
}

/* Takes all completions, up to the depth of the queue. */
static bool bank_take(struct rbx_session_set *set, struct rbx_bank *bank)
{
	struct rbx_wc wcs[RBX_POLL_BATCH];
	uint32_t polls;
	int n, i;

	for (polls = 0; polls < POLLS_PER_TURN; polls++) {
		n = set->ops->poll(bank->cq, wcs, RBX_POLL_BATCH);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			completed(set, bank, &wcs[i]);
	}
	return polls > 0;
}

static bool completions_take(struct rbx_session_set *set)
{
	uint32_t banks_count = RBX_LOAD_ACQUIRE(&set->banks_count), i;
	bool any = false;

	for (i = 0; i < banks_count; i++)
		if (!set->banks[i]->is_armed)
			any |= bank_take(set, set->banks[i]);
	return any;
}

/* A completion before the arming makes no event, so it is taken here. */
static bool arm(struct rbx_session_set *set)
{
	uint32_t banks_count = RBX_LOAD_ACQUIRE(&set->banks_count), i;
	bool any = false;

	for (i = 0; i < banks_count; i++) {
		struct rbx_bank *bank = set->banks[i];

		if (bank->is_armed)
			continue;
		set->ops->arm(bank->cq);
		bank->is_armed = true;
		any |= bank_take(set, bank);
	}
	return any;
}

/* Monitor entered; left while the session looks at its deadlines. */
static void clock_look(struct rbx_session_set *set, struct rbx_clock *clock,
		       uint64_t now_ns)
{
	struct rbx_session *session = clock->session;
	uint64_t due_ns;

	rbx_due_set(&set->due, clock, UINT64_MAX);
	set->current = clock;
	rbx_monitor_leave(&set->monitor);
	due_ns = rbx_session_tick(session, now_ns);
	rbx_monitor_enter(&set->monitor);
	/* Not if the clock is free, or was made due earlier meanwhile. */
	if (clock->session && due_ns < clock->due_ns)
		rbx_due_set(&set->due, clock, due_ns);
	current_end_entered(set);
}

/* Looks at each due clock once. */
static void clocks_look(struct rbx_session_set *set, uint64_t now_ns)
{
	struct rbx_due *due = &set->due;
	uint32_t left;

	rbx_monitor_enter(&set->monitor);
	for (left = due->count; left; left--) {
		if (!due->count || due->clocks[0]->due_ns > now_ns)
			break;
		clock_look(set, due->clocks[0], now_ns);
	}
	rbx_monitor_leave(&set->monitor);
}

static int nap_ms(struct rbx_session_set *set)
{
	uint64_t now_ns = rbx_now_ns(), due_ns = UINT64_MAX;

	rbx_monitor_enter(&set->monitor);
	if (set->stopping)
		due_ns = 0;
	else if (set->due.count)
		due_ns = set->due.clocks[0]->due_ns;
	rbx_monitor_leave(&set->monitor);
	if (due_ns <= now_ns)
		return 0;
	return (int)RBX_MIN((due_ns - now_ns) / NS_PER_MS + 1, SLEEP_MS_MAX);
}

static struct pollfd bank_event(const struct rbx_bank *bank)
{
	return (struct pollfd){
		.fd = bank->is_mute ? -1 : bank->cq->event_fd, /* -1: ignored */
		.events = POLLIN,
	};
}

/* An error and nothing to read mean that the device was unplugged. The queue is then
 * polled after each nap, for completions that still have to be flushed. */
static void bank_rings(struct rbx_session_set *set, struct rbx_bank *bank,
		       short revents)
{
	if (revents) {
		set->ops->consume_events(bank->cq);
		bank->is_mute = !(revents & POLLIN);
	}
	if (revents || bank->is_mute)
		bank->is_armed = false;
}

static void nap(struct rbx_session_set *set)
{
	uint32_t banks_count = RBX_LOAD_ACQUIRE(&set->banks_count), i;
	struct pollfd fds[RBX_BANKS_MAX + 1];
	uint64_t wakes;
	ssize_t ignored;

	for (i = 0; i < banks_count; i++)
		fds[i] = bank_event(set->banks[i]);
	fds[i] = (struct pollfd){ .fd = set->wake_fd, .events = POLLIN };
	if (poll(fds, banks_count + 1, nap_ms(set)) < 0)
		return;
	for (i = 0; i < banks_count; i++)
		bank_rings(set, set->banks[i], fds[i].revents);
	if (fds[i].revents) {
		ignored = read(set->wake_fd, &wakes, sizeof(wakes));
		(void)ignored;
	}
}

static bool is_stopping(struct rbx_session_set *set)
{
	bool stopping;

	rbx_monitor_enter(&set->monitor);
	stopping = set->stopping;
	rbx_monitor_leave(&set->monitor);
	return stopping;
}

static void *control_thread(void *argument)
{
	struct rbx_session_set *set = argument;

	rbx_callback_enter("message callback"); /* no callback of this thread may wait */
	while (!is_stopping(set)) {
		uint64_t now_ns = rbx_now_ns();
		bool any = completions_take(set);

		clocks_look(set, now_ns);
		if (!any && !arm(set))
			nap(set);
	}
	return NULL;
}

/* ---- Open and close --------------------------------------------------------*/

static void set_destroy(struct rbx_session_set *set)
{
	uint32_t i;

	for (i = 0; i < set->banks_count; i++)
		rbx_bank_free(set, set->banks[i]);
	if (set->wake_fd >= 0)
		close(set->wake_fd);
	rbx_monitor_destroy(&set->monitor);
	pthread_mutex_destroy(&set->making);
	free(set);
}

static int set_prepare(struct rbx_session_set *set)
{
	int err;

	set->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->wake_fd < 0)
		return rbx_error(-errno, "cannot make an eventfd: %s",
				 strerror(errno));
	err = -pthread_create(&set->thread, NULL, control_thread, set);
	if (err)
		return rbx_error(err, "cannot start a thread: %s",
				 strerror(-err));
	return 0;
}

int rbx_sessions_open(struct rbx_sessions **out,
		      const struct rbx_sessions_options *options)
{
	struct rbx_session_set *set = calloc(1, sizeof(*set));
	int err;

	if (!set)
		return rbx_error(-ENOMEM, "no memory for sessions");
	set->options = *options;
	set->sessions.secret = rbx_root_of_secret(options->secret);
	set->sessions.silence_ms = options->silence_ms;
	if (options->credential)
		snprintf(set->sessions.credential, sizeof(set->sessions.credential), "%s",
			 options->credential);
	set->ops = options->device->ops;
	pthread_mutex_init(&set->making, NULL);
	rbx_monitor_init(&set->monitor);
	err = set_prepare(set);
	if (err)
		set_destroy(set);
	else
		*out = &set->sessions;
	return err;
}

void rbx_sessions_close(struct rbx_sessions *sessions)
{
	struct rbx_session_set *set = rbx_session_set_of(sessions);
	uint32_t i, j;

	rbx_monitor_enter(&set->monitor);
	for (i = 0; i < set->banks_count; i++)
		for (j = 0; j < RBX_BANK_SESSIONS; j++)
			RBX_ASSERT(!set->banks[i]->clocks[j].session);
	set->stopping = true;
	rbx_monitor_leave(&set->monitor);
	rbx_session_set_wake(set);
	pthread_join(set->thread, NULL);
	set_destroy(set);
}

/* ---- Addresses as text ------------------------------------------------------------*/

int rbx_session_open_name(struct rbx_sessions *sessions, const char *name,
			  const struct rbx_session_events *events,
			  struct rbx_session **session)
{
	struct rbx_address address = { 0 };

	if (strlen(name) >= sizeof(address.name))
		return rbx_error(-EINVAL, "the address is too long");
	strcpy(address.name, name);
	return rbx_session_open(sessions, &address, events, session);
}
