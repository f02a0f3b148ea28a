/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion_test.c - the policies against a device whose knee is known.
 *
 * A sweep of fixed windows over the same model says what can be reached and
 * where. Each policy has to come near to that, on a device that only stops
 * getting faster, on one that collapses under overload, after the knee has
 * moved, and with services of random length.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/congestion.h"
#include "tests/core/device_model.h"

#define SECOND 1000000000ull
#define LOW_BYTES 16384u

static const struct rbx_congestion_ops *const all[] = {
	&rbx_congestion_aimd,
	&rbx_congestion_delay,
	&rbx_congestion_auto,
};
#define ALL (sizeof(all) / sizeof(all[0]))

/* These keep a queue, because delay is what tells them that there is one: on a
 * device that gets slower by it they pay for that. */
static bool goes_by_delay(uint32_t policy)
{
	return all[policy] != &rbx_congestion_auto;
}

/* A knee at (1 + 63) * 4 KiB = 256 KiB. */
static const struct device_model pipe = {
	.work_request_bytes = 4096,
	.demand = 2048,
	.service_ns = 1000,
	.latency_ns = 63000,
};

static struct device_model *new_model(const struct device_model *like,
				      const struct rbx_congestion_ops *ops)
{
	struct device_model *model = malloc(sizeof(*model));

	assert_non_null(model);
	*model = *like;
	model->window = malloc(sizeof(*model->window));
	assert_non_null(model->window);
	rbx_random_seed(&model->random, 1);
	rbx_window_init(model->window, 0, 0);
	rbx_window_set_policy(model->window, ops, LOW_BYTES,
			      RBX_WINDOW_BYTES_MAX);
	return model;
}

/* Whatever a policy did, the balance is zero and it never had to be clamped. */
static void free_model(struct device_model *model)
{
	device_model_drain(model);
	assert_int_equal(rbx_window_in_flight_bytes(model->window), 0);
	assert_int_equal(rbx_window_in_flight_work_requests(model->window), 0);
	assert_int_equal(model->window->clamps, 0);
	free(model->window);
	free(model);
}

/* Runs into a steady state, then measures against the best fixed window. */
static void assert_near_best(struct device_model *model, const char *name,
			     uint32_t percent)
{
	uint64_t best_window_bytes = 0, rate;
	uint64_t best = device_model_best(model, &best_window_bytes);

	device_model_run(model, 6 * SECOND);
	rate = device_model_run(model, 2 * SECOND);
	print_message("%s: %u %% of the best, window %u KiB, best %u KiB\n",
		      name, (unsigned int)(rate * 100 / best),
		      (unsigned int)(model->window->bytes_max >> 10),
		      (unsigned int)(best_window_bytes >> 10));
	assert_true(rate * 100 >= best * percent);
}

static void policies_fill_a_device_with_a_knee(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&pipe, all[i]);

		assert_near_best(model, all[i]->name, 97);
		/* And do not put much more into its queue. */
		assert_true(model->window->bytes_max >= 128 << 10);
		assert_true(model->window->bytes_max <= 1100 << 10);
		free_model(model);
	}
}

static void policies_keep_a_device_from_collapsing(void **state)
{
	struct device_model thrashing = pipe;

	(void)state;
	thrashing.overload_work_requests = 96;
	thrashing.overload_ns = 20;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&thrashing, all[i]);

		assert_near_best(model, all[i]->name, goes_by_delay(i) ? 50 : 90);
		free_model(model);
	}
}

static void policies_follow_a_knee_that_moves(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&pipe, all[i]);

		device_model_run(model, 3 * SECOND);
		model->latency_ns = 500000;
		assert_near_best(model, all[i]->name, 90);
		model->latency_ns = 20000;
		model->overload_work_requests = 24;
		model->overload_ns = 50;
		assert_near_best(model, all[i]->name, goes_by_delay(i) ? 50 : 90);
		free_model(model);
	}
}

static void policies_bear_services_of_random_length(void **state)
{
	struct device_model uneven = pipe;

	(void)state;
	uneven.jitter_percent = 80;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&uneven, all[i]);

		assert_near_best(model, all[i]->name, 90);
		free_model(model);
	}
}

/* Chance is no reason to leave a window that is good. */
static void auto_stays_where_it_is_good_on_a_device_that_sways(void **state)
{
	struct device_model *model, *unbound;
	struct device_model device = pipe;
	uint64_t rate, most;

	(void)state;
	device.demand = 1024;
	device.batch_ns = 50000;
	device.sway_percent = 16;
	device.sway_ns = 10000000;
	model = new_model(&device, &rbx_congestion_auto);
	unbound = new_model(&device, &rbx_congestion_auto);
	rbx_window_init(unbound->window, 0, 0);
	device_model_run(model, SECOND);
	device_model_run(unbound, SECOND);
	rate = device_model_run(model, 5 * SECOND);
	most = device_model_run(unbound, 5 * SECOND);
	print_message("auto: %u permille of no window, window %u KiB\n",
		      (unsigned int)(rate * 1000 / most),
		      (unsigned int)(model->window->bytes_max >> 10));
	assert_true(rate * 100 >= most * 98);
	free_model(unbound);
	free_model(model);
}

/* A machine that its other users leave gets quicker by itself: whatever was tried
 * in that moment had no part in it. */
static void auto_thanks_no_trial_for_a_machine_that_gets_quicker(void **state)
{
	struct device_model device = pipe;
	uint64_t best, window_bytes;

	(void)state;
	device.demand = 1024;
	device.batch_ns = 50000;
	best = device_model_best(&device, &window_bytes);
	for (uint32_t moment = 0; moment < 64; moment++) {
		struct device_model *model =
			new_model(&device, &rbx_congestion_auto);
		uint64_t rate;

		model->service_ns *= 5;
		model->service_ns /= 2;
		model->batch_ns *= 5;
		model->batch_ns /= 2;
		device_model_run(model, (8 + moment) * SECOND / 1000);
		model->service_ns = device.service_ns;
		model->batch_ns = device.batch_ns;
		device_model_run(model, SECOND / 20);
		rate = device_model_run(model, SECOND / 5);
		if (rate * 100 < best * 94)
			fail_msg("moment %u: %u %% of the best", moment,
				 (unsigned int)(rate * 100 / best));
		free_model(model);
	}
}

/* What the load keeps waiting is less than where the window begins, and more than
 * the device bears. */
static void policies_find_a_knee_below_a_small_load(void **state)
{
	struct device_model thrashing = pipe;

	(void)state;
	thrashing.demand = 200;
	thrashing.overload_work_requests = 80;
	thrashing.overload_ns = 100;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&thrashing, all[i]);

		assert_near_best(model, all[i]->name, goes_by_delay(i) ? 30 : 90);
		free_model(model);
	}
}

/* Where the climb begins, and where it is after a load without end has come, each
 * work request takes a hundred times as long as it might. */
static void auto_leaves_a_deep_collapse_within_a_second(void **state)
{
	struct device_model thrashing = pipe;

	(void)state;
	thrashing.service_ns = 2500;
	thrashing.latency_ns = 30000;
	thrashing.overload_work_requests = 16;
	thrashing.overload_ns = 400;
	for (uint32_t demand = 256; demand <= 2048; demand *= 2) {
		struct device_model *model;
		uint64_t best, window_bytes, rate;

		thrashing.demand = demand;
		model = new_model(&thrashing, &rbx_congestion_auto);
		best = device_model_best(model, &window_bytes);
		device_model_run(model, SECOND);
		rate = device_model_run(model, SECOND);
		print_message("%u waiting: %u %% of the best\n", demand,
			      (unsigned int)(rate * 100 / best));
		assert_true(rate * 100 >= best * 90);
		free_model(model);
	}
}

/* Also while the policy is trying something else. */
static void auto_notices_a_collapse_whenever_it_comes(void **state)
{
	struct device_model device = pipe;

	(void)state;
	device.demand = 256;
	device.service_ns = 2500;
	device.latency_ns = 30000;
	for (uint32_t moment = 0; moment < 32; moment++) {
		struct device_model *model =
			new_model(&device, &rbx_congestion_auto);
		uint64_t best, window_bytes, rate;

		device_model_run(model, SECOND / 4 + moment * SECOND / 100);
		model->overload_work_requests = 16;
		model->overload_ns = 400;
		best = device_model_best(model, &window_bytes);
		device_model_run(model, SECOND);
		rate = device_model_run(model, SECOND);
		if (rate * 100 < best * 85)
			fail_msg("moment %u: %u %% of the best", moment,
				 (unsigned int)(rate * 100 / best));
		free_model(model);
	}
}

/* Large work requests: a step of a half octave is less than one of them. */
static void policies_find_the_knee_in_large_steps(void **state)
{
	struct device_model large = pipe;

	(void)state;
	large.work_request_bytes = 131072;
	large.demand = 256;
	large.service_ns = 25000;
	large.latency_ns = 100000;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&large, all[i]);

		assert_near_best(model, all[i]->name, 90);
		free_model(model);
	}
}

/* With large requests each octave is worth a few percent up to many MiB, and a
 * device that sways by more does not say so soon. */
static void auto_is_soon_wide_enough_for_large_requests(void **state)
{
	struct device_model device = pipe;
	uint64_t rates = 0, most = 0;

	(void)state;
	device.work_request_bytes = 131072;
	device.demand = 256;
	device.service_ns = 20000;
	device.batch_ns = 60000;
	device.sway_percent = 16;
	device.sway_ns = 10000000;
	for (uint32_t moment = 0; moment < 32; moment++) {
		struct device_model *model, *unbound;

		device.now_ns = SECOND + moment * SECOND;
		model = new_model(&device, &rbx_congestion_auto);
		unbound = new_model(&device, &rbx_congestion_auto);
		rbx_window_init(unbound->window, 0, 0);
		device_model_run(model, SECOND);
		device_model_run(unbound, SECOND);
		rates += device_model_run(model, SECOND);
		most += device_model_run(unbound, SECOND);
		free_model(unbound);
		free_model(model);
	}
	print_message("auto: %u permille of no window\n",
		      (unsigned int)(rates * 1000 / most));
	assert_true(rates * 100 >= most * 97);
}

/* A load that does not fill the window may not make it wander off. */
static void auto_stays_near_the_demand(void **state)
{
	struct device_model light = pipe;
	struct device_model *model;

	(void)state;
	light.demand = 8;
	/* And a sudden load is taken in within a second, whenever it comes. */
	for (uint32_t moment = 0; moment < 16; moment++) {
		model = new_model(&light, &rbx_congestion_auto);
		device_model_run(model, 5 * SECOND + moment * SECOND / 20);
		assert_true(model->window->bytes_max <= 2048 << 10);
		model->demand = 2048;
		device_model_run(model, SECOND);
		assert_true(model->window->bytes_max >= 128 << 10);
		free_model(model);
	}
}

/* A window of little more than one fragment, as a light load leaves it. */
static void auto_grows_from_one_fragment(void **state)
{
	struct device_model light = pipe;
	struct device_model *model;
	uint64_t best, window_bytes;

	(void)state;
	light.work_request_bytes = LOW_BYTES;
	light.demand = 1024;
	best = device_model_best(&light, &window_bytes);
	light.demand = 1;
	for (uint32_t moment = 0; moment < 16; moment++) {
		uint64_t rate;

		model = new_model(&light, &rbx_congestion_auto);
		device_model_run(model, SECOND + moment * SECOND / 20);
		assert_true(model->window->bytes_max <= 4 * LOW_BYTES);
		model->demand = 1024;
		device_model_run(model, SECOND);
		rate = device_model_run(model, SECOND / 2);
		if (rate * 100 < best * 95)
			fail_msg("moment %u: %u %% of the best", moment,
				 (unsigned int)(rate * 100 / best));
		free_model(model);
	}
}

static void policies_survive_errors(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ALL; i++) {
		struct device_model *model = new_model(&pipe, all[i]);

		for (int error = 0; error < 200; error++) {
			device_model_run(model, SECOND / 100);
			rbx_window_on_error(model->window);
		}
		assert_near_best(model, all[i]->name, 90);
		free_model(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_fill_a_device_with_a_knee),
		cmocka_unit_test(policies_keep_a_device_from_collapsing),
		cmocka_unit_test(policies_follow_a_knee_that_moves),
		cmocka_unit_test(policies_bear_services_of_random_length),
		cmocka_unit_test(
			auto_stays_where_it_is_good_on_a_device_that_sways),
		cmocka_unit_test(
			auto_thanks_no_trial_for_a_machine_that_gets_quicker),
		cmocka_unit_test(policies_find_a_knee_below_a_small_load),
		cmocka_unit_test(auto_leaves_a_deep_collapse_within_a_second),
		cmocka_unit_test(auto_notices_a_collapse_whenever_it_comes),
		cmocka_unit_test(policies_find_the_knee_in_large_steps),
		cmocka_unit_test(
			auto_is_soon_wide_enough_for_large_requests),
		cmocka_unit_test(auto_stays_near_the_demand),
		cmocka_unit_test(auto_grows_from_one_fragment),
		cmocka_unit_test(policies_survive_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
