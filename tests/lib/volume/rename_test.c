/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rename_test.c - a named volume gets another name, at all servers or at none; also if the client
 * dies after any of its requests, and whoever comes next.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/rdmabox/named_volume.h"
#include "lib/volume/crowd.h"
#include "tests/lib/volume/three_servers.h"

#define PAGE 4096u
#define SIZE (2ull * TENANT_SLAB_BYTES)

/* Requests of a rename: to each server one for each step. */
enum step {
	GRANTED = SERVERS,
	AS_IT_IS = 2 * SERVERS, /* its record was accepted under the new epoch */
	RESERVED = 3 * SERVERS, /* the new name */
	RENAMED = 4 * SERVERS,
	RELEASED = 5 * SERVERS, /* the former name */
};

/* ---- A volume with contents --------------------------------------------------------------*/

static int open_named(struct rbx_context *ctx, struct rbx_volume **volume, const char *name)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = name;
	return rbx_volume_open(ctx, volume, pool, 0, &options);
}

static void make(struct rbx_context *ctx, const char *name)
{
	struct rbx_volume *volume;
	uint8_t page[PAGE];

	assert_int_equal(rbx_volume_create(ctx, pool, name, SIZE, NULL), 0);
	assert_int_equal(open_named(ctx, &volume, name), 0);
	memset(page, 0x5c, PAGE);
	assert_int_equal(rbx_write(volume, page, PAGE, TENANT_SLAB_BYTES), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
}

/* 0 if it was opened, with the contents; or -errno. */
static int use(struct rbx_context *ctx, const char *name)
{
	struct rbx_volume *volume;
	uint8_t page[PAGE], expected[PAGE];
	int err = open_named(ctx, &volume, name);

	if (err)
		return err;
	memset(expected, 0x5c, PAGE);
	assert_int_equal(rbx_read(volume, page, PAGE, TENANT_SLAB_BYTES), 0);
	assert_memory_equal(page, expected, PAGE);
	assert_int_equal(rbx_volume_close(volume), 0);
	return 0;
}

/* The servers have one volume, all of them, and the newest of its names is this one. */
static void expect_one(struct rbx_context *ctx, const char *name)
{
	struct rbx_volume_info infos[2];

	assert_int_equal(rbx_volume_list(ctx, pool, infos, 2), 1);
	assert_string_equal(infos[0].name, name);
	assert_int_equal(infos[0].servers_there, SERVERS);
}

/* And each of the servers knows it by this name. */
static void expect_whole(struct rbx_context *ctx, const char *name)
{
	struct rbx_volume_info infos[2];
	int i;

	expect_one(ctx, name);
	for (i = 0; i < SERVERS; i++) {
		assert_int_equal(rbx_volume_list(ctx, rbx_server_address(servers[i]), infos, 2), 1);
		assert_string_equal(infos[0].name, name);
	}
}

static bool is_free(struct rbx_context *ctx, const char *name)
{
	int err = rbx_volume_create(ctx, pool, name, PAGE, NULL);

	assert_true(!err || err == -EEXIST);
	if (!err)
		assert_int_equal(rbx_volume_remove(ctx, pool, name, 0), 0);
	return !err;
}

/* ---- A rename that ends early --------------------------------------------------------------*/

/* Whether one more request is sent. */
static bool goes_on(int *left)
{
	return (*left)-- > 0;
}

static void rename_steps(struct rbx_named *named, const struct rbx_crowd *crowd, int left)
{
	static const char none[RBX_WIRE_VOLUME_NAME_BYTES], wanted[sizeof(none)] = "new";
	int i;

	for (i = 0; i < SERVERS && goes_on(&left); i++)
		assert_int_equal(rbx_named_grant(named, crowd->sessions[i]), 0);
	if (i < SERVERS)
		return;
	assert_int_equal(rbx_named_take_newest(named), 0);
	for (i = 0; i < SERVERS && goes_on(&left); i++)
		assert_int_equal(rbx_named_accept(named, crowd->sessions[i]), 0);
	for (i = 0; i < SERVERS && goes_on(&left); i++)
		assert_int_equal(rbx_named_reserve(crowd->sessions[i], wanted), 0);
	if (left <= 0)
		return;
	memcpy(named->record.name, wanted, sizeof(wanted));
	rbx_named_change(named);
	for (i = 0; i < SERVERS && goes_on(&left); i++)
		assert_int_equal(rbx_named_accept(named, crowd->sessions[i]), 0);
	for (i = 0; i < SERVERS && goes_on(&left); i++)
		assert_int_equal(rbx_named_reserve(crowd->sessions[i], none), 0);
}

/* As rbx_volume_rename() of "old" to "new", but it ends after so many requests. */
static void rename_until(struct rbx_context *ctx, int requests)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;

	assert_int_equal(rbx_named_init(&named, "old", "a test"), 0);
	assert_int_equal(rbx_crowd_open(ctx, pool, &crowd), 0);
	assert_int_equal(rbx_crowd_look(crowd, &named), 0);
	assert_int_equal(rbx_named_begin(&named, false), 0);
	rename_steps(&named, crowd, requests);
	rbx_crowd_close(crowd);
}

/* ---- Tests ----------------------------------------------------------------------------------*/

static void volume_has_the_new_name_and_not_the_old(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info before, after;

	(void)state;
	make(ctx, "old");
	assert_int_equal(rbx_volume_list(ctx, pool, &before, 1), 1);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), 0);
	expect_whole(ctx, "new");
	assert_int_equal(rbx_volume_list(ctx, pool, &after, 1), 1);
	assert_true(before.volume_id == after.volume_id);
	assert_int_equal(use(ctx, "old"), -ENOENT);
	assert_int_equal(use(ctx, "new"), 0);
	assert_true(is_free(ctx, "old"));
	assert_false(is_free(ctx, "new"));
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), -ENOENT);
	assert_int_equal(rbx_volume_rename(ctx, pool, "new", "old"), 0);
	assert_int_equal(use(ctx, "old"), 0);
	assert_true(is_free(ctx, "new"));
	assert_int_equal(rbx_volume_remove(ctx, pool, "old", 0), 0);
	rbx_close(ctx);
}

static void wrong_renames_change_nothing(void **state)
{
	const char *one = rbx_server_address(servers[1]);
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), -ENOENT);
	make(ctx, "old");
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "a/b"), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "cannot have the name \"a/b\""));
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", ""), -EINVAL);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", NULL), -EINVAL);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "old"), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "is the one"));
	assert_int_equal(open_named(ctx, &volume, "old"), 0);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "process"));
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_rename(ctx, one, "old", "new"), -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "too few are left"));
	expect_whole(ctx, "old");
	assert_true(is_free(ctx, "new"));
	/* One server has a volume of that name: those that had it reserved already let go. */
	assert_int_equal(rbx_volume_create(ctx, one, "new", PAGE, NULL), 0);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), -EEXIST);
	assert_non_null(strstr(rbx_last_error(), "there is a volume of this name"));
	assert_int_equal(rbx_volume_remove(ctx, one, "new", 0), 0);
	expect_whole(ctx, "old");
	assert_true(is_free(ctx, "new"));
	assert_int_equal(use(ctx, "old"), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "old", 0), 0);
	rbx_close(ctx);
}

/* The server with the other one is none of the volume's. */
static void name_of_a_volume_beside_it_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	const char *last = strrchr(pool, ',') + 1;
	char two[256];

	(void)state;
	strcpy(two, pool);
	*strrchr(two, ',') = '\0';
	assert_int_equal(rbx_volume_create(ctx, two, "old", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_create(ctx, last, "new", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), -EEXIST);
	assert_non_null(strstr(rbx_last_error(), "has a volume new already"));
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "newer"), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "newer", 0), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "new", 0), 0);
	rbx_close(ctx);
}

/* Nobody has come after it yet. */
static void interrupted_rename_leaves_one_volume(struct rbx_context *ctx, int requests)
{
	expect_one(ctx, requests <= RESERVED ? "old" : "new");
	if (requests < RELEASED)
		assert_false(is_free(ctx, "old"));
	if (requests > AS_IT_IS)
		assert_false(is_free(ctx, "new"));
}

/* Somebody comes: 0, or what it is refused with. */
static int next_comes(struct rbx_context *ctx, int who)
{
	switch (who) {
	case 0:
		return use(ctx, "old");
	case 1:
		return use(ctx, "new");
	case 2:
		return rbx_volume_grow(ctx, pool, "old", SIZE);
	case 3:
		return rbx_volume_rename(ctx, pool, "old", "new");
	case 4:
		return rbx_volume_rename(ctx, pool, "new", "old");
	default:
		return rbx_volume_rename(ctx, pool, "old", "third");
	}
}

static const char *name_after(int requests, int who)
{
	if (who == 3)
		return "new";
	if (who == 4)
		return "old";
	if (who == 5)
		return "third";
	return requests <= RESERVED ? "old" : "new";
}

static void whoever_comes_finishes_it(struct rbx_context *ctx, int requests, int who)
{
	static const char *const names[] = { "old", "new", "third" };
	bool comes_by_new = who == 1 || who == 4;
	const char *name = name_after(requests, who);
	/* When enough have accepted it, it has happened; who renames it so finishes that. */
	int by_old = who == 3 ? RENAMED : RENAMED - 1;
	bool is_found = comes_by_new ? requests > RESERVED : requests < by_old;
	int i;

	assert_int_equal(next_comes(ctx, who), is_found ? 0 : -ENOENT);
	if (!is_found)
		return;
	expect_whole(ctx, name);
	for (i = 0; i < 3; i++)
		assert_true(is_free(ctx, names[i]) == (strcmp(names[i], name) != 0));
	assert_int_equal(use(ctx, name), 0);
}

static void rename_that_was_interrupted_is_finished(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info info;
	int requests, who;

	(void)state;
	for (who = 0; who < 6; who++)
		for (requests = 0; requests <= RELEASED; requests++) {
			make(ctx, "old");
			rename_until(ctx, requests);
			interrupted_rename_leaves_one_volume(ctx, requests);
			whoever_comes_finishes_it(ctx, requests, who);
			assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 1);
			assert_int_equal(rbx_volume_remove(ctx, pool, info.name, 0), 0);
			assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 0);
		}
	rbx_close(ctx);
}

/* By a name that only some of the servers know. */
static void half_renamed_volume_is_removed_from_all(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info info;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		make(ctx, "old");
		rename_until(ctx, RESERVED + 1);
		assert_int_equal(rbx_volume_remove(ctx, pool, i ? "new" : "old", 0), 0);
		assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 0);
		assert_true(is_free(ctx, "old"));
		assert_true(is_free(ctx, "new"));
	}
	rbx_close(ctx);
}

/* A member, which has the former name; or a stranger, which may have the new one. It ends, so this
 * is the last test. */
static void server_that_is_away_keeps_its_names(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	char two[256];

	(void)state;
	strcpy(two, pool);
	*strrchr(two, ',') = '\0';
	assert_int_equal(rbx_volume_create(ctx, pool, "old", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_create(ctx, two, "other", SIZE, NULL), 0);
	rbx_server_stop(servers[2]);
	servers[2] = NULL;
	assert_int_equal(rbx_volume_rename(ctx, pool, "other", "another"), -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "may be none of the servers"));
	assert_int_equal(rbx_volume_rename(ctx, two, "other", "another"), 0);
	assert_int_equal(rbx_volume_rename(ctx, pool, "old", "new"), 0);
	assert_int_equal(rbx_volume_create(ctx, two, "old", SIZE, NULL), -EEXIST);
	assert_int_equal(rbx_volume_create(ctx, two, "other", SIZE, NULL), 0);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_has_the_new_name_and_not_the_old),
		cmocka_unit_test(wrong_renames_change_nothing),
		cmocka_unit_test(name_of_a_volume_beside_it_is_refused),
		cmocka_unit_test(rename_that_was_interrupted_is_finished),
		cmocka_unit_test(half_renamed_volume_is_removed_from_all),
		cmocka_unit_test(server_that_is_away_keeps_its_names),
	};

	return cmocka_run_group_tests(tests, servers_start, servers_stop);
}
