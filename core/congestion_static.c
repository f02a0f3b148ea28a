/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* congestion_static.c - the paper's policy: a window of fixed size. */
#include "core/congestion.h"

static void static_init(void *state, uint64_t window_bytes)
{
	*(uint64_t *)state = window_bytes;
}

static void static_on_post(void *state, uint64_t now_ns, uint32_t bytes)
{
	(void)state;
	(void)now_ns;
	(void)bytes;
}

static void static_on_complete(void *state, uint64_t rtt_ns, uint32_t bytes)
{
	(void)state;
	(void)rtt_ns;
	(void)bytes;
}

static void static_on_error(void *state)
{
	(void)state;
}

static uint64_t static_window(const void *state)
{
	return *(const uint64_t *)state;
}

const struct rbx_congestion_ops rbx_congestion_static = {
	.name = "static",
	.init = static_init,
	.on_post = static_on_post,
	.on_complete = static_on_complete,
	.on_error = static_on_error,
	.window = static_window,
};
