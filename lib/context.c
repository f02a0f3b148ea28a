/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.c - opens and closes a context.
 *
 * Opening goes in the order of the struct, closing in the reverse order. Afterwards a
 * context only gives slots to peers and takes them back.
 */
#include "lib/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/done_list.h"
#include "lib/integrity.h"
#include "lib/options.h"
#include "lib/pacing.h"
#include "lib/peer/internal.h"
#include "lib/poller/set.h"
#include "lib/secret.h"
#include "lib/stats.h"

const struct rbx_options *rbx_context_options(const struct rbx_context *ctx)
{
	return &ctx->options;
}

struct rbx_counters *rbx_context_counters(struct rbx_context *ctx)
{
	return &ctx->counters;
}

struct rbx_sessions *rbx_context_sessions(struct rbx_context *ctx)
{
	return ctx->sessions;
}

static int load_secret(struct rbx_context *ctx)
{
	if (ctx->options.secret_file[0] == '\0')
		return 0;
	return rbx_secret_load(ctx->options.secret_file, &ctx->secret);
}

static int open_device(struct rbx_context *ctx)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_tls_key key;
	int err = rbx_fabric_choose(ctx->options.fabric, ctx->options.device,
				    ctx->options.gid_index, NULL,
				    &ctx->fabric);

	if (err)
		return err;
	rbx_overload_parse(ctx->options.overload,
			   &ctx->fabric.options.overload_work_requests,
			   &ctx->fabric.options.overload_cost_ns);
	if (ctx->fabric.options.overload_cost_ns != 0 &&
	    strcmp(ctx->fabric.ops->name, "soft") != 0)
		return rbx_error(-EINVAL,
				 "overload=%s: only the soft fabric can; give "
				 "fabric=soft or soft:tcp",
				 ctx->options.overload);
	ctx->fabric.options.on_demand_paging = ctx->options.on_demand_paging;
	ctx->fabric.options.traffic_class = (uint8_t)ctx->options.traffic_class;
	if (ctx->secret)
		rbx_tls_key_of_root(rbx_root_of_secret(ctx->secret), ctx->options.credential,
				    &key);
	err = rbx_integrity_choose(ctx->options.integrity, ctx->secret ? &key : NULL,
				   &ctx->fabric);
	if (err)
		return err;
	err = ctx->fabric.ops->open(&ctx->fabric.options, &ctx->device, error);
	explicit_bzero(&key, sizeof(key));
	ctx->fabric.options.tls_key = NULL;
	return err ? rbx_error(err, "%s", error) : 0;
}

/* Takes what the tuning file knows and no option sets. */
static int take_tuning(struct rbx_context *ctx)
{
	const struct rbx_device_caps *caps = &ctx->device->caps;

	rbx_tuning_load(ctx->options.tune_file, ctx->device, &ctx->tuning,
			ctx->tuning_note);
	if (ctx->options.queue_pairs > caps->max_qp)
		return rbx_error(-EINVAL,
				 "queue_pairs=%u: %s has %u at most; ask for fewer",
				 ctx->options.queue_pairs, caps->name,
				 caps->max_qp);
	if (ctx->options.queue_pairs == 0)
		ctx->options.queue_pairs =
			RBX_MAX(ctx->tuning.queue_pairs, 1u);
	return 0;
}

static int open_sessions(struct rbx_context *ctx)
{
	/*
	 * peer_timeout_ms is the time from the last sign of life to the end of the last
	 * request. Half of it passes until silence is noticed; the rest is for resuming
	 * (core/peer_state.h).
	 */
	struct rbx_sessions_options options = {
		.device = ctx->device,
		.insecure = ctx->options.insecure != 0,
		.integrity_off = ctx->options.integrity == RBX_INTEGRITY_OFF,
		.silence_ms = ctx->options.peer_timeout_ms / 2,
	};

	options.secret = ctx->secret;
	options.credential = ctx->options.credential;
	return rbx_sessions_open(&ctx->sessions, &options);
}

static int open_staging(struct rbx_context *ctx)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_mr_init init = {
		.length_bytes = RBX_STAGING_BYTES,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	int err;

	if (ctx->device->caps.has_any_lkey &&
	    strcmp(ctx->options.buffers, "staging") != 0)
		return 0;
	ctx->staging_memory = mmap(NULL, RBX_STAGING_BYTES,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctx->staging_memory == MAP_FAILED) {
		ctx->staging_memory = NULL;
		return rbx_error(-ENOMEM, "cannot allocate %u MiB of staging memory",
				 (unsigned int)(RBX_STAGING_BYTES >> 20));
	}
	init.addr = ctx->staging_memory;
	err = ctx->device->ops->register_memory(ctx->device, &init, 1,
						&ctx->staging_mr, error);
	if (err)
		return rbx_error(err, "%s", error);
	ctx->counters.registrations++;
	rbx_staging_init(&ctx->staging, ctx->staging_memory,
			 ctx->staging_mr->lkey);
	return 0;
}

static void close_staging(struct rbx_context *ctx)
{
	if (ctx->staging_mr)
		ctx->device->ops->deregister_memory(ctx->device,
						    &ctx->staging_mr, 1);
	if (ctx->staging_memory)
		munmap(ctx->staging_memory, RBX_STAGING_BYTES);
}

static void set_planner(struct rbx_context *ctx)
{
	const struct rbx_device_caps *caps = &ctx->device->caps;
	const struct rbx_mode *mode = rbx_mode_find(ctx->options.mode);
	uint32_t merged_bytes_max =
		RBX_MAX(RBX_MERGE_BYTES_MAX, ctx->options.fragment_bytes);
	const struct rbx_window *window = &ctx->window;

	/* A merged work request must fit into a fixed window. */
	if (!window->ops)
		merged_bytes_max = (uint32_t)RBX_MIN(merged_bytes_max,
						     window->bytes_max);

	ctx->planner = (struct rbx_planner){
		.merge = mode->merge,
		.chain_max = mode->chain ? RBX_CHAIN_MAX : 1,
		.sge_max = RBX_MIN(caps->max_sge, RBX_SGE_MAX),
		.message_bytes_max = merged_bytes_max,
		.stage_always = strcmp(ctx->options.buffers, "staging") == 0,
		.has_any_lkey = caps->has_any_lkey,
		.any_lkey = caps->any_lkey,
		.staging = &ctx->staging,
	};
}

int rbx_open(struct rbx_context **out, const struct rbx_options *options)
{
	struct rbx_options taken;
	struct rbx_context *ctx;
	int err = 0;

	if (!out)
		return rbx_error(-EINVAL, "there must be a pointer for the context");
	rbx_options_defaults(&taken);
	if (options)
		err = rbx_options_take(&taken, options);
	if (!err)
		err = rbx_options_check(&taken);
	if (!err)
		err = rbx_forks_watch();
	if (err)
		return err;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return rbx_error(-ENOMEM, "cannot allocate a context");
	ctx->forks_count = rbx_forks_count;
	ctx->options = taken;
	if (taken.congestion) /* for rbx_describe() */
		snprintf(ctx->options.window, sizeof(ctx->options.window), "%s",
			 taken.congestion->name);
	pthread_mutex_init(&ctx->peers_lock, NULL);
	pthread_mutex_init(&ctx->queues_lock, NULL);
	pthread_mutex_init(&ctx->view_lock, NULL);
	rbx_repairs_init(&ctx->repairs);
	err = rbx_done_list_init(ctx);
	if (err)
		goto out_free;
	err = load_secret(ctx);
	if (!err)
		err = open_device(ctx);
	if (err)
		goto out_secret;
	err = take_tuning(ctx);
	if (err)
		goto out_close_staging;
	err = open_staging(ctx);
	if (err)
		goto out_close_staging;
	err = rbx_buffers_open(ctx);
	if (err)
		goto out_close_staging;
	rbx_pacing_set(&taken, &ctx->window);
	set_planner(ctx);
	err = open_sessions(ctx);
	if (err)
		goto out_close_buffers;
	err = rbx_pollers_open(ctx);
	if (err)
		goto out_close_pollers;
	*out = ctx;
	return 0;

out_close_pollers:
	rbx_pollers_close(ctx);
	rbx_sessions_close(ctx->sessions);
out_close_buffers:
	rbx_buffers_close(ctx);
out_close_staging:
	close_staging(ctx);
	ctx->device->ops->close(ctx->device);
out_secret:
	rbx_secret_free(ctx->secret);
	rbx_done_list_destroy(ctx);
out_free:
	rbx_repairs_destroy(&ctx->repairs);
	pthread_mutex_destroy(&ctx->view_lock);
	pthread_mutex_destroy(&ctx->queues_lock);
	pthread_mutex_destroy(&ctx->peers_lock);
	free(ctx);
	return err;
}

/* 0, or -EBUSY: something of the context is still open. */
static int check_closed(const struct rbx_context *ctx)
{
	const struct {
		const uint32_t *count;
		const char *what, *close;
	} open[] = {
		{ &ctx->links_count, "queue pairs of the program",
		  "rbx_verbs_link_close" },
		{ &ctx->queues_count, "queues", "rbx_queue_destroy" },
		{ &ctx->listeners_count, "listeners",
		  "rbx_endpoint_listener_close" },
		{ &ctx->domains_count, "protection domains",
		  "rbx_protection_domain_destroy" },
		{ &ctx->watches_count, "watches of servers",
		  "rbx_server_watch_close" },
		{ &ctx->volumes_count, "volumes", "rbx_volume_close" },
		{ &ctx->peers_count, "peers", "rbx_peer_close" },
		{ &ctx->regions_count, "regions", "rbx_region_release" },
	};

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		uint32_t count = RBX_LOAD_ACQUIRE(open[i].count);

		if (count != 0)
			return rbx_error(-EBUSY, "rbx_close: %s of the context are still open (%u): %s() first",
					 open[i].what, count, open[i].close);
	}
	return 0;
}

int rbx_close(struct rbx_context *ctx)
{
	int err;

	if (!ctx)
		return 0;
	err = rbx_guard_wait(ctx, "rbx_close");
	if (!err)
		err = check_closed(ctx);
	if (err)
		return err;
	/* Promise 4 of the design: at the end nothing is in flight. */
	RBX_ASSERT(rbx_window_in_flight_bytes(&ctx->window) == 0);
	RBX_ASSERT(rbx_window_in_flight_work_requests(&ctx->window) == 0);
	rbx_repairs_destroy(&ctx->repairs);
	RBX_ASSERT(ctx->window.turns.parked_count == 0);
	rbx_pollers_close(ctx);
	rbx_sessions_close(ctx->sessions);
	rbx_buffers_close(ctx);
	close_staging(ctx);
	ctx->device->ops->close(ctx->device);
	rbx_secret_free(ctx->secret);
	rbx_done_list_destroy(ctx);
	pthread_mutex_destroy(&ctx->view_lock);
	pthread_mutex_destroy(&ctx->queues_lock);
	pthread_mutex_destroy(&ctx->peers_lock);
	free(ctx);
	return 0;
}

int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	int err;

	pthread_mutex_lock(&ctx->peers_lock);
	err = rbx_pollers_assign_locked(ctx, peer);
	if (!err && !rbx_channel_slots_add_peer(&ctx->channels, &peer->channel)) {
		rbx_pollers_release_locked(peer);
		err = rbx_error(-ENOSPC, "too many peers: a context has at most %u",
				RBX_PEERS_MAX);
	}
	pthread_mutex_unlock(&ctx->peers_lock);
	return err;
}

/* When it returns, no thread uses the channel any more. */
static void channel_remove_locked(struct rbx_context *ctx,
				  struct rbx_channel *channel)
{
	pthread_mutex_lock(&ctx->view_lock);
	rbx_channel_slots_remove(&ctx->channels, channel);
	rbx_stats_keep_channel(ctx, channel);
	pthread_mutex_unlock(&ctx->view_lock);
	rbx_pollers_visit_all(ctx);
	rbx_queues_visit_all(ctx);
	rbx_channel_leave(channel);
}

void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer)
{
	pthread_mutex_lock(&ctx->peers_lock);
	rbx_pollers_release_locked(peer);
	channel_remove_locked(ctx, &peer->channel);
	pthread_mutex_unlock(&ctx->peers_lock);
}

int rbx_context_add_paced(struct rbx_context *ctx, struct rbx_channel *channel)
{
	bool is_added;

	pthread_mutex_lock(&ctx->peers_lock);
	is_added = rbx_channel_slots_add_paced(&ctx->channels, channel);
	pthread_mutex_unlock(&ctx->peers_lock);
	return is_added ? 0 :
			  rbx_error(-ENOSPC, "too many paced endpoints: a context has at most %u",
				    RBX_CHANNELS_MAX - RBX_PEERS_MAX);
}

void rbx_context_remove_paced(struct rbx_context *ctx,
			      struct rbx_channel *channel)
{
	pthread_mutex_lock(&ctx->peers_lock);
	channel_remove_locked(ctx, channel);
	pthread_mutex_unlock(&ctx->peers_lock);
}

static void combine(struct rbx_channel *channel)
{
	if (rbx_channel_is_paced(channel))
		rbx_paced_combine(channel);
	else
		rbx_drive_combine(&rbx_peer_drive, channel);
}

bool rbx_context_unpark(struct rbx_context *ctx)
{
	static const struct rbx_drive_channels channels = {
		.slots_used = rbx_channel_slots_used,
		.at = rbx_channel_slots_at,
		.combine = combine,
	};

	return rbx_drive_unpark(&channels, &ctx->channels, &ctx->window.turns);
}
