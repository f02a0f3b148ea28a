/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stats_test.c - a completion callback may look at the numbers and the options of its
 * context while another thread closes a peer: neither waits for the other.
 */
#include "tests/lib/tenant.h"

#include <string.h>
#include <unistd.h>

#include "core/port.h"

static struct tenant tenant;
static uint8_t page[4096];
static bool stopping; /* atomic */
static uint32_t stopped_count; /* atomic */

static void completed(struct rbx_request *request)
{
	struct rbx_request *list[] = { request };
	struct rbx_stats stats;

	rbx_stats_get(tenant.ctx, &stats);
	(void)rbx_describe(tenant.ctx, NULL, 0);
	if (RBX_LOAD_ACQUIRE(&stopping) ||
	    rbx_remote_submit(tenant.remote, list, 1))
		RBX_FETCH_ADD(&stopped_count, 1);
}

static void callback_looks_at_the_numbers_while_a_peer_is_closed(void **state)
{
	struct rbx_request request = {
		.op = RBX_WRITE,
		.length_bytes = sizeof(page),
		.buf = page,
		.complete = completed,
	};

	(void)state;
	alarm(30); /* against hangs */
	tenant_open(&tenant, "");
	tenant_submit(&tenant, &request);
	for (int i = 0; i < 100; i++) {
		struct rbx_peer *peer;

		assert_int_equal(rbx_peer_connect(tenant.ctx, &peer,
						  rbx_server_address(
							  tenant.server)),
				 0);
		assert_int_equal(rbx_peer_close(peer), 0);
	}
	RBX_STORE_RELEASE(&stopping, true);
	tenant_wait(tenant.ctx, &stopped_count, 1, false);
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			callback_looks_at_the_numbers_while_a_peer_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
