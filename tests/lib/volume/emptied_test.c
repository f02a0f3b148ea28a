/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * emptied_test.c - a server of a named volume is started anew without its memory: its former self
 * is forgotten, and does not count as the next server that is not found (client/emptied.h).
 */
#include <stdio.h>
#include <unistd.h>

#include "client/emptied.h"
#include "include/rdmabox/named_volume.h"
#include "lib/volume/crowd.h"
#include "tests/lib/volume/third_server.h"

#define SIZE (3u * TENANT_SLAB_BYTES)

static int start(void **state)
{
	struct rbx_volume_create_options options;
	struct rbx_context *ctx;
	struct rbx_volume *volume;

	third_server_start(state);
	ctx = tenant_context("");
	rbx_volume_create_options_defaults(&options);
	options.replicas = 2;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	write_page(volume, 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	*state = ctx;
	return 0;
}

static int stop(void **state)
{
	int i;

	rbx_close(*state);
	for (i = 0; i < SERVERS; i++)
		if (servers[i])
			rbx_server_stop(servers[i]);
	return 0;
}

static void server_ends(int i)
{
	rbx_server_stop(servers[i]);
	servers[i] = NULL;
}

/* At its address, without what it had. */
static void third_starts_anew(void)
{
	struct rbx_server_options options;

	tenant_server_options(&options);
	snprintf(options.listen, sizeof(options.listen), "%s", third);
	assert_int_equal(rbx_server_start(&servers[2], &options), 0);
}

static void expect_members(struct rbx_context *ctx, uint32_t in_count, uint32_t out_count)
{
	struct rbx_volume_member members[8];
	int i, count = rbx_volume_members_list(ctx, pool, "db", members, 8);

	assert_int_equal(count, in_count + out_count);
	for (i = 0; i < count; i++)
		out_count -= members[i].is_out;
	assert_int_equal(out_count, 0);
}

/* Until it has all its replicas. What was written is there. */
static void use(struct rbx_context *ctx, const char *at)
{
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	int ms;

	if (open_at(ctx, &volume, at))
		fail_msg("%s", rbx_last_error());
	expect_page(volume, 0);
	write_page(volume, 0);
	for (ms = 0; ms < TENANT_WAIT_MS; ms++) {
		rbx_volume_status(volume, &status);
		if (status.slabs_whole + status.slabs_blank == status.slabs)
			break;
		usleep(1000);
	}
	usleep(200000); /* the record says so one round later */
	assert_int_equal(rbx_volume_close(volume), 0);
}

/* It comes, and is needed like any other. */
static void third_is_added(struct rbx_context *ctx)
{
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), 0);
	use(ctx, pool);
	expect_members(ctx, 3, 0);
}

/* Any one may end now, and nobody takes it for the former third one. */
static void another_ends(struct rbx_context *ctx)
{
	server_ends(0);
	use(ctx, pool);
	expect_members(ctx, 2, 1);
}

/* ---- All answer ----------------------------------------------------------------------- */

static void emptied_member_is_forgotten_by_the_open_that_misses_it(void **state)
{
	server_ends(2);
	third_starts_anew();
	use(*state, pool);
	expect_members(*state, 2, 0);
	third_is_added(*state);
	another_ends(*state);
}

/* It was away, and is OUT since. */
static void emptied_member_is_forgotten_by_a_later_open(void **state)
{
	server_ends(2);
	use(*state, pool);
	expect_members(*state, 2, 1);
	third_starts_anew();
	use(*state, pool);
	expect_members(*state, 2, 0);
	third_is_added(*state);
	another_ends(*state);
}

/* And is added before the volume was opened without it. */
static void emptied_member_that_is_added_is_forgotten(void **state)
{
	server_ends(2);
	third_starts_anew();
	assert_int_equal(rbx_volume_members_add(*state, pool, "db", third), 0);
	expect_members(*state, 3, 0);
	use(*state, pool);
	another_ends(*state);
}

/* As if a client had opened it, and had crashed. */
static void client_crashes(struct rbx_context *ctx)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int i;

	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_crowd_open(ctx, pool, &crowd), 0);
	assert_int_equal(rbx_crowd_look(crowd, &named), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	for (i = 0; i < SERVERS; i++)
		assert_int_equal(rbx_named_grant(&named, crowd->sessions[i]), 0);
	assert_int_equal(rbx_named_take_newest(&named), 0);
	named.record.flags &= ~(uint32_t)RBX_WIRE_EVEN;
	for (i = 0; i < SERVERS; i++)
		assert_int_equal(rbx_named_accept(&named, crowd->sessions[i]), 0);
	rbx_crowd_close(crowd);
}

/* It may still read from the former third one, so nobody but an open puts that OUT. */
static void emptied_member_stays_if_the_client_has_crashed(void **state)
{
	client_crashes(*state);
	server_ends(2);
	third_starts_anew();
	assert_int_equal(rbx_volume_members_add(*state, pool, "db", third), 0);
	expect_members(*state, 4, 0);
}

/* The new server is one more, and the one that was not named is still there. */
static void member_that_is_not_named_stays_if_a_server_is_added(void **state)
{
	struct rbx_server *fourth = tenant_server();

	assert_int_equal(rbx_volume_members_add(*state, two, "db", rbx_server_address(fourth)), 0);
	expect_members(*state, 4, 0);
	rbx_server_stop(fourth);
}

/* Whoever leaves one out of a list does not give it up. */
static void member_that_is_not_named_is_not_forgotten(void **state)
{
	struct rbx_volume *volume;

	assert_int_equal(open_at(*state, &volume, two), -EHOSTUNREACH);
	server_ends(2);
	use(*state, pool);
	use(*state, two);
	expect_members(*state, 2, 1);
}

/* One of them is at the address of one that is away, or both are elsewhere. */
static void more_members_than_new_servers_are_not_forgotten(void **state)
{
	const struct rbx_emptied emptied = { .new_count = 1 };
	const struct rbx_member_set there = { .count = 1, .incarnations = { 7 } };
	struct rbx_membership next = {
		.count = 3,
		.members = {
			{ .incarnation = 8, .state = RBX_MEMBER_OUT },
			{ .incarnation = 7, .state = RBX_MEMBER_IN, .was_in = true },
			{ .incarnation = 9, .state = RBX_MEMBER_OUT },
		},
	};

	(void)state;
	assert_int_equal(rbx_emptied_forget(&emptied, &next, &there), 0);
	assert_int_equal(next.count, 3);
	next.members[2].incarnation = 7;
	next.members[1].incarnation = 9;
	next.members[1].state = RBX_MEMBER_OUT; /* and has a vote until the next one */
	assert_int_equal(rbx_emptied_forget(&emptied, &next, &there), 0);
	next.count = 1;
	assert_int_equal(rbx_emptied_forget(&emptied, &next, &there), 1);
	assert_int_equal(next.count, 0);
}

/* ---- One is away ---------------------------------------------------------------------- */

static void emptied_member_is_replaced_when_its_address_answers(void **state)
{
	struct rbx_volume *volume;

	server_ends(2);
	assert_int_equal(open_at(*state, &volume, pool), 0);
	third_starts_anew();
	if (rbx_volume_add_server(volume, third))
		fail_msg("%s", rbx_last_error());
	assert_int_equal(rbx_volume_close(volume), 0);
	expect_members(*state, 3, 0);
	use(*state, pool);
	another_ends(*state);
}

#define EMPTIED_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EMPTIED_TEST(emptied_member_is_forgotten_by_the_open_that_misses_it),
		EMPTIED_TEST(emptied_member_is_forgotten_by_a_later_open),
		EMPTIED_TEST(emptied_member_that_is_added_is_forgotten),
		EMPTIED_TEST(emptied_member_stays_if_the_client_has_crashed),
		EMPTIED_TEST(member_that_is_not_named_stays_if_a_server_is_added),
		EMPTIED_TEST(member_that_is_not_named_is_not_forgotten),
		EMPTIED_TEST(emptied_member_is_replaced_when_its_address_answers),
		cmocka_unit_test(more_members_than_new_servers_are_not_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
