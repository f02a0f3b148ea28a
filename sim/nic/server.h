/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.h - a queue with a service time: the model of a processing unit.
 *
 * Jobs are served one at a time in the order in which they were added. The cost of a job is
 * asked when its service begins. A job is a part of the object that it is for and is linked
 * in, so nothing is allocated.
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
	bool serving; /* false while the end of a job is reported */
	uint64_t free_ps; /* when the last service ends */
	uint32_t queued_count;
	uint64_t jobs; /* counters */
	uint64_t busy_ps;
	uint32_t queued_peak;
};

void rbx_nic_server_init(struct rbx_nic_server *server);

/* The job is in no queue. */
void rbx_nic_server_add(struct rbx_nic_server *server, struct rbx_nic_job *job);

/* Takes a job out of any position. The service time that it has used stays used, and done()
 * is not called. Does nothing if it is in no queue. */
void rbx_nic_server_remove(struct rbx_nic_job *job);

#endif
