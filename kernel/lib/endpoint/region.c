/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region.c - memory that others may access: fast registration, from a pool.
 *
 * An endpoint allocates all its memory regions of the device when it is made. Taking a
 * region sets its pages and a new key; the device is not involved. The device learns of
 * it by the work request of EXPORT, and forgets it by that of END_EXPORT. So both can go
 * in a chain with other operations, in order, and neither allocates nor sleeps.
 *
 * Recovery: when a connection breaks, work requests are flushed, and it is not known
 * whether the device has carried them out. So a region counts as exported until its
 * END_EXPORT has succeeded. Deregistration ends it for certain; it needs no connection,
 * but sleeps. Release does this, and so does the end of the endpoint.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/lib/endpoint/endpoint.h"

#define ALL_RIGHTS (RBX_REGION_READ | RBX_REGION_WRITE | RBX_REGION_ATOMIC | \
		    RBX_REGION_INVALIDATE)

/* ---- The pool -------------------------------------------------------------------*/

static int mr_make(struct rbx_region *region)
{
	const struct rbx_endpoint *endpoint = region->endpoint;
	struct ib_mr *mr = ib_alloc_mr(endpoint->domain->pd, IB_MR_TYPE_MEM_REG,
				       endpoint->region_pages);

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	region->mr = mr;
	return 0;
}

int rbx_regions_make(struct rbx_endpoint *endpoint)
{
	uint32_t i;
	int err;

	endpoint->regions = kvcalloc(endpoint->regions_count,
				     sizeof(*endpoint->regions), GFP_KERNEL);
	if (!endpoint->regions)
		return endpoint->regions_count ? -ENOMEM : 0;
	for (i = 0; i < endpoint->regions_count; i++) {
		endpoint->regions[i].endpoint = endpoint;
		err = mr_make(&endpoint->regions[i]);
		if (err)
			return err;
	}
	return 0;
}

void rbx_regions_free(struct rbx_endpoint *endpoint)
{
	uint32_t i;

	for (i = 0; endpoint->regions && i < endpoint->regions_count; i++)
		if (endpoint->regions[i].mr)
			(void)ib_dereg_mr(endpoint->regions[i].mr);
	kvfree(endpoint->regions);
}

/* ---- States ---------------------------------------------------------------------*/

static void set_state_locked(struct rbx_region *region,
			     enum rbx_region_state state)
{
	lockdep_assert_held(&region->endpoint->post_lock);
	region->state = state;
}

static void set_state(struct rbx_region *region, enum rbx_region_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&region->endpoint->post_lock, flags);
	set_state_locked(region, state);
	spin_unlock_irqrestore(&region->endpoint->post_lock, flags);
}

int rbx_region_move_locked(const struct rbx_endpoint *endpoint,
			   const struct rbx_operation *operation)
{
	struct rbx_region *region = operation->region;
	bool begins = operation->kind == RBX_OPERATION_EXPORT;

	lockdep_assert_held(&endpoint->post_lock);
	if (!region || region->endpoint != endpoint ||
	    region->state != (begins ? RBX_REGION_TAKEN : RBX_REGION_EXPORTED))
		return -EINVAL;
	set_state_locked(region,
			 begins ? RBX_REGION_EXPORTED : RBX_REGION_ENDING);
	return 0;
}

void rbx_region_move_back_locked(const struct rbx_operation *operation)
{
	lockdep_assert_held(&operation->region->endpoint->post_lock);
	set_state_locked(operation->region,
			 operation->kind == RBX_OPERATION_EXPORT ?
				 RBX_REGION_TAKEN :
				 RBX_REGION_EXPORTED);
}

void rbx_region_end_done(struct rbx_region *region, bool has_ended)
{
	unsigned long flags;

	spin_lock_irqsave(&region->endpoint->post_lock, flags);
	set_state_locked(region, has_ended ? RBX_REGION_ENDED :
					     RBX_REGION_EXPORTED);
	spin_unlock_irqrestore(&region->endpoint->post_lock, flags);
}

static struct rbx_region *region_of_key_locked(struct rbx_endpoint *endpoint,
					       uint32_t key)
{
	uint32_t i;

	lockdep_assert_held(&endpoint->post_lock);
	for (i = 0; i < endpoint->regions_count; i++) {
		struct rbx_region *region = &endpoint->regions[i];

		if ((region->state == RBX_REGION_EXPORTED ||
		     region->state == RBX_REGION_ENDING) &&
		    region->mr->rkey == key)
			return region;
	}
	return NULL;
}

bool rbx_region_invalidated(struct rbx_endpoint *endpoint, uint32_t key)
{
	struct rbx_region *region;
	bool had_right = false;
	unsigned long flags;

	spin_lock_irqsave(&endpoint->post_lock, flags);
	region = region_of_key_locked(endpoint, key);
	if (region) {
		had_right = region->rights & RBX_REGION_INVALIDATE;
		/* If END_EXPORT is in flight, its completion is waited for. Otherwise it
		 * could be taken for the end of the next export. */
		if (region->state == RBX_REGION_EXPORTED)
			set_state_locked(region, RBX_REGION_ENDED);
	}
	spin_unlock_irqrestore(&endpoint->post_lock, flags);
	return had_right;
}

/* ---- Taking and releasing ------------------------------------------------------------*/

uint32_t rbx_region_access(uint32_t rights)
{
	uint32_t access = 0;

	if (rights & RBX_REGION_READ)
		access |= IB_ACCESS_REMOTE_READ;
	if (rights & RBX_REGION_WRITE)
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	if (rights & RBX_REGION_ATOMIC)
		access |= IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE;
	return access;
}

static struct rbx_region *take_free(struct rbx_endpoint *endpoint)
{
	struct rbx_region *region = NULL;
	unsigned long flags;
	uint32_t i;

	spin_lock_irqsave(&endpoint->post_lock, flags);
	for (i = 0; i < endpoint->regions_count && !region; i++)
		if (endpoint->regions[i].state == RBX_REGION_FREE)
			region = &endpoint->regions[i];
	if (region)
		set_state_locked(region, RBX_REGION_TAKEN);
	spin_unlock_irqrestore(&endpoint->post_lock, flags);
	return region;
}

int rbx_region_take(struct rbx_endpoint *endpoint, struct scatterlist *sg,
		    u32 count, u32 rights, struct rbx_region **out)
{
	struct rbx_region *region;
	int mapped;

	if (!count || count > INT_MAX || (rights & ~ALL_RIGHTS) ||
	    ((rights & RBX_REGION_ATOMIC) &&
	     !endpoint->domain->limits.has_atomics))
		return -EINVAL;
	region = take_free(endpoint);
	if (!region)
		return -EAGAIN;
	mapped = ib_map_mr_sg(region->mr, sg, (int)count, NULL, PAGE_SIZE);
	if (mapped != (int)count) {
		set_state(region, RBX_REGION_FREE);
		return -EINVAL;
	}
	ib_update_fast_reg_key(region->mr, ib_inc_rkey(region->mr->rkey));
	region->rights = rights;
	*out = region;
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_region_take);

void rbx_region_key(const struct rbx_region *region, struct rbx_region_key *key)
{
	*key = (struct rbx_region_key){
		.address = region->mr->iova,
		.length_bytes = region->mr->length,
		.key = region->mr->rkey,
	};
}
EXPORT_SYMBOL_GPL(rbx_region_key);

/* Deregisters the region, and allocates a new one if there is memory. */
static void deregister(struct rbx_region *region)
{
	(void)ib_dereg_mr(region->mr);
	region->mr = NULL;
	set_state(region, mr_make(region) ? RBX_REGION_LOST : RBX_REGION_FREE);
}

int rbx_region_release(struct rbx_region *region)
{
	struct rbx_endpoint *endpoint = region->endpoint;
	enum rbx_region_state state;
	unsigned long flags;

	spin_lock_irqsave(&endpoint->post_lock, flags);
	state = region->state;
	if (state == RBX_REGION_TAKEN || state == RBX_REGION_ENDED)
		set_state_locked(region, RBX_REGION_FREE);
	else if (state == RBX_REGION_EXPORTED)
		set_state_locked(region, RBX_REGION_LOST); /* until there is a new one */
	spin_unlock_irqrestore(&endpoint->post_lock, flags);
	if (state == RBX_REGION_ENDING)
		return -EBUSY;
	if (state == RBX_REGION_EXPORTED)
		deregister(region);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_region_release);
