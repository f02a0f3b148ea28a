/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hands.c - see hands.h. */
#include "sim/hands.h"

#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/tally.h"

struct hand {
	struct hand *next;
	const char *first;
	size_t length_bytes;
	uint32_t node;
};

static struct hand *hands;
static bool next_is_old[RBX_SIM_NODES_MAX]; /* servers restart side by side */
static bool is_ignored;

void rbx_sim_hands_ignore(void)
{
	is_ignored = true;
}

bool rbx_sim_hands_are_ignored(void)
{
	return is_ignored;
}

static bool is_zero(const char *bytes, size_t length)
{
	return length == 0 ||
	       (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

/* A holder of a part of this memory, or NULL. */
static const struct hand *hand_within(const char *first, size_t length_bytes)
{
	const struct hand *hand = hands;

	while (hand && (first >= hand->first + hand->length_bytes ||
			hand->first >= first + length_bytes))
		hand = hand->next;
	return hand;
}

void rbx_sim_hands_freed(const void *addr, size_t length_bytes)
{
	const struct hand *hand = hand_within(addr, length_bytes);

	if (hand)
		rbx_sim_fail("revoked-key", "peers may still reach memory that node %u gives back",
			     hand->node);
}

void rbx_sim_hands_give_again(uint32_t node)
{
	next_is_old[node] = true;
}

void rbx_sim_hands_give(uint32_t node, const struct rbx_mr *mr,
			const struct rbx_domain *domain, uint32_t rights)
{
	const struct hand *other;
	struct hand *hand;

	if (is_ignored || !(rights & (RBX_REMOTE_READ | RBX_REMOTE_WRITE)))
		return;
	if (!domain)
		rbx_sim_fail("one-hand", "memory of node %u is open to all",
			     node);
	other = hand_within(mr->addr, mr->length_bytes);
	if (other)
		rbx_sim_fail("one-hand", "memory of node %u has two holders",
			     other->node);
	if (!next_is_old[node] && !is_zero(mr->addr, mr->length_bytes))
		rbx_sim_fail("private", "a slab of node %u holds what another client wrote",
			     node);
	next_is_old[node] = false;
	rbx_sim_tally(RBX_SIM_TALLY_memory_lent, 1);
	hand = malloc(sizeof(*hand));
	if (!hand)
		abort();
	*hand = (struct hand){ hands, mr->addr, mr->length_bytes, node };
	hands = hand;
}

static void remove_at(struct hand **link)
{
	struct hand *hand = *link;

	*link = hand->next;
	free(hand);
}

void rbx_sim_hands_take(const struct rbx_mr *mr)
{
	for (struct hand **link = &hands; *link; link = &(*link)->next) {
		if ((*link)->first == mr->addr) {
			remove_at(link);
			return;
		}
	}
}

void rbx_sim_hands_stop(uint32_t node)
{
	struct hand **link = &hands;

	while (*link) {
		if ((*link)->node == node)
			remove_at(link);
		else
			link = &(*link)->next;
	}
}

uint32_t rbx_sim_hands_count(uint32_t node)
{
	uint32_t count = 0;

	for (const struct hand *hand = hands; hand; hand = hand->next)
		count += hand->node == node;
	return count;
}
