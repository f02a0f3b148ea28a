/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which contents of a block count as right, and which as wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

#define BLOCKS 8
#define BLOCK_BYTES 512
#define BLOCK 5

static struct bench_verify *verify;

static int set_up(void **state)
{
	(void)state;
	return bench_verify_create(&verify, BLOCKS, BLOCK_BYTES, 42);
}

static int tear_down(void **state)
{
	(void)state;
	bench_verify_destroy(verify);
	return 0;
}

/* A write that ends well, of contents that are left in @buf. */
static void write_block(uint64_t block, uint8_t *buf)
{
	bench_verify_write_begin(verify, block, buf);
	bench_verify_write_end(verify, block, true);
}

/* Whether a read that begins and ends now may return @buf. */
static bool is_right(uint64_t block, const uint8_t *buf)
{
	uint64_t before = bench_verify_errors(verify);

	bench_verify_read_end(verify, block,
			      bench_verify_read_begin(verify, block), buf);
	return bench_verify_errors(verify) == before;
}

static void block_never_written_must_be_zero(void **state)
{
	uint8_t buf[BLOCK_BYTES] __attribute__((aligned(8))) = { 0 };

	(void)state;
	assert_true(is_right(BLOCK, buf));
	buf[100] = 1;
	assert_false(is_right(BLOCK, buf));
}

static void block_written_must_hold_it(void **state)
{
	uint8_t buf[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, buf);
	assert_true(is_right(BLOCK, buf));
	memset(buf, 0, sizeof(buf));
	assert_false(is_right(BLOCK, buf));
	assert_non_null(strstr(bench_verify_first_error(verify), "2560"));
}

static void block_with_any_bit_wrong_is_wrong(void **state)
{
	uint8_t buf[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, buf);
	for (int bit = 0; bit < BLOCK_BYTES * 8; bit++) {
		buf[bit / 8] ^= 1 << bit % 8;
		assert_false(is_right(BLOCK, buf));
		buf[bit / 8] ^= 1 << bit % 8;
	}
	assert_true(is_right(BLOCK, buf));
}

static void block_from_elsewhere_is_wrong(void **state)
{
	uint8_t buf[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t other[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, buf);
	write_block(BLOCK + 1, other);
	assert_false(is_right(BLOCK, other));
}

static void older_version_is_wrong(void **state)
{
	uint8_t old[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t new[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, old);
	write_block(BLOCK, new);
	assert_true(is_right(BLOCK, new));
	assert_false(is_right(BLOCK, old));
}

static void write_under_way_leaves_old_new_and_torn_right(void **state)
{
	uint8_t old[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t new[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t torn[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, old);
	bench_verify_write_begin(verify, BLOCK, new);
	assert_true(is_right(BLOCK, old));
	assert_true(is_right(BLOCK, new));
	for (int cut = 0; cut <= BLOCK_BYTES; cut++) {
		memcpy(torn, new, cut);
		memcpy(torn + cut, old + cut, BLOCK_BYTES - cut);
		assert_true(is_right(BLOCK, torn));
	}
	torn[7] ^= 0x80;
	assert_false(is_right(BLOCK, torn));
	bench_verify_write_end(verify, BLOCK, true);
	assert_false(is_right(BLOCK, old));
}

static void overlapping_writes_leave_either_right(void **state)
{
	uint8_t old[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t one[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t two[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, old);
	bench_verify_write_begin(verify, BLOCK, one);
	bench_verify_write_begin(verify, BLOCK, two);
	bench_verify_write_end(verify, BLOCK, true);
	assert_true(is_right(BLOCK, old)); /* the other may still be new */
	bench_verify_write_end(verify, BLOCK, true);
	assert_true(is_right(BLOCK, one));
	assert_true(is_right(BLOCK, two));
	assert_false(is_right(BLOCK, old));
	write_block(BLOCK, old);
	assert_false(is_right(BLOCK, one));
}

static void write_that_failed_leaves_old_and_new_right(void **state)
{
	uint8_t old[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t new[BLOCK_BYTES] __attribute__((aligned(8)));

	(void)state;
	write_block(BLOCK, old);
	bench_verify_write_begin(verify, BLOCK, new);
	bench_verify_write_end(verify, BLOCK, false);
	assert_true(is_right(BLOCK, old));
	assert_true(is_right(BLOCK, new));
	/* But not when the next one has ended well. */
	write_block(BLOCK, new);
	assert_true(is_right(BLOCK, new));
	assert_false(is_right(BLOCK, old));
}

static void read_may_see_what_was_written_meanwhile(void **state)
{
	uint8_t old[BLOCK_BYTES] __attribute__((aligned(8)));
	uint8_t new[BLOCK_BYTES] __attribute__((aligned(8)));
	uint32_t oldest;

	(void)state;
	write_block(BLOCK, old);
	oldest = bench_verify_read_begin(verify, BLOCK);
	write_block(BLOCK, new);
	bench_verify_read_end(verify, BLOCK, oldest, old);
	bench_verify_read_end(verify, BLOCK, oldest, new);
	assert_int_equal(bench_verify_errors(verify), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(block_never_written_must_be_zero),
		TEST(block_written_must_hold_it),
		TEST(block_with_any_bit_wrong_is_wrong),
		TEST(block_from_elsewhere_is_wrong),
		TEST(older_version_is_wrong),
		TEST(write_under_way_leaves_old_new_and_torn_right),
		TEST(overlapping_writes_leave_either_right),
		TEST(write_that_failed_leaves_old_and_new_right),
		TEST(read_may_see_what_was_written_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
