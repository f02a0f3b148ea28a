/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labels_again_test.c - a server that has FAILED is there again, in another place of the table, and
 * its slabs are found there (core/labels.h).
 */
#include "tests/core/first_writes.h"

#include "core/labels.h"

#define SERVERS 4u

/* It has FAILED while it was asked to take the label of the slab back. */
struct leaver {
	struct host *host;
	struct rbx_slab *slab;
	uint32_t server, place; /* where it comes again */
	struct rbx_labels_told told;
};

static void make(struct leaver *leaver)
{
	struct host *host = host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
									 .on_demand = true,
									 .is_named = true },
					     1, SERVERS);
	uint32_t i;

	*leaver = (struct leaver){ .host = host, .slab = host_slab(host, 0) };
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	leaver->server = host_server_of(host, 0, 0);
	host->servers[leaver->server].is_slow_to_unlabel = true;
	host_evict_live(host, 0);
	for (i = 0; i < 4; i++)
		(void)host_settle(host);
	assert_int_equal(host->servers[leaver->server].kind, RBX_CALL_UNLABEL);
	while (rbx_slab_has_server(leaver->slab, leaver->place))
		leaver->place++;
	leaver->told = (struct rbx_labels_told){
		.loan = rbx_replica_loan(rbx_slab_replica(leaver->slab, 0)),
		.label = 1,
	};
}

static void fails(struct leaver *leaver, int err)
{
	struct host *host = leaver->host;

	rbx_flow_go_on(&host->flow, rbx_held_failed(&host->flow.held, leaver->server));
	host->servers[leaver->server].label_err = err;
	host->servers[leaver->server].is_slow_to_unlabel = false;
	(void)host_settle(host);
}

static void comes_again(struct leaver *leaver, bool is_complete)
{
	leaver->told.is_complete = is_complete;
	assert_int_equal(rbx_labels_again(&leaver->host->upkeep, leaver->server, leaver->place,
					  &leaver->told),
			 0);
	assert_int_equal(host_server_of(leaver->host, 0, 0), leaver->place);
}

/* It has not heard the request: it is asked once more. */
static void label_that_is_there_is_taken_back_later(void **state)
{
	struct leaver leaver;

	(void)state;
	make(&leaver);
	comes_again(&leaver, true);
	assert_int_equal(rbx_slab_state(leaver.slab, 0), RBX_REPLICA_LEAVING);
	assert_false(rbx_slab_is_unlabelling(leaver.slab, 0));
	assert_int_equal(rbx_slab_superfluous(leaver.slab), 0);
	host_free(leaver.host);
}

/* The next client would not find it there, whether its answer is still missing or not. */
static void replica_without_its_label_is_lost(void **state)
{
	struct leaver leaver;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		make(&leaver);
		if (i)
			fails(&leaver, -ENOTCONN);
		assert_true(rbx_slab_is_unlabelling(leaver.slab, 0));
		comes_again(&leaver, false);
		assert_int_equal(rbx_slab_state(leaver.slab, 0), RBX_REPLICA_LOST);
		host_free(leaver.host);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	struct rbx_labels_told told;
	struct leaver leaver;

	(void)state;
	make(&leaver);
	told = leaver.told;
	told.label = 2;
	assert_int_equal(rbx_labels_again(&leaver.host->upkeep, leaver.server, leaver.place, &told),
			 -EINVAL);
	/* It is there, and not used from this place. */
	told = leaver.told;
	told.loan.slab_id++;
	assert_int_equal(rbx_labels_again(&leaver.host->upkeep, leaver.server, leaver.place, &told),
			 0);
	assert_int_equal(host_server_of(leaver.host, 0, 0), leaver.server);
	host_free(leaver.host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_that_is_there_is_taken_back_later),
		cmocka_unit_test(replica_without_its_label_is_lost),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
