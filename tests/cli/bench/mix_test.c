/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bench_mix_test.c - what the measured load asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

#define BLOCKS 64u
#define BLOCK_BYTES 4096u
#define DRAWS 1000u

static struct bench_pattern *pattern;
static struct bench_mix mix;
static struct bench_slot slot;

static int open_pattern(void **state)
{
	char reason[256];

	(void)state;
	return bench_pattern_create(&pattern, "rand", BLOCKS, BLOCK_BYTES, 1, 1,
				    reason, sizeof(reason));
}

static int close_pattern(void **state)
{
	(void)state;
	bench_pattern_destroy(pattern);
	return 0;
}

/* How many of the draws are reads; each request is whole and in the volume. */
static uint32_t draw_reads(uint32_t read_percent, uint8_t read_flags)
{
	uint32_t reads = 0;

	bench_mix_init(&mix, pattern, NULL, BLOCK_BYTES, read_percent);
	mix.read_flags = read_flags;
	for (uint32_t i = 0; i < DRAWS; i++) {
		const struct rbx_request *request = &slot.request;

		assert_true(mix.source.next(&mix.source, &slot));
		assert_int_equal(request->length_bytes, BLOCK_BYTES);
		assert_int_equal(request->offset % BLOCK_BYTES, 0);
		assert_true(request->offset < BLOCKS * BLOCK_BYTES);
		assert_int_equal(request->flags, request->op == RBX_READ ?
							 read_flags : 0);
		reads += request->op == RBX_READ;
	}
	return reads;
}

static void mix_reads_the_given_share(void **state)
{
	(void)state;
	assert_int_equal(draw_reads(0, 0), 0);
	assert_int_equal(draw_reads(100, 0), DRAWS);
	assert_in_range(draw_reads(25, 0), DRAWS / 5, DRAWS * 3 / 10);
}

static void mix_with_urgent_reads_leaves_writes_alone(void **state)
{
	uint32_t reads = draw_reads(50, RBX_URGENT);

	(void)state;
	assert_in_range(reads, 1, DRAWS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mix_reads_the_given_share),
		cmocka_unit_test(mix_with_urgent_reads_leaves_writes_alone),
	};

	return cmocka_run_group_tests(tests, open_pattern, close_pattern);
}
