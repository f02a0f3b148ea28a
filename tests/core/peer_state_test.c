/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* peer_state_test.c - a broken peer is resumed or given up, and in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/peer_state.h"
#include "core/reject.h"

#define MS 1000000ull
#define TIMEOUT (1000 * MS)
#define LEASE_HALF (15 * TIMEOUT)
#define LEASE (2 * LEASE_HALF)

static void break_at(struct rbx_peer_state *peer, uint64_t heard_ns,
		     uint64_t now_ns)
{
	rbx_peer_state_init(peer, TIMEOUT);
	rbx_peer_state_opened(peer, LEASE, 0);
	rbx_peer_state_broken(peer, heard_ns, 0, false, now_ns);
	rbx_peer_state_drained(peer);
}

static void peer_up_has_nothing_to_do(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	assert_int_equal(rbx_peer_state_next(&peer, 5, &at_ns), RBX_PEER_WAIT);
	assert_true(at_ns == UINT64_MAX);
}

static void peer_broken_waits_for_drain_then_resumes(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	rbx_peer_state_broken(&peer, 0, 0, false, 0);
	assert_int_equal(rbx_peer_state_next(&peer, 2, &at_ns), RBX_PEER_DRAIN);
	rbx_peer_state_drained(&peer);
	assert_int_equal(rbx_peer_state_next(&peer, 3, &at_ns),
			 RBX_PEER_RESUME);
	rbx_peer_state_resumed(&peer, 3);
	assert_int_equal(peer.phase, RBX_PEER_UP);
	rbx_peer_state_broken(&peer, 4, 0, false, 4);
	assert_int_equal(peer.breaks_count, 2);
}

static void drain_has_an_end(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	rbx_peer_state_broken(&peer, 0, 0, false, 7);
	assert_int_equal(rbx_peer_state_next(&peer, 7, &at_ns), RBX_PEER_DRAIN);
	assert_true(at_ns == 7 + TIMEOUT / 8);
	/* However late the drain is asked about. */
	assert_int_equal(rbx_peer_state_next(&peer, at_ns + 5, &at_ns),
			 RBX_PEER_DRAIN);
	assert_true(at_ns == 7 + TIMEOUT / 8);
	rbx_peer_state_drained(&peer);
	assert_int_equal(rbx_peer_state_next(&peer, at_ns, &at_ns),
			 RBX_PEER_RESUME);
}

static void peer_pauses_between_tries(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns, before = 0, now_ns = 0, pause = 0;

	(void)state;
	break_at(&peer, 0, 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(rbx_peer_state_next(&peer, now_ns, &at_ns),
				 RBX_PEER_RESUME);
		rbx_peer_state_resume_failed(&peer, -ETIMEDOUT, now_ns);
		assert_int_equal(rbx_peer_state_next(&peer, now_ns, &at_ns),
				 RBX_PEER_WAIT);
		assert_true(at_ns - now_ns > pause);
		pause = at_ns - now_ns;
		before = now_ns;
		now_ns = at_ns;
		assert_true(now_ns > before);
	}
}

/* However many tries the break before it took. */
static void pauses_of_the_next_break_begin_anew(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns, first_ns;

	(void)state;
	break_at(&peer, 0, 0);
	rbx_peer_state_resume_failed(&peer, -ETIMEDOUT, 0);
	(void)rbx_peer_state_next(&peer, 0, &first_ns);
	for (int i = 0; i < 5; i++)
		rbx_peer_state_resume_failed(&peer, -ETIMEDOUT, 0);
	rbx_peer_state_resumed(&peer, TIMEOUT);
	rbx_peer_state_broken(&peer, TIMEOUT, 0, false, TIMEOUT);
	rbx_peer_state_drained(&peer);
	rbx_peer_state_resume_failed(&peer, -ETIMEDOUT, TIMEOUT);
	assert_int_equal(rbx_peer_state_next(&peer, TIMEOUT, &at_ns),
			 RBX_PEER_WAIT);
	assert_true(at_ns == TIMEOUT + first_ns);
}

/* When a peer that broke at broken_ns, and cannot be reached, is given up. */
static uint64_t given_up_ns(uint64_t heard_ns, uint64_t broken_ns)
{
	struct rbx_peer_state peer;
	uint64_t now_ns = broken_ns, at_ns;
	enum rbx_peer_action action;
	int tries = 0;

	break_at(&peer, heard_ns, broken_ns);
	while ((action = rbx_peer_state_next(&peer, now_ns, &at_ns)) !=
	       RBX_PEER_GIVE_UP) {
		if (action == RBX_PEER_RESUME) {
			rbx_peer_state_resume_failed(&peer, -EHOSTUNREACH,
						     now_ns);
			assert_true(++tries < 100);
		} else {
			now_ns = at_ns;
		}
	}
	/* To ask is not to do: it is said until it is done. */
	assert_int_equal(rbx_peer_state_next(&peer, now_ns, &at_ns),
			 RBX_PEER_GIVE_UP);
	rbx_peer_state_given_up(&peer);
	assert_int_equal(peer.phase, RBX_PEER_DOWN);
	assert_int_equal(rbx_peer_state_next(&peer, now_ns + 1, &at_ns),
			 RBX_PEER_WAIT);
	return now_ns;
}

static void peer_is_tried_until_the_last_quarter_of_the_timeout(void **state)
{
	(void)state;
	assert_true(given_up_ns(0, 0) == TIMEOUT / 4 * 3);
	assert_true(given_up_ns(5 * MS, TIMEOUT / 2) == 5 * MS + TIMEOUT / 4 * 3);
}

static void peer_that_breaks_late_is_tried_for_a_quarter(void **state)
{
	(void)state;
	assert_true(given_up_ns(0, 10 * TIMEOUT) ==
		    10 * TIMEOUT + TIMEOUT / 4);
}

static uint64_t next_try_takes_ns(struct rbx_peer_state *peer)
{
	uint64_t takes_ns = rbx_peer_state_try_ends_ns(peer, 5) - 5;

	rbx_peer_state_resume_failed(peer, -ETIMEDOUT, 5);
	return takes_ns;
}

/* What a try has sent may be lost in a moment: so the next begins soon. But a server that
 * is slow gets a quarter in the end, and also with a short timeout what it needs. */
static void first_tries_are_short(void **state)
{
	struct rbx_peer_state peer;

	(void)state;
	break_at(&peer, 0, 0);
	assert_true(next_try_takes_ns(&peer) == 100 * MS);
	assert_true(next_try_takes_ns(&peer) == 200 * MS);
	assert_true(next_try_takes_ns(&peer) == TIMEOUT / 4);
	assert_true(next_try_takes_ns(&peer) == TIMEOUT / 4);
	rbx_peer_state_init(&peer, 10 * TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	rbx_peer_state_broken(&peer, 0, 0, false, 0);
	rbx_peer_state_drained(&peer);
	assert_true(next_try_takes_ns(&peer) == 10 * TIMEOUT / 16);
	assert_true(next_try_takes_ns(&peer) == 10 * TIMEOUT / 8);
	rbx_peer_state_resumed(&peer, 6);
	rbx_peer_state_broken(&peer, 0, 0, false, 7);
	rbx_peer_state_drained(&peer);
	assert_true(next_try_takes_ns(&peer) == 10 * TIMEOUT / 16);
}

/* The last sign of life of both was an eighth of the lease ago. What is left of it takes
 * a drain in vain, and then more than one try that nobody answers. */
static void lease_that_is_short_leaves_time_for_tries(void **state)
{
	const uint64_t lease_ns = TIMEOUT / 2, over_ns = lease_ns / 8 * 7;
	struct rbx_peer_state peer;
	uint64_t now_ns, at_ns;
	int tries = 0;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, lease_ns, 0);
	rbx_peer_state_broken(&peer, 0, lease_ns / 2, false, 0);
	assert_int_equal(rbx_peer_state_next(&peer, 0, &now_ns), RBX_PEER_DRAIN);
	rbx_peer_state_drained(&peer);
	while (now_ns < over_ns) {
		if (rbx_peer_state_next(&peer, now_ns, &at_ns) ==
		    RBX_PEER_RESUME) {
			now_ns = rbx_peer_state_try_ends_ns(&peer, now_ns);
			rbx_peer_state_resume_failed(&peer, -ETIMEDOUT, now_ns);
			tries++;
		} else {
			now_ns = at_ns;
		}
	}
	assert_int_equal(tries, 3);
	/* And of those that are refused at once, one in each eighth of it at least. */
	assert_int_equal(rbx_peer_state_next(&peer, now_ns, &at_ns),
			 RBX_PEER_WAIT);
	rbx_peer_state_resume_failed(&peer, -EBUSY, at_ns);
	now_ns = at_ns;
	(void)rbx_peer_state_next(&peer, now_ns, &at_ns);
	assert_true(at_ns - now_ns == lease_ns / 8);
}

/* How long a handshake and its queue pairs take is not the lease's to say. */
static void lease_that_is_short_leaves_a_slow_network_its_time(void **state)
{
	struct rbx_peer_state peer;

	(void)state;
	rbx_peer_state_init(&peer, 10 * TIMEOUT);
	rbx_peer_state_opened(&peer, TIMEOUT, 0);
	rbx_peer_state_broken(&peer, 0, TIMEOUT / 2, false, 0);
	rbx_peer_state_drained(&peer);
	for (uint64_t takes_ns = 100 * MS; takes_ns < 10 * TIMEOUT / 4;
	     takes_ns *= 2)
		assert_true(next_try_takes_ns(&peer) == takes_ns);
	assert_true(next_try_takes_ns(&peer) == 10 * TIMEOUT / 4);
	assert_true(next_try_takes_ns(&peer) == 10 * TIMEOUT / 4);
}

/* A process that stands still while it drains, or between two tries. */
static void peer_is_asked_before_it_is_given_up_however_late(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	break_at(&peer, 0, 0);
	assert_int_equal(rbx_peer_state_next(&peer, 9 * TIMEOUT, &at_ns),
			 RBX_PEER_RESUME);
	rbx_peer_state_resume_failed(&peer, -EHOSTUNREACH, 9 * TIMEOUT);
	assert_int_equal(rbx_peer_state_next(&peer, 9 * TIMEOUT, &at_ns),
			 RBX_PEER_GIVE_UP);

	break_at(&peer, 0, 0);
	rbx_peer_state_resume_failed(&peer, -EHOSTUNREACH, 1);
	assert_int_equal(rbx_peer_state_next(&peer, 9 * TIMEOUT, &at_ns),
			 RBX_PEER_RESUME);
	rbx_peer_state_resumed(&peer, 9 * TIMEOUT);
	assert_int_equal(peer.phase, RBX_PEER_UP);
}

static void peer_that_lost_our_memory_is_given_up_at_once(void **state)
{
	static const int finals[] = { -ESTALE, -ECONNREFUSED };
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	for (int i = 0; i < 2; i++) {
		break_at(&peer, 0, 0);
		rbx_peer_state_next(&peer, 1, &at_ns);
		rbx_peer_state_resume_failed(&peer, finals[i], 1);
		assert_int_equal(rbx_peer_state_next(&peer, 1, &at_ns),
				 RBX_PEER_GIVE_UP);
	}
}

/* All that rdma_cm may say but one: no resources, stale connection, ... */
static void rejections_are_tried_again_unless_nobody_listens(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	for (int reason = 1; reason < 64; reason++) {
		break_at(&peer, 0, 0);
		rbx_peer_state_next(&peer, 1, &at_ns);
		rbx_peer_state_resume_failed(&peer, rbx_reject_errno(reason), 1);
		assert_int_equal(rbx_peer_state_next(&peer, 1, &at_ns),
				 reason == 8 ? RBX_PEER_GIVE_UP :
					       RBX_PEER_WAIT);
	}
	assert_int_equal(rbx_reject_errno(-ECONNREFUSED), -ECONNREFUSED);
	assert_int_equal(rbx_reject_errno(-ECONNRESET), -EBUSY);
}

/* Tries in vain until the end, or until something else is asked for than tries. */
static enum rbx_peer_action try_with(struct rbx_peer_state *peer, int err,
				     uint64_t end_ns, uint64_t *now_ns)
{
	enum rbx_peer_action action;
	uint64_t at_ns;

	while (*now_ns < end_ns) {
		action = rbx_peer_state_next(peer, *now_ns, &at_ns);
		if (action == RBX_PEER_RESUME)
			rbx_peer_state_resume_failed(peer, err, *now_ns);
		else if (action == RBX_PEER_WAIT)
			*now_ns = at_ns;
		else
			return action;
	}
	return RBX_PEER_WAIT;
}

static enum rbx_peer_action try_on(struct rbx_peer_state *peer, uint64_t *now_ns)
{
	return try_with(peer, -EHOSTUNREACH, UINT64_MAX, now_ns);
}

static void break_with_owner(struct rbx_peer_state *peer)
{
	rbx_peer_state_init(peer, TIMEOUT);
	rbx_peer_state_opened(peer, LEASE, 0);
	rbx_peer_state_broken(peer, 0, LEASE_HALF, true, 0);
	rbx_peer_state_drained(peer);
}

static void peer_that_is_not_needed_is_given_up_in_time(void **state)
{
	struct rbx_peer_state peer;
	uint64_t now_ns = 0;

	(void)state;
	break_with_owner(&peer);
	assert_int_equal(try_on(&peer, &now_ns), RBX_PEER_ASK);
	rbx_peer_state_asked(&peer, false, now_ns);
	assert_int_equal(try_on(&peer, &now_ns), RBX_PEER_GIVE_UP);
	assert_true(now_ns == TIMEOUT / 4 * 3);
}

static void peer_with_last_copies_is_tried_for_half_the_lease(void **state)
{
	struct rbx_peer_state peer;
	uint64_t now_ns = 0;

	(void)state;
	break_with_owner(&peer);
	while (try_on(&peer, &now_ns) == RBX_PEER_ASK)
		rbx_peer_state_asked(&peer, true, now_ns);
	rbx_peer_state_given_up(&peer);
	assert_int_equal(peer.phase, RBX_PEER_DOWN);
	assert_true(now_ns == LEASE_HALF);
}

/* It may not be needed any more long before that. */
static void peer_that_is_held_is_asked_about_each_quarter(void **state)
{
	struct rbx_peer_state peer;
	uint64_t now_ns = 0, before_ns;

	(void)state;
	break_with_owner(&peer);
	assert_int_equal(try_on(&peer, &now_ns), RBX_PEER_ASK);
	before_ns = now_ns;
	rbx_peer_state_asked(&peer, true, now_ns);
	assert_int_equal(try_on(&peer, &now_ns), RBX_PEER_ASK);
	assert_true(now_ns == before_ns + TIMEOUT / 4);
}

/* It is we who have no descriptors. */
static void shortage_of_our_own_says_nothing_of_the_peer(void **state)
{
	struct rbx_peer_state peer;
	uint64_t now_ns = 0, until_ns = 5 * TIMEOUT;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	rbx_peer_state_broken(&peer, 0, LEASE_HALF, false, 0);
	rbx_peer_state_drained(&peer);
	assert_int_equal(try_with(&peer, -EMFILE, until_ns, &now_ns),
			 RBX_PEER_WAIT);
	/* Then there are some, and the server is silent. */
	assert_int_equal(try_on(&peer, &now_ns), RBX_PEER_GIVE_UP);
	assert_true(now_ns <= until_ns + TIMEOUT / 2);
	/* There are never any. */
	now_ns = 0;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	rbx_peer_state_broken(&peer, 0, LEASE_HALF, false, 0);
	rbx_peer_state_drained(&peer);
	assert_int_equal(try_with(&peer, -ENOMEM, UINT64_MAX, &now_ns),
			 RBX_PEER_GIVE_UP);
	assert_true(now_ns == LEASE_HALF);
}

/* The cable is back: who comes back first does not cost the others. */
static void peer_counts_as_up_for_others_after_half_the_timeout(void **state)
{
	struct rbx_peer_state peer;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	assert_false(rbx_peer_state_is_stable(&peer, TIMEOUT));
	rbx_peer_state_opened(&peer, LEASE, 5);
	assert_false(rbx_peer_state_is_stable(&peer, 5));
	assert_true(rbx_peer_state_is_stable(&peer, 5 + TIMEOUT / 2));
	rbx_peer_state_broken(&peer, 0, 0, false, TIMEOUT);
	assert_false(rbx_peer_state_is_stable(&peer, 9 * TIMEOUT));
	rbx_peer_state_drained(&peer);
	rbx_peer_state_resumed(&peer, 9 * TIMEOUT);
	assert_false(rbx_peer_state_is_stable(&peer, 9 * TIMEOUT + 1));
	assert_true(rbx_peer_state_is_stable(&peer, 10 * TIMEOUT));
}

/* A longer one, and one that the lease bounds. */
static void timeout_that_was_changed_counts_from_the_next_break(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer, LEASE, 0);
	rbx_peer_state_set_timeout(&peer, 8 * TIMEOUT);
	assert_false(rbx_peer_state_is_stable(&peer, 4 * TIMEOUT - 1));
	assert_true(rbx_peer_state_is_stable(&peer, 4 * TIMEOUT));
	rbx_peer_state_broken(&peer, 0, 0, false, 5 * TIMEOUT);
	assert_int_equal(rbx_peer_state_next(&peer, 5 * TIMEOUT, &at_ns), RBX_PEER_DRAIN);
	assert_true(at_ns == 6 * TIMEOUT);
	rbx_peer_state_set_timeout(&peer, 100 * LEASE);
	assert_int_equal(rbx_peer_state_next(&peer, 5 * TIMEOUT, &at_ns), RBX_PEER_DRAIN);
	assert_true(at_ns == 6 * TIMEOUT);
	rbx_peer_state_drained(&peer);
	rbx_peer_state_resumed(&peer, 6 * TIMEOUT);
	rbx_peer_state_broken(&peer, 6 * TIMEOUT, 0, false, 6 * TIMEOUT);
	assert_int_equal(rbx_peer_state_next(&peer, 6 * TIMEOUT, &at_ns), RBX_PEER_DRAIN);
	assert_true(at_ns == 6 * TIMEOUT + LEASE / 8);
}

static void peer_that_lost_our_memory_is_not_held(void **state)
{
	struct rbx_peer_state peer;
	uint64_t now_ns = 0, at_ns;

	(void)state;
	break_with_owner(&peer);
	assert_int_equal(try_on(&peer, &now_ns), RBX_PEER_ASK);
	rbx_peer_state_asked(&peer, true, now_ns);
	rbx_peer_state_resume_failed(&peer, -ESTALE, now_ns);
	assert_int_equal(rbx_peer_state_next(&peer, now_ns, &at_ns),
			 RBX_PEER_GIVE_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_up_has_nothing_to_do),
		cmocka_unit_test(peer_broken_waits_for_drain_then_resumes),
		cmocka_unit_test(drain_has_an_end),
		cmocka_unit_test(peer_pauses_between_tries),
		cmocka_unit_test(pauses_of_the_next_break_begin_anew),
		cmocka_unit_test(
			peer_is_tried_until_the_last_quarter_of_the_timeout),
		cmocka_unit_test(peer_that_breaks_late_is_tried_for_a_quarter),
		cmocka_unit_test(first_tries_are_short),
		cmocka_unit_test(lease_that_is_short_leaves_time_for_tries),
		cmocka_unit_test(
			lease_that_is_short_leaves_a_slow_network_its_time),
		cmocka_unit_test(
			peer_is_asked_before_it_is_given_up_however_late),
		cmocka_unit_test(peer_that_lost_our_memory_is_given_up_at_once),
		cmocka_unit_test(peer_that_is_not_needed_is_given_up_in_time),
		cmocka_unit_test(peer_that_is_held_is_asked_about_each_quarter),
		cmocka_unit_test(
			peer_with_last_copies_is_tried_for_half_the_lease),
		cmocka_unit_test(shortage_of_our_own_says_nothing_of_the_peer),
		cmocka_unit_test(
			peer_counts_as_up_for_others_after_half_the_timeout),
		cmocka_unit_test(
			timeout_that_was_changed_counts_from_the_next_break),
		cmocka_unit_test(peer_that_lost_our_memory_is_not_held),
		cmocka_unit_test(
			rejections_are_tried_again_unless_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
