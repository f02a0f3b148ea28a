/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cell_test.c - cells that come and go with those who are at them: whom a piece waits
 * for, and that each has a cell of its own again when it goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/cell.h"
#include "core/random.h"

#define PIECES 24u
#define PLACES 6u
#define STEPS 200000u

static struct rbx_cells cells;
static struct rbx_piece *pieces[PIECES];

static struct rbx_fragment *unused_done(struct rbx_fragment *fragment)
{
	return rbx_fragment_next(fragment);
}

static int cells_make(void **state)
{
	uint32_t i;

	(void)state;
	memset(&cells, 0, sizeof(cells));
	for (i = 0; i < PIECES; i++) {
		pieces[i] = calloc(1, rbx_piece_size(1, 0));
		rbx_piece_init(pieces[i], 1, 0, NULL, unused_done);
	}
	return 0;
}

static int cells_free(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < PIECES; i++)
		free(pieces[i]);
	return 0;
}

static bool take(uint32_t i, uint64_t place, uint64_t granules)
{
	pieces[i]->granules = granules;
	return rbx_cell_take(&cells, pieces[i], place);
}

/* Nobody is at any cell, and each piece has one, no two the same. */
static void assert_all_have_their_own(void)
{
	uint32_t i, j;

	for (i = 0; i < RBX_CELL_BUCKETS; i++)
		assert_null(cells.buckets[i]);
	for (i = 0; i < PIECES; i++) {
		assert_int_equal(pieces[i]->spare_cell->busy, 0);
		assert_null(pieces[i]->spare_cell->last);
		assert_null(pieces[i]->spare_cell->spare);
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(pieces[i]->spare_cell,
					     pieces[j]->spare_cell);
	}
}

static void overlapping_pieces_have_their_granules_in_order(void **state)
{
	struct rbx_cell *cell;

	(void)state;
	assert_true(take(0, 1, 0x3));
	assert_true(take(1, 1, 0xc));
	assert_false(take(2, 1, 0x6));
	assert_false(take(3, 1, 0x10)); /* free, but it passes nobody */
	cell = pieces[0]->cell;
	rbx_cell_give(pieces[0]);
	assert_null(rbx_cell_admit(cell));
	rbx_cell_give(pieces[1]);
	assert_ptr_equal(rbx_cell_admit(cell), pieces[2]);
	assert_ptr_equal(rbx_cell_admit(cell), pieces[3]);
	assert_null(rbx_cell_admit(cell));
	rbx_cell_give(pieces[2]);
	rbx_cell_give(pieces[3]);
	assert_all_have_their_own();
}

static void places_of_one_bucket_are_not_in_each_others_way(void **state)
{
	uint64_t other_cell = 1 + RBX_CELL_BUCKETS;
	uint64_t other_slab = (uint64_t)RBX_SLAB_LOCKS << 32 | 1;

	struct rbx_cell *shared;

	(void)state;
	assert_true(take(0, 1, UINT64_MAX));
	assert_true(take(1, other_cell, UINT64_MAX));
	assert_true(take(2, other_slab, UINT64_MAX));
	assert_false(take(3, other_cell, 1));
	/* From the middle of the bucket, from its end, and from its beginning. */
	shared = pieces[1]->cell;
	rbx_cell_give(pieces[1]);
	assert_ptr_equal(rbx_cell_admit(shared), pieces[3]);
	rbx_cell_give(pieces[3]);
	rbx_cell_give(pieces[0]);
	rbx_cell_give(pieces[2]);
	assert_all_have_their_own();
}

/* ---- At random, beside a table that has room for all --------------------------*/

struct at {
	uint64_t granules;
	uint32_t place;
	uint32_t turn; /* when it came */
	bool is_here, has_them;
};

static struct at at[PIECES];
static uint32_t turns_count;

/* Whether it has to wait, by those who are there and came before. */
static bool must_wait(uint32_t i)
{
	uint32_t j;

	for (j = 0; j < PIECES; j++)
		if (j != i && at[j].is_here && at[j].place == at[i].place &&
		    at[j].turn < at[i].turn &&
		    (!at[j].has_them || at[j].granules & at[i].granules))
			return true;
	return false;
}

static void come(uint32_t i, struct rbx_random *random)
{
	/* Of two slabs, and of three cells of each that share a bucket. */
	uint32_t place = rbx_random_below(random, PLACES);

	at[i] = (struct at){
		.granules = 3ull << rbx_random_below(random, 6),
		.place = place,
		.turn = ++turns_count,
		.is_here = true,
	};
	at[i].has_them = !must_wait(i);
	assert_int_equal(take(i,
			      (uint64_t)(place % 2) << 38 |
				      (uint64_t)(place / 2) * RBX_CELL_BUCKETS,
			      at[i].granules),
			 at[i].has_them);
}

static uint32_t index_of(const struct rbx_piece *piece)
{
	uint32_t i = 0;

	while (pieces[i] != piece)
		i++;
	return i;
}

static void go(uint32_t i)
{
	struct rbx_cell *cell = pieces[i]->cell;
	struct rbx_piece *next;
	uint32_t j;

	at[i].is_here = false;
	rbx_cell_give(pieces[i]);
	while ((next = rbx_cell_admit(cell))) {
		j = index_of(next);
		assert_true(at[j].is_here && !at[j].has_them);
		assert_false(must_wait(j));
		at[j].has_them = true;
	}
	for (j = 0; j < PIECES; j++)
		assert_false(at[j].is_here && !at[j].has_them && !must_wait(j));
}

static void random_pieces_wait_as_long_as_they_must(void **state)
{
	struct rbx_random random;
	uint32_t step, i, left;

	(void)state;
	memset(at, 0, sizeof(at));
	rbx_random_seed(&random, 11);
	for (step = 0; step < STEPS; step++) {
		i = rbx_random_below(&random, PIECES);
		if (!at[i].is_here)
			come(i, &random);
		else if (at[i].has_them)
			go(i);
	}
	do {
		left = 0;
		for (i = 0; i < PIECES; i++) {
			left += at[i].is_here;
			if (at[i].is_here && at[i].has_them)
				go(i);
		}
	} while (left);
	assert_all_have_their_own();
}

int main(void)
{
#define CELL_TEST(test) cmocka_unit_test_setup_teardown(test, cells_make, cells_free)
	const struct CMUnitTest tests[] = {
		CELL_TEST(overlapping_pieces_have_their_granules_in_order),
		CELL_TEST(places_of_one_bucket_are_not_in_each_others_way),
		CELL_TEST(random_pieces_wait_as_long_as_they_must),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
