/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* channel_slots.c - see channel_slots.h. */
#include "core/channel_slots.h"

static bool add(struct rbx_channel **channels, uint32_t channels_max,
		uint32_t *used, uint32_t first_slot, struct rbx_channel *channel)
{
	uint32_t i = 0;

	while (i < channels_max && channels[i])
		i++;
	if (i == channels_max)
		return false;
	channel->slot = first_slot + i;
	RBX_STORE_RELEASE(&channels[i], channel);
	if (i >= *used)
		RBX_STORE_RELEASE(used, i + 1);
	return true;
}

bool rbx_channel_slots_add_peer(struct rbx_channel_slots *slots,
				struct rbx_channel *channel)
{
	return add(slots->peers, RBX_PEERS_MAX, &slots->peers_used, 0, channel);
}

bool rbx_channel_slots_add_paced(struct rbx_channel_slots *slots,
				 struct rbx_channel *channel)
{
	return add(slots->paced, RBX_CHANNELS_MAX - RBX_PEERS_MAX,
		   &slots->paced_used, RBX_PEERS_MAX, channel);
}

void rbx_channel_slots_remove(struct rbx_channel_slots *slots,
			      const struct rbx_channel *channel)
{
	struct rbx_channel **at = rbx_channel_is_paced(channel) ?
			&slots->paced[channel->slot - RBX_PEERS_MAX] :
			&slots->peers[channel->slot];

	RBX_ASSERT(*at == channel);
	RBX_STORE_RELEASE(at, NULL);
}
