/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plug_test.c - a plug makes one batch of what a thread submits, and never holds
 * back what that thread waits for.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/poller/plug.h"

#define PAGE 4096u
#define DEPTH 32u

static uint8_t bytes[DEPTH * PAGE];

static void plugged_requests_leave_together(void **state)
{
	struct rbx_request requests[DEPTH], *done[1];
	struct tenant tenant;
	struct rbx_stats stats;

	(void)state;
	tenant_open(&tenant, "mode=doorbell");
	rbx_plug(tenant.ctx);
	rbx_plug(tenant.ctx);
	tenant_submit_pages(&tenant, requests, bytes, DEPTH);
	rbx_unplug(tenant.ctx);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, 0);
	assert_int_equal(rbx_reap(tenant.ctx, done, 0, 0), -EINVAL);
	rbx_unplug(tenant.ctx);
	tenant_reap(tenant.ctx, DEPTH);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.work_requests, DEPTH);
	assert_int_equal(stats.doorbells, 1);
	tenant_close(&tenant);
}

/* As when a thread of the block layer goes to sleep: who waits for requests
 * that its own plug holds would wait for ever. */
static void plugged_thread_that_waits_sends_first(void **state)
{
	struct rbx_request requests[DEPTH];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	rbx_plug(tenant.ctx);
	tenant_submit_pages(&tenant, requests, bytes, DEPTH);
	tenant_reap(tenant.ctx, DEPTH);
	rbx_unplug(tenant.ctx);
	tenant_close(&tenant);
}

static void plugged_thread_that_polls_sends_first(void **state)
{
	struct rbx_request requests[DEPTH];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "mode=doorbell pollers=0");
	rbx_plug(tenant.ctx);
	tenant_submit_pages(&tenant, requests, bytes, DEPTH);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, 0);
	assert_true(rbx_poll(tenant.ctx) >= 0);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, DEPTH);
	rbx_unplug(tenant.ctx);
	tenant_reap(tenant.ctx, DEPTH);
	tenant_close(&tenant);
}

static void plugged_thread_that_waits_for_room_gets_it(void **state)
{
	struct rbx_request requests[4 * DEPTH];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "requests_max=64");
	rbx_plug(tenant.ctx);
	for (uint32_t i = 0; i < 4; i++)
		tenant_submit_pages(&tenant, requests + i * DEPTH, bytes,
				    DEPTH);
	rbx_unplug(tenant.ctx);
	tenant_reap(tenant.ctx, 4 * DEPTH);
	tenant_close(&tenant);
}

static void plugged_thread_may_use_the_waiting_calls(void **state)
{
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	uint8_t page[PAGE];

	(void)state;
	tenant_fill(bytes, PAGE, 1);
	assert_int_equal(rbx_volume_open(ctx, &volume,
					 rbx_server_address(server), 1 << 20,
					 NULL),
			 0);
	rbx_plug(ctx);
	assert_int_equal(rbx_write(volume, bytes, PAGE, PAGE), 0);
	assert_int_equal(rbx_read(volume, page, PAGE, PAGE), 0);
	rbx_unplug(ctx);
	assert_memory_equal(page, bytes, PAGE);
	rbx_volume_close(volume);
	rbx_close(ctx);
	rbx_server_stop(server);
}

static void unplug_without_a_plug_does_nothing(void **state)
{
	struct rbx_request requests[DEPTH];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	rbx_unplug(tenant.ctx);
	rbx_plug(tenant.ctx);
	tenant_submit_pages(&tenant, requests, bytes, DEPTH);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, 0);
	rbx_unplug(tenant.ctx);
	rbx_unplug(tenant.ctx);
	tenant_reap(tenant.ctx, DEPTH);
	tenant_close(&tenant);
}

/* What it held is the parent's to send. */
static void child_of_a_plugged_thread_is_not_plugged(void **state)
{
	struct rbx_piece_list none = { 0 };
	struct tenant tenant;
	int status;
	pid_t pid;

	(void)state;
	tenant_open(&tenant, "");
	rbx_plug(tenant.ctx);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(rbx_plug_hold_pieces(NULL, &none));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(rbx_plug_hold_pieces(NULL, &none));
	rbx_unplug(tenant.ctx);
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugged_requests_leave_together),
		cmocka_unit_test(plugged_thread_that_waits_sends_first),
		cmocka_unit_test(plugged_thread_that_polls_sends_first),
		cmocka_unit_test(plugged_thread_that_waits_for_room_gets_it),
		cmocka_unit_test(plugged_thread_may_use_the_waiting_calls),
		cmocka_unit_test(unplug_without_a_plug_does_nothing),
		cmocka_unit_test(child_of_a_plugged_thread_is_not_plugged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
