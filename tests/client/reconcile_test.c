/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reconcile_test.c - why the checksums of a volume could not be read is told as it is, and a fault
 * of this machine decides nothing.
 */
#include "client/reconcile.h"

#include "client/scratch.h"
#include "core/extents.h"
#include "rdmabox/rdmabox.h"
#include "tests/client/keeper_world.h"

/* ---- The host ------------------------------------------------------------------------------- */

static bool has_memory;

/* Tails of zeros, and data that they do not fit, which is what all servers have. */
int rbx_scratch_make(struct rbx_scratch *scratch)
{
	for (uint32_t i = 0; i < scratch->chunks_count && has_memory; i++) {
		struct rbx_scratch_chunk *chunk = &scratch->chunks[i];

		chunk->memory = calloc(1, chunk->bytes);
		if (i % 2) /* for data */
			memset(chunk->memory, 1, chunk->bytes);
		chunk->addr = (uintptr_t)chunk->memory;
	}
	return has_memory ? 0 : -ENOMEM;
}

void rbx_scratch_free(struct rbx_scratch *scratch)
{
	for (uint32_t i = 0; i < scratch->chunks_count; i++)
		free(scratch->chunks[i].memory);
}

/* What is under way; and how it ends: the first so many are done, and all later ones fail. */
static struct rbx_fragment *under_way;
static uint32_t done_count;
static int fault;
static uint32_t writes_count;

/* This server does none of it, from the beginning. */
static uint32_t silent_server = RBX_SERVERS_MAX;
/* What is left to be made equal in the end. */
static uint64_t unequal;

static void submit(struct rbx_flow *flow, uint32_t server, struct rbx_fragment *first,
		   struct rbx_fragment *last)
{
	(void)flow;
	(void)server;
	assert_ptr_equal(first, last);
	writes_count += first->direction == RBX_DIRECTION_WRITE;
	first->node.next = under_way ? &under_way->node : NULL;
	under_way = first;
}

static uint32_t server_of(struct rbx_fragment *fragment)
{
	return RBX_CONTAINER_OF(fragment, struct rbx_part, fragment)->server;
}

int rbx_volume_turn_wait(struct rbx_volume_control *control)
{
	struct rbx_fragment *fragment = under_way;

	(void)control;
	assert_non_null(fragment);
	under_way = rbx_fragment_next(fragment);
	fragment->node.next = NULL;
	fragment->status = done_count && server_of(fragment) != silent_server ? 0 : fault;
	done_count -= done_count > 0;
	assert_null(fragment->done(fragment));
	return 0;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void reconcile_without_memory_says_so(void **state)
{
	struct world *w = make(2);

	(void)state;
	has_memory = false;
	w->control.named = &w->named;
	assert_int_equal(rbx_reconcile(&w->control, false), -ENOMEM);
	assert_non_null(strstr(rbx_last_error(), "out of memory"));
	end(w);
}

/* A slab with two replicas, in which all extents are noted. After so many reads and writes all
 * others fail. Returns how it ended. */
static int reconcile(uint32_t so_many, int status)
{
	struct world *w = make_with(2, true);
	struct rbx_flow_ops ops = *w->control.flow.ops;
	int err;

	ops.submit = submit;
	w->control.flow.ops = &ops;
	w->control.named = &w->named;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	rbx_extents_found(w->control.flow.map, 0, UINT64_MAX, 0);
	has_memory = true;
	done_count = so_many;
	fault = status;
	writes_count = 0;
	err = rbx_reconcile(&w->control, false);
	assert_null(under_way);
	unequal = rbx_extents_unequal(rbx_slab_at(&w->control.flow.map->shape, 0));
	end(w);
	return err;
}

/* The tail of each replica takes one read, and each cell one; then each page is written. */
static void fault_of_this_machine_ends_it(void **state)
{
	(void)state;
	assert_int_equal(reconcile(UINT32_MAX, 0), 0);
	assert_true(writes_count > 0);
	assert_true(unequal == 0);
	assert_int_equal(reconcile(1, -EFAULT), -EFAULT);
	assert_int_equal(writes_count, 0);
	assert_non_null(strstr(rbx_last_error(), "this machine"));
	assert_int_equal(reconcile(3, -EFAULT), -EFAULT);
	assert_int_equal(writes_count, 0);
	assert_int_equal(reconcile(5, -EFAULT), -EFAULT);
	assert_true(writes_count > 0);
}

/* Another one decides. */
static void server_that_is_silent_does_not(void **state)
{
	(void)state;
	assert_int_equal(reconcile(1, -EHOSTUNREACH), -EIO);
	assert_non_null(strstr(rbx_last_error(), "no server tells"));
}

/* The other one tells its checksums. What the silent one has may still differ from that. */
static void one_that_is_silent_was_not_made_equal(void **state)
{
	(void)state;
	silent_server = 1;
	assert_int_equal(reconcile(UINT32_MAX, -EHOSTUNREACH), 0);
	silent_server = RBX_SERVERS_MAX;
	assert_true(writes_count > 0);
	assert_true(unequal == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reconcile_without_memory_says_so),
		cmocka_unit_test(fault_of_this_machine_ends_it),
		cmocka_unit_test(server_that_is_silent_does_not),
		cmocka_unit_test(one_that_is_silent_was_not_made_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
