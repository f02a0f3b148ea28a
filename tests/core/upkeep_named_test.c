/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* upkeep_named_test.c - a slab of a named volume is had from one server, or from none. */
#include "core/lost_slabs.h"
#include "tests/core/first_writes.h"

static struct host *make(uint32_t slabs, uint32_t servers)
{
	return host_make_shaped(&(struct rbx_volume_shape){ .replicas = 1,
							    .on_demand = true,
							    .is_named = true },
				slabs, servers);
}

/* And without a round at once, again and again. */
static void server_that_takes_long_is_waited_for(void **state)
{
	struct host *host = make(1, 2);
	uint32_t slow = make_slow(host), i;

	(void)state;
	for (i = 0; i < 40; i++) {
		host->now_ns += QUARTER_NS;
		rounds(host);
		assert_true(host->due_ns > host->now_ns);
	}
	assert_int_equal(host_ended(host, 0), 0);
	assert_int_equal(host->servers[1 - slow].asked_count, 0);
	answers_and_ends(host, slow, 1);
	host_free(host);
}

static void server_that_refuses_is_followed_by_another(void **state)
{
	struct host *host = make(1, 2);
	uint32_t slow = make_slow(host);

	(void)state;
	host->servers[slow].refuse = -ENOSPC;
	answers_and_ends(host, slow, 1);
	assert_int_equal(host_lent_count(host, slow), 0);
	assert_int_equal(host_lent_count(host, 1 - slow), 1);
	host_free(host);
}

/* One of two servers has lent the slab, and labels it when it is told to. Returns which. */
static uint32_t make_unlabelled(struct host *host)
{
	uint32_t slow;

	host->servers[0].is_slow_to_label = host->servers[1].is_slow_to_label = true;
	first_write(host, 0);
	rounds(host);
	slow = host_lent_count(host, 1);
	host->servers[1 - slow].is_slow_to_label = false;
	assert_int_equal(host_lent_count(host, slow), 1);
	assert_int_equal(host_ended(host, 0), 0);
	return slow;
}

static void slab_is_written_after_it_was_labelled(void **state)
{
	struct host *host = make(1, 2);
	uint32_t slow = make_unlabelled(host);

	(void)state;
	assert_null(host->sent_first);
	host->servers[slow].is_slow_to_label = false;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_labelled_count(host, slow), 1);
	host_free(host);
}

/* Not at once, but in a while. */
static void server_that_cannot_be_reached_is_asked_to_label_again(void **state)
{
	struct host *host = make(1, 2);
	uint32_t slow = make_unlabelled(host);

	(void)state;
	host->servers[slow].label_err = -ENOTCONN;
	host->servers[slow].is_slow_to_label = false;
	rounds(host);
	host->servers[slow].label_err = 0;
	rounds(host);
	assert_int_equal(host_labelled_count(host, slow), 0);
	assert_true(host->due_ns <= host->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull);
	host->now_ns += RBX_UPKEEP_RETRY_MS * 1000000ull;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_labelled_count(host, slow), 1);
	host_free(host);
}

/* The next client could find the slab at that server. */
static void slab_that_a_dead_server_may_have_is_dead(void **state)
{
	struct host *host = make(2, 2);
	uint32_t slow = make_unlabelled(host);
	uint8_t page[512];

	(void)state;
	host->servers[slow].label_err = -ENOTCONN;
	host->servers[slow].is_slow_to_label = false;
	rounds(host);
	rbx_upkeep_server_down(&host->upkeep, slow);
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_int_equal(host->servers[1 - slow].asked_count, 0);
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	host_start(host, RBX_PIECE_READ, 0, page, sizeof(page));
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_int_equal(host->servers[1 - slow].asked_count, 0);
	host_free(host);
}

/* Its answer comes, but too late to be of use: it has the slab all the same. */
static void slab_of_a_server_that_has_just_died_is_dead(void **state)
{
	struct host *host = make(1, 2);
	uint32_t slow = make_unlabelled(host);

	(void)state;
	rbx_upkeep_server_down(&host->upkeep, slow);
	host->servers[slow].is_slow_to_label = false;
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	assert_int_equal(host->servers[1 - slow].asked_count, 0);
	host_free(host);
}

/* It died before it was asked to label what it had lent. */
static void slab_that_no_server_has_labelled_is_had_elsewhere(void **state)
{
	struct host *host = make(1, 2);
	uint32_t slow = make_slow(host);

	(void)state;
	rbx_upkeep_server_down(&host->upkeep, slow);
	host->servers[slow].is_slow = false;
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_labelled_count(host, 1 - slow), 1);
	host_free(host);
}

/* A server lends anew what is still under way to: that cannot be used, and is given back. */
static void slab_whose_twin_is_in_use_is_not_labelled(void **state)
{
	struct host *host = make(2, 1);

	(void)state;
	host->reuses_keys = true;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	first_write(host, 0); /* and is under way */
	host->servers[0].keys[0] = 0;
	first_write(host, 1);
	(void)host_round(host);
	assert_int_equal(host_labelled_count(host, 0), 0);
	assert_true(host_slab(host, 1)->blank);
	rbx_upkeep_closes(&host->upkeep);
	host->now_ns += HOST_TIMEOUT_NS;
	(void)host_round(host);
	assert_int_equal(host_labelled_count(host, 0), 0);
	while (host_poll(host))
		;
	assert_int_equal(rbx_piece_pool_give(&host->flow.pool, &host->ended), 0);
	host_free(host);
}

/* A slab that this client cannot reach any more, the next one may. */
static void slab_that_was_lost_is_not_given_back(void **state)
{
	struct host *host = make(1, 2);
	uint32_t server;

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	server = host_server_of(host, 0, 0);
	first_write(host, 0);
	assert_true(host_poll_one(host, 0, -EREMOTEIO, false));
	rounds(host);
	assert_int_equal(host_ended(host, -EIO), 1);
	host->now_ns += HOST_TIMEOUT_NS;
	rounds(host);
	assert_int_equal(host_census(host).whole, 0);
	assert_int_equal(host_lent_count(host, server), 1);
	assert_int_equal(host->servers[server].kind, RBX_CALL_LABEL);
	host_free(host);
}

static void slabs_that_servers_have_are_taken(void **state)
{
	struct host *host = make(3, 2);
	struct rbx_loan loan = { .slab_id = 1, .epoch = 5, .remote_addr = 1 << 20, .rkey = 7 };
	struct rbx_loan twin = { .slab_id = 1, .epoch = 6, .remote_addr = 2 << 20, .rkey = 8 };
	struct rbx_loan same = { .slab_id = 2, .epoch = 7, .remote_addr = 1 << 20, .rkey = 7 };
	struct rbx_loan beyond = { .slab_id = 3, .epoch = 8, .rkey = 9,
				   .remote_addr = UINT64_MAX - RBX_PAGE_BYTES + 1 };
	struct rbx_loan fine = { .slab_id = 3, .epoch = 8, .remote_addr = 3 << 20, .rkey = 9 };

	(void)state;
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 0, &loan), -EINVAL);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 4, &loan), -EINVAL);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &beyond), -EINVAL);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 2, &loan), 0);
	assert_false(host_slab(host, 1)->blank);
	assert_true(host_slab(host, 0)->blank);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 1, 2, &fine), -EEXIST); /* two have it */
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &twin), -EEXIST);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 0, 1, &same), -EEXIST);
	assert_int_equal(rbx_upkeep_adopt(&host->upkeep, 1, 3, &fine), 0);
	assert_int_equal(host_census(host).whole, 2);
	assert_int_equal(host_census(host).blank, 1);
	host_free(host);
}

/* And counts so from then on. */
static void slab_that_nobody_has_is_lost(void **state)
{
	struct host *host = make(2, 2);

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_int_equal(host_census(host).blank, 1);
	assert_int_equal(rbx_upkeep_lost_slabs(&host->upkeep), 1);
	assert_int_equal(host_census(host).blank, 0);
	assert_int_equal(host_census(host).dead, 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

static void nothing_is_moved(void **state)
{
	struct host *host = make(1, 2);

	(void)state;
	first_write(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_evict_live(host, 0);
	rounds(host);
	assert_int_equal(host->servers[0].asked_count + host->servers[1].asked_count, 1);
	assert_int_equal(host_census(host).whole, 1);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_takes_long_is_waited_for),
		cmocka_unit_test(server_that_refuses_is_followed_by_another),
		cmocka_unit_test(slab_is_written_after_it_was_labelled),
		cmocka_unit_test(server_that_cannot_be_reached_is_asked_to_label_again),
		cmocka_unit_test(slab_that_a_dead_server_may_have_is_dead),
		cmocka_unit_test(slab_of_a_server_that_has_just_died_is_dead),
		cmocka_unit_test(slab_that_no_server_has_labelled_is_had_elsewhere),
		cmocka_unit_test(slab_whose_twin_is_in_use_is_not_labelled),
		cmocka_unit_test(slab_that_was_lost_is_not_given_back),
		cmocka_unit_test(slabs_that_servers_have_are_taken),
		cmocka_unit_test(slab_that_nobody_has_is_lost),
		cmocka_unit_test(nothing_is_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
