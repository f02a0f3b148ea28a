/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stats.c - adds up the counters of the pollers, the channels and the context.
 *
 * Each counter has one writer and is read without a lock. So the numbers of one call may
 * be from slightly different moments.
 */
#include <string.h>

#include "lib/buffers/region_cache.h"
#include "lib/peer/internal.h"
#include "lib/sized.h"

static void add_channel(struct rbx_stats *stats,
			const struct rbx_channel_counters *counters)
{
	stats->work_requests += RBX_LOAD_RELAXED(&counters->work_requests);
	stats->doorbells += RBX_LOAD_RELAXED(&counters->doorbells);
	stats->merged_requests += RBX_LOAD_RELAXED(&counters->merged_requests);
	stats->window_waits += RBX_LOAD_RELAXED(&counters->window_waits);
	stats->staged_bytes += RBX_LOAD_RELAXED(&counters->staged_bytes);
	stats->retries += RBX_LOAD_RELAXED(&counters->retries);
}

static void add_poller(struct rbx_stats *stats,
		       const struct rbx_poller_counters *counters)
{
	stats->requests += RBX_LOAD_RELAXED(&counters->requests);
	stats->bytes += RBX_LOAD_RELAXED(&counters->bytes);
	stats->errors += RBX_LOAD_RELAXED(&counters->errors);
}

static void add_polls(struct rbx_stats *stats,
		      const struct rbx_poll_counters *counters)
{
	stats->completions += RBX_LOAD_RELAXED(&counters->completions);
	stats->polls += RBX_LOAD_RELAXED(&counters->polls);
	stats->empty_polls += RBX_LOAD_RELAXED(&counters->empty_polls);
	stats->arms += RBX_LOAD_RELAXED(&counters->arms);
	stats->wakeups += RBX_LOAD_RELAXED(&counters->wakeups);
}

static void add_usage(struct rbx_stats *stats, struct rbx_poller *poller)
{
	struct rbx_poller_usage usage;

	rbx_poller_usage_get(poller, &usage);
	stats->context_switches += usage.context_switches;
	stats->poller_cpu_ns += usage.cpu_ns;
}

static void add_context(struct rbx_stats *stats,
			const struct rbx_counters *counters)
{
	stats->registrations += RBX_LOAD_RELAXED(&counters->registrations);
	stats->deregistrations += RBX_LOAD_RELAXED(&counters->deregistrations);
	stats->registration_failures +=
		RBX_LOAD_RELAXED(&counters->registration_failures);
	stats->failovers += RBX_LOAD_RELAXED(&counters->volumes.failovers);
	stats->rebuilt_bytes +=
		RBX_LOAD_RELAXED(&counters->volumes.rebuilt_bytes);
	stats->checksum_errors +=
		RBX_LOAD_RELAXED(&counters->volumes.checksum_errors);
	stats->checksum_repairs +=
		RBX_LOAD_RELAXED(&counters->volumes.checksum_repairs);
	stats->messages_sent += RBX_LOAD_RELAXED(&counters->messages_sent);
	stats->messages_received +=
		RBX_LOAD_RELAXED(&counters->messages_received);
}

static void add_regions(struct rbx_stats *stats, struct rbx_region_cache *cache)
{
	struct rbx_region_cache_counters counters;

	if (!cache)
		return;
	rbx_region_cache_counters(cache, &counters);
	stats->registrations += counters.regions.registrations;
	stats->deregistrations += counters.regions.deregistrations;
	stats->registration_failures += counters.failures;
	stats->region_hits += counters.regions.hits;
	stats->region_partial_hits += counters.regions.partial_hits;
	stats->region_misses += counters.regions.misses;
	stats->region_evictions += counters.regions.deregistrations;
	stats->region_bytes = counters.bytes;
	stats->region_spent_ns += counters.spent_ns;
	stats->region_saved_ns += counters.saved_ns;
}

static void add_window(struct rbx_stats *stats, const struct rbx_window *window)
{
	stats->window_clamps += RBX_LOAD_RELAXED(&window->clamps);
}

static void add_peers(struct rbx_context *ctx, struct rbx_stats *stats)
{
	pthread_mutex_lock(&ctx->view_lock);
	add_channel(stats, &ctx->closed_channels);
	for (uint32_t i = 0; i < rbx_channel_slots_used(&ctx->channels); i++) {
		struct rbx_channel *channel =
			rbx_channel_slots_at(&ctx->channels, i);

		if (channel)
			add_channel(stats, &channel->counters);
	}
	pthread_mutex_unlock(&ctx->view_lock);
}

/* Everything since rbx_open(), except the latencies. */
static void collect(struct rbx_context *ctx, struct rbx_stats *stats)
{
	uint32_t poller_count = RBX_LOAD_ACQUIRE(&ctx->poller_count);

	memset(stats, 0, sizeof(*stats));
	add_context(stats, &ctx->counters);
	add_regions(stats, ctx->buffers.cache);
	add_window(stats, &ctx->window);
	for (uint32_t i = 0; i < poller_count; i++) {
		add_poller(stats, &ctx->pollers[i]->counters);
		add_polls(stats, &ctx->pollers[i]->round.counters);
		add_usage(stats, ctx->pollers[i]);
	}
	add_peers(ctx, stats);
}

static void get_latency(struct rbx_context *ctx, struct rbx_stats *stats)
{
	uint32_t poller_count = RBX_LOAD_ACQUIRE(&ctx->poller_count);
	struct rbx_histogram all;

	rbx_histogram_clear(&all);
	for (uint32_t i = 0; i < poller_count; i++)
		rbx_histogram_merge(&all, &ctx->pollers[i]->latency);
	stats->latency_p50_ns = rbx_histogram_quantile(&all, 500);
	stats->latency_p99_ns = rbx_histogram_quantile(&all, 990);
	stats->latency_p999_ns = rbx_histogram_quantile(&all, 999);
	stats->latency_max_ns = all.max;
}

void rbx_stats_get_sized(struct rbx_context *ctx, struct rbx_stats *stats,
			 size_t size_bytes)
{
	struct rbx_stats now;
	uint64_t region_bytes;

	if (rbx_guard_use(ctx, "rbx_stats_get")) {
		memset(stats, 0, size_bytes);
		return;
	}
	collect(ctx, &now);
	region_bytes = now.region_bytes;
#define SINCE_RESET(name, what) now.name -= ctx->stats_base.name;
	RBX_STATS(SINCE_RESET)
#undef SINCE_RESET
	now.region_bytes = region_bytes;
	now.window_bytes = rbx_window_bytes(&ctx->window);
	now.inflight_bytes = rbx_window_in_flight_bytes(&ctx->window);
	now.inflight_bytes_max =
		RBX_LOAD_RELAXED(&ctx->window.in_flight_bytes_peak);
	get_latency(ctx, &now);
	rbx_sized_give(stats, size_bytes, &now, sizeof(now));
}

void rbx_stats_reset(struct rbx_context *ctx)
{
	uint32_t poller_count = RBX_LOAD_ACQUIRE(&ctx->poller_count);

	if (rbx_guard_use(ctx, "rbx_stats_reset"))
		return;
	collect(ctx, &ctx->stats_base);
	for (uint32_t i = 0; i < poller_count; i++)
		rbx_histogram_clear(&ctx->pollers[i]->latency);
	RBX_STORE_RELAXED(&ctx->window.in_flight_bytes_peak, 0);
}

void rbx_stats_keep_channel(struct rbx_context *ctx,
			    const struct rbx_channel *channel)
{
	const struct rbx_channel_counters *from = &channel->counters;
	struct rbx_channel_counters *to = &ctx->closed_channels;

	to->work_requests += from->work_requests;
	to->doorbells += from->doorbells;
	to->merged_requests += from->merged_requests;
	to->window_waits += from->window_waits;
	to->staged_bytes += from->staged_bytes;
	to->retries += from->retries;
}
