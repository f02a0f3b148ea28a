/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.h - a device, its configuration, and what all its users share.
 *
 * Read it as the map of lib/: a context has one device, one window, one pool of
 * staging memory and one planner; pollers with a completion queue each; peers,
 * each served by one poller; and a list of completed requests for rbx_reap().
 *
 * Locks, in order of precedence (do not take an earlier one while holding a
 * later one): peers_lock, a poller's lock, queues_lock, a queue's, the repairs' monitor,
 * the registrar's
 * (registrar.h), done_lock, view_lock.
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

#define RBX_POLLERS_MAX 16 /* that the option may ask for */
#define RBX_POLLER_SLOTS 64 /* where peers bring theirs */

/* Counters that no poller and no channel keeps. Added to with
 * RBX_ADD_RELAXED(). */
struct rbx_counters {
	uint64_t registrations;
	uint64_t deregistrations;
	uint64_t registration_failures;
	struct rbx_flow_counters volumes;
	uint64_t messages_sent;
	uint64_t messages_received;
};

struct rbx_context {
	uint32_t forks_count; /* when it was opened, see guard.h */
	/* Atomic: what rbx_close() wants closed. */
	uint32_t volumes_count, peers_count, regions_count, links_count;
	uint32_t queues_count, listeners_count, domains_count, watches_count;
	struct rbx_options options; /* queue_pairs as taken */
	struct rbx_tuning tuning; /* of the file, while it is opened */
	char tuning_note[RBX_TUNING_NOTE_BYTES];
	struct rbx_fabric_choice fabric;
	struct rbx_device *device;
	struct rbx_secret *secret;
	struct rbx_sessions *sessions;

	struct rbx_planner planner; /* read only once open */
	struct rbx_window window;
	struct rbx_staging staging;
	void *staging_memory; /* NULL: the device needs none */
	struct rbx_mr *staging_mr;
	struct rbx_buffers buffers;

	/* Atomic, grows only (under peers_lock); 1 where the program polls. */
	uint32_t poller_count;
	struct rbx_poller *pollers[RBX_POLLER_SLOTS];

	/* Peers come and go under the lock; pollers read the slots (atomic)
	 * while they hold their own lock, see rbx_poller_visit(). It also
	 * guards options.polling. */
	pthread_mutex_t peers_lock;
	/* Around a change of what any call may look at, also one in a callback, which
	 * has a poller's lock: of slots from a peer to none, options.polling, and
	 * closed_channels. */
	pthread_mutex_t view_lock;
	/* Of the window; queues look at them as pollers do, see rbx_queues_visit_all(). */
	struct rbx_channel_slots channels;
	struct rbx_repairs repairs; /* of the peers' connections */
	pthread_mutex_t queues_lock; /* of who makes, ends and visits queues: callbacks may */
	struct rbx_queue *queues;

	struct rbx_counters counters;
	/* What was counted up to the last rbx_stats_reset(). */
	struct rbx_stats stats_base;
	/* What closed peers had counted, so that no number goes backwards. */
	struct rbx_channel_counters closed_channels;

	/* Completed requests without a callback; room for submitters. */
	pthread_mutex_t done_lock;
	pthread_cond_t done_changed;
	struct rbx_request *done_first;
	struct rbx_request *done_last;
	uint64_t room_count; /* how often rbx_context_made_room() was called */
	uint32_t room_waiters; /* atomic */
	int done_fd; /* eventfd: readable while the list is not empty */
};

/* A slot among the channels of the window for an endpoint that is paced (paced.h). When
 * remove() returns nobody has anything of it in hand. -ENOSPC. */
int rbx_context_add_paced(struct rbx_context *ctx, struct rbx_channel *channel);
void rbx_context_remove_paced(struct rbx_context *ctx,
			      struct rbx_channel *channel);
/* It is the caller's to combine. */
void rbx_paced_combine(struct rbx_channel *channel);
/* When it returns no queue handles a completion that it held before. */
void rbx_queues_visit_all(struct rbx_context *ctx);

const struct rbx_options *rbx_context_options(const struct rbx_context *ctx);
struct rbx_counters *rbx_context_counters(struct rbx_context *ctx);

/* Whether a region covers a buffer, and its lkey. */
bool rbx_region_covers(const struct rbx_region *region, const void *buf,
		       size_t length, uint32_t *lkey);

/* No CPU is to touch its memory. */
bool rbx_region_is_dmabuf(const struct rbx_region *region);

struct rbx_mr *rbx_region_mr(const struct rbx_region *region);

/* The rights of endpoint.h in those of the fabric, for a region or a window: 0, -EINVAL,
 * -EOPNOTSUPP. */
int rbx_region_rights(const struct rbx_device_caps *caps, uint32_t rights,
		      bool is_window, uint32_t *of_fabric);

/* Once at submit: notes the time. */
void rbx_request_stamp(struct rbx_request *request);

/* Once at completion, status set, by who polls: counts, then calls back or
 * queues. */
void rbx_context_complete(struct rbx_context *ctx, struct rbx_request *request);

/* After resources for submitting came back: wakes rbx_wait_room(). */
void rbx_context_made_room(struct rbx_context *ctx);

/* Lets the parked combiners of the device look again, each in its turn. True: it is to
 * be called again, by who polls next. */
bool rbx_context_unpark(struct rbx_context *ctx);

#endif
