/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backoff.h - how long to wait before the next try: twice as long after each failure, from
 * half a second to 16 s, and between half and all of that by chance, so that a thousand
 * clients of a store that returns do not come at the same moment.
 */
#ifndef RBX_POOL_BACKOFF_H
#define RBX_POOL_BACKOFF_H

#include <stdint.h>

#define RBX_BACKOFF_FIRST_MS 500u
#define RBX_BACKOFF_MAX_MS 16000u

struct rbx_backoff {
	uint32_t next_ms; /* 0: nothing has failed */
	uint64_t chance; /* the state of its random numbers, never 0 */
};

static inline void rbx_backoff_init(struct rbx_backoff *backoff, uint64_t seed)
{
	*backoff = (struct rbx_backoff){ .chance = seed | 1 };
}

static inline void rbx_backoff_succeeded(struct rbx_backoff *backoff)
{
	backoff->next_ms = 0;
}

/* Milliseconds to wait after a failure. */
static inline uint32_t rbx_backoff_failed(struct rbx_backoff *backoff)
{
	uint32_t most_ms = backoff->next_ms ? backoff->next_ms : RBX_BACKOFF_FIRST_MS;

	backoff->next_ms = most_ms < RBX_BACKOFF_MAX_MS / 2 ? 2 * most_ms : RBX_BACKOFF_MAX_MS;
	/* xorshift64: good enough to part clients. */
	backoff->chance ^= backoff->chance << 13;
	backoff->chance ^= backoff->chance >> 7;
	backoff->chance ^= backoff->chance << 17;
	return most_ms / 2 + (uint32_t)(backoff->chance % (most_ms / 2 + 1));
}

#endif
