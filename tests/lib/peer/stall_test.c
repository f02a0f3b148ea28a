/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stall_test.c - a server that keeps its session alive and answers no work
 * request: its data connection is held, the control connection is not.
 */
#include "tests/lib/cable.h"
#include "tests/lib/tenant.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/limits.h"

#define PAGE RBX_PAGE_BYTES
#define PAGES 8u

static uint8_t bytes[PAGES * PAGE], there[PAGES * PAGE];

struct site {
	struct rbx_server *server;
	struct cable *cable;
	struct tenant tenant;
	struct rbx_request requests[PAGES];
};

/* Opens it, and writes to a server that does not answer; nor, with for_ever, on
 * the data connection that comes after the next control connection. */
static void site_stall(struct site *site, bool for_ever)
{
	site->server = tenant_server();
	site->cable = cable_lay(rbx_server_address(site->server));
	tenant_open_at(&site->tenant, cable_address(site->cable),
		       "peer_timeout_ms=2000");
	tenant_fill(bytes, sizeof(bytes), 7);
	if (for_ever)
		cable_hold_those_to_come(site->cable, 1);
	assert_int_equal(tenant_transfer(&site->tenant, RBX_READ, there, PAGE,
					 0),
			 0);
	cable_hold_newest(site->cable);
	tenant_submit_pages(&site->tenant, site->requests, bytes, PAGES);
}

static void site_close(struct site *site)
{
	tenant_close(&site->tenant);
	cable_remove(site->cable);
	rbx_server_stop(site->server);
}

static void peer_that_stalls_once_is_repaired(void **state)
{
	struct site site;

	(void)state;
	site_stall(&site, false);
	tenant_reap(site.tenant.ctx, PAGES);
	assert_true(tenant_stats(site.tenant.ctx).retries > 0);
	assert_int_equal(tenant_transfer(&site.tenant, RBX_READ, there,
					 sizeof(there), 0),
			 0);
	assert_memory_equal(there, bytes, sizeof(bytes));
	site_close(&site);
}

static void peer_that_never_answers_is_given_up(void **state)
{
	struct rbx_request *done[PAGES];
	struct site site;
	int left = PAGES;

	(void)state;
	site_stall(&site, true);
	while (left > 0) {
		int taken = rbx_reap(site.tenant.ctx, done, PAGES,
				     TENANT_WAIT_MS);

		assert_true(taken > 0);
		for (int i = 0; i < taken; i++)
			assert_int_equal(done[i]->status, -EHOSTUNREACH);
		left -= taken;
	}
	assert_true(tenant_stats(site.tenant.ctx).retries >= PAGES);
	assert_int_equal(tenant_stats(site.tenant.ctx).inflight_bytes, 0);
	assert_int_equal(tenant_transfer(&site.tenant, RBX_READ, there, PAGE,
					 0),
			 -EHOSTUNREACH);
	site_close(&site);
}

/* Who does not look cannot know whether he was answered. */
static void program_that_does_not_poll_finds_no_stall(void **state)
{
	struct rbx_request request = {
		.op = RBX_WRITE,
		.buf = bytes,
		.length_bytes = PAGE,
	};
	struct rbx_request *list[] = { &request }, *done;
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "pollers=0 peer_timeout_ms=1500");
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 1), 0);
	usleep(1000000); /* a stall is found within half of it */
	assert_int_equal(rbx_reap(tenant.ctx, &done, 1, TENANT_WAIT_MS), 1);
	assert_int_equal(request.status, 0);
	assert_int_equal(tenant_stats(tenant.ctx).retries, 0);
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_that_stalls_once_is_repaired),
		cmocka_unit_test(peer_that_never_answers_is_given_up),
		cmocka_unit_test(program_that_does_not_poll_finds_no_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
