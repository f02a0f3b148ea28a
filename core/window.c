/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window.c - credit in one atomic word.
 *
 * Bytes and work requests in flight share a 64-bit word, bytes in the low 40
 * bits (1 TiB) and work requests above them (16 million), so that both are
 * taken by one addition. An addition that went over the limit is taken back by
 * a subtraction; in between another thread may be refused although it would
 * have fitted. That is harmless: who is refused announces that it waits and
 * then looks once more (rbx_window_has_room), and the subtraction, or the
 * completion of what is in flight, comes before or after that look in the one
 * order of these operations.
 *
 * The balance is an invariant: what is given was taken, and at rest the word
 * is zero.
 */
#include "core/window.h"

#define WORK_REQUEST_SHIFT 40
#define ONE_WORK_REQUEST ((uint64_t)1 << WORK_REQUEST_SHIFT)
#define BYTES_MASK (ONE_WORK_REQUEST - 1)

void rbx_window_init(struct rbx_window *window,
		     const struct rbx_congestion_ops *ops, uint64_t bytes_max,
		     uint32_t work_requests_max)
{
	rbx_port_fill(window, 0, sizeof(*window));
	window->ops = ops;
	window->work_requests_max = work_requests_max;
	ops->init(window->state, bytes_max);
	window->bytes_max = ops->window(window->state);
}

/* Whether `in_flight`, which includes the newcomer, is within the window. */
static bool within(const struct rbx_window *window, uint64_t in_flight)
{
	uint64_t bytes_max = RBX_LOAD_RELAXED(&window->bytes_max);
	uint64_t work_requests = in_flight >> WORK_REQUEST_SHIFT;

	if (work_requests == 1)
		return true;
	if (bytes_max != 0 && (in_flight & BYTES_MASK) > bytes_max)
		return false;
	return window->work_requests_max == 0 ||
	       work_requests <= window->work_requests_max;
}

bool rbx_window_take(struct rbx_window *window, uint32_t bytes)
{
	uint64_t credit = ONE_WORK_REQUEST + bytes;
	uint64_t now = RBX_FETCH_ADD(&window->in_flight, credit) + credit;

	if (!within(window, now)) {
		RBX_FETCH_ADD(&window->in_flight, -credit);
		return false;
	}
	/* A statistic: a lost race loses a peak by a hair, nothing else. */
	if ((now & BYTES_MASK) > RBX_LOAD_RELAXED(&window->in_flight_bytes_peak))
		RBX_STORE_RELAXED(&window->in_flight_bytes_peak,
				  now & BYTES_MASK);
	return true;
}

void rbx_window_give(struct rbx_window *window, uint32_t work_requests,
		     uint64_t bytes)
{
	uint64_t credit = work_requests * ONE_WORK_REQUEST + bytes;
	uint64_t before = RBX_FETCH_ADD(&window->in_flight, -credit);

	RBX_ASSERT((before & BYTES_MASK) >= bytes);
	RBX_ASSERT(before >> WORK_REQUEST_SHIFT >= work_requests);
	(void)before;
}

bool rbx_window_has_room(const struct rbx_window *window, uint32_t bytes)
{
	return within(window, RBX_LOAD_ORDERED(&window->in_flight) +
				      ONE_WORK_REQUEST + bytes);
}

void rbx_window_on_complete(struct rbx_window *window, uint64_t rtt_ns,
			    uint32_t bytes)
{
	window->ops->on_complete(window->state, rtt_ns, bytes);
	RBX_STORE_RELAXED(&window->bytes_max,
			  window->ops->window(window->state));
}

void rbx_window_on_error(struct rbx_window *window)
{
	window->ops->on_error(window->state);
	RBX_STORE_RELAXED(&window->bytes_max,
			  window->ops->window(window->state));
}

uint64_t rbx_window_in_flight_bytes(const struct rbx_window *window)
{
	return RBX_LOAD_RELAXED(&window->in_flight) & BYTES_MASK;
}

uint32_t rbx_window_in_flight_work_requests(const struct rbx_window *window)
{
	return (uint32_t)(RBX_LOAD_RELAXED(&window->in_flight) >>
			  WORK_REQUEST_SHIFT);
}
