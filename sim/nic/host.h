/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - what the model asks of whoever runs the programs of the nodes.
 *
 * The simulator's host runs them on fibers; a scenario that models cores and
 * threads, and a test, run them as steps. What a call of the fabric costs its
 * caller in CPU time is told by spend(), once a call, at its end.
 */
#ifndef RBX_SIM_NIC_HOST_H
#define RBX_SIM_NIC_HOST_H

#include "core/port.h"
#include "sim/nic/params.h"

struct rbx_nic_host {
	/* Of the thread that calls. Its time may be ahead of the world's, where
	 * it has spent some that has not passed yet. */
	uint32_t (*node)(void);
	uint64_t (*now)(void);
	void (*spend)(uint64_t time_ns);

	/* Event descriptors: counters that are readable while not zero. An
	 * interrupt raises one, and what it costs its core is the host's to
	 * charge. */
	int (*open_event)(void);
	void (*close_event)(int fd);
	void (*raise_event)(int fd);
	void (*lower_event)(int fd);
	/* Blocks the caller; false: until_ns came first. */
	bool (*wait_event)(int fd, uint64_t until_ns);
};

/* Before a run: what the NICs are, and who runs the nodes. Both stay. */
void rbx_nic_begin(const struct rbx_nic_params *params,
		   const struct rbx_nic_host *host);

#endif
