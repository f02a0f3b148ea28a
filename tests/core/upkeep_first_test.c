/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_first_test.c - the first writes of a slab of a named volume with replicas: it begins with
 * as many of them as the record says that each slab has (client/keeper.h).
 */
#include "core/borrow.h"
#include "tests/core/first_writes.h"

static struct host *make(uint32_t slabs, uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
							    .on_demand = true,
							    .is_named = true },
				slabs, servers);
}

/* It may have labelled the slab. But the record says that it is out, so nobody finds that. */
static void slab_at_a_server_that_is_out_is_had_elsewhere(void **state)
{
	struct host *host = make(1, 2);

	(void)state;
	host->servers[0].is_slow_to_label = true;
	first_write(host, 0);
	rounds(host);
	host_is_out(host, 0);
	host->servers[0].is_slow_to_label = false;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_labelled_count(host, 1), 1);
	host_free(host);
}

/* The record says that each slab which was written has two replicas, and one server lends none. */
static struct host *one_is_short(void)
{
	struct host *host = make(2, 2);

	host->upkeep.copies_least = 2;
	host->servers[1].refuse = -ENOSPC;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(rbx_upkeep_short_of_copies(&host->upkeep), 1);
	return host;
}

static void first_write_needs_as_many_replicas_as_the_record_says(void **state)
{
	struct host *host = one_is_short();

	(void)state;
	assert_int_equal(host_labelled_count(host, 0), 1);
	assert_int_equal(host_ended(host, 0), 0);
	host->upkeep.copies_least = 1;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(rbx_upkeep_short_of_copies(&host->upkeep), 0);
	assert_int_equal(host_census(host).last, 1);
	/* The volume is closed before another record is accepted. */
	host->upkeep.copies_least = 2;
	first_write(host, 1);
	rounds(host);
	assert_int_equal(rbx_upkeep_short_of_copies(&host->upkeep), 1);
	rbx_upkeep_closes(&host->upkeep);
	rounds(host);
	assert_int_equal(host_ended(host, -ECANCELED), 1);
	assert_int_equal(rbx_upkeep_short_of_copies(&host->upkeep), 0);
	host_free(host);
}

/* The record in force goes on to say that there are two, and the volume may go on. */
static void slab_that_is_short_is_not_begun_when_the_volume_is_over(void **state)
{
	struct host *host = one_is_short();

	(void)state;
	rbx_flow_go_on(&host->flow, rbx_held_end(&host->flow.held));
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	/* Nothing is asked for meanwhile, and that slab is as it was. */
	host->servers[1].refuse = 0;
	first_write(host, 1);
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_true(host_slab(host, 1)->blank);
	assert_int_equal(host_labelled_count(host, 1), 0);
	rbx_held_resume(&host->flow.held);
	first_write(host, 0);
	first_write(host, 1);
	rounds(host);
	(void)host_settle(host); /* what one of them has labelled is taken back first */
	rounds(host);
	assert_int_equal(host_ended(host, 0), 2);
	assert_int_equal(host_census(host).last, 0);
	assert_int_equal(host_census(host).dead, 0);
	host_free(host);
}

/* So many wait for a record that there is no room to ask for another slab. */
static void slabs_wait_for_room(void **state)
{
	struct host *host = make(1, 2);

	(void)state;
	host->upkeep.borrowings_count = RBX_ASKS_MAX;
	assert_int_equal(rbx_borrow_begin(&host->upkeep, host_slab(host, 0), RBX_REPLICA_LIVE, 2,
					  RBX_LIST_LEND),
			 -EAGAIN);
	host->upkeep.borrowings_count = 0;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_at_a_server_that_is_out_is_had_elsewhere),
		cmocka_unit_test(first_write_needs_as_many_replicas_as_the_record_says),
		cmocka_unit_test(slab_that_is_short_is_not_begun_when_the_volume_is_over),
		cmocka_unit_test(slabs_wait_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
