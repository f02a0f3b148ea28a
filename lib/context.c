/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context.c - opens a device and puts everything in its place.
 *
 * Opening goes in the order of the struct and closing in the reverse of it.
 * After that a context only hands out slots: peers come and go.
 */
#include "lib/context.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/done_list.h"
#include "lib/options.h"
#include "lib/peer_internal.h"
#include "lib/secret.h"

/*
 * Queue pairs of one poller, and completions they may have at once: for each
 * its send depth and the sentinel receive. So no completion queue overruns.
 */
#define LANES_PER_POLLER RBX_PEERS_MAX
#define CQ_DEPTH (LANES_PER_POLLER * (RBX_SEND_DEPTH + 1))

const struct rbx_options *rbx_context_options(const struct rbx_context *ctx)
{
	return &ctx->options;
}

struct rbx_counters *rbx_context_counters(struct rbx_context *ctx)
{
	return &ctx->counters;
}

struct rbx_session_set *rbx_context_sessions(struct rbx_context *ctx)
{
	return ctx->sessions;
}

static int open_device(struct rbx_context *ctx)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err = rbx_fabric_choose(ctx->options.fabric, ctx->options.device,
				    ctx->options.gid_index, NULL,
				    &ctx->fabric);

	if (err)
		return err;
	err = ctx->fabric.ops->open(&ctx->fabric.options, &ctx->device, error);
	return err ? rbx_error(err, "%s", error) : 0;
}

static int open_sessions(struct rbx_context *ctx)
{
	/*
	 * peer_timeout_ms is from the last sign of life to the end of the last
	 * request: half of it until silence is noticed, a quarter for resuming,
	 * and a quarter for the last attempt, which may begin at the end of
	 * that (peer_keeper.c).
	 */
	struct rbx_session_set_options options = {
		.device = ctx->device,
		.insecure = ctx->options.insecure != 0,
		.peer_timeout_ms = ctx->options.peer_timeout_ms / 2,
	};

	if (ctx->options.secret_file[0] != '\0') {
		int err = rbx_secret_load(ctx->options.secret_file,
					  &ctx->secret);

		if (err)
			return err;
	}
	options.secret = ctx->secret;
	return rbx_session_set_open(&ctx->sessions, &options);
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
	uint64_t window_bytes = ctx->options.window_bytes;
	uint32_t merged_bytes_max =
		RBX_MAX(RBX_MERGE_BYTES_MAX, ctx->options.fragment_bytes);

	/* What merging makes is to fit into the window. */
	if (window_bytes != 0 && window_bytes < merged_bytes_max)
		merged_bytes_max = (uint32_t)window_bytes;

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

static int open_pollers(struct rbx_context *ctx)
{
	uint32_t count = RBX_MAX(ctx->options.pollers, 1u);

	for (; ctx->poller_count < count; ctx->poller_count++) {
		int err = rbx_poller_create(ctx, CQ_DEPTH,
					    ctx->options.pollers != 0,
					    &ctx->pollers[ctx->poller_count]);

		if (err)
			return err;
	}
	return 0;
}

static void close_pollers(struct rbx_context *ctx)
{
	while (ctx->poller_count > 0)
		rbx_poller_destroy(ctx->pollers[--ctx->poller_count]);
}

static int check_buffers(struct rbx_context *ctx)
{
	if (strcmp(ctx->options.buffers, "direct") == 0 &&
	    !ctx->device->caps.has_any_lkey)
		return rbx_error(-EINVAL,
				 "buffers=direct: %s needs registered memory; "
				 "use buffers=auto and rbx_region_register()",
				 ctx->device->caps.description);
	return 0;
}

int rbx_open(struct rbx_context **out, const struct rbx_options *options)
{
	struct rbx_options defaults;
	struct rbx_context *ctx;
	int err;

	if (out == NULL)
		return rbx_error(-EINVAL, "nowhere to put the context");
	if (options == NULL) {
		rbx_options_defaults(&defaults);
		options = &defaults;
	}
	err = rbx_options_check(options);
	if (err)
		return err;
	ctx = calloc(1, sizeof(*ctx));
	if (ctx == NULL)
		return rbx_error(-ENOMEM, "cannot allocate a context");
	ctx->options = *options;
	pthread_mutex_init(&ctx->peers_lock, NULL);
	err = rbx_done_list_init(ctx);
	if (err)
		goto out_free;
	err = open_device(ctx);
	if (err)
		goto out_done_list;
	err = check_buffers(ctx);
	if (err)
		goto out_close_device;
	err = open_staging(ctx);
	if (err)
		goto out_close_staging;
	set_planner(ctx);
	rbx_window_init(&ctx->window, &rbx_congestion_static,
			options->window_bytes, options->window_work_requests);
	err = open_sessions(ctx);
	if (err)
		goto out_free_secret;
	err = open_pollers(ctx);
	if (err)
		goto out_close_pollers;
	*out = ctx;
	return 0;

out_close_pollers:
	close_pollers(ctx);
	rbx_session_set_close(ctx->sessions);
out_free_secret:
	rbx_secret_free(ctx->secret);
out_close_staging:
	close_staging(ctx);
out_close_device:
	ctx->device->ops->close(ctx->device);
out_done_list:
	rbx_done_list_destroy(ctx);
out_free:
	pthread_mutex_destroy(&ctx->peers_lock);
	free(ctx);
	return err;
}

void rbx_close(struct rbx_context *ctx)
{
	/* Promise 4 of the design: at the end nothing is in flight. */
	RBX_ASSERT(rbx_window_in_flight_bytes(&ctx->window) == 0);
	RBX_ASSERT(rbx_window_in_flight_work_requests(&ctx->window) == 0);
	close_pollers(ctx);
	rbx_session_set_close(ctx->sessions);
	rbx_secret_free(ctx->secret);
	close_staging(ctx);
	ctx->device->ops->close(ctx->device);
	rbx_done_list_destroy(ctx);
	pthread_mutex_destroy(&ctx->peers_lock);
	free(ctx);
}

/* The poller with the fewest queue pairs, or NULL where none has room. */
static struct rbx_poller *choose_poller(struct rbx_context *ctx)
{
	struct rbx_poller *best = ctx->pollers[0];

	for (uint32_t i = 1; i < ctx->poller_count; i++) {
		if (ctx->pollers[i]->lane_count < best->lane_count)
			best = ctx->pollers[i];
	}
	return best->lane_count + ctx->options.queue_pairs > LANES_PER_POLLER ?
		       NULL :
		       best;
}

int rbx_context_add_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			 struct rbx_poller **poller)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&ctx->peers_lock);
	*poller = choose_poller(ctx);
	for (uint32_t i = 0; *poller != NULL && i < RBX_PEERS_MAX; i++) {
		if (ctx->peers[i] != NULL)
			continue;
		(*poller)->lane_count += ctx->options.queue_pairs;
		RBX_STORE_RELEASE(&ctx->peers[i], peer);
		if (i >= ctx->peer_slots_used)
			RBX_STORE_RELEASE(&ctx->peer_slots_used, i + 1);
		err = 0;
		break;
	}
	pthread_mutex_unlock(&ctx->peers_lock);
	return err ? rbx_error(err,
			       "too many peers: a context has at most %u, and "
			       "%u queue pairs for each poller",
			       RBX_PEERS_MAX, LANES_PER_POLLER) :
		     0;
}

void rbx_context_remove_peer(struct rbx_context *ctx, struct rbx_peer *peer,
			     struct rbx_poller *poller)
{
	pthread_mutex_lock(&ctx->peers_lock);
	poller->lane_count -= ctx->options.queue_pairs;
	for (uint32_t i = 0; i < RBX_PEERS_MAX; i++) {
		if (ctx->peers[i] == peer)
			RBX_STORE_RELEASE(&ctx->peers[i], NULL);
	}
	for (uint32_t i = 0; i < ctx->poller_count; i++) {
		rbx_poller_visit(ctx->pollers[i]);
		rbx_poller_leave(ctx->pollers[i]);
	}
	pthread_mutex_unlock(&ctx->peers_lock);
}

void rbx_context_unpark(struct rbx_context *ctx)
{
	uint32_t used = RBX_LOAD_ACQUIRE(&ctx->peer_slots_used);

	for (uint32_t i = 0; i < used; i++) {
		struct rbx_peer *peer = RBX_LOAD_ACQUIRE(&ctx->peers[i]);

		if (peer != NULL && rbx_channel_unpark(&peer->channel))
			rbx_peer_combine(peer);
	}
}
