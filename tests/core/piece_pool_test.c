/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * piece_pool_test.c - all or nothing, nobody gets a piece twice, and a fence
 * knows who was before it; also with threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/piece_pool.h"
#include "core/random.h"

#define PIECES 8u

static struct rbx_piece_pool pool;
static void *memory;

static struct rbx_fragment *unused_done(struct rbx_fragment *fragment)
{
	return rbx_fragment_next(fragment);
}

static int pool_make(void **state)
{
	(void)state;
	memory = calloc(1, rbx_piece_pool_size(PIECES, 2, 0));
	rbx_piece_pool_init(&pool, memory, PIECES, 2, 0, &pool, unused_done);
	return 0;
}

static int pool_free(void **state)
{
	(void)state;
	assert_true(rbx_piece_pool_is_idle(&pool));
	free(memory);
	return 0;
}

static struct rbx_piece *take_one(void)
{
	struct rbx_piece_list list = { 0 };

	assert_int_equal(rbx_piece_pool_take(&pool, 1, &list), 0);
	return rbx_piece_list_take(&list);
}

/* Whether a fence waits. */
static bool give_one(struct rbx_piece *piece)
{
	struct rbx_piece_list list = { 0 };

	rbx_piece_list_add(&list, piece);
	return rbx_piece_pool_give(&pool, &list);
}

static void pool_tells_which_pieces_are_used(void **state)
{
	struct rbx_piece *piece = take_one();

	(void)state;
	for (uint32_t i = 0; i < PIECES; i++)
		assert_ptr_equal(rbx_piece_pool_used(&pool, i),
				 i == piece->pool_index ? piece : NULL);
	(void)give_one(piece);
	assert_null(rbx_piece_pool_used(&pool, piece->pool_index));
}

static void piece_relocated_takes_its_parts_along(void **state)
{
	struct rbx_piece *piece = take_one();

	(void)state;
	rbx_piece_relocate(piece, 0x5000);
	assert_int_equal(piece->local_addr, 0x5000);
	assert_int_equal(piece->parts[0].fragment.local_addr, 0x5000);
	assert_int_equal(piece->parts[1].fragment.local_addr, 0x5000);
	(void)give_one(piece);
}

static void pool_take_more_than_is_free_takes_nothing(void **state)
{
	struct rbx_piece_list list = { 0 }, more = { 0 };
	struct rbx_piece *piece;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(rbx_piece_pool_take(&pool, PIECES - 1, &list), 0);
	assert_int_equal(rbx_piece_pool_take(&pool, 2, &more), -EAGAIN);
	assert_null(rbx_piece_list_take(&more));
	assert_int_equal(rbx_piece_pool_take(&pool, 1, &list), 0);
	assert_int_equal(rbx_piece_pool_take(&pool, 1, &list), -EAGAIN);
	assert_false(rbx_piece_pool_is_idle(&pool));
	for (; (piece = rbx_piece_list_take(&list)); count++) {
		assert_ptr_equal(piece->owner, &pool);
		assert_false(give_one(piece));
	}
	assert_int_equal(count, PIECES);
}

static void fence_older_pieces_only_hold_it(void **state)
{
	struct rbx_piece *older = take_one(), *newer;
	uint32_t cursor = 0;
	uint64_t fence;

	(void)state;
	fence = rbx_piece_pool_fence(&pool);
	newer = take_one();
	assert_true(rbx_piece_pool_older(&pool, fence, &cursor));
	assert_true(give_one(older));
	/* Taken again it is younger than the fence. */
	older = take_one();
	assert_false(rbx_piece_pool_older(&pool, fence, &cursor));
	rbx_piece_pool_unfence(&pool);
	assert_false(give_one(older));
	assert_false(give_one(newer));
}

static void pool_tags_wrap_fence_still_knows_its_order(void **state)
{
	struct rbx_piece *older, *newer;
	uint32_t cursor = 0;
	uint64_t fence;

	(void)state;
	/* The last tag before zero: the next operation wraps. */
	pool.head |= UINT64_MAX << 21;
	older = take_one();
	fence = rbx_piece_pool_fence(&pool);
	newer = take_one();
	assert_true(rbx_piece_pool_older(&pool, fence, &cursor));
	(void)give_one(older);
	assert_false(rbx_piece_pool_older(&pool, fence, &cursor));
	rbx_piece_pool_unfence(&pool);
	(void)give_one(newer);
}

/* Each thread marks the pieces it holds as its own. */
static void *taker_main(void *arg)
{
	struct rbx_random random = { (uintptr_t)arg };
	uint32_t i;

	for (i = 0; i < 50000; i++) {
		struct rbx_piece_list list = { 0 };
		struct rbx_piece *held[PIECES], *piece;
		uint32_t count = 0, k;

		if (rbx_piece_pool_take(&pool,
					1 + rbx_random_below(&random, 4),
					&list))
			continue;
		while ((piece = rbx_piece_list_take(&list))) {
			RBX_ASSERT(!piece->user);
			piece->user = arg;
			held[count++] = piece;
		}
		for (k = 0; k < count; k++) {
			RBX_ASSERT(held[k]->user == arg);
			held[k]->user = NULL;
			(void)give_one(held[k]);
		}
	}
	return NULL;
}

static void pool_many_threads_no_piece_is_held_twice(void **state)
{
	pthread_t threads[3];
	uintptr_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, taker_main, (void *)(i + 1));
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_make, pool_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pool_tells_which_pieces_are_used),
		TEST(piece_relocated_takes_its_parts_along),
		TEST(pool_take_more_than_is_free_takes_nothing),
		TEST(fence_older_pieces_only_hold_it),
		TEST(pool_tags_wrap_fence_still_knows_its_order),
		TEST(pool_many_threads_no_piece_is_held_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
