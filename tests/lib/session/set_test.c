/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * set_test.c - the control thread of sessions, stopped where it hurts.
 *
 * A machine under load, a debugger or a suspended guest stops a thread anywhere.
 * Here the thread that is stopped has a clock of its own, which leaps, and looks
 * for completions through a table of operations that keeps what has arrived
 * until the leap is over.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/session/set.h"
#include "tests/server/world.h"

/* Longer than the peer timeout of 5 s, shorter than half the lease of 30 s. */
#define STOP_S 6

static struct stop {
	const struct rbx_fabric_ops *ops; /* the real ones */
	struct rbx_fabric_ops stopping;
	struct rbx_session_set *set;
	struct rbx_wc kept[RBX_POLL_BATCH];
	int kept_count;
	bool is_armed; /* the next poll is the last look before a sleep */
	bool is_over; /* atomic */
} stop;

static _Thread_local time_t leapt_s;

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += leapt_s;
	return rc;
}

static int arm_and_note(struct rbx_cq *cq)
{
	stop.is_armed = true;
	return stop.ops->arm(cq);
}

static bool heartbeat_is_out(void)
{
	struct rbx_session *session = stop.set->banks[0]->clocks[0].session;
	bool is_out = false;

	if (!session)
		return false;
	rbx_monitor_enter(&session->monitor);
	is_out = session->borrower.lease.heartbeat_is_out;
	rbx_monitor_leave(&session->monitor);
	return is_out;
}

/* Whether the answer to a heartbeat is there. */
static bool answer_is_kept(void)
{
	if (!heartbeat_is_out())
		return false;
	for (int i = 0; i < stop.kept_count; i++)
		if (stop.kept[i].opcode == RBX_OP_RECV)
			return true;
	return false;
}

/* The answer comes just after a look that found nothing, and then the thread is
 * stopped; after a look that a sleep follows, that would be no test. If it comes before
 * that look, and so perhaps before the queue was armed, nothing announces it: the thread
 * does not sleep, and the next look is the one. */
static int poll_and_stop(struct rbx_cq *cq, struct rbx_wc *wcs, int max)
{
	bool is_last_look = stop.is_armed;
	int count;

	RBX_ASSERT(max == RBX_POLL_BATCH);
	stop.is_armed = false;
	if (stop.kept_count == 0)
		stop.kept_count = stop.ops->poll(cq, stop.kept, max);
	if (!RBX_LOAD_RELAXED(&stop.is_over) && answer_is_kept()) {
		if (!is_last_look) {
			leapt_s += STOP_S;
			RBX_STORE_RELEASE(&stop.is_over, true);
		} else {
			stop.set->banks[0]->is_armed = false;
			rbx_session_set_wake(stop.set);
		}
		return 0;
	}
	count = stop.kept_count;
	memcpy(wcs, stop.kept, (size_t)count * sizeof(*wcs));
	stop.kept_count = 0;
	return count;
}

static void stop_prepare(struct rbx_sessions *sessions)
{
	struct rbx_session_set *set = rbx_session_set_of(sessions);

	stop = (struct stop){ .ops = set->ops, .stopping = *set->ops };
	stop.set = set;
	stop.stopping.poll = poll_and_stop;
	stop.stopping.arm = arm_and_note;
	set->ops = &stop.stopping; /* it has no bank yet, so nobody looks */
}

static bool is_over(struct world *world)
{
	(void)world;
	return RBX_LOAD_ACQUIRE(&stop.is_over);
}

static uint64_t heartbeats_before;

static bool goes_on_or_is_lost(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.lost_count) ||
	       world_stats(world).heartbeats > heartbeats_before;
}

static void stopped_client_reads_its_mail_before_it_judges(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_options(&world);
	world_start(&world);
	stop_prepare(world.set);
	session = world_session(&world);
	world_wait(&world, is_over);
	heartbeats_before = world_stats(&world).heartbeats;
	world_wait(&world, goes_on_or_is_lost);
	assert_int_equal(world.witness.lost_count, 0);
	rbx_session_close(session);
	world_stop(&world);
}

#define LEASE_MS 4000u

static bool has_beaten_thrice(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.lost_count) ||
	       world_stats(world).heartbeats >= heartbeats_before + 3;
}

/* Each a quarter of the lease after the last one, and what is answered counts from
 * when it was sent: else the lease is over at half its term. */
static void heartbeats_keep_their_distance_and_the_lease(void **state)
{
	struct rbx_session *session;
	struct world world;
	uint64_t begin_ns;

	(void)state;
	leapt_s = 0;
	world_options(&world);
	world.options.lease_ms = LEASE_MS;
	world_start(&world);
	session = world_session(&world);
	begin_ns = rbx_now_ns();
	heartbeats_before = world_stats(&world).heartbeats;
	world_wait(&world, has_beaten_thrice);
	assert_int_equal(world.witness.lost_count, 0);
	assert_true(rbx_now_ns() - begin_ns >=
		    2 * (LEASE_MS / 4) * 1000000ull);
	rbx_session_close(session);
	world_stop(&world);
}

/* More than one bank has room for. */
#define MANY_COUNT (RBX_BANK_SESSIONS + RBX_BANK_SESSIONS / 8)

RBX_STATIC_ASSERT(MANY_COUNT <= RBX_SESSIONS_MAX, "as many as may be");

static bool all_have_beaten(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.lost_count) ||
	       world_stats(world).heartbeats >=
		       heartbeats_before + 2 * MANY_COUNT;
}

static void ask_all(struct rbx_session **sessions)
{
	for (uint32_t i = 0; i < MANY_COUNT; i++) {
		struct rbx_server_stats stats;

		assert_int_equal(rbx_session_stats(sessions[i], &stats), 0);
	}
}

/* And their places are used again. */
static void sessions_of_several_banks_live_side_by_side(void **state)
{
	struct rbx_session *sessions[MANY_COUNT];
	struct world world;
	uint32_t i;

	(void)state;
	leapt_s = 0;
	world_options(&world);
	world.options.lease_ms = LEASE_MS;
	world_start(&world);
	for (i = 0; i < MANY_COUNT; i++)
		sessions[i] = world_session(&world);
	assert_int_equal(rbx_session_set_of(world.set)->banks_count, 2);
	ask_all(sessions);
	heartbeats_before = world_stats(&world).heartbeats;
	world_wait(&world, all_have_beaten);
	for (i = 0; i < MANY_COUNT; i += 2)
		rbx_session_close(sessions[i]);
	for (i = 0; i < MANY_COUNT; i += 2)
		sessions[i] = world_session(&world);
	assert_int_equal(rbx_session_set_of(world.set)->banks_count, 2);
	ask_all(sessions);
	assert_int_equal(world.witness.lost_count, 0);
	for (i = 0; i < MANY_COUNT; i++)
		rbx_session_close(sessions[i]);
	world_stop(&world);
}

/* Long enough that no clock is due meanwhile, but by the loss. */
#define LONG_MS 120000u
#define SOON_S 10

static bool posts_fail; /* atomic */

static int post_or_fail(struct rbx_qp *qp, struct rbx_wr *first,
			struct rbx_wr **bad)
{
	if (RBX_LOAD_ACQUIRE(&posts_fail)) {
		*bad = first;
		return -EIO;
	}
	return stop.ops->post_send(qp, first, bad);
}

static bool is_lost(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.lost_count);
}

static void message_that_cannot_be_posted_is_told_at_once(void **state)
{
	struct rbx_session_set *set;
	struct rbx_session *session;
	struct world world;
	uint64_t begin_ns;

	(void)state;
	leapt_s = 0;
	world_options(&world);
	world.options.lease_ms = LONG_MS;
	world_start(&world);
	world.set->silence_ms = LONG_MS;
	set = rbx_session_set_of(world.set);
	stop = (struct stop){ .ops = set->ops, .stopping = *set->ops };
	stop.stopping.post_send = post_or_fail;
	set->ops = &stop.stopping;
	session = world_session(&world);
	RBX_STORE_RELEASE(&posts_fail, true);
	begin_ns = rbx_now_ns();
	assert_int_equal(
		rbx_session_message_submit(session, "?", 1, NULL, NULL), 0);
	world_wait(&world, is_lost);
	assert_true(rbx_now_ns() - begin_ns < SOON_S * 1000000000ull);
	rbx_session_close(session);
	world_stop(&world);
}

static uint32_t polls_count; /* atomic */
static int next_event_fd = -1, event_fd_before; /* atomic; -1: it stays */

/* On the thread that alone looks at the descriptor. */
static int poll_and_count(struct rbx_cq *cq, struct rbx_wc *wcs, int max)
{
	int event_fd = RBX_EXCHANGE(&next_event_fd, -1);

	if (event_fd >= 0) {
		RBX_STORE_RELEASE(&event_fd_before, cq->event_fd);
		cq->event_fd = event_fd;
	}
	RBX_FETCH_ADD(&polls_count, 1);
	return stop.ops->poll(cq, wcs, max);
}

/* A descriptor that poll() finds broken for ever, as that of an unplugged device: the
 * thread naps all the same, and takes what completes. */
static void queue_of_an_unplugged_device_keeps_no_thread_awake(void **state)
{
	struct rbx_server_stats stats;
	struct rbx_session_set *set;
	struct rbx_session *session;
	struct world world;
	int ends[2];

	(void)state;
	leapt_s = 0;
	world_options(&world);
	world_start(&world);
	set = rbx_session_set_of(world.set);
	stop = (struct stop){ .ops = set->ops, .stopping = *set->ops };
	stop.stopping.poll = poll_and_count;
	set->ops = &stop.stopping; /* it has no bank yet, so nobody looks */
	session = world_session(&world);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	RBX_STORE_RELEASE(&next_event_fd, ends[1]);
	assert_int_equal(rbx_session_stats(session, &stats), 0);
	RBX_STORE_RELEASE(&polls_count, 0);
	usleep(300000);
	assert_true(RBX_LOAD_ACQUIRE(&polls_count) < 100);
	RBX_STORE_RELEASE(&next_event_fd, RBX_LOAD_ACQUIRE(&event_fd_before));
	assert_int_equal(rbx_session_stats(session, &stats), 0);
	rbx_session_close(session);
	close(ends[1]);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_client_reads_its_mail_before_it_judges),
		cmocka_unit_test(heartbeats_keep_their_distance_and_the_lease),
		cmocka_unit_test(sessions_of_several_banks_live_side_by_side),
		cmocka_unit_test(message_that_cannot_be_posted_is_told_at_once),
		cmocka_unit_test(queue_of_an_unplugged_device_keeps_no_thread_awake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
