/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replica_test.c - what is packed into a replica is there, each beside the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/replica.h"

static void expect_loan(const struct rbx_replica *replica, uint32_t server,
			const struct rbx_loan *loan)
{
	const struct rbx_loan found = rbx_replica_loan(replica);

	assert_int_equal(rbx_replica_server(replica), server);
	assert_int_equal(found.slab_id, loan->slab_id);
	assert_int_equal(found.epoch, loan->epoch);
	assert_int_equal(found.remote_addr, loan->remote_addr);
	assert_int_equal(found.rkey, loan->rkey);
	assert_true(rbx_replica_is(replica, server, loan->slab_id, loan->epoch));
}

/* The largest of each, with zeros beside it, and the other way round. */
static void replica_has_its_loan_and_server(void **state)
{
	static const struct rbx_loan loans[] = {
		{ .slab_id = RBX_LENT_SLABS_MAX, .rkey = UINT32_MAX },
		{ .epoch = ((uint64_t)1 << RBX_LOAN_EPOCH_BITS) - 1 },
		{ .remote_addr = UINT64_MAX - RBX_PAGE_BYTES + 1 },
		{ 0 },
	};
	static const uint32_t servers[] = { 0, RBX_SERVERS_MAX - 1 };
	struct rbx_replica replica = { 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 16; i++) {
		rbx_replica_set_server(&replica, servers[i / 4 % 2]);
		rbx_replica_set_loan(&replica, &loans[i % 4]);
		expect_loan(&replica, servers[i / 4 % 2], &loans[i % 4]);
	}
}

/* More than a half of the count can. */
static void replica_counts_all_that_may_be_under_way(void **state)
{
	const struct rbx_loan loan = { .slab_id = 1, .epoch = 2, .rkey = 3 };
	struct rbx_replica replica = { 0 }, moved = { 0 };
	uint32_t i;

	(void)state;
	rbx_replica_set_server(&replica, 7);
	rbx_replica_set_loan(&replica, &loan);
	for (i = 0; i < RBX_PIECES_MAX + RBX_COPIES_MAX; i++) {
		assert_int_equal(rbx_replica_flights(&replica), i);
		rbx_replica_take_off(&replica);
	}
	rbx_replica_take_flights(&moved, &replica);
	for (; i > 0; i--) {
		assert_int_equal(rbx_replica_flights(&moved), i);
		rbx_replica_land(&moved);
	}
	assert_int_equal(rbx_replica_flights(&moved), 0);
	expect_loan(&replica, 7, &loan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replica_has_its_loan_and_server),
		cmocka_unit_test(replica_counts_all_that_may_be_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
