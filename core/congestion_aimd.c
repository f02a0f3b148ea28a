/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion_aimd.c - additive increase, multiplicative decrease.
 *
 * The rule of TCP, with another sign of congestion: a reliable connection loses nothing, but
 * it gets slow. Once each round trip the window grows by a step. It is halved if a round trip
 * took LATE times as long as one without a queue (base_rtt.h), or if a work request failed.
 */
#include "core/congestion.h"
#include "core/delay_window.h"

/* A round trip of so many base round trips is a sign of congestion. The window then moves
 * between half of LATE times what fills the device, and LATE times that. */
#define LATE 4u

RBX_STATIC_ASSERT(sizeof(struct rbx_delay_window) <= RBX_CONGESTION_STATE_BYTES,
		  "the state fits");

static void aimd_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	rbx_delay_window_init(state, low_bytes, high_bytes);
}

static void decrease(struct rbx_delay_window *window)
{
	rbx_delay_window_set(window, window->bytes / 2);
}

static void aimd_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			     uint64_t bytes)
{
	struct rbx_delay_window *window = state;

	(void)bytes;
	if (!rbx_delay_window_sample(window, now_ns, rtt_ns))
		return;
	if (rtt_ns > LATE * window->base.shortest_ns)
		decrease(window);
	else
		rbx_delay_window_set(window,
				     window->bytes +
					     rbx_delay_window_step(window));
}

static void aimd_on_error(void *state)
{
	decrease(state);
}

static uint64_t aimd_window(const void *state)
{
	return rbx_delay_window_bytes(state);
}

const struct rbx_congestion_ops rbx_congestion_aimd = {
	.name = "aimd",
	.init = aimd_init,
	.on_complete = aimd_on_complete,
	.on_error = aimd_on_error,
	.window = aimd_window,
};
