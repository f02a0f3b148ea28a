/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_again.c - what becomes of the fragments of a channel whose connection broke: they
 * go again, or end because their key has ended, or are withdrawn. The channel is halted
 * meanwhile, and who calls has its role; only keys end at any time, by any thread.
 */
#include "core/channel.h"

/* A key of 0 is one too. */
#define ENDED_KEY(rkey) ((uint64_t)(rkey) | (uint64_t)1 << 32)

void rbx_channel_key_ended(struct rbx_channel *channel, uint32_t rkey)
{
	uint32_t at;

	if (rbx_channel_key_has_ended(channel, rkey) ||
	    RBX_LOAD_RELAXED(&channel->ended_keys_count) >= RBX_ENDED_KEYS_MAX)
		return;
	at = RBX_FETCH_ADD(&channel->ended_keys_count, 1);
	if (at < RBX_ENDED_KEYS_MAX)
		RBX_STORE_RELAXED(&channel->ended_keys[at], ENDED_KEY(rkey));
}

bool rbx_channel_key_has_ended(const struct rbx_channel *channel, uint32_t rkey)
{
	uint32_t i;

	if (RBX_LOAD_RELAXED(&channel->ended_keys_count) == 0)
		return false;
	for (i = 0; i < RBX_ENDED_KEYS_MAX; i++)
		if (RBX_LOAD_RELAXED(&channel->ended_keys[i]) ==
		    ENDED_KEY(rkey))
			return true;
	return false;
}

/* A fence that leaves the channel passes to the one behind it: what came after it does not
 * begin before what came earlier. *fence: whether one has left and has not passed yet. */
static void fence_pass_on(struct rbx_fragment *fragment, bool stays, bool *fence)
{
	if (!stays) {
		*fence |= fragment->flags & RBX_FRAGMENT_FENCE;
	} else if (*fence) {
		fragment->flags |= RBX_FRAGMENT_FENCE;
		*fence = false;
	}
}

/* Takes those of keys that have ended out of a list; returns them. */
static struct rbx_fragment *keys_sort_out(const struct rbx_channel *channel,
					  struct rbx_fragment **list)
{
	struct rbx_fragment *fragment = *list, *next;
	struct rbx_fragment *kept_first = NULL, *kept_last = NULL;
	struct rbx_fragment *ended_first = NULL, *ended_last = NULL;
	bool has_ended, fence = false;

	for (; fragment; fragment = next) {
		next = rbx_fragment_next(fragment);
		has_ended = rbx_channel_key_has_ended(channel, fragment->rkey);
		fence_pass_on(fragment, !has_ended, &fence);
		if (has_ended) {
			fragment->status = -EACCES;
			rbx_fragment_append(&ended_first, &ended_last, fragment,
					    fragment);
		} else {
			rbx_fragment_append(&kept_first, &kept_last, fragment,
					    fragment);
		}
	}
	*list = kept_first;
	return ended_first;
}

/* The keys may come to mean something else from here on. */
static void keys_forget(struct rbx_channel *channel)
{
	rbx_port_fill(channel->ended_keys, 0, sizeof(channel->ended_keys));
	RBX_STORE_RELAXED(&channel->ended_keys_count, 0);
}

/* Then the list goes before all that waits, which was submitted later. */
static bool has_ordered(const struct rbx_fragment *list)
{
	while (list != NULL && list->direction != RBX_DIRECTION_ORDERED)
		list = rbx_fragment_next(list);
	return list != NULL;
}

struct rbx_fragment *rbx_channel_send_again(struct rbx_channel *channel,
					    struct rbx_fragment *list)
{
	struct rbx_merge_queue *queue = &channel->merge_queue;
	struct rbx_fragment *waiting, *ended = NULL;

	RBX_ASSERT(channel->state == RBX_CHANNEL_HALTED);
	waiting = has_ordered(list) ? rbx_merge_queue_clear(queue) : NULL;
	if (list != NULL)
		rbx_merge_queue_add(queue, &list->node);
	if (waiting != NULL)
		rbx_merge_queue_add(queue, &waiting->node);
	if (RBX_LOAD_RELAXED(&channel->ended_keys_count) == 0)
		return NULL;
	if (rbx_submit_queue_pushed(&channel->submit_queue))
		rbx_merge_queue_add(
			queue, rbx_submit_queue_take(&channel->submit_queue));
	waiting = rbx_merge_queue_clear(queue);
	ended = keys_sort_out(channel, &waiting);
	if (waiting != NULL)
		rbx_merge_queue_add(queue, &waiting->node);
	keys_forget(channel);
	return ended;
}

/* Parts a list: what waits on is appended to the one, the rest to the other. */
static void part(struct rbx_fragment *list,
		 bool (*waits)(const struct rbx_fragment *fragment),
		 struct rbx_fragment **stay_first,
		 struct rbx_fragment **gone_first,
		 struct rbx_fragment **gone_last)
{
	struct rbx_fragment *stay_last = NULL, *next;
	bool stays, fence = false;

	*stay_first = NULL;
	for (; list != NULL; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = NULL;
		stays = waits(list);
		fence_pass_on(list, stays, &fence);
		if (stays)
			rbx_fragment_append(stay_first, &stay_last, list, list);
		else
			rbx_fragment_append(gone_first, gone_last, list, list);
	}
}

struct rbx_fragment *
rbx_channel_withdraw(struct rbx_channel *channel, struct rbx_fragment **list,
		     bool (*waits)(const struct rbx_fragment *fragment))
{
	struct rbx_merge_queue *queue = &channel->merge_queue;
	struct rbx_fragment *gone_first = NULL, *gone_last = NULL, *stay;

	RBX_ASSERT(RBX_LOAD_RELAXED(&channel->state) == RBX_CHANNEL_HALTED);
	if (rbx_submit_queue_pushed(&channel->submit_queue))
		rbx_merge_queue_add(
			queue, rbx_submit_queue_take(&channel->submit_queue));
	part(rbx_merge_queue_clear(queue), waits, &stay, &gone_first,
	     &gone_last);
	/* Keys that have ended end it when the channel is reopened. */
	if (stay != NULL)
		rbx_merge_queue_add(queue, &stay->node);
	part(*list, waits, list, &gone_first, &gone_last);
	return gone_first;
}
