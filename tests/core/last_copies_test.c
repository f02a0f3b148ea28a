/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* last_copies_test.c - a silent server is done without where another is up, and only
 * there. */
#include "scripted_host.h"

#include "core/last_copies.h"

static uint64_t servers_up;
static uint8_t page[RBX_PAGE_BYTES];

static bool is_up(struct rbx_flow *flow, uint32_t server)
{
	(void)flow;
	return servers_up >> server & 1;
}

static struct host *make(uint32_t slabs, uint32_t replicas, uint32_t servers)
{
	struct host *host = host_make(slabs, replicas, servers);

	assert_int_equal(rbx_upkeep_borrow_all(&host->upkeep), 0);
	return host;
}

static void silent_server_is_done_without_where_another_is_up(void **state)
{
	struct host *host = make(1, 2, 2);
	uint32_t wakes_count = host->wakes_count;

	(void)state;
	servers_up = 2;
	assert_false(rbx_last_copies_hold(&host->flow, 0, is_up));
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 1);
	assert_int_equal(
		host_server_of(host, 0, (uint32_t)__builtin_ctz(host_slab(host, 0)->read_mask)), 1);
	assert_true(host->wakes_count > wakes_count);
	host_free(host);
}

/* It may come back, and then nobody tells that it was down. */
static void what_was_done_without_is_made_anew(void **state)
{
	struct host *host = make(1, 2, 3);

	(void)state;
	servers_up = 7 & ~(1u << host_server_of(host, 0, 0));
	assert_false(rbx_last_copies_hold(&host->flow,
					  host_server_of(host, 0, 0), is_up));
	assert_int_equal(host_census(host).whole, 0);
	assert_false(host_settle(host));
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* This machine's own cable is out. */
static void all_silent_servers_keep_all_they_have(void **state)
{
	struct host *host = make(3, 2, 2);

	(void)state;
	servers_up = 0;
	assert_true(rbx_last_copies_hold(&host->flow, 0, is_up));
	assert_true(rbx_last_copies_hold(&host->flow, 1, is_up));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rbx_slab_readable(host_slab(host, i)), 2);
	host_free(host);
}

/* It has nothing, but nobody else could lend. */
static void only_server_is_kept_without_copies(void **state)
{
	struct host *host = host_make(1, 1, 2);

	(void)state;
	servers_up = 0;
	assert_true(rbx_last_copies_hold(&host->flow, 0, is_up));
	servers_up = 2;
	assert_false(rbx_last_copies_hold(&host->flow, 0, is_up));
	host_free(host);
}

static void part_waits_for_a_last_copy_and_for_no_other(void **state)
{
	struct host *host = make(1, 2, 2);
	char buf[RBX_PAGE_BYTES] = { 0 };

	(void)state;
	host_start(host, RBX_PIECE_WRITE, 0, buf, sizeof(buf));
	for (struct rbx_fragment *part = host->sent_first; part;
	     part = rbx_fragment_next(part))
		assert_true(rbx_last_copies_wait(part));
	servers_up = 1;
	assert_false(rbx_last_copies_hold(&host->flow, 1, is_up));
	for (struct rbx_fragment *part = host->sent_first; part;
	     part = rbx_fragment_next(part))
		assert_int_equal(rbx_last_copies_wait(part),
				 rbx_part_of(part)->server == 0);
	host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* ---- A replica that stands in ------------------------------------------------*/

/* A write from bad memory: one replica is the truth, the other one stands in. */
static struct host *make_stand_in(uint32_t *truth, uint32_t *stand_in)
{
	struct host *host = make(1, 2, 2);
	const struct rbx_slab *slab = host_slab(host, 0);
	uint32_t slot;

	host->fails_here = -EFAULT;
	host_start(host, RBX_PIECE_WRITE, 0, page, sizeof(page));
	assert_true(host_poll(host));
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host->fails_here = 0;
	assert_int_equal(rbx_slab_readable(slab), 1);
	for (slot = 0; slot < 2; slot++)
		if (rbx_slab_stands_in(slab, slot))
			*stand_in = rbx_replica_server(rbx_slab_replica(slab, slot));
		else
			*truth = rbx_replica_server(rbx_slab_replica(slab, slot));
	return host;
}

/* This machine's own cable is out; the truth's server dies of the same cause. */
static void stand_in_of_a_silent_server_is_kept(void **state)
{
	uint32_t truth = 0, stand_in = 0;
	struct host *host = make_stand_in(&truth, &stand_in);

	(void)state;
	servers_up = 0;
	assert_true(rbx_last_copies_hold(&host->flow, stand_in, is_up));
	assert_true(rbx_last_copies_hold(&host->flow, truth, is_up));
	host_server_dies(host, truth);
	(void)host_settle(host);
	assert_int_not_equal(rbx_slab_health(host_slab(host, 0)), RBX_SLAB_DEAD);
	host_free(host);
}

static void silent_truth_is_done_without_where_a_stand_in_is_up(void **state)
{
	uint32_t truth = 0, stand_in = 0;
	struct host *host = make_stand_in(&truth, &stand_in);

	(void)state;
	servers_up = 1u << stand_in;
	assert_false(rbx_last_copies_hold(&host->flow, truth, is_up));
	assert_int_equal(rbx_slab_readable(host_slab(host, 0)), 1);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_server_is_done_without_where_another_is_up),
		cmocka_unit_test(what_was_done_without_is_made_anew),
		cmocka_unit_test(all_silent_servers_keep_all_they_have),
		cmocka_unit_test(only_server_is_kept_without_copies),
		cmocka_unit_test(part_waits_for_a_last_copy_and_for_no_other),
		cmocka_unit_test(stand_in_of_a_silent_server_is_kept),
		cmocka_unit_test(
			silent_truth_is_done_without_where_a_stand_in_is_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
