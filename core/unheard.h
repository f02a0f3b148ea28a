/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unheard.h - evictions that a client may not have heard of yet.
 *
 * A send that is done has taken a receive of the client, whether anybody there looks at
 * it or not: a client that stands still has its sends done until its receives are used
 * up, and the next one breaks the connection. So the server counts what was heard.
 *
 * A client takes messages in their order, posts the receive of each again, and has one
 * heartbeat under way at a time. So with a heartbeat it has heard all that was said
 * before the answer to the last one (wire/PROTOCOL.md, "Connections").
 *
 * Zeroed for each connection. Counts that may wrap.
 */
#ifndef RBX_UNHEARD_H
#define RBX_UNHEARD_H

#include "core/limits.h"

struct rbx_unheard {
	uint32_t told_count;
	uint32_t answered_count; /* told before the last heartbeat was answered */
	uint32_t heard_count;
};

/* No more until a heartbeat comes. */
static inline bool rbx_unheard_is_full(const struct rbx_unheard *unheard)
{
	return unheard->told_count - unheard->heard_count >= RBX_EVICTIONS_MAX;
}

static inline void rbx_unheard_add(struct rbx_unheard *unheard)
{
	unheard->told_count++;
}

/* A heartbeat came, and is answered before anything else is told. */
static inline void rbx_unheard_heartbeat(struct rbx_unheard *unheard)
{
	unheard->heard_count = unheard->answered_count;
	unheard->answered_count = unheard->told_count;
}

#endif
