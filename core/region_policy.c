/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_policy.c - the list of the policies, see region_policy.h.
 */
#include "core/region_policy.h"

const struct rbx_region_policy *const rbx_region_policies[RBX_REGION_POLICIES] = {
	&rbx_region_lru, &rbx_region_mre, &rbx_region_gdsf, &rbx_region_s3fifo, &rbx_region_sieve,
};

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
