/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which blocks the patterns draw, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

static char reason[512];

static struct bench_pattern *make(const char *name, uint64_t blocks,
				  uint32_t workers_count)
{
	struct bench_pattern *pattern;

	assert_int_equal(bench_pattern_create(&pattern, name, blocks, 4096,
					      workers_count, 1, reason,
					      sizeof(reason)), 0);
	return pattern;
}

static void expect(struct bench_pattern *pattern, uint32_t worker, int count,
		   const uint64_t *blocks)
{
	uint64_t random = 1;

	for (int i = 0; i < count; i++)
		assert_int_equal(bench_pattern_next(pattern, worker, &random),
				 blocks[i]);
}

/* Writes a trace and returns "trace:FILE". */
static const char *make_trace(const char *text)
{
	static char name[64];
	FILE *file;
	int fd;

	strcpy(name, "trace:/tmp/bench_pattern_test.XXXXXX");
	fd = mkstemp(name + 6);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs(text, file);
	fclose(file);
	return name;
}

static void seq_workers_walk_their_own_parts_and_wrap(void **state)
{
	struct bench_pattern *pattern = make("seq", 6, 2);

	(void)state;
	expect(pattern, 0, 5, (uint64_t[]){ 0, 1, 2, 0, 1 });
	expect(pattern, 1, 4, (uint64_t[]){ 3, 4, 5, 3 });
	bench_pattern_destroy(pattern);
}

static void seq_with_more_workers_than_blocks_is_refused(void **state)
{
	struct bench_pattern *pattern;

	(void)state;
	assert_int_not_equal(bench_pattern_create(&pattern, "seq", 2, 4096, 3,
						  1, reason, sizeof(reason)),
			     0);
	assert_non_null(strstr(reason, "lower --threads"));
}

static void rand_reaches_every_block_alike(void **state)
{
	struct bench_pattern *pattern = make("rand", 10, 1);
	uint32_t counts[10] = { 0 };
	uint64_t random = 3;

	(void)state;
	for (int i = 0; i < 100000; i++)
		counts[bench_pattern_next(pattern, 0, &random)]++;
	for (int i = 0; i < 10; i++)
		assert_in_range(counts[i], 9000, 11000);
	bench_pattern_destroy(pattern);
}

static void trace_is_replayed_and_wraps_at_the_volume(void **state)
{
	const char *name = make_trace("3 2 0 0\n# comment\n\n9 3 0 1\r\n");
	struct bench_pattern *pattern = make(name, 10, 1);

	(void)state;
	unlink(name + 6);
	expect(pattern, 0, 6, (uint64_t[]){ 3, 4, 9, 0, 1, 3 });
	bench_pattern_destroy(pattern);
}

static void trace_workers_start_spread_over_it(void **state)
{
	const char *name = make_trace("0 4 0 0\n");
	struct bench_pattern *pattern = make(name, 10, 2);

	(void)state;
	unlink(name + 6);
	expect(pattern, 0, 2, (uint64_t[]){ 0, 1 });
	expect(pattern, 1, 3, (uint64_t[]){ 2, 3, 0 });
	bench_pattern_destroy(pattern);
}

static void trace_of_larger_blocks_touches_each_once(void **state)
{
	const char *name = make_trace("1 2 0 0\n");
	uint32_t *blocks;
	uint64_t count;

	(void)state;
	/* Bytes 4096 to 12287 touch the first two blocks of 8 KiB. */
	assert_int_equal(bench_trace_read(name + 6, 10, 8192, &blocks, &count,
					  reason, sizeof(reason)), 0);
	unlink(name + 6);
	assert_int_equal(count, 2);
	assert_int_equal(blocks[0], 0);
	assert_int_equal(blocks[1], 1);
	free(blocks);
}

static void trace_with_a_bad_line_is_refused_by_its_number(void **state)
{
	static const char *const bad[] = { "0 1 0 0\nx\n", "0 1 0 0\n1 2 0\n",
					   "0 1 0 0\n1 2 0 3 4\n",
					   "0 1 0 0\n1 0 0 3\n",
					   "0 1 0 0\n-1 2 0 3\n",
					   "0 1 0 0\n1 99999999999 0 3\n",
					   "0 1 0 0\n18446744073709551615 2 0 3\n" };
	uint32_t *blocks;
	uint64_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *name = make_trace(bad[i]);
		int err = bench_trace_read(name + 6, 10, 4096, &blocks, &count,
					   reason, sizeof(reason));

		unlink(name + 6);
		assert_int_not_equal(err, 0);
		assert_non_null(strstr(reason, "line 2"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seq_workers_walk_their_own_parts_and_wrap),
		cmocka_unit_test(seq_with_more_workers_than_blocks_is_refused),
		cmocka_unit_test(rand_reaches_every_block_alike),
		cmocka_unit_test(trace_is_replayed_and_wraps_at_the_volume),
		cmocka_unit_test(trace_workers_start_spread_over_it),
		cmocka_unit_test(trace_of_larger_blocks_touches_each_once),
		cmocka_unit_test(trace_with_a_bad_line_is_refused_by_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
