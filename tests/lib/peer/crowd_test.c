/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd_test.c - more peers fall silent at once than there are threads to repair
 * them (client/repairs.h): each is given up in time, and each comes back. And whoever
 * takes long to say what a peer has that nobody else has keeps no other from being asked.
 */
#include "tests/lib/cable.h"
#include "tests/lib/tenant.h"

#include <errno.h>
#include <unistd.h>

#include "core/limits.h"
#include "lib/clock.h"
#include "lib/peer/peer.h"

#define PEERS (2 * RBX_RECOVERY_WORKERS + 1)
#define TIMEOUT_MS 2000u
/* This machine may be busy, and a request begins after the last sign of life. */
#define SLACK_MS 500u

static uint8_t pages[PEERS][RBX_PAGE_BYTES];

static struct crowd {
	struct rbx_server *server;
	struct cable *cable;
	struct rbx_context *ctx;
	struct rbx_peer *peers[PEERS];
	struct rbx_remote *remotes[PEERS];
	struct rbx_request requests[PEERS];
} crowd;

static void crowd_begin(void)
{
	struct rbx_server_options options;

	tenant_server_options(&options);
	options.memory_bytes = PEERS * TENANT_SLAB_BYTES;
	assert_int_equal(rbx_server_start(&crowd.server, &options), 0);
	crowd.cable = cable_lay(rbx_server_address(crowd.server));
	crowd.ctx = tenant_context("peer_timeout_ms=2000");
}

static void crowd_end(void)
{
	assert_int_equal(rbx_close(crowd.ctx), 0);
	cable_remove(crowd.cable);
	rbx_server_stop(crowd.server);
}

static int crowd_open(void **state)
{
	(void)state;
	crowd_begin();
	for (uint32_t i = 0; i < PEERS; i++) {
		assert_int_equal(rbx_peer_connect(crowd.ctx, &crowd.peers[i],
						  cable_address(crowd.cable)),
				 0);
		assert_int_equal(rbx_borrow(crowd.peers[i], &crowd.remotes[i],
					    RBX_PAGE_BYTES),
				 0);
	}
	return 0;
}

static int crowd_close(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PEERS; i++) {
		assert_int_equal(rbx_return(crowd.remotes[i]), 0);
		assert_int_equal(rbx_peer_close(crowd.peers[i]), 0);
	}
	crowd_end();
	return 0;
}

static void submit_to_each(void)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		struct rbx_request *request = &crowd.requests[i];

		*request = (struct rbx_request){
			.op = RBX_WRITE,
			.buf = pages[i],
			.length_bytes = RBX_PAGE_BYTES,
		};
		assert_int_equal(rbx_remote_submit(crowd.remotes[i], &request,
						   1),
				 0);
	}
}

static void reap_all(int status)
{
	struct rbx_request *done[PEERS];
	int left = PEERS;

	while (left > 0) {
		int taken = rbx_reap(crowd.ctx, done, PEERS, TENANT_WAIT_MS);

		assert_true(taken > 0);
		for (int i = 0; i < taken; i++)
			assert_int_equal(done[i]->status, status);
		left -= taken;
	}
}

/* The first tries, of as many as there are hands, are in vain. */
static void crowd_that_is_cut_off_for_a_while_comes_back(void **state)
{
	(void)state;
	cable_hold(crowd.cable, true);
	cable_cut(crowd.cable);
	submit_to_each();
	usleep(TIMEOUT_MS * 1000 * 3 / 10);
	cable_hold(crowd.cable, false);
	reap_all(0);
}

static void crowd_that_falls_silent_is_given_up_in_time(void **state)
{
	uint64_t since_ns;

	(void)state;
	cable_hold(crowd.cable, true);
	since_ns = rbx_now_ns();
	submit_to_each();
	reap_all(-EHOSTUNREACH);
	assert_in_range((rbx_now_ns() - since_ns) / 1000000, TIMEOUT_MS / 2,
			TIMEOUT_MS + SLACK_MS);
}

/* ---- Owners that take their time ------------------------------------------------*/

#define ASK_MS 100u

static uint32_t asks[PEERS]; /* atomic */
static uint32_t asked_count; /* atomic: peers of which something was asked */
static uint32_t asks_most_count; /* atomic: of one, when all had been */

/* Looks through much, and finds something that nobody else has. */
static bool hold_slowly(struct rbx_peer *peer, void *user)
{
	uint32_t *mine = user, most = 0;

	(void)peer;
	usleep(ASK_MS * 1000);
	if (RBX_FETCH_ADD(mine, 1) != 0 ||
	    RBX_FETCH_ADD(&asked_count, 1) != PEERS - 1)
		return true;
	for (uint32_t i = 0; i < PEERS; i++)
		most = RBX_MAX(most, RBX_LOAD_RELAXED(&asks[i]));
	RBX_STORE_RELEASE(&asks_most_count, most);
	return true;
}

static bool wait_for_it(const struct rbx_fragment *fragment)
{
	(void)fragment;
	return true;
}

/* The crowd is asked in turn, though those who were first want to be asked again long
 * before the last was. */
static void owners_who_take_long_keep_no_other_from_its_turn(void **state)
{
	(void)state;
	crowd_begin();
	for (uint32_t i = 0; i < PEERS; i++) {
		const struct rbx_peer_events events = {
			.hold = hold_slowly,
			.wait = wait_for_it,
			.user = &asks[i],
		};

		assert_int_equal(rbx_peer_open(crowd.ctx,
					       cable_address(crowd.cable),
					       &events, &crowd.peers[i]),
				 0);
	}
	cable_hold(crowd.cable, true);
	tenant_wait(NULL, &asks_most_count, 1, false);
	assert_in_range(RBX_LOAD_ACQUIRE(&asks_most_count), 1, 3);
	cable_hold(crowd.cable, false);
	for (uint32_t i = 0; i < PEERS; i++)
		assert_int_equal(rbx_peer_close(crowd.peers[i]), 0);
	crowd_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			crowd_that_is_cut_off_for_a_while_comes_back, crowd_open,
			crowd_close),
		cmocka_unit_test_setup_teardown(
			crowd_that_falls_silent_is_given_up_in_time, crowd_open,
			crowd_close),
		cmocka_unit_test(owners_who_take_long_keep_no_other_from_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
