/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* peer_state_test.c - a broken peer is resumed or given up, and in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/peer_state.h"

#define MS 1000000ull
#define TIMEOUT (1000 * MS)

static void break_at(struct rbx_peer_state *peer, uint64_t heard_ns,
		     uint64_t now_ns)
{
	rbx_peer_state_init(peer, TIMEOUT);
	rbx_peer_state_opened(peer);
	rbx_peer_state_broken(peer, heard_ns, now_ns);
	rbx_peer_state_drained(peer, now_ns);
}

static void peer_up_has_nothing_to_do(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer);
	assert_int_equal(rbx_peer_state_next(&peer, 5, &at_ns), RBX_PEER_WAIT);
	assert_true(at_ns == UINT64_MAX);
}

static void peer_broken_waits_for_drain_then_resumes(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	rbx_peer_state_init(&peer, TIMEOUT);
	rbx_peer_state_opened(&peer);
	rbx_peer_state_broken(&peer, 0, 0);
	assert_int_equal(rbx_peer_state_next(&peer, 2, &at_ns), RBX_PEER_WAIT);
	rbx_peer_state_drained(&peer, 3);
	assert_int_equal(rbx_peer_state_next(&peer, 3, &at_ns),
			 RBX_PEER_RESUME);
	rbx_peer_state_resumed(&peer);
	assert_int_equal(peer.phase, RBX_PEER_UP);
	rbx_peer_state_broken(&peer, 4, 4);
	assert_int_equal(peer.breaks_count, 2);
}

static void peer_pauses_between_tries(void **state)
{
	struct rbx_peer_state peer;
	uint64_t at_ns, before = 0, now_ns = 0, pause = 0;

	(void)state;
	break_at(&peer, 0, 0);
	for (int i = 0; i < 6; i++) {
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

static void peer_that_lost_our_memory_is_given_up_at_once(void **state)
{
	static const int finals[] = { -ESTALE, -ECONNREFUSED, -EACCES };
	struct rbx_peer_state peer;
	uint64_t at_ns;

	(void)state;
	for (int i = 0; i < 3; i++) {
		break_at(&peer, 0, 0);
		rbx_peer_state_next(&peer, 1, &at_ns);
		rbx_peer_state_resume_failed(&peer, finals[i], 1);
		assert_int_equal(rbx_peer_state_next(&peer, 1, &at_ns),
				 RBX_PEER_GIVE_UP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_up_has_nothing_to_do),
		cmocka_unit_test(peer_broken_waits_for_drain_then_resumes),
		cmocka_unit_test(peer_pauses_between_tries),
		cmocka_unit_test(
			peer_is_tried_until_the_last_quarter_of_the_timeout),
		cmocka_unit_test(peer_that_breaks_late_is_tried_for_a_quarter),
		cmocka_unit_test(peer_that_lost_our_memory_is_given_up_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
