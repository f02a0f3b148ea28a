/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_test.c - a watch asks its server again and again as one client, and tells when
 * that server is gone.
 */
#include <errno.h>

#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

static void watch_is_one_client_however_often_it_asks(void **state)
{
	struct rbx_server_stats stats;
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_server_watch *watch;
	int i;

	(void)state;
	assert_int_equal(rbx_server_watch_open(ctx, &watch,
					       rbx_server_address(server)),
			 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(rbx_server_watch_stats(watch, &stats), 0);
		assert_int_equal(stats.sessions, 1);
		assert_int_equal(stats.clients, 1);
		assert_int_equal(stats.memory_bytes,
				 TENANT_SLABS * TENANT_SLAB_BYTES);
	}
	assert_int_equal(rbx_close(ctx), -EBUSY);
	assert_int_equal(rbx_server_watch_close(watch), 0);
	assert_int_equal(rbx_server_watch_close(NULL), 0);
	assert_int_equal(rbx_close(ctx), 0);
	rbx_server_stop(server);
}

static void watch_of_a_killed_server_fails_and_a_new_one_sees_its_successor(void **state)
{
	struct rbx_server_stats stats;
	struct rbx_context *ctx = tenant_context("");
	struct server_process server;
	struct rbx_server_watch *watch, *none;

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	assert_int_equal(rbx_server_watch_open(ctx, &watch, server.address), 0);
	assert_int_equal(rbx_server_watch_stats(watch, &stats), 0);
	server_process_kill(&server);
	assert_true(rbx_server_watch_stats(watch, &stats) < 0);
	assert_true(rbx_server_watch_open(ctx, &none, server.address) < 0);
	assert_int_equal(rbx_server_watch_close(watch), 0);
	server_process_start(&server, server.address, NULL);
	assert_int_equal(rbx_server_watch_open(ctx, &watch, server.address), 0);
	assert_int_equal(rbx_server_watch_stats(watch, &stats), 0);
	assert_int_equal(stats.sessions, 1);
	assert_int_equal(rbx_server_watch_close(watch), 0);
	server_process_kill(&server);
	rbx_close(ctx);
}

static void watch_refuses_what_is_missing(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_server_watch *watch;
	struct rbx_server_stats stats;

	(void)state;
	assert_int_equal(rbx_server_watch_open(NULL, &watch, "127.0.0.1:1"),
			 -EINVAL);
	assert_int_equal(rbx_server_watch_open(ctx, &watch, NULL), -EINVAL);
	assert_int_equal(rbx_server_watch_open(ctx, NULL, "127.0.0.1:1"),
			 -EINVAL);
	assert_int_equal(rbx_server_watch_stats(NULL, &stats), -EINVAL);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch_is_one_client_however_often_it_asks),
		cmocka_unit_test(
			watch_of_a_killed_server_fails_and_a_new_one_sees_its_successor),
		cmocka_unit_test(watch_refuses_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
