/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions_model_test.c - thousands of steps at random with each policy, beside a plain list.
 *
 * The host of this test holds several requests at a time, registers late, is refused, changes
 * memory that is in use, and deregisters when it likes. After each step the list of what the system
 * has registered, and who uses it, is compared with the cache.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "regions_small.h"

#define SPACE 400u /* pages */
#define PAGES_MAX 90u
#define REGIONS_MAX 20u
#define USES 6u
#define STEPS 8000u

/* A region as the system and the program see it; its place is its slot. */
struct known {
	uint64_t first;
	uint32_t pages;
	uint32_t references; /* of the requests under way */
	uint64_t cookie; /* tells it from the next region of its slot; 0: not registered */
	bool exists;
	bool is_promised;
	bool is_changed; /* its memory changed: no later request may get it */
	bool is_leaving; /* seen outside of the index */
};

struct world {
	struct small small;
	struct rbx_random random;
	struct known known[REGIONS_MAX];
	struct rbx_region_use uses[USES];
	enum { IDLE, WAITS, RUNS } states[USES];
	uint32_t batch[RBX_REGION_BATCH_MAX];
	uint32_t batch_count;
	uint64_t cookies;
};

static uint32_t below(struct world *world, uint32_t limit)
{
	return rbx_random_below(&world->random, limit);
}

/* ---- The cache and the list agree -----------------------------------------------*/

static void check_region(struct world *world, uint32_t slot, uint8_t *owners)
{
	const struct rbx_cached_region *region = &world->small.regions.slots[slot];
	struct known *known = &world->known[slot];

	assert_int_equal(known->exists, region->state != RBX_REGION_FREE);
	if (!known->exists)
		return;
	assert_int_equal(region->first, known->first);
	assert_int_equal(region->pages, known->pages);
	if (known->cookie)
		assert_int_equal(region->cookie, known->cookie);
	assert_int_equal(region->references, known->references);
	if (!rbx_region_is_indexed(region)) {
		/* One in use leaves only if its memory changes. */
		assert_true(known->is_leaving || known->is_changed || !known->references);
		known->is_leaving = true;
		return;
	}
	assert_false(known->is_leaving || known->is_changed);
	assert_int_equal(region->state == RBX_REGION_PROMISED, known->is_promised);
	for (uint64_t page = region->first; page < rbx_region_end(region); page++)
		assert_int_equal(owners[page]++, 0);
}

static void check(struct world *world)
{
	const struct rbx_regions *regions = &world->small.regions;
	uint8_t owners[SPACE + 1] = { 0 };
	uint64_t pages = 0, used_pages = 0;
	uint32_t count = 0, used = 0;

	for (uint32_t slot = 0; slot < REGIONS_MAX; slot++) {
		const struct known *known = &world->known[slot];

		check_region(world, slot, owners);
		if (!known->exists)
			continue;
		pages += known->pages;
		count++;
		if (known->references && rbx_region_is_indexed(&regions->slots[slot])) {
			used_pages += known->pages;
			used++;
		}
	}
	assert_int_equal(regions->pages_held, pages);
	assert_int_equal(regions->regions_held, count);
	assert_int_equal(regions->used_pages, used_pages);
	assert_int_equal(regions->used_count, used);
	assert_in_range(pages, 0, PAGES_MAX);
	for (uint64_t page = 0; page < SPACE; page++)
		assert_int_equal(small_has(&world->small, page), owners[page]);
}

/* ---- Steps ----------------------------------------------------------------------*/

static void reference(struct world *world, const struct rbx_region_use *use, uint32_t from)
{
	for (uint32_t i = from; i < use->count; i++) {
		const struct rbx_cached_region *region = small_part(&world->small, use, i);
		struct known *known = &world->known[use->parts[i]];

		if (use->fresh >> i & 1) {
			assert_false(known->exists);
			*known = (struct known){
				.first = region->first,
				.pages = region->pages,
				.exists = true,
				.is_promised = true,
			};
		}
		assert_true(known->exists && !known->is_changed && !known->is_leaving);
		known->references++;
	}
}

/* All of the request, and nothing twice. */
static void covers(const struct world *world, const struct rbx_region_use *use)
{
	uint64_t page = use->first;

	for (uint32_t i = 0; i < use->count; i++) {
		assert_true(small_part(&world->small, use, i)->first <= page);
		assert_true(rbx_region_end(small_part(&world->small, use, i)) > page);
		page = rbx_region_end(small_part(&world->small, use, i));
	}
	assert_true(page >= use->end);
}

static void unreference(struct world *world, const struct rbx_region_use *use)
{
	for (uint32_t i = 0; i < use->count; i++) {
		struct known *known = &world->known[use->parts[i]];

		assert_true(known->exists && known->references);
		known->references--;
	}
}

/* A region that was refused goes without the system, when nobody refers to it. */
static void forget_refused(struct world *world)
{
	for (uint32_t slot = 0; slot < REGIONS_MAX; slot++) {
		struct known *known = &world->known[slot];

		if (known->exists && known->is_promised && !known->references)
			known->exists = false;
	}
}

static void acquired(struct world *world, uint32_t i, int err, const struct rbx_region_use *before)
{
	struct rbx_region_use *use = &world->uses[i];

	unreference(world, before);
	forget_refused(world);
	world->states[i] = err == -EAGAIN ? WAITS : err ? IDLE : RUNS;
	if (err == -ENOBUFS) {
		assert_int_equal(use->count, 0);
		return;
	}
	reference(world, use, 0);
	if (!err)
		covers(world, use);
}

static void acquire(struct world *world, uint32_t i)
{
	const struct rbx_region_use before = { 0 };
	uint64_t page = below(world, SPACE - 30),
		 pages = 1 + below(world, below(world, 4) ? 8 : 30);
	uint64_t mapping = below(world, 4) ? 0 : 8 * PAGE;

	acquired(world, i, rbx_regions_acquire(&world->small.regions, &world->uses[i], page * PAGE,
					       pages * PAGE, mapping), &before);
}

static void acquire_again(struct world *world, uint32_t i)
{
	const struct rbx_region_use before = world->uses[i];

	acquired(world, i, rbx_regions_again(&world->small.regions, &world->uses[i]), &before);
}

/* What is registered stays within the budget that a refusal leaves, and no budget grows by one. */
static void refuse(struct world *world, uint32_t slot)
{
	struct rbx_regions *regions = &world->small.regions;
	enum rbx_region_short lacks = (enum rbx_region_short)below(world, 3);
	uint64_t pages = 0, pages_max = regions->pages_max;
	uint32_t count = 0, regions_max = regions->regions_max;
	bool again = rbx_regions_refused(regions, slot, lacks);

	for (uint32_t i = 0; i < REGIONS_MAX; i++)
		if (world->known[i].exists && world->known[i].cookie) {
			pages += world->known[i].pages;
			count++;
		}
	if (lacks == RBX_REGION_SHORT_OF_BYTES)
		pages_max = RBX_MIN(pages_max, RBX_MAX(pages, 1ull));
	if (lacks == RBX_REGION_SHORT_OF_REGIONS)
		regions_max = RBX_MIN(regions_max, RBX_MAX(count, 1u));
	assert_int_equal(regions->pages_max, pages_max);
	assert_int_equal(regions->regions_max, regions_max);
	assert_int_equal(again, lacks != RBX_REGION_SHORT_OF_NOTHING &&
					(rbx_regions_idle(regions) || regions->due_count));
	/* Most shortages pass at once, and the others by and by. */
	if (below(world, 4))
		rbx_regions_set_budgets(regions, PAGES_MAX * PAGE, REGIONS_MAX);
}

static bool registers(struct world *world, struct rbx_region_use *use)
{
	for (uint32_t i = 0; i < use->count; i++) {
		struct known *known = &world->known[use->parts[i]];

		if (!(use->fresh >> i & 1))
			continue;
		use->fresh &= ~((uint64_t)1 << i);
		if (!below(world, 12)) {
			refuse(world, use->parts[i]);
			known->is_changed = true;
			return true;
		}
		known->cookie = ++world->cookies;
		rbx_regions_registered(&world->small.regions, use->parts[i], known->cookie);
		known->is_promised = false;
		return true;
	}
	return false;
}

static void release(struct world *world, uint32_t i)
{
	const struct rbx_region_use before = world->uses[i];

	if (world->states[i] == WAITS)
		rbx_regions_give_up(&world->small.regions, &world->uses[i]);
	else
		rbx_regions_release(&world->small.regions, &world->uses[i]);
	unreference(world, &before);
	forget_refused(world);
	world->states[i] = IDLE;
}

static void change_memory(struct world *world)
{
	uint64_t page = below(world, SPACE - 10), pages = 1 + below(world, 10);

	if (!below(world, 4))
		rbx_regions_set_budgets(&world->small.regions, PAGES_MAX * PAGE, REGIONS_MAX);
	rbx_regions_invalidate(&world->small.regions, page * PAGE + 1, pages * PAGE - 1);
	for (uint32_t slot = 0; slot < REGIONS_MAX; slot++) {
		struct known *known = &world->known[slot];

		if (known->exists && known->first < page + pages &&
		    known->first + known->pages > page)
			known->is_changed = true;
	}
}

static void retire(struct world *world)
{
	struct rbx_regions *regions = &world->small.regions;

	if (!world->batch_count) {
		world->batch_count = rbx_regions_batch(regions, world->batch, 1 + below(world, 8));
		return;
	}
	for (uint32_t i = 0; i < world->batch_count; i++) {
		struct known *known = &world->known[world->batch[i]];

		assert_true(known->exists && !known->references && !known->is_promised);
		known->exists = false;
	}
	rbx_regions_retired(regions, world->batch, world->batch_count);
	world->batch_count = 0;
}

static void step(struct world *world)
{
	uint32_t i = below(world, USES), what = below(world, 10);

	if (what < 3)
		retire(world);
	else if (what == 3 && !below(world, 4))
		change_memory(world);
	else if (world->states[i] == IDLE)
		acquire(world, i);
	else if (world->states[i] == WAITS && below(world, 10))
		acquire_again(world, i);
	else if (world->states[i] == WAITS || !registers(world, &world->uses[i]))
		release(world, i);
}

static void all_steps(const struct rbx_region_policy *policy, uint32_t seed)
{
	struct world world = { 0 };

	rbx_random_seed(&world.random, seed);
	small_make(&world.small, policy, PAGES_MAX, REGIONS_MAX);
	for (uint32_t i = 0; i < STEPS; i++) {
		step(&world);
		check(&world);
	}
	/* It did what was to be tried. */
	assert_true(world.small.regions.counters.hits > STEPS / 200);
	assert_true(world.small.regions.counters.partial_hits > STEPS / 200);
	assert_true(world.small.regions.counters.deregistrations > STEPS / 20);
	small_free(&world.small);
}

static void each_policy_keeps_the_promises_of_the_cache(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 3; seed++) {
		for (uint32_t i = 0; i < RBX_REGION_POLICIES; i++)
			all_steps(rbx_region_policies[i], seed);
		all_steps(&rbx_region_auto, seed);
	}
}

/* Changes of the policy among all of that. */
static void policies_take_over_from_each_other_at_any_time(void **state)
{
	struct world world = { 0 };

	(void)state;
	rbx_random_seed(&world.random, 9);
	small_make(&world.small, &rbx_region_auto, PAGES_MAX, REGIONS_MAX);
	for (uint32_t i = 0; i < STEPS; i++) {
		if (!below(&world, 50))
			rbx_regions_follow(&world.small.regions,
					   rbx_region_policies[below(&world, RBX_REGION_POLICIES)]);
		step(&world);
		check(&world);
	}
	small_free(&world.small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_policy_keeps_the_promises_of_the_cache),
		cmocka_unit_test(policies_take_over_from_each_other_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
