/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.c - see context.h, and device.h for what happens when a device goes.
 */
#include "kernel/lib/context.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "client/connection.h"
#include "core/congestion.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/device.h"
#include "kernel/lib/peer.h"

#define RESOLVE_MS 2000

#define PEER_TIMEOUT_MS_MIN 400u
#define SECRET_BYTES_MIN 16u /* wire/PROTOCOL.md, "Authentication" */
#define SECRET_BYTES_MAX 4096u

/* Queue pairs that the pollers of a device have room for before any of them gets a second
 * completion queue: 66,048 completions, 4 MiB where one takes 64 bytes. */
#define LANES_AT_FIRST 256u

/* As long as a sleep is not worth while, and no longer (core/poll_tuner.h). */
static const struct rbx_poll_rule adaptive_rule = {
	.batch_max = RBX_POLL_BATCH,
	.event_max = RBX_POLL_EVENT_UNBOUNDED,
	.tunes = true,
	.cpu_percent = 100,
};

DEFINE_MUTEX(rbx_contexts_lock);
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

/* ---- What it is bound to ----------------------------------------------------*/

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

/* Of the first so many. */
static void pollers_unbind(struct rbx_context *ctx, uint32_t count)
{
	while (count--)
		rbx_poller_unbind(&ctx->pollers[count]);
}

static int pollers_bind(struct rbx_context *ctx, struct ib_device *device)
{
	uint32_t i;
	int err;

	/* As many and as deep as the first device's, or none: the lanes are given out. */
	for (i = 0; i < ctx->pollers_count; i++) {
		err = rbx_poller_bind(&ctx->pollers[i], device,
				      rbx_context_room_max(ctx));
		if (err) {
			pollers_unbind(ctx, i);
			return err;
		}
	}
	return 0;
}

/* None of them polls meanwhile. */
static void pollers_stop_locked(struct rbx_context *ctx)
{
	uint32_t i;

	lockdep_assert_held(&rbx_contexts_lock);
	for (i = 0; i < ctx->pollers_count; i++)
		mutex_lock_nest_lock(&ctx->pollers[i].lock, &rbx_contexts_lock);
}

static void pollers_go_on(struct rbx_context *ctx)
{
	uint32_t i;

	for (i = 0; i < ctx->pollers_count; i++)
		mutex_unlock(&ctx->pollers[i].lock);
}

/* Takes the device, but not if it fails. */
static int bind_locked(struct rbx_context *ctx, struct ib_device *device)
{
	struct rbx_client *client;
	struct ib_pd *pd;
	int err;

	lockdep_assert_held(&rbx_contexts_lock);
	pd = ib_alloc_pd(device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	err = pollers_bind(ctx, device);
	if (err) {
		ib_dealloc_pd(pd);
		return err;
	}
	ctx->device = device;
	ctx->pd = pd;
	/* Nothing is planned until a peer is connected, which wants a hold. */
	list_for_each_entry(client, &ctx->clients, link)
		planner_set(client);
	return 0;
}

static void unbind_locked(struct rbx_context *ctx)
{
	lockdep_assert_held(&rbx_contexts_lock);
	pollers_unbind(ctx, ctx->pollers_count);
	ib_dealloc_pd(ctx->pd);
	ib_device_put(ctx->device);
	ctx->pd = NULL;
	ctx->device = NULL;
}

/* I/Os that come from here on are mapped when they come; those that wait are mapped
 * now. */
static int open_locked(struct rbx_context *ctx)
{
	struct rbx_mappings *mappings;
	int err = 0;

	lockdep_assert_held(&rbx_contexts_lock);
	WRITE_ONCE(ctx->open_device, ctx->device);
	synchronize_rcu();
	pollers_stop_locked(ctx);
	list_for_each_entry(mappings, &ctx->mappings, link) {
		err = mappings->map(mappings, ctx->device);
		if (err)
			break;
	}
	pollers_go_on(ctx);
	WRITE_ONCE(ctx->is_ready, !err);
	return err;
}

/* And those that come from here on are not, and those that are are unmapped. Nothing is
 * posted any more, nor will be. */
static void close_locked(struct rbx_context *ctx)
{
	struct rbx_mappings *mappings;

	lockdep_assert_held(&rbx_contexts_lock);
	WRITE_ONCE(ctx->open_device, NULL);
	synchronize_rcu();
	pollers_stop_locked(ctx);
	list_for_each_entry(mappings, &ctx->mappings, link)
		mappings->unmap(mappings, ctx->device);
	pollers_go_on(ctx);
}

static int hold_locked(struct rbx_context *ctx, struct ib_device *device)
{
	int err = 0;

	lockdep_assert_held(&rbx_contexts_lock);
	if (!device)
		device = ctx->device;
	if (!device || !rbx_device_is_there_locked(device))
		return -ENODEV;
	if (ctx->device && ctx->device != device)
		return -EXDEV;
	if (!ctx->device) {
		if (!ib_device_try_get(device))
			return -ENODEV;
		err = bind_locked(ctx, device);
		if (err)
			ib_device_put(device);
	}
	if (!err && !ctx->is_ready)
		err = open_locked(ctx);
	ctx->holds_count += !err;
	return err;
}

int rbx_context_hold(struct rbx_context *ctx, struct ib_device *device)
{
	int err;

	mutex_lock(&rbx_contexts_lock);
	err = hold_locked(ctx, device);
	mutex_unlock(&rbx_contexts_lock);
	return err;
}

void rbx_context_release(struct rbx_context *ctx)
{
	mutex_lock(&rbx_contexts_lock);
	/* Who waits for it takes the lock before it goes on. */
	WRITE_ONCE(ctx->holds_count, ctx->holds_count - 1);
	wake_up(&ctx->released);
	mutex_unlock(&rbx_contexts_lock);
}

int rbx_context_add_mappings(struct rbx_context *ctx,
			     struct rbx_mappings *mappings)
{
	int err = 0;

	mutex_lock(&rbx_contexts_lock);
	pollers_stop_locked(ctx);
	list_add(&mappings->link, &ctx->mappings);
	if (ctx->is_ready)
		err = mappings->map(mappings, ctx->device);
	pollers_go_on(ctx);
	mutex_unlock(&rbx_contexts_lock);
	return err;
}

void rbx_context_remove_mappings(struct rbx_context *ctx,
				 struct rbx_mappings *mappings)
{
	mutex_lock(&rbx_contexts_lock);
	pollers_stop_locked(ctx);
	list_del(&mappings->link);
	if (ctx->device)
		mappings->unmap(mappings, ctx->device);
	pollers_go_on(ctx);
	mutex_unlock(&rbx_contexts_lock);
}

/* ---- Contexts ---------------------------------------------------------------*/

static void pollers_close(struct rbx_context *ctx)
{
	while (ctx->pollers_count)
		rbx_poller_close(&ctx->pollers[--ctx->pollers_count]);
}

static int pollers_open(struct rbx_context *ctx, struct ib_device *device)
{
	uint32_t wanted = min3((uint32_t)max(device->num_comp_vectors, 1),
			       num_online_cpus(), RBX_CONTEXT_POLLERS_MAX);
	int err;

	while (ctx->pollers_count < wanted) {
		err = rbx_poller_open(&ctx->pollers[ctx->pollers_count], ctx,
				      ctx->pollers_count, &adaptive_rule,
				      dev_name(&device->dev), ctx->node);
		if (err) {
			pollers_close(ctx);
			return err;
		}
		ctx->pollers_count++;
	}
	ctx->lanes_each_count =
		min3((uint32_t)device->attrs.max_cqe / RBX_LANE_COMPLETIONS,
		     DIV_ROUND_UP(LANES_AT_FIRST, wanted), RBX_CQ_LANES);
	return 0;
}

/* Takes the device, but not if it fails. */
static int context_make(struct ib_device *device, struct rbx_context **out)
{
	struct rbx_context *ctx = kvzalloc(sizeof(*ctx), GFP_KERNEL);
	int err;

	if (!ctx)
		return -ENOMEM;
	mutex_init(&ctx->peers_lock);
	mutex_init(&ctx->watches_lock);
	INIT_LIST_HEAD(&ctx->watches);
	INIT_LIST_HEAD(&ctx->clients);
	INIT_LIST_HEAD(&ctx->mappings);
	init_waitqueue_head(&ctx->released);
	rbx_repairs_init(&ctx->repairs);
	ctx->node = ibdev_to_node(device);
	rbx_window_init(&ctx->window, 0, 0);
	rbx_window_set_policy(&ctx->window, &rbx_congestion_auto,
			      RBX_FRAGMENT_BYTES_DEFAULT, RBX_WINDOW_BYTES_MAX);
	err = pollers_open(ctx, device);
	if (err)
		goto out_free;
	err = bind_locked(ctx, device);
	if (err)
		goto out_close;
	/* It has no mappings yet, so that nothing of it can fail. */
	(void)open_locked(ctx);
	*out = ctx;
	return 0;

out_close:
	pollers_close(ctx);
out_free:
	kvfree(ctx);
	return err;
}

static void context_free(struct rbx_context *ctx)
{
	/* Promise 4 of the design: at the end nothing is in flight. */
	RBX_ASSERT(rbx_window_idle(&ctx->window));
	RBX_ASSERT(!ctx->window.turns.parked_count);
	rbx_repairs_destroy(&ctx->repairs);
	if (ctx->device)
		unbind_locked(ctx);
	pollers_close(ctx);
	kvfree(ctx);
}

static struct rbx_context *context_of_locked(const struct ib_device *device)
{
	struct rbx_context *ctx;

	lockdep_assert_held(&rbx_contexts_lock);
	list_for_each_entry(ctx, &contexts, link)
		if (ctx->device == device)
			return ctx;
	return NULL;
}

static void put_locked(struct rbx_context *ctx)
{
	lockdep_assert_held(&rbx_contexts_lock);
	if (--ctx->users_count == 0) {
		list_del(&ctx->link);
		context_free(ctx);
	}
}

/* The context of a device, which it takes: the one that is there, or a new one. */
static int get_locked(struct ib_device *device, struct rbx_context **out)
{
	int err;

	lockdep_assert_held(&rbx_contexts_lock);
	if (!rbx_device_is_there_locked(device)) {
		ib_device_put(device);
		return -ENODEV;
	}
	*out = context_of_locked(device);
	if (*out) {
		ib_device_put(device); /* it is held already */
	} else {
		err = context_make(device, out);
		if (err) {
			ib_device_put(device);
			return err;
		}
		list_add(&(*out)->link, &contexts);
	}
	(*out)->users_count++;
	return 0;
}

/* ---- A device goes ----------------------------------------------------------*/

static void peers_break(struct rbx_context *ctx)
{
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	for (i = 0; i < ctx->peer_slots_used; i++)
		if (ctx->peers[i])
			rbx_peer_note_broken(ctx->peers[i],
					     "its RDMA device goes");
	mutex_unlock(&ctx->peers_lock);
}

/* Without the lock in between, as who has a hold releases it under that. */
static void leave_locked(struct rbx_context *ctx)
{
	lockdep_assert_held(&rbx_contexts_lock);
	WRITE_ONCE(ctx->is_ready, false);
	ctx->users_count++;
	mutex_unlock(&rbx_contexts_lock);
	peers_break(ctx);
	rbx_context_tell_watches(ctx);
	wait_event(ctx->released, !READ_ONCE(ctx->holds_count));
	mutex_lock(&rbx_contexts_lock);
	close_locked(ctx);
	unbind_locked(ctx);
	put_locked(ctx);
}

void rbx_contexts_leave(struct ib_device *device)
{
	struct rbx_context *ctx;

	mutex_lock(&rbx_contexts_lock);
	while ((ctx = context_of_locked(device)))
		leave_locked(ctx);
	mutex_unlock(&rbx_contexts_lock);
}

/* ---- Clients ----------------------------------------------------------------*/

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

int rbx_client_open_on(struct rbx_client *client,
		       const struct rbx_client_options *options,
		       struct ib_device *device)
{
	/* Repairs want the lock too, so nothing under it may wait for our own I/O. */
	unsigned int noio = memalloc_noio_save();
	int err;

	client->is_stopped = false;
	init_waitqueue_head(&client->stopped);
	mutex_lock(&rbx_contexts_lock);
	err = get_locked(device, &client->ctx);
	if (!err) {
		client->options = *options;
		client->sessions = (struct rbx_sessions){
			.secret = options->secret,
			.silence_ms = options->peer_timeout_ms / 2,
		};
		list_add(&client->link, &client->ctx->clients);
		planner_set(client);
	}
	mutex_unlock(&rbx_contexts_lock);
	memalloc_noio_restore(noio);
	return err;
}

int rbx_client_open(struct rbx_client *client,
		    const struct rbx_client_options *options,
		    struct sockaddr_storage *address)
{
	struct ib_device *device;
	int err = device_find(address, &device);

	return err ? err : rbx_client_open_on(client, options, device);
}

/* Until a signal comes, or the client is stopped. */
int rbx_sessions_pause(struct rbx_sessions *sessions, uint64_t pause_ns)
{
	struct rbx_client *client = rbx_client_of_sessions(sessions);

	return wait_event_interruptible_timeout(
		       client->stopped, READ_ONCE(client->is_stopped),
		       (long)nsecs_to_jiffies64(pause_ns) + 1) ?
		       -EINTR :
		       0;
}

void rbx_client_stop(struct rbx_client *client)
{
	WRITE_ONCE(client->is_stopped, true);
	wake_up_all(&client->stopped);
}

void rbx_client_close(struct rbx_client *client)
{
	mutex_lock(&rbx_contexts_lock);
	list_del(&client->link);
	put_locked(client->ctx);
	mutex_unlock(&rbx_contexts_lock);
	client->ctx = NULL;
}
