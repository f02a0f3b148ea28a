/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - what the files of a volume share: the kernel's host of its flow and
 * its upkeep (core/flow.h, core/upkeep.h).
 *
 *	volume.c         opens and closes, tells the status
 *	connect.c        connects to the servers that the options name, takes leave
 *	servers.c        what servers say, borrows from them
 *	volume_submit.c  the way of an I/O: mapped, split, joined
 *	volume_dma.c     its memory as the device sees it, whichever device it is
 *	volume_keeper.c  the thread that makes the rounds of the upkeep
 *
 * The locks of the core are spinlocks here, taken in process context only; nothing
 * is called under them but steps of the core.
 */
#ifndef RBX_KERNEL_VOLUME_H
#define RBX_KERNEL_VOLUME_H

#include <linux/wait.h>

#include "core/upkeep.h"
#include "kernel/api.h"
#include "kernel/lib/peer.h"

struct rbx_volume_server {
	struct rbx_volume *volume;
	struct rbx_peer *peer; /* set before any replica refers to it */
	struct rbx_ask ask; /* the upkeep's */
	/* Of the opening: */
	struct sockaddr_storage *address;
	int open_err;
};

struct rbx_volume {
	struct rbx_client client;
	struct rbx_context *ctx; /* the client's */
	void *secret; /* a copy of it */
	struct rbx_flow flow;
	struct rbx_flow_counters counters;
	struct rbx_upkeep upkeep;
	uint32_t server_count;
	struct rbx_volume_server *servers; /* so many */
	struct rbx_mappings mappings; /* of its I/Os and copies */
	bool copies_are_mapped; /* with poller.lock */

	struct task_struct *keeper;
	wait_queue_head_t keeper_changed;
	bool keeper_wanted; /* atomic */
	void *copies_memory[RBX_COPIES_MAX]; /* a cell for each of a rebuild */
};

static inline struct rbx_volume *rbx_volume_of_flow(struct rbx_flow *flow)
{
	return container_of(flow, struct rbx_volume, flow);
}

static inline struct rbx_volume *
rbx_volume_of_upkeep(struct rbx_upkeep *upkeep)
{
	return container_of(upkeep, struct rbx_volume, upkeep);
}

/* connect.c */

/* Opens the context and a peer for each server. Blocks. -EINTR: a signal came. Closed
 * even after a failure. */
int rbx_volume_servers_open(struct rbx_volume *volume,
			    const struct rbx_volume_options *options);
/* Takes leave of all: what they have lent ends. Blocks. */
void rbx_volume_servers_close(struct rbx_volume *volume);

/* servers.c */

struct rbx_peer_events rbx_volume_peer_events(struct rbx_volume *volume,
					      uint32_t index);
extern const struct rbx_upkeep_ops rbx_volume_upkeep_ops;

/* volume_submit.c */

extern const struct rbx_flow_ops rbx_volume_flow_ops;

/* volume_dma.c */

/* NULL: there is no device now; it is mapped later. 0, -ENOMEM. */
int rbx_volume_io_map(const struct rbx_volume *volume, struct rbx_io *io,
		      struct ib_device *device);
/* If it is mapped. */
void rbx_volume_io_unmap(const struct rbx_volume *volume, struct rbx_io *io,
			 struct ib_device *device);
/* Between these it follows the device. The copies of a rebuild are lent, and none is
 * under way at the end. 0, -ENOMEM; closed even then. */
int rbx_volume_mappings_open(struct rbx_volume *volume);
void rbx_volume_mappings_close(struct rbx_volume *volume);

/* volume_keeper.c */

int rbx_volume_keeper_start(struct rbx_volume *volume);
/* A rebuild may still be under way then. */
void rbx_volume_keeper_stop(struct rbx_volume *volume);
/* Waits for the copies of a rebuild. Nothing is mapped any more then. */
void rbx_volume_copies_end(struct rbx_volume *volume);
/* Frees what copies need. */
void rbx_volume_keeper_free(struct rbx_volume *volume);
/* Something is to be seen to. Any context. */
void rbx_volume_keeper_wake(struct rbx_volume *volume);
/* Tells the log the news of the upkeep. */
void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err);
void rbx_volume_trace_task(struct rbx_upkeep *upkeep,
			   const struct rbx_slab *slab,
			   enum rbx_slab_task task);

#endif
