/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_small.h - a slab with two or three live replicas and a handful of pieces, for tests
 * that look at single steps. To be included after cmocka.h.
 */
#ifndef RBX_TEST_SLAB_SMALL_H
#define RBX_TEST_SLAB_SMALL_H

#include <stdlib.h>
#include <string.h>

#include "core/loan_index.h"
#include "core/slab_spare.h"
#include "core/slab_way.h"

#define PIECES 6u

static struct rbx_slab_group group; /* the first of them, as of slab 0 */
static struct rbx_slab_shape shape = {
	.groups = &group,
	.slab_shift = 21,
	.cell_shift = 17,
};
static struct rbx_slab_records records;
static struct rbx_loan_index loans;
static void *slab_memory, *loans_memory; /* their tables */
static struct rbx_slab *slab;
static struct rbx_piece *pieces[PIECES];
static struct rbx_piece_list todo;

static struct rbx_fragment *unused_done(struct rbx_fragment *fragment)
{
	return rbx_fragment_next(fragment);
}

static inline struct rbx_loan loan(uint32_t number)
{
	return (struct rbx_loan){ .slab_id = number,
				  .epoch = 1,
				  .remote_addr = number << 24,
				  .rkey = number };
}

static inline void lend(uint32_t server, enum rbx_replica_state state)
{
	struct rbx_loan lent = loan(server + 1);
	uint32_t slot;

	if (state == RBX_REPLICA_REBUILDING)
		assert_true(rbx_slab_record_give(slab));
	slot = rbx_slab_borrow(slab, server);
	rbx_slab_lent(slab, slot, &lent, state);
	rbx_loan_index_add(&loans, rbx_replica_number(slab, slot));
}

/* A slab to which nothing is lent yet. */
static inline void slab_make_with(uint32_t replicas)
{
	uint32_t i;

	memset(&group, 0, sizeof(group));
	rbx_slab_group_init(&group, shape.cell_shift);
	memset(&todo, 0, sizeof(todo));
	shape.replicas = replicas;
	shape.slots = replicas + 1;
	shape.records = &records;
	memset(&records, 0, sizeof(records));
	rbx_slab_records_init(&records);
	slab_memory = calloc(1, rbx_slab_table_size(1, rbx_slab_size(replicas)));
	rbx_slab_table_init(&shape.table, slab_memory, 1, rbx_slab_size(replicas));
	rbx_slab_table_extend(&shape.table, 0, 1, &shape);
	loans_memory = calloc(1, rbx_loan_index_size(
					 rbx_replica_numbers(1, replicas)));
	rbx_loan_index_init(&loans, loans_memory,
			    rbx_replica_numbers(1, replicas), &shape);
	slab = rbx_slab_at(&shape, 0);
	rbx_slab_init(slab);
	for (i = 0; i < PIECES; i++) {
		pieces[i] = calloc(1, rbx_piece_size(shape.slots, 0));
		rbx_piece_init(pieces[i], shape.slots, 0, NULL, unused_done);
	}
}

static inline int slab_make_of(uint32_t replicas)
{
	uint32_t i;

	slab_make_with(replicas);
	for (i = 0; i < replicas; i++)
		lend(i, RBX_REPLICA_LIVE);
	(void)rbx_slab_attention(slab);
	return 0;
}

static inline int slab_make(void **state)
{
	(void)state;
	return slab_make_of(2);
}

static inline int slab_free(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < PIECES; i++)
		free(pieces[i]);
	free(loans_memory);
	free(slab_memory);
	return 0;
}

static inline struct rbx_piece *start(uint32_t i, enum rbx_piece_kind kind,
				      uint32_t offset, uint32_t length)
{
	pieces[i]->slab = slab;
	pieces[i]->slab_index = rbx_slab_index(slab);
	pieces[i]->kind = (uint8_t)kind;
	pieces[i]->offset_bytes = offset;
	pieces[i]->length_bytes = length;
	rbx_slab_start(slab, rbx_slab_group(slab), pieces[i], &todo);
	return pieces[i];
}

static inline void done(struct rbx_piece *piece, uint32_t slot, int32_t status)
{
	rbx_slab_done(slab, rbx_slab_group(slab), &piece->parts[slot], status, &todo);
}

/* The next on the list is this one, in this state. */
static inline void expect(const struct rbx_piece *piece, enum rbx_piece_state state)
{
	assert_ptr_equal(rbx_piece_list_take(&todo), piece);
	assert_int_equal(piece->state, state);
}

static inline void expect_nothing(void)
{
	assert_null(rbx_piece_list_take(&todo));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, slab_make, slab_free)

#endif
