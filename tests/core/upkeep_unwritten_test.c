/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_unwritten_test.c - a slab of a named volume with replicas that was never written, and that
 * a server may have labelled as complete: it is not lent to others before that label is known to be
 * gone, and not dead for ever (core/loans.c).
 */
#include "tests/core/first_writes.h"

#include "core/labels.h"

/* The third place is free. */
#define PLACE 2u

static struct host *make(uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
							    .on_demand = true,
							    .is_named = true },
				1, servers);
}

static void is_out(struct host *host, uint32_t server)
{
	host->servers[server].down = true;
	rbx_upkeep_server_down(&host->upkeep, server);
	rbx_flow_go_on(&host->flow, rbx_held_out(&host->flow.held, server));
}

static void settle(struct host *host)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		(void)host_settle(host);
}

static void write_ends(struct host *host, int32_t status)
{
	first_write(host, 0);
	settle(host);
	assert_int_equal(host_ended(host, status), 1);
}

/* Server 0 was asked to label what it has lent, and has FAILED; the other one has labelled. */
static struct host *make_unsure(void)
{
	struct host *host = make(2);

	host->servers[0].is_slow_to_label = true;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_labelled_count(host, 1), 1);
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, 0));
	host->servers[0].label_err = -EHOSTUNREACH;
	host->servers[0].is_slow_to_label = false;
	settle(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	return host;
}

/* It is connected, for another place of the table. What the former place is asked fails. */
static struct rbx_loan comes_again(struct host *host)
{
	struct host_server *server = &host->servers[PLACE];
	struct rbx_loan loan = { .slab_id = 0 };

	*server = host->servers[0];
	server->label_err = 0;
	server->is_slow_to_end = server->is_asked = false;
	host->servers[0].down = true;
	loan.epoch = server->epochs[0];
	loan.remote_addr = (uintptr_t)server->memory[0];
	loan.rkey = server->keys[0];
	rbx_upkeep_server_begins(&host->upkeep, PLACE);
	rbx_upkeep_server_added(&host->upkeep, PLACE);
	return loan;
}

static void former_is_gone(struct host *host)
{
	rbx_upkeep_server_down(&host->upkeep, 0);
	settle(host);
}

/* Its zeros could be found later. Until it is known what it has, the slab is as it was. */
static void slab_that_a_failed_server_may_have_is_not_lent(void **state)
{
	struct host *host = make_unsure();
	uint8_t page[512];

	(void)state;
	assert_int_equal(host_census(host).dead, 0);
	assert_int_equal(host_census(host).blank, 1);
	/* It is of no use at the other one either. */
	assert_int_equal(host_lent_count(host, 1), 0);
	write_ends(host, -EIO);
	assert_int_equal(host_lent_count(host, 1), 0);
	host_start(host, RBX_PIECE_READ, 0, page, sizeof(page));
	(void)host_poll(host);
	assert_true(rbx_piece_of(host->ended.first)->reads_zeros);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static void it_is_lent_when_the_server_has_taken_it_back(void **state)
{
	struct host *host = make_unsure();
	struct rbx_labels_told told = { .label = 1, .is_complete = true };

	(void)state;
	host->servers[0].labelled[0] = true; /* its answer was lost */
	told.loan = comes_again(host);
	assert_int_equal(rbx_labels_again(&host->upkeep, 0, PLACE, &told), 0);
	host->servers[PLACE].deaf = -ENOTCONN;
	former_is_gone(host);
	assert_int_equal(host_lent_count(host, PLACE), 1);
	first_write(host, 0);
	settle(host);
	assert_int_equal(host_labelled_count(host, 1), 0); /* not yet */
	host->servers[PLACE].deaf = 0;
	settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_labelled_count(host, 1), 1);
	assert_int_equal(host_labelled_count(host, PLACE), 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

static void it_is_lent_when_the_server_does_not_have_it(void **state)
{
	struct host *host = make_unsure();

	(void)state;
	(void)comes_again(host);
	host->servers[PLACE].keys[0] = 0;
	write_ends(host, -EIO);
	former_is_gone(host);
	write_ends(host, 0);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* It cannot be told from one that is another client's by now. */
static void it_is_dead_if_the_server_does_not_know_us(void **state)
{
	struct host *host = make_unsure();
	struct rbx_labels_told told = { .label = 1, .is_complete = true };

	(void)state;
	told.loan = comes_again(host);
	assert_int_equal(rbx_labels_again(&host->upkeep, 0, PLACE, &told), 0);
	host->servers[PLACE].deaf = -ESTALE;
	former_is_gone(host);
	assert_int_equal(host_census(host).dead, 1);
	write_ends(host, -EIO);
	host_free(host);
}

/* The loan is in the hands of the former place as long as that was asked for it. */
static void server_that_was_asked_is_waited_for(void **state)
{
	struct host *host = make(2);
	struct rbx_labels_told told = { .label = 1 };

	(void)state;
	host->servers[0].label_err = -EREMOTEIO; /* it may have done so */
	host->servers[0].is_slow_to_end = true;
	first_write(host, 0);
	settle(host);
	assert_int_equal(host->servers[0].kind, RBX_CALL_UNMAP);
	told.loan = comes_again(host);
	assert_int_equal(rbx_labels_again(&host->upkeep, 0, PLACE, &told), -EAGAIN);
	assert_int_equal(host_ended(host, 0), 0);
	settle(host);
	assert_int_equal(rbx_labels_again(&host->upkeep, 0, PLACE, &told), 0);
	former_is_gone(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

/* ---- Suspects ---------------------------------------------------------------------- */

/* The only server that lends is about to be judged, and nobody looks at the slab again. */
static struct host *make_suspect(void)
{
	struct host *host = make(2);

	host->servers[0].is_slow = true;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_labelled_count(host, 1), 1);
	rbx_held_suspect(&host->flow.held, 1);
	host->servers[1].deaf = -ENOTCONN;
	host->servers[0].refuse = -ENOSPC;
	host->servers[0].is_slow = false;
	settle(host);
	assert_int_equal(host_ended(host, 0), 0);
	assert_int_equal(host_census(host).dead, 0);
	return host;
}

static void slab_at_a_suspect_is_lent_when_that_is_out(void **state)
{
	struct host *host = make_suspect();

	(void)state;
	host->servers[0].refuse = 0;
	settle(host);
	assert_int_equal(host_lent_count(host, 0), 0);
	is_out(host, 1);
	settle(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_labelled_count(host, 0), 1);
	host_free(host);
}

static void slab_at_a_suspect_is_not_lent_if_that_has_failed(void **state)
{
	struct host *host = make_suspect();

	(void)state;
	host->servers[0].refuse = 0;
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, 1));
	settle(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_int_equal(host_lent_count(host, 0), 0);
	host_free(host);
}

static void writes_are_cancelled_if_the_volume_is_closed_first(void **state)
{
	struct host *host = make_suspect();

	(void)state;
	rbx_upkeep_closes(&host->upkeep);
	settle(host);
	assert_int_equal(host_ended(host, -ECANCELED), 1);
	host_free(host);
}

/* ---- No room to note it -------------------------------------------------------------- */

static void slab_is_dead_if_it_cannot_be_noted(void **state)
{
	struct host *host = make(2);
	uint32_t i;

	(void)state;
	host->servers[0].is_slow_to_label = true;
	first_write(host, 0);
	rounds(host);
	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, 0));
	for (i = 0; i < RBX_OWED_MAX; i++)
		host->upkeep.owed[i] = (struct rbx_owed){ .not_before_ns = UINT64_MAX };
	host->upkeep.owed_count = RBX_OWED_MAX;
	host->servers[0].label_err = -EHOSTUNREACH;
	host->servers[0].is_slow_to_label = false;
	settle(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_int_equal(host_census(host).dead, 1);
	host->upkeep.owed_count = 0;
	write_ends(host, -EIO);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_that_a_failed_server_may_have_is_not_lent),
		cmocka_unit_test(it_is_lent_when_the_server_has_taken_it_back),
		cmocka_unit_test(it_is_lent_when_the_server_does_not_have_it),
		cmocka_unit_test(it_is_dead_if_the_server_does_not_know_us),
		cmocka_unit_test(server_that_was_asked_is_waited_for),
		cmocka_unit_test(slab_at_a_suspect_is_lent_when_that_is_out),
		cmocka_unit_test(slab_at_a_suspect_is_not_lent_if_that_has_failed),
		cmocka_unit_test(writes_are_cancelled_if_the_volume_is_closed_first),
		cmocka_unit_test(slab_is_dead_if_it_cannot_be_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
