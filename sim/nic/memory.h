/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.h - the memory that a NIC may access, and for which queue pairs.
 *
 * A table of regions. A key is a place in the table and a tag that changes each time the
 * place is given to another region, so a revoked key is refused whatever came after it. A key
 * is valid for the queue pairs of its domain, within the region's bounds and rights. Each
 * access is checked at the moment the bytes move, so none moves after deregistration.
 *
 * Places and offsets, never addresses, are the keys of caches: they are the same in each run.
 */
#ifndef RBX_SIM_NIC_MEMORY_H
#define RBX_SIM_NIC_MEMORY_H

#include "fabric/fabric.h"

/* Of a device. The place is the low bits of a key, the tag the others. */
#define RBX_NIC_PLACE_BITS 13
#define RBX_NIC_REGIONS_MAX (1u << RBX_NIC_PLACE_BITS)

struct rbx_nic_domain {
	struct rbx_domain base;
	struct rbx_nic_domain *next; /* of the device */
};

struct rbx_nic_region {
	struct rbx_mr mr;
	struct rbx_domain *domain; /* NULL: the device's */
	uint32_t rights;
	uint32_t place;
};

struct rbx_nic_regions {
	struct rbx_nic_region *at[RBX_NIC_REGIONS_MAX]; /* NULL: free */
	uint32_t tags[RBX_NIC_REGIONS_MAX];
	uint32_t next_place; /* where the search for a free one begins */
};

/* All or nothing; the caller has to spend the time it takes. */
int rbx_nic_regions_add(struct rbx_nic_regions *regions,
			struct rbx_device *device,
			const struct rbx_mr_init *inits, size_t count,
			struct rbx_mr **mrs, char *error);
void rbx_nic_regions_remove(struct rbx_nic_regions *regions,
			    struct rbx_mr **mrs, size_t count);
void rbx_nic_regions_remove_all(struct rbx_nic_regions *regions);

/* The region of a key, if so many bytes there may be accessed in this way; NULL: a violation.
 * rights: of enum rbx_rights, 0 for a local read. */
struct rbx_nic_region *rbx_nic_regions_find(const struct rbx_nic_regions *regions,
					    const struct rbx_domain *domain,
					    uint32_t key, uint64_t addr,
					    uint64_t length_bytes,
					    uint32_t rights);

#endif
