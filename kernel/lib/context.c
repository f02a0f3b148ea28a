/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.c - makes contexts and binds them to devices; see context.h, and device.h for
 * the removal of a device.
 */
#include "kernel/lib/context.h"

#include <linux/slab.h>

#include "core/congestion.h"
#include "kernel/lib/device.h"
#include "kernel/lib/peer/peer.h"

/* The pollers of a device have room for so many queue pairs before any of them gets a
 * second completion queue: 66,048 completions, 4 MiB if one takes 64 bytes. */
#define QPS_AT_FIRST 256u

static const struct rbx_poll_rule adaptive_rule = RBX_POLL_RULE_ADAPTIVE;

DEFINE_MUTEX(rbx_contexts_lock);
static LIST_HEAD(contexts);

/* ---- Binding to a device ------------------------------------------------------*/

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

/* Unbinds the first `count` pollers. */
static void pollers_unbind(struct rbx_context *ctx, uint32_t count)
{
	while (count--)
		rbx_poller_unbind(&ctx->pollers[count]);
}

static int pollers_bind(struct rbx_context *ctx, struct ib_device *device)
{
	uint32_t i;
	int err;

	/* As many and as deep as for the first device, or none: the room for queue pairs
	 * has been given out already. */
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

/* None of them polls until they are started again. */
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
	ctx->node_guid = device->node_guid;
	ctx->pd = pd;
	/* Nothing is planned before a peer is connected, and that needs a hold. */
	list_for_each_entry(client, &ctx->clients, link)
		planner_set(client);
	return 0;
}

/* Binds it, and holds the device as long as it is bound. */
static int take_device_locked(struct rbx_context *ctx, struct ib_device *device)
{
	int err;

	lockdep_assert_held(&rbx_contexts_lock);
	if (!ib_device_try_get(device))
		return -ENODEV;
	err = bind_locked(ctx, device);
	if (err)
		ib_device_put(device);
	return err;
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

/* From now on I/Os are mapped when they are submitted. Those that wait are mapped now. */
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

/* From now on I/Os are not mapped when they are submitted. Those that are mapped are
 * unmapped. Nothing is posted any more. */
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
	if (!ctx->device)
		err = take_device_locked(ctx, device);
	if (!err && !ctx->is_ready)
		err = open_locked(ctx);
	ctx->holds_count += !err;
	return err;
}

int rbx_context_hold(struct rbx_context *ctx, struct ib_device *device)
{
	unsigned int noio = rbx_contexts_take();
	int err;

	err = hold_locked(ctx, device);
	rbx_contexts_give(noio);
	return err;
}

void rbx_context_release(struct rbx_context *ctx)
{
	unsigned int noio = rbx_contexts_take();

	/* The thread that waits for it takes the lock before it goes on. */
	WRITE_ONCE(ctx->holds_count, ctx->holds_count - 1);
	wake_up(&ctx->released);
	rbx_contexts_give(noio);
}

int rbx_context_add_mappings(struct rbx_context *ctx,
			     struct rbx_mappings *mappings)
{
	unsigned int noio = rbx_contexts_take();
	int err = 0;

	pollers_stop_locked(ctx);
	list_add(&mappings->link, &ctx->mappings);
	if (ctx->is_ready)
		err = mappings->map(mappings, ctx->device);
	pollers_go_on(ctx);
	rbx_contexts_give(noio);
	return err;
}

void rbx_context_remove_mappings(struct rbx_context *ctx,
				 struct rbx_mappings *mappings)
{
	unsigned int noio = rbx_contexts_take();

	pollers_stop_locked(ctx);
	list_del(&mappings->link);
	if (ctx->device)
		mappings->unmap(mappings, ctx->device);
	pollers_go_on(ctx);
	rbx_contexts_give(noio);
}

/* ---- Contexts ---------------------------------------------------------------*/

static void pollers_close(struct rbx_context *ctx)
{
	while (ctx->pollers_count)
		rbx_poller_close(&ctx->pollers[--ctx->pollers_count]);
}

/* Without the lock: creating a thread may wait for our own I/O. */
static int pollers_open(struct rbx_context *ctx, struct ib_device *device)
{
	uint32_t wanted = min3((uint32_t)max(device->num_comp_vectors, 1),
			       num_online_cpus(), RBX_CONTEXT_POLLERS_MAX);
	int err;

	lockdep_assert_not_held(&rbx_contexts_lock);
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
	ctx->qps_each_count =
		min3((uint32_t)device->attrs.max_cqe / RBX_QP_COMPLETIONS,
		     DIV_ROUND_UP(QPS_AT_FIRST, wanted), RBX_CQ_QPS);
	return 0;
}

/* Makes a context that is not bound and not in the list. */
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
		kvfree(ctx);
	else
		*out = ctx;
	return err;
}

/* Frees a context that is in no list and not bound. NULL: does nothing. */
static void context_free(struct rbx_context *ctx)
{
	if (!ctx)
		return;
	lockdep_assert_not_held(&rbx_contexts_lock);
	rbx_repairs_destroy(&ctx->repairs);
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

/* Returns the context if it has to be freed, without the lock. NULL: it has other users. */
static struct rbx_context *put_locked(struct rbx_context *ctx)
{
	lockdep_assert_held(&rbx_contexts_lock);
	if (--ctx->users_count != 0)
		return NULL;
	/* Promise 4 of the design: at the end nothing is in flight. */
	RBX_ASSERT(rbx_window_idle(&ctx->window));
	RBX_ASSERT(!ctx->window.turns.parked_count);
	list_del(&ctx->link);
	if (ctx->device)
		unbind_locked(ctx);
	return ctx;
}

/* Binds a new context to its device, which it holds from now on. */
static int publish_locked(struct rbx_context *ctx, struct ib_device *device)
{
	int err;

	lockdep_assert_held(&rbx_contexts_lock);
	err = take_device_locked(ctx, device);
	if (err)
		return err;
	/* It has no mappings yet, so this cannot fail. */
	(void)open_locked(ctx);
	list_add(&ctx->link, &contexts);
	return 0;
}

/* A context whose device was removed, if this is the same device again; or NULL. */
static struct rbx_context *context_left_locked(const struct ib_device *device)
{
	struct rbx_context *ctx;

	lockdep_assert_held(&rbx_contexts_lock);
	list_for_each_entry(ctx, &contexts, link)
		if (!ctx->device && ctx->node_guid == device->node_guid)
			return ctx;
	return NULL;
}

/* Makes a client use the context of a device: the one that exists, one whose device has
 * come back, or `made`. -EAGAIN: there is none; -ENODEV, -ENOMEM. */
static int join_locked(struct rbx_client *client, struct ib_device *device,
		       struct rbx_context *made)
{
	struct rbx_context *ctx;
	int err = 0;

	lockdep_assert_held(&rbx_contexts_lock);
	if (!rbx_device_is_there_locked(device))
		return -ENODEV;
	ctx = context_of_locked(device);
	if (!ctx && (ctx = context_left_locked(device))) {
		err = take_device_locked(ctx, device);
		if (!err)
			err = open_locked(ctx);
	} else if (!ctx) {
		ctx = made;
		err = made ? publish_locked(made, device) : -EAGAIN;
	}
	if (err)
		return err;
	ctx->users_count++;
	client->ctx = ctx;
	list_add(&client->link, &ctx->clients);
	planner_set(client);
	return 0;
}

static int join(struct rbx_client *client, struct ib_device *device,
		struct rbx_context *made)
{
	unsigned int noio = rbx_contexts_take();
	int err;

	err = join_locked(client, device, made);
	rbx_contexts_give(noio);
	return err;
}

int rbx_context_join(struct rbx_client *client, struct ib_device *device)
{
	struct rbx_context *made = NULL;
	int err = join(client, device, NULL);

	if (err != -EAGAIN)
		return err;
	err = context_make(device, &made);
	if (!err)
		err = join(client, device, made);
	/* Another thread may have made one meanwhile. */
	if (err || client->ctx != made)
		context_free(made);
	return err;
}

void rbx_context_part(struct rbx_client *client)
{
	unsigned int noio = rbx_contexts_take();
	struct rbx_context *last;

	list_del(&client->link);
	last = put_locked(client->ctx);
	rbx_contexts_give(noio);
	context_free(last);
	client->ctx = NULL;
}

struct rbx_client *rbx_context_client(struct rbx_client *first, const struct ib_device *device)
{
	unsigned int noio = rbx_contexts_take();
	struct rbx_client *client, *left = NULL;

	for (client = first; client; client = rbx_client_next(client)) {
		if (client->ctx->device == device)
			break;
		if (!client->ctx->device && client->ctx->node_guid == device->node_guid)
			left = client;
	}
	rbx_contexts_give(noio);
	return client ?: left;
}

/* ---- Removal of a device -------------------------------------------------------*/

static void peers_break(struct rbx_context *ctx)
{
	uint32_t i;

	mutex_lock(&ctx->peers_lock);
	for (i = 0; i < ctx->channels.peers_used; i++)
		if (ctx->channels.peers[i])
			rbx_peer_note_broken(
				rbx_peer_of_channel(ctx->channels.peers[i]),
				"its RDMA device goes");
	mutex_unlock(&ctx->peers_lock);
}

/* The lock is released in between, as a holder needs it to release its hold. */
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
	ctx = put_locked(ctx);
	mutex_unlock(&rbx_contexts_lock);
	context_free(ctx);
	mutex_lock(&rbx_contexts_lock);
}

void rbx_contexts_leave(struct ib_device *device)
{
	unsigned int noio = rbx_contexts_take();
	struct rbx_context *ctx;

	while ((ctx = context_of_locked(device)))
		leave_locked(ctx);
	rbx_contexts_give(noio);
}
