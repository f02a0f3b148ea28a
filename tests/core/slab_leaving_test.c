/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_leaving_test.c - a replica of a named volume loses its label before it misses a write
 * (core/slab_leaving.c).
 */
#include "tests/core/first_writes.h"

#include "core/last_copies.h"

static struct host *make(uint32_t slabs, uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
							    .on_demand = true,
							    .is_named = true },
				slabs, servers);
}

/* A slab of three servers, one of which wants its replica back and does not take its label back
 * yet; another one has a copy by then. Returns which wants it. */
static uint32_t make_leaving(struct host *host)
{
	uint32_t leaver, i;

	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	leaver = host_server_of(host, 0, 0);
	host->servers[leaver].is_slow_to_unlabel = true;
	host_evict_live(host, 0);
	for (i = 0; i < 4; i++)
		(void)host_settle(host);
	for (i = 0; i < 3; i++)
		assert_int_equal(host_labelled_count(host, i), 1);
	assert_int_equal(host->servers[leaver].kind, RBX_CALL_UNLABEL);
	assert_int_equal(host_census(host).whole, 1);
	return leaver;
}

/* Until then the next client would find it there. */
static void replica_that_leaves_is_written_while_it_is_labelled(void **state)
{
	struct host *host = make(1, 3);
	uint32_t leaver = make_leaving(host);

	(void)state;
	first_write(host, 0);
	host_poll_slot(host, 1, 0, true);
	host_poll_slot(host, 2, 0, true);
	assert_int_equal(host_ended(host, 0), 0);
	host_poll_slot(host, 0, 0, true);
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[leaver].is_slow_to_unlabel = false;
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_lent_count(host, leaver), 0);
	assert_false(rbx_slab_has_server(host_slab(host, 0), leaver));
	assert_int_equal(host_census(host).whole, 1);
	first_write(host, 0);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* It has missed a write by a fault of this machine, and the next client may find it: the replicas
 * are not equal, though there are as many others as wanted. */
static void slab_is_not_whole_while_what_leaves_differs(void **state)
{
	struct host *host = make(1, 3);

	(void)state;
	make_leaving(host);
	first_write(host, 0);
	host_poll_slot(host, 1, 0, true);
	host_poll_slot(host, 2, 0, true);
	host_poll_slot(host, 0, -EFAULT, false);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	assert_int_equal(host_census(host).whole, 0);
	assert_int_equal(host_census(host).rebuilding, 1);
	host_free(host);
}

/* The label was taken back, or not: it is asked again. */
static void label_is_taken_back_of_a_server_that_could_not_be_reached(void **state)
{
	struct host *host = make(1, 3);
	uint32_t leaver = make_leaving(host);

	(void)state;
	host->servers[leaver].label_err = -ENOTCONN;
	host->servers[leaver].is_slow_to_unlabel = false;
	(void)host_settle(host);
	host->servers[leaver].label_err = 0;
	assert_int_equal(host_labelled_count(host, leaver), 1);
	assert_true(rbx_slab_has_server(host_slab(host, 0), leaver));
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_lent_count(host, leaver), 0);
	host_free(host);
}

static bool is_suspect(struct host *host, uint32_t server)
{
	struct rbx_server_set suspects, gone;

	(void)rbx_held_suspects(&host->flow.held, &suspects, &gone);
	return rbx_server_set_has(&suspects, server);
}

static void settles(struct host *host)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		(void)host_settle(host);
}

/* It is judged, and not asked again meanwhile. If it is put out, the replica is lost. */
static void server_that_refuses_to_take_a_label_back_is_a_suspect(void **state)
{
	struct host *host = make(1, 3);
	uint32_t leaver = make_leaving(host);

	(void)state;
	host->servers[leaver].label_err = -EPROTO;
	host->servers[leaver].is_slow_to_unlabel = false;
	(void)host_settle(host);
	assert_true(is_suspect(host, leaver));
	assert_false(rbx_slab_is_unlabelling(host_slab(host, 0), 0));
	host->servers[leaver].label_err = 0;
	settles(host);
	assert_int_equal(host_labelled_count(host, leaver), 1);
	host_is_out(host, leaver);
	settles(host);
	assert_false(rbx_slab_has_server(host_slab(host, 0), leaver));
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(rbx_slab_records_free(&host->flow.map->records), RBX_SLAB_RECORDS);
	host_free(host);
}

/* It has FAILED instead of answering: it is not asked again, and nobody knows whether it has the
 * label. */
static void label_at_a_server_that_has_failed_is_in_doubt(void **state)
{
	struct host *host = make(1, 3);
	uint32_t leaver = make_leaving(host);

	(void)state;
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, leaver));
	host->servers[leaver].label_err = -ENOTCONN;
	host->servers[leaver].is_slow_to_unlabel = false;
	(void)host_settle(host);
	host->servers[leaver].label_err = 0;
	settles(host);
	assert_int_equal(host_labelled_count(host, leaver), 1);
	host_is_out(host, host_server_of(host, 0, 1));
	settles(host);
	assert_true(rbx_slab_has_server(host_slab(host, 0), leaver));
	assert_true(rbx_slab_is_unlabelling(host_slab(host, 0), 0));
	/* One for each such server, as it was asked for one at a time. */
	assert_int_equal(rbx_slab_records_free(&host->flow.map->records), RBX_SLAB_RECORDS - 1);
	host_free(host);
}

static void nothing_is_copied_to_leave_a_server_that_has_failed(void **state)
{
	struct host *host = make(1, 3);
	uint32_t i, lent = 0;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	rbx_flow_go_on(&host->flow,
		       rbx_held_failed(&host->flow.held, host_server_of(host, 0, 0)));
	host_evict_live(host, 0);
	settles(host);
	for (i = 0; i < 3; i++)
		lent += host_lent_count(host, i);
	assert_int_equal(lent, 2);
	host_free(host);
}

/* If both of the others go, it is the last one that the next client finds. */
static void label_stays_while_another_server_is_judged(void **state)
{
	struct host *host = make(1, 3);
	uint32_t leaver, suspect;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	leaver = host_server_of(host, 0, 0);
	suspect = host_server_of(host, 0, 1);
	rbx_held_suspect(&host->flow.held, suspect);
	host_evict_live(host, 0);
	settles(host);
	assert_int_equal(host_labelled_count(host, 3 - leaver - suspect), 1);
	assert_int_equal(host_labelled_count(host, leaver), 1);
	host_is_out(host, suspect);
	settles(host);
	assert_int_equal(host_labelled_count(host, leaver), 1);
	assert_true(rbx_slab_has_server(host_slab(host, 0), leaver));
	host_free(host);
}

/* Nobody knows whether the next client finds it. */
static void replica_whose_label_is_taken_back_is_no_copy(void **state)
{
	struct host *host = make(1, 3);
	struct rbx_server_set others = { .words = { 0 } }, needed = others;
	uint32_t leaver = make_leaving(host), i;

	(void)state;
	for (i = 0; i < 3; i++)
		if (i != leaver)
			rbx_server_set_add(&others, i);
	rbx_last_copies_needed(&host->flow, &others, &needed);
	for (i = 0; i < 3; i++)
		assert_int_equal(rbx_server_set_has(&needed, i), i != leaver);
	/* And it stays so if one of these is out. */
	host_is_out(host, host_server_of(host, 0, 1));
	(void)host_settle(host);
	needed = (struct rbx_server_set){ .words = { 0 } };
	rbx_last_copies_needed(&host->flow, &others, &needed);
	assert_false(rbx_server_set_has(&needed, leaver));
	assert_true(rbx_server_set_has(&needed, host_server_of(host, 0, 2)));
	host->servers[leaver].is_slow_to_unlabel = false;
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).dead, 0);
	host_free(host);
}

/* No other server has room: it stays where it is, complete. */
static void replica_that_cannot_go_elsewhere_stays(void **state)
{
	struct host *host = make(1, 2);
	uint32_t i;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_evict_live(host, 0);
	for (i = 0; i < 4; i++)
		(void)host_settle(host);
	assert_int_equal(host_labelled_count(host, 0), 1);
	assert_int_equal(host_labelled_count(host, 1), 1);
	first_write(host, 0);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* Each slab leaves in its turn, and what is written for the first time goes elsewhere. */
static void server_that_is_to_have_nothing_gets_nothing(void **state)
{
	struct host *host = make(4, 3);
	uint32_t i, slab, before;

	(void)state;
	for (slab = 0; slab < 3; slab++)
		first_write(host, slab);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 3);
	before = host_lent_count(host, 0);
	assert_int_equal(rbx_upkeep_server_leave(&host->upkeep, 0), before);
	assert_true(rbx_upkeep_server_leaves(&host->upkeep, 0));
	first_write(host, 3);
	for (i = 0; i < 12; i++)
		(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(rbx_upkeep_server_leave(&host->upkeep, 0), 0);
	assert_int_equal(host_lent_count(host, 0), 0);
	assert_int_equal(host_labelled_count(host, 1), 4);
	assert_int_equal(host_labelled_count(host, 2), 4);
	assert_int_equal(host_census(host).whole, 4);
	/* The next one at its place is another server. */
	rbx_upkeep_server_begins(&host->upkeep, 0);
	assert_false(rbx_upkeep_server_leaves(&host->upkeep, 0));
	host_free(host);
}

/* The client died before the label was taken back. A second one has not been left by that. */
static void replica_too_many_is_not_taken(void **state)
{
	struct host *host = make(2, 5);
	struct rbx_loan loan = { .slab_id = 1, .epoch = 5, .remote_addr = 1 << 20, .rkey = 7 };

	(void)state;
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &loan), 0);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &loan), -EEXIST);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 1, 1, &loan), 0);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 2, 1, &loan), -ENOSPC);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 3, 1, &loan), -EEXIST);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 3, 2, &loan), 0);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 4, 2, &loan), 0);
	loan.slab_id++;
	loan.remote_addr *= 2;
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 2, &loan), -ENOSPC);
	assert_int_equal(host_census(host).whole, 2);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replica_that_leaves_is_written_while_it_is_labelled),
		cmocka_unit_test(label_is_taken_back_of_a_server_that_could_not_be_reached),
		cmocka_unit_test(slab_is_not_whole_while_what_leaves_differs),
		cmocka_unit_test(server_that_refuses_to_take_a_label_back_is_a_suspect),
		cmocka_unit_test(label_at_a_server_that_has_failed_is_in_doubt),
		cmocka_unit_test(nothing_is_copied_to_leave_a_server_that_has_failed),
		cmocka_unit_test(label_stays_while_another_server_is_judged),
		cmocka_unit_test(replica_whose_label_is_taken_back_is_no_copy),
		cmocka_unit_test(replica_that_cannot_go_elsewhere_stays),
		cmocka_unit_test(server_that_is_to_have_nothing_gets_nothing),
		cmocka_unit_test(replica_too_many_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
