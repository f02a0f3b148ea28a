/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion_delay.c - follows the gradient of the delay, as TIMELY does.
 *
 * Round trips that become longer show that a queue is building up, before it is long. TIMELY
 * (the paper's reference 33) sets a rate by that gradient in floating point, which the paper
 * gives as the reason why a kernel cannot do it. Here the gradient is in 1024ths and moves
 * the window:
 *
 *	rtt below NEAR base round trips   no queue to speak of: grow
 *	rtt above FAR base round trips    shrink to where it would be FAR
 *	else, by the smoothed gradient    falling or level: grow; after FAST
 *	                                  times in a row faster
 *	                                  rising: shrink in proportion
 *
 * It decides once each round trip. Thresholds are multiples of the base round trip
 * (base_rtt.h), so one rule fits a NIC of two microseconds and a software device of two
 * hundred.
 */
#include "core/congestion.h"
#include "core/delay_window.h"

#define NEAR 2u
#define FAR 4u
#define FAST 5u
#define UNITY 1024 /* of the gradient */
#define SMOOTHING_SHIFT 2 /* a new difference weighs 1/4 */

struct delay {
	struct rbx_delay_window window;
	uint64_t last_rtt_ns;
	int64_t difference_ns; /* smoothed, from one round trip to the next */
	uint32_t good_count; /* decisions in a row to grow by gradient */
};
RBX_STATIC_ASSERT(sizeof(struct delay) <= RBX_CONGESTION_STATE_BYTES,
		  "the state fits");

static void delay_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	struct delay *delay = state;

	rbx_delay_window_init(&delay->window, low_bytes, high_bytes);
}

static void grow(struct rbx_delay_window *window, uint64_t steps)
{
	rbx_delay_window_set(window,
			     window->bytes +
				     steps * rbx_delay_window_step(window));
}

/* Shrinks it to keep / UNITY of its size; at most by half at a time. */
static void shrink(struct rbx_delay_window *window, int64_t keep)
{
	uint64_t part = (uint64_t)RBX_MAX(keep, UNITY / 2);

	rbx_delay_window_set(window, window->bytes * part / UNITY);
}

/* How fast the round trips grow, per base round trip, in UNITY. */
static int64_t gradient(const struct delay *delay)
{
	return delay->difference_ns * UNITY /
	       (int64_t)delay->window.base.shortest_ns;
}

static void decide(struct delay *delay, uint64_t rtt_ns)
{
	struct rbx_delay_window *window = &delay->window;
	uint64_t base_ns = window->base.shortest_ns;

	if (rtt_ns < NEAR * base_ns) {
		grow(window, 1);
	} else if (rtt_ns > FAR * base_ns) {
		shrink(window, (int64_t)(FAR * base_ns * UNITY / rtt_ns));
	} else if (gradient(delay) <= 0) {
		delay->good_count++;
		grow(window, delay->good_count >= FAST ? FAST : 1);
		return;
	} else {
		shrink(window, UNITY - gradient(delay) / 2);
	}
	delay->good_count = 0;
}

static void delay_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			      uint64_t bytes)
{
	struct delay *delay = state;
	int64_t difference_ns = (int64_t)rtt_ns - (int64_t)delay->last_rtt_ns;

	(void)bytes;
	delay->last_rtt_ns = rtt_ns;
	if (!rbx_delay_window_sample(&delay->window, now_ns, rtt_ns))
		return;
	delay->difference_ns += (difference_ns - delay->difference_ns) /
				(1 << SMOOTHING_SHIFT);
	decide(delay, rtt_ns);
}

static void delay_on_error(void *state)
{
	struct delay *delay = state;

	shrink(&delay->window, 0);
}

static uint64_t delay_window(const void *state)
{
	const struct delay *delay = state;

	return rbx_delay_window_bytes(&delay->window);
}

const struct rbx_congestion_ops rbx_congestion_delay = {
	.name = "delay",
	.init = delay_init,
	.on_complete = delay_on_complete,
	.on_error = delay_on_error,
	.window = delay_window,
};
