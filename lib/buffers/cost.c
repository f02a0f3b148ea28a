/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost.c - measures the cost of copying and of registering, see cost.h.
 *
 * Both are measured as a request uses them. The copy goes between two buffers that were
 * touched before, as staging memory and a used buffer are. The buffer that is registered
 * was touched too, so no page fault is counted. Each round does a copy, a registration
 * and a deregistration, so other load on the machine disturbs all three alike; the median
 * of the rounds counts. A short copy is repeated until it is long enough to be timed.
 *
 * Deregistering counts as part of registering, although another thread does it
 * (registrar.h): it takes CPU time all the same.
 */
#include "lib/buffers/cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/break_even.h"
#include "core/regions.h"
#include "lib/clock.h"
#include "lib/context.h"

/* The copies of one timing have at least so many bytes: some microseconds. */
#define TIMED_BYTES (64u << 10)

/* The quick measurement: 4 KiB to 4 MiB, each length four times the one before. */
#define QUICK_POINTS 6u
#define QUICK_ROUNDS 3u

/* The cost of regions: from one page and from 256 KiB. */
#define REGION_PAGES 64u
#define REGION_ROUNDS 5u

struct arena {
	char *from;
	char *to;
	size_t bytes; /* of each */
};

struct samples {
	uint64_t copy_ns[RBX_BUFFER_COST_ROUNDS_MAX];
	uint64_t register_ns[RBX_BUFFER_COST_ROUNDS_MAX];
	uint64_t deregister_ns[RBX_BUFFER_COST_ROUNDS_MAX];
};

static int arena_open(struct arena *arena, size_t bytes)
{
	char *memory = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		return rbx_error(-ENOMEM, "cannot allocate %zu bytes to measure",
				 2 * bytes);
	/* Otherwise every page would be the one page of zeros. */
	memset(memory, 1, 2 * bytes);
	*arena = (struct arena){ memory, memory + bytes, bytes };
	return 0;
}

static void arena_close(struct arena *arena)
{
	munmap(arena->from, 2 * arena->bytes);
}

static uint64_t time_copy(const struct arena *arena)
{
	uint32_t times =
		(uint32_t)RBX_MAX(TIMED_BYTES / arena->bytes, (size_t)1);
	uint64_t start_ns = rbx_now_ns();

	for (uint32_t i = 0; i < times; i++) {
		memcpy(arena->to, arena->from, arena->bytes);
		/* Keeps the compiler from leaving out repeated copies. */
		__asm__ volatile("" : : "r"(arena->to) : "memory");
	}
	return (rbx_now_ns() - start_ns) / times;
}

static int time_registration(struct rbx_device *device,
			     const struct arena *arena, uint64_t *register_ns,
			     uint64_t *deregister_ns)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_mr_init init = {
		.addr = arena->from,
		.length_bytes = arena->bytes,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	uint64_t start_ns = rbx_now_ns(), middle_ns;
	struct rbx_mr *mr;
	int err = device->ops->register_memory(device, &init, 1, &mr, error);

	if (err)
		return rbx_error(err, "%s", error);
	middle_ns = rbx_now_ns();
	device->ops->deregister_memory(device, &mr, 1);
	*register_ns = middle_ns - start_ns;
	*deregister_ns = rbx_now_ns() - middle_ns;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Returns the median. *spread: half the distance between the quartiles. */
static uint64_t median(uint64_t *values, uint32_t count, uint64_t *spread)
{
	qsort(values, count, sizeof(*values), by_value);
	*spread = (values[count * 3 / 4] - values[count / 4]) / 2;
	return values[count / 2];
}

static int take_samples(struct rbx_context *ctx, const struct arena *arena,
			uint32_t rounds, struct samples *samples)
{
	/* The first round is not counted: it warms up. */
	(void)time_copy(arena);
	for (uint32_t i = 0; i <= rounds; i++) {
		uint32_t at = i ? i - 1 : 0;
		int err;

		samples->copy_ns[at] = time_copy(arena);
		err = time_registration(ctx->device, arena,
					&samples->register_ns[at],
					&samples->deregister_ns[at]);
		if (err)
			return err;
	}
	RBX_ADD_RELAXED(&ctx->counters.registrations, rounds + 1);
	RBX_ADD_RELAXED(&ctx->counters.deregistrations, rounds + 1);
	return 0;
}

int rbx_buffer_cost_measure(struct rbx_context *ctx, size_t bytes,
			    uint32_t rounds, struct rbx_buffer_cost *cost)
{
	struct samples samples;
	struct arena arena = { 0 };
	int err;

	if (!ctx || !cost || bytes == 0 || bytes > RBX_BUFFER_COST_BYTES_MAX ||
	    rounds == 0 || rounds > RBX_BUFFER_COST_ROUNDS_MAX)
		return rbx_error(-EINVAL,
				 "a buffer of 1 to %u bytes can be measured in 1 "
				 "to %u rounds",
				 RBX_BUFFER_COST_BYTES_MAX,
				 RBX_BUFFER_COST_ROUNDS_MAX);
	err = rbx_guard_use(ctx, "rbx_buffer_cost_measure");
	if (!err)
		err = arena_open(&arena, bytes);
	if (err)
		return err;
	err = take_samples(ctx, &arena, rounds, &samples);
	arena_close(&arena);
	if (err)
		return err;
	cost->bytes = bytes;
	cost->copy_ns = median(samples.copy_ns, rounds, &cost->copy_spread_ns);
	cost->register_ns = median(samples.register_ns, rounds,
				   &cost->register_spread_ns);
	cost->deregister_ns = median(samples.deregister_ns, rounds,
				     &cost->deregister_spread_ns);
	return 0;
}

uint64_t rbx_buffer_cost_break_even(const struct rbx_buffer_cost costs[],
				    unsigned int count)
{
	struct rbx_break_even_point points[RBX_BUFFER_COST_POINTS_MAX];

	count = RBX_MIN(count, RBX_BUFFER_COST_POINTS_MAX);
	for (unsigned int i = 0; i < count; i++)
		points[i] = (struct rbx_break_even_point){
			.bytes = costs[i].bytes,
			.copy_ns = costs[i].copy_ns,
			.direct_ns =
				costs[i].register_ns + costs[i].deregister_ns,
		};
	return rbx_break_even(points, count);
}

uint64_t rbx_buffer_cost_quick(struct rbx_context *ctx)
{
	uint64_t start_ns = rbx_now_ns();
	struct rbx_buffer_cost costs[QUICK_POINTS];
	uint32_t count = 0;

	/* The next length takes about three times as long as all before it together. */
	while (count < QUICK_POINTS &&
	       4 * (rbx_now_ns() - start_ns) < RBX_BUFFER_COST_BUDGET_NS) {
		size_t bytes = (size_t)RBX_PAGE_BYTES << (2 * count);

		if (rbx_buffer_cost_measure(ctx, bytes, QUICK_ROUNDS,
					    &costs[count]))
			break;
		count++;
	}
	return rbx_buffer_cost_break_even(costs, count);
}

/* The line through two points: what a page takes, and what a call takes besides. */
static void line(uint64_t few_ns, uint64_t many_ns, uint32_t *page_ns, uint32_t *call_ns)
{
	uint64_t slope_ns = many_ns > few_ns ? (many_ns - few_ns) / (REGION_PAGES - 1) : 0;

	*page_ns = (uint32_t)RBX_MIN(slope_ns, (uint64_t)UINT32_MAX);
	*call_ns = (uint32_t)RBX_MIN(few_ns - RBX_MIN(few_ns, slope_ns), (uint64_t)UINT32_MAX);
}

int rbx_region_cost_measure(struct rbx_context *ctx, struct rbx_region_cost *cost)
{
	struct rbx_buffer_cost few, many;
	int err = rbx_buffer_cost_measure(ctx, RBX_PAGE_BYTES, REGION_ROUNDS, &few);

	if (!err)
		err = rbx_buffer_cost_measure(ctx, REGION_PAGES * RBX_PAGE_BYTES, REGION_ROUNDS,
					      &many);
	if (err)
		return err;
	line(few.register_ns, many.register_ns, &cost->register_page_ns, &cost->register_call_ns);
	line(few.deregister_ns, many.deregister_ns, &cost->deregister_page_ns,
	     &cost->deregister_call_ns);
	return 0;
}
