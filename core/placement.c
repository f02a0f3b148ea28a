/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * placement.c - the power of two choices, see placement.h.
 *
 * What free_bytes says may be old: the server that is asked in the end may
 * still refuse, and then the caller chooses again without it.
 */
#include "core/placement.h"

static uint32_t members_count(uint64_t set)
{
	uint32_t count = 0;

	for (; set; set &= set - 1)
		count++;
	return count;
}

/* The index of the nth lowest member, from 0. */
static int member(uint64_t set, uint32_t nth)
{
	RBX_ASSERT(nth < members_count(set));
	while (nth--)
		set &= set - 1;
	return __builtin_ctzll(set);
}

int rbx_placement_choose(const uint64_t free_bytes[RBX_SERVERS_MAX],
			 uint64_t eligible, struct rbx_random *random)
{
	uint32_t count = members_count(eligible);
	uint32_t first, second;
	int one, other;

	if (!count)
		return -ENOSPC;
	first = rbx_random_below(random, count);
	one = member(eligible, first);
	if (count == 1)
		return one;
	/* Of the others: skips the first, so that the two always differ. */
	second = rbx_random_below(random, count - 1);
	second += second >= first;
	other = member(eligible, second);
	RBX_ASSERT(one != other);
	return free_bytes[other] > free_bytes[one] ? other : one;
}

bool rbx_placement_fits(const uint64_t free_slabs[RBX_SERVERS_MAX],
			uint32_t server_count, uint32_t slab_count,
			uint32_t replicas)
{
	uint64_t room = 0;
	uint32_t i;

	RBX_ASSERT(server_count <= RBX_SERVERS_MAX);
	for (i = 0; i < server_count; i++)
		room += RBX_MIN(free_slabs[i], (uint64_t)slab_count);
	return room >= (uint64_t)slab_count * replicas;
}
