/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * query.c - the numbers of a server anywhere: a session for one
 * question.
 */
#include <errno.h>

#include "lib/error.h"
#include "lib/guard.h"
#include "lib/session/session.h"

/* Whatever happens to so short a session shows in its one call. */
static void lost(void *user, const char *reason)
{
	(void)reason;
	(void)user;
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	(void)eviction;
	(void)user;
}

int rbx_server_query(struct rbx_context *ctx, const char *address,
		     struct rbx_server_stats *stats)
{
	const struct rbx_session_events events = { lost, evict, NULL };
	struct rbx_session *session;
	int err;

	if (!ctx || !address || !stats || !stats->size_bytes)
		return rbx_error(-EINVAL,
				 "context, address and stats with its size must "
				 "be given");
	err = rbx_guard_wait(ctx, "rbx_server_query");
	if (err)
		return err;
	err = rbx_session_open(rbx_context_sessions(ctx), address, &events,
			       &session);
	if (err)
		return err;
	err = rbx_session_stats(session, stats);
	rbx_session_close(session);
	return err;
}
