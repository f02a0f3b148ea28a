/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poller.h - a thread that takes completions, as the core's poll policy says. */
#ifndef RBX_SIM_POLLER_H
#define RBX_SIM_POLLER_H

#include "sim/scenarios/client.h"

void rbx_client_poller_open(struct rbx_client *client,
			    struct rbx_client_poller *poller,
			    uint32_t depth_count);

#endif
