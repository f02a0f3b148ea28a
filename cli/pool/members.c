/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * members.c - asks the members of a pool for their numbers.
 *
 * A server that does not answer costs the peer timeout. So a few threads take one member
 * after another.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cli/pool/pool_status.h"

#define THREADS_MAX 16

struct asking {
	struct rbx_context *ctx;
	struct pool_row *rows;
	size_t count;
	atomic_size_t next;
};

const char *pool_state_name(enum pool_state state)
{
	static const char *const names[] = {
		[POOL_UP] = "up",
		[POOL_AWAY] = "away",
		[POOL_DRAINING] = "draining",
		[POOL_SAME] = "same",
	};

	return names[state];
}

static void row_ask(struct rbx_context *ctx, struct pool_row *row)
{
	struct rbx_server_watch *watch;
	int err = rbx_server_watch_open(ctx, &watch, row->member.address);

	if (!err) {
		err = rbx_server_watch_stats(watch, &row->stats);
		if (err)
			snprintf(row->error, sizeof(row->error), "%s", rbx_last_error());
		row->incarnation = rbx_server_watch_incarnation(watch);
		pool_labels_join(row, rbx_server_watch_labels(watch));
		rbx_server_watch_close(watch);
	} else {
		snprintf(row->error, sizeof(row->error), "%s", rbx_last_error());
		row->incarnation = row->member.incarnation;
		pool_labels_join(row, "");
	}
	if (err)
		row->state = POOL_AWAY;
	else
		row->state = row->stats.draining ? POOL_DRAINING : POOL_UP;
}

static void *asking_run(void *asking_pointer)
{
	struct asking *asking = asking_pointer;
	size_t i;

	while ((i = atomic_fetch_add(&asking->next, 1)) < asking->count)
		row_ask(asking->ctx, &asking->rows[i]);
	return NULL;
}

/* Of several members that are one server, the first one counts. */
static void same_find(struct pool_row *rows, size_t count)
{
	size_t i, other;

	for (i = 0; i < count; i++) {
		for (other = 0; other < i; other++)
			if (rows[i].state != POOL_AWAY && rows[other].state != POOL_AWAY &&
			    rows[i].incarnation == rows[other].incarnation)
				break;
		if (other == i)
			continue;
		rows[i].state = POOL_SAME;
		rows[i].same_as = rows[other].member.address;
	}
}

void pool_rows_ask(struct rbx_context *ctx, struct pool_row *rows, size_t count)
{
	struct asking asking = { .ctx = ctx, .rows = rows, .count = count };
	pthread_t threads[THREADS_MAX];
	size_t started = 0;

	while (started < THREADS_MAX && started < count &&
	       !pthread_create(&threads[started], NULL, asking_run, &asking))
		started++;
	asking_run(&asking);
	while (started)
		pthread_join(threads[--started], NULL);
	same_find(rows, count);
}
