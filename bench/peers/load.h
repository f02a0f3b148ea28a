/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The load that a client puts on a peer, and its result. */
#ifndef LOAD_H
#define LOAD_H

#include <stdint.h>

#include "histogram.h"
#include "peer.h"

struct load_result {
	uint64_t requests;
	uint64_t elapsed_ns;
	uint64_t cpu_ns;	/* user and system time of this process */
	uint64_t errors;
	uint64_t verify_errors;
	struct histogram latency;
};

/*
 * Warms up, measures for options->runtime_s and verifies if asked to. Takes @peer: it is
 * disconnected before the buffers are freed, because requests that never came back may still
 * borrow them. Failed requests are counted in @result. Returns 0 or -errno.
 */
int load_run(struct peer *peer, const struct peer_options *options, struct load_result *result);

#endif
