/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_runs.h - fragments on their way to the peers of several servers: a run for each.
 *
 * All that one start or one poll has for a server goes to its peer in one call, so that
 * neighbours meet in its merge queue and one doorbell is enough. Most fragments go where the
 * one before went, so adding one is a comparison and two stores.
 */
#ifndef RBX_SERVER_RUNS_H
#define RBX_SERVER_RUNS_H

#include "core/piece.h"

/* A piece has as many servers as slots, and all pieces of a slab have the same. A batch rarely
 * has more servers than that. */
#define RBX_SERVER_RUNS_MAX (2 * RBX_SLOTS_MAX)

struct rbx_server_run {
	uint32_t server;
	struct rbx_node head; /* its next is the first of the run */
	struct rbx_node *last;
};

struct rbx_server_runs {
	struct rbx_server_run *run; /* to which a fragment was added last */
	uint32_t count;
	struct rbx_server_run all[RBX_SERVER_RUNS_MAX];
};

static inline void rbx_server_runs_begin(struct rbx_server_runs *runs)
{
	runs->count = 0;
	runs->run = runs->all;
	runs->run->server = UINT32_MAX; /* no server's: the first fragment begins a run */
}

/* Whether all parts of a slab can be added, whichever servers it has. */
static inline bool rbx_server_runs_have_room(const struct rbx_server_runs *runs)
{
	return runs->count <= RBX_SERVER_RUNS_MAX - RBX_SLOTS_MAX;
}

/* The run of a server. */
static inline struct rbx_server_run *
rbx_server_runs_find(struct rbx_server_runs *runs, uint32_t server)
{
	struct rbx_server_run *run = runs->all, *end = run + runs->count;

	while (run != end && run->server != server)
		run++;
	if (run == end) {
		RBX_ASSERT(runs->count < RBX_SERVER_RUNS_MAX);
		runs->count++;
		run->server = server;
		run->last = &run->head;
	}
	return run;
}

static inline void rbx_server_runs_add(struct rbx_server_runs *runs,
				       uint32_t server,
				       struct rbx_fragment *fragment)
{
	if (server != runs->run->server)
		runs->run = rbx_server_runs_find(runs, server);
	runs->run->last->next = &fragment->node;
	runs->run->last = &fragment->node;
}

#endif
