/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scripted_host_ops.h - what a flow and its upkeep ask of a scripted host: parts are kept
 * for the test to carry out, servers lend and take back as the test has told them to.
 */
#ifndef RBX_TEST_SCRIPTED_HOST_OPS_H
#define RBX_TEST_SCRIPTED_HOST_OPS_H

#include "tests/core/scripted_host.h"

extern const struct rbx_flow_ops host_flow_ops;
extern const struct rbx_upkeep_ops host_upkeep_ops;

/* The memory that the device sees there: the reverse of host_device_addr(). */
void *host_memory_at(uint64_t addr);
/* Whether the loan of an area is of this epoch still. */
bool host_server_has_loan(const struct host_server *server, uint64_t area,
			  uint64_t epoch);

#endif
