/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost_test.c - measuring: what is refused, and that what is measured is
 * given back. How long anything takes is not tested.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <string.h>

#include "core/break_even.h"
#include "lib/buffers/cost.h"
#include "lib/context.h"

static void measurement_fills_in_every_cost(void **state)
{
	struct rbx_context *ctx =
		tenant_context("fabric=soft:tcp device=registered "
			       "buffers=staging");
	struct rbx_stats before = tenant_stats(ctx), after;
	struct rbx_buffer_cost cost = { 0 };

	(void)state;
	assert_int_equal(rbx_buffer_cost_measure(ctx, 1 << 20, 5, &cost), 0);
	assert_int_equal(cost.bytes, 1 << 20);
	assert_true(cost.copy_ns > 0);
	assert_true(cost.register_ns > 0);
	assert_true(cost.deregister_ns > 0);
	after = tenant_stats(ctx);
	assert_true(after.registrations >= before.registrations + 5);
	assert_int_equal(after.registrations - before.registrations,
			 after.deregistrations - before.deregistrations);
	/* A length that is no whole page, and the shortest. */
	assert_int_equal(rbx_buffer_cost_measure(ctx, 5001, 1, &cost), 0);
	assert_int_equal(rbx_buffer_cost_measure(ctx, 1, 1, &cost), 0);
	rbx_close(ctx);
}

static void measurement_of_what_cannot_be_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_buffer_cost cost;

	(void)state;
	assert_int_equal(rbx_buffer_cost_measure(NULL, 1, 1, &cost), -EINVAL);
	assert_int_equal(rbx_buffer_cost_measure(ctx, 0, 1, &cost), -EINVAL);
	assert_int_equal(rbx_buffer_cost_measure(ctx, 1, 0, &cost), -EINVAL);
	assert_int_equal(rbx_buffer_cost_measure(ctx, 1, 102, &cost), -EINVAL);
	assert_int_equal(rbx_buffer_cost_measure(ctx, (64 << 20) + 1, 1, &cost),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "1 to 67108864 bytes"));
	assert_int_equal(rbx_buffer_cost_measure(ctx, 1, 1, NULL), -EINVAL);
	rbx_close(ctx);
}

static void break_even_counts_deregistration(void **state)
{
	struct rbx_buffer_cost costs[] = {
		{ .bytes = 4096, .copy_ns = 100, .register_ns = 60,
		  .deregister_ns = 60 },
		{ .bytes = 8192, .copy_ns = 200, .register_ns = 60,
		  .deregister_ns = 60 },
	};

	(void)state;
	assert_int_equal(rbx_buffer_cost_break_even(costs, 2), 8192);
	assert_int_equal(rbx_buffer_cost_break_even(costs, 1),
			 RBX_BREAK_EVEN_NEVER);
	assert_int_equal(rbx_buffer_cost_break_even(costs, 0),
			 RBX_BREAK_EVEN_NEVER);
}

static int refuse(struct rbx_device *device, const struct rbx_mr_init *inits,
		  size_t count, struct rbx_mr **mrs, char *error)
{
	(void)device, (void)inits, (void)count, (void)mrs;
	strcpy(error, "cannot pin");
	return -ENOMEM;
}

static void device_that_registers_nothing_copies_all(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=0");
	const struct rbx_fabric_ops *ops = ctx->device->ops;
	struct rbx_fabric_ops refusing = *ops;
	struct rbx_buffer_cost cost;

	(void)state;
	refusing.register_memory = refuse;
	ctx->device->ops = &refusing;
	assert_int_equal(rbx_buffer_cost_measure(ctx, 4096, 3, &cost), -ENOMEM);
	assert_string_equal(rbx_last_error(), "cannot pin");
	assert_int_equal(rbx_buffer_cost_quick(ctx), RBX_BREAK_EVEN_NEVER);
	ctx->device->ops = ops;
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measurement_fills_in_every_cost),
		cmocka_unit_test(measurement_of_what_cannot_be_is_refused),
		cmocka_unit_test(break_even_counts_deregistration),
		cmocka_unit_test(device_that_registers_nothing_copies_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
