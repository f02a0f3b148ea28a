/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - what the files of an endpoint share, see README.md.
 *
 * Who ends a connection. The peer, the device that goes, a post that fails and the
 * owner all do it by one work item, `ending`, for they may be in any context; all of them
 * in one queue, as a task that is being killed can make no queue. Closing
 * takes the endpoint off its domain's list and says is_closing, both under the domain's
 * lock, under which the work item looks: so nobody touches a queue pair that is being
 * destroyed.
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

/* Regions of one endpoint: they are looked at one by one when one is taken, and when the
 * peer ends a key. */
#define RBX_ENDPOINT_REGIONS_MAX 256u

struct rbx_protection_domain {
	struct rbx_client client; /* of the device's context, which is held */
	struct rbx_device_watch watch;
	struct ib_device *device;
	struct ib_pd *pd;
	struct rbx_endpoint_limits limits;
	void (*gone)(struct rbx_protection_domain *domain, void *user);
	void *user;

	struct mutex lock; /* guards all below, and the ends of endpoints */
	bool is_gone;
	uint32_t users_count; /* endpoints, listeners, requests */
	struct list_head endpoints;
	struct list_head listeners;
};

/* A work request, and what its completion will say. */
struct rbx_endpoint_slot {
	struct ib_cqe cqe;
	struct rbx_endpoint *endpoint;
	uint32_t number; /* in its ring; of one that is paced: its index */
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

/* What is posted and has not completed, in one direction. */
struct rbx_endpoint_ring {
	struct rbx_endpoint_slot *slots; /* of number & mask: so numbers may wrap */
	struct ib_sge *sges; /* segments_max for each slot */
	uint32_t mask;
	uint32_t segments_max;
	uint32_t depth_count; /* that may be posted at a time */
	uint32_t posted_count; /* modulo 2^32; with post_lock */
	uint32_t completed_count; /* the same; atomic, by the poller */
};

/*
 *	FREE -> TAKEN -> EXPORTED -> ENDING -> ENDED -> FREE
 *
 * By rbx_region_take(), EXPORT, END_EXPORT and its completion, and release. A peer that
 * ends a key takes it from EXPORTED to ENDED; an END_EXPORT that fails goes back to
 * EXPORTED. From there release deregisters it: it is LOST, and FREE again if there is
 * another memory region of the device for it.
 */
enum rbx_region_state {
	RBX_REGION_FREE,
	RBX_REGION_TAKEN, /* and not exported */
	RBX_REGION_EXPORTED, /* others may reach it */
	RBX_REGION_ENDING, /* the same, until END_EXPORT completes */
	RBX_REGION_ENDED,
	RBX_REGION_LOST, /* it has no memory region of the device */
};

struct rbx_region {
	struct rbx_endpoint *endpoint;
	struct ib_mr *mr; /* not NULL, but in LOST */
	uint32_t rights;
	enum rbx_region_state state; /* with post_lock */
};

struct rbx_endpoint {
	struct list_head link; /* of its domain's; with its lock, as the next */
	bool is_closing;
	struct rbx_protection_domain *domain;
	struct rbx_poller *poller; /* of its completions; NULL: it has none yet */
	uint32_t cq_index; /* which of its queues */
	uint32_t room_count; /* that it has taken of the poller */
	struct rbx_ib_conn conn;
	struct work_struct ending;
	char name[RBX_ADDRESS_TEXT_BYTES];
	void (*completed)(const struct rbx_completion *completion);
	void *user;
	uint32_t timeout_ms;
	bool is_over; /* with poller.lock: what comes now is told otherwise */

	spinlock_t post_lock; /* guards the next two, and what says so above */
	bool is_closed; /* nothing more is posted */
	struct rbx_endpoint_ring sends, receives;
	struct rbx_paced_endpoint *paced; /* NULL: operations are posted as they come */
	struct rbx_region *regions;
	uint32_t regions_count, region_pages;
};

/* ---- domain.c -------------------------------------------------------------------*/

/* Something is in it from here on. 0; -ENODEV: its device goes. */
int rbx_domain_enter(struct rbx_protection_domain *domain);
void rbx_domain_leave(struct rbx_protection_domain *domain);

/* ---- endpoint.c -----------------------------------------------------------------*/

/* The module is loaded, and unloaded. */
int rbx_endpoints_init(void);
void rbx_endpoints_exit(void);
/* Without a connection, in its domain. 0, -EINVAL, -ENODEV, -ENOMEM. */
int rbx_endpoint_make(struct rbx_protection_domain *domain,
		      const struct rbx_endpoint_options *options,
		      struct rbx_endpoint **endpoint);
/* conn.id is there: makes the queue pair, and all that the endpoint has of its device. 0,
 * -EXDEV, -ENOSPC, -ENOMEM. */
int rbx_endpoint_build(struct rbx_endpoint *endpoint);
/* It is connected: ends with its device from here on. -ENODEV: which goes. */
int rbx_endpoint_begin(struct rbx_endpoint *endpoint);
/* However far it came. */
void rbx_endpoint_end(struct rbx_endpoint *endpoint);
/* Told by its connection; any context. */
void rbx_endpoint_ended(struct rbx_ib_conn *conn);

/* ---- connect.c ------------------------------------------------------------------*/

/* The device goes. Process context. */
void rbx_endpoint_listeners_wake_locked(struct rbx_protection_domain *domain);

/* ---- post.c ---------------------------------------------------------------------*/

/* One that was checked becomes the work request of its slot. */
void rbx_operation_translate(const struct rbx_operation *operation,
			     struct rbx_endpoint_slot *slot);

/* ---- complete.c -----------------------------------------------------------------*/

void rbx_endpoint_operation_done(struct ib_cq *cq, struct ib_wc *wc);
/* It has ended: its slot is free, and it is told of. */
void rbx_endpoint_operation_end(struct rbx_endpoint_slot *slot, int status);
void rbx_endpoint_receive_done(struct ib_cq *cq, struct ib_wc *wc);
/* The device will tell of nothing any more: all that is outstanding completes. */
void rbx_endpoint_complete_rest(struct rbx_endpoint *endpoint);

/* ---- region.c -------------------------------------------------------------------*/

/* 0, -ENOMEM, -EINVAL the device has none of that size. */
int rbx_regions_make(struct rbx_endpoint *endpoint);
/* The queue pair is destroyed. */
void rbx_regions_free(struct rbx_endpoint *endpoint);

/* Moves a region for an operation, or takes that back. -EINVAL: it is not in the state
 * for it. */
int rbx_region_move_locked(const struct rbx_endpoint *endpoint,
			   const struct rbx_operation *operation);
void rbx_region_move_back_locked(const struct rbx_operation *operation);
/* END_EXPORT has completed. */
void rbx_region_end_done(struct rbx_region *region, bool has_ended);
/* The peer says that it has ended a key. False: it had no right to. */
bool rbx_region_invalidated(struct rbx_endpoint *endpoint, uint32_t key);
uint32_t rbx_region_access(uint32_t rights);

#endif
