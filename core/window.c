/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window.c - credit in one atomic word, and the calls to the policy.
 *
 * Bytes and work requests in flight share a 64-bit word, bytes in the low 40 bits (1 TiB) and
 * work requests above them (16 million), so one addition takes both. An addition that exceeds
 * the limit is taken back by a subtraction. In between another thread may be refused although
 * its request would have fitted. That is harmless: the refused thread announces that it waits
 * and then looks once more (rbx_window_has_room). The subtraction, or the completion of what
 * is in flight, comes before or after that look in the one order of these operations.
 *
 * The balance is an invariant: what is given back was taken, and at rest the word is zero.
 *
 * Telling the policy. Several pollers complete and several combiners post at once, and a
 * policy has no lock. A thread that wants to tell it something exchanges `told` for 1. If it
 * gets 0 back it is alone with the policy until it stores 0 again. The exchange acquires what
 * that store released, so the thread finds the state as the last one left it. If it gets 1
 * back it does not wait: it adds its values to the untold ones, and the next thread with the
 * policy tells them, too. What is lost that way is a round trip among many, never a byte.
 *
 * Threads that wait for a wider window see it, because a completing thread tells the policy
 * first, then gives credit back (which releases the new width to the look of
 * rbx_window_has_room()), and then has those that wait look again.
 */
#include "core/window.h"

void rbx_window_init(struct rbx_window *window, uint64_t bytes_max,
		     uint32_t work_requests_max)
{
	rbx_port_fill(window, 0, sizeof(*window));
	window->bytes_max = bytes_max ? bytes_max : UINT64_MAX;
	window->work_requests_max =
		work_requests_max ? work_requests_max : UINT32_MAX;
}

/* Asks the policy for its window. Only while alone with the policy, or before the first use. */
static void ask_policy(struct rbx_window *window)
{
	uint64_t asked = window->ops->window(window->state);
	uint64_t bytes_max = RBX_MIN(RBX_MAX(asked, window->low_bytes),
				     window->high_bytes);

	if (bytes_max != asked)
		RBX_STORE_RELAXED(&window->clamps, window->clamps + 1);
	RBX_STORE_RELAXED(&window->bytes_max, bytes_max);
}

void rbx_window_set_policy(struct rbx_window *window,
			   const struct rbx_congestion_ops *ops,
			   uint64_t low_bytes, uint64_t high_bytes)
{
	RBX_ASSERT(low_bytes != 0 && low_bytes <= high_bytes);
	window->ops = ops;
	window->low_bytes = low_bytes;
	window->high_bytes = high_bytes;
	ops->init(window->state, low_bytes, high_bytes);
	ask_policy(window);
}

bool rbx_window_has_room(const struct rbx_window *window, uint32_t bytes)
{
	return rbx_window_within(window,
				 RBX_LOAD_ORDERED(&window->in_flight) +
					 RBX_WINDOW_WORK_REQUEST + bytes);
}

/* False: another thread is with the policy. */
static bool claim_policy(struct rbx_window *window)
{
	return RBX_EXCHANGE(&window->told, 1) == 0;
}

static void leave_policy(struct rbx_window *window)
{
	if (RBX_LOAD_RELAXED(&window->untold_errors) != 0 &&
	    RBX_EXCHANGE(&window->untold_errors, 0) != 0)
		window->ops->on_error(window->state);
	ask_policy(window);
	RBX_STORE_RELEASE(&window->told, 0);
}

/* A thread that comes later may have read the clock earlier: time never goes back for a policy. */
static uint64_t told_time(struct rbx_window *window, uint64_t now_ns)
{
	window->told_ns = RBX_MAX(window->told_ns, now_ns);
	return window->told_ns;
}

/* The value to tell, plus what other threads could not tell. */
static uint64_t with_untold(uint64_t *untold, uint64_t bytes)
{
	if (RBX_LOAD_RELAXED(untold) != 0)
		bytes += RBX_EXCHANGE(untold, 0);
	return bytes;
}

void rbx_window_tell_post(struct rbx_window *window, uint64_t now_ns,
			  uint64_t bytes)
{
	if (!window->ops->on_post)
		return;
	if (!claim_policy(window)) {
		RBX_ADD_RELAXED(&window->untold_posted_bytes, bytes);
		return;
	}
	bytes = with_untold(&window->untold_posted_bytes, bytes);
	window->ops->on_post(window->state, told_time(window, now_ns), bytes);
	leave_policy(window);
}

void rbx_window_tell_complete(struct rbx_window *window, uint64_t now_ns,
			      uint64_t rtt_ns, uint64_t bytes)
{
	if (!window->ops->on_complete)
		return;
	if (!claim_policy(window)) {
		RBX_ADD_RELAXED(&window->untold_completed_bytes, bytes);
		return;
	}
	bytes = with_untold(&window->untold_completed_bytes, bytes);
	window->ops->on_complete(window->state, told_time(window, now_ns),
				 rtt_ns, bytes);
	leave_policy(window);
}

void rbx_window_on_error(struct rbx_window *window)
{
	if (!window->ops || !window->ops->on_error)
		return;
	RBX_EXCHANGE(&window->untold_errors, 1);
	if (claim_policy(window))
		leave_policy(window);
}

uint64_t rbx_window_bytes(const struct rbx_window *window)
{
	uint64_t bytes_max = RBX_LOAD_RELAXED(&window->bytes_max);

	return bytes_max == UINT64_MAX ? 0 : bytes_max;
}

uint32_t rbx_window_in_flight_work_requests(const struct rbx_window *window)
{
	return (uint32_t)(RBX_LOAD_RELAXED(&window->in_flight) >>
			  RBX_WINDOW_WORK_REQUEST_SHIFT);
}
