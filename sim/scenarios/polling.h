/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* polling.h - the paper's ways of polling by name, as rules of the core. */
#ifndef RBX_SIM_POLLING_H
#define RBX_SIM_POLLING_H

#include "core/poll_policy.h"

struct rbx_sim_polling {
	const char *name;
	struct rbx_poll_rule rule;
	uint32_t shared_count; /* pollers for all peers; 0: one for each */
};

/* Without the shared ones. */
#define RBX_SIM_POLLINGS 6u
/* With the shared ones. */
#define RBX_SIM_POLLINGS_ALL 8u

extern const struct rbx_sim_polling rbx_sim_pollings[RBX_SIM_POLLINGS_ALL];

#endif
