/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_set_test.c - the control thread of sessions, stopped where it hurts.
 *
 * A machine under load, a debugger or a suspended guest stops a thread anywhere.
 * Here the thread that is stopped has a clock of its own, which leaps, and looks
 * for completions through a table of operations that keeps what has arrived
 * until the leap is over.
 */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/session/state.h"
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

/* Whether the answer to a heartbeat is there. The set's lock is held. */
static bool answer_is_kept(void)
{
	if (!stop.set->sessions[0] || !stop.set->sessions[0]->borrower.lease.heartbeat_is_out)
		return false;
	for (int i = 0; i < stop.kept_count; i++)
		if (stop.kept[i].opcode == RBX_OP_RECV)
			return true;
	return false;
}

/* The answer comes just after a look that found nothing, and then the thread is
 * stopped; after a look that a sleep follows, that would be no test. */
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
		}
		return 0;
	}
	count = stop.kept_count;
	memcpy(wcs, stop.kept, (size_t)count * sizeof(*wcs));
	stop.kept_count = 0;
	return count;
}

static void stop_prepare(struct rbx_session_set *set)
{
	stop = (struct stop){ .ops = set->ops, .stopping = *set->ops };
	stop.set = set;
	stop.stopping.poll = poll_and_stop;
	stop.stopping.arm = arm_and_note;
	pthread_mutex_lock(&set->lock);
	set->ops = &stop.stopping;
	pthread_mutex_unlock(&set->lock);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_client_reads_its_mail_before_it_judges),
		cmocka_unit_test(heartbeats_keep_their_distance_and_the_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
