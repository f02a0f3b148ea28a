/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion.h - the hook that decides how wide the window is.
 *
 * The paper regulates what is in flight with a window and leaves the policy to
 * a software hook (section IV-A, "RDMA I/O level Admission Control"). This is
 * the hook. A policy sees what is posted and what completes, in integers, and
 * says how many bytes may be in flight. The host calls it from one thread at a
 * time; it must not block.
 */
#ifndef RBX_CONGESTION_H
#define RBX_CONGESTION_H

#include "core/port.h"

#define RBX_CONGESTION_STATE_BYTES 128u

struct rbx_congestion_ops {
	const char *name;
	/* window_bytes: what the user asked for, the start of the policy. */
	void (*init)(void *state, uint64_t window_bytes);
	void (*on_post)(void *state, uint64_t now_ns, uint32_t bytes);
	void (*on_complete)(void *state, uint64_t rtt_ns, uint32_t bytes);
	void (*on_error)(void *state);
	/* Bytes that may be in flight; 0: no limit. */
	uint64_t (*window)(const void *state);
};

/* The paper's: a window of the size that the user gave, whatever happens. */
extern const struct rbx_congestion_ops rbx_congestion_static;

#endif
