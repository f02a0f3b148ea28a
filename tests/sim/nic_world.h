/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nic_world.h - the least host for model NICs: one thread, that is on whichever
 * node the test says.
 */
#ifndef TESTS_SIM_NIC_WORLD_H
#define TESTS_SIM_NIC_WORLD_H

#include "sim/events.h"
#include "sim/nic/host.h"

/* On which node the thread is. */
extern uint32_t nic_world_node;
/* Called while the thread waits for an event; NULL: nothing. */
extern void (*nic_world_idle)(void);
/* CPU time that calls have taken; frozen: it does not pass. */
extern uint64_t nic_world_spent_ns;
extern bool nic_world_frozen;

/* Time 0, no faults, the NICs of sim/nic/generations/NAME.conf, or for NULL one to
 * reckon with: 1 ns a byte everywhere, no headers. The test may change the result
 * before it opens one. */
struct rbx_nic_params *nic_world_begin(const char *name);

/* Of nic_endpoint.c: which NICs it opens, and what is changed before. */
extern const char *nic_endpoint_name;
extern void (*nic_endpoint_change)(struct rbx_nic_params *params);

/* Lets so much time pass. */
void nic_world_pass(uint64_t time_ns);

#endif
