/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - what the files of an endpoint share, see README.md.
 *
 * How a connection is ended. The peer, the removal of the device, a failed post and the
 * owner all use one work item, `ending`, as they may be in any context. All work items
 * are in one workqueue, as a task that is being killed can make no queue. Closing removes
 * the endpoint from its domain's list and sets is_closing, both under the domain's lock.
 * The work item checks it under the same lock. So no thread uses a queue pair that is
 * being destroyed.
 *
 * Locks, in this order: lock of a domain (mutex) · lock of a poller (mutex, held for
 * completions) · post_lock (spin, irq: posting, and the states of regions).
 */
#ifndef RBX_KERNEL_ENDPOINT_ENDPOINT_H
#define RBX_KERNEL_ENDPOINT_ENDPOINT_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "kernel/api_endpoint.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/address.h"
#include "kernel/lib/context.h"

/* Regions of one endpoint. They are searched one by one when one is taken, and when the
 * peer ends a key. */
#define RBX_ENDPOINT_REGIONS_MAX 256u

struct rbx_protection_domain {
	struct rbx_client client; /* of the device's context, which it holds */
	struct rbx_device_watch watch;
	struct ib_device *device;
	struct ib_pd *pd;
	struct rbx_endpoint_limits limits;
	void (*gone)(struct rbx_protection_domain *domain, void *user);
	void *user;

	struct mutex lock; /* guards all below, and the end of endpoints */
	bool is_gone;
	uint32_t users_count; /* endpoints, listeners, requests */
	struct list_head endpoints;
	struct list_head listeners;
};

/* A work request, and what its completion will report. */
struct rbx_endpoint_slot {
	struct ib_cqe cqe;
	struct rbx_endpoint *endpoint;
	uint32_t number; /* in its ring; of a paced endpoint: its index */
	bool is_silent;
	struct rbx_region *ends; /* END_EXPORT; else NULL */
	void *user;
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		struct ib_recv_wr receive;
	} wr;
};

/* Work requests of one direction that were posted and have not completed. */
struct rbx_endpoint_ring {
	struct rbx_endpoint_slot *slots; /* at number & mask, so numbers may wrap */
	struct ib_sge *sges; /* segments_max for each slot */
	uint32_t mask;
	uint32_t segments_max;
	uint32_t depth_count; /* the most that may be posted at a time */
	uint32_t posted_count; /* modulo 2^32; with post_lock */
	uint32_t completed_count; /* the same; atomic, written by the poller */
};

/*
 *	FREE -> TAKEN -> EXPORTED -> ENDING -> ENDED -> FREE
 *
 * The moves are made by rbx_region_take(), EXPORT, END_EXPORT, its completion, and
 * release. If a peer ends a key, the region goes from EXPORTED to ENDED. If END_EXPORT
 * fails, it goes back to EXPORTED. Release deregisters an EXPORTED region: it is LOST,
 * and FREE again if the device has another memory region for it.
 */
enum rbx_region_state {
	RBX_REGION_FREE,
	RBX_REGION_TAKEN, /* not exported yet */
	RBX_REGION_EXPORTED, /* others may access it */
	RBX_REGION_ENDING, /* the same, until END_EXPORT completes */
	RBX_REGION_ENDED,
	RBX_REGION_LOST, /* it has no memory region of the device */
};

struct rbx_region {
	struct rbx_endpoint *endpoint;
	struct ib_mr *mr; /* NULL only in LOST */
	uint32_t rights;
	enum rbx_region_state state; /* with post_lock */
};

struct rbx_endpoint {
	struct list_head link; /* in its domain's list; guarded by its lock, as the next */
	bool is_closing;
	struct rbx_protection_domain *domain;
	struct rbx_poller *poller; /* takes its completions; NULL: it has none yet */
	uint32_t cq_index; /* which of its queues */
	uint32_t room_count; /* the room of the poller that it has taken */
	struct rbx_ib_conn conn;
	struct work_struct ending;
	char name[RBX_ADDRESS_TEXT_BYTES];
	void (*completed)(const struct rbx_completion *completion);
	void *user;
	uint32_t timeout_ms;
	bool is_over; /* guarded by poller.lock: later completions are dropped */

	spinlock_t post_lock; /* guards the next two, and the fields that name it above */
	bool is_closed; /* nothing more is posted */
	struct rbx_endpoint_ring sends, receives;
	struct rbx_paced_endpoint *paced; /* NULL: operations are posted at once */
	struct rbx_region *regions;
	uint32_t regions_count, region_pages;
};

/* ---- domain.c -------------------------------------------------------------------*/

/* Adds a user to the domain. 0; -ENODEV: its device is being removed. */
int rbx_domain_enter(struct rbx_protection_domain *domain);
void rbx_domain_leave(struct rbx_protection_domain *domain);

/* ---- endpoint.c -----------------------------------------------------------------*/

/* Called by the module. */
int rbx_endpoints_init(void);
void rbx_endpoints_exit(void);
/* Makes an endpoint in its domain, without a connection. 0, -EINVAL, -ENODEV, -ENOMEM. */
int rbx_endpoint_make(struct rbx_protection_domain *domain,
		      const struct rbx_endpoint_options *options,
		      struct rbx_endpoint **endpoint);
/* conn.id is set: makes the queue pair, and all that the endpoint needs of its device. 0,
 * -EXDEV, -ENOSPC, -ENOMEM. */
int rbx_endpoint_build(struct rbx_endpoint *endpoint);
/* It is connected: from now on it ends with its device. -ENODEV: the device is being
 * removed. */
int rbx_endpoint_begin(struct rbx_endpoint *endpoint);
/* Ends it, in whatever state it is. */
void rbx_endpoint_end(struct rbx_endpoint *endpoint);
/* Called by its connection; any context. */
void rbx_endpoint_ended(struct rbx_ib_conn *conn);

/* ---- connect.c ------------------------------------------------------------------*/

/* The device is being removed. Process context. */
void rbx_endpoint_listeners_wake_locked(struct rbx_protection_domain *domain);

/* ---- post.c ---------------------------------------------------------------------*/

/* Translates an operation that was checked into the work request of its slot. */
void rbx_operation_translate(const struct rbx_operation *operation,
			     struct rbx_endpoint_slot *slot);

/* ---- completions.c -----------------------------------------------------------------*/

void rbx_endpoint_operation_done(struct ib_cq *cq, struct ib_wc *wc);
/* The operation has ended: frees its slot and reports it. */
void rbx_endpoint_operation_end(struct rbx_endpoint_slot *slot, int status);
void rbx_endpoint_receive_done(struct ib_cq *cq, struct ib_wc *wc);
/* The device will report nothing more: completes all that is outstanding. */
void rbx_endpoint_complete_rest(struct rbx_endpoint *endpoint);

/* ---- region.c -------------------------------------------------------------------*/

/* 0; -ENOMEM; -EINVAL: the device has no regions of that size. */
int rbx_regions_make(struct rbx_endpoint *endpoint);
/* The queue pair must be destroyed. */
void rbx_regions_free(struct rbx_endpoint *endpoint);

/* Moves a region to its next state for an operation, or back. -EINVAL: it is not in the
 * state for it. */
int rbx_region_move_locked(const struct rbx_endpoint *endpoint,
			   const struct rbx_operation *operation);
void rbx_region_move_back_locked(const struct rbx_operation *operation);
/* END_EXPORT has completed. */
void rbx_region_end_done(struct rbx_region *region, bool has_ended);
/* The peer says that it has ended a key. False: it had no right to do so. */
bool rbx_region_invalidated(struct rbx_endpoint *endpoint, uint32_t key);
uint32_t rbx_region_access(uint32_t rights);

#endif
