/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.c - see context.h.
 *
 * The device cannot go while a context is open: who removes it waits. Its
 * connections end, though, so that volumes go on with what is left to them.
 */
#include "kernel/lib/context.h"

#include <linux/slab.h>
#include <net/net_namespace.h>

#include "core/congestion.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/peer.h"

#define RESOLVE_MS 2000

#define PEER_TIMEOUT_MS_MIN 400u
#define SECRET_BYTES_MIN 16u /* wire/PROTOCOL.md, "Authentication" */
#define SECRET_BYTES_MAX 4096u

/* A queue pair in the completion queue: what is posted, and what ib_drain_qp()
 * posts on either side. */
#define LANE_COMPLETIONS (RBX_SEND_DEPTH + 2)

/* Queue pairs of all volumes on a device, such as 16 servers with 16 each: 66,048
 * completions, 4 MiB where one takes 64 bytes. Devices that have less room have room
 * for fewer. */
#define LANES_MAX 256u

/* As long as a sleep is not worth while, and no longer (core/poll_tuner.h). */
static const struct rbx_poll_rule adaptive_rule = {
	.batch_max = RBX_POLL_BATCH,
	.event_max = RBX_POLL_EVENT_UNBOUNDED,
	.tunes = true,
	.cpu_percent = 100,
};

static DEFINE_MUTEX(contexts_lock); /* guards the list, and who uses them */
static LIST_HEAD(contexts);

/* ---- The device -------------------------------------------------------------*/

static void no_connection_to_end(struct rbx_ib_conn *conn)
{
}

/* The device that leads to an address, held. */
static int device_find(struct sockaddr_storage *address,
		       struct ib_device **device)
{
	struct rbx_ib_conn conn;
	int err = rbx_ib_conn_resolve(&conn, &init_net, address,
				      no_connection_to_end, RESOLVE_MS);

	if (!err && !ib_device_try_get(conn.id->device))
		err = -ENODEV;
	if (!err)
		*device = conn.id->device;
	rbx_ib_conn_destroy(&conn);
	return err;
}

/* Takes the device, but not where it fails. */
static int context_make(struct ib_device *device, struct rbx_context **out)
{
	struct rbx_context *ctx = kvzalloc(sizeof(*ctx), GFP_KERNEL);
	int err;

	if (!ctx)
		return -ENOMEM;
	ctx->device = device;
	mutex_init(&ctx->peers_lock);
	ctx->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(ctx->pd)) {
		err = PTR_ERR(ctx->pd);
		goto out_free;
	}
	rbx_window_init(&ctx->window, 0, 0);
	rbx_window_set_policy(&ctx->window, &rbx_congestion_auto,
			      RBX_FRAGMENT_BYTES_DEFAULT, RBX_WINDOW_BYTES_MAX);
	ctx->lanes_left_count =
		min_t(uint32_t, device->attrs.max_cqe / LANE_COMPLETIONS,
		      LANES_MAX);
	err = rbx_poller_open(&ctx->poller, ctx,
			      (int)(ctx->lanes_left_count * LANE_COMPLETIONS),
			      &adaptive_rule);
	if (err)
		goto out_dealloc;
	*out = ctx;
	return 0;

out_dealloc:
	ib_dealloc_pd(ctx->pd);
out_free:
	kvfree(ctx);
	return err;
}

static void context_free(struct rbx_context *ctx)
{
	/* Promise 4 of the design: at the end nothing is in flight. */
	RBX_ASSERT(rbx_window_idle(&ctx->window));
	rbx_poller_close(&ctx->poller);
	ib_dealloc_pd(ctx->pd);
	ib_device_put(ctx->device);
	kvfree(ctx);
}

static struct rbx_context *context_of_locked(const struct ib_device *device)
{
	struct rbx_context *ctx;

	list_for_each_entry(ctx, &contexts, link)
		if (ctx->device == device)
			return ctx;
	return NULL;
}

/* The context of a device, which it takes: the one that is there, or a new one. */
static int context_get(struct ib_device *device, struct rbx_context **out)
{
	int err = 0;

	mutex_lock(&contexts_lock);
	*out = context_of_locked(device);
	if (!*out) {
		err = context_make(device, out);
		if (!err)
			list_add(&(*out)->link, &contexts);
	} else {
		ib_device_put(device); /* it is held already */
	}
	if (!err)
		(*out)->users_count++;
	mutex_unlock(&contexts_lock);
	if (err)
		ib_device_put(device);
	return err;
}

static void context_put(struct rbx_context *ctx)
{
	mutex_lock(&contexts_lock);
	if (--ctx->users_count == 0) {
		list_del(&ctx->link);
		context_free(ctx);
	}
	mutex_unlock(&contexts_lock);
}

/* ---- Clients ----------------------------------------------------------------*/

static void planner_set(struct rbx_client *client)
{
	struct rbx_context *ctx = client->ctx;
	const struct ib_device_attr *attrs = &ctx->device->attrs;
	uint32_t sge_max = min_t(uint32_t, attrs->max_send_sge, RBX_SGE_MAX);

	if (attrs->max_sge_rd > 0)
		sge_max = min_t(uint32_t, sge_max, attrs->max_sge_rd);
	client->planner = (struct rbx_planner){
		.merge = client->options.merge,
		.chain_max = client->options.chain ? RBX_CHAIN_MAX : 1,
		.sge_max = sge_max,
		.message_bytes_max = max(RBX_MERGE_BYTES_MAX,
					 RBX_FRAGMENT_BYTES_DEFAULT),
		.has_any_lkey = true,
		.any_lkey = ctx->pd->local_dma_lkey,
		.staging = &ctx->staging,
	};
}

const char *rbx_client_bad_option(uint32_t peer_timeout_ms, const void *secret,
				  size_t secret_bytes)
{
	if (peer_timeout_ms < PEER_TIMEOUT_MS_MIN)
		return "peer_timeout_ms";
	if (secret && (secret_bytes < SECRET_BYTES_MIN ||
		       secret_bytes > SECRET_BYTES_MAX))
		return "secret_bytes";
	return NULL;
}

int rbx_client_open(struct rbx_client *client,
		    const struct rbx_client_options *options,
		    struct sockaddr_storage *address)
{
	struct ib_device *device;
	struct rbx_context *ctx;
	int err = device_find(address, &device);

	if (!err)
		err = context_get(device, &ctx);
	if (err)
		return err;
	client->ctx = ctx;
	client->options = *options;
	planner_set(client);
	return 0;
}

void rbx_client_close(struct rbx_client *client)
{
	context_put(client->ctx);
	client->ctx = NULL;
}

/* ---- Peers ------------------------------------------------------------------*/

int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			 uint32_t lane_count)
{
	int err = -ENOSPC;
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	for (i = 0; i < RBX_PEERS_MAX && err; i++) {
		if (ctx->peers[i] || lane_count > ctx->lanes_left_count)
			continue;
		ctx->lanes_left_count -= lane_count;
		RBX_STORE_RELEASE(&ctx->peers[i], peer);
		if (i >= ctx->peer_slots_used)
			RBX_STORE_RELEASE(&ctx->peer_slots_used, i + 1);
		err = 0;
	}
	mutex_unlock(&ctx->peers_lock);
	return err;
}

void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			     uint32_t lane_count)
{
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	ctx->lanes_left_count += lane_count;
	for (i = 0; i < RBX_PEERS_MAX; i++)
		if (ctx->peers[i] == peer)
			RBX_STORE_RELEASE(&ctx->peers[i], NULL);
	mutex_unlock(&ctx->peers_lock);
	rbx_poller_visit(&ctx->poller);
}

static void visit(struct rbx_turns *turns, struct rbx_round *round,
		  struct rbx_peer *peer, uint32_t slot)
{
	struct rbx_channel *channel = &peer->channel;

	if (round->is_held && rbx_parked_waits(rbx_channel_parked(channel)))
		return;
	if (!rbx_channel_unpark(channel))
		return;
	rbx_peer_combine(peer);
	rbx_round_visited(turns, round, slot, rbx_channel_parked(channel));
}

void rbx_context_unpark(struct rbx_context *ctx)
{
	struct rbx_turns *turns = &ctx->window.turns;
	struct rbx_round round;

	if (!rbx_round_begin(turns, &round))
		return;
	do {
		uint32_t used = RBX_LOAD_ACQUIRE(&ctx->peer_slots_used), slot;

		while (rbx_round_slot(turns, &round, used, &slot)) {
			struct rbx_peer *peer =
				RBX_LOAD_ACQUIRE(&ctx->peers[slot]);

			if (peer != NULL)
				visit(turns, &round, peer, slot);
		}
	} while (!rbx_round_end(turns, &round));
}
