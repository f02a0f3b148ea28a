/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* polling.c - see polling.h, and core/poll_policy.h for what the numbers mean. */
#include "sim/scenarios/polling.h"

#define BUSY                                                             \
	{                                                                \
		RBX_POLL_RETRY_FOREVER, RBX_POLL_BATCH,                  \
			RBX_POLL_EVENT_UNBOUNDED, false, 100             \
	}

const struct rbx_sim_polling rbx_sim_pollings[RBX_SIM_POLLINGS_ALL] = {
	{ "busy", BUSY, 0 },
	{ "event", { 0, 1, 1, false, 100 }, 0 },
	{ "event-batch:16", { 0, RBX_POLL_BATCH, 16, false, 100 }, 0 },
	{ "hybrid",
	  { 0, RBX_POLL_BATCH, RBX_POLL_EVENT_UNBOUNDED, false, 100 },
	  0 },
	{ "adaptive:120",
	  { RBX_POLL_RETRY_PAPER, RBX_POLL_BATCH, RBX_POLL_EVENT_UNBOUNDED,
	    false, 100 },
	  0 },
	{ "adaptive",
	  { 0, RBX_POLL_BATCH, RBX_POLL_EVENT_UNBOUNDED, true, 100 },
	  0 },
	{ "shared:1", BUSY, 1 },
	{ "shared:4", BUSY, 4 },
};
