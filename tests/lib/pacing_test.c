/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pacing_test.c - a program's own congestion policy, good and bad.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <string.h>

#include "core/port.h"

#define PAGE 4096u
#define BATCH 64u
#define ROUNDS 100u

/* What the policy was told; written under the library's promise that no two of
 * its functions run at once. */
static struct {
	uint64_t low_bytes, high_bytes;
	uint64_t posted_bytes, completed_bytes;
	uint64_t last_post_ns;
	uint64_t rtt_ns;
	uint64_t says;
} told;

static void own_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	(void)state;
	told.low_bytes = low_bytes;
	told.high_bytes = high_bytes;
}

static void own_on_post(void *state, uint64_t now_ns, uint64_t bytes)
{
	(void)state;
	told.posted_bytes += bytes;
	told.last_post_ns = now_ns;
}

static void own_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			    uint64_t bytes)
{
	(void)state;
	assert_true(now_ns >= rtt_ns);
	told.completed_bytes += bytes;
	told.rtt_ns = rtt_ns;
}

static uint64_t own_window(const void *state)
{
	(void)state;
	return told.says;
}

static const struct rbx_congestion_ops own = {
	.name = "own",
	.init = own_init,
	.on_post = own_on_post,
	.on_complete = own_on_complete,
	.window = own_window,
};

static void open_tenant(struct tenant *tenant, uint64_t says)
{
	struct rbx_options options;

	memset(&told, 0, sizeof(told));
	told.says = says;
	tenant_options(&options);
	strcpy(options.mode, "doorbell");
	options.fragment_bytes = PAGE;
	options.pollers = 2;
	options.queue_pairs = 4;
	options.congestion = &own;
	tenant_open_with(tenant, &options);
}

static uint32_t done_count; /* atomic */

static void count_done(struct rbx_request *request)
{
	assert_int_equal(request->status, 0);
	RBX_FETCH_ADD(&done_count, 1);
}

static void run_load(struct tenant *tenant)
{
	static uint8_t bytes[BATCH][PAGE];
	static struct rbx_request requests[BATCH];
	struct rbx_request *list[BATCH];

	for (uint32_t round = 0; round < ROUNDS; round++) {
		done_count = 0;
		for (uint32_t i = 0; i < BATCH; i++) {
			requests[i] = (struct rbx_request){
				.op = RBX_WRITE,
				.length_bytes = PAGE,
				.offset = (uint64_t)i * PAGE,
				.buf = bytes[i],
				.complete = count_done,
			};
			list[i] = &requests[i];
		}
		assert_int_equal(rbx_remote_submit(tenant->remote, list, BATCH),
				 0);
		tenant_wait(tenant->ctx, &done_count, BATCH, false);
	}
}

static void policy_of_a_program_rules(void **state)
{
	struct rbx_stats stats;
	struct tenant tenant;
	char text[4096];

	(void)state;
	open_tenant(&tenant, 3 * PAGE);
	run_load(&tenant);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(told.low_bytes, PAGE);
	assert_true(told.high_bytes > told.low_bytes);
	assert_int_equal(stats.window_bytes, 3 * PAGE);
	assert_int_equal(stats.window_clamps, 0);
	assert_true(stats.inflight_bytes_max <= 3 * PAGE);
	assert_true(stats.window_waits > 0);
	rbx_describe(tenant.ctx, text, sizeof(text));
	assert_non_null(strstr(text, "window=own\n"));
	tenant_close(&tenant);
}

static void policy_is_told_what_is_posted_and_completes(void **state)
{
	struct tenant tenant;

	(void)state;
	open_tenant(&tenant, 1 << 20);
	run_load(&tenant);
	assert_true(told.posted_bytes > 0);
	assert_true(told.posted_bytes <= ROUNDS * BATCH * PAGE);
	assert_true(told.completed_bytes > 0);
	assert_true(told.completed_bytes <= ROUNDS * BATCH * PAGE);
	assert_true(told.last_post_ns > 0);
	assert_true(told.rtt_ns > 0);
	tenant_close(&tenant);
}

static void policy_that_says_zero_or_garbage_is_clamped_and_counted(void **state)
{
	static const uint64_t garbage[] = { 0, 1, UINT64_MAX, 0xdeadbeefcafe };

	(void)state;
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		struct rbx_stats stats;
		struct tenant tenant;

		open_tenant(&tenant, garbage[i]);
		run_load(&tenant);
		stats = tenant_stats(tenant.ctx);
		assert_true(stats.window_clamps > 0);
		assert_true(stats.window_bytes >= told.low_bytes);
		assert_true(stats.window_bytes <= told.high_bytes);
		assert_int_equal(stats.inflight_bytes, 0);
		tenant_close(&tenant);
	}
}

static void policy_without_its_functions_is_refused(void **state)
{
	static const struct rbx_congestion_ops half = {
		.name = "half",
		.init = own_init,
	};
	struct rbx_context *ctx = NULL;
	struct rbx_options options;

	(void)state;
	rbx_options_defaults(&options);
	options.congestion = &half;
	assert_int_equal(rbx_open(&ctx, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "window()"));
}

static void window_below_one_fragment_is_refused(void **state)
{
	struct rbx_context *ctx = NULL;
	struct rbx_options options;

	(void)state;
	rbx_options_defaults(&options);
	strcpy(options.window, "127K");
	assert_int_equal(rbx_open(&ctx, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "131072"));
	strcpy(options.window, "128K");
	strcpy(options.fabric, "soft");
	assert_int_equal(rbx_open(&ctx, &options), 0);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policy_of_a_program_rules),
		cmocka_unit_test(policy_is_told_what_is_posted_and_completes),
		cmocka_unit_test(
			policy_that_says_zero_or_garbage_is_clamped_and_counted),
		cmocka_unit_test(policy_without_its_functions_is_refused),
		cmocka_unit_test(window_below_one_fragment_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
