/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_guarded_test.c - a named volume with replicas: none is lost before the record says so,
 * and none counts before its server has labelled it as complete (core/held.h).
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

static bool is_suspect(struct host *host, uint32_t server)
{
	struct rbx_server_set suspects, gone;

	(void)rbx_held_suspects(&host->flow.held, &suspects, &gone);
	return rbx_server_set_has(&suspects, server);
}

/* A slab with two replicas, and a write of which one part fails; returns where. */
static uint32_t make_degraded(struct host *host)
{
	uint32_t lost;

	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	lost = host_server_of(host, 0, 0);
	first_write(host, 0);
	host_poll_slot(host, 0, -EHOSTUNREACH, false);
	while (host_poll(host))
		;
	return lost;
}

static void write_that_missed_a_replica_waits_for_the_record(void **state)
{
	struct host *host = make(1, 2);
	uint32_t lost = make_degraded(host);

	(void)state;
	assert_true(host->wakes_count > 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 0);
	assert_true(is_suspect(host, lost));
	assert_int_equal(host_census(host).whole, 1); /* nothing is lost yet */
	host_is_out(host, lost);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	assert_false(is_suspect(host, lost));
	rounds(host);
	assert_int_equal(host_census(host).last, 1);
	/* What fails there from now on costs the replica, and waits for nothing. */
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static uint8_t page[512];

static uint32_t read_begins(struct host *host)
{
	host_start(host, RBX_PIECE_READ, 0, page, sizeof(page));
	return rbx_part_of(host->sent_first)->server;
}

/* A slab that was written is read at this server. */
static struct host *make_reading(uint32_t *server)
{
	struct host *host = make(1, 2);

	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	*server = read_begins(host);
	return host;
}

/* And a read waits for it as well, and then goes on to the other replica. */
static void read_that_failed_waits_for_the_record(void **state)
{
	uint32_t server;
	struct host *host = make_reading(&server);

	(void)state;
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	rounds(host);
	assert_int_equal(host_ended(host, 0), 0);
	host_is_out(host, server);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* The server has FAILED, so the other one has all that was acknowledged. */
static void read_that_failed_for_good_goes_on_to_the_other_replica(void **state)
{
	uint32_t server;
	struct host *host = make_reading(&server);

	(void)state;
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, server));
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	assert_int_equal(host_ended(host, 0), 0);
	assert_int_equal(rbx_part_of(host->sent_first)->server, !server);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	/* Both have FAILED: each is asked once. */
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, !server));
	(void)read_begins(host);
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	assert_int_equal(host_ended(host, -EIO), 1);
	host_free(host);
}

/* It failed at the first one, and waits for the second one to be judged. Meanwhile the first one is
 * there again. */
static void read_that_failed_is_sent_to_a_server_that_has_come_again(void **state)
{
	uint32_t server;
	struct host *host = make_reading(&server);

	(void)state;
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, server));
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 0);
	rbx_held_renew(&host->flow.held, server);
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, !server));
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* Of two that have the slab one has FAILED: the copy is made of the other one. */
static void copy_is_read_where_nothing_has_failed(void **state)
{
	const struct rbx_volume_shape shape = { .replicas = 3, .on_demand = true,
						.is_named = true };
	uint32_t slot, failed;
	struct host *host;

	(void)state;
	for (slot = 0; slot < 2; slot++) { /* whichever is asked first */
		host = host_make_shaped(&shape, 1, 4);
		first_write(host, 0);
		rounds(host);
		assert_int_equal(host_ended(host, 0), 1);
		failed = host_server_of(host, 0, slot);
		rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, failed));
		host->servers[failed].down = true;
		host_is_out(host, host_server_of(host, 0, 2));
		(void)host_settle(host);
		(void)host_settle(host);
		assert_int_equal(host_census(host).whole, 1);
		host_free(host);
	}
}

/* No record can be accepted, so nothing is acknowledged, and the replica stays as it is. */
static void write_ends_in_an_error_if_there_is_no_record(void **state)
{
	struct host *host = make(1, 2);
	uint32_t failed = make_degraded(host);

	(void)state;
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, failed));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_true(rbx_held_has_failed(&host->flow.held, failed));
	rounds(host);
	assert_int_equal(host_census(host).dead, 0);
	assert_true(rbx_slab_has_server(host_slab(host, 0), failed));
	first_write(host, 0);
	host_poll_slot(host, 0, -EHOSTUNREACH, false);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	host_free(host);
}

/* The replica there is to be made like the other. That fails, and is not tried without end. */
static void copy_that_fails_rests_and_costs_no_replica(void **state)
{
	struct host *host = make(1, 2);
	uint32_t failed = make_degraded(host), before, i;

	(void)state;
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, failed));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	host->servers[failed].down = true;
	rounds(host);
	before = host->submits_count;
	for (i = 0; i < 8; i++) {
		(void)host_round(host);
		while (host_poll(host))
			;
	}
	assert_int_equal(host->submits_count, before);
	assert_true(host->due_ns <= host->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull);
	assert_int_equal(host_census(host).rebuilding, 1);
	assert_true(rbx_slab_has_server(host_slab(host, 0), failed));
	(void)host_settle(host);
	assert_true(host->submits_count > before);
	assert_int_equal(host_census(host).dead, 0);
	host_free(host);
}

/* The volume is being closed, or another client has opened it. */
static void all_that_waits_ends_in_an_error_at_the_end(void **state)
{
	struct host *host = make(1, 2);

	(void)state;
	(void)make_degraded(host);
	rbx_flow_go_on(&host->flow, rbx_held_end(&host->flow.held));
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	first_write(host, 0);
	host_poll_slot(host, 0, -EHOSTUNREACH, false);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EIO), 1);
	host_free(host);
}

static void fault_of_this_machine_waits_for_nothing(void **state)
{
	struct host *host = make(1, 2);

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	first_write(host, 0);
	host_poll_slot(host, 0, -EFAULT, false);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host_free(host);
}

/* ---- Rebuilt replicas ------------------------------------------------------------ */

/* A third server is asked for a replica, and does not label it. Returns which. */
static uint32_t make_rebuilt(struct host *host)
{
	uint32_t lost = make_degraded(host), i, third = 3 - lost - host_server_of(host, 0, 1);

	host->servers[third].is_slow_to_label = true;
	host_is_out(host, lost);
	for (i = 0; i < 4; i++)
		(void)host_settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_lent_count(host, third), 1);
	assert_true(host->servers[third].is_asked);
	return third;
}

static void rebuilt_replica_counts_when_it_is_labelled(void **state)
{
	struct host *host = make(1, 3);
	uint32_t third = make_rebuilt(host);

	(void)state;
	assert_int_equal(host_census(host).rebuilding, 1);
	assert_int_equal(host_census(host).last, 1);
	first_write(host, 0);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	host->servers[third].is_slow_to_label = false;
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_labelled_count(host, third), 1);
	host_free(host);
}

/* Its server has taken it back. Another one is borrowed, and copied to. */
static void rebuilt_replica_that_is_gone_is_rebuilt_again(void **state)
{
	struct host *host = make(1, 3);
	uint32_t third = make_rebuilt(host), i;

	(void)state;
	host->servers[third].label_err = -ESTALE;
	host->servers[third].is_slow_to_label = false;
	(void)host_settle(host);
	host->servers[third].label_err = 0;
	for (i = 0; i < 8; i++)
		(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	assert_int_equal(host_labelled_count(host, third), 1);
	assert_int_equal(host_lent_count(host, third), 1);
	host_free(host);
}

/* It may have it complete or not, so it is judged. */
static void server_that_refuses_to_label_is_a_suspect(void **state)
{
	struct host *host = make(1, 3);
	struct rbx_server_set suspects, gone;
	uint32_t third = make_rebuilt(host);

	(void)state;
	host->servers[third].label_err = -EPROTO;
	host->servers[third].is_slow_to_label = false;
	(void)host_settle(host);
	(void)rbx_held_suspects(&host->flow.held, &suspects, &gone);
	assert_true(rbx_server_set_has(&suspects, third));
	assert_int_equal(host_census(host).rebuilding, 1);
	host_free(host);
}

static void server_that_cannot_be_reached_labels_later(void **state)
{
	struct host *host = make(1, 3);
	uint32_t third = make_rebuilt(host);

	(void)state;
	host->servers[third].label_err = -ENOTCONN;
	host->servers[third].is_slow_to_label = false;
	(void)host_settle(host);
	assert_int_equal(host_census(host).rebuilding, 1);
	host->servers[third].label_err = 0;
	(void)host_settle(host);
	(void)host_settle(host);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* Nothing can be copied from a server that has failed, so no memory is asked for in vain. */
static void slab_without_a_source_borrows_nothing(void **state)
{
	struct host *host = make(1, 3);
	uint32_t lost = make_degraded(host), source = host_server_of(host, 0, 1), i;
	uint32_t third = 3 - lost - source;

	(void)state;
	host_is_out(host, lost);
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, source));
	host->servers[source].down = true;
	for (i = 0; i < 8; i++)
		(void)host_settle(host);
	assert_int_equal(host->servers[third].asked_count, 0);
	assert_int_equal(host_census(host).dead, 0);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

/* It has failed while it was copied from. */
static void slab_that_loses_its_source_gives_back_the_copy(void **state)
{
	struct host *host = make(1, 3);
	uint32_t lost = make_degraded(host), source = host_server_of(host, 0, 1), i;
	uint32_t third = 3 - lost - source;

	(void)state;
	host_is_out(host, lost);
	while (host_poll(host))
		;
	assert_int_equal(host_ended(host, 0), 1);
	(void)host_round(host); /* the copy is under way */
	(void)host_round(host);
	assert_int_equal(host_lent_count(host, third), 1);
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, source));
	host->servers[source].down = true;
	for (i = 0; i < 8; i++)
		(void)host_settle(host);
	assert_int_equal(host->servers[third].asked_count, 1);
	assert_int_equal(host_lent_count(host, third), 0);
	assert_int_equal(host_census(host).dead, 0);
	host_free(host);
}

/* ---- What is found, and what is needed ---------------------------------------------- */

static void slab_is_had_from_as_many_servers_as_it_has_replicas(void **state)
{
	struct host *host = make(2, 3);
	struct rbx_loan loan = { .slab_id = 1, .epoch = 5, .remote_addr = 1 << 20, .rkey = 7 };
	struct rbx_loan other = { .slab_id = 2, .epoch = 6, .remote_addr = 2 << 20, .rkey = 8 };
	struct rbx_loan second = { .slab_id = 3, .epoch = 7, .remote_addr = 3 << 20, .rkey = 9 };
	struct rbx_loan third = { .slab_id = 4, .epoch = 8, .remote_addr = 4 << 20, .rkey = 9 };

	(void)state;
	assert_int_equal(rbx_upkeep_fewest_copies(&host->upkeep), 2); /* nobody has any */
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &loan), 0);
	assert_int_equal(host_census(host).last, 1);
	assert_int_equal(rbx_upkeep_fewest_copies(&host->upkeep), 1);
	/* Another one has two: it is the first that counts. */
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 2, &second), 0);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 1, 2, &third), 0);
	assert_int_equal(rbx_upkeep_fewest_copies(&host->upkeep), 1);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &other), -EEXIST); /* it has it */
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 1, 1, &loan), 0);
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(rbx_upkeep_fewest_copies(&host->upkeep), 2);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 2, 1, &loan), -ENOSPC); /* two have it */
	host_free(host);
}

static void needed(struct host *host, uint32_t first, uint32_t second,
		   struct rbx_server_set *needed)
{
	struct rbx_server_set servers = { .words = { 0 } };

	*needed = servers;
	rbx_server_set_add(&servers, first);
	rbx_server_set_add(&servers, second);
	rbx_last_copies_needed(&host->flow, &servers, needed);
}

static void servers_are_needed_that_have_the_last_copies(void **state)
{
	struct host *host = make(1, 3);
	struct rbx_server_set set;
	uint32_t first, second, third;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	first = host_server_of(host, 0, 0);
	second = host_server_of(host, 0, 1);
	third = 3 - first - second;
	needed(host, first, third, &set);
	assert_int_equal(rbx_server_set_count(&set), 0);
	needed(host, first, second, &set);
	assert_int_equal(rbx_server_set_count(&set), 2);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_that_missed_a_replica_waits_for_the_record),
		cmocka_unit_test(read_that_failed_waits_for_the_record),
		cmocka_unit_test(read_that_failed_for_good_goes_on_to_the_other_replica),
		cmocka_unit_test(read_that_failed_is_sent_to_a_server_that_has_come_again),
		cmocka_unit_test(copy_is_read_where_nothing_has_failed),
		cmocka_unit_test(write_ends_in_an_error_if_there_is_no_record),
		cmocka_unit_test(copy_that_fails_rests_and_costs_no_replica),
		cmocka_unit_test(all_that_waits_ends_in_an_error_at_the_end),
		cmocka_unit_test(fault_of_this_machine_waits_for_nothing),
		cmocka_unit_test(rebuilt_replica_counts_when_it_is_labelled),
		cmocka_unit_test(rebuilt_replica_that_is_gone_is_rebuilt_again),
		cmocka_unit_test(server_that_refuses_to_label_is_a_suspect),
		cmocka_unit_test(server_that_cannot_be_reached_labels_later),
		cmocka_unit_test(slab_without_a_source_borrows_nothing),
		cmocka_unit_test(slab_that_loses_its_source_gives_back_the_copy),
		cmocka_unit_test(slab_is_had_from_as_many_servers_as_it_has_replicas),
		cmocka_unit_test(servers_are_needed_that_have_the_last_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
