/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_auto.c - follows the policy that costs least, see region_auto.h.
 */
#include "core/region_auto.h"

#define FIRST 2u
#define LOOK_REQUESTS 64u
#define SAMPLE_ALL ((uint64_t)1 << 32)
#ifdef RBX_TUNE
extern int tune_share, tune_floor, tune_decay, tune_first, tune_cap;
#else
#define tune_share 128
#define tune_floor 8
#define tune_decay 4
#define tune_first 2
#define tune_cap 8192
#endif

const struct rbx_region_policy *const rbx_region_policies[RBX_REGION_POLICIES] = {
	&rbx_region_lru, &rbx_region_mre, &rbx_region_gdsf, &rbx_region_s3fifo, &rbx_region_sieve,
};

static struct rbx_regions_shape shadow_shape(const struct rbx_regions_shape *shape, uint32_t i)
{
	struct rbx_regions_shape shadow = *shape;

	shadow.policy = rbx_region_policies[i];
	shadow.regions_max = RBX_MIN(shape->regions_max, tune_cap + 2 * RBX_REGION_PARTS_MAX);
	return shadow;
}

size_t rbx_region_auto_size(const struct rbx_regions_shape *shape)
{
	size_t size = (sizeof(struct rbx_region_auto) + 63) / 64 * 64;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		struct rbx_regions_shape shadow = shadow_shape(shape, i);

		size += rbx_regions_size(&shadow);
	}
	return size;
}

void rbx_region_auto_begin(struct rbx_regions *regions, const struct rbx_regions_shape *shape,
			   void *memory)
{
	struct rbx_region_auto *a = memory;
	char *at = (char *)memory + (sizeof(*a) + 63) / 64 * 64;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		struct rbx_regions_shape shadow = shadow_shape(shape, i);

		(void)rbx_regions_init(&a->shadows[i], &shadow, at);
		at += rbx_regions_size(&shadow);
	}
	regions->automatic = a;
	regions->sample_limit = SAMPLE_ALL;
	a->followed = tune_first;
	regions->policy = rbx_region_policies[a->followed];
}

static void set_budgets(struct rbx_regions *regions)
{
	struct rbx_region_auto *a = regions->automatic;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		rbx_regions_set_budgets(&a->shadows[i],
					(regions->pages_max << regions->page_shift) >> a->halvings,
					regions->regions_max >> a->halvings);
}

static void thin(struct rbx_regions *shadow, uint64_t limit)
{
	struct rbx_regions_counters counters = shadow->counters;
	uint32_t batch[RBX_REGION_BATCH_MAX], count, i;

	for (i = 0; i < shadow->slots_count; i++)
		if (rbx_region_is_indexed(&shadow->slots[i]) &&
		    rbx_region_auto_hash(shadow->slots[i].first) >= limit)
			rbx_regions_drop(shadow, i);
	while ((count = rbx_regions_batch(shadow, batch, RBX_REGION_BATCH_MAX)))
		rbx_regions_retired(shadow, batch, count);
	shadow->counters = counters;
}

static void halve(struct rbx_regions *regions)
{
	struct rbx_region_auto *a = regions->automatic;
	uint32_t i;

	regions->sample_limit /= 2;
	a->halvings++;
	for (i = 0; i < RBX_REGION_POLICIES; i++)
		thin(&a->shadows[i], regions->sample_limit);
}

static void look(struct rbx_regions *regions)
{
	struct rbx_region_auto *a = regions->automatic;
	uint64_t spent[RBX_REGION_POLICIES], miss;
	uint32_t i, best = a->followed;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		spent[i] = (a->shadows[i].counters.spent_ns - a->spent_ns[i]) << a->halvings;
		a->spent_ns[i] = a->shadows[i].counters.spent_ns;
	}
	a->cost_ns += spent[a->followed];
	a->until_ns += spent[a->followed];
	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		a->gains_ns[i] += (int64_t)spent[a->followed] - (int64_t)spent[i];
		if (a->gains_ns[i] < 0)
			a->gains_ns[i] = 0;
		if (a->gains_ns[i] > a->gains_ns[best])
			best = i;
	}
	miss = (uint64_t)(regions->cost.register_call_ns + regions->cost.deregister_call_ns) << a->halvings;
	if (a->gains_ns[best] > (int64_t)(a->cost_ns / tune_share + tune_floor * miss)) {
		a->followed = best;
		for (i = 0; i < RBX_REGION_POLICIES; i++)
			a->gains_ns[i] = 0;
		regions->counters.switches++;
		rbx_regions_follow(regions, rbx_region_policies[best]);
	}
	miss = regions->pages_max * (regions->cost.register_page_ns + regions->cost.deregister_page_ns) +
	       regions->indexed_count * (uint64_t)(regions->cost.register_call_ns + regions->cost.deregister_call_ns);
	if (a->until_ns > miss) {
		a->until_ns = 0;
		a->cost_ns -= a->cost_ns / tune_decay;
		for (i = 0; i < RBX_REGION_POLICIES; i++)
			a->gains_ns[i] -= a->gains_ns[i] / tune_decay;
	}
}

RBX_APART void rbx_region_auto_observe(struct rbx_regions *regions, uint64_t first, uint64_t end)
{
	struct rbx_region_auto *a = regions->automatic;
	uint32_t i;
	bool full = false;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		rbx_regions_play(&a->shadows[i], first << regions->page_shift,
				 (end - first) << regions->page_shift);
		full = full || (a->shadows[i].slots_count < regions->slots_count &&
				a->shadows[i].indexed_count + 2 * RBX_REGION_PARTS_MAX > a->shadows[i].slots_count);
	}
	if (a->followed != 2)
		regions->inflation = a->shadows[2].inflation;
	if (full)
		halve(regions);
	if (++a->unseen < LOOK_REQUESTS && !full)
		return;
	a->unseen = 0;
	set_budgets(regions);
	look(regions);
}

/* ---- As a policy ----------------------------------------------------------------*/

static size_t auto_size(uint32_t regions)
{
	size_t size = 0;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		size = RBX_MAX(size, rbx_region_policies[i]->size(regions));
	return size;
}

const struct rbx_region_policy rbx_region_auto = { .name = "auto", .size = auto_size };
