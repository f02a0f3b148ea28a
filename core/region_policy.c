/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_policy.c - the list of the policies, and how one takes over, see region_policy.h.
 */
#include "core/regions.h"

const struct rbx_region_policy *const rbx_region_policies[RBX_REGION_POLICIES] = {
	[RBX_REGION_LRU] = &rbx_region_lru,	[RBX_REGION_MRE] = &rbx_region_mre,
	[RBX_REGION_GDSF] = &rbx_region_gdsf,	[RBX_REGION_S3FIFO] = &rbx_region_s3fifo,
	[RBX_REGION_SIEVE] = &rbx_region_sieve,
};

size_t rbx_region_policy_needs_none(uint32_t regions)
{
	(void)regions;
	return 0;
}

static bool is_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const struct rbx_region_policy *rbx_region_policy_find(const char *name)
{
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		if (is_same(name, rbx_region_policies[i]->name))
			return rbx_region_policies[i];
	return is_same(name, rbx_region_auto.name) ? &rbx_region_auto : NULL;
}

static void admit_all(struct rbx_regions *regions, const struct rbx_region_list *all)
{
	uint32_t region, newer;

	for (region = all->oldest; region != RBX_REGION_NONE; region = newer) {
		newer = rbx_regions_at(regions, region)->prev;
		regions->policy->admit(regions, region);
	}
}

void rbx_regions_follow(struct rbx_regions *regions, const struct rbx_region_policy *policy)
{
	struct rbx_region_list all;
	uint32_t i;

	RBX_ASSERT(policy->size(regions->slots_count) <= regions->policy_bytes);
	rbx_region_list_init(&all);
	for (i = 0; i < regions->slots_count; i++)
		if (rbx_region_is_indexed(rbx_regions_at(regions, i)))
			rbx_region_list_push(&all, regions->slots, i);
	rbx_region_list_sort(&all, regions->slots, RBX_REGION_BY(stamp));
	rbx_port_fill(regions->policy_memory, 0, regions->policy_bytes);
	regions->policy = policy;
	policy->init(regions, regions->policy_memory);
	if (policy->adopt)
		policy->adopt(regions, &all);
	else
		admit_all(regions, &all);
}
