/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.c - makes a connection to one memory server, with memory of the kernel, and
 * reports its state to the log and the tracepoints. client/peer.c opens and closes it.
 */
#include <linux/slab.h>

#include "kernel/lib/address.h"
#include "client/notice.h"
#include "kernel/lib/peer/peer.h"
#include "kernel/lib/trace.h"

static void peer_free(struct rbx_kernel_peer *made)
{
	kvfree(made->qps);
	kvfree(made->works);
	kfree(made);
}

static struct rbx_kernel_peer *peer_make(struct rbx_client *client,
					 const struct rbx_peer_events *events)
{
	struct rbx_kernel_peer *made = kzalloc(sizeof(*made), GFP_KERNEL);
	uint32_t i;

	if (!made)
		return NULL;
	made->client = client;
	made->qps_count = client->options.queue_pairs;
	made->works = kvcalloc(made->qps_count * RBX_SEND_DEPTH,
			       sizeof(*made->works), GFP_KERNEL);
	made->qps = kvcalloc(made->qps_count, sizeof(*made->qps),
			     GFP_KERNEL);
	if (!made->works || !made->qps) {
		peer_free(made);
		return NULL;
	}
	rbx_peer_prepare(&made->peer, client->ctx, &client->ctx->repairs,
			 &client->planner, &client->ctx->window,
			 client->options.peer_timeout_ms, events);
	for (i = 0; i < made->qps_count; i++) {
		made->qps[i].peer = &made->peer;
		made->qps[i].ring_index = i;
		rbx_channel_add_ring(&made->peer.channel,
				     &made->works[i * RBX_SEND_DEPTH],
				     RBX_SEND_DEPTH);
	}
	return made;
}

void rbx_peer_free(struct rbx_peer *peer)
{
	peer_free(rbx_kernel_peer(peer));
}

int rbx_peer_open(struct rbx_client *client,
		  const struct sockaddr_storage *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer)
{
	struct rbx_kernel_peer *made = peer_make(client, events);
	int err;

	if (!made)
		return -ENOMEM;
	err = rbx_peer_connect_to(&made->peer, address);
	if (err)
		rbx_peer_free(&made->peer);
	else
		*peer = &made->peer;
	return err;
}

int rbx_peer_open_session(struct rbx_peer *peer, const void *address,
			  const struct rbx_session_events *events)
{
	struct rbx_address named;

	rbx_address_name(&named, address);
	return rbx_session_open(&rbx_kernel_peer(peer)->client->sessions,
				&named, events, &peer->session);
}

/* ---- Log and tracepoints -----------------------------------------------------------*/

void rbx_notice_phase(const struct rbx_peer *peer, enum rbx_peer_phase phase,
		      const char *reason)
{
	const char *name = rbx_peer_name(peer);

	trace_rdmabox_peer_state(peer, phase);
	if (phase == RBX_PEER_DRAINING)
		pr_notice("rdmabox: %s: %s\n", name, reason);
	else if (phase == RBX_PEER_DOWN)
		pr_warn("rdmabox: %s is given up\n", name);
	else if (phase == RBX_PEER_UP && peer->recovery.state.breaks_count)
		pr_notice("rdmabox: %s: resumed\n", name);
}

void rbx_notice_eviction(const struct rbx_peer *peer,
			 const struct rbx_eviction *eviction)
{
	trace_rdmabox_evict(peer, eviction->slab_id, eviction->epoch);
}

void rbx_notice_task(const struct rbx_slab *slab, enum rbx_slab_task task)
{
	trace_rdmabox_slab_task(rbx_slab_index(slab), task);
}
