/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_replica_test.c - copies of a rebuild whose target is lost end while another
 * replica, which has all that was acknowledged, stands in: it is not lost with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/slab_way.h"

static struct rbx_slab_group group; /* the first of them, as of slab 0 */
static const struct rbx_slab_shape shape = {
	.groups = &group,
	.slab_shift = 21,
	.cell_shift = 17,
	.replicas = 3,
	.slots = 4,
};
static struct rbx_slab *slab;
static struct rbx_piece_list todo;

static struct rbx_fragment *unused_done(struct rbx_fragment *fragment)
{
	return rbx_fragment_next(fragment);
}

static void lend(uint32_t server, enum rbx_replica_state state)
{
	struct rbx_loan lent = { .slab_id = server + 1,
				 .epoch = 1,
				 .remote_addr = (server + 1) << 24,
				 .rkey = server + 1 };

	rbx_slab_lent(slab, rbx_slab_borrow(slab, server), &lent, state);
}

static struct rbx_piece *piece_new(enum rbx_piece_kind kind)
{
	struct rbx_piece *piece = calloc(1, rbx_piece_size(4, 0));

	rbx_piece_init(piece, 4, 0, NULL, unused_done);
	piece->kind = (uint8_t)kind;
	piece->slab = slab;
	return piece;
}

static void expect(const struct rbx_piece *piece, enum rbx_piece_state state)
{
	assert_ptr_equal(rbx_piece_list_take(&todo), piece);
	assert_int_equal(piece->state, state);
}

static void done(struct rbx_piece *piece, uint32_t slot, int32_t status)
{
	rbx_slab_done(slab, rbx_slab_group(slab), &piece->parts[slot], status, &todo);
}

static void old_copy_costs_no_replica_that_stands_in(void **state)
{
	struct rbx_piece *copy, *write;

	(void)state;
	slab = calloc(1, rbx_slab_size(shape.slots));
	copy = piece_new(RBX_PIECE_COPY);
	write = piece_new(RBX_PIECE_WRITE);
	rbx_slab_group_init(&group);
	rbx_slab_init(slab, &shape, 0);
	lend(0, RBX_REPLICA_LIVE);
	lend(1, RBX_REPLICA_LIVE);
	lend(2, RBX_REPLICA_REBUILDING);
	/* A copy is on its way to server 2 ... */
	assert_true(rbx_slab_copy_next(slab, copy));
	rbx_slab_start(slab, rbx_slab_group(slab), copy, &todo);
	expect(copy, RBX_PIECE_READING);
	done(copy, (uint32_t)__builtin_ctz(copy->send_mask), 0);
	expect(copy, RBX_PIECE_WRITING);
	assert_int_equal(copy->send_mask, 1 << 2);
	/* ... which dies. */
	assert_true(rbx_slab_server_down(slab, 2));

	/* Bad memory of the program, in another cell: no fault of any server. */
	write->offset_bytes = 3 << 17;
	write->length_bytes = 4096;
	rbx_slab_start(slab, rbx_slab_group(slab), write, &todo);
	expect(write, RBX_PIECE_WRITING);
	assert_int_equal(write->send_mask, 3);
	done(write, 0, -EFAULT);
	done(write, 1, -EFAULT);
	expect(write, RBX_PIECE_IDLE);
	assert_int_equal(slab->read_mask, 1);
	assert_true(slab->stands_in_mask >> 1 & 1);

	/* The copy of before ends at last, as it was sent to the dead. */
	done(copy, 2, -EHOSTUNREACH);
	expect(copy, RBX_PIECE_IDLE);
	(void)rbx_slab_copy_done(slab, copy);

	/* A fault of this machine costs no remote copy. */
	assert_int_not_equal(slab->states[1], RBX_REPLICA_LOST);
	/* Two of three servers are dead, and nothing is lost. */
	rbx_slab_server_down(slab, 0);
	assert_int_not_equal(rbx_slab_health(slab), RBX_SLAB_DEAD);
	free(copy);
	free(write);
	free(slab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_copy_costs_no_replica_that_stands_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
