/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* guard.c - refuses calls that would hang, see guard.h. */
#include "lib/guard.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/context.h"
#include "lib/poller/plug.h"

uint32_t rbx_forks_count;

/* The callback that this thread runs; NULL: none, or a completion callback. */
static _Thread_local const char *callback;

static void child_begins(void)
{
	rbx_forks_count++;
	rbx_plug_forget();
}

static int watch_err;

static void watch(void)
{
	watch_err = -pthread_atfork(NULL, NULL, child_begins);
}

int rbx_forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	if (watch_err)
		return rbx_error(watch_err, "cannot watch for forks: %s",
				 strerror(-watch_err));
	return 0;
}

int rbx_guard_use(const struct rbx_context *ctx, const char *call)
{
	if (ctx->forks_count == rbx_forks_count)
		return 0;
	return rbx_error(-EINVAL, "%s: the context was opened before fork(), and only the parent can use it; open another one in the child",
			 call);
}

int rbx_guard_thread(const char *call)
{
	const char *where = rbx_poller_current() ? "completion callback" :
						   callback;

	if (!where)
		return 0;
	return rbx_error(-EDEADLK, "%s: a %s must not wait, as other requests wait for its thread; submit instead, or leave it to another thread",
			 call, where);
}

int rbx_guard_wait(const struct rbx_context *ctx, const char *call)
{
	int err = rbx_guard_use(ctx, call);

	return err ? err : rbx_guard_thread(call);
}

const char *rbx_callback_enter(const char *where)
{
	const char *before = callback;

	callback = where;
	return before;
}

void rbx_callback_leave(const char *before)
{
	callback = before;
}
