/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - what the model needs from the code that runs the programs of the nodes.
 *
 * The simulator's host runs them on fibers. A scenario that models cores and threads runs
 * them as steps, and so does a test. spend() says what a call of the fabric costs its caller
 * in CPU time; it is called once for each call, at its end.
 */
#ifndef RBX_SIM_NIC_HOST_H
#define RBX_SIM_NIC_HOST_H

#include "core/port.h"
#include "sim/nic/params.h"

struct rbx_nic_host {
	/* Of the calling thread. Its time may be ahead of the world's, if it has spent some
	 * that has not passed yet. */
	uint32_t (*node)(void);
	uint64_t (*now)(void);
	void (*spend)(uint64_t time_ns);

	/* Event descriptors: counters that are readable while not zero. An interrupt raises
	 * one; the host charges its cost to a core. */
	int (*open_event)(void);
	void (*close_event)(int fd);
	void (*raise_event)(int fd);
	void (*lower_event)(int fd);
	/* Blocks the caller; false: until_ns came first. */
	bool (*wait_event)(int fd, uint64_t until_ns);
};

/* Before a run: the NICs, and the code that runs the nodes. Both must stay. */
void rbx_nic_begin(const struct rbx_nic_params *params,
		   const struct rbx_nic_host *host);

#endif
