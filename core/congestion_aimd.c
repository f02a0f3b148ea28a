/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion_aimd.c - additive increase, multiplicative decrease.
 *
 * The law of TCP, with the sign of congestion that a reliable connection has: it
 * loses nothing, but it gets slow. Once each round trip the window grows by a
 * step; it is halved when a round trip took LATE times as long as one without a
 * queue (base_rtt.h), or when a work request failed. After a decrease nothing
 * is decided until what was posted under the old window has come back.
 */
#include "core/base_rtt.h"
#include "core/congestion.h"

/* A round trip of so many base ones is a sign of congestion. The window then
 * goes to and fro between half of this many times what fills the device, and
 * this many times. */
#define LATE 4u

struct aimd {
	struct rbx_base_rtt base;
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t window_bytes;
	uint64_t decided_ns; /* what was posted before says nothing new */
};
RBX_STATIC_ASSERT(sizeof(struct aimd) <= RBX_CONGESTION_STATE_BYTES,
		  "the state fits");

static void aimd_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	struct aimd *aimd = state;

	rbx_base_rtt_init(&aimd->base);
	aimd->low_bytes = low_bytes;
	aimd->high_bytes = high_bytes;
	aimd->window_bytes = low_bytes;
}

static void decrease(struct aimd *aimd)
{
	aimd->window_bytes = RBX_MAX(aimd->window_bytes / 2, aimd->low_bytes);
}

static void aimd_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			     uint64_t bytes)
{
	struct aimd *aimd = state;

	(void)bytes;
	if (rbx_base_rtt_sample(&aimd->base, now_ns, rtt_ns) ||
	    now_ns - rtt_ns < aimd->decided_ns)
		return;
	aimd->decided_ns = now_ns;
	if (rtt_ns > LATE * aimd->base.shortest_ns)
		decrease(aimd);
	else
		aimd->window_bytes = RBX_MIN(aimd->window_bytes +
						     aimd->low_bytes / 4,
					     aimd->high_bytes);
}

static void aimd_on_error(void *state)
{
	decrease(state);
}

static uint64_t aimd_window(const void *state)
{
	const struct aimd *aimd = state;

	return aimd->base.samples_left ? aimd->low_bytes : aimd->window_bytes;
}

const struct rbx_congestion_ops rbx_congestion_aimd = {
	.name = "aimd",
	.init = aimd_init,
	.on_complete = aimd_on_complete,
	.on_error = aimd_on_error,
	.window = aimd_window,
};
