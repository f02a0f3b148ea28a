/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the next block.
 *
 * seq    each worker walks its own contiguous part, block by block, and wraps
 * rand   every block equally likely
 * zipf   zipf.c
 * trace  the blocks of a trace in order; workers start evenly spread over it
 *
 * Patterns that draw (rand, zipf) use the caller's random state and share nothing that
 * changes. Patterns that walk (seq, trace) have a cursor for each worker. It is atomic,
 * since several polling threads may complete slots of the same worker at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"

struct cursor {
	_Atomic uint64_t next;
	uint64_t first; /* of this worker's part */
	uint64_t count; /* of this worker's part */
} __attribute__((aligned(64)));

struct bench_pattern {
	enum { WALK, UNIFORM, ZIPF } kind;
	uint64_t blocks;
	struct bench_zipf *zipf;
	uint32_t *trace; /* walk through these; NULL: through all blocks */
	struct cursor *cursors; /* one for each worker */
};

static int walk_create(struct bench_pattern *pattern, uint64_t steps,
		       uint32_t workers_count, bool is_shared)
{
	uint64_t part = steps / workers_count;

	pattern->kind = WALK;
	pattern->cursors = aligned_alloc(64, workers_count *
					 sizeof(*pattern->cursors));
	if (!pattern->cursors)
		return -ENOMEM;
	for (uint32_t i = 0; i < workers_count; i++) {
		struct cursor *cursor = &pattern->cursors[i];

		/* Every worker goes through the whole trace. */
		cursor->first = is_shared ? 0 : i * part;
		cursor->count = is_shared ? steps : part;
		atomic_init(&cursor->next, is_shared ? i * part : 0);
	}
	return 0;
}

static int seq_create(struct bench_pattern *pattern, uint32_t workers_count,
		      char *reason, size_t reason_bytes)
{
	if (pattern->blocks < workers_count) {
		snprintf(reason, reason_bytes,
			 "%u threads cannot share a volume of %llu blocks; "
			 "raise --volume or lower --threads", workers_count,
			 (unsigned long long)pattern->blocks);
		return -EINVAL;
	}
	return walk_create(pattern, pattern->blocks, workers_count, false);
}

static int trace_create(struct bench_pattern *pattern, const char *path,
			uint32_t block_bytes, uint32_t workers_count,
			char *reason, size_t reason_bytes)
{
	uint64_t count;
	int err = bench_trace_read(path, pattern->blocks, block_bytes,
				   &pattern->trace, &count, reason,
				   reason_bytes);

	return err ? err : walk_create(pattern, count, workers_count, true);
}

static int kind_create(struct bench_pattern *pattern, const char *name,
		       uint32_t block_bytes, uint32_t workers_count,
		       uint64_t seed, char *reason, size_t reason_bytes)
{
	if (!strcmp(name, "seq"))
		return seq_create(pattern, workers_count, reason, reason_bytes);
	if (!strncmp(name, "trace:", 6))
		return trace_create(pattern, name + 6, block_bytes,
				    workers_count, reason, reason_bytes);
	if (!strcmp(name, "zipf")) {
		pattern->kind = ZIPF;
		return bench_zipf_create(&pattern->zipf, pattern->blocks,
					 seed);
	}
	pattern->kind = UNIFORM;
	return 0;
}

int bench_pattern_create(struct bench_pattern **pattern_out, const char *name,
			 uint64_t blocks, uint32_t block_bytes,
			 uint32_t workers_count, uint64_t seed, char *reason,
			 size_t reason_bytes)
{
	struct bench_pattern *pattern = calloc(1, sizeof(*pattern));
	int err = -ENOMEM;

	snprintf(reason, reason_bytes,
		 "not enough memory for pattern %s over %llu blocks; use a "
		 "smaller --volume or larger --block", name,
		 (unsigned long long)blocks);
	if (!pattern)
		return err;
	pattern->blocks = blocks;
	if (blocks <= UINT32_MAX)
		err = kind_create(pattern, name, block_bytes, workers_count,
				  seed, reason, reason_bytes);
	if (err) {
		bench_pattern_destroy(pattern);
		return err;
	}
	*pattern_out = pattern;
	return 0;
}

void bench_pattern_destroy(struct bench_pattern *pattern)
{
	if (!pattern)
		return;
	bench_zipf_destroy(pattern->zipf);
	free(pattern->trace);
	free(pattern->cursors);
	free(pattern);
}

static uint64_t walk(struct bench_pattern *pattern, uint32_t worker_index)
{
	struct cursor *cursor = &pattern->cursors[worker_index];
	uint64_t step = atomic_fetch_add_explicit(&cursor->next, 1,
						  memory_order_relaxed);
	uint64_t at;

	/* The thread that takes the last step turns the cursor back. Threads that come
	 * before this is done are a few steps beyond the end. */
	if (step == cursor->count - 1)
		atomic_fetch_sub_explicit(&cursor->next, cursor->count,
					  memory_order_relaxed);
	else if (step >= cursor->count)
		step %= cursor->count;
	at = cursor->first + step;
	return pattern->trace ? pattern->trace[at] : at;
}

uint64_t bench_pattern_next(struct bench_pattern *pattern,
			    uint32_t worker_index, uint64_t *random)
{
	switch (pattern->kind) {
	case WALK:
		return walk(pattern, worker_index);
	case ZIPF:
		return bench_zipf_draw(pattern->zipf, bench_random(random));
	case UNIFORM:
		break;
	}
	return bench_scale(bench_random(random), pattern->blocks);
}
