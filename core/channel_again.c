/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_again.c - what happens to the fragments of a channel whose connection broke: they
 * are sent again, or end because their key has ended, or are withdrawn. The channel is halted
 * meanwhile, and the caller is its combiner. Only keys may end at any time, by any thread.
 */
#include "core/channel.h"

/* So that key 0 is valid, too. */
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

/*
 * Splits a list into fragments that stay and fragments that go, which are appended to *gone.
 * waits: whether a fragment stays; NULL: those stay whose key has not ended. If a fragment
 * with a fence goes, the next one that stays gets the fence: what came after it does not
 * begin before what came earlier.
 */
static struct rbx_fragment *part(const struct rbx_channel *channel,
				 bool (*waits)(const struct rbx_fragment *fragment),
				 struct rbx_fragment *list,
				 struct rbx_fragment **gone_first,
				 struct rbx_fragment **gone_last)
{
	struct rbx_fragment *stay_first = NULL, *stay_last = NULL, *next;
	uint8_t fence = 0;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		if (waits ? waits(list) :
			    !rbx_channel_key_has_ended(channel, list->rkey)) {
			list->flags |= fence;
			fence = 0;
			rbx_fragment_append(&stay_first, &stay_last, list, list);
		} else {
			fence |= list->flags & RBX_FRAGMENT_FENCE;
			rbx_fragment_append(gone_first, gone_last, list, list);
		}
	}
	return stay_first;
}

/* From here on the keys may come to mean something else. */
static void keys_forget(struct rbx_channel *channel)
{
	rbx_port_fill(channel->ended_keys, 0, sizeof(channel->ended_keys));
	RBX_STORE_RELAXED(&channel->ended_keys_count, 0);
}

/* If it has, the list goes before all that waits, which was submitted later. */
static bool has_ordered(const struct rbx_fragment *list)
{
	while (list && list->direction != RBX_DIRECTION_ORDERED)
		list = rbx_fragment_next(list);
	return list != NULL;
}

struct rbx_fragment *rbx_channel_send_again(struct rbx_channel *channel,
					    struct rbx_fragment *list)
{
	struct rbx_merge_queue *queue = &channel->merge_queue;
	struct rbx_fragment *waiting, *ended = NULL, *ended_last = NULL;
	struct rbx_fragment *each;

	RBX_ASSERT(channel->state == RBX_CHANNEL_HALTED);
	waiting = has_ordered(list) ? rbx_merge_queue_clear(queue) : NULL;
	if (list)
		rbx_merge_queue_add(queue, &list->node);
	if (waiting)
		rbx_merge_queue_add(queue, &waiting->node);
	if (RBX_LOAD_RELAXED(&channel->ended_keys_count) == 0)
		return NULL;
	if (rbx_submit_queue_pushed(&channel->submit_queue))
		rbx_merge_queue_add(
			queue, rbx_submit_queue_take(&channel->submit_queue));
	waiting = part(channel, NULL, rbx_merge_queue_clear(queue), &ended,
		       &ended_last);
	for (each = ended; each; each = rbx_fragment_next(each))
		each->status = -EACCES;
	if (waiting)
		rbx_merge_queue_add(queue, &waiting->node);
	keys_forget(channel);
	return ended;
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
	stay = part(channel, waits, rbx_merge_queue_clear(queue), &gone_first,
		    &gone_last);
	/* They end when the channel is reopened if their keys have ended. */
	if (stay)
		rbx_merge_queue_add(queue, &stay->node);
	*list = part(channel, waits, *list, &gone_first, &gone_last);
	return gone_first;
}
