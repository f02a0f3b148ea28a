/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_auto.c - follows the policy that costs least, see region_auto.h.
 *
 * Each shadow has a score, what it has spent. Of the past only about four turnovers count: whenever
 * the policy that is followed has spent what it costs to fill the cache, all scores lose a quarter.
 *
 * Another policy is followed if its score is lower by more than all of this together, the
 * hysteresis:
 *
 *	a 128th of the score     policies that cost nearly the same are not worth a change
 *	8 regions of the sample  in a small sample, a few regions are chance
 *	a 25th of a full cache   a change has a price: the new policy would have kept other
 *	                         regions, and those it registers once more
 *
 * Of several that gain three quarters of the most, the one that comes first in order[] is taken. It
 * has those first that are seldom far from the best: they know sizes, or keep out what is used
 * once.
 *
 * A policy that takes over is not always where its shadow is. The hand of sieve, for one, may go
 * round in a part of the queue that is too small for a loop which the shadow holds. So the cache
 * itself is watched: if it has spent more than its shadow, by what a full cache costs, another
 * policy is followed, whatever the scores are. If the shadow is one of a sample, twice as much
 * counts.
 *
 * At a change no region leaves. The new policy ranks those that are there, by their last use, their
 * uses and their sizes, as if it had always been there (rbx_region_policy.adopt). The inflation is
 * that of the shadow of gdsf, so that gdsf finds what it would have written down.
 */
#include "core/region_auto.h"

#include "core/regions_internal.h"
#include "core/regions_play.h"

#define SAMPLE_ALL ((uint64_t)1 << 32)

/* Requests of the sample between two looks at the scores. */
#define LOOK_REQUESTS 64u

/* The hysteresis. */
#define SCORE_SHARE 128
#define FLOOR_REGIONS 8u
#define FILL_SHARE 25u

/* A gain that may be chance is none: it is more than so many standard deviations, squared, of what
 * looks have differed by. One very large region, which one policy had and another one had not,
 * makes a large difference in one look, and says nothing about the next. */
#define DEVIATIONS_SQUARED 4u

/* What is squared: 16 seconds of one look, half an hour in all. */
#define LOOK_US_MAX ((uint64_t)1 << 24)
#define GAIN_US_MAX ((uint64_t)1 << 31)

/* Of the most gain, in hundredths. */
#define TIE_PERCENT 75

/* A sample may be that wrong about what the cache spends. */
#define SAMPLE_TIMES 2

/* What a score loses at each turnover, which is so many regions at least. */
#define FADE_SHARE 4
#define TURNOVER_REGIONS 1024u

/* Regions that a shadow may take at one request, and before it was looked at. */
#define SPARE_REGIONS (2 * RBX_REGION_PARTS_MAX)

/* The first is followed at first. */
static const uint32_t order[RBX_REGION_POLICIES] = { RBX_REGION_GDSF, RBX_REGION_S3FIFO,
						     RBX_REGION_SIEVE, RBX_REGION_MRE,
						     RBX_REGION_LRU };

static struct rbx_regions_shape shadow_shape(const struct rbx_regions_shape *shape, uint32_t i)
{
	struct rbx_regions_shape shadow = *shape;

	shadow.policy = rbx_region_policies[i];
	shadow.regions_max = RBX_MIN(shape->regions_max, RBX_REGION_SHADOW_REGIONS + SPARE_REGIONS);
	return shadow;
}

size_t rbx_region_auto_size(const struct rbx_regions_shape *shape)
{
	size_t size = rbx_regions_rounded(sizeof(struct rbx_region_auto));
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
	struct rbx_region_auto *automatic = memory;
	char *at = (char *)memory + rbx_regions_rounded(sizeof(*automatic));
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		struct rbx_regions_shape shadow = shadow_shape(shape, i);
		int err = rbx_regions_init(&automatic->shadows[i], &shadow, at);

		RBX_ASSERT(!err);
		at += rbx_regions_size(&shadow);
	}
	regions->automatic = automatic;
	regions->sample_limit = SAMPLE_ALL;
	automatic->followed = order[0];
	regions->policy = rbx_region_policies[automatic->followed];
}

/* ---- The sample -----------------------------------------------------------------*/

/* Shadows have their part of the budgets, also after these have shrunk. */
static void set_budgets(struct rbx_regions *regions)
{
	struct rbx_region_auto *automatic = regions->automatic;
	uint64_t bytes_max = (regions->pages_max << RBX_REGION_PAGE_SHIFT) >> automatic->halvings;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		rbx_regions_set_budgets(&automatic->shadows[i], bytes_max,
					regions->regions_max >> automatic->halvings);
}

static void retire_all(struct rbx_regions *shadow)
{
	uint32_t batch[RBX_REGION_BATCH_MAX], count;

	while ((count = rbx_regions_batch(shadow, batch, RBX_REGION_BATCH_MAX)))
		rbx_regions_retired(shadow, batch, count);
}

/* What the sample does not have any more leaves the shadow, for nothing. */
static void thin(struct rbx_regions *shadow, uint64_t sample_limit)
{
	const struct rbx_regions_counters counters = shadow->counters;
	uint32_t i;

	for (i = 0; i < shadow->slots_count; i++)
		if (rbx_region_is_indexed(rbx_regions_at(shadow, i)) &&
		    rbx_region_auto_hash(rbx_regions_at(shadow, i)->first) >= sample_limit)
			rbx_regions_drop(shadow, i);
	retire_all(shadow);
	shadow->counters = counters;
}

static void halve(struct rbx_regions *regions)
{
	uint32_t i;

	regions->sample_limit /= 2;
	regions->automatic->halvings++;
	for (i = 0; i < RBX_REGION_POLICIES; i++)
		thin(&regions->automatic->shadows[i], regions->sample_limit);
	set_budgets(regions);
}

/* Without a place for what the next request may bring; but not because the budget is as small. */
static bool is_full(const struct rbx_regions *regions, const struct rbx_regions *shadow)
{
	return shadow->slots_count < regions->slots_count &&
	       shadow->indexed_count + SPARE_REGIONS > shadow->slots_count;
}

/* ---- Scores ---------------------------------------------------------------------*/

/* Returns what the one that is followed has spent since the last look. */
static uint64_t add_up(struct rbx_region_auto *automatic)
{
	uint64_t more[RBX_REGION_POLICIES], followed_ns;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		uint64_t spent_ns = automatic->shadows[i].counters.spent_ns;
		uint64_t more_ns = (spent_ns - automatic->spent_ns[i]) << automatic->halvings;

		automatic->spent_ns[i] = spent_ns;
		automatic->scores_ns[i] += more_ns;
		more[i] = more_ns;
	}
	followed_ns = more[automatic->followed];
	automatic->turnover_ns += followed_ns;
	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		uint64_t us =
			(RBX_MAX(more[i], followed_ns) - RBX_MIN(more[i], followed_ns)) / 1024;

		us = RBX_MIN(us, LOOK_US_MAX);
		automatic->noise_us2[i] += us * us;
	}
	return followed_ns;
}

/* Of the cache itself, since the last change. Before the first one it is where its shadow is. */
static void watch(struct rbx_regions *regions, uint64_t followed_ns)
{
	struct rbx_region_auto *automatic = regions->automatic;
	uint64_t more_ns = regions->counters.spent_ns - automatic->cache_ns;

	automatic->cache_ns = regions->counters.spent_ns;
	if (!regions->counters.switches)
		return;
	automatic->excess_ns += more_ns;
	if (automatic->halvings)
		followed_ns *= SAMPLE_TIMES;
	automatic->excess_ns -= RBX_MIN(automatic->excess_ns, followed_ns);
}

static uint64_t region_ns(const struct rbx_regions *regions)
{
	return (uint64_t)regions->cost.register_call_ns + regions->cost.deregister_call_ns;
}

/* What it costs to register all that the cache has, and to deregister it. */
static uint64_t fill_ns(const struct rbx_regions *regions)
{
	return regions->pages_held * ((uint64_t)regions->cost.register_page_ns +
				     regions->cost.deregister_page_ns) +
	       regions->indexed_count * region_ns(regions);
}

/* What it would have saved; 0 if that may be chance. */
static int64_t gain_of(const struct rbx_region_auto *automatic, uint32_t i)
{
	int64_t gain_ns =
		(int64_t)(automatic->scores_ns[automatic->followed] - automatic->scores_ns[i]);
	uint64_t gain_us = gain_ns > 0 ? RBX_MIN((uint64_t)gain_ns / 1024, GAIN_US_MAX) : 0;

	return gain_us * gain_us > DEVIATIONS_SQUARED * automatic->noise_us2[i] ? gain_ns : 0;
}

/* The one with the lowest score but for the one that is followed. */
static uint32_t best_other(const struct rbx_region_auto *automatic)
{
	uint32_t best = RBX_REGION_POLICIES, i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		if (order[i] != automatic->followed &&
		    (best == RBX_REGION_POLICIES ||
		     automatic->scores_ns[order[i]] < automatic->scores_ns[best]))
			best = order[i];
	return best;
}

/* The one to follow: another one only if it gains more than a change may cost. */
static uint32_t choose(const struct rbx_regions *regions)
{
	const struct rbx_region_auto *automatic = regions->automatic;
	int64_t most = 0, price;
	uint32_t i;

	if (automatic->excess_ns > fill_ns(regions))
		return best_other(automatic);
	for (i = 0; i < RBX_REGION_POLICIES; i++)
		most = RBX_MAX(most, gain_of(automatic, i));
	price = (int64_t)(automatic->scores_ns[automatic->followed] / SCORE_SHARE +
			  (FLOOR_REGIONS * region_ns(regions) << automatic->halvings) +
			  fill_ns(regions) / FILL_SHARE);
	if (most <= price)
		return automatic->followed;
	for (i = 0; gain_of(automatic, order[i]) < most / 100 * TIE_PERCENT;)
		i++;
	return order[i];
}

/* A small cache is filled so often that each time says nothing. */
static uint64_t turnover_ns(const struct rbx_regions *regions)
{
	uint64_t times = RBX_MAX(TURNOVER_REGIONS / RBX_MAX(regions->indexed_count, 1u), 1u);

	return fill_ns(regions) * times;
}

static void fade(struct rbx_regions *regions)
{
	struct rbx_region_auto *automatic = regions->automatic;
	uint32_t i;

	if (automatic->turnover_ns <= turnover_ns(regions))
		return;
	automatic->turnover_ns = 0;
	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		automatic->scores_ns[i] -= automatic->scores_ns[i] / FADE_SHARE;
		automatic->noise_us2[i] -= automatic->noise_us2[i] / FADE_SHARE;
	}
}

static void look(struct rbx_regions *regions)
{
	struct rbx_region_auto *automatic = regions->automatic;
	uint32_t chosen;

	automatic->unseen = 0;
	set_budgets(regions);
	watch(regions, add_up(automatic));
	chosen = choose(regions);
	if (chosen != automatic->followed) {
		automatic->followed = chosen;
		automatic->excess_ns = 0;
		regions->counters.switches++;
		rbx_regions_follow(regions, rbx_region_policies[chosen]);
	}
	fade(regions);
}

RBX_APART void rbx_region_auto_observe(struct rbx_regions *regions, uint64_t first, uint64_t end,
				       uint64_t mapping_bytes)
{
	struct rbx_region_auto *automatic = regions->automatic;
	bool full = false;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		if (!rbx_regions_play_pages(&automatic->shadows[i], first, end, mapping_bytes))
			full = full || is_full(regions, &automatic->shadows[i]);
	/* It never falls, as keys of gdsf only grow. */
	if (automatic->followed != RBX_REGION_GDSF)
		regions->inflation =
			RBX_MAX(regions->inflation, automatic->shadows[RBX_REGION_GDSF].inflation);
	if (++automatic->unseen == LOOK_REQUESTS || full)
		look(regions);
	if (full)
		halve(regions);
}

void rbx_region_auto_change(struct rbx_regions *regions, uint64_t first, uint64_t end)
{
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++) {
		struct rbx_regions *shadow = &regions->automatic->shadows[i];

		rbx_regions_drop_range(shadow, first, end);
		retire_all(shadow);
	}
}

/* ---- As a policy ----------------------------------------------------------------*/

/* Room for each of them, one at a time. */
static size_t auto_size(uint32_t regions)
{
	size_t size = 0;
	uint32_t i;

	for (i = 0; i < RBX_REGION_POLICIES; i++)
		size = RBX_MAX(size, rbx_region_policies[i]->size(regions));
	return size;
}

const struct rbx_region_policy rbx_region_auto = { .name = "auto", .size = auto_size };
