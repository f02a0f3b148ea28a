/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * regions.c - requests and their regions, see regions.h.
 *
 * A request that is no hit first asks what it lacks, which changes nothing. If that can never fit
 * beside what is in use, the request fails, and the cache is as before. If it fits now, all of it
 * is promised at once. Otherwise the request takes references of what is known, so that none of it
 * is retired for the rest, and the policy names victims until there would be enough room without
 * them. Once the host has deregistered them it asks again, as things may have changed meanwhile.
 */
#include "core/regions.h"

#include "core/region_auto.h"

/* Regions that leave beyond what is needed, so that a large cache has batches: one in so many
 * regions, and at most as many as half a batch. */
#define AHEAD_SHARE 1024u
#define AHEAD_MAX (RBX_REGION_BATCH_MAX / 2)

/* A refusal may pass: after so many requests that were not hits, a budget that it has shrunk grows
 * by a share of what it was at first. */
#define GROW_MISSES 1024u
#define GROW_SHARE 16u

/* What a request lacks, and what it has to hold for that. */
struct lack {
	uint64_t pages; /* to be promised; TOO_MANY: no region can have as many */
	uint32_t count;
	uint32_t known; /* parts that are there */
	uint64_t idle_pages; /* of these: what no request uses yet */
	uint32_t idle_count;
	uint64_t rest; /* page from which on all becomes one region; the request's end: none */
};
#define TOO_MANY ((uint64_t)1 << 56)

/* A part of a request: what a region has of it, or a gap between regions. */
struct piece {
	uint64_t first;
	uint64_t end;
	uint32_t slot; /* RBX_REGION_NONE: a gap */
	bool is_rest; /* all that is left of the request, whatever regions are there */
};

/* ---- A region's life ------------------------------------------------------------*/

static void hold(struct rbx_regions *regions, uint64_t pages)
{
	regions->pages_held += pages;
	regions->regions_held++;
	if (regions->pages_held > regions->pages_held_max)
		regions->pages_held_max = regions->pages_held;
	RBX_DEBUG_ASSERT(regions->pages_held <= regions->pages_max);
	RBX_DEBUG_ASSERT(regions->regions_held <= regions->regions_max);
}

static uint32_t promise(struct rbx_regions *regions, const struct piece *gap)
{
	uint32_t slot = regions->free_first;
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(slot != RBX_REGION_NONE && region->state == RBX_REGION_FREE);
	RBX_ASSERT(gap->end > gap->first && gap->end - gap->first <= UINT32_MAX);
	regions->free_first = region->next;
	region->first = gap->first;
	region->pages = (uint32_t)(gap->end - gap->first);
	region->references = 0;
	region->uses = 0;
	region->seen = 0;
	region->state = RBX_REGION_PROMISED;
	region->is_registered = false;
	hold(regions, region->pages);
	rbx_region_index_add(&regions->index, region->first, slot);
	regions->indexed_count++;
	return slot;
}

static void slot_free(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(!region->references);
	regions->pages_held -= region->pages;
	regions->regions_held--;
	region->state = RBX_REGION_FREE;
	region->next = regions->free_first;
	regions->free_first = slot;
}

static void become_due(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	region->state = RBX_REGION_DUE;
	region->next = regions->due_first;
	regions->due_first = slot;
	regions->due_count++;
	regions->due_pages += region->pages;
}

void rbx_regions_drop(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(rbx_region_is_indexed(region));
	rbx_region_index_remove(&regions->index, region->first);
	regions->policy->remove(regions, slot);
	regions->indexed_count--;
	if (!region->references) {
		become_due(regions, slot);
		return;
	}
	region->state = RBX_REGION_GONE;
	regions->used_count--;
	regions->used_pages -= region->pages;
	regions->gone_count++;
	regions->gone_pages += region->pages;
}

/* Each region of a request has a reference, so that it is not retired. */
static inline void reference(struct rbx_regions *regions, struct rbx_region *region)
{
	if (!region->references++) {
		regions->used_count++;
		regions->used_pages += region->pages;
	}
	rbx_region_touch(regions, region);
}

/* The last reference of a region that is not in the index any more. */
RBX_RARE static void gone_unused(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(region->state == RBX_REGION_GONE);
	regions->gone_count--;
	regions->gone_pages -= region->pages;
	if (region->is_registered)
		become_due(regions, slot);
	else
		slot_free(regions, slot);
}

static inline void unreference(struct rbx_regions *regions, uint32_t slot)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_DEBUG_ASSERT(region->references);
	if (--region->references)
		return;
	if (region->state != RBX_REGION_READY) {
		gone_unused(regions, slot);
		return;
	}
	regions->used_count--;
	regions->used_pages -= region->pages;
}

void rbx_regions_registered(struct rbx_regions *regions, uint32_t slot, uint64_t cookie)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(!region->is_registered && region->references);
	region->cookie = cookie;
	region->is_registered = true;
	/* Unless its memory has changed meanwhile. */
	if (region->state == RBX_REGION_PROMISED)
		region->state = RBX_REGION_READY;
	regions->registered_pages += region->pages;
	regions->registered_count++;
	regions->counters.registrations++;
	regions->counters.spent_ns += rbx_region_register_ns(&regions->cost, region->pages);
}

bool rbx_regions_refused(struct rbx_regions *regions, uint32_t slot, enum rbx_region_short lacks)
{
	struct rbx_region *region = rbx_regions_at(regions, slot);

	RBX_ASSERT(!region->is_registered && region->references);
	if (region->state == RBX_REGION_PROMISED)
		rbx_regions_drop(regions, slot);
	if (lacks == RBX_REGION_SHORT_OF_NOTHING)
		return false;
	if (lacks == RBX_REGION_SHORT_OF_BYTES)
		regions->pages_max = RBX_MIN(regions->pages_max,
					     RBX_MAX(regions->registered_pages, (uint64_t)1));
	else
		regions->regions_max = RBX_MIN(regions->regions_max,
					       RBX_MAX(regions->registered_count, 1u));
	regions->misses_since_refusal = 0;
	return rbx_regions_idle(regions) || regions->due_count;
}

/* ---- Leaving --------------------------------------------------------------------*/

uint32_t rbx_regions_batch(struct rbx_regions *regions, uint32_t *batch, uint32_t count_max)
{
	uint32_t count;

	for (count = 0; count < count_max && regions->due_first != RBX_REGION_NONE; count++) {
		struct rbx_region *region = rbx_regions_at(regions, regions->due_first);

		RBX_ASSERT(region->state == RBX_REGION_DUE && !region->references);
		batch[count] = regions->due_first;
		regions->due_first = region->next;
		region->state = RBX_REGION_LEAVING;
	}
	return count;
}

void rbx_regions_retired(struct rbx_regions *regions, const uint32_t *batch, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct rbx_region *region = rbx_regions_at(regions, batch[i]);

		RBX_ASSERT(region->state == RBX_REGION_LEAVING);
		regions->due_count--;
		regions->due_pages -= region->pages;
		regions->registered_pages -= region->pages;
		regions->registered_count--;
		regions->counters.deregistrations++;
		regions->counters.spent_ns +=
			rbx_region_deregister_ns(&regions->cost, region->pages);
		slot_free(regions, batch[i]);
	}
}

/* The first region of the index that touches a range, or RBX_REGION_NONE. */
static uint32_t first_in(const struct rbx_regions *regions, uint64_t first, uint64_t end)
{
	uint32_t slot = rbx_region_index_at(&regions->index, first);

	if (slot != RBX_REGION_NONE && rbx_region_end(rbx_regions_at(regions, slot)) > first)
		return slot;
	slot = rbx_region_index_from(&regions->index, first);
	if (slot != RBX_REGION_NONE && rbx_regions_at(regions, slot)->first < end)
		return slot;
	return RBX_REGION_NONE;
}

void rbx_regions_drop_range(struct rbx_regions *regions, uint64_t first, uint64_t end)
{
	uint32_t slot;

	while ((slot = first_in(regions, first, end)) != RBX_REGION_NONE)
		rbx_regions_drop(regions, slot);
}

void rbx_regions_invalidate(struct rbx_regions *regions, uint64_t addr, uint64_t length)
{
	uint64_t first = addr >> regions->page_shift, last = addr + length - 1, end;

	/* Rather too much than too little. */
	if (last < addr)
		last = UINT64_MAX;
	if (!length)
		return;
	end = (last >> regions->page_shift) + 1;
	rbx_regions_drop_range(regions, first, end);
	if (regions->automatic)
		rbx_region_auto_change(regions, first, end);
}

void rbx_regions_clear(struct rbx_regions *regions)
{
	rbx_regions_drop_range(regions, 0, UINT64_MAX);
}

/* ---- Room -----------------------------------------------------------------------*/

static bool fits(const struct rbx_regions *regions, uint64_t pages, uint32_t count)
{
	return pages <= regions->pages_max && count <= regions->regions_max;
}

/* Whether it could be promised if all left that can. */
static bool could_fit(const struct rbx_regions *regions, const struct lack *lack)
{
	return fits(regions,
		    regions->used_pages + regions->gone_pages + lack->idle_pages + lack->pages,
		    regions->used_count + regions->gone_count + lack->idle_count + lack->count);
}

static bool fits_now(const struct rbx_regions *regions, const struct lack *lack)
{
	return fits(regions, regions->pages_held + lack->pages,
		    regions->regions_held + lack->count);
}

static bool fits_after_batch(const struct rbx_regions *regions, const struct lack *lack)
{
	return fits(regions, regions->pages_held - regions->due_pages + lack->pages,
		    regions->regions_held - regions->due_count + lack->count);
}

static void retire_one(struct rbx_regions *regions)
{
	uint32_t victim = regions->policy->victim(regions);

	RBX_ASSERT(victim != RBX_REGION_NONE && !rbx_regions_at(regions, victim)->references);
	rbx_regions_drop(regions, victim);
}

/* Takes the policy's victims out of the index until there is room once they are deregistered. */
static void make_room(struct rbx_regions *regions, const struct lack *lack)
{
	const struct rbx_region_policy *policy = regions->policy;
	uint32_t ahead = RBX_MIN(regions->indexed_count / AHEAD_SHARE, AHEAD_MAX);

	if (fits_after_batch(regions, lack))
		return;
	if (policy->full)
		policy->full(regions, regions->pages_held - regions->due_pages + lack->pages <=
					      regions->pages_max);
	while (!fits_after_batch(regions, lack))
		retire_one(regions);
	while (rbx_regions_idle(regions) &&
	       (policy->wants_more ? policy->wants_more(regions) : ahead)) {
		retire_one(regions);
		ahead -= !policy->wants_more;
	}
}

/* ---- Parts of a request ---------------------------------------------------------*/

static void part_put(struct rbx_region_use *use, uint32_t at, uint32_t slot, bool is_fresh)
{
	uint64_t below = use->fresh & (((uint64_t)1 << at) - 1);
	uint32_t i;

	RBX_ASSERT(use->count < RBX_REGION_PARTS_MAX);
	for (i = use->count; i > at; i--)
		use->parts[i] = use->parts[i - 1];
	use->parts[at] = slot;
	use->count++;
	use->fresh = below | (uint64_t)is_fresh << at | (use->fresh ^ below) << 1;
}

static uint32_t covering(const struct rbx_regions *regions, uint64_t page)
{
	uint32_t slot = rbx_region_index_at(&regions->index, page);

	return slot != RBX_REGION_NONE && page < rbx_region_end(rbx_regions_at(regions, slot)) ?
		       slot : RBX_REGION_NONE;
}

/* The gap between regions at this page, as far as the request goes, and from there to the borders
 * of the pages that map it. */
static struct piece gap_at(const struct rbx_regions *regions, const struct rbx_region_use *use,
			   uint64_t page)
{
	uint64_t last_page = use->mapping_pages - 1;
	struct piece gap = { page & ~last_page, (use->end + last_page) & ~last_page,
			     RBX_REGION_NONE, false };
	uint32_t before = rbx_region_index_at(&regions->index, page);
	uint32_t behind = rbx_region_index_from(&regions->index, page);

	if (before != RBX_REGION_NONE)
		gap.first = RBX_MAX(gap.first, rbx_region_end(rbx_regions_at(regions, before)));
	if (behind != RBX_REGION_NONE)
		gap.end = RBX_MIN(gap.end, rbx_regions_at(regions, behind)->first);
	/* A region's pages are 32 bits. */
	gap.end = RBX_MIN(gap.end, gap.first + UINT32_MAX);
	return gap;
}

/* The part of a request that begins at this page; it has so many before. The last one that it may
 * have is all that is left. */
static struct piece piece_at(const struct rbx_regions *regions, const struct rbx_region_use *use,
			     uint64_t page, uint32_t before)
{
	uint32_t slot = covering(regions, page);
	struct piece piece;

	if (slot == RBX_REGION_NONE)
		piece = gap_at(regions, use, page);
	else
		piece = (struct piece){ page, rbx_region_end(rbx_regions_at(regions, slot)), slot,
					false };
	if (piece.end < use->end && before + 1 == RBX_REGION_PARTS_MAX)
		piece = (struct piece){ page, use->end, RBX_REGION_NONE, true };
	return piece;
}

/* What a request lacks. Nothing changes. */
static struct lack ask(const struct rbx_regions *regions, const struct rbx_region_use *use)
{
	struct lack lack = { .rest = use->end };
	uint64_t page = use->first;
	uint32_t parts;

	for (parts = 0; page < use->end; parts++) {
		const struct piece piece = piece_at(regions, use, page, parts);
		uint64_t pages = piece.end - piece.first;

		page = piece.end;
		if (piece.slot == RBX_REGION_NONE) {
			lack.pages += pages <= UINT32_MAX ? pages : TOO_MANY;
			lack.count++;
			if (piece.is_rest)
				lack.rest = piece.first;
			continue;
		}
		lack.known++;
		if (!rbx_regions_at(regions, piece.slot)->references) {
			lack.idle_pages += rbx_regions_at(regions, piece.slot)->pages;
			lack.idle_count++;
		}
	}
	return lack;
}

/* Takes a reference of each region that the request knows, if it has none yet. Regions in its rest
 * leave the index. create: promises the gaps and the rest. */
static void take(struct rbx_regions *regions, struct rbx_region_use *use, bool create)
{
	uint64_t page = use->first;
	uint32_t at = 0, parts;

	for (parts = 0; page < use->end; parts++) {
		struct piece piece = piece_at(regions, use, page, parts);
		bool is_gap = piece.slot == RBX_REGION_NONE;

		page = piece.end;
		if (piece.is_rest)
			rbx_regions_drop_range(regions, piece.first, piece.end);
		if (is_gap && !create)
			continue;
		if (is_gap)
			piece.slot = promise(regions, &piece);
		if (is_gap || at == use->count || use->parts[at] != piece.slot) {
			reference(regions, rbx_regions_at(regions, piece.slot));
			part_put(use, at, piece.slot, is_gap);
		}
		if (is_gap)
			regions->policy->admit(regions, piece.slot);
		at++;
	}
}

RBX_APART static void release_parts(struct rbx_regions *regions, struct rbx_region_use *use)
{
	while (use->count)
		unreference(regions, use->parts[--use->count]);
}

/* Parts whose memory changed while the request waited. */
static void release_gone(struct rbx_regions *regions, struct rbx_region_use *use)
{
	uint32_t kept = 0, i;

	for (i = 0; i < use->count; i++)
		if (rbx_region_is_indexed(rbx_regions_at(regions, use->parts[i])))
			use->parts[kept++] = use->parts[i];
		else
			unreference(regions, use->parts[i]);
	use->count = kept;
}

/* Parts from this page on: they do not stay parts. */
static void release_rest(struct rbx_regions *regions, struct rbx_region_use *use, uint64_t rest)
{
	while (use->count && rbx_regions_at(regions, use->parts[use->count - 1])->first >= rest)
		unreference(regions, use->parts[--use->count]);
}

static struct lack ask_again(struct rbx_regions *regions, struct rbx_region_use *use)
{
	struct lack lack = ask(regions, use);

	release_rest(regions, use, lack.rest);
	return lack;
}

/* Nothing that others could use leaves before it is known that the request can be served. */
int rbx_regions_again(struct rbx_regions *regions, struct rbx_region_use *use)
{
	struct lack lack;

	release_gone(regions, use);
	lack = ask_again(regions, use);
	if (!could_fit(regions, &lack) && use->mapping_pages > 1) {
		use->mapping_pages = 1;
		lack = ask_again(regions, use);
	}
	if (!could_fit(regions, &lack)) {
		release_parts(regions, use);
		regions->counters.staged++;
		return -ENOBUFS;
	}
	if (!fits_now(regions, &lack)) {
		take(regions, use, false);
		make_room(regions, &lack);
		return -EAGAIN;
	}
	take(regions, use, true);
	return 0;
}

static void grow(struct rbx_regions *regions)
{
	if (regions->pages_max == regions->pages_limit &&
	    regions->regions_max == regions->regions_limit)
		return;
	if (++regions->misses_since_refusal < GROW_MISSES)
		return;
	regions->misses_since_refusal = 0;
	regions->pages_max = RBX_MIN(regions->pages_limit,
				     regions->pages_max + regions->pages_limit / GROW_SHARE + 1);
	regions->regions_max =
		RBX_MIN(regions->regions_limit,
			regions->regions_max + regions->regions_limit / GROW_SHARE + 1);
}

static int acquire_parts(struct rbx_regions *regions, struct rbx_region_use *use)
{
	struct lack lack;

	use->count = 0;
	use->fresh = 0;
	lack = ask(regions, use);
	if (!lack.count) {
		take(regions, use, false);
		regions->counters.hits++;
		return 0;
	}
	if (lack.known)
		regions->counters.partial_hits++;
	else
		regions->counters.misses++;
	grow(regions);
	return rbx_regions_again(regions, use);
}

static inline int hit(struct rbx_regions *regions, struct rbx_region_use *use, uint32_t slot)
{
	reference(regions, rbx_regions_at(regions, slot));
	use->count = 1;
	use->fresh = 0;
	use->parts[0] = slot;
	regions->counters.hits++;
	return 0;
}

/* The table did not know it. */
RBX_APART static int search(struct rbx_regions *regions, struct rbx_region_use *use,
			    uint64_t mapping_bytes, uint32_t *front)
{
	uint32_t slot = rbx_region_index_at(&regions->index, use->first);

	if (slot != RBX_REGION_NONE &&
	    rbx_region_covers(rbx_regions_at(regions, slot), use->first, use->end)) {
		*front = slot;
		return hit(regions, use, slot);
	}
	use->mapping_pages = RBX_MAX(mapping_bytes >> regions->page_shift, (uint64_t)1);
	RBX_ASSERT(!(use->mapping_pages & (use->mapping_pages - 1)) &&
		   use->mapping_pages <= UINT32_MAX);
	return acquire_parts(regions, use);
}

/* The way of a hit calls nothing, so that it need not save registers. */
static inline int acquire(struct rbx_regions *regions, struct rbx_region_use *use, uint64_t first,
			  uint64_t end, uint64_t mapping_bytes)
{
	uint32_t *front = rbx_region_front(regions, first);

	use->first = first;
	use->end = end;
	if (!rbx_region_covers(rbx_regions_at(regions, *front), first, end))
		return search(regions, use, mapping_bytes, front);
	return hit(regions, use, *front);
}

/* A request of the sample. */
RBX_APART static int acquire_shown(struct rbx_regions *regions, struct rbx_region_use *use,
				   uint64_t first, uint64_t end, uint64_t mapping_bytes)
{
	rbx_region_auto_observe(regions, first, end, mapping_bytes);
	return acquire(regions, use, first, end, mapping_bytes);
}

int rbx_regions_acquire(struct rbx_regions *regions, struct rbx_region_use *use, uint64_t addr,
			uint64_t length, uint64_t mapping_bytes)
{
	uint64_t first = addr >> regions->page_shift;
	uint64_t end = ((addr + length - 1) >> regions->page_shift) + 1;

	RBX_DEBUG_ASSERT(length && addr + length - 1 >= addr);
	if (rbx_region_auto_hash(first) < regions->sample_limit)
		return acquire_shown(regions, use, first, end, mapping_bytes);
	return acquire(regions, use, first, end, mapping_bytes);
}

void rbx_regions_release(struct rbx_regions *regions, struct rbx_region_use *use)
{
	if (use->count != 1) {
		release_parts(regions, use);
		return;
	}
	use->count = 0;
	unreference(regions, use->parts[0]);
}

void rbx_regions_give_up(struct rbx_regions *regions, struct rbx_region_use *use)
{
	release_parts(regions, use);
	regions->counters.staged++;
}

RBX_APART void rbx_regions_play_parts(struct rbx_regions *regions, uint64_t first, uint64_t end,
				      uint64_t mapping_bytes)
{
	uint32_t batch[RBX_REGION_BATCH_MAX], count, i;
	struct rbx_region_use use;
	int err = rbx_regions_acquire(regions, &use, first << regions->page_shift,
				      (end - first) << regions->page_shift, mapping_bytes);

	while (err == -EAGAIN) {
		count = rbx_regions_batch(regions, batch, RBX_REGION_BATCH_MAX);
		rbx_regions_retired(regions, batch, count);
		err = rbx_regions_again(regions, &use);
	}
	if (err) {
		regions->counters.spent_ns +=
			rbx_region_register_ns(&regions->cost, use.end - use.first) +
			rbx_region_deregister_ns(&regions->cost, use.end - use.first);
		return;
	}
	for (i = 0; i < use.count; i++)
		if (use.fresh >> i & 1)
			rbx_regions_registered(regions, use.parts[i], 0);
	rbx_regions_release(regions, &use);
}
