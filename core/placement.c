/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * placement.c - the power of two choices, see placement.h.
 *
 * The free memory that a server reported may be outdated: the server that is asked in the end
 * may still refuse, and then the caller chooses again without it.
 */
#include "core/placement.h"

uint32_t rbx_placement_draw(const struct rbx_server_set *up,
			    const struct rbx_server_set *not_servers,
			    struct rbx_random *random, uint32_t drawn[2])
{
	struct rbx_server_set eligible;
	uint32_t i, count, first, second;

	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		eligible.words[i] = up->words[i] & ~not_servers->words[i];
	count = rbx_server_set_count(&eligible);
	if (!count)
		return 0;
	first = rbx_random_below(random, count);
	drawn[0] = rbx_server_set_member(&eligible, first);
	if (count == 1)
		return 1;
	/* Drawn from the others: skips the first, so that the two always differ. */
	second = rbx_random_below(random, count - 1);
	second += second >= first;
	drawn[1] = rbx_server_set_member(&eligible, second);
	RBX_ASSERT(drawn[0] != drawn[1]);
	return 2;
}
