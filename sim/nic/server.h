/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.h - a queue with a service time: what a processing unit is.
 *
 * Jobs are served one at a time in the order in which they were added. What a
 * job costs is asked when its service begins. A job is part of what it is for and
 * is linked in, so nothing is allocated.
 */
#ifndef RBX_SIM_NIC_SERVER_H
#define RBX_SIM_NIC_SERVER_H

#include "sim/events.h"
#include "sim/nic/span.h"

struct rbx_nic_server;

struct rbx_nic_job {
	struct rbx_nic_server *server; /* NULL: in no queue */
	struct rbx_nic_job *next, *previous;
	/* Its service begins. Returns when it ends, not before begin_ps. */
	uint64_t (*serve)(struct rbx_nic_job *job, uint64_t begin_ps);
	/* Its service has ended, and it may be added again. */
	void (*done)(struct rbx_nic_job *job);
};

struct rbx_nic_server {
	struct rbx_sim_event event; /* the service ends */
	struct rbx_nic_job *first, *last; /* the first is being served */
	bool serving; /* false while the one that ended is told */
	uint64_t free_ps; /* when the last service ends */
	uint32_t queued_count;
	uint64_t jobs; /* counters */
	uint64_t busy_ps;
	uint32_t queued_peak;
};

void rbx_nic_server_init(struct rbx_nic_server *server);

/* The job is in no queue. */
void rbx_nic_server_add(struct rbx_nic_server *server, struct rbx_nic_job *job);

/* Takes a job out, wherever it stands; the time that its service has taken stays
 * taken, and done() is not called. In no queue: nothing. */
void rbx_nic_server_remove(struct rbx_nic_job *job);

#endif
