/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion_delay.c - goes by the gradient of the delay, as TIMELY does.
 *
 * Round trips that become longer say that a queue is building up, before it is
 * long; TIMELY (the paper's reference 33) sets a rate by that gradient, in
 * floating point, which the paper gives as the reason why a kernel cannot. Here
 * the gradient is in 1024ths and moves the window:
 *
 *	rtt below NEAR base round trips   no queue to speak of: grow
 *	rtt above FAR base round trips    shrink to where it would be FAR
 *	else, by the smoothed gradient    falling or level: grow; after FAST
 *	                                  times in a row faster
 *	                                  rising: shrink in proportion
 *
 * It decides once each round trip. Thresholds are multiples of the base round
 * trip (base_rtt.h), so that one law fits a NIC of two microseconds and a
 * software device of two hundred.
 */
#include "core/base_rtt.h"
#include "core/congestion.h"

#define NEAR 2u
#define FAR 4u
#define FAST 5u
#define UNITY 1024 /* of the gradient */
#define SMOOTHING_SHIFT 2 /* a new difference weighs 1/4 */

struct delay {
	struct rbx_base_rtt base;
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t window_bytes;
	uint64_t decided_ns;
	uint64_t last_rtt_ns;
	int64_t difference_ns; /* smoothed, from one round trip to the next */
	uint32_t good_count; /* decisions in a row to grow by gradient */
};
RBX_STATIC_ASSERT(sizeof(struct delay) <= RBX_CONGESTION_STATE_BYTES,
		  "the state fits");

static void delay_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	struct delay *delay = state;

	rbx_base_rtt_init(&delay->base);
	delay->low_bytes = low_bytes;
	delay->high_bytes = high_bytes;
	delay->window_bytes = low_bytes;
}

static void grow(struct delay *delay, uint64_t steps)
{
	delay->window_bytes = RBX_MIN(delay->window_bytes +
					      steps * (delay->low_bytes / 4),
				      delay->high_bytes);
}

/* To keep / UNITY of what it is; at most by half at a time. */
static void shrink(struct delay *delay, int64_t keep)
{
	uint64_t part = (uint64_t)RBX_MAX(keep, UNITY / 2);

	delay->window_bytes = RBX_MAX(delay->window_bytes * part / UNITY,
				      delay->low_bytes);
}

/* How much of a base round trip the round trips grow by, in UNITY. */
static int64_t gradient(const struct delay *delay)
{
	return delay->difference_ns * UNITY / (int64_t)delay->base.shortest_ns;
}

static void decide(struct delay *delay, uint64_t rtt_ns)
{
	uint64_t base_ns = delay->base.shortest_ns;

	if (rtt_ns < NEAR * base_ns) {
		grow(delay, 1);
	} else if (rtt_ns > FAR * base_ns) {
		shrink(delay, (int64_t)(FAR * base_ns * UNITY / rtt_ns));
	} else if (gradient(delay) <= 0) {
		delay->good_count++;
		grow(delay, delay->good_count >= FAST ? FAST : 1);
		return;
	} else {
		shrink(delay, UNITY - gradient(delay) / 2);
	}
	delay->good_count = 0;
}

static void delay_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			      uint64_t bytes)
{
	struct delay *delay = state;
	int64_t difference_ns;

	(void)bytes;
	if (rbx_base_rtt_sample(&delay->base, now_ns, rtt_ns) ||
	    now_ns - rtt_ns < delay->decided_ns) {
		delay->last_rtt_ns = rtt_ns;
		return;
	}
	delay->decided_ns = now_ns;
	difference_ns = (int64_t)rtt_ns - (int64_t)delay->last_rtt_ns;
	delay->difference_ns += (difference_ns - delay->difference_ns) /
				(1 << SMOOTHING_SHIFT);
	delay->last_rtt_ns = rtt_ns;
	decide(delay, rtt_ns);
}

static void delay_on_error(void *state)
{
	shrink(state, 0);
}

static uint64_t delay_window(const void *state)
{
	const struct delay *delay = state;

	return delay->base.samples_left ? delay->low_bytes :
					  delay->window_bytes;
}

const struct rbx_congestion_ops rbx_congestion_delay = {
	.name = "delay",
	.init = delay_init,
	.on_complete = delay_on_complete,
	.on_error = delay_on_error,
	.window = delay_window,
};
