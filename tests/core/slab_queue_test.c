/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* slab_queue_test.c - who waits how long behind whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/slab_queue.h"

#define SLABS 1000
#define OWNERS 4

static struct rbx_slab_queue *queue_make(void)
{
	return rbx_slab_queue_init(malloc(rbx_slab_queue_size(SLABS, OWNERS)),
				   SLABS, OWNERS);
}

static void slabs_of_one_owner_come_in_order(void **state)
{
	struct rbx_slab_queue *queue = queue_make();

	(void)state;
	assert_int_equal(rbx_slab_queue_take(queue), RBX_SLAB_QUEUE_EMPTY);
	rbx_slab_queue_put(queue, 7, 0);
	rbx_slab_queue_put(queue, 3, 0);
	assert_int_equal(rbx_slab_queue_take(queue), 7);
	rbx_slab_queue_put(queue, 7, 0);
	assert_int_equal(rbx_slab_queue_take(queue), 3);
	assert_int_equal(rbx_slab_queue_take(queue), 7);
	assert_int_equal(rbx_slab_queue_take(queue), RBX_SLAB_QUEUE_EMPTY);
	free(queue);
}

static void owner_with_many_holds_up_nobody(void **state)
{
	struct rbx_slab_queue *queue = queue_make();
	uint32_t slab;

	(void)state;
	for (slab = 0; slab < 900; slab++)
		rbx_slab_queue_put(queue, slab, 3);
	assert_int_equal(rbx_slab_queue_take(queue), 0);
	rbx_slab_queue_put(queue, 900, 0);
	rbx_slab_queue_put(queue, 901, 0);
	rbx_slab_queue_put(queue, 902, 1);
	assert_int_equal(rbx_slab_queue_take(queue), 1);
	assert_int_equal(rbx_slab_queue_take(queue), 900);
	assert_int_equal(rbx_slab_queue_take(queue), 902);
	assert_int_equal(rbx_slab_queue_take(queue), 2);
	assert_int_equal(rbx_slab_queue_take(queue), 901);
	for (slab = 3; slab < 900; slab++)
		assert_int_equal(rbx_slab_queue_take(queue), slab);
	assert_int_equal(rbx_slab_queue_take(queue), RBX_SLAB_QUEUE_EMPTY);
	free(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slabs_of_one_owner_come_in_order),
		cmocka_unit_test(owner_with_many_holds_up_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
