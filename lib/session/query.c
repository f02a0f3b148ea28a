/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * query.c - reads the numbers of a server. The server may be one with a session, one
 * anywhere (by a session for one question), or one that is watched (by a session that
 * stays).
 */
#include <errno.h>
#include <stdlib.h>

#include "client/session_state.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/context.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/session/sessions.h"
#include "lib/sized.h"

/* The answer is valid until the next call, so the session stays taken until it was read.
 * Monitor entered. */
static int stats_read(struct rbx_session *session, struct rbx_server_stats *all)
{
	const uint64_t *values = session->borrower.call.message.counters.values;
	int err = rbx_borrower_call(&session->borrower, RBX_CALL_STATS, NULL,
				    session->sessions->silence_ms,
				    rbx_now_ns());
	uint32_t next = 0;

	if (!err) {
		rbx_session_pump(session);
		rbx_clock_soon(session->clock); /* so that its deadline counts */
		rbx_session_wait_call(session);
		err = rbx_borrower_call_end(&session->borrower, NULL);
	}
	if (err)
		return rbx_session_call_error(session, err);
		/* What an older server does not know is zero. */
#define RBX_COUNTER(name, what) all->name = values[next++];
	RBX_SERVER_STATS(RBX_COUNTER)
#undef RBX_COUNTER
	return 0;
}

int rbx_session_stats(struct rbx_session *session,
		      struct rbx_server_stats *stats)
{
	int err;

	*stats = (struct rbx_server_stats){ .size_bytes = sizeof(*stats) };
	rbx_monitor_enter(&session->monitor);
	rbx_session_take_entered(session);
	err = stats_read(session, stats);
	rbx_session_release_entered(session);
	rbx_monitor_leave(&session->monitor);
	return err;
}

/* For a program, whose struct may be of another version. */
static int stats_give(struct rbx_session *session, struct rbx_server_stats *stats,
		      size_t size_bytes)
{
	struct rbx_server_stats all;
	int err = rbx_session_stats(session, &all);

	if (!err)
		rbx_sized_give(stats, size_bytes, &all, sizeof(all));
	return err;
}

/* If such a short session is lost, its one call fails and shows it. */
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

int rbx_server_query_sized(struct rbx_context *ctx, const char *address,
			   struct rbx_server_stats *stats, size_t size_bytes)
{
	const struct rbx_session_events events = { .lost = lost, .evict = evict };
	struct rbx_session *session;
	int err;

	if (!ctx || !address || !stats)
		return rbx_error(-EINVAL,
				 "context, address and stats must be given");
	err = rbx_guard_wait(ctx, "rbx_server_query");
	if (err)
		return err;
	err = rbx_session_open_name(rbx_context_sessions(ctx), address, &events,
				    &session);
	if (err)
		return err;
	err = stats_give(session, stats, size_bytes);
	rbx_session_close(session);
	return err;
}

struct rbx_server_watch {
	struct rbx_context *ctx;
	struct rbx_session *session;
};

int rbx_server_watch_open(struct rbx_context *ctx,
			  struct rbx_server_watch **watch_out,
			  const char *address)
{
	const struct rbx_session_events events = { .lost = lost, .evict = evict };
	struct rbx_server_watch *watch;
	int err;

	if (!ctx || !watch_out || !address)
		return rbx_error(-EINVAL,
				 "context, watch and address must be given");
	err = rbx_guard_wait(ctx, "rbx_server_watch_open");
	if (err)
		return err;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return rbx_error(-ENOMEM, "no memory for a watch");
	watch->ctx = ctx;
	err = rbx_session_open_name(rbx_context_sessions(ctx), address, &events,
				    &watch->session);
	if (err) {
		free(watch);
		return err;
	}
	RBX_FETCH_ADD(&ctx->watches_count, 1);
	*watch_out = watch;
	return 0;
}

int rbx_server_watch_stats_sized(struct rbx_server_watch *watch,
				 struct rbx_server_stats *stats, size_t size_bytes)
{
	int err;

	if (!watch || !stats)
		return rbx_error(-EINVAL, "watch and stats must be given");
	err = rbx_guard_wait(watch->ctx, "rbx_server_watch_stats");
	return err ? err : stats_give(watch->session, stats, size_bytes);
}

uint64_t rbx_server_watch_incarnation(const struct rbx_server_watch *watch)
{
	return rbx_session_incarnation(watch->session);
}

const char *rbx_server_watch_labels(const struct rbx_server_watch *watch)
{
	return rbx_session_labels(watch->session);
}

int rbx_server_watch_close(struct rbx_server_watch *watch)
{
	int err;

	if (!watch)
		return 0;
	err = rbx_guard_wait(watch->ctx, "rbx_server_watch_close");
	if (err)
		return err;
	rbx_session_close(watch->session);
	RBX_FETCH_ADD(&watch->ctx->watches_count, (uint32_t)-1);
	free(watch);
	return 0;
}
