/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll.c - a program that polls for itself (pollers = 0), and the descriptor that
 * tells any program when it is worth its while.
 *
 * With pollers of the context's own the descriptor is that of the list of ended
 * requests (done_list.c). Without, it is the completion queue's: readable means
 * that rbx_poll() has something to find.
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
	 * A program that polls again and again would take the lock from under another
	 * thread for ever. Nothing was looked at, so the descriptor has to be readable:
	 * what that thread wrote may have been taken by the poll before this one, which
	 * found something and did not arm.
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
		/* What comes from now on makes the descriptor readable. */
		rbx_poller_arm(poller);
		count = rbx_poller_poll(poller);
	}
	pthread_mutex_unlock(&poller->lock);
	return count;
}
