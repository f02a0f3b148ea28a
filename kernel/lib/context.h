/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - an RDMA device and what all peers on it share: the protection
 * domain, the window, and the pollers with their completion queues.
 *
 * There is one for a device: it is the NIC that thrashes, whoever makes it do so, and
 * the same threads poll for all. It comes with the first volume that needs it and goes
 * with the last. What the peers of one volume have in common besides is its client.
 */
#ifndef RBX_KERNEL_CONTEXT_H
#define RBX_KERNEL_CONTEXT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <rdma/ib_verbs.h>

#include "client/repairs.h"
#include "client/session.h"
#include "core/channel_slots.h"
#include "core/planner.h"
#include "core/window.h"
#include "kernel/lib/poller/poller.h"

struct rbx_peer;

/* More of them than this are not worth their threads: a processor takes some million
 * completions a second. */
#define RBX_CONTEXT_POLLERS_MAX 16u

/* Guards the list of contexts, who uses each, and what each is bound to. Repairs want it,
 * too, so while it is held no memory is waited for that our own I/O would free: this is the
 * way to take and to give it. */
extern struct mutex rbx_contexts_lock;

static inline unsigned int rbx_contexts_take(void)
{
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&rbx_contexts_lock);
	return noio;
}

static inline void rbx_contexts_give(unsigned int noio)
{
	mutex_unlock(&rbx_contexts_lock);
	memalloc_noio_restore(noio);
}

/* Memory that is mapped for the device as long as the context is bound to it. Both are
 * called under poller.lock, that of each poller. */
struct rbx_mappings {
	struct list_head link; /* of the context's */
	void (*unmap)(struct rbx_mappings *mappings, struct ib_device *device);
	/* What is not mapped yet. 0, -ENOMEM: some of it is. */
	int (*map)(struct rbx_mappings *mappings, struct ib_device *device);
};

/* Somebody who has something of the device, and lets it go. */
struct rbx_device_watch {
	struct list_head link; /* of the context's */
	void (*gone)(struct rbx_device_watch *watch);
};

/* A queue pair in the completion queue: what is posted, and what rbx_ib_conn_drain()
 * posts on either side. */
#define RBX_QP_COMPLETIONS (RBX_SEND_DEPTH + 2)

struct rbx_context {
	struct list_head link; /* of all contexts; with their lock, as the next */
	uint32_t users_count;
	struct list_head clients;
	int node; /* of memory, near the device; or NUMA_NO_NODE */
	bool is_ready; /* it may be held; atomic where the lock is not held */
	uint32_t holds_count;
	wait_queue_head_t released;

	/* What it is bound to (device.h); NULL: nothing. Stays while it is held. */
	struct ib_device *device;
	__be64 node_guid; /* of that one, or of the last */
	struct ib_pd *pd;
	struct ib_device *open_device; /* for RCU: what I/Os are mapped for, or NULL */
	struct list_head mappings; /* of all volumes; with contexts_lock */

	struct rbx_window window;
	struct rbx_staging staging; /* none: one key covers all memory */
	uint32_t pollers_count;
	uint32_t qps_each_count; /* that fit into a queue of one */
	struct rbx_poller pollers[RBX_CONTEXT_POLLERS_MAX];

	struct mutex watches_lock; /* guards what is below */
	struct list_head watches;

	/* Who changes what is below, and the room of pollers. */
	struct mutex peers_lock;
	struct rbx_channel_slots channels; /* of the window */
	struct rbx_repairs repairs; /* of their connections */
};

/* How a client wants its peers. */
struct rbx_client_options {
	uint32_t queue_pairs; /* for each peer, 1 to RBX_QUEUE_PAIRS_MAX */
	uint32_t peer_timeout_ms;
	bool merge; /* the paper's modes, see core/planner.h */
	bool chain;
	struct rbx_root secret; /* borrowed; empty: none */
};

struct rbx_client {
	struct list_head link; /* of the context's */
	struct rbx_context *ctx; /* NULL: not open */
	struct rbx_client_options options;
	struct rbx_sessions sessions; /* with its servers */
	struct rbx_planner planner;
	/* Whoever opens peers for somebody else, who has had enough of it. */
	bool is_stopped; /* atomic */
	wait_queue_head_t stopped;
};

static inline struct rbx_client *
rbx_client_of_sessions(struct rbx_sessions *sessions)
{
	return container_of(sessions, struct rbx_client, sessions);
}

/* ---- client.c ---------------------------------------------------------------------*/

/* The name of an option that is out of its bounds, or NULL. */
const char *rbx_client_bad_option(uint32_t peer_timeout_ms, const void *secret,
				  size_t secret_bytes);
/* With the device that leads to an address. 0; -ENODEV, -EHOSTUNREACH; -ENOMEM.
 * Blocks. */
int rbx_client_open(struct rbx_client *client,
		    const struct rbx_client_options *options,
		    struct sockaddr_storage *address);
/* The same with a device, which it takes, also if it fails. */
int rbx_client_open_on(struct rbx_client *client,
		       const struct rbx_client_options *options,
		       struct ib_device *device);
/* Who opens a peer gives up when it would pause. */
void rbx_client_stop(struct rbx_client *client);
/* All its peers are closed. */
void rbx_client_close(struct rbx_client *client);

/* ---- context.c --------------------------------------------------------------------*/

/* A client of the context of a device: of the one that is there, or of a new one; and it
 * is one no more, which ends a context whose last it was. 0; -ENODEV, -ENOMEM. Block. */
int rbx_context_join(struct rbx_client *client, struct ib_device *device);
void rbx_context_part(struct rbx_client *client);

/* Has the context stay bound to a device, to which it is bound if it is to none.
 * NULL: whichever it is. 0; -EXDEV it is bound to another one; -ENODEV the device goes;
 * -ENOMEM. Blocks. */
int rbx_context_hold(struct rbx_context *ctx, struct ib_device *device);
void rbx_context_release(struct rbx_context *ctx);
/* A device goes. When it returns no context has anything of it. Blocks. */
void rbx_contexts_leave(struct ib_device *device);

/* From here on memory is mapped, or is not and is unmapped, when it is due. */
int rbx_context_add_mappings(struct rbx_context *ctx,
			     struct rbx_mappings *mappings);
/* It is unmapped when this returns, and no poller has anything of it in hand. */
void rbx_context_remove_mappings(struct rbx_context *ctx,
				 struct rbx_mappings *mappings);

/* ---- context_watches.c ----------------------------------------------------------*/

/* Tells when the device goes, until unwatch() returns. gone() must not block. -ENODEV: it
 * goes already. */
int rbx_context_watch(struct rbx_context *ctx, struct rbx_device_watch *watch);
void rbx_context_unwatch(struct rbx_context *ctx, struct rbx_device_watch *watch);
void rbx_context_tell_watches(struct rbx_context *ctx);

/* ---- context_room.c -------------------------------------------------------------*/

/* Takes room for so many completions in a queue of the poller that serves the fewest. 0;
 * -ENOSPC, or why the device makes no other queue. Blocks. */
int rbx_context_take_room(struct rbx_context *ctx, uint32_t completions_count,
			  struct rbx_poller **poller, uint32_t *cq_index);
void rbx_context_give_room(struct rbx_poller *poller, uint32_t cq_index,
			   uint32_t completions_count);
/* What one queue has at most. */
uint32_t rbx_context_room_max(const struct rbx_context *ctx);

/* ---- context_channels.c ---------------------------------------------------------*/

/* A slot among the channels of the window for an endpoint that is paced. 0, -ENOSPC.
 * Blocks. */
int rbx_context_add_paced(struct rbx_context *ctx, struct rbx_channel *channel);
/* That one, or a peer's. When it returns nobody has anything of it in hand. Blocks. */
void rbx_context_remove_channel(struct rbx_context *ctx,
				struct rbx_channel *channel);
/* It is the caller's to combine (endpoint/paced.c). Any context. */
void rbx_paced_combine(struct rbx_channel *channel);

/* Something has completed: lets parked combiners look again, in turn. True: it is to be
 * called again, by who polls next. */
bool rbx_context_unpark(struct rbx_context *ctx);

#endif
