/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bench.h - the parts of rdmabox bench.
 *
 *	bench.c     runs the phases
 *	table.c     the options
 *	options.c   checks options against each other
 *	load.c      makes a load, runs it and watches it; knows no pattern
 *	slot.c      one request and its buffer, from submit to submit
 *	pace.c      when requests are submitted: --load; closed.c, burst.c, open.c
 *	mix.c       chooses the next request of the measured load
 *	sweep.c     goes over the volume once: fill, final check
 *	pattern.c   chooses blocks: seq, rand, zipf, trace
 *	zipf.c      the table for zipf
 *	trace.c     reads a trace
 *	verify.c    knows what each block may hold
 *	latency.c   latencies that the library cannot know
 *	events.c    prints events: servers lost, slabs rebuilt
 *	progress.c  shows progress
 *	histogram.c latencies as bars
 *	report.c    the result as a table and as JSON
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/rdmabox.h>

#include "cli/cli.h"

#define BENCH_DEPTH_MAX 4096
#define BENCH_THREADS_MAX 256
#define BENCH_ERROR_BYTES 400 /* a line of the library, and what failed */
#define BENCH_BLOCK_BYTES_MIN 64
#define BENCH_BLOCK_BYTES_MAX (64 << 20)

/* When requests come (--load). */
enum bench_timing_kind {
	BENCH_CLOSED, /* a new one when one completes; depth outstanding */
	BENCH_OPEN, /* at a rate, whether or not earlier ones have completed */
	BENCH_BURST, /* many at once; the next burst when all have completed and a gap is over */
};

struct bench_timing {
	enum bench_timing_kind kind;
	uint64_t rate; /* open: requests/s of all threads */
	uint32_t burst_size; /* burst: used instead of depth */
	uint64_t gap_ns; /* burst */
};

struct bench_options {
	struct rbx_options library;
	struct rbx_volume_options volume;
	char pool[4096];
	uint64_t volume_bytes;
	char volume_name[64]; /* a named volume in place of a new one; "": none */
	char op[16]; /* as given */
	uint32_t read_percent;
	uint32_t urgent_reads;
	char pattern[4096]; /* as given */
	uint32_t block_bytes;
	uint32_t depth;
	uint32_t threads;
	char load[64]; /* as given */
	struct bench_timing timing;
	double runtime_s;
	double warmup_s;
	uint32_t seed;
	uint32_t verify;
	char buffers[16]; /* region, or as the library's option */
	uint32_t progress; /* also if stderr is no terminal */
	char json[4096]; /* "": none */
};

extern struct bench_options bench_options;
extern const struct cli_command bench_command;

int cli_bench(int argc, char **argv);

/**
 * bench_options_parse() - reads the command line.
 *
 * Returns NULL if the command ends here; then @exit_code is set.
 */
struct bench_options *bench_options_parse(int argc, char **argv, int *exit_code);

/** bench_block_check() - once the length of the volume is known. Returns 0 or an exit code. */
int bench_block_check(const struct bench_options *options);

/* ---- Random numbers: splitmix64, a state of 64 bits ----------------------*/

static inline uint64_t bench_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Maps 64 random bits to 0 .. range - 1. */
static inline uint64_t bench_scale(uint64_t random, uint64_t range)
{
	return (unsigned __int128)random * range >> 64;
}

/* ---- Latency --------------------------------------------------------------*/

#define BENCH_OPS (RBX_WRITE + 1)
#define BENCH_LATENCY_BUCKETS (61 * 16) /* 2^64 ns, 16 steps to a doubling */

struct bench_latency {
	_Atomic uint64_t max_ns;
	_Atomic uint64_t counts[BENCH_LATENCY_BUCKETS];
};

void bench_latency_clear(struct bench_latency *latency);
void bench_latency_add(struct bench_latency *latency, uint64_t ns);
/** bench_latency_merge() - adds the samples of another one. */
void bench_latency_merge(struct bench_latency *latency,
			 const struct bench_latency *other);
/** bench_latency_quantile_ns() - 990 per mille is the p99; 0 if there are none. */
uint64_t bench_latency_quantile_ns(const struct bench_latency *latency,
				   uint32_t per_mille);
/** bench_latency_bucket_end_ns() - the highest value of a bucket. */
uint64_t bench_latency_bucket_end_ns(uint32_t bucket);

/** bench_histogram_print() - bars on stdout, at most 12 lines; none of none. */
void bench_histogram_print(const struct bench_latency *latency);
/** bench_histogram_json() - [{"below_us": 2.048, "requests": 7}, ...]. */
json_t *bench_histogram_json(const struct bench_latency *latency);

/* ---- Load: slots that are submitted again when they complete ------------------*/

struct bench_load;
struct bench_worker;

/* One outstanding request and its buffer. While it is outstanding the library owns it,
 * else the callback that completes it. */
struct bench_slot {
	struct rbx_request request;
	struct bench_load *load;
	struct bench_worker *worker;
	uint32_t worker_index;
	struct bench_slot *next; /* in a list of the worker */
	bool is_refused; /* parked because the library had no room */
	bool is_timed; /* its latency is measured by the bench */
	uint64_t due_ns; /* its latency begins then; 0: not measured */
	uint64_t random; /* state of bench_random() */
	uint64_t block; /* used by the source */
	uint32_t version; /* used by the source: the oldest version that a read may see */
	_Atomic uint64_t done_count; /* written by its owner only */
} __attribute__((aligned(64)));

/* Chooses the next request of a slot, and checks the one that completed. Both functions
 * may be called from any polling thread, for different slots at the same time. */
struct bench_source {
	/* Fills in op, length_bytes and offset, and the buffer of a write. Returns false
	 * if nothing is left to do. */
	bool (*next)(struct bench_source *source, struct bench_slot *slot);
	/* slot->request.status is 0 or -errno. NULL: nothing to check. */
	void (*done)(struct bench_source *source, struct bench_slot *slot);
};

struct bench_load_shape {
	uint32_t workers_count; /* threads that submit */
	uint32_t depth; /* slots of a worker */
	struct bench_timing timing;
	bool is_mix; /* report latencies of reads and writes separately */
	uint32_t buffer_bytes; /* of a slot */
	bool is_registered; /* buffers are a region, so none is copied */
	uint64_t seed;
};

struct bench_result {
	uint64_t requests; /* completed, with or without an error */
	uint64_t errors;
	double elapsed_s;
	double cpu_s; /* user and system time of the process */
	bool gave_up; /* it ended after too many errors */
	char first_error[BENCH_ERROR_BYTES];
	/* Latencies by op that the bench measured itself (latency.c): all requests of an
	 * open load, else a sample. Valid as long as the load is. */
	const struct bench_latency *latency_of_op;
};

/**
 * bench_timing_parse() - "closed", "open:RATE" or "burst:SIZE:GAP".
 *
 * Returns 0 or -EINVAL; then @reason has one line.
 */
int bench_timing_parse(const char *text, struct bench_timing *timing,
		       char *reason, size_t reason_bytes);

int bench_load_create(struct bench_load **load, struct rbx_context *ctx,
		      struct rbx_volume *volume,
		      const struct bench_load_shape *shape);
void bench_load_destroy(struct bench_load *load);

/* Called about ten times a second with the number of completed requests. */
typedef void bench_progress_fn(void *user, uint64_t requests, double elapsed_s);

/**
 * bench_load_run() - runs a source until it has nothing left, @runtime_s is
 * over (0: no end), or a signal came (cli_interrupted()).
 *
 * Returns 0; -ETIMEDOUT if requests are outstanding and none completes any more; -EAGAIN
 * if no thread could be made. After a failure neither the load nor the volume can be
 * closed.
 */
int bench_load_run(struct bench_load *load, struct bench_source *source,
		   double runtime_s, uint32_t stall_limit_ms,
		   bench_progress_fn *progress, void *user,
		   struct bench_result *result);

/** bench_load_p50_ns() - of the requests of this run that were timed; 0: of none yet. */
uint64_t bench_load_p50_ns(const struct bench_load *load);

/* ---- Patterns -------------------------------------------------------------*/

struct bench_pattern;

/**
 * bench_pattern_create() - "seq", "rand", "zipf" or "trace:FILE".
 * @blocks: of the volume.
 *
 * Returns 0 or -errno; then @reason has one line.
 */
int bench_pattern_create(struct bench_pattern **pattern, const char *name,
			 uint64_t blocks, uint32_t block_bytes,
			 uint32_t workers_count, uint64_t seed, char *reason,
			 size_t reason_bytes);
void bench_pattern_destroy(struct bench_pattern *pattern);

/** bench_pattern_next() - the next block of a worker. O(1). Any thread. */
uint64_t bench_pattern_next(struct bench_pattern *pattern,
			    uint32_t worker_index, uint64_t *random);

struct bench_zipf;

/** bench_zipf_create() - Zipf over @blocks, theta 0.99, hot blocks scattered.
 * Returns 0 or -ENOMEM. */
int bench_zipf_create(struct bench_zipf **zipf, uint32_t blocks,
		      uint64_t seed);
void bench_zipf_destroy(struct bench_zipf *zipf);
uint32_t bench_zipf_draw(const struct bench_zipf *zipf, uint64_t random);

/**
 * bench_trace_read() - a trace as a list of blocks.
 * @blocks: receives memory that the caller frees.
 *
 * Returns 0 or -errno; then @reason has one line.
 */
int bench_trace_read(const char *path, uint64_t volume_blocks,
		     uint32_t block_bytes, uint32_t **blocks, uint64_t *count,
		     char *reason, size_t reason_bytes);

/* ---- Verification ---------------------------------------------------------*/

struct bench_verify;

int bench_verify_create(struct bench_verify **verify, uint64_t blocks,
			uint32_t block_bytes, uint64_t seed);
void bench_verify_destroy(struct bench_verify *verify);

/* Begins a write: fills @buf. Until the write has ended successfully the block may hold
 * the old or the new contents. */
void bench_verify_write_begin(struct bench_verify *verify, uint64_t block,
			      void *buf);
void bench_verify_write_end(struct bench_verify *verify, uint64_t block,
			    bool is_good);

/* Begins a read. It may return what was there when it began, or anything newer. */
uint32_t bench_verify_read_begin(struct bench_verify *verify, uint64_t block);
void bench_verify_read_end(struct bench_verify *verify, uint64_t block,
			   uint32_t oldest, const void *buf);

/* How many blocks were wrong, and one line about the first. */
uint64_t bench_verify_errors(struct bench_verify *verify);
const char *bench_verify_first_error(struct bench_verify *verify);

/* ---- Sources --------------------------------------------------------------*/

/* The measured load. */
struct bench_mix {
	struct bench_source source;
	struct bench_pattern *pattern;
	struct bench_verify *verify; /* or NULL */
	uint32_t block_bytes;
	uint64_t read_below; /* of 2^32: share of reads */
	uint8_t read_flags; /* enum rbx_request_flags, 0 unless set */
};

void bench_mix_init(struct bench_mix *mix, struct bench_pattern *pattern,
		    struct bench_verify *verify, uint32_t block_bytes,
		    uint32_t read_percent);

/* A sweep goes once over the volume, with several blocks in each request: the bytes of a
 * request, and the outstanding requests. */
#define BENCH_SWEEP_DEPTH 16u
uint32_t bench_sweep_bytes(uint32_t block_bytes);

struct bench_sweep {
	struct bench_source source;
	struct bench_verify *verify; /* or NULL */
	uint8_t op; /* enum rbx_op */
	uint32_t block_bytes;
	uint64_t blocks;
	uint64_t blocks_per_request;
	_Atomic uint64_t cursor;
};

void bench_sweep_init(struct bench_sweep *sweep, uint8_t op,
		      struct bench_verify *verify, uint64_t blocks,
		      uint32_t block_bytes, uint32_t buffer_bytes);

/* ---- Events of the volume -------------------------------------------------*/

/* Given to rbx_volume_options as event and user. */
struct bench_events {
	pthread_mutex_t lock; /* guards all below; held only to copy */
	uint32_t count; /* events so far */
	uint32_t printed_count;
	char lines[16][160]; /* the last ones */
	char down[160]; /* the first event of a server that is down; "": none */
};

void bench_events_init(struct bench_events *events);
void bench_events_note(struct rbx_volume *volume,
		       const struct rbx_event *event, void *user);
/* Prints to stderr the events since the last call. */
void bench_events_print(struct bench_events *events);
/* Requests have failed: the event that a server is down, if it comes within half a second; else "". */
void bench_events_await_down(struct bench_events *events, char *line, size_t bytes);

/* ---- Progress -------------------------------------------------------------*/

/* What is running now. */
struct bench_phase {
	const char *name;
	const struct bench_load *load; /* NULL: its latency is not shown */
	uint64_t requests_total; /* 0: it ends by time */
	uint32_t request_bytes;
	double runtime_s;
};

struct bench_progress {
	struct bench_events *events; /* printed between progress lines */
	bool is_shown;
	bool is_terminal;
	struct bench_phase phase;
	double shown_at_s;
	uint64_t shown_requests;
};

void bench_progress_init(struct bench_progress *progress,
			 struct bench_events *events, bool is_forced);
void bench_progress_begin(struct bench_progress *progress, const struct bench_phase *phase);
void bench_progress_show(void *progress, uint64_t requests, double elapsed_s);
void bench_progress_end(struct bench_progress *progress);

/* ---- Report ---------------------------------------------------------------*/

struct bench_report {
	const struct bench_options *options;
	const struct bench_result *result;
	const struct rbx_stats *stats;
	uint64_t verify_errors;
	char using[512]; /* the fabric and the device, and why they were chosen */
};

void bench_report_print(const struct bench_report *report);
json_t *bench_report_json(const struct bench_report *report);

#endif
