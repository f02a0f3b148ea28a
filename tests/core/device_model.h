/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_model.h - a device with a knee, in virtual time, under a window.
 *
 * The load keeps `demand` work requests waiting. A work request that got credit
 * is served in turn, service_ns after the one before it, and completes
 * latency_ns later. So throughput grows with what is in flight up to the knee,
 * and stays. With overload_ns each work request in flight above
 * overload_work_requests makes a service that much longer: then throughput
 * falls behind the knee. With batch_ns there is no knee: what is in flight shares
 * that time, as requests do that leave in one chain, so more always helps a bit.
 * With sway_percent the device is slower in some times than in others, the same
 * ones for every window, as on a machine that others use.
 */
#ifndef TESTS_CORE_DEVICE_MODEL_H
#define TESTS_CORE_DEVICE_MODEL_H

#include "core/random.h"
#include "core/window.h"

#define MODEL_DEPTH 4096u

struct device_model {
	struct rbx_window *window;
	uint32_t work_request_bytes;
	uint32_t demand;
	uint64_t service_ns;
	uint64_t latency_ns;
	uint32_t overload_work_requests;
	uint64_t overload_ns;
	uint64_t batch_ns;
	uint32_t jitter_percent; /* of the service time, at random */
	uint32_t sway_percent;
	uint64_t sway_ns; /* how long it stays as slow */
	struct rbx_random random;

	uint64_t now_ns;
	uint64_t served_ns; /* when the last service ends */
	uint32_t posted, completed; /* free running */
	uint64_t posted_ns[MODEL_DEPTH];
	uint64_t done_ns[MODEL_DEPTH];
	uint64_t completed_bytes;
};

/* Runs for so long; returns bytes completed per millisecond. */
uint64_t device_model_run(struct device_model *model, uint64_t duration_ns);

/* The same with a fixed window of each half octave: the best of all. */
uint64_t device_model_best(const struct device_model *model,
			   uint64_t *window_bytes);

/* Ends what is in flight. */
void device_model_drain(struct device_model *model);

#endif
