/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - opens and closes a connection to one memory server.
 *
 * The session comes first, then the data queue pairs, then the recovery that
 * restores both. Closing goes backwards: nothing is outstanding then, so there is
 * nothing to restore.
 */
#include <linux/kthread.h>
#include <linux/slab.h>

#include "kernel/lib/address.h"
#include "kernel/lib/peer.h"
#include "kernel/lib/trace.h"

static void session_lost(void *user, const char *reason)
{
	rbx_peer_note_broken(user, reason);
}

static void session_evict(void *user, const struct rbx_eviction *eviction)
{
	struct rbx_peer *peer = user;

	trace_rdmabox_evict(peer, eviction->slab_id, eviction->epoch);
	if (peer->events.evict)
		peer->events.evict(peer, eviction, peer->events.user);
}

static void peer_free(struct rbx_peer *peer)
{
	kvfree(peer->lanes);
	kvfree(peer->works);
	kfree(peer);
}

/* Memory and fields; nothing is connected yet. */
static struct rbx_peer *peer_make(struct rbx_client *client,
				  const struct rbx_peer_events *events)
{
	struct rbx_peer *peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	uint32_t lane_count = client->options.queue_pairs, i;

	if (!peer)
		return NULL;
	peer->works = kvcalloc(lane_count * RBX_SEND_DEPTH,
			       sizeof(*peer->works), GFP_KERNEL);
	peer->lanes = kvcalloc(lane_count, sizeof(*peer->lanes), GFP_KERNEL);
	if (!peer->works || !peer->lanes) {
		peer_free(peer);
		return NULL;
	}
	spin_lock_init(&peer->lock);
	init_waitqueue_head(&peer->changed);
	peer->client = client;
	peer->ctx = client->ctx;
	if (events)
		peer->events = *events;
	rbx_recovery_init(&peer->recovery, &peer->channel,
			  client->options.peer_timeout_ms *
				  (uint64_t)NSEC_PER_MSEC);
	rbx_channel_init(&peer->channel, &client->planner,
			 &client->ctx->window);
	for (i = 0; i < lane_count; i++)
		rbx_channel_add_ring(&peer->channel,
				     &peer->works[i * RBX_SEND_DEPTH],
				     RBX_SEND_DEPTH);
	peer->lane_count = lane_count;
	return peer;
}

static int session_open(struct rbx_peer *peer, struct sockaddr_storage *at)
{
	const struct rbx_session_events events = {
		.lost = session_lost,
		.evict = session_evict,
		.user = peer,
	};

	struct rbx_address address;

	rbx_address_name(&address, at);
	return rbx_session_open(&peer->client->sessions, &address, &events,
				&peer->session);
}

int rbx_peer_open(struct rbx_client *client,
		  struct sockaddr_storage *address,
		  const struct rbx_peer_events *events, struct rbx_peer **out)
{
	struct rbx_context *ctx = client->ctx;
	struct rbx_peer *peer = peer_make(client, events);
	bool broken;
	int err;

	if (!peer)
		return -ENOMEM;
	err = rbx_context_add_peer(ctx, peer);
	if (err)
		goto out_free;
	err = session_open(peer, address);
	if (err)
		goto out_remove;
	err = rbx_peer_connect_lanes(peer, 0);
	if (err)
		goto out_close_session;
	peer->recovery_thread =
		kthread_create(rbx_peer_recovery_main, peer, "rdmabox/%s",
			       rbx_session_name(peer->session));
	if (IS_ERR(peer->recovery_thread)) {
		err = PTR_ERR(peer->recovery_thread);
		goto out_destroy_lanes;
	}
	spin_lock_irq(&peer->lock);
	broken = rbx_recovery_opened(&peer->recovery, ktime_get_ns());
	spin_unlock_irq(&peer->lock);
	trace_rdmabox_peer_state(peer, RBX_PEER_UP);
	if (broken)
		rbx_peer_note_broken(peer, "it broke while it was opened");
	wake_up_process(peer->recovery_thread);
	*out = peer;
	return 0;

out_destroy_lanes:
	rbx_peer_destroy_lanes(peer, rbx_peer_patience_ns());
out_close_session:
	rbx_session_close(peer->session);
out_remove:
	rbx_context_remove_peer(ctx, peer);
out_free:
	peer_free(peer);
	return err;
}

void rbx_peer_stop(struct rbx_peer *peer)
{
	if (!peer->recovery_thread)
		return;
	spin_lock_irq(&peer->lock);
	rbx_recovery_close(&peer->recovery);
	spin_unlock_irq(&peer->lock);
	kthread_stop(peer->recovery_thread);
	peer->recovery_thread = NULL;
}

void rbx_peer_close(struct rbx_peer *peer)
{
	rbx_peer_stop(peer);
	RBX_ASSERT(rbx_channel_idle(&peer->channel));
	rbx_peer_destroy_lanes(peer, rbx_peer_patience_ns());
	rbx_session_close(peer->session);
	rbx_context_remove_peer(peer->ctx, peer);
	peer_free(peer);
}
