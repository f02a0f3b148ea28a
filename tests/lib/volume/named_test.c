/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_test.c - a named volume outlives the program that wrote it, and is read by the next
 * one; a program that was shut out reaches nothing any more.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/extents.h"
#include "include/rdmabox/named_volume.h"
#include "lib/volume/volume.h"
#include "tests/lib/server_process.h"
#include "tests/lib/volume/three_servers.h"

#define RACES 100
#define SLABS 7
#define SLAB ((uint64_t)TENANT_SLAB_BYTES)
#define SIZE (SLABS * SLAB)

static int open_named(struct rbx_context *ctx, struct rbx_volume **volume, const char *name,
		      uint32_t take_over)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = name;
	options.take_over = take_over;
	return rbx_volume_open(ctx, volume, pool, 0, &options);
}

static void expect_zeros(struct rbx_volume *volume, uint64_t offset)
{
	uint8_t page[PAGE];
	size_t i;

	assert_int_equal(rbx_read(volume, page, PAGE, offset), 0);
	for (i = 0; i < PAGE; i++)
		assert_int_equal(page[i], 0);
}

/* ---- Tests -----------------------------------------------------------------------*/

static void volume_is_as_the_one_before_left_it(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	int round;
	uint64_t i;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
	for (round = 0; round < 3; round++) {
		assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
		assert_int_equal(rbx_volume_size(volume), SIZE);
		for (i = 0; i < SLABS; i++)
			if (i <= 2u * (unsigned)round)
				write_page(volume, i * SLAB + (uint64_t)round * PAGE);
		assert_int_equal(rbx_volume_close(volume), 0);
		rbx_close(ctx);
		ctx = tenant_context("");
	}
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	for (round = 0; round < 3; round++)
		for (i = 0; i < SLABS; i++)
			if (i <= 2u * (unsigned)round)
				expect_page(volume, i * SLAB + (uint64_t)round * PAGE);
			else
				expect_zeros(volume, i * SLAB + (uint64_t)round * PAGE);
	assert_int_equal(lent_slabs(), 5); /* 0 to 4: the others were never written */
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	while (lent_slabs())
		usleep(1000);
	assert_int_equal(open_named(ctx, &volume, "db", 0), -ENOENT);
	rbx_close(ctx);
}

static void former_writer_can_do_nothing_any_more(void **state)
{
	struct rbx_context *ctx = tenant_context(""), *other = tenant_context("");
	struct rbx_volume *volume, *taken;
	uint8_t page[PAGE] = { 0xee };

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	write_page(volume, 0);
	assert_int_equal(open_named(other, &taken, "db", 0), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "process"));
	assert_int_equal(open_named(other, &taken, "db", 1), 0);
	expect_page(taken, 0);
	assert_int_equal(rbx_write(volume, page, PAGE, 0), -EIO);
	assert_int_equal(rbx_read(volume, page, PAGE, 0), -EIO);
	assert_int_equal(rbx_write(volume, page, PAGE, 3 * SLAB), -EIO);
	expect_page(taken, 0);
	expect_zeros(taken, 3 * SLAB);
	write_page(taken, PAGE);
	assert_int_equal(rbx_volume_close(volume), 0);
	expect_page(taken, PAGE);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), -EBUSY);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 1), 0);
	assert_int_equal(rbx_read(taken, page, PAGE, 0), -EIO);
	assert_int_equal(rbx_volume_close(taken), 0);
	rbx_close(ctx);
	rbx_close(other);
}

static void wrong_names_and_options_are_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	char longest[65];
	char half[256];

	(void)state;
	memset(longest, 'x', 64);
	longest[64] = '\0';
	assert_int_equal(rbx_volume_create(ctx, pool, longest, SIZE, NULL), -EINVAL);
	longest[63] = '\0';
	assert_int_equal(rbx_volume_create(ctx, pool, longest, SIZE, NULL), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, longest, 0), 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "", SIZE, NULL), -EINVAL);
	assert_int_equal(rbx_volume_create(ctx, pool, "-x", SIZE, NULL), -EINVAL);
	assert_int_equal(rbx_volume_create(ctx, pool, "a/b", SIZE, NULL), -EINVAL);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", 0, NULL), -EINVAL);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE + 1, NULL), -EINVAL);
	assert_int_equal(rbx_volume_create(ctx, "a:1,,b:2", "db", SIZE, NULL), -EINVAL);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), -ENOENT);
	assert_int_equal(open_named(ctx, &volume, "db", 0), -ENOENT);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), -EEXIST);
	rbx_volume_options_defaults(&options);
	options.name = "db";
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, SIZE, &options), -EINVAL);
	options.replicas = 2;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), -EINVAL);
	options.replicas = 1;
	/* One of its servers is not named. */
	strcpy(half, pool);
	*strrchr(half, ',') = '\0';
	assert_int_equal(rbx_volume_open(ctx, &volume, half, 0, &options), -EHOSTUNREACH);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	assert_int_equal(rbx_volume_discard(volume, 0, SIZE), -EOPNOTSUPP);
	assert_int_equal(rbx_volume_add_server(volume, "127.0.0.1:1"), -EOPNOTSUPP);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* The name is taken at one of the servers only. */
static void volume_is_made_everywhere_or_nowhere(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info infos[4];
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, rbx_server_address(servers[1]), "db", SIZE, NULL),
			 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), -EEXIST);
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 4), 1);
	assert_int_equal(infos[0].servers_there, 1);
	/* Made on all, and removed from one: as if the remove had been interrupted. Whoever comes
	 * next finishes it. */
	assert_int_equal(rbx_volume_create(ctx, pool, "half", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_remove(ctx, rbx_server_address(servers[2]), "half", 0),
			 -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "too few"));
	assert_int_equal(rbx_volume_remove(ctx, rbx_server_address(servers[2]), "half", 1), 0);
	assert_int_equal(open_named(ctx, &volume, "half", 0), -ENOENT);
	assert_non_null(strstr(rbx_last_error(), "there is no volume half"));
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 4), 1);
	assert_int_equal(rbx_volume_create(ctx, pool, "half", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "half", 0), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 4), 0);
	rbx_close(ctx);
}

static void *open_and_close(void *other)
{
	struct rbx_volume *volume;

	if (!open_named(other, &volume, "db", 0))
		assert_int_equal(rbx_volume_close(volume), 0);
	return NULL;
}

/* Somebody opens it meanwhile: one of the two is refused, and has changed nothing. */
static void volume_is_removed_from_all_servers_or_none(void **state)
{
	struct rbx_context *ctx = tenant_context(""), *other = tenant_context("");
	struct rbx_volume_info info;
	pthread_t opener;
	int i, there;

	(void)state;
	for (i = 0; i < RACES; i++) {
		assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
		assert_int_equal(pthread_create(&opener, NULL, open_and_close, other), 0);
		usleep((unsigned)i % 20 * 50); /* another moment each time */
		(void)rbx_volume_remove(ctx, pool, "db", 0);
		pthread_join(opener, NULL);
		there = rbx_volume_list(ctx, pool, &info, 1);
		assert_in_range(there, 0, 1);
		if (there)
			assert_int_equal(info.servers_there, SERVERS);
		if (there)
			assert_int_equal(rbx_volume_remove(ctx, pool, "db", 1), 0);
	}
	rbx_close(ctx);
	rbx_close(other);
}

static void volume_grows_when_nobody_has_it_open(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	const char *one = rbx_server_address(servers[0]);
	struct rbx_volume_info info;
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SIZE), -ENOENT);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SLAB + PAGE, NULL), 0);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	write_page(volume, 0);
	write_page(volume, SLAB);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SIZE), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "process"));
	write_page(volume, PAGE);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SLAB), -EINVAL);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SIZE + 1), -EINVAL);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", UINT64_MAX - PAGE + 1), -EINVAL);
	/* One of three servers cannot decide it. */
	assert_int_equal(rbx_volume_grow(ctx, one, "db", SIZE), -EHOSTUNREACH);
	assert_int_equal(rbx_volume_list(ctx, one, &info, 1), 1);
	assert_true(info.volume_bytes == SLAB + PAGE);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SIZE), 0);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SIZE), 0);
	assert_int_equal(rbx_volume_list(ctx, one, &info, 1), 1);
	assert_true(info.volume_bytes == SIZE);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	assert_true(rbx_volume_size(volume) == SIZE);
	expect_page(volume, 0);
	expect_page(volume, PAGE);
	expect_page(volume, SLAB);
	expect_zeros(volume, SLAB + PAGE);
	expect_zeros(volume, SIZE - PAGE);
	write_page(volume, SIZE - PAGE);
	expect_page(volume, SIZE - PAGE);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* A server that was not asked learns it with the next open. */
static void grow_that_a_quorum_accepts_is_told_and_opened(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info info;
	struct rbx_volume *volume;
	char two[256];

	(void)state;
	strcpy(two, pool);
	*strrchr(two, ',') = '\0';
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SLAB, NULL), 0);
	assert_int_equal(rbx_volume_grow(ctx, two, "db", SIZE), 0);
	assert_int_equal(rbx_volume_list(ctx, rbx_server_address(servers[2]), &info, 1), 1);
	assert_true(info.volume_bytes == SLAB);
	assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 1);
	assert_true(info.volume_bytes == SIZE);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	assert_true(rbx_volume_size(volume) == SIZE);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_list(ctx, rbx_server_address(servers[2]), &info, 1), 1);
	assert_true(info.volume_bytes == SIZE);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* As if the older one had been removed while a server was away. */
static void volumes_of_one_name_are_told_apart(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info infos[4];
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, rbx_server_address(servers[0]), "db", SIZE, NULL),
			 0);
	assert_int_equal(rbx_volume_create(ctx, rbx_server_address(servers[1]), "db", SLAB, NULL),
			 0);
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 4), 2);
	assert_string_equal(infos[0].name, "db");
	assert_string_equal(infos[1].name, "db");
	assert_true(infos[0].volume_id != infos[1].volume_id);
	assert_int_equal(infos[0].volume_bytes + infos[1].volume_bytes, SIZE + SLAB);
	assert_int_equal(open_named(ctx, &volume, "db", 0), -EEXIST);
	assert_non_null(strstr(rbx_last_error(), "two volumes db"));
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 1), -EEXIST);
	assert_int_equal(rbx_volume_remove(ctx, rbx_server_address(servers[0]), "db", 0), 0);
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 4), 1);
	assert_int_equal(infos[0].volume_bytes, SLAB);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static void volumes_are_listed_by_name(void **state)
{
	struct rbx_volume_create_options options;
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info infos[2];
	struct rbx_volume *volume;

	(void)state;
	rbx_volume_create_options_defaults(&options);
	options.keep_s = 3600;
	assert_int_equal(rbx_volume_create(ctx, pool, "b", SIZE, &options), 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "c", SIZE, NULL), 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "a", SLAB, NULL), 0);
	assert_int_equal(open_named(ctx, &volume, "b", 0), 0);
	assert_int_equal(rbx_volume_list(ctx, pool, infos, 2), 3);
	assert_string_equal(infos[0].name, "a");
	assert_int_equal(infos[0].volume_bytes, SLAB);
	assert_int_equal(infos[0].is_open, 0);
	assert_true(infos[0].keep_s == UINT64_MAX);
	assert_string_equal(infos[1].name, "b");
	assert_int_equal(infos[1].is_open, 1);
	assert_int_equal(infos[1].keep_s, 3600);
	assert_int_equal(infos[1].servers, SERVERS);
	assert_int_equal(infos[1].servers_there, SERVERS);
	assert_int_equal(infos[1].slab_bytes, SLAB);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "a", 0), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "b", 0), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "c", 0), 0);
	rbx_close(ctx);
}

/* A server that dies takes its slabs with it, and nothing else. */
/* Its last slab is not used to its end. */
static void slabs_that_no_server_has_are_told_as_ranges(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_range ranges[4] = { { 0 } };
	struct rbx_volume_loss loss;
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE - PAGE, NULL), 0);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	write_page(volume, SLAB);
	write_page(volume, 3 * SLAB);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_loss_look(ctx, pool, "db", &loss, ranges, 4), 3);
	assert_int_equal(loss.slabs, SLABS);
	assert_int_equal(loss.slabs_found, 2);
	assert_int_equal(ranges[0].offset, 0);
	assert_int_equal(ranges[0].length_bytes, SLAB);
	assert_int_equal(ranges[1].offset, 2 * SLAB);
	assert_int_equal(ranges[1].length_bytes, SLAB);
	assert_int_equal(ranges[2].offset, 4 * SLAB);
	assert_int_equal(ranges[2].length_bytes, 3 * SLAB - PAGE);
	assert_int_equal(rbx_volume_loss_look(ctx, pool, "db", &loss, ranges, 1), 3);
	rbx_close(ctx);
}

static void dead_server_costs_its_slabs(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=500");
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	uint8_t page[PAGE];
	uint64_t i;
	uint32_t lost = 0;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), 0);
	assert_int_equal(open_named(ctx, &volume, "db", 0), 0);
	for (i = 0; i < SLABS; i++)
		write_page(volume, i * SLAB);
	rbx_server_stop(servers[0]);
	do
		rbx_volume_status(volume, &status);
	while (status.servers_up == SERVERS);
	for (i = 0; i < SLABS; i++) {
		int err = rbx_read(volume, page, PAGE, i * SLAB);

		if (!err) {
			expect_page(volume, i * SLAB);
			continue;
		}
		assert_int_equal(err, -EIO);
		/* It is not lent anew: nothing of it could be told apart later. */
		assert_int_equal(rbx_write(volume, page, PAGE, i * SLAB), -EIO);
		assert_int_equal(rbx_read(volume, page, PAGE, i * SLAB), -EIO);
		lost++;
	}
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_lost, lost);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_not_equal(open_named(ctx, &volume, "db", 0), 0);
	rbx_close(ctx);
	servers[0] = tenant_server();
}

/* The servers note no more than that as being written (core/extents.h). */
static void open_after_a_crash_copies_as_much_as_is_wanted(void **state)
{
	const struct rbx_volume_create_options two = { .size_bytes = sizeof(two),
						       .keep_s = UINT64_MAX,
						       .replicas = 2 };
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &two), 0);
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.crash_copy = 5 * SLAB / 64;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	assert_int_equal(volume->control.flow.map->shape.groups[0].extents->set_max, 5);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(volume_is_as_the_one_before_left_it,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(former_writer_can_do_nothing_any_more,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(wrong_names_and_options_are_refused,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(volume_is_made_everywhere_or_nowhere,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(volume_is_removed_from_all_servers_or_none,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(open_after_a_crash_copies_as_much_as_is_wanted,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(volume_grows_when_nobody_has_it_open, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(grow_that_a_quorum_accepts_is_told_and_opened,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(volumes_of_one_name_are_told_apart, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(volumes_are_listed_by_name, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(slabs_that_no_server_has_are_told_as_ranges,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(dead_server_costs_its_slabs, servers_start,
						servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
