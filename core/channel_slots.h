/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_slots.h - the table of the channels that share a window: first those of peers, then
 * those of paced endpoints.
 *
 * One thread at a time adds and removes; any thread may read meanwhile. A thread that removes
 * a channel must make sure that no other thread still uses it.
 */
#ifndef RBX_CHANNEL_SLOTS_H
#define RBX_CHANNEL_SLOTS_H

#include "core/channel.h"

struct rbx_channel_slots {
	/* Atomic: how many slots were ever used. A slot that is free again holds NULL. */
	uint32_t peers_used, paced_used;
	struct rbx_channel *peers[RBX_PEERS_MAX];
	struct rbx_channel *paced[RBX_CHANNELS_MAX - RBX_PEERS_MAX];
};

/* Finds a slot. False: all are used. */
bool rbx_channel_slots_add_peer(struct rbx_channel_slots *slots,
				struct rbx_channel *channel);
bool rbx_channel_slots_add_paced(struct rbx_channel_slots *slots,
				 struct rbx_channel *channel);
void rbx_channel_slots_remove(struct rbx_channel_slots *slots,
			      const struct rbx_channel *channel);

static inline bool rbx_channel_is_paced(const struct rbx_channel *channel)
{
	return channel->slot >= RBX_PEERS_MAX;
}

/* ---- For struct rbx_drive_channels; `host` is the slots ------------------------------ */

/* Slots without a channel cost no time (turns.h). */
static inline uint32_t rbx_channel_slots_used(void *host)
{
	const struct rbx_channel_slots *slots = host;
	uint32_t paced_used = RBX_LOAD_ACQUIRE(&slots->paced_used);

	return paced_used ? RBX_PEERS_MAX + paced_used :
			    RBX_LOAD_ACQUIRE(&slots->peers_used);
}

static inline struct rbx_channel *rbx_channel_slots_at(void *host, uint32_t slot)
{
	struct rbx_channel_slots *slots = host;

	return slot < RBX_PEERS_MAX ?
		       RBX_LOAD_ACQUIRE(&slots->peers[slot]) :
		       RBX_LOAD_ACQUIRE(&slots->paced[slot - RBX_PEERS_MAX]);
}

#endif
