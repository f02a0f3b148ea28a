/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.c - the steps of a poller: one poll of a completion queue and its consequences.
 *
 * The same round as in lib/poller/poller.c: completions go to their channels, credit back to
 * the window, done() is called for what has ended, and every parked combiner looks again.
 * That last part is done within the step.
 */
#include "core/drive.h"
#include "sim/scenarios/poller.h"

static uint32_t slots_used(void *client)
{
	return ((struct rbx_client *)client)->choices.peers_count;
}

static struct rbx_channel *channel_at(void *client, uint32_t slot)
{
	return &((struct rbx_client *)client)->peers[slot].channel;
}

static void combine(struct rbx_channel *channel)
{
	const struct rbx_client_peer *peer =
		RBX_CONTAINER_OF(channel, struct rbx_client_peer, channel);
	struct rbx_combining combining = { .channel = channel };

	while (combining.channel)
		rbx_client_combine(peer->client, &combining);
}

static const struct rbx_drive_channels channels = {
	.slots_used = slots_used,
	.at = channel_at,
	.combine = combine,
};

static uint32_t ring_of(const struct rbx_client_peer *peer,
			const struct rbx_qp *qp)
{
	uint32_t index = 0;

	while (peer->qps[index] != qp)
		index++;
	return index;
}

/* Staged reads are copied to their destination. */
static void spend_on_reads(const struct rbx_client *client,
			   const struct rbx_fragment *list)
{
	for (; list; list = rbx_fragment_next(list)) {
		rbx_sim_spend(client->choices.complete_ns);
		if (client->choices.buffers == RBX_CLIENT_COPIED &&
		    list->direction == RBX_DIRECTION_READ)
			rbx_sim_spend((uint64_t)list->length_bytes * 8000 /
				      client->params->copy_mbps);
	}
}

static void harvest(struct rbx_client *client, const struct rbx_wc *wcs,
		    int count)
{
	struct rbx_harvest crop = { 0 };

	for (int i = 0; i < count; i++) {
		struct rbx_client_peer *peer = wcs[i].qp->user;

		RBX_ASSERT(wcs[i].status == 0);
		rbx_channel_complete(&peer->channel, ring_of(peer, wcs[i].qp),
				     (uint32_t)wcs[i].wr_id, 0,
				     rbx_sim_thread_now(), &crop);
	}
	rbx_harvest_settle(&crop, &client->window, rbx_sim_thread_now());
	spend_on_reads(client, crop.done_first);
	rbx_drive_done(crop.done_first);
}

static int poll(struct rbx_client_poller *poller)
{
	struct rbx_client *client = poller->client;
	struct rbx_wc wcs[RBX_POLL_BATCH];
	int count = client->device->ops->poll(
		poller->cq, wcs, (int)rbx_poll_policy_ask(&poller->policy));

	poller->polls++;
	if (count != 0)
		harvest(client, wcs, count);
	while (rbx_drive_unpark(&channels, client, &client->window.turns))
		;
	return count;
}

static enum rbx_sim_step step(struct rbx_sim_thread *thread)
{
	struct rbx_client_poller *poller =
		RBX_CONTAINER_OF(thread, struct rbx_client_poller, thread);
	const struct rbx_fabric_ops *ops = poller->client->device->ops;
	int count;

	if (poller->asleep) {
		poller->asleep = false;
		poller->wakeups++;
		ops->consume_events(poller->cq);
	}
	count = poll(poller);
	switch (rbx_poll_policy_next(&poller->policy, (uint32_t)count,
				     rbx_sim_thread_now())) {
	case RBX_POLL_AGAIN:
		break;
	case RBX_POLL_ARM:
		ops->arm(poller->cq);
		break;
	case RBX_POLL_SLEEP:
		poller->asleep = true;
		if (!rbx_sim_event_is_raised(poller->cq->event_fd))
			return RBX_SIM_SLEEP;
		break;
	}
	return RBX_SIM_GO_ON;
}

void rbx_client_poller_open(struct rbx_client *client,
			    struct rbx_client_poller *poller,
			    uint32_t depth_count)
{
	poller->client = client;
	poller->cq = rbx_sim_wires_cq(client->device, depth_count);
	poller->thread.step = step;
	rbx_poll_policy_init(&poller->policy, &client->choices.polling);
	rbx_sim_thread_add(&poller->thread);
	rbx_sim_event_wakes(poller->cq->event_fd, &poller->thread);
	rbx_sim_thread_wake(&poller->thread);
}
