/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* memory.c - see memory.h. */
#include "sim/nic/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* The places are used in turn, so that a tag comes again as late as possible. */
static uint32_t free_place(struct rbx_nic_regions *regions)
{
	for (uint32_t i = 0; i < RBX_NIC_REGIONS_MAX; i++) {
		uint32_t place = (regions->next_place + i) %
				 RBX_NIC_REGIONS_MAX;

		if (!regions->at[place]) {
			regions->next_place = place + 1;
			return place;
		}
	}
	return RBX_NIC_REGIONS_MAX;
}

/* Tag 0 is never used, so no key is 0. */
static uint32_t new_key(struct rbx_nic_regions *regions, uint32_t place)
{
	uint32_t *tag = &regions->tags[place];

	if (++*tag == 1u << (32 - RBX_NIC_PLACE_BITS))
		*tag = 1;
	return *tag << RBX_NIC_PLACE_BITS | place;
}

static int add(struct rbx_nic_regions *regions, struct rbx_device *device,
	       const struct rbx_mr_init *init, struct rbx_mr **mr, char *error)
{
	uint32_t place = free_place(regions);
	struct rbx_nic_region *region = NULL;
	uint32_t key;

	if (place < RBX_NIC_REGIONS_MAX)
		region = calloc(1, sizeof(*region));
	if (!region) {
		if (error)
			snprintf(error, RBX_ERROR_TEXT_MAX,
				 "cannot register memory: the model NIC has "
				 "%u regions", RBX_NIC_REGIONS_MAX);
		return -ENOMEM;
	}
	key = new_key(regions, place);
	region->mr = (struct rbx_mr){
		.device = device,
		.addr = init->addr,
		.length_bytes = init->length_bytes,
		.lkey = key,
		.rkey = key,
	};
	region->domain = init->domain;
	region->rights = init->rights;
	region->place = place;
	regions->at[place] = region;
	*mr = &region->mr;
	return 0;
}

int rbx_nic_regions_add(struct rbx_nic_regions *regions,
			struct rbx_device *device,
			const struct rbx_mr_init *inits, size_t count,
			struct rbx_mr **mrs, char *error)
{
	for (size_t i = 0; i < count; i++) {
		int err = add(regions, device, &inits[i], &mrs[i], error);

		if (err) {
			rbx_nic_regions_remove(regions, mrs, i);
			return err;
		}
	}
	return 0;
}

void rbx_nic_regions_remove(struct rbx_nic_regions *regions,
			    struct rbx_mr **mrs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rbx_nic_region *region =
			RBX_CONTAINER_OF(mrs[i], struct rbx_nic_region, mr);

		RBX_ASSERT(regions->at[region->place] == region);
		regions->at[region->place] = NULL;
		free(region);
		mrs[i] = NULL;
	}
}

void rbx_nic_regions_remove_all(struct rbx_nic_regions *regions)
{
	for (uint32_t place = 0; place < RBX_NIC_REGIONS_MAX; place++) {
		struct rbx_mr *mr;

		if (!regions->at[place])
			continue;
		mr = &regions->at[place]->mr;
		rbx_nic_regions_remove(regions, &mr, 1);
	}
}

struct rbx_nic_region *rbx_nic_regions_find(const struct rbx_nic_regions *regions,
					    const struct rbx_domain *domain,
					    uint32_t key, uint64_t addr,
					    uint64_t length_bytes,
					    uint32_t rights)
{
	struct rbx_nic_region *region = regions->at[key % RBX_NIC_REGIONS_MAX];
	uint64_t offset;

	if (!region || region->mr.rkey != key || region->domain != domain ||
	    (region->rights & rights) != rights)
		return NULL;
	offset = addr - (uintptr_t)region->mr.addr;
	if (addr < (uintptr_t)region->mr.addr ||
	    offset > region->mr.length_bytes ||
	    length_bytes > region->mr.length_bytes - offset)
		return NULL;
	return region;
}
