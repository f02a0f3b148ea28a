/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repair_test.c - one connection that breaks, at one moment each: idle, under
 * garbage, behind a fence, while it opens, while it closes. (peer_recovery_test.c has
 * connections that break under load.)
 */
#include "tests/lib/cabled_site.h"

#include <string.h>
#include <unistd.h>

#include "core/random.h"

#define PAGE 4096u

static void idle_connection_that_was_cut_is_repaired(void **state)
{
	struct site site;
	uint8_t page[PAGE];

	(void)state;
	site_open(&site, "");
	for (int i = 0; i < 10; i++) {
		memset(page, i, sizeof(page));
		assert_int_equal(tenant_transfer(&site.tenant, RBX_WRITE, page,
						 PAGE, 0),
				 0);
		cable_cut(site.cable);
		usleep(i * 3000);
		memset(page, 0xee, sizeof(page));
		assert_int_equal(tenant_transfer(&site.tenant, RBX_READ, page,
						 PAGE, 0),
				 0);
		assert_int_equal(page[0], i);
		assert_int_equal(page[PAGE - 1], i);
	}
	site_close(&site);
}

/* The header of the next frame is not what the server sent: the connection is
 * given up and made anew. (In the payload TCP's checksum is all there is; a
 * volume with checksums finds more.) */
static void garbage_from_the_server_breaks_and_is_repaired(void **state)
{
	struct site site;
	uint8_t page[PAGE];

	(void)state;
	site_open(&site, "");
	tenant_fill(page, PAGE, 1);
	assert_int_equal(tenant_transfer(&site.tenant, RBX_WRITE, page, PAGE,
					 0),
			 0);
	for (int i = 0; i < 5; i++) {
		uint8_t seen[PAGE] = { 0 };

		cable_garble(site.cable, 8);
		assert_int_equal(tenant_transfer(&site.tenant, RBX_READ, seen,
						 PAGE, 0),
				 0);
		assert_memory_equal(seen, page, PAGE);
	}
	assert_true(tenant_stats(site.tenant.ctx).retries > 0);
	site_close(&site);
}

/* A fenced read must see the writes before it, whatever is sent again. */
static void fence_holds_over_a_repair(void **state)
{
	struct rbx_request requests[9], *list[9];
	static uint8_t pages[9][PAGE];
	struct rbx_random random;
	struct site site;

	(void)state;
	rbx_random_seed(&random, 2);
	site_open(&site, "queue_pairs=2 mode=single");
	for (int round = 1; round <= 60; round++) {
		for (uint32_t i = 0; i < 9; i++) {
			memset(pages[i], i < 8 ? round : 0, PAGE);
			requests[i] = (struct rbx_request){
				.op = i < 8 ? RBX_WRITE : RBX_READ,
				.flags = i < 8 ? 0 : RBX_FENCE,
				.length_bytes = PAGE,
				.offset = i % 8 * PAGE,
				.buf = pages[i],
			};
			list[i] = &requests[i];
		}
		requests[8].offset = (uint32_t)round % 8 * PAGE;
		assert_int_equal(rbx_remote_submit(site.tenant.remote, list, 9),
				 0);
		usleep(rbx_random_below(&random, 200));
		cable_cut(site.cable);
		tenant_reap(site.tenant.ctx, 9);
		assert_memory_equal(pages[8], pages[0], PAGE);
	}
	site_close(&site);
}

static void peer_closes_while_it_is_being_repaired(void **state)
{
	struct site site;

	(void)state;
	for (int i = 0; i < 10; i++) {
		site_open(&site, "queue_pairs=2");
		cable_cut(site.cable);
		usleep(i * 500);
		site_close(&site);
	}
}

/* The connection may break at any moment of opening. */
static void peer_opened_under_cuts_works_or_says_no(void **state)
{
	struct rbx_server *server = tenant_server();
	struct cable *cable = cable_lay(rbx_server_address(server));
	struct rbx_context *ctx = tenant_context("queue_pairs=4");
	struct rbx_random random;
	uint32_t opened = 0;

	(void)state;
	rbx_random_seed(&random, 3);
	for (int i = 0; i < 60; i++) {
		struct tenant tenant = { .ctx = ctx };
		uint8_t page[PAGE] = { 0 };

		if (i % 3 == 0)
			cable_garble(cable, 1 + rbx_random_below(&random, 400));
		if (rbx_peer_connect(ctx, &tenant.peer, cable_address(cable))) {
			assert_true(rbx_last_error()[0] != '\0');
			cable_garble(cable, 0);
			continue;
		}
		cable_garble(cable, 0);
		cable_cut_newest(cable);
		if (rbx_borrow(tenant.peer, &tenant.remote,
			       TENANT_SLAB_BYTES) == 0) {
			opened++;
			assert_int_equal(tenant_transfer(&tenant, RBX_WRITE,
							 page, PAGE, 0),
					 0);
			rbx_return(tenant.remote);
		}
		rbx_peer_close(tenant.peer);
	}
	assert_true(opened > 0);
	rbx_close(ctx);
	cable_remove(cable);
	rbx_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_connection_that_was_cut_is_repaired),
		cmocka_unit_test(garbage_from_the_server_breaks_and_is_repaired),
		cmocka_unit_test(fence_holds_over_a_repair),
		cmocka_unit_test(peer_closes_while_it_is_being_repaired),
		cmocka_unit_test(peer_opened_under_cuts_works_or_says_no),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
