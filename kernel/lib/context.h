/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - an RDMA device and all that its peers share: the protection domain, the
 * window, and the pollers with their completion queues.
 *
 * There is one context for each device, because it is the NIC that thrashes, whoever
 * causes it, and because the same threads poll for all. It is made for the first volume
 * that needs it and freed with the last. What only the peers of one volume share is in
 * its client.
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

/* More pollers are not worth their threads: a processor handles about a million
 * completions a second. */
#define RBX_CONTEXT_POLLERS_MAX 16u

/* Guards the list of contexts, the users of each, and the device of each. The recovery
 * takes it too. So while it is held, no allocation may wait for memory that our own I/O
 * would free. Use the two functions below. */
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
 * called under poller.lock of each poller. */
struct rbx_mappings {
	struct list_head link; /* in the context's list */
	void (*unmap)(struct rbx_mappings *mappings, struct ib_device *device);
	/* Maps what is not mapped yet. 0; -ENOMEM: some of it is mapped. */
	int (*map)(struct rbx_mappings *mappings, struct ib_device *device);
};

/* A user of the device that has to release it when it is removed. */
struct rbx_device_watch {
	struct list_head link; /* in the context's list */
	void (*gone)(struct rbx_device_watch *watch);
};

/* The completions of a queue pair: its work requests, and those that rbx_ib_conn_drain()
 * posts on either side. */
#define RBX_QP_COMPLETIONS (RBX_SEND_DEPTH + 2)

struct rbx_context {
	struct list_head link; /* in the list of all; guarded by contexts_lock, as the next */
	uint32_t users_count;
	struct list_head clients;
	int node; /* memory node near the device; or NUMA_NO_NODE */
	bool is_ready; /* it may be held; atomic for readers without the lock */
	uint32_t holds_count;
	wait_queue_head_t released;

	/* The device that it is bound to (device.h); NULL: none. It stays while the
	 * context is held. */
	struct ib_device *device;
	__be64 node_guid; /* of this device, or of the last one */
	struct ib_pd *pd;
	struct ib_device *open_device; /* for RCU: the device that I/Os are mapped for, or NULL */
	struct list_head mappings; /* of all volumes; guarded by contexts_lock */

	struct rbx_window window;
	struct rbx_staging staging; /* empty: one key covers all memory */
	uint32_t pollers_count;
	uint32_t qps_each_count; /* the queue pairs that one completion queue has room for */
	struct rbx_poller pollers[RBX_CONTEXT_POLLERS_MAX];

	struct mutex watches_lock; /* guards the list below */
	struct list_head watches;

	/* Held to change what is below, and the room of the pollers. */
	struct mutex peers_lock;
	struct rbx_channel_slots channels; /* of the window */
	struct rbx_repairs repairs; /* of broken connections of the peers */
};

/* The options of a client's peers. */
struct rbx_client_options {
	uint32_t queue_pairs; /* for each peer, 1 to RBX_QUEUE_PAIRS_MAX */
	uint32_t peer_timeout_ms;
	bool merge; /* the paper's modes, see core/planner.h */
	bool chain;
	struct rbx_root secret; /* borrowed; empty: none */
	char credential[RBX_CREDENTIAL_BYTES]; /* its name; empty: none */
};

/*
 * The peers of one owner on one device. An owner has one client at first. It gets another one for
 * each further device through which one of its servers is reached (rbx_client_of_address()), and
 * keeps all until it closes the first.
 */
struct rbx_client {
	struct list_head link; /* in the context's list */
	struct rbx_context *ctx; /* NULL: not open */
	struct rbx_client_options options;
	struct rbx_sessions sessions; /* its sessions */
	struct rbx_planner planner;
	struct rbx_client *first; /* of the owner; perhaps itself */
	struct rbx_client *next; /* of the owner, or NULL; atomic: set once */
	/* Only of the first: */
	struct mutex next_lock; /* held while a next one is made */
	/* Set to make a thread give up that opens peers for this owner. */
	bool is_stopped; /* atomic */
	wait_queue_head_t stopped;
};

/* The most devices of one owner. */
#define RBX_CLIENT_DEVICES_MAX 8u

static inline struct rbx_client *
rbx_client_of_sessions(struct rbx_sessions *sessions)
{
	return container_of(sessions, struct rbx_client, sessions);
}

/* The next one of the owner, or NULL. */
static inline struct rbx_client *rbx_client_next(const struct rbx_client *client)
{
	return smp_load_acquire(&client->next); /* then it is whole */
}

/* ---- client.c ---------------------------------------------------------------------*/

#define RBX_PEER_TIMEOUT_MS_MIN 400u

/* The name of the option that is out of range, or NULL. */
const char *rbx_client_bad_option(uint32_t peer_timeout_ms, const void *secret,
				  size_t secret_bytes, const char *credential);
/* Opens it with the device that leads to an address. 0; -ENODEV, -EHOSTUNREACH; -ENOMEM.
 * Blocks. */
int rbx_client_open(struct rbx_client *client,
		    const struct rbx_client_options *options,
		    struct sockaddr_storage *address);
/* The same with a given device. It takes the device, even if it fails. */
int rbx_client_open_on(struct rbx_client *client,
		       const struct rbx_client_options *options,
		       struct ib_device *device);
/* The owner's client on the device that leads to an address; it is made if there is none. 0;
 * -EXDEV: the owner has as many devices as can be; and as rbx_client_open(). Blocks. */
int rbx_client_of_address(struct rbx_client *first, struct sockaddr_storage *address,
			  struct rbx_client **client);
/* Makes a thread that opens a peer for the owner give up as soon as it would pause. */
void rbx_client_stop(struct rbx_client *first);
/* And the others of its owner. All their peers must be closed. */
void rbx_client_close(struct rbx_client *first);

/* ---- context.c --------------------------------------------------------------------*/

/* Adds a client to the context of a device, which is made if there is none, and removes it.
 * A context ends with its last client. 0; -ENODEV, -ENOMEM. Both block. */
int rbx_context_join(struct rbx_client *client, struct ib_device *device);
void rbx_context_part(struct rbx_client *client);
/* The owner's client whose context is bound to a device, or was and may be again; or NULL.
 * Blocks. */
struct rbx_client *rbx_context_client(struct rbx_client *first, const struct ib_device *device);

/* Keeps the context bound to a device until it is released. If it is not bound yet, this
 * binds it. NULL: any device. 0; -EXDEV: it is bound to another device; -ENODEV: the
 * device is being removed; -ENOMEM. Blocks. */
int rbx_context_hold(struct rbx_context *ctx, struct ib_device *device);
void rbx_context_release(struct rbx_context *ctx);
/* A device is being removed. When it returns, no context uses the device. Blocks. */
void rbx_contexts_leave(struct ib_device *device);

/* From now on the memory is mapped and unmapped together with the device. */
int rbx_context_add_mappings(struct rbx_context *ctx,
			     struct rbx_mappings *mappings);
/* When it returns, the memory is unmapped and no poller uses it. */
void rbx_context_remove_mappings(struct rbx_context *ctx,
				 struct rbx_mappings *mappings);

/* ---- context_watches.c ----------------------------------------------------------*/

/* Calls gone() when the device is being removed, until unwatch() returns. gone() must not
 * block. -ENODEV: the device is being removed already. */
int rbx_context_watch(struct rbx_context *ctx, struct rbx_device_watch *watch);
void rbx_context_unwatch(struct rbx_context *ctx, struct rbx_device_watch *watch);
void rbx_context_tell_watches(struct rbx_context *ctx);

/* ---- context_room.c -------------------------------------------------------------*/

/* Takes room for so many completions in a queue of the poller that serves the fewest. 0;
 * -ENOSPC, or the error of the device if it cannot make another queue. Blocks. */
int rbx_context_take_room(struct rbx_context *ctx, uint32_t completions_count,
			  struct rbx_poller **poller, uint32_t *cq_index);
void rbx_context_give_room(struct rbx_poller *poller, uint32_t cq_index,
			   uint32_t completions_count);
/* The most completions that one queue has room for. */
uint32_t rbx_context_room_max(const struct rbx_context *ctx);

/* ---- context_channels.c ---------------------------------------------------------*/

/* Gives a paced endpoint a slot among the channels of the window. 0, -ENOSPC. Blocks. */
int rbx_context_add_paced(struct rbx_context *ctx, struct rbx_channel *channel);
/* Removes this or a peer's channel. When it returns, no thread uses the channel any more.
 * Blocks. */
void rbx_context_remove_channel(struct rbx_context *ctx,
				struct rbx_channel *channel);
/* The caller is the combiner of the channel (endpoint/paced.c). Any context. */
void rbx_paced_combine(struct rbx_channel *channel);

/* Called after something has completed: lets the parked combiners try again, one after
 * another. True: the thread that polls next has to call it again. */
bool rbx_context_unpark(struct rbx_context *ctx);

#endif
