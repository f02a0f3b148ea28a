/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repairs.c - decides which thread repairs which connection, see repairs.h; the steps are in
 * recovery.c.
 */
#include "client/repairs.h"

#include "client/queue_pairs.h"

/* ---- What is due: monitor entered -------------------------------------------------*/

static bool all_are_busy(const struct rbx_repairs *repairs)
{
	return repairs->busy_count >= repairs->workers_count;
}

static void want_worker(struct rbx_repairs *repairs, struct rbx_peer *peer)
{
	peer->wants_worker = true;
	rbx_monitor_wake(&repairs->monitor);
}

/* The peer waits for a worker. Whether it need not wait any longer, because its time is over. */
static bool is_missed(const struct rbx_repairs *repairs,
		      const struct rbx_recovery *recovery, uint64_t now_ns,
		      uint64_t *at_ns)
{
	uint64_t by_ns = rbx_recovery_try_by_ns(recovery);

	if (now_ns >= by_ns)
		return all_are_busy(repairs);
	*at_ns = RBX_MIN(*at_ns, by_ns);
	return false;
}

/* What the clock has to do for a peer now; WAIT: nothing, or nothing before *at_ns. */
static enum rbx_recovery_step step_of(struct rbx_repairs *repairs,
				      struct rbx_peer *peer, uint64_t now_ns,
				      uint64_t *at_ns)
{
	enum rbx_recovery_step step;
	uint64_t due_ns;

	if (peer->has_worker || peer->recovery.closing)
		return RBX_RECOVERY_WAIT;
	if (peer->wants_worker) {
		if (!is_missed(repairs, &peer->recovery, now_ns, at_ns))
			return RBX_RECOVERY_WAIT;
		peer->wants_worker = false;
		rbx_recovery_missed(&peer->recovery, now_ns);
	}
	step = rbx_recovery_next(&peer->recovery, now_ns, &due_ns);
	if (step == RBX_RECOVERY_DRAIN || step == RBX_RECOVERY_RESUME) {
		want_worker(repairs, peer);
		*at_ns = RBX_MIN(*at_ns, rbx_recovery_try_by_ns(&peer->recovery));
		return RBX_RECOVERY_WAIT;
	}
	if (step == RBX_RECOVERY_WAIT)
		*at_ns = RBX_MIN(*at_ns, due_ns);
	return step;
}

/* The first peer behind another one, or of all, for which the clock has something to do;
 * NULL: none before *at_ns. */
static struct rbx_peer *peer_of_clock(struct rbx_repairs *repairs,
				      const struct rbx_peer *behind,
				      enum rbx_recovery_step *step,
				      uint64_t *at_ns)
{
	struct rbx_peer *peer = behind ? behind->next : repairs->first;
	uint64_t now_ns = rbx_now_ns();

	*at_ns = UINT64_MAX;
	for (; peer; peer = peer->next) {
		*step = step_of(repairs, peer, now_ns, at_ns);
		if (*step != RBX_RECOVERY_WAIT)
			break;
	}
	return peer;
}

/* Before a step, which may take a while: marks the peers that need a worker. No peer that is up
 * does, and a look for stalls that is due counts as made. */
static void mark_all(struct rbx_repairs *repairs)
{
	uint64_t now_ns = rbx_now_ns(), ignored_ns = UINT64_MAX;
	struct rbx_peer *peer;

	for (peer = repairs->first; peer; peer = peer->next)
		if (peer->recovery.state.phase != RBX_PEER_UP)
			(void)step_of(repairs, peer, now_ns, &ignored_ns);
}

/*
 * Order: peers to drain, then by the deadline of their tries, then those that are only to be
 * left.
 */
static bool goes_first(const struct rbx_recovery *recovery,
		       const struct rbx_recovery *other)
{
	bool drains = recovery->state.phase == RBX_PEER_DRAINING;
	bool other_drains = other->state.phase == RBX_PEER_DRAINING;

	if (drains != other_drains)
		return drains;
	return rbx_recovery_try_by_ns(recovery) < rbx_recovery_try_by_ns(other);
}

static struct rbx_peer *peer_of_worker(struct rbx_repairs *repairs)
{
	struct rbx_peer *first = NULL, *peer;

	for (peer = repairs->first; peer; peer = peer->next)
		if (peer->wants_worker && !peer->recovery.closing &&
		    (!first || goes_first(&peer->recovery, &first->recovery)))
			first = peer;
	return first;
}

/* ---- The threads ------------------------------------------------------------------*/

/* A thread has done something for a peer. */
static void worker_leave(struct rbx_repairs *repairs, struct rbx_peer *peer)
{
	peer->has_worker = false;
	if (peer->recovery.closing) /* the thread that removes it waits */
		rbx_monitor_wake(&repairs->monitor);
}

/* Each peer has its turn before the first has another: the next one to serve is behind the
 * last one. If there is none the lap is over; if that was a whole lap, all is done. */
static void *clock_main(void *argument)
{
	struct rbx_repairs *repairs = argument;
	struct rbx_peer *last = NULL, *peer;
	enum rbx_recovery_step step;
	uint64_t at_ns;

	rbx_monitor_enter(&repairs->monitor);
	while (!repairs->stop) {
		peer = peer_of_clock(repairs, last, &step, &at_ns);
		if (!peer && !last)
			rbx_monitor_wait_until(&repairs->monitor, at_ns);
		last = peer;
		if (!peer)
			continue;
		if (step != RBX_RECOVERY_LOOK)
			mark_all(repairs);
		peer->has_worker = true;
		rbx_monitor_leave(&repairs->monitor);
		rbx_peer_do_step(peer, step, 0);
		rbx_monitor_enter(&repairs->monitor);
		worker_leave(repairs, peer);
		if (step == RBX_RECOVERY_GIVE_UP)
			want_worker(repairs, peer);
	}
	rbx_monitor_leave(&repairs->monitor);
	return NULL;
}

/* What to do for a peer that waits for a worker; WAIT if it is down. What was due still is: a
 * drain, or a try, which is made however late. */
static enum rbx_recovery_step step_of_worker(struct rbx_peer *peer,
					     uint64_t *at_ns)
{
	peer->wants_worker = false;
	if (peer->recovery.state.phase == RBX_PEER_DOWN)
		return RBX_RECOVERY_WAIT;
	return rbx_recovery_next(&peer->recovery, rbx_now_ns(), at_ns);
}

static void worker_take(struct rbx_peer *peer, enum rbx_recovery_step step,
			uint64_t at_ns)
{
	if (step == RBX_RECOVERY_WAIT)
		rbx_session_give_up(peer->session);
	else
		rbx_peer_do_step(peer, step, at_ns);
}

static void *worker_main(void *argument)
{
	struct rbx_repairs *repairs = argument;
	enum rbx_recovery_step step;
	struct rbx_peer *peer;
	uint64_t at_ns = 0; /* a peer that is down has no deadline */

	rbx_monitor_enter(&repairs->monitor);
	while (!repairs->stop) {
		peer = peer_of_worker(repairs);
		if (!peer) {
			rbx_monitor_wait(&repairs->monitor);
			continue;
		}
		step = step_of_worker(peer, &at_ns);
		peer->has_worker = true;
		repairs->busy_count++;
		if (all_are_busy(repairs)) /* the clock handles the peers that wait */
			rbx_monitor_wake(&repairs->monitor);
		rbx_monitor_leave(&repairs->monitor);
		worker_take(peer, step, at_ns);
		rbx_monitor_enter(&repairs->monitor);
		repairs->busy_count--;
		worker_leave(repairs, peer);
		rbx_monitor_wake(&repairs->monitor); /* the clock */
	}
	rbx_monitor_leave(&repairs->monitor);
	return NULL;
}

/* ---- Coming and going ---------------------------------------------------------------*/

void rbx_repairs_init(struct rbx_repairs *repairs)
{
	rbx_monitor_init(&repairs->monitor);
}

void rbx_repairs_destroy(struct rbx_repairs *repairs)
{
	RBX_ASSERT(!repairs->first);
	rbx_monitor_enter(&repairs->monitor);
	repairs->stop = true;
	rbx_monitor_wake(&repairs->monitor);
	rbx_monitor_leave(&repairs->monitor);
	if (repairs->has_clock)
		rbx_thread_join(&repairs->clock);
	while (repairs->workers_count)
		rbx_thread_join(&repairs->workers[--repairs->workers_count]);
	rbx_monitor_destroy(&repairs->monitor);
}

/* With is_starting set, so no other thread does it. */
static int start_threads(struct rbx_repairs *repairs, bool wants_worker)
{
	int err = 0;

	if (!repairs->has_clock)
		err = rbx_thread_start(&repairs->clock, "repairs", clock_main,
				       repairs);
	if (err)
		return err;
	repairs->has_clock = true;
	if (wants_worker)
		err = rbx_thread_start(&repairs->workers[repairs->workers_count],
				       "repair", worker_main, repairs);
	return err;
}

int rbx_repairs_add(struct rbx_repairs *repairs, struct rbx_peer *peer)
{
	bool wants_worker;
	int err;

	rbx_monitor_enter(&repairs->monitor);
	while (repairs->is_starting)
		rbx_monitor_wait(&repairs->monitor);
	repairs->is_starting = true;
	wants_worker = repairs->workers_count < RBX_RECOVERY_WORKERS &&
		     repairs->workers_count <= repairs->peers_count;
	rbx_monitor_leave(&repairs->monitor);
	err = start_threads(repairs, wants_worker);
	rbx_monitor_enter(&repairs->monitor);
	repairs->is_starting = false;
	if (!err) {
		repairs->workers_count += wants_worker;
		repairs->peers_count++;
		peer->next = repairs->first;
		repairs->first = peer;
	}
	rbx_monitor_wake(&repairs->monitor);
	rbx_monitor_leave(&repairs->monitor);
	return err;
}

void rbx_repairs_remove(struct rbx_repairs *repairs, struct rbx_peer *peer)
{
	struct rbx_peer **at = &repairs->first;

	rbx_monitor_enter(&repairs->monitor);
	rbx_recovery_close(&peer->recovery);
	while (peer->has_worker)
		rbx_monitor_wait(&repairs->monitor);
	while (*at != peer) /* bounded: it is in the list */
		at = &(*at)->next;
	*at = peer->next;
	repairs->peers_count--;
	rbx_monitor_leave(&repairs->monitor);
}
