/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * region_policy.h - which region is retired next: one small interface, a file for each policy.
 *
 *	lru     the one whose last use is longest ago
 *	mre     the paper's: large ones first among those that were not used for long
 *	gdsf    the one that saves least for each page that it takes, by uses, size and cost
 *	s3fifo  a small queue keeps what is used once from pushing out what is used often
 *	sieve   a hand that goes round passes over what was used since it came by
 *	auto    the one of them that costs least just now (region_auto.h)
 *
 * A policy knows the regions of the index, also those in use and those that are being registered,
 * and chooses among those that are not in use. It is not told of uses: each region has its stamp
 * and its number of uses (region.h).
 */
#ifndef RBX_REGION_POLICY_H
#define RBX_REGION_POLICY_H

#include "core/region_list.h"

struct rbx_regions;

struct rbx_region_policy {
	const char *name;

	/* Bytes of memory of its own for so many regions, aligned for words. */
	size_t (*size)(uint32_t regions);

	/* memory: zeroed, borrowed for the life of the cache. */
	void (*init)(struct rbx_regions *regions, void *memory);

	/* A region is new in the index. */
	void (*admit)(struct rbx_regions *regions, uint32_t region);

	/* A region leaves the index: its memory changed, or it was the victim. */
	void (*remove)(struct rbx_regions *regions, uint32_t region);

	/* The cache is full: victims are asked for next. NULL: it need not know.
	 * only_regions_short: there are pages enough */
	void (*full)(struct rbx_regions *regions, bool only_regions_short);

	/* The region to retire next, which is not in use, or RBX_REGION_NONE. It is removed by
	 * the caller. At least one region is not in use. */
	uint32_t (*victim)(struct rbx_regions *regions);

	/* Whether it wants another victim although there is room. NULL: it never does. */
	bool (*wants_more)(const struct rbx_regions *regions);

	/* Takes over from another policy: all regions of the index, the least recently used is
	 * the oldest. The policy was initialised and knows none of them yet. NULL: they are
	 * admitted one by one. */
	void (*adopt)(struct rbx_regions *regions, struct rbx_region_list *all);
};

extern const struct rbx_region_policy rbx_region_lru;
extern const struct rbx_region_policy rbx_region_mre;
extern const struct rbx_region_policy rbx_region_gdsf;
extern const struct rbx_region_policy rbx_region_s3fifo;
extern const struct rbx_region_policy rbx_region_sieve;

/* Follows the others; its functions are those of the one it follows. */
extern const struct rbx_region_policy rbx_region_auto;

/* For a policy without memory of its own. */
size_t rbx_region_policy_needs_none(uint32_t regions);

/* Those that auto follows: their numbers, and a list by these. */
enum {
	RBX_REGION_LRU,
	RBX_REGION_MRE,
	RBX_REGION_GDSF,
	RBX_REGION_S3FIFO,
	RBX_REGION_SIEVE,
	RBX_REGION_POLICIES
};
extern const struct rbx_region_policy *const rbx_region_policies[RBX_REGION_POLICIES];

/* By its name, auto too; or NULL. */
const struct rbx_region_policy *rbx_region_policy_find(const char *name);

/* ---- States of the policies -----------------------------------------------------*/

/* Of lru and gdsf: the least key on top. Keys only grow, and may be out of date. */
struct rbx_region_heap {
	uint32_t *places; /* regions; the children of place i are at 4 i + 1 to 4 i + 4 */
	uint32_t count;
	struct rbx_region_list aside; /* regions that were on top while they were in use */
};

struct rbx_region_mre_state {
	struct rbx_region_list stack;
	uint64_t recency; /* r of the paper, in 2^-32 */
	uint64_t segment; /* room of the eviction segment that is left to evict */
	bool room_is_regions; /* else it is pages */
};

struct rbx_region_s3fifo_state {
	struct rbx_region_list small;
	struct rbx_region_list main;
	uint64_t *ghosts; /* fingerprint, and when it left */
	uint32_t ghosts_mask;
	uint32_t left; /* regions that have left the small queue */
};

struct rbx_region_sieve_state {
	struct rbx_region_list queue;
	uint32_t hand;
};

union rbx_region_policy_state {
	struct rbx_region_heap heap;
	struct rbx_region_mre_state mre;
	struct rbx_region_s3fifo_state s3fifo;
	struct rbx_region_sieve_state sieve;
};

#endif
