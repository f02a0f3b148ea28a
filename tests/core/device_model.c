/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* device_model.c - see device_model.h. */
#include "tests/core/device_model.h"

/* The same for each window at the same time. */
static uint64_t with_sway(const struct device_model *model, uint64_t time_ns)
{
	struct rbx_random random;

	rbx_random_seed(&random, model->served_ns / model->sway_ns);
	return time_ns +
	       time_ns * rbx_random_below(&random, 2 * model->sway_percent) /
		       100;
}

static uint64_t service_ns(struct device_model *model)
{
	uint32_t in_flight = model->posted - model->completed;
	uint64_t time_ns = model->service_ns;

	time_ns += model->batch_ns / (in_flight + 1);
	if (in_flight > model->overload_work_requests)
		time_ns += (in_flight - model->overload_work_requests) *
			   model->overload_ns;
	if (model->jitter_percent)
		time_ns += time_ns *
			   rbx_random_below(&model->random,
					    2 * model->jitter_percent) /
			   100;
	return model->sway_percent ? with_sway(model, time_ns) : time_ns;
}

static void post_all(struct device_model *model)
{
	while (model->posted - model->completed < model->demand &&
	       rbx_window_take(model->window, model->work_request_bytes)) {
		uint32_t place = model->posted % MODEL_DEPTH;

		rbx_window_on_post(model->window, model->now_ns,
				   model->work_request_bytes);
		if (model->served_ns < model->now_ns)
			model->served_ns = model->now_ns;
		model->served_ns += service_ns(model);
		model->posted_ns[place] = model->now_ns;
		model->done_ns[place] = model->served_ns + model->latency_ns;
		model->posted++;
	}
}

static void complete_one(struct device_model *model)
{
	uint32_t place = model->completed % MODEL_DEPTH;

	model->now_ns = model->done_ns[place];
	model->completed++;
	model->completed_bytes += model->work_request_bytes;
	rbx_window_on_complete(model->window, model->now_ns,
			       model->now_ns - model->posted_ns[place],
			       model->work_request_bytes);
	rbx_window_give(model->window, 1, model->work_request_bytes);
}

uint64_t device_model_run(struct device_model *model, uint64_t duration_ns)
{
	uint64_t begin_ns = model->now_ns;
	uint64_t begin_bytes = model->completed_bytes;

	while (model->now_ns - begin_ns < duration_ns) {
		post_all(model);
		complete_one(model);
	}
	return (model->completed_bytes - begin_bytes) /
	       ((model->now_ns - begin_ns) / 1000000);
}

uint64_t device_model_best(const struct device_model *model,
			   uint64_t *window_bytes)
{
	uint64_t best = 0;

	for (uint32_t half = 0; half < 28; half++) {
		static struct device_model copy;
		struct rbx_window window;
		uint64_t bytes = (uint64_t)4096 << (half / 2), rate;

		bytes += half % 2 ? bytes * 106 / 256 : 0;
		rbx_window_init(&window, bytes, 0);
		copy = *model;
		copy.window = &window;
		copy.posted = 0;
		copy.completed = 0;
		rate = device_model_run(&copy, 50000000);
		if (rate > best + best / 500) {
			best = rate;
			*window_bytes = bytes;
		}
	}
	return best;
}

void device_model_drain(struct device_model *model)
{
	while (model->posted != model->completed)
		complete_one(model);
}
