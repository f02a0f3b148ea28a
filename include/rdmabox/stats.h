/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stats.h - the numbers of a context.
 *
 * The numbers of a context are in the struct below, and under the same names in the
 * JSON of rdmabox-bench(1). Those of a server (server_stats.h) also go to Prometheus;
 * docs/operating.md has the names there.
 */
#ifndef RDMABOX_STATS_H
#define RDMABOX_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;

#define RBX_STATS(X)                                                          \
	X(requests, "requests completed")                                     \
	X(bytes, "bytes of requests completed")                               \
	X(errors, "requests completed with an error")                         \
	X(work_requests, "work requests posted")                              \
	X(doorbells, "posts, each a chain of work requests")                  \
	X(merged_requests, "requests that shared another's work request")     \
	X(completions, "work completions handled")                            \
	X(polls, "polls of a completion queue")                               \
	X(empty_polls, "polls that found nothing")                            \
	X(arms, "completion queues armed before a sleep")                     \
	X(wakeups, "sleeps of a poller that ended with an event")             \
	X(context_switches, "context switches of the pollers' threads")       \
	X(poller_cpu_ns, "CPU time of the pollers' threads, nanoseconds")     \
	X(window_waits, "times that work waited for the window")              \
	X(window_bytes, "bytes that may be in flight now; 0: no limit")       \
	X(window_clamps, "windows out of range that a policy asked for")      \
	X(inflight_bytes, "bytes in flight now")                              \
	X(inflight_bytes_max, "most bytes in flight")                         \
	X(staged_bytes, "bytes copied through staging memory")                \
	X(registrations, "memory registrations")                              \
	X(deregistrations, "memory registrations ended")                      \
	X(registration_failures, "buffers that could not be registered")      \
	X(retries, "fragments sent again")                                    \
	X(failovers, "reads that went on to another replica")                 \
	X(rebuilt_bytes, "bytes copied by rebuilds")                          \
	X(checksum_errors, "pages that were not what was written")            \
	X(checksum_repairs, "reads that wrote a bad copy anew")               \
	X(messages_sent, "messages sent to programs that serve")              \
	X(messages_received, "messages of theirs that a handler has had")     \
	X(region_hits, "buffers and segments that the cache had")            \
	X(region_partial_hits, "those of which it had a part")                \
	X(region_misses, "those of which it had nothing")                     \
	X(region_evictions, "regions that left the cache")                    \
	X(region_bytes, "bytes that the cache has registered now")            \
	X(region_spent_ns, "time it spent registering, nanoseconds")          \
	X(region_saved_ns, "time that its hits saved, by estimate, nanoseconds")

struct rbx_stats {
	size_t size_bytes; /* of what was filled in; the rest is zero */
	/* Median latency of requests, in nanoseconds from submit to the poll that found
	 * them done, within 4 %. What a callback submits counts from that poll. */
	uint64_t latency_p50_ns;
	uint64_t latency_p99_ns; /* 99 of 100 requests were as quick, or quicker */
	uint64_t latency_p999_ns; /* 999 of 1000 */
	uint64_t latency_max_ns; /* the slowest */
#define RBX_STATS_FIELD(name, what) uint64_t name;
	RBX_STATS(RBX_STATS_FIELD) /* grows at the end */
#undef RBX_STATS_FIELD
};

/**
 * rbx_stats_get_sized() - fills in statistics of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero. In a child of the process
 * that opened the context all of it is.
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_stats_get_sized(struct rbx_context *ctx, struct rbx_stats *stats,
			 size_t size_bytes);

/**
 * rbx_stats_get() - tells the numbers since rbx_open() or rbx_stats_reset().
 *
 * It fills in this version of the struct, as rbx_stats_get_sized().
 *
 * Context: any thread, callbacks too; never blocks.
 */
static inline void rbx_stats_get(struct rbx_context *ctx,
				 struct rbx_stats *stats)
{
	rbx_stats_get_sized(ctx, stats, sizeof(*stats));
}

/**
 * rbx_stats_reset() - starts counting from zero.
 *
 * No request may be outstanding.
 *
 * Context: any thread; never blocks.
 */
void rbx_stats_reset(struct rbx_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
