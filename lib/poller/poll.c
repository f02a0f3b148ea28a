/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll.c - rbx_poll(), for programs that poll (pollers = 0), and the descriptor that
 * tells a program when to call.
 *
 * If the context has pollers, the descriptor is that of the list of ended requests
 * (done_list.c). If it has none, it is that of the completion queue: readable means that
 * rbx_poll() has something to find.
 */
#include <errno.h>
#include <sched.h>

#include "lib/context.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/poller/plug.h"
#include "lib/poller/poller.h"

int rbx_event_fd(struct rbx_context *ctx)
{
	return ctx->options.pollers == 0 ? ctx->pollers[0]->event_fd :
					   ctx->done_fd;
}

int rbx_poll(struct rbx_context *ctx)
{
	struct rbx_poller *poller = ctx->pollers[0];
	int count = rbx_guard_use(ctx, "rbx_poll");

	if (count < 0)
		return count;
	if (ctx->options.pollers != 0)
		return rbx_error(-EBUSY,
				 "rbx_poll: the context has %u pollers of its "
				 "own; open it with pollers=0",
				 ctx->options.pollers);
	rbx_plug_flush();
	/*
	 * A program that polls again and again would never let another thread get the
	 * lock. This call has looked at nothing, so the descriptor has to become
	 * readable: the poll before this one may have consumed the wake of that thread,
	 * and did not arm as it found something.
	 */
	if (RBX_LOAD_ORDERED(&poller->lock_waiters) != 0) {
		rbx_poller_wake(poller);
		sched_yield();
		return 0;
	}
	if (pthread_mutex_trylock(&poller->lock))
		return rbx_error(-EBUSY, "rbx_poll: another thread is polling");
	if (poller->armed)
		rbx_poller_disarm(poller);
	count = rbx_poller_poll(poller);
	if (count == 0) {
		/* From now on a completion makes the descriptor readable. */
		rbx_poller_arm(poller);
		count = rbx_poller_poll(poller);
	}
	pthread_mutex_unlock(&poller->lock);
	return count;
}
