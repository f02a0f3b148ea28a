/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - the context: a device, its configuration, and all that its users share.
 *
 * This is the map of lib/. A context has one device, one window, one pool of staging
 * memory and one planner. It has pollers with a completion queue each, peers that are
 * each served by one poller, and a list of completed requests for rbx_reap().
 *
 * Locks, in order of precedence (do not take an earlier one while holding a later one):
 * peers_lock, the lock of a poller, queues_lock, the lock of a queue, the monitor of the
 * repairs, the registrar's locks (registrar.h), done_lock, view_lock.
 */
#ifndef RBX_LIB_CONTEXT_H
#define RBX_LIB_CONTEXT_H

#include <pthread.h>

#include "client/repairs.h"
#include "core/channel_slots.h"
#include "core/flow.h"
#include "fabric/fabric.h"
#include "include/rdmabox/tuning.h"
#include "lib/buffers/buffers.h"
#include "lib/error.h"
#include "lib/fabric_choice.h"
#include "lib/guard.h"
#include "lib/poller/poller.h"
#include "lib/session/sessions.h"
#include "lib/buffers/tuning.h"

#define RBX_POLLERS_MAX 16 /* the most that the option allows */
#define RBX_POLLER_SLOTS 64 /* slots for pollers that are started for peers */

/* Counters that neither a poller nor a channel keeps. Add to them with RBX_ADD_RELAXED(). */
struct rbx_counters {
	uint64_t registrations;
	uint64_t deregistrations;
	uint64_t registration_failures;
	struct rbx_flow_counters volumes;
	uint64_t messages_sent;
	uint64_t messages_received;
};

struct rbx_context {
	uint32_t forks_count; /* of the process when the context was opened, see guard.h */
	/* Atomic: rbx_close() fails if one of them is not 0. */
	uint32_t volumes_count, peers_count, regions_count, links_count;
	uint32_t queues_count, listeners_count, domains_count, watches_count;
	struct rbx_options options; /* queue_pairs: what is in use */
	struct rbx_tuning tuning; /* from the tuning file; used while the context is opened */
	char tuning_note[RBX_TUNING_NOTE_BYTES];
	struct rbx_secret *secret;
	struct rbx_fabric_choice fabric;
	struct rbx_device *device;
	struct rbx_sessions *sessions;

	struct rbx_planner planner; /* read only after the open */
	struct rbx_window window;
	struct rbx_staging staging;
	void *staging_memory; /* NULL: the device needs none */
	struct rbx_mr *staging_mr;
	struct rbx_buffers buffers;

	/* Atomic, grows only (under peers_lock). It is 1 if the program polls. */
	uint32_t poller_count;
	struct rbx_poller *pollers[RBX_POLLER_SLOTS];

	/* The lock is held to add or remove a peer. Pollers read the slots (atomic) while
	 * they hold their own lock, see rbx_poller_visit(). The lock also guards
	 * options.polling. */
	pthread_mutex_t peers_lock;
	/* Held to change what any call may read, even a call in a callback, which runs
	 * with a poller's lock held: a slot from a peer to empty, options.polling, and
	 * closed_channels. */
	pthread_mutex_t view_lock;
	/* The window's channels. Queues read the slots as pollers do, see
	 * rbx_queues_visit_all(). */
	struct rbx_channel_slots channels;
	struct rbx_repairs repairs; /* of broken connections of the peers */
	/* Held to add, remove or visit queues; callbacks may take it. */
	pthread_mutex_t queues_lock;
	struct rbx_queue *queues;

	struct rbx_counters counters;
	/* The numbers at the last rbx_stats_reset(). */
	struct rbx_stats stats_base;
	/* What the channels of closed peers had counted, so that no number goes
	 * backwards. */
	struct rbx_channel_counters closed_channels;

	/* Completed requests without a callback, and news for submitters that wait for
	 * room. */
	pthread_mutex_t done_lock;
	pthread_cond_t done_changed;
	struct rbx_request *done_first;
	struct rbx_request *done_last;
	uint64_t room_count; /* how often rbx_context_made_room() was called */
	uint32_t room_waiters; /* atomic */
	int done_fd; /* eventfd: readable while the list is not empty */
};

/* Gives a paced endpoint (paced.h) a slot among the channels of the window, or returns
 * -ENOSPC. When remove() returns, no thread uses the channel any more. */
int rbx_context_add_paced(struct rbx_context *ctx, struct rbx_channel *channel);
void rbx_context_remove_paced(struct rbx_context *ctx,
			      struct rbx_channel *channel);
/* The caller is the combiner of the channel. */
void rbx_paced_combine(struct rbx_channel *channel);
/* When it returns, no queue handles a completion that it had taken before the call. */
void rbx_queues_visit_all(struct rbx_context *ctx);

const struct rbx_options *rbx_context_options(const struct rbx_context *ctx);
struct rbx_counters *rbx_context_counters(struct rbx_context *ctx);

/* Whether a region covers a buffer; if so, gives its lkey. */
bool rbx_region_covers(const struct rbx_region *region, const void *buf,
		       size_t length, uint32_t *lkey);

/* If it is one, no CPU may touch its memory. */
bool rbx_region_is_dmabuf(const struct rbx_region *region);

struct rbx_mr *rbx_region_mr(const struct rbx_region *region);

/* Translates the rights of endpoint.h into those of the fabric, for a region or a memory
 * window. 0, -EINVAL, -EOPNOTSUPP. */
int rbx_region_rights(const struct rbx_device_caps *caps, uint32_t rights,
		      bool is_window, uint32_t *of_fabric);

/* Called once, at submit: notes the time. */
void rbx_request_stamp(struct rbx_request *request);

/* Called once, at completion, with the status set, by the thread that polls: counts the
 * request, then calls back or queues it. */
void rbx_context_complete(struct rbx_context *ctx, struct rbx_request *request);

/* Called when resources for submitting are free again: wakes rbx_wait_room(). */
void rbx_context_made_room(struct rbx_context *ctx);

/* Lets the parked combiners of the device try again, one after another. True: the thread
 * that polls next has to call it again. */
bool rbx_context_unpark(struct rbx_context *ctx);

#endif
