/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* waiting.c - waits by polling, see waiting.h. */
#include "lib/poller/waiting.h"

#include <poll.h>

#include "lib/context.h"
#include "lib/poller/poller.h"

#define LOOKS_NS 100000u
#define SLEEP_MS 1

/* Sleeps until something completes after a poll that found nothing, or while nothing can
 * be reaped; for SLEEP_MS at most. */
static void sleep_a_moment(const struct rbx_context *ctx)
{
	struct pollfd events[] = {
		{ .fd = ctx->pollers[0]->event_fd, .events = POLLIN },
		{ .fd = ctx->done_fd, .events = POLLIN },
	};

	(void)poll(events, sizeof(events) / sizeof(events[0]), SLEEP_MS);
}

void rbx_waiting_poll(struct rbx_waiting *waiting, struct rbx_context *ctx)
{
	uint64_t now_ns;
	int count = rbx_poll(ctx);

	now_ns = rbx_now_ns();
	if (count > 0 || !waiting->looks_until_ns)
		waiting->looks_until_ns = now_ns + LOOKS_NS;
	else if (now_ns >= waiting->looks_until_ns)
		sleep_a_moment(ctx);
}
