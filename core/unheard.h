/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unheard.h - counts messages that a client may not have read yet.
 *
 * A completed send has used a receive of the client, whether the client looks at it or not.
 * The sends to a stopped client complete until its receives are used up, and the next one
 * breaks the connection. So the server counts what the client has certainly read.
 *
 * A client takes messages in order, posts the receive of each again, and has one heartbeat
 * under way at a time. So a heartbeat shows that it has read all that was sent before the
 * answer to the previous one (wire/PROTOCOL.md, "Connections").
 *
 * Zeroed for each connection. The counts may wrap.
 */
#ifndef RBX_UNHEARD_H
#define RBX_UNHEARD_H

#include "core/limits.h"

struct rbx_unheard {
	uint32_t told_count;
	uint32_t answered_count; /* sent before the last heartbeat was answered */
	uint32_t heard_count;
};

/* No more may be sent until a heartbeat comes. */
static inline bool rbx_unheard_is_full(const struct rbx_unheard *unheard)
{
	return unheard->told_count - unheard->heard_count >= RBX_EVICTIONS_MAX;
}

static inline void rbx_unheard_add(struct rbx_unheard *unheard)
{
	unheard->told_count++;
}

/* A heartbeat came, and is answered before anything else is sent. */
static inline void rbx_unheard_heartbeat(struct rbx_unheard *unheard)
{
	unheard->heard_count = unheard->answered_count;
	unheard->answered_count = unheard->told_count;
}

#endif
