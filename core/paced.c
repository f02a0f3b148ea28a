/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* paced.c - the end of a paced endpoint, see paced.h. */
#include "core/paced.h"

/* Tries to post a marker. Later refusals, or closing the endpoint, then handle the rest. */
#define MARK_TRIES 8u

static struct rbx_paced *paced_of(struct rbx_channel *channel)
{
	return RBX_CONTAINER_OF(channel, struct rbx_paced, channel);
}

void rbx_paced_init(struct rbx_paced *paced, const struct rbx_paced_host *host,
		    const struct rbx_planner *planner, struct rbx_window *window,
		    struct rbx_work *works, uint32_t ring_depth)
{
	paced->host = host;
	rbx_channel_init(&paced->channel, planner, window);
	paced->channel.keys_are_not_loans = true;
	rbx_channel_add_ring(&paced->channel, works, ring_depth);
}

/* Places that were given back meanwhile are added, too. */
static void refill(struct rbx_paced *paced)
{
	struct rbx_fragment *list = rbx_drive_take_ended(&paced->freed), *next;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = paced->free_first ? &paced->free_first->node :
						      NULL;
		paced->free_first = list;
		paced->free_count++;
	}
}

bool rbx_paced_has_room(struct rbx_paced *paced, uint32_t count)
{
	refill(paced);
	return count <= paced->free_count;
}

void rbx_paced_broken(struct rbx_channel *channel)
{
	struct rbx_paced *paced = paced_of(channel);

	if (RBX_EXCHANGE(&paced->is_dead, true))
		return;
	paced->host->disconnect(paced);
	rbx_channel_set_state(channel, RBX_CHANNEL_HALTED);
	rbx_channel_set_state(channel, RBX_CHANNEL_DEAD);
}

static void mark(struct rbx_paced *paced)
{
	uint32_t try;

	if (RBX_EXCHANGE(&paced->is_marked, true))
		return;
	for (try = 0; try < MARK_TRIES; try++)
		if (!paced->host->post_marker(paced))
			return;
	(void)RBX_EXCHANGE(&paced->is_marked, false);
}

void rbx_paced_refuse(struct rbx_channel *channel, struct rbx_fragment *list)
{
	struct rbx_paced *paced = paced_of(channel);
	struct rbx_fragment *next;

	/* One by one, so that the thread that takes them all restores their order by
	 * reversing the list. */
	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = NULL;
		rbx_drive_push_ended(&paced->refused, list);
	}
	mark(paced);
}

static void count_as_unreachable(struct rbx_fragment *list)
{
	for (; list; list = rbx_fragment_next(list))
		list->status = -EHOSTUNREACH;
}

void rbx_paced_keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	struct rbx_fragment *list = harvest->again_first;

	count_as_unreachable(list);
	harvest->again_first = harvest->again_last = NULL;
	rbx_paced_refuse(channel, list);
}

/* Takes them in the order in which they were refused. */
static void refused_take(struct rbx_paced *paced, struct rbx_harvest *harvest)
{
	struct rbx_fragment *newest = rbx_drive_take_ended(&paced->refused);
	struct rbx_fragment *list = NULL, *next;

	for (; newest; newest = next) {
		next = rbx_fragment_next(newest);
		newest->node.next = list ? &list->node : NULL;
		list = newest;
	}
	for (; list; list = next) {
		next = rbx_fragment_next(list);
		rbx_fragment_append(&harvest->done_first, &harvest->done_last,
				    list, list);
	}
}

void rbx_paced_marked(struct rbx_paced *paced, uint64_t now_ns,
		      struct rbx_harvest *harvest)
{
	rbx_channel_complete_rest(&paced->channel, 0, now_ns, harvest);
	/* Refused fragments are taken only afterwards. Pairs with refuse(), which pushes
	 * first and then posts a marker unless is_marked is still set. So either it posts
	 * one, or this thread sees what it pushed. */
	(void)RBX_EXCHANGE(&paced->is_marked, false);
	refused_take(paced, harvest);
}

void rbx_paced_clear(struct rbx_paced *paced, bool all_is_back, uint64_t now_ns,
		     struct rbx_harvest *harvest)
{
	struct rbx_chain chain;

	RBX_ASSERT(paced->channel.state == RBX_CHANNEL_DEAD);
	if (all_is_back)
		rbx_channel_complete_rest(&paced->channel, 0, now_ns, harvest);
	else
		rbx_channel_abandon(&paced->channel, 0, harvest);
	/* Never cleared again. */
	(void)RBX_EXCHANGE(&paced->is_marked, true);
	/* The first step refuses all of it. */
	while (rbx_channel_combine(&paced->channel, now_ns, &chain)) {
		count_as_unreachable(chain.refused);
		rbx_paced_refuse(&paced->channel, chain.refused);
	}
	refused_take(paced, harvest);
}
