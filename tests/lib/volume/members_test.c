/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * members_test.c - a named volume gets a third server: it is one of its servers, or it is none;
 * also if the client dies after any of its requests, and whoever comes next.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/newcomer.h"
#include "client/session.h"
#include "core/membership_change.h"
#include "core/record.h"
#include "lib/volume/crowd.h"
#include "tests/lib/volume/third_server.h"

#define PAGE 4096u
/* More than two servers can lend, so all three do: a placement draws two of them at random. */
#define SLABS (2 * TENANT_SLABS + 1)
#define SLABS_TWICE (TENANT_SLABS + 1) /* with two replicas of each */
#define SIZE ((uint64_t)SLABS * TENANT_SLAB_BYTES)
#define BEFORE 2u /* servers */

/* Requests of an addition. */
enum step {
	GRANTED = BEFORE,
	AS_IT_IS = 2 * BEFORE, /* its record was accepted under the new epoch */
	JOINED, /* the new server has made the volume */
	NEWCOMER, /* and has accepted the record that names it */
	NAMED = NEWCOMER + BEFORE, /* and so have the others */
	SETTLED = NAMED + BEFORE + 1, /* the record that needs no vote of before */
};

/* ---- A volume with contents --------------------------------------------------------------*/

static void make(struct rbx_context *ctx)
{
	const struct rbx_volume_create_options for_three = { .size_bytes = sizeof(for_three),
							     .keep_s = UINT64_MAX,
							     .replicas = 1,
							     .overcommit = 1 };
	struct rbx_volume *volume;
	uint8_t page[PAGE];

	assert_int_equal(rbx_volume_create(ctx, two, "db", SIZE, &for_three), 0);
	assert_int_equal(open_at(ctx, &volume, two), 0);
	memset(page, 0x5c, PAGE);
	assert_int_equal(rbx_write(volume, page, PAGE, 0), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
}

/* 0 if it was opened, with the contents; or -errno. */
static int use(struct rbx_context *ctx, const char *at)
{
	uint8_t page[PAGE], expected[PAGE];
	struct rbx_volume *volume;
	int err = open_at(ctx, &volume, at);

	if (err)
		return err;
	memset(expected, 0x5c, PAGE);
	assert_int_equal(rbx_read(volume, page, PAGE, 0), 0);
	assert_memory_equal(page, expected, PAGE);
	assert_int_equal(rbx_volume_close(volume), 0);
	return 0;
}

static uint64_t lent_by_third(struct rbx_context *ctx)
{
	struct rbx_server_stats stats;

	(void)ctx;
	rbx_server_stats_get(servers[2], &stats);
	return stats.slabs_lent;
}

static void expect_servers(struct rbx_context *ctx, uint32_t count)
{
	struct rbx_volume_info info;

	assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 1);
	assert_int_equal(info.servers, count);
	assert_int_equal(info.servers_there, count);
}

/* ---- An addition that ends early ------------------------------------------------------------*/

static bool goes_on(int *left)
{
	return (*left)-- > 0;
}

static void add_steps(struct rbx_named *named, const struct rbx_crowd *crowd, int left)
{
	struct rbx_session *newcomer = crowd->sessions[BEFORE];
	struct rbx_membership next;
	uint32_t i;

	for (i = 0; i < BEFORE && goes_on(&left); i++)
		assert_int_equal(rbx_named_grant(named, crowd->sessions[i]), 0);
	if (i < BEFORE)
		return;
	assert_int_equal(rbx_named_take_newest(named), 0);
	for (i = 0; i < BEFORE && goes_on(&left); i++)
		assert_int_equal(rbx_named_accept(named, crowd->sessions[i]), 0);
	if (!goes_on(&left))
		return;
	assert_int_equal(rbx_newcomer_join(named, newcomer), 0);
	rbx_membership_next(&next, &named->proposer.membership);
	assert_true(rbx_membership_add(&next, rbx_session_incarnation(newcomer)));
	rbx_named_change_to(named, &next);
	if (goes_on(&left))
		assert_int_equal(rbx_named_accept(named, newcomer), 0);
	for (i = 0; i < BEFORE && goes_on(&left); i++)
		assert_int_equal(rbx_named_accept(named, crowd->sessions[i]), 0);
	if (!goes_on(&left))
		return;
	rbx_named_change(named);
	assert_int_equal(rbx_named_accept(named, newcomer), 0);
	for (i = 0; i < BEFORE && goes_on(&left); i++)
		assert_int_equal(rbx_named_accept(named, crowd->sessions[i]), 0);
}

/* As rbx_volume_members_add(), but it ends after so many requests. */
static void add_until(struct rbx_context *ctx, int requests)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;

	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_crowd_open(ctx, pool, &crowd), 0);
	assert_int_equal(rbx_crowd_look(crowd, &named), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	add_steps(&named, crowd, requests);
	rbx_crowd_close(crowd);
}

/* ---- Tests ----------------------------------------------------------------------------------*/

static void new_server_lends_from_the_next_open_on(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	uint8_t page[PAGE];
	uint32_t i;

	(void)state;
	make(ctx);
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), 0);
	expect_servers(ctx, 3);
	assert_int_equal(lent_by_third(ctx), 0);
	assert_int_equal(use(ctx, two), -EHOSTUNREACH);
	assert_int_equal(use(ctx, pool), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	memset(page, 0x5c, PAGE);
	for (i = 0; i < SLABS; i++)
		assert_int_equal(rbx_write(volume, page, PAGE, i * (uint64_t)TENANT_SLAB_BYTES), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_true(lent_by_third(ctx) > 0);
	assert_int_equal(use(ctx, pool), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* By the program that has it open. */
static void open_volume_gets_a_server_for_good(void **state)
{
	const struct rbx_volume_create_options twice = { .size_bytes = sizeof(twice),
							 .keep_s = UINT64_MAX,
							 .replicas = 2,
							 .overcommit = 1 };
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	uint8_t page[PAGE];
	uint32_t i;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, two, "db", SIZE, &twice), 0);
	assert_int_equal(open_at(ctx, &volume, two), 0);
	assert_int_equal(rbx_volume_create(ctx, third, "db", PAGE, NULL), 0);
	assert_int_equal(rbx_volume_add_server(volume, third), -EEXIST);
	assert_int_equal(rbx_volume_remove(ctx, third, "db", 0), 0);
	assert_int_equal(rbx_volume_add_server(volume, third), 0);
	assert_int_equal(rbx_volume_add_server(volume, third), -EINVAL);
	memset(page, 0x5c, PAGE);
	for (i = 0; i < SLABS_TWICE; i++)
		assert_int_equal(rbx_write(volume, page, PAGE, i * (uint64_t)TENANT_SLAB_BYTES), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_true(lent_by_third(ctx) > 0);
	expect_servers(ctx, 3);
	assert_int_equal(use(ctx, two), -EHOSTUNREACH);
	assert_int_equal(use(ctx, pool), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* Its volume is left as it was, and the new server has nothing. */
static void expect_refusal(struct rbx_context *ctx, const char *at, const char *newcomers, int err,
			   const char *text)
{
	assert_int_equal(rbx_volume_members_add(ctx, at, "db", newcomers), err);
	if (!strstr(rbx_last_error(), text))
		fail_msg("%s, not %s", rbx_last_error(), text);
	expect_servers(ctx, BEFORE);
	assert_int_equal(lent_by_third(ctx), 0);
	assert_int_equal(use(ctx, two), 0);
}

static void wrong_additions_change_nothing(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	const char *first = rbx_server_address(servers[0]);
	struct rbx_volume *volume;
	char list[512];

	(void)state;
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), -ENOENT);
	make(ctx);
	expect_refusal(ctx, two, first, -EEXIST, "is one of the servers of volume db already");
	snprintf(list, sizeof(list), "%s,%s", third, first);
	expect_refusal(ctx, two, list, -EEXIST, "is one of the servers of volume db already");
	snprintf(list, sizeof(list), "%s,%s", third, third);
	expect_refusal(ctx, two, list, -EINVAL, "twice");
	expect_refusal(ctx, two, "127.0.0.1:1", -ECONNREFUSED, "127.0.0.1:1");
	expect_refusal(ctx, two, "file:/etc/passwd", -EINVAL, "must be a list");
	expect_refusal(ctx, two, "", -EINVAL, "");
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", NULL), -EINVAL);
	/* One of two is not more than half of them. */
	expect_refusal(ctx, first, third, -EHOSTUNREACH, "too few of its servers");
	assert_int_equal(open_at(ctx, &volume, two), 0);
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "is open by"));
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_create(ctx, third, "db", PAGE, NULL), 0);
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), -EEXIST);
	assert_non_null(strstr(rbx_last_error(), "there is a volume of this name"));
	assert_int_equal(rbx_volume_remove(ctx, third, "db", 0), 0);
	expect_refusal(ctx, two, first, -EEXIST, "already");
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static struct rbx_server *start(const struct rbx_server_options *options)
{
	struct rbx_server *server;

	if (rbx_server_start(&server, options))
		fail_msg("%s", rbx_last_error());
	return server;
}

/* A server that would never lend anything is of no use. */
static void server_without_room_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_server_options options;
	struct rbx_server *server;
	struct rbx_remote *remote;
	struct rbx_peer *peer;

	(void)state;
	make(ctx);
	tenant_server_options(&options);
	options.memory_bytes = TENANT_SLAB_BYTES;
	server = start(&options);
	assert_int_equal(rbx_peer_connect(ctx, &peer, rbx_server_address(server)), 0);
	assert_int_equal(rbx_borrow(peer, &remote, TENANT_SLAB_BYTES), 0);
	expect_refusal(ctx, two, rbx_server_address(server), -ENOSPC, "no memory left to lend");
	rbx_return(remote);
	rbx_peer_close(peer);
	rbx_server_stop(server);

	options.memory_bytes = 4 * TENANT_SLAB_BYTES;
	options.quota_bytes = TENANT_SLAB_BYTES;
	options.volumes_max = 1;
	server = start(&options);
	assert_int_equal(rbx_peer_connect(ctx, &peer, rbx_server_address(server)), 0);
	assert_int_equal(rbx_borrow(peer, &remote, TENANT_SLAB_BYTES), 0);
	expect_refusal(ctx, two, rbx_server_address(server), -EDQUOT, "the quota is reached");
	rbx_return(remote);
	rbx_peer_close(peer);
	assert_int_equal(rbx_volume_create(ctx, rbx_server_address(server), "other", PAGE, NULL), 0);
	expect_refusal(ctx, two, rbx_server_address(server), -EDQUOT, "as many named volumes");
	rbx_server_stop(server);

	options.slab_bytes = options.quota_bytes = 2 * TENANT_SLAB_BYTES;
	server = start(&options);
	expect_refusal(ctx, two, rbx_server_address(server), -EINVAL, "start it with that --slab");
	rbx_server_stop(server);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static void propose(struct rbx_named *named, const struct rbx_crowd *crowd,
		    const struct rbx_membership *next)
{
	uint32_t i;

	rbx_named_change_to(named, next);
	for (i = 0; i < crowd->count; i++)
		assert_int_equal(rbx_named_accept(named, crowd->sessions[i]), 0);
	assert_true(rbx_named_is_chosen(named));
}

/* Its record says that these are out: the third server, if it is one of its servers, and so many
 * that are long dead. */
static void put_out(struct rbx_context *ctx, const char *at, uint32_t dead_count)
{
	struct rbx_membership next;
	struct rbx_member *member;
	struct rbx_crowd *crowd;
	struct rbx_named named;
	uint32_t i;

	assert_int_equal(rbx_named_init(&named, "db", "a test"), 0);
	assert_int_equal(rbx_crowd_open(ctx, at, &crowd), 0);
	assert_int_equal(rbx_crowd_look(crowd, &named), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	for (i = 0; i < crowd->count; i++)
		assert_int_equal(rbx_named_grant(&named, crowd->sessions[i]), 0);
	assert_int_equal(rbx_named_take_newest(&named), 0);
	for (i = 0; i < crowd->count; i++)
		assert_int_equal(rbx_named_accept(&named, crowd->sessions[i]), 0);
	rbx_membership_next(&next, &named.proposer.membership);
	for (i = 0; i < dead_count; i++)
		next.members[next.count++] = (struct rbx_member){ .incarnation = 4711 + i,
								  .state = RBX_MEMBER_OUT };
	member = crowd->count > BEFORE ? rbx_membership_find(&next, rbx_session_incarnation(
								crowd->sessions[BEFORE])) :
					 NULL;
	if (member)
		member->state = RBX_MEMBER_OUT;
	propose(&named, crowd, &next);
	rbx_crowd_close(crowd);
}

static void sixty_fifth_server_is_refused_until_a_dead_one_is_removed(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_member members[64];

	(void)state;
	make(ctx);
	put_out(ctx, two, 62);
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "has 64 servers, and can have 64 at most"));
	assert_int_equal(lent_by_third(ctx), 0);
	assert_int_equal(rbx_volume_members_list(ctx, two, "db", members, 64), 64);
	assert_int_equal(members[2].incarnation, 4711);
	assert_true(members[2].is_out && !members[2].is_there && !members[2].address[0]);
	assert_int_equal(rbx_volume_members_remove(ctx, two, "db", "0000000000001267"), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, two, "db", "0000000000001267"), -ENODEV);
	assert_int_equal(rbx_volume_members_list(ctx, two, "db", members, 64), 63);
	assert_int_equal(use(ctx, two), 0);
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), 0);
	assert_int_equal(use(ctx, pool), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static void server_that_is_out_is_removed_and_gives_up_what_it_has(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_member members[3];
	struct rbx_volume *volume;
	uint8_t page[PAGE];
	uint32_t i;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	memset(page, 0x5c, PAGE);
	for (i = 0; i < SLABS; i++)
		assert_int_equal(rbx_write(volume, page, PAGE, i * (uint64_t)TENANT_SLAB_BYTES), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), -EBUSY);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_true(lent_by_third(ctx) > 0);
	assert_int_equal(rbx_volume_members_list(ctx, pool, "db", members, 3), 3);
	for (i = 0; i < 3; i++)
		assert_true(members[i].is_there && !members[i].is_out);
	assert_string_equal(members[2].address, third);

	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), -EADDRINUSE);
	assert_non_null(strstr(rbx_last_error(), "have to be moved before"));
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", "0123456789abcdef"), -ENODEV);
	assert_non_null(strstr(rbx_last_error(), "is none of volume db"));
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", "127.0.0.1:1"), -ENODEV);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", ""), -EINVAL);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "none", third), -ENOENT);
	expect_servers(ctx, 3);
	put_out(ctx, pool, 0);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), 0);
	assert_int_equal(lent_by_third(ctx), 0);
	expect_servers(ctx, 2);
	assert_int_equal(open_at(ctx, &volume, two), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	/* And it may come again. */
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* Somebody comes: 0, or what it is refused with. */
static int next_comes(struct rbx_context *ctx, int who)
{
	switch (who) {
	case 0:
		return use(ctx, pool);
	case 1:
		return use(ctx, two);
	case 2:
		return rbx_volume_members_add(ctx, two, "db", third);
	case 3:
		return rbx_volume_members_add(ctx, pool, "db", third);
	default: /* what the new server has is old then */
		(void)use(ctx, two);
		return rbx_volume_members_add(ctx, two, "db", third);
	}
}

static int expected_of(int requests, int who)
{
	if (who == 0)
		return 0;
	if (who == 1)
		return requests > NEWCOMER ? -EHOSTUNREACH : 0;
	return requests > NAMED ? -EEXIST : 0;
}

static void addition_that_was_interrupted_is_finished(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	int requests, who;

	(void)state;
	for (who = 0; who < 5; who++)
		for (requests = 0; requests <= SETTLED; requests++) {
			make(ctx);
			add_until(ctx, requests);
			assert_int_equal(next_comes(ctx, who), expected_of(requests, who));
			if (who > 1)
				expect_servers(ctx, 3);
			assert_int_equal(use(ctx, pool), 0);
			assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
			assert_int_equal(lent_by_third(ctx), 0);
		}
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_server_lends_from_the_next_open_on),
		cmocka_unit_test(open_volume_gets_a_server_for_good),
		cmocka_unit_test(wrong_additions_change_nothing),
		cmocka_unit_test(server_without_room_is_refused),
		cmocka_unit_test(sixty_fifth_server_is_refused_until_a_dead_one_is_removed),
		cmocka_unit_test(server_that_is_out_is_removed_and_gives_up_what_it_has),
		cmocka_unit_test(addition_that_was_interrupted_is_finished),
	};

	return cmocka_run_group_tests(tests, third_server_start, servers_stop);
}
